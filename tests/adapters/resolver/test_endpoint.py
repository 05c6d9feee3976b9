"""The sockets of a resolution machine: bounds, errors and timers."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from typing import cast

import pytest

from stablecast.resolver.endpoint import Endpoint
from stablecast.runtime.datagrams import bind
from stablecast.transports.resolution.udp.effects import RelayEffect, Remark, SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from tests.support.network import until, unused_port

LOCAL = "127.0.0.1"


class Echo:
    """A machine that sends back what it hears, and wants to be called once, at `due`."""

    def __init__(self) -> None:
        self.due: int | None = None
        self.woken: list[int] = []
        self.outbox: list[RelayEffect] = []
        self.called = asyncio.Event()

    def receive(self, event: DatagramArrived, now: int) -> None:
        self.due = now
        copies = SendCopies((event.sender,) * 2, b"copy")
        self.outbox += [SendDatagram(event.sender, event.data), copies, Remark("heard")]

    def handle_timeout(self, now: int) -> None:
        self.due = None
        self.woken.append(now)
        self.called.set()

    def next_timeout(self) -> int | None:
        return self.due

    def take_effects(self) -> list[RelayEffect]:
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        return {"woken": len(self.woken)}


class Failing(socket.socket):
    """A socket that cannot send, for the reason `error`."""

    error: OSError = BlockingIOError()

    def sendto(self, *_: object) -> int:
        raise self.error


Driven = Endpoint[DatagramArrived, RelayEffect]
HEARD: list[object] = []


@pytest.fixture
async def endpoint() -> AsyncIterator[Driven]:
    HEARD.clear()
    endpoint: Driven = Endpoint(Echo(), HEARD.append)
    yield endpoint
    await endpoint.close()


async def test_inputs_effects_and_timeouts_of_the_machine(endpoint: Driven) -> None:
    sock = bind(LOCAL, 0)
    address = sock.getsockname()
    endpoint.open(sock)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, 0) as client:
        await loop.sock_sendto(client, b"hello", address)
        answers = [await loop.sock_recvfrom(client, 100) for _ in range(3)]
    assert answers == [(b"hello", address), (b"copy", address), (b"copy", address)]
    assert [Remark("heard")] == HEARD
    machine = cast("Echo", endpoint.machine)
    await machine.called.wait()
    assert endpoint.statistics() == {
        "woken": 1,
        "send_errors": 0,
        "send_drops": 0,
        "receive_errors": 0,
        "effects_failed": 0,
    }


async def test_every_datagram_of_a_sender_is_fed(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, 0))
    endpoint._on_read([(f"{LOCAL}:9", [memoryview(b"one"), memoryview(b"two")])])
    assert [Remark("heard")] * 2 == HEARD


async def test_a_full_socket_drops_and_counts(endpoint: Driven) -> None:
    """A datagram that the kernel refuses is dropped; a malformed address of a peer ends nothing."""
    failing = Failing(socket.AF_INET, socket.SOCK_DGRAM)
    failing.setblocking(False)
    endpoint.open(failing)
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    failing.error = OSError(errno.ENETUNREACH, "no route")
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    endpoint.feed(DatagramArrived(b"hello", "nowhere"))
    assert endpoint.statistics() == {
        "woken": 0,
        "send_errors": 6,
        "send_drops": 3,
        "receive_errors": 0,
        "effects_failed": 0,
    }


async def test_an_error_report_of_the_network_is_counted(endpoint: Driven) -> None:
    with bind(LOCAL, 0) as gone:
        address = gone.getsockname()
    endpoint.open(bind(LOCAL, 0))
    other = bind(LOCAL, 0)
    other.connect(address)
    member = endpoint.read(other)
    other.send(b"anybody?")
    await until(lambda: endpoint.statistics()["receive_errors"])
    endpoint.shut(member)
    assert endpoint.statistics()["receive_errors"] == 1


async def test_a_socket_is_read_until_it_is_shut(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, 0))
    other = bind(LOCAL, 0)
    member = endpoint.read(other)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, 0) as client:
        await loop.sock_sendto(client, b"hello", other.getsockname())
        assert await loop.sock_recv(client, 100) == b"hello"
    endpoint.shut(member)
    assert other.fileno() == -1


async def test_the_port_is_known_while_it_is_open(endpoint: Driven) -> None:
    assert endpoint.port == 0
    port = unused_port()
    endpoint.open(bind(LOCAL, port))
    assert endpoint.port == port
    await endpoint.close()
    assert endpoint.port == 0


async def test_nothing_happens_once_closed(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, 0))
    await endpoint.close()
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    endpoint._send("127.0.0.1:9", b"hello")
    assert endpoint.machine.take_effects() == []
