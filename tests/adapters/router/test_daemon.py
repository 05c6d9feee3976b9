"""A router between two domains of a simulated machine: streams, late receivers, patterns, and ends."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import attrs
import pytest

from stablecast.client import Context, Receiver, WildcardReceiver, resolution
from stablecast.config.client_configuration import ClientConfiguration, ConfigLayer
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import Value
from stablecast.core.protocol.events import EndOfSource
from stablecast.lab.world.world import World
from stablecast.resolver import RelayDaemon
from stablecast.resolver.srs import SrsConfig, SrsDaemon
from stablecast.router.config import PortalConfig, RouterConfig
from stablecast.router.daemon import RouterDaemon
from stablecast.router.portal import JoinedSource
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.logs import Severity
from stablecast.runtime.ports import ScarcityError
from stablecast.transports import codec
from stablecast.transports.codec.routed import Endpoint, routed
from stablecast.transports.routing.portals import Standing
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Stream

HERE = "127.0.0.1"
GROUPS = ("239.10.0.1", "239.10.0.2", "239.10.0.3")
TRANSPORTS: dict[str, dict[str, Value]] = {
    "tcp": {"transport": "tcp"},
    "lbtrm": {"transport": "lbtrm"},
    "lbtru": {"transport": "lbtru"},
}


@attrs.define
class Domains:
    """Domains 1, 2, ... on one host, each with a relay or a group, and a router between them."""

    stack: AsyncExitStack
    options: list[dict[str, Value]] = attrs.field(factory=list)
    lines: list[tuple[Severity, str]] = attrs.field(factory=list)

    async def relay(self) -> None:
        relay = await RelayDaemon.start(HERE, 0)
        self.stack.push_async_callback(relay.close)
        self.options.append({"resolver_unicast_daemon": relay.address})

    def group(self) -> None:
        self.options.append({"resolver_multicast_address": GROUPS[len(self.options)]})

    async def service(self) -> None:
        service = await SrsDaemon.start(SrsConfig(interface=HERE, port=0), lambda _: None)
        self.stack.push_async_callback(service.close)
        self.options.append({"resolver_service": service.address})

    async def router(self, *transports: str) -> RouterDaemon:
        """Start a router whose proxy sources use these transports."""
        portals = tuple(
            PortalConfig(f"portal-{number}", number, options=configuration(one, TRANSPORTS[transport]))
            for number, (one, transport) in enumerate(zip(self.options, transports, strict=True), 1)
        )
        router = await RouterDaemon.start(
            RouterConfig("edge", portals), lambda severity, _who, _code, text: self.lines.append((severity, text))
        )
        self.stack.push_async_callback(router.close)
        await asyncio.sleep(3)
        assert [portal.standing for portal in router.router.portals] == [Standing.FORWARDS] * len(portals)
        return router

    async def context(self, domain: int) -> Context:
        return await self.stack.enter_async_context(Context(resolution=resolution("safe", self.options[domain - 1])))


def configuration(context: dict[str, Value], source: dict[str, Value]) -> ClientConfiguration:
    settings = [Setting("context", name, str(value), 0) for name, value in context.items()]
    settings += [Setting("source", name, str(value), 0) for name, value in source.items()]
    return ClientConfiguration((ConfigLayer("", tuple(settings)),))


PATIENCE, AT_ONCE = 60, 5
"""Seconds of the world's time: for everything, and for what must not wait for a timeout of a transport."""


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until something holds, in the time of the world."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def payloads(receiver: Receiver | WildcardReceiver, count: int) -> list[bytes]:
    async with asyncio.timeout(PATIENCE):
        return [(await anext(receiver)).payload for _ in range(count)]


def world(story: Callable[[Domains], Awaitable[None]]) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            await story(Domains(stack))

    World(1).run(main)


MESSAGES = [str(number).encode() for number in range(200)]


@pytest.mark.rows("M-001", "R-001", "R-054")
@pytest.mark.parametrize("entry", list(TRANSPORTS))
@pytest.mark.parametrize("leaving", list(TRANSPORTS))
def test_a_stream_passes_from_any_transport_to_any(entry: str, leaving: str) -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", leaving)
        here, there = await domains.context(1), await domains.context(2)
        source = await here.source("orders", options=TRANSPORTS[entry])
        receiver = there.receiver("orders")
        await until(lambda: receiver._sessions)
        await source.send_many(MESSAGES)
        assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        view = router.snapshot()
        assert [view.portals[0].received.messages, view.portals[1].sent.messages] == [len(MESSAGES)] * 2
        await source.close()

    world(story)


