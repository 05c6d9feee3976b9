"""One UDP socket and one resolution machine: feed, drain, perform, re-arm."""

import asyncio
import errno
import socket
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Generic, Protocol, TypeVar, assert_never, cast

from stablecast.core.units import MILLISECOND
from stablecast.net.address import join, parse
from stablecast.resolver.errors import ResolverError
from stablecast.transports.resolution.effects import Discovered, SendDatagram
from stablecast.transports.resolution.inputs import DatagramArrived

RECEIVE_BUFFER = 1 << 20
"""Bytes that the kernel may hold for us: a burst of advertisements is not lost while the process is busy."""

MAX_SEND_QUEUE = 1 << 20
"""Bytes waiting for the socket; beyond that datagrams are dropped and counted, as the network would."""

ANY_PORT = 0

InputT_contra = TypeVar("InputT_contra", contravariant=True)
InputT = TypeVar("InputT")

_parsed = lru_cache(maxsize=4_096)(parse)


class Machine(Protocol[InputT_contra]):
    """The machine contract (`stablecast.transports.resolution`)."""

    def receive(self, event: InputT_contra | DatagramArrived, now: int) -> None:
        """Feed one input."""

    def handle_timeout(self, now: int) -> None:
        """Do what is due."""

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due."""

    def take_effects(self) -> Sequence[SendDatagram | Discovered]:
        """What to do, in order."""

    def counters(self) -> dict[str, int]:
        """What happened so far."""


def bind(interface: str, ports: Sequence[int]) -> socket.socket:
    """A datagram socket on `interface` and the first of `ports` that is free.

    Raises:
        ResolverError: If this machine has no such interface, or its ports may not be used.
        OSError: With EADDRINUSE, if all of the ports are in use.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        _bind_first(sock, interface, ports)
    except OSError as error:
        sock.close()
        match error.errno:
            case errno.EADDRNOTAVAIL:
                remedy = f"{interface} is not an address of this machine: choose one that `ip address` shows"
            case errno.EACCES:
                remedy = f"port {ports[-1]} may not be used by this user: choose one above 1023"
            case _:
                raise
        raise ResolverError(remedy) from error
    return sock


def _bind_first(sock: socket.socket, interface: str, ports: Sequence[int]) -> None:
    for port in ports[:-1]:
        try:
            sock.bind((interface, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return
    sock.bind((interface, ports[-1]))


class DatagramWriter(Protocol):
    """What both event loops' datagram transports can do; the standard library's type leaves the buffer out."""

    def sendto(self, data: bytes, addr: tuple[str, int]) -> None:
        """Sends, or queues, one datagram."""

    def get_write_buffer_size(self) -> int:
        """Bytes queued."""

    def get_extra_info(self, name: str) -> tuple[str, int]:
        """The local address, under the name `sockname`."""

    def close(self) -> None:
        """Closes the socket."""


class Endpoint(asyncio.DatagramProtocol, Generic[InputT]):
    """Drives one machine with one socket on the running event loop."""

    def __init__(self, machine: Machine[InputT], on_found: Callable[[Discovered], None]) -> None:
        """Drives `machine`; what it discovers goes to `on_found`, which must not raise."""
        self.machine = machine
        self.send_errors = 0
        self.send_drops = 0
        self._on_found = on_found
        self._loop = asyncio.get_running_loop()
        self._transport: DatagramWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: int | None = None
        self._closed = self._loop.create_future()

    async def open(self, sock: socket.socket) -> None:
        """Starts on a bound socket, which belongs to the endpoint from now on."""
        await self._loop.create_datagram_endpoint(lambda: self, sock=sock)

    def feed(self, event: InputT | DatagramArrived) -> None:
        """Feeds one input and does what follows; does nothing once closed."""
        if self._transport is not None:
            self.machine.receive(event, time.monotonic_ns())
            self._perform()

    async def close(self) -> None:
        """Closes the socket; nothing is sent or reported afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
            self._transport = None
            await self._closed

    @property
    def port(self) -> int:
        """The local port; 0 once closed."""
        return 0 if self._transport is None else self._transport.get_extra_info("sockname")[1]

    def statistics(self) -> dict[str, int]:
        """The machine's counters and the socket's."""
        return {**self.machine.counters(), "send_errors": self.send_errors, "send_drops": self.send_drops}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ready."""
        self._transport = cast("DatagramWriter", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._closed.set_result(None)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A peer, or anybody, sent something."""
        self.feed(DatagramArrived(data, join(*addr)))

    def error_received(self, exc: Exception) -> None:
        """The network refused a datagram; the machines repeat what matters."""
        self.send_errors += 1

    def _perform(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case SendDatagram(to, data):
                    self._send(to, data)
                case Discovered():
                    self._on_found(effect)
                case _:
                    assert_never(effect)
        self._rearm()

    def _send(self, to: str, data: bytes) -> None:
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size() > MAX_SEND_QUEUE:
            self.send_drops += 1
            return
        self._transport.sendto(data, _parsed(to))

    def _rearm(self) -> None:
        due = self.machine.next_timeout()
        if self._transport is None or (due == self._due and self._timer is not None):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due is not None:
            wait = max(0, due - time.monotonic_ns())
            # Whole milliseconds, rounded up: uvloop's timers round down and would wake us too early, again and again.
            self._timer = self._loop.call_later(-(-wait // MILLISECOND) / 1_000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.machine.handle_timeout(time.monotonic_ns())
        self._perform()
