"""Persistent sources, their stores and their receivers on any side of a router."""

import asyncio
from collections import Counter
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.store.store import Store, StoreSettings
from tests.adapters.router.test_daemon import MESSAGES, PATIENCE, Domains, payloads, until, world

HOST = "127.0.0.1"
PACED = {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 100_000}


def made(name: str) -> Path:
    directory = Path(name)
    directory.mkdir()
    return directory


async def store(domains: Domains, domain: int) -> Store:
    directory = made(f"store-{domain}")
    relay = str(domains.options[domain - 1]["resolver_unicast_daemon"])
    config, name = StoreConfig("", seed=1), f"store-{domain}"
    config = attrs.evolve(config, repository=RepositoryConfig(allow_rpp=True))
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
        await source.registered(PATIENCE)
        for payload in MESSAGES[:20]:
            await (await source.send(payload)).stable(PATIENCE)
        receiver = there.receiver("orders")
        assert await payloads(receiver, 20) == MESSAGES[:20]
        await source.send_many(MESSAGES[20:])
        assert await payloads(receiver, len(MESSAGES) - 20) == MESSAGES[20:]
        await source.wait_stable(source.next_number - 1, PATIENCE)
        assert strange(here.oddities, there.oddities, kept.oddities) == {}
        views = router.snapshot().portals
        assert sum(view.unicast_sent for view in views) > 0
        assert [dict(view.dropped) for view in views] == [dict.fromkeys(view.dropped, 0) for view in views]
        await until(lambda: receiver._sessions)
        await asyncio.sleep(1)

    world(story)


@pytest.mark.rows("R-067")
@pytest.mark.parametrize("kind", ["tcp", "lbtrm", "lbtru"])
def test_a_late_receiver_gets_the_messages_that_a_source_keeps(kind: str) -> None:
    """R-180: late join without stores, from the source itself."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        router = await domains.router(kind, kind)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        source = await here.source("orders", options={"late_join": 1, "transport": kind})
        await source.send_many(MESSAGES[:50])
        await asyncio.sleep(5)
        receiver = there.receiver("orders", options={"use_late_join": 1})
        assert await payloads(receiver, 50) == MESSAGES[:50]
        await source.send_many(MESSAGES[50:])
        assert await payloads(receiver, len(MESSAGES) - 50) == MESSAGES[50:]
        assert sum(view.unicast_sent for view in router.snapshot().portals) > 0

    world(story)


@pytest.mark.rows("P-952", "R-231")
@pytest.mark.parametrize("home", [1, 2])
def test_receivers_pace_a_source_in_another_domain(home: int) -> None:
    """R-231."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        await domains.router("tcp", "tcp")
        kept = await store(domains, home)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        where = kept.address if home == 1 else f"2:{kept.address}"
        receiver = there.receiver("orders", options={"ume_receiver_paced_persistence": 1})
        source = await here.source("orders", stores=[where], wait=False, options=PACED)
        await source.registered(PATIENCE)
        await asyncio.sleep(5)  # A store keeps nothing for receivers that have not registered.
        reading = asyncio.create_task(payloads(receiver, len(MESSAGES)))
        for payload in MESSAGES:
            await source.send(payload, timeout=PATIENCE)
        assert await reading == MESSAGES
        await source.wait_stable(source.next_number - 1, PATIENCE)

    world(story)


@pytest.mark.rows("P-204", "R-222")
def test_a_source_names_a_store_of_another_domain() -> None:
    """R-222: by its name alone; it finds the address and the domain through the router."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        await domains.router("tcp", "tcp")
        kept = await store(domains, 2)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        source = await here.source("orders", options={"ume_store_name": "store-2"}, wait=False)
        await source.registered(PATIENCE)
        assert here.store_names == {"store-2": f"2:{kept.address}"}
        await source.send_many(MESSAGES)
        assert await payloads(there.receiver("orders"), len(MESSAGES)) == MESSAGES
        await source.wait_stable(source.next_number - 1, PATIENCE)

    world(story)


@pytest.mark.rows("R-222", "R-251")
@pytest.mark.parametrize("home", [1, 2])
def test_names_pass_beside_services(home: int) -> None:
    """Services know no names: each domain has a relay for them besides, and the router uses both."""

    async def story(domains: Domains) -> None:
        for _ in range(2):
            await domains.service()
            await domains.relay()
        domains.options = [domains.options[at] | domains.options[at + 1] for at in (0, 2)]
        router = await domains.router("tcp", "tcp")
        kept = await store(domains, home)
        here, there = await context(domains, 3 - home, 1), await context(domains, home, 2)
        source = await here.source("orders", options={"ume_store_name": f"store-{home}"}, wait=False)
        await source.registered(PATIENCE)
        assert here.store_names == {f"store-{home}": f"{home}:{kept.address}"}
        receiver = there.receiver("orders")
        await source.send_many(MESSAGES)
        assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        await source.wait_stable(source.next_number - 1, PATIENCE)
        assert [view.dropped["duplicate"] for view in router.snapshot().portals] == [0, 0]

    world(story)
