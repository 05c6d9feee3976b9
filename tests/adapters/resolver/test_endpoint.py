"""The socket's side: bounds, errors, timers, and binding."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from typing import cast

import pytest

from stablecast.resolver.endpoint import MAX_SEND_QUEUE, Endpoint, bind
from stablecast.resolver.errors import ResolverError
from stablecast.transports.resolution.effects import Discovered, SendDatagram
from stablecast.transports.resolution.inputs import DatagramArrived

LOCAL = "127.0.0.1"


class Echo:
    """A machine that sends back what it hears, and wants to be called once, at `due`."""

    def __init__(self) -> None:
        self.due: int | None = None
        self.woken: list[int] = []
        self.outbox: list[SendDatagram] = []
        self.called = asyncio.Event()

    def receive(self, event: DatagramArrived, now: int) -> None:
        self.due = now
        self.outbox.append(SendDatagram(event.sender, event.data))

    def handle_timeout(self, now: int) -> None:
        self.due = None
        self.woken.append(now)
        self.called.set()

    def next_timeout(self) -> int | None:
        return self.due

    def take_effects(self) -> list[SendDatagram]:
        effects, self.outbox = self.outbox, []
        return effects

    def counters(self) -> dict[str, int]:
        return {"woken": len(self.woken)}


class FullTransport(asyncio.DatagramTransport):
    """A socket that the network does not empty."""

    def get_write_buffer_size(self) -> int:
        return MAX_SEND_QUEUE + 1


def nothing(found: Discovered) -> None:
    raise AssertionError(found)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint[DatagramArrived]]:
    endpoint: Endpoint[DatagramArrived] = Endpoint(Echo(), nothing)
    yield endpoint
    await endpoint.close()


async def test_feed_perform_wake(endpoint: Endpoint[DatagramArrived]) -> None:
    sock = bind(LOCAL, (0,))
    address = sock.getsockname()
    await endpoint.open(sock)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, (0,)) as client:
        await loop.sock_sendto(client, b"hello", address)
        assert await loop.sock_recvfrom(client, 100) == (b"hello", address)
    machine = cast("Echo", endpoint.machine)
    await machine.called.wait()
    assert endpoint.statistics() == {"woken": 1, "send_errors": 0, "send_drops": 0}


async def test_a_full_socket_drops_and_counts() -> None:
    endpoint: Endpoint[DatagramArrived] = Endpoint(Echo(), nothing)
    endpoint.connection_made(FullTransport())
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    endpoint.error_received(OSError(errno.ENETUNREACH, "no route"))
    assert endpoint.statistics() == {"woken": 0, "send_errors": 1, "send_drops": 1}


async def test_the_timer_moves_only_with_the_machine(endpoint: Endpoint[DatagramArrived]) -> None:
    await endpoint.open(bind(LOCAL, (0,)))
    machine = cast("Echo", endpoint.machine)
    far = asyncio.get_running_loop().time() + 10_000
    timers = []
    for due in (far, far, far + 1):
        machine.due = int(due * 1e9)
        endpoint._rearm()
        timers.append(endpoint._timer)
    assert timers[0] is timers[1]
    assert timers[1] is not timers[2]
    assert timers[1] is not None
    assert timers[1].cancelled()


async def test_nothing_happens_once_closed(endpoint: Endpoint[DatagramArrived]) -> None:
    await endpoint.open(bind(LOCAL, (0,)))
    await endpoint.close()
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    endpoint._send("127.0.0.1:9", b"hello")
    assert endpoint.machine.take_effects() == []


class Refusing(socket.socket):
    """A socket that cannot be bound, for the reason `number`."""

    number = 0

    def bind(self, address: object) -> None:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (errno.EACCES, ResolverError, "port 80 may not be used by this user"),
        (errno.EADDRNOTAVAIL, ResolverError, "not an address of this machine"),
        (errno.EADDRINUSE, OSError, "refused"),
        (errno.ENOBUFS, OSError, "refused"),
    ],
)
@pytest.mark.parametrize("ports", [(80,), (81, 80)])
def test_why_a_port_cannot_be_bound(
    monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception], text: str, ports: tuple[int, ...]
) -> None:
    monkeypatch.setattr(Refusing, "number", number)
    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(error, match=text):
        bind(LOCAL, ports)
