"""Contexts and relays on real sockets of the loopback interface."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import attrs
import pytest

from stablecast.client import Context
from stablecast.config.resolution_options import ResolutionSettings, configured
from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MILLISECOND
from stablecast.resolver import Listeners, MulticastSettings, RelayDaemon, Resolver
from stablecast.runtime.address import AddressError
from stablecast.runtime.datagrams import bind_near
from stablecast.runtime.ports import PortError
from stablecast.runtime.unicast import LOCAL_PORTS
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.udp.inputs import AddSource, SourceLost
from stablecast.transports.resolution.udp.settings import SAFE, AdvertiseOptions, NameOptions, QueryOptions, RelayTimes
from stablecast.transports.wire import lbmr
from tests.support.network import until, unused_port

LOCAL = "127.0.0.1"
QUICK = attrs.evolve(
    SAFE,
    relays=RelayTimes(keepalive=20 * MILLISECOND, activity_timeout=100 * MILLISECOND, check=10 * MILLISECOND),
)
RECORD = named(SourceRecord("127.0.0.1:14371", 7, 1, "127.0.0.1:14391", persistent=True, instance=b"context0"))
Found = asyncio.Queue[tuple[str, SourceRecord]]


class Domain:
    """Relays and contexts that are closed with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.names: list[Resolver] = []

    async def relay(self, port: int = 0) -> RelayDaemon:
        daemon = await RelayDaemon.start(LOCAL, port)
        self._stack.push_async_callback(daemon.close)
        return daemon

    async def context(self, *relays: RelayDaemon) -> tuple[Resolver, Found]:
        """A context that keeps itself known quickly, so that tests of failing relays need not wait long."""
        found: Found = asyncio.Queue()
        resolver = await Resolver.start(
            LOCAL,
            [relay.address for relay in relays],
            Listeners(lambda topic, record: found.put_nowait((topic, record))),
            instance=f"context{len(self.names)}".encode(),
            config=QUICK,
        )
        self.names.append(resolver)
        self._stack.push_async_callback(resolver.close)
        return resolver, found


@pytest.fixture
async def domain() -> AsyncIterator[Domain]:
    async with AsyncExitStack() as stack:
        yield Domain(stack)


def add(resolver: Resolver, topic: str = "orders", index: int = 1) -> None:
    resolver.add_source(
        AddSource(topic, RECORD.address, RECORD.session_id, index, RECORD.request_address, persistent=True)
    )


async def test_two_contexts_find_each_other(domain: Domain) -> None:
    relay = await domain.relay()
    left, left_found = await domain.context(relay)
    right, right_found = await domain.context(relay)
    add(left, "orders")
    right.add_receiver("orders")
    add(right, "trades")
    left.add_receiver("trades")
    assert await right_found.get() == ("orders", RECORD)
    assert right.known()["orders"] == (RECORD,)
    assert await left_found.get() == ("trades", named(attrs.evolve(RECORD, instance=b"context1", origin=b"")))
    statistics = relay.statistics()
    assert statistics["clients"] == 2
    assert statistics["malformed"] == statistics["send_errors"] == statistics["send_drops"] == 0


async def test_a_receiver_created_after_the_source(domain: Domain) -> None:
    """A witness tells that the source's first advertisement is past."""
    relay = await domain.relay()
    source, _ = await domain.context(relay)
    witness, seen = await domain.context(relay)
    witness.add_receiver("orders")
    add(source)
    await seen.get()
    receiver, found = await domain.context(relay)
    receiver.add_receiver("orders")
    assert await found.get() == ("orders", RECORD)
    receiver.resolved("orders")
    receiver.unresolved("orders")
    assert await found.get() == ("orders", RECORD)


async def test_contexts_go_on_after_a_restart_of_the_relay(domain: Domain) -> None:
    relay = await domain.relay()
    source, _ = await domain.context(relay)
    receiver, found = await domain.context(relay)
    receiver.add_receiver("orders")
    add(source)
    await found.get()
    await relay.close()
    add(source, index=2)
    receiver.resolved("orders")
    restarted = await domain.relay(relay.port)
    assert (await found.get())[1].index == 2
    assert restarted.statistics()["clients"] == 2


async def test_another_relay_takes_over(domain: Domain) -> None:
    first, second = await domain.relay(), await domain.relay()
    source, _ = await domain.context(first, second)
    receiver, found = await domain.context(first, second)
    receiver.add_receiver("orders")
    add(source)
    await found.get()
    await first.close()
    add(source, index=2)
    assert (await found.get())[1].index == 2


async def test_removed_sources_are_not_found(domain: Domain) -> None:
    relay = await domain.relay()
    both, found = await domain.context(relay)
    add(both)
    both.add_receiver("orders")
    assert (await found.get())[0] == "orders"
    both.remove_receiver("orders")
    both.remove_source(RECORD.session_id, 1)
    both.add_receiver("orders")
    add(both, index=2)
    assert (await found.get())[1].index == 2
    assert found.empty()


async def test_a_closed_context_does_nothing(domain: Domain) -> None:
    relay = await domain.relay()
    resolver, found = await domain.context(relay)
    assert resolver.port > 0
    await resolver.close()
    await resolver.close()
    assert resolver.port == 0
    add(resolver)
    resolver.add_receiver("orders")
    assert found.empty()
    assert resolver.statistics()["sent"] == 0


