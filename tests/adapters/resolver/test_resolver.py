"""Contexts and relays on real sockets of the loopback interface."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.units import MILLISECOND
from stablecast.net.address import AddressError
from stablecast.resolver import RelayDaemon, Resolver, ResolverError
from stablecast.resolver.endpoint import ANY_PORT, bind
from stablecast.resolver.resolver import LOCAL_PORTS
from stablecast.transports.resolution.records import SourceRecord

LOCAL = "127.0.0.1"
INSTANCE = b"instance"
RECORD = SourceRecord("127.0.0.1:14371", 7, 1, "127.0.0.1:14391", persistent=True, instance=INSTANCE)
Found = asyncio.Queue[tuple[str, SourceRecord]]


class Domain:
    """Relays and contexts that are closed with the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

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
            lambda topic, record: found.put_nowait((topic, record)),
            instance=INSTANCE,
            keepalive_interval=20 * MILLISECOND,
            activity_timeout=100 * MILLISECOND,
        )
        self._stack.push_async_callback(resolver.close)
        return resolver, found


@pytest.fixture
async def domain() -> AsyncIterator[Domain]:
    async with AsyncExitStack() as stack:
        yield Domain(stack)


def add(resolver: Resolver, topic: str = "orders", index: int = 1) -> None:
    resolver.add_source(topic, RECORD.address, RECORD.session_id, index, RECORD.request_address, persistent=True)


async def test_two_contexts_find_each_other(domain: Domain) -> None:
    relay = await domain.relay()
    left, left_found = await domain.context(relay)
    right, right_found = await domain.context(relay)
    add(left, "orders")
    right.add_receiver("orders")
    add(right, "trades")
    left.add_receiver("trades")
    assert await right_found.get() == ("orders", RECORD)
    assert await left_found.get() == ("trades", RECORD)
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


async def test_what_is_removed_is_found_no_more(domain: Domain) -> None:
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


async def test_misuse_reaches_the_caller(domain: Domain) -> None:
    resolver, _ = await domain.context(await domain.relay())
    add(resolver)
    with pytest.raises(MisuseError, match="already"):
        add(resolver)


async def test_wrong_addresses_are_told() -> None:
    async def start(interface: str, *relays: str) -> None:
        await Resolver.start(interface, relays, lambda _topic, _record: None)

    with pytest.raises(ResolverError, match=r"192\.0\.2\.1 is not an address of this machine"):
        await start("192.0.2.1", "127.0.0.1:15380")
    with pytest.raises(AddressError, match="'lbmrd' is not an address"):
        await start(LOCAL, "lbmrd")
    with pytest.raises(AddressError, match="'here' is not an IPv4 address"):
        await start("here", "127.0.0.1:15380")
    with pytest.raises(MisuseError, match="relays, not 0"):
        await start(LOCAL)


def test_local_ports_are_the_known_ones_while_they_last() -> None:
    """On a loopback address that nothing else uses."""
    sockets = [bind("127.0.77.1", (*LOCAL_PORTS, ANY_PORT)) for _ in range(len(LOCAL_PORTS) + 2)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    assert ports[: len(LOCAL_PORTS)] == list(LOCAL_PORTS)
    assert not set(ports[len(LOCAL_PORTS) :]) & set(LOCAL_PORTS)