def test_a_stream_that_cannot_be_joined_just_now_is_joined_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reports the source a second time, and a sentence names the reason in place of a traceback."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        entry, scarce = router.portals[0].transports, ["no descriptor is left"]
        join = entry.joiner

        def joiner(*args: Any, **more: Any) -> Any:
            if scarce:
                raise ScarcityError(scarce.pop())
            return join(*args, **more)

        monkeypatch.setattr(entry, "joiner", joiner)
        source = await (await domains.context(1)).source("orders")
        receiver = (await domains.context(2)).receiver("orders")
        await until(lambda: not scarce and receiver._sessions)
        await source.send(b"one")
        assert await payloads(receiver, 1) == [b"one"]
        assert any("cannot join the source of 'orders': no descriptor is left" in text for _, text in domains.lines)

    world(story)


def test_the_end_of_one_stream_looks_at_no_other() -> None:
    """Thousands of streams end together when their host dies, or when their session of LBT-RU does."""
    searched = list[object]()

    class Unsearched(dict[bytes, JoinedSource]):
        def values(self) -> Any:
            searched.append(self)
            return super().values()

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        entry = router.portals[0]
        here, there = await domains.context(1), await domains.context(2)
        sources = [await here.source(topic) for topic in ("orders", "trades")]
        receivers = [there.receiver(topic) for topic in ("orders", "trades")]
        await until(lambda: all(receiver._sessions for receiver in receivers))
        first = next(iter(entry._joined))
        ended = entry._joined[first].joiner._on_end
        entry._joined = Unsearched(entry._joined)
        ended(True)
        assert first not in entry._joined
        await until(lambda: first in entry._joined)
        assert not searched
        await sources[0].send(b"one")
        assert await payloads(receivers[0], 1) == [b"one"]

    world(story)


@pytest.mark.rows("R-001", "R-250")
def test_domains_with_relays_are_joined_both_ways() -> None:
    """R-250. Sources of one topic in two domains, each heard in the other one."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        await domains.router("tcp", "tcp")
        contexts = [await domains.context(1), await domains.context(2)]
        sources = [await context.source("orders") for context in contexts]
        receivers = [context.receiver("orders") for context in contexts]
        await until(lambda: all(len(receiver._sessions) == 2 for receiver in receivers))
        for number, source in enumerate(sources):
            await source.send(b"from %d" % number)
        for receiver in receivers:
            assert sorted(await payloads(receiver, 2)) == [b"from 0", b"from 1"]

    world(story)


@pytest.mark.rows("R-020", "R-063")
def test_without_interest_no_byte_passes() -> None:
    """R-020, R-063."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "lbtrm")
        here, there = await domains.context(1), await domains.context(2)
        source = await here.source("orders")
        other = there.receiver("trades")
        await source.send_many(MESSAGES)
        await asyncio.sleep(20)
        views = router.snapshot().portals
        assert (views[0].received.messages, views[0].proxy_receivers, views[1].proxy_sources) == (0, 0, 0)
        assert (views[0].remote_topics, views[1].topics) == (1, 1)
        await other.close()
        await until(lambda: not router.snapshot().portals[0].remote_topics)

    world(story)


@pytest.mark.parametrize("leaving", list(TRANSPORTS))
def test_a_receiver_joins_a_proxy_while_data_flows(leaving: str) -> None:
    """What passed since the announcement of the source is no loss to those who join later."""

    async def story(domains: Domains) -> None:
        await domains.relay()
        await domains.relay()
        await domains.router("tcp", leaving)
        here, there = await domains.context(1), await domains.context(2)
        source, first = await here.source("orders"), there.receiver("orders")
        await until(lambda: first._sessions)
        await source.send_many(MESSAGES[:100])
        assert await payloads(first, 100) == MESSAGES[:100]
        another = (await domains.context(2)).receiver("orders")
        arriving = asyncio.create_task(payloads(another, 20))
        for message in MESSAGES[100:]:
            await source.send(message)
            await asyncio.sleep(0.02)
        async with asyncio.timeout(AT_ONCE):
            begun = MESSAGES.index((found := await arriving)[0])
        assert found == MESSAGES[begun : begun + 20]

    world(story)


def test_a_receiver_that_comes_later_gets_what_is_sent_from_then_on() -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "lbtru")
        here = await domains.context(1)
        source = await here.source("orders", options=TRANSPORTS["lbtrm"])
        await source.send_many(MESSAGES[:100])
        await asyncio.sleep(120)  # resolution of the source is quiet
        there = await domains.context(2)
        receiver = there.receiver("orders")
        await until(lambda: receiver._sessions)
        await source.send_many(MESSAGES[100:])
        assert await payloads(receiver, 100) == MESSAGES[100:]
        # A second one at the same proxy, and a quiet source: the router repeats what was announced (D-19).
        await asyncio.sleep(120)
        another = (await domains.context(2)).receiver("orders")
        await until(lambda: another._sessions)
        await source.send(b"last")
        assert [await payloads(one, 1) for one in (receiver, another)] == [[b"last"]] * 2
        assert router.snapshot().portals[1].proxy_sources == 1

    world(story)


