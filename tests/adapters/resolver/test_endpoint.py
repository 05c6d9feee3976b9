"""The socket's side: bounds, errors, timers, and binding."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from typing import cast

import pytest

from stablecast.resolver.endpoint import MAX_BATCH, Endpoint, bind
from stablecast.runtime.resolver_error import ResolverError
from stablecast.transports.resolution.udp.effects import RelayEffect, Remark, SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived
from tests.support.network import unused_port

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
    """A socket that cannot send or receive, for the reason `error`."""

    error: OSError = BlockingIOError()

    def sendto(self, *_: object) -> int:
        raise self.error

    def recvfrom(self, *_: object) -> tuple[bytes, object]:
        raise self.error


Driven = Endpoint[DatagramArrived, RelayEffect]
HEARD: list[object] = []


@pytest.fixture
async def endpoint() -> AsyncIterator[Driven]:
    HEARD.clear()
    endpoint: Driven = Endpoint(Echo(), HEARD.append)
    yield endpoint
    await endpoint.close()


async def test_feed_perform_wake(endpoint: Driven) -> None:
    sock = bind(LOCAL, (0,))
    address = sock.getsockname()
    endpoint.open(sock)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, (0,)) as client:
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


async def test_a_full_socket_drops_and_counts(endpoint: Driven) -> None:
    """What the kernel does not take is lost as if the network had lost it; errors of earlier datagrams end nothing."""
    failing = Failing(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.open(failing)
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    failing.error = OSError(errno.ENETUNREACH, "no route")
    endpoint.feed(DatagramArrived(b"hello", "127.0.0.1:9"))
    endpoint._on_readable(failing)
    assert endpoint.statistics() == {
        "woken": 0,
        "send_errors": 3,
        "send_drops": 3,
        "receive_errors": MAX_BATCH,
        "effects_failed": 0,
    }


async def test_a_socket_is_read_until_it_is_shut(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, (0,)))
    other = bind(LOCAL, (0,))
    endpoint.read(other)
    loop = asyncio.get_running_loop()
    with bind(LOCAL, (0,)) as client:
        await loop.sock_sendto(client, b"hello", other.getsockname())
        assert await loop.sock_recv(client, 100) == b"hello"
    endpoint.shut(other)
    assert other.fileno() == -1


async def test_the_first_port_that_is_free(endpoint: Driven) -> None:
    assert endpoint.port == 0
    port = unused_port()
    endpoint.open(bind(LOCAL, (port, 0)))
    assert endpoint.port == port
    with bind(LOCAL, (port, 0)) as other:
        assert other.getsockname()[1] != port


def test_buffers_are_asked_for() -> None:
    small = bind(LOCAL, (0,), 1 << 14, 1 << 14)
    usual = bind(LOCAL, (0,), 0, 0)
    sizes = [sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for sock in (small, usual)]
    small.close()
    usual.close()
    assert sizes[0] < sizes[1]


async def test_the_timer_moves_only_where_it_would_ring_too_late(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, (0,)))
    machine = cast("Echo", endpoint.machine)
    far = asyncio.get_running_loop().time() + 10_000
    timers = []
    for due in (far, far, far + 1, far - 1):
        machine.due = int(due * 1e9)
        endpoint._rearm()
        timers.append(endpoint._alarm._timer)
    assert timers[0] is timers[1] is timers[2] is not timers[3]
    assert timers[2] is not None
    assert timers[2].cancelled()


async def test_nothing_happens_once_closed(endpoint: Driven) -> None:
    endpoint.open(bind(LOCAL, (0,)))
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
