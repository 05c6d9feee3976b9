"""Portals that lead to other routers, in one simulated host: who may link, and what becomes of connections."""

import asyncio
from pathlib import Path

import attrs
import pytest
import trustme
import uvloop

from stablecast.router import peer_portal
from stablecast.router.config import PeerConfig, PortalConfig, RouterConfig, SignsOfLife
from stablecast.router.daemon import RouterDaemon
from stablecast.router.peer_portal import PeerPortal
from stablecast.runtime import machine
from stablecast.runtime.logs import Severity
from stablecast.runtime.policy import POLICY
from stablecast.runtime.tls import VARIABLE
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.network_map import NodeRecord
from tests.adapters.router.test_daemon import (
    AT_ONCE,
    HERE,
    MESSAGES,
    PATIENCE,
    TRANSPORTS,
    Domains,
    configuration,
    payloads,
    until,
    world,
)
from tests.adapters.runtime.test_tls import certified

PORT = 14_380
NODE = 1 << 63

LISTENS = PeerConfig("south", port=PORT, interface=HERE)
CALLS = PeerConfig("north", address=HERE, port=PORT)

POLICY_OF_ROUTERS = """
[[allow]]
names = ["edge"]
roles = ["router"]

[[allow]]
names = ["shop"]
roles = ["source", "receiver"]
topics = ["orders"]
"""


async def router(domains: Domains, name: str, domain: int, *peers: PeerConfig) -> RouterDaemon:
    portal = PortalConfig("home", domain, options=configuration(domains.options[domain - 1], TRANSPORTS["tcp"]))
    found = await RouterDaemon.start(
        RouterConfig(name, (portal,), peers),
        lambda severity, _who, _code, text: domains.lines.append((severity, text)),
    )
    domains.stack.push_async_callback(found.close)
    return found


def linked(daemon: RouterDaemon, place: int = 1) -> str:
    """The name of the router at the other end of a portal."""
    link = daemon.snapshot().portals[place].link
    assert link is not None
    return link.router


async def pair(domains: Domains, listens: PeerConfig = LISTENS, calls: PeerConfig = CALLS) -> list[RouterDaemon]:
    for _ in range(2):
        domains.group()
    found = [await router(domains, "edge-1", 1, listens), await router(domains, "edge-2", 2, calls)]
    await until(lambda: all(len(one.snapshot().routes) == 2 for one in found))
    return found


@pytest.mark.rows("R-130")
@pytest.mark.parametrize("kind", ["tcp", "lbtrm", "lbtru"])
def test_what_one_domain_sends_the_other_receives(kind: str) -> None:
    async def story(domains: Domains) -> None:
        first, second = await pair(domains)
        here, there = await domains.context(1), await domains.context(2)
        source = await here.source("orders", options=TRANSPORTS[kind])
        receiver = there.receiver("orders")
        await until(lambda: receiver._sessions)
        await source.send_many(MESSAGES)
        assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        views = first.snapshot(), second.snapshot()
        assert [one.portals[1].link and one.portals[1].link.router for one in views] == ["edge-2", "edge-1"]
        assert views[0].signature == views[1].signature
        assert [[known.name for known in one.routers] for one in views] == [[k.name for k in views[0].routers]] * 2
        assert {route.domain: route.cost for route in views[0].routes} == {1: 1, 2: 3}
        assert views[0].portals[1].sent.messages == views[1].portals[1].received.messages == len(MESSAGES)

    world(story)


@pytest.mark.rows("R-132", "R-088", "R-091")
def test_a_router_calls_until_it_is_answered() -> None:
    """R-132: faster than documented at first, and the log names few of the attempts."""

    async def story(domains: Domains) -> None:
        for _ in range(2):
            domains.group()
        calling = await router(domains, "edge-2", 2, CALLS)
        await asyncio.sleep(60)
        assert 2 < len([text for severity, text in domains.lines if severity is Severity.WARNING]) < 8
        assert calling.snapshot().portals[1].trouble
        answering = await router(domains, "edge-1", 1, LISTENS)
        await until(lambda: linked(calling), AT_ONCE)
        domains.lines.clear()
        await calling.close()
        await until(lambda: not linked(answering))
        assert any(severity is Severity.WARNING and "edge-2" in text for severity, text in domains.lines)
        again = await router(domains, "edge-2", 2, CALLS)
        await until(lambda: linked(again) == "edge-1" and linked(answering) == "edge-2")

    world(story)


async def call(
    hello: lm.LinkMessage | None = None, host: str = HERE
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HERE, PORT, local_addr=(host, 0))
    if hello is not None:
        writer.write(lm.encode(hello))
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            while await reader.read(65_536):
                pass
    except ConnectionError:
        pass
    return True


def test_a_new_connection_of_a_router_replaces_the_old_one() -> None:
    """It was killed, and nobody has told this side; in its next life it has another node, and the same name."""

    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, attrs.evolve(LISTENS, signs=SignsOfLife(10**9, 10**12)))
        old, first = await call(lm.Hello(NODE, "edge-2"))
        await until(lambda: linked(listening) == "edge-2")
        _, second = await call(lm.Hello(NODE + 1, "edge-2"))
        assert await ended(old)
        await until(lambda: linked(listening) == "edge-2")
        assert [link.node for _, link in listening.router.network.links()] == [NODE + 1]
        for one in (first, second):
            one.close()

    world(story)