@pytest.mark.rows("R-026", "R-027")
def test_a_pattern_finds_the_topics_of_another_domain() -> None:
    """R-026, R-027."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        here, there = await domains.context(1), await domains.context(2)
        receiver = there.receiver(pattern="^orders[.]")
        await asyncio.sleep(2)
        sources = [await here.source(topic) for topic in ("orders.a", "orders.b", "trades")]
        await until(lambda: router.snapshot().portals[1].proxy_sources == 2)
        await asyncio.sleep(2)
        for source in sources:
            await source.send(source.topic.encode())
        assert sorted(await payloads(receiver, 2)) == [b"orders.a", b"orders.b"]
        assert router.snapshot().portals[0].received.messages == 2

    world(story)


@pytest.mark.rows("R-050", "R-051", "R-190")
def test_three_domains_get_one_stream_each_from_one_joined_source() -> None:
    """R-050, R-051."""

    async def story(domains: Domains) -> None:
        for _ in range(3):
            domains.group()
        router = await domains.router("tcp", "lbtrm", "tcp")
        source = await (await domains.context(1)).source("orders")
        receivers = [(await domains.context(domain)).receiver("orders") for domain in (2, 2, 3)]
        await until(lambda: all(receiver._sessions for receiver in receivers))
        await source.send_many(MESSAGES)
        for receiver in receivers:
            assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        views = router.snapshot().portals
        assert [view.proxy_receivers for view in views] == [1, 0, 0]
        assert [view.proxy_sources for view in views] == [0, 1, 1]
        assert len(source.stream.subscribers) == 1  # type: ignore[union-attr]  # it is over LBT-TCP
        assert views[0].received.messages == len(MESSAGES)

    world(story)


async def ended(receiver: Receiver, events: list[object]) -> None:
    await until(lambda: any(isinstance(event, EndOfSource) for event in events))
    assert not receiver._sessions


@pytest.mark.rows("R-061")
@pytest.mark.parametrize("kind", list(TRANSPORTS))
def test_a_source_that_ends_ends_behind_the_router(kind: str) -> None:
    """R-061, R-062, R-063."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", kind)
        events: list[object] = []
        here, there = await domains.context(1), await domains.context(2)
        source = await here.source("orders", options={"resolver_send_final_advertisements": 1})
        receiver = there.receiver("orders", on_event=events.append)
        await until(lambda: receiver._sessions)
        await source.close()
        await ended(receiver, events)
        await until(lambda: not router.snapshot().portals[1].proxy_sources)
        assert not router.router.table.sources
        # Another life of the source is found and repeated again.
        again = await here.source("orders")
        await until(lambda: receiver._sessions)
        await again.send(b"again")
        assert await payloads(receiver, 1) == [b"again"]

    world(story)


@pytest.mark.rows("R-061", "R-189")
@pytest.mark.parametrize("kind", list(TRANSPORTS))
def test_a_router_that_ends_takes_leave(kind: str) -> None:
    """R-061: receivers learn the end at once, and go on with the next router."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", kind)
        events: list[object] = []
        source = await (await domains.context(1)).source("orders")
        receiver = (await domains.context(2)).receiver("orders", on_event=events.append)
        await until(lambda: receiver._sessions)
        await source.send(b"first")
        assert await payloads(receiver, 1) == [b"first"]
        await router.close()
        await until(lambda: any(isinstance(event, EndOfSource) for event in events), AT_ONCE)
        await domains.router("tcp", kind)
        await until(lambda: receiver._sessions)
        await source.send(b"second")
        assert await payloads(receiver, 1) == [b"second"]

    world(story)


def test_a_second_router_stands_aside_and_takes_over() -> None:
    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        first = await domains.router("tcp", "tcp")
        portals = first.config.portals
        second = await RouterDaemon.start(
            RouterConfig("other", portals), lambda severity, _who, _code, text: domains.lines.append((severity, text))
        )
        domains.stack.push_async_callback(second.close)
        source = await (await domains.context(1)).source("orders")
        receiver = (await domains.context(2)).receiver("orders")
        await until(lambda: receiver._sessions)
        await asyncio.sleep(10)
        assert [portal.standing for portal in second.router.portals] == [Standing.STANDS_ASIDE] * 2
        assert [severity for severity, text in domains.lines if "stop one of them" in text] == [Severity.WARNING] * 2
        assert all(view.trouble for view in second.snapshot().portals)
        await source.send_many(MESSAGES)
        assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        assert second.snapshot().portals[0].received.messages == 0
        await first.close()
        await until(lambda: second.router.portals[0].forwards and second.router.portals[1].forwards)
        await until(lambda: receiver._sessions and second.snapshot().portals[1].proxy_sources)
        await source.send(b"more")
        assert await payloads(receiver, 1) == [b"more"]

    world(story)


@pytest.mark.rows("R-004", "R-095", "R-097")
def test_contexts_learn_their_domain_and_the_way_to_others() -> None:
    """R-004, R-095, R-097."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        context = await domains.context(1)
        context.receiver("orders")
        resolver = context._resolver
        assert resolver is not None
        (udp,) = resolver._kinds
        await until(lambda: udp._machine.domains.routes)  # type: ignore[attr-defined]
        assert udp._machine.domains.number == 1  # type: ignore[attr-defined]
        assert udp._machine.domains.routes == {2: router.portals[0].address}  # type: ignore[attr-defined]

    world(story)