@pytest.mark.rows("T-031", "T-201", "T-204")
async def test_patterns_names_and_ends(domain: Domain) -> None:
    """A context can want more than topics, and tells some.

    Where the machine stops for a while a relay may be told to be inactive, and active again, at any time. The name is
    lost by silence, so it may not be lost soon until it was removed.
    """
    relay = await domain.relay()
    told: asyncio.Queue[tuple[str, object]] = asyncio.Queue()
    remarks: list[str] = []

    def tell(kind: str) -> Callable[..., None]:
        return lambda *what: told.put_nowait((kind, what[0]))

    listeners = Listeners(
        tell("found"),
        tell("gone"),
        tell("no source"),
        tell("name"),
        tell("name lost"),
        lambda text, _: remarks.append(text),
    )
    config = attrs.evolve(QUICK, query=QueryOptions(report_after=2), advertise=AdvertiseOptions(at_end=True))
    source, _ = await domain.context(relay)
    source._machine.advertiser.options = config.advertise
    receiver = await Resolver.start(LOCAL, [relay.address], listeners, config=config)
    receiver.add_pattern("^ord")
    receiver.add_receiver("nobody's")
    add(source)
    source.add_name("store-A", "127.0.0.1:14567")
    receiver.ask_name("store-A")
    assert {await told.get() for _ in range(3)} == {
        ("found", "orders"),
        ("no source", "nobody's"),
        ("name", "store-A"),
    }
    source._machine.names.own.clear()
    receiver._machine.names.options = NameOptions(activity_timeout=200 * MILLISECOND)
    assert await told.get() == ("name lost", "store-A")
    receiver.forget_name("store-A")
    source.remove_source(RECORD.session_id, 1)
    assert await told.get() == ("gone", "orders")
    receiver.feed(SourceLost("nobody's", 1, 1))
    receiver.wake(lbmr.ResolutionRequest.ADVERTISEMENTS)
    assert receiver.why("nobody's").endswith("queries, no source answered")
    receiver.remove_pattern("^ord")
    await relay.close()
    await until(lambda: f"unicast resolver {relay.address} went inactive" in remarks)
    await receiver.close()


GROUP = MulticastSettings("239.255.77.77", interface="127.0.0.1", ttl=0)


@pytest.fixture
def group() -> MulticastSettings:
    """A group of this host, at a port that is free."""
    return attrs.evolve(GROUP, port=unused_port())


@pytest.mark.rows("T-007", "T-022")
async def test_contexts_meet_in_a_group(group: MulticastSettings) -> None:
    """Default, joined lazily."""
    found: Found = asyncio.Queue()
    left = await Resolver.meet(group, Listeners(lambda *_: None), instance=b"context0")
    right = await Resolver.meet(group, Listeners(lambda *what: found.put_nowait(what)), instance=b"context1")
    before = right._member
    right.add_receiver("orders")
    assert before is None
    add(left)
    assert await found.get() == ("orders", RECORD)
    assert right.statistics()["malformed"] == 0
    member = right._member
    assert member is not None
    right.remove_receiver("orders")
    assert (right._member, member.port) == (None, 0)
    await left.close()
    await right.close()


async def test_a_context_may_only_speak_to_a_group(group: MulticastSettings) -> None:
    """resolver_multicast_incoming_address 0.0.0.0."""
    deaf = attrs.evolve(group, group="0.0.0.0", outgoing=f"{group.group}:{group.port}")
    found: Found = asyncio.Queue()
    left = await Resolver.meet(deaf, Listeners(lambda *_: None), instance=b"context0")
    right = await Resolver.meet(group, Listeners(lambda *what: found.put_nowait(what)), instance=b"context1")
    right.add_receiver("orders")
    add(left)
    assert await found.get() == ("orders", RECORD)
    assert left.statistics()["received"] == 0
    await left.close()
    await right.close()


async def test_misuse_reaches_the_caller(domain: Domain) -> None:
    resolver, _ = await domain.context(await domain.relay())
    add(resolver)
    with pytest.raises(MisuseError, match="already"):
        add(resolver)


async def test_wrong_addresses_are_refused() -> None:
    async def start(interface: str, *relays: str) -> None:
        await Resolver.start(interface, relays, Listeners(lambda _topic, _record: None))

    with pytest.raises(PortError, match=r"192\.0\.2\.1 is not an address of this machine"):
        await start("192.0.2.1", "127.0.0.1:15380")
    with pytest.raises(AddressError, match="'lbmrd' is not an address"):
        await start(LOCAL, "lbmrd")
    with pytest.raises(AddressError, match="'here' is not an IPv4 address"):
        await start("here", "127.0.0.1:15380")
    with pytest.raises(MisuseError, match="relays, not 0"):
        await start(LOCAL)


def test_local_ports_are_the_known_ones_while_they_last() -> None:
    """On a loopback address that nothing else uses."""
    known = range(LOCAL_PORTS[0], LOCAL_PORTS[1] + 1)
    sockets = [bind_near("127.0.77.1", *LOCAL_PORTS) for _ in range(len(known) + 2)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    assert ports[: len(known)] == list(known)
    assert not set(ports[len(known) :]) & set(known)


@pytest.mark.rows("T-217")
async def test_a_context_that_resolves_nothing_keeps_itself_known() -> None:
    """Resolver_unicast_force_alive, through the client: the relay hears a context without sources and receivers."""
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.bind(("127.0.0.1", 0))
    heard.setblocking(False)
    relay = f"127.0.0.1:{heard.getsockname()[1]}"
    settings = configured(ResolutionSettings(), {"resolver_unicast_force_alive": 1})
    async with Context(resolver=[relay], resolution=settings, interface="127.0.0.1"):
        assert await asyncio.get_running_loop().sock_recv(heard, 1000)
    heard.close()