def test_another_router_is_refused_while_one_is_linked() -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, attrs.evolve(LISTENS, signs=SignsOfLife(10**9, 10**12)))
        _, first = await call(lm.Hello(NODE, "edge-2"))
        await until(lambda: linked(listening) == "edge-2")
        reader, second = await call(lm.Hello(NODE + 1, "edge-3"))
        assert await ended(reader)
        assert linked(listening) == "edge-2"
        assert any("edge-3" in text for _, text in domains.lines)
        for one in (first, second):
            one.close()

    world(story)


@pytest.mark.parametrize("first", [b"", b"no message", lm.encode(NodeRecord(NODE))])
def test_who_does_not_say_who_it_is_is_sent_away(first: bytes) -> None:
    """At once for a wrong message, and after five seconds for none."""

    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, LISTENS)
        reader, writer = await call()
        writer.write(first)
        assert await ended(reader)
        assert not linked(listening)
        writer.close()

    world(story)


def test_connections_that_say_nothing_keep_only_their_own_host_out() -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, LISTENS)
        silent = [await call() for _ in range(peer_portal.MAX_NEW)]
        await asyncio.sleep(1)
        reader, writer = await call(lm.Hello(NODE, "edge-2"))
        assert await ended(reader)
        assert not linked(listening)
        _, other = await call(lm.Hello(NODE, "edge-2"), host="127.0.0.2")
        await until(lambda: linked(listening) == "edge-2")
        assert await ended(silent[0][0])
        for one in (writer, other, *(writer for _, writer in silent)):
            one.close()

    world(story)


@pytest.mark.rows("R-133", "R-120")
def test_a_silent_link_ends() -> None:
    """R-120, R-133: after three seconds by default."""

    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, LISTENS)
        reader, writer = await call(lm.Hello(NODE, "edge-2"))
        await until(lambda: linked(listening) == "edge-2")
        began = asyncio.get_running_loop().time()
        assert await ended(reader)
        assert 2.5 < asyncio.get_running_loop().time() - began < 4.5
        assert not linked(listening)
        writer.close()

    world(story)


def test_a_link_that_takes_nothing_lets_data_wait_and_ends_before_it_takes_all_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_portal, "MAX_BYTES", 600_000)

    async def story(domains: Domains) -> None:
        domains.group()
        listening = await router(domains, "edge-1", 1, attrs.evolve(LISTENS, signs=SignsOfLife(10**9, 10**12)))
        reader, writer = await call(lm.Hello(NODE, "edge-2"))
        await until(lambda: linked(listening) == "edge-2")
        portal = listening.peers[0]
        while not listening.router.portals[1].queues.held:
            portal.tell(lm.encode(lm.SignOfLife(True, 1, 0)) * 1_000)
            await asyncio.sleep(0.01)
        for _ in range(10):
            portal.tell(lm.encode(lm.SignOfLife(True, 1, 0)) * 1_000)
        await until(lambda: not linked(listening))
        writer.close()
        del reader

    world(story)


@pytest.mark.rows("R-141", "R-142")
@pytest.mark.parametrize(
    ("policy", "caller", "may"),
    [("", "shop", True), (POLICY_OF_ROUTERS, "edge", True), (POLICY_OF_ROUTERS, "shop", False)],
)
def test_a_link_uses_tls_like_all_other_connections(
    policy: str, caller: str, may: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-141: and with a policy, whoever links must be a router."""
    authority = trustme.CA()
    where = {name: str(certified(tmp_path / name, authority, common_name=name)) for name in ("edge", "shop")}
    for place in where.values() if policy else ():
        (Path(place) / POLICY).write_text(policy)

    async def story(domains: Domains) -> None:
        for _ in range(2):
            domains.group()
        machine.process.environment[VARIABLE] = where["edge"]
        listening = await router(domains, "edge-1", 1, LISTENS)
        machine.process.environment[VARIABLE] = where[caller]
        monkeypatch.setattr("stablecast.runtime.tls.require_right", lambda *_: None)
        calling = await router(domains, "edge-2", 2, CALLS)
        await asyncio.sleep(5)
        assert bool(linked(listening)) is bool(linked(calling)) is may

    world(story)


def test_unicast_without_a_link_is_counted() -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        calling = await router(domains, "edge-2", 1, CALLS)
        calling.peers[0].send(fx.SendUnicast(1, "", b"x"))
        assert calling.router.portals[1].counted.unicast_dropped[UnicastDrop.LINK_DOWN] == 1

    world(story)


def test_the_event_loop_of_the_shipped_programs_serves_links() -> None:
    """Its transports are of classes of their own."""
    found: list[list[ev.RouterInput]] = [[], []]

    async def main() -> None:
        listens = PeerPortal(0, PeerConfig("south", interface=HERE), lm.Hello(NODE, "edge-1"), found[0].append, print)
        await listens.open()
        port = int(listens.address.rpartition(":")[2])
        there = PeerConfig("north", address=HERE, port=port)
        calls = PeerPortal(0, there, lm.Hello(NODE + 1, "edge-2"), found[1].append, print)
        await calls.open()
        await until(lambda: all(found))
        await calls.close()
        await until(lambda: len(found[0]) > 1)
        await listens.close()

    uvloop.run(main())
    assert found[0][:2] == [ev.LinkBegun(0, NODE + 1, "edge-2"), ev.LinkEnded(0, "the other side has closed it")]
    assert found[1][0] == ev.LinkBegun(0, NODE, "edge-1")