@pytest.mark.rows("R-040", "R-250", "R-252", "R-253")
@pytest.mark.parametrize("there", ["service", "relay", "group"])
def test_a_domain_with_a_service_is_joined_with_any_other(there: str) -> None:
    """R-040, R-250, R-252: interest comes from the service, which keeps the proxies like other sources."""

    async def story(domains: Domains) -> None:
        await domains.service()
        if there == "group":
            domains.group()
        else:
            await getattr(domains, there)()
        router = await domains.router("tcp", "lbtru")
        contexts = [await domains.context(1), await domains.context(2)]
        sources = [await context.source(f"topic {number}") for number, context in enumerate(contexts)]
        named = contexts[1].receiver("topic 0")
        receivers: list[Receiver | WildcardReceiver] = [named, contexts[0].receiver(pattern="^topic 1$")]
        await until(lambda: named._sessions)
        await until(lambda: router.snapshot().portals[0].proxy_sources)
        await asyncio.sleep(2)
        for source in sources:
            await source.send_many(MESSAGES)
        for receiver in receivers:
            assert await payloads(receiver, len(MESSAGES)) == MESSAGES
        for context in contexts:
            await until(lambda one=context: one.pool.routing.domain)  # type: ignore[misc]  # the loop's context
        assert [context.pool.routing.domain for context in contexts] == [1, 2]
        for receiver in receivers:
            await receiver.close()
        await until(lambda: not router.router.table.sources)
        assert [view.proxy_sources for view in router.snapshot().portals] == [0, 0]

    world(story)


def test_a_message_that_another_host_sent_goes_no_further() -> None:
    """Contexts of other domains believe what a router passes on."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        pool = ConnectionPool(lambda _: None, lambda _: None, HERE)
        domains.stack.push_async_callback(pool.close)
        for host in (HERE, "10.9.9.9"):
            origin, to = Endpoint(1, host, 14_391), Endpoint(2, HERE, 14_399)
            stream = Stream(stream_id=1, sqn=1, ctxinst=host.encode()[:8])
            pool.send(router.portals[0].address, routed(codec.greeting(1), to, origin, stream))
        await until(lambda: router.snapshot().portals[0].unicast_received == 2)
        view = router.snapshot().portals[0]
        assert {reason for reason, count in view.unicast_dropped.items() if count} == {"foreign origin"}
        assert router.snapshot().portals[1].unicast_sent == 1

    world(story)


def test_what_waits_for_one_receiver_is_bounded() -> None:
    """A receiver that reads nothing costs no more memory than its share, and nobody else's messages."""

    async def story(domains: Domains) -> None:
        domains.group()
        domains.group()
        router = await domains.router("tcp", "tcp")
        idle = asyncio.Event()

        async def never_read(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await idle.wait()
            writer.close()

        server = await asyncio.start_server(never_read, HERE, 0, limit=1)
        port = server.sockets[0].getsockname()[1]
        pool = ConnectionPool(lambda _: None, lambda _: None, HERE)
        domains.stack.push_async_callback(pool.close)
        origin, to = Endpoint(1, HERE, 14_391), Endpoint(2, HERE, port)
        large = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, payload=bytes(60_000)))
        for number in range(200):
            stream = Stream(stream_id=1, sqn=number, ctxinst=b"context0")
            pool.send(router.portals[0].address, routed(large, to, origin, stream))
            await asyncio.sleep(0.01)
        await until(lambda: router.snapshot().portals[0].unicast_received == 200)
        assert router.snapshot().portals[1].unicast_dropped["blocking"]
        assert router.portals[1].pool.room(f"{HERE}:1")
        idle.set()
        server.close()

    world(story)
