"""What else a router between two domains of a simulated machine keeps: names, rates, times, numbers of messages."""

import asyncio
from typing import Any

import pytest

from stablecast.client import Receiver, source_discovery
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.router.daemon import RouterDaemon
from stablecast.runtime import own_address
from stablecast.runtime.logs import Severity
from stablecast.runtime.own_address import OwnAddress
from tests.adapters.router.test_daemon import HERE, MESSAGES, PATIENCE, Domains, payloads, until, world
from tests.adapters.router.test_persistence import context, store

THERE = "127.0.0.3"

LONGEST_NAME = "n" * 246
"""The longest documented topic."""


async def joined(receiver: Receiver) -> None:
    await until(lambda: receiver._sessions)


@pytest.mark.rows("R-113")
def test_a_source_behind_a_settled_router_is_found_in_less_than_a_second() -> None:
    """R-113: with a service on one side and a group on the other."""

    async def story(domains: Domains) -> None:
        await domains.service()
        domains.group()
        await domains.router("tcp", "lbtrm")
        here, there = await domains.context(1), await domains.context(2)
        await asyncio.sleep(5)
        source = await here.source("orders")
        loop = asyncio.get_running_loop()
        began, receiver = loop.time(), there.receiver("orders")
        await joined(receiver)
        assert loop.time() - began < 1
        await source.send(b"one")
        assert await payloads(receiver, 1) == [b"one"]

    world(story)


@pytest.mark.rows("R-176")
@pytest.mark.parametrize("kind", ["relay", "group", "service"])
def test_the_longest_topic_passes(kind: str) -> None:
    """R-176."""

    async def story(domains: Domains) -> None:
        for _ in range(2):
            begin: Any = getattr(domains, kind)()
            if begin is not None:
                await begin
        await domains.router("tcp", "lbtru")
        source = await (await domains.context(1)).source(LONGEST_NAME)
        receiver = (await domains.context(2)).receiver(LONGEST_NAME)
        await joined(receiver)
        await source.send(b"one")
        assert await payloads(receiver, 1) == [b"one"]

    world(story)


@pytest.mark.rows("R-173")
def test_the_rate_of_a_transport_holds_for_proxies() -> None:
    """R-173: what exceeds it waits in the queue of the portal, and nothing is lost."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        plain = dict(domains.options[1])
        domains.options[1] |= {"transport_lbtrm_data_rate_limit": 1_000_000, "transport_lbtrm_rate_interval": 1_000}
        router = await domains.router("tcp", "lbtrm")
        domains.options[1] = plain  # The context beside it only receives.
        source = await (await domains.context(1)).source("orders")
        receiver = (await domains.context(2)).receiver("orders")
        await joined(receiver)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(500):
            await source.send(bytes(1_000))
        await payloads(receiver, 500)
        assert 3 < loop.time() - began < 10  # four million bits
        view = router.snapshot().portals[1]
        assert view.queue.peak > 0
        assert not any(view.dropped.values())

    world(story)


@pytest.mark.rows("R-254")
def test_the_loss_of_a_service_is_logged_as_a_warning() -> None:
    """R-254: without its service a portal hears nothing."""

    async def story(domains: Domains) -> None:
        service = await SrsDaemon.start(SrsConfig(interface=HERE, port=0), lambda _: None)
        domains.options.append({"resolver_service": service.address})
        domains.group()
        await domains.router("tcp", "tcp")
        assert not [text for severity, text in domains.lines if severity is Severity.WARNING]
        await service.close()
        await until(lambda: any(severity is Severity.WARNING for severity, _ in domains.lines))
        (text,) = [text for severity, text in domains.lines if severity is Severity.WARNING]
        assert "portal-1" in text
        assert service.address in text

    world(story)


@pytest.mark.rows("R-321")
@pytest.mark.parametrize("kind", ["tcp", "lbtrm", "lbtru"])
def test_properties_and_hot_numbers_pass(kind: str) -> None:
    """R-321: two sources with the same numbers, in batches; each number comes once, with its properties."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        await domains.router("tcp", kind)
        here, there = await domains.context(1), await domains.context(2)
        sources = [await here.source("orders", options={"transport": kind}) for _ in range(2)]
        receiver = there.receiver("orders", hot_failover=True)
        await until(lambda: len(receiver._sessions) == len(sources))
        for source in sources:
            for number in range(20):
                await source.send(b"%d" % number, hot_number=number, properties={"side": "buy"})
        async with asyncio.timeout(PATIENCE):
            found = [await anext(receiver) for _ in range(20)]
        assert [message.hot_number for message in found] == list(range(20))
        assert all(message.properties == {"side": "buy"} for message in found)

    world(story)


def said(router: RouterDaemon) -> int:
    """The messages to single contexts that a router has passed on."""
    return sum(view.unicast_sent for view in router.snapshot().portals)


@pytest.mark.rows("R-237")
def test_a_named_store_that_begins_again_costs_a_bounded_number_of_messages() -> None:
    """R-237: all that is said across goes on at the pace of keepalives."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        router = await domains.router("tcp", "tcp")
        kept = await store(domains, 2)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        source = await here.source("orders", options={"ume_store_name": "store-2"}, wait=False)
        await source.registered(PATIENCE)
        receiver = there.receiver("orders")
        await source.send_many(MESSAGES)
        assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        await source.wait_stable(source.next_number - 1, PATIENCE)
        before = said(router)
        await asyncio.sleep(60)
        quiet = said(router) - before
        await kept.stop()
        await kept.start()
        await source.registered(PATIENCE)
        before = said(router)
        await asyncio.sleep(60)
        assert said(router) - before <= quiet + 20

    world(story)


@pytest.mark.parametrize("kind", ["tcp", "lbtru"])  # The addresses of this world are interfaces, apart for groups.
@pytest.mark.parametrize("number", [0, 1])
def test_a_portal_goes_on_at_its_hosts_next_address(number: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one at the source, or the one at the receiver; both find the router again, and the store both."""
    followed: list[OwnAddress] = []

    def follow(own: OwnAddress) -> None:
        followed.append(own)

    monkeypatch.setattr(OwnAddress, "follow", follow)

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        router = await domains.router(kind, kind)
        kept = await store(domains, 2)
        here, there = await context(domains, 1, 1), await context(domains, 2, 2)
        source = await here.source("orders", stores=[f"2:{kept.address}"], wait=False, options={"transport": kind})
        await source.registered(PATIENCE)
        receiver = there.receiver("orders")
        await joined(receiver)
        await (await source.send(b"one")).stable(PATIENCE)
        assert await payloads(receiver, 1) == [b"one"]
        portal = router.portals[number]
        monkeypatch.setattr(own_address, "has_address", {THERE}.__contains__)
        monkeypatch.setattr(source_discovery, "interface_of", lambda _: THERE)
        (own,) = (one for one in followed if one._move == portal._move)
        await own.look()
        domains.lines.clear()
        assert portal.address.startswith(THERE)
        await (await source.send(b"two")).stable(PATIENCE)
        assert await payloads(receiver, 1) == [b"two"]
        assert there.pool.routing.routes[1] == router.portals[1].address
        await until(lambda: all(portal.forwards for portal in router.router.portals))
        assert not [text for severity, text in domains.lines if severity is Severity.WARNING]

    world(story)
