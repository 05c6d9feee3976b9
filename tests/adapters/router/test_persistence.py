"""Persistent sources, their stores and their receivers on any side of a router."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.core.protocol.settings import StoreConfig
from stablecast.store.store import Store, StoreSettings
from tests.adapters.router.test_daemon import MESSAGES, Domains, payloads, until, world

HOST = "127.0.0.1"


def made(name: str) -> Path:
    directory = Path(name)
    directory.mkdir()
    return directory


async def store(domains: Domains, domain: int) -> Store:
    """Start a store in a domain."""
    directory = made(f"store-{domain}")
    relay = str(domains.options[domain - 1]["resolver_unicast_daemon"])
    config, name = StoreConfig("", seed=1), f"store-{domain}"
    settings = StoreSettings(f"{HOST}:0", directory, config, new=True, resolver=(relay,), context_name=name)
    found = Store(settings)
    await found.start()
    domains.stack.push_async_callback(found.stop)
    return found


def strange(*counters: Counter[str]) -> dict[str, int]:
    """What was not believed."""
    found = sum(counters, Counter[str]())
    return {what: count for what, count in found.items() if what.startswith(("foreign", "routed", "malformed"))}


async def context(domains: Domains, domain: int, session: int) -> Context:
    found = await domains.context(domain)
    found.session_id = session
    return found


@pytest.mark.rows("R-180", "R-220", "R-228", "R-229")
@pytest.mark.parametrize("kind", ["tcp", "lbtrm", "lbtru"])
@pytest.mark.parametrize("home", [1, 2])
def test_a_late_receiver_gets_what_a_store_of_either_domain_has(home: int, kind: str) -> None:
    """R-180, R-220, R-228, R-229: registration, stability, late join and consumption through the router."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        router = await domains.router(kind, kind)
        kept = await store(domains, home)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        where = kept.address if home == 1 else f"2:{kept.address}"
        source = await here.source("orders", stores=[where], wait=False)
        await source.registered(30)
        for payload in MESSAGES[:20]:
            await (await source.send(payload)).stable(30)
        receiver = there.receiver("orders")
        assert await payloads(receiver, 20) == MESSAGES[:20]
        await source.send_many(MESSAGES[20:])
        assert await payloads(receiver, len(MESSAGES) - 20) == MESSAGES[20:]
        await source.wait_stable(source.next_number - 1, 30)
        assert strange(here.oddities, there.oddities, kept.oddities) == {}
        views = router.snapshot().portals
        assert sum(view.unicast_sent for view in views) > 0
        assert [dict(view.dropped) for view in views] == [dict.fromkeys(view.dropped, 0) for view in views]
        await until(lambda: receiver._sessions)
        await asyncio.sleep(1)

    world(story)
