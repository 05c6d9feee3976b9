"""One UDP socket on the running event loop: it reads many datagrams at a time and sends at once or not at all.

There is no send queue here. A datagram that the kernel does not accept is dropped and counted, as the network would
drop it. The protocols above repair the loss.

Buffers for datagrams that are read many by one call, see `machine.network.reader_of_datagrams`.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from stablecast.runtime import machine, ports
from stablecast.runtime.address import join, parse
from stablecast.runtime.ports import PortError

READ_DATAGRAMS = 64
"""Datagrams of one read; then timers and other sockets have their turn."""

MAX_DATAGRAM = 65_535
"""Bytes that a buffer has for one datagram."""

Sent = tuple[str, list[memoryview]]
"""Sender (`ip:port`) and its datagrams in order. The bytes are valid until the next read of the same thread."""

_STRIDE = MAX_DATAGRAM + 1 + 8 * 1024 + 128
"""Bytes from buffer to buffer: with a power of two, all buffers would share few lines of the processor's cache."""

_ADDRESS = 16
"""Bytes of a socket address as the kernel writes it: family (2), port (2), IPv4 address (4), padding (8)."""

ReaderFactory = Callable[[machine.DatagramMemory], machine.DatagramReader]


class DatagramBuffers:
    """Buffers for the datagrams of one read. All sockets of a thread share them, so that the cache holds them."""

    count, stride, size = READ_DATAGRAMS, _STRIDE, MAX_DATAGRAM

    def __init__(self, reader: ReaderFactory | None = None) -> None:
        """Allocate the buffers; `reader` is called instead of `machine.network.reader_of_datagrams`."""
        self.octets, self.names = bytearray(READ_DATAGRAMS * _STRIDE), bytearray(READ_DATAGRAMS * _ADDRESS)
        view = memoryview(self.octets)
        self._buffers = [view[start : start + MAX_DATAGRAM] for start in range(0, len(view), _STRIDE)]
        self._receive = (reader or machine.network.reader_of_datagrams)(self)

    def read(self, sock: machine.Socket) -> list[Sent]:
        """Read the datagrams that wait at a non-blocking socket, at most `READ_DATAGRAMS`.

        Raises:
            BlockingIOError: No datagram waits.
            OSError: The network reported an error about an earlier datagram that this socket sent.
        """
        sizes = self._receive(sock)
        count = len(sizes)
        found = [buffer[:size] for buffer, size in zip(self._buffers, sizes, strict=False)]
        names = self.names[: count * _ADDRESS]
        first = names[:_ADDRESS]
        if names == first * count:  # The usual case, one sender, makes one address.
            return [(_sender(first), found)]
        senders = [_sender(names[start : start + _ADDRESS]) for start in range(0, len(names), _ADDRESS)]
        return _by_sender(list(zip(senders, found, strict=True)))


def thread_buffers() -> DatagramBuffers:
    """Return the buffers of the calling thread; the first call allocates them."""
    return machine.threads.local(DatagramBuffers)


def _sender(name: bytes | bytearray) -> str:
    return _address(bytes(name[2:8]))


@lru_cache(maxsize=4_096)
def _address(octets: bytes) -> str:
    return join(socket.inet_ntoa(octets[2:]), int.from_bytes(octets[:2]))


def _by_sender(found: list[tuple[str, memoryview]]) -> list[Sent]:
    return [(sender, [octets for _, octets in those]) for sender, those in groupby(found, itemgetter(0))]


RECEIVE_BUFFER = 8 * 1024 * 1024
"""Bytes that the kernel may hold for reading (transport_lbtrm_receiver_socket_buffer); it may grant less."""

SEND_BUFFER = 1024 * 1024
"""Bytes that the kernel may hold for sending (transport_lbtrm_source_socket_buffer)."""

_parsed = lru_cache(maxsize=4_096)(parse)


def open_socket() -> machine.Socket:
    """Return a non-blocking datagram socket. Raises PortError if this process may not open one more."""
    try:
        sock = machine.network.datagram()
    except OSError as error:
        raise ports.refused("", 0, error) from None
    sock.setblocking(False)
    return sock


def bind(
    interface: str, low: int, high: int = 0, receive_buffer: int = RECEIVE_BUFFER, send_buffer: int = SEND_BUFFER
) -> machine.Socket:
    """Return a socket at the first free port from `low` to `high`, or at `low` alone; 0 lets the system choose.

    Buffers are in bytes; 0 leaves the system's size. Raises PortError.
    """
    sock = open_socket()
    for option, size in ((socket.SO_RCVBUF, receive_buffer), (socket.SO_SNDBUF, send_buffer)):
        if size:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    for port in range(low, max(low, high) + 1):
        try:
            sock.bind((interface, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or high <= low:
                sock.close()
                raise ports.refused(interface, port, error, "port or interface") from None
        else:
            return sock
    sock.close()
    raise PortError(f"UDP ports {low} to {high} on {interface} are in use: choose others")


def bind_near(interface: str, low: int, high: int, receive_buffer: int = RECEIVE_BUFFER) -> machine.Socket:
    """Return a socket at the first free port of a range, else at one of the system's choice. Raises PortError."""
    try:
        return bind(interface, low, high, receive_buffer)
    except PortError:
        return bind(interface, 0, receive_buffer=receive_buffer)


class DatagramSocket:
    """Own a bound socket, read it, and send from it.

    `on_read` gets the datagrams of one read in order, grouped by runs of one sender; it must not raise. Datagrams to
    `peer`, if one is named, skip the route lookup of each send.
    """

    def __init__(self, sock: machine.Socket, on_read: Callable[[list[Sent]], None], peer: str = "") -> None:
        """Start to read the socket on the running loop."""
        self.dropped = self.errors = self.read_errors = 0
        self._sock = sock
        self._on_read = on_read
        self._buffers = thread_buffers()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._holding: set[object] = set()
        self._peer = ""
        if peer:
            with suppress(OSError):  # Each send reports the same error and counts it.
                sock.connect(parse(peer))
                self._peer = peer
        self._loop.add_reader(sock, self._read)

    def move(self, sock: machine.Socket) -> None:
        """Read and send with another socket, because the host has another address."""
        if self._closed:
            sock.close()
            return
        if not self._holding:
            self._loop.remove_reader(self._sock)
            self._loop.add_reader(sock, self._read)
        left, self._sock = self._sock, sock
        left.close()
        if self._peer:
            with suppress(OSError):
                sock.connect(parse(self._peer))

    @property
    def port(self) -> int:
        """Return the local port of the socket; 0 once closed."""
        port: int = 0 if self._closed else self._sock.getsockname()[1]
        return port

    def send(self, to: str, datagrams: Iterable[bytes]) -> None:
        """Send datagrams to one address, `ip:port`; count the ones that the kernel refuses."""
        if self._closed:
            return
        send: Callable[[bytes, Any], int] = self._sock.sendto
        target: tuple[str, int] | int = _parsed(to)
        if to == self._peer:
            send, target = self._sock.send, 0  # No flags.
        for octets in datagrams:
            try:
                send(octets, target)
            except BlockingIOError:
                self.dropped += 1
            except OSError:  # Unreachable, too large, or the error of an earlier datagram: the protocol asks again.
                self.errors += 1

    def pause(self, who: object = None) -> None:
        """Stop reading until `who` and all other holders resume; the kernel keeps some datagrams and drops the rest."""
        if not self._closed and not self._holding:
            self._loop.remove_reader(self._sock)
        self._holding.add(who)

    def resume(self, who: object = None) -> None:
        """Release the hold of `who`; reading goes on after the last hold."""
        if who in self._holding:
            self._holding.remove(who)
            if not self._closed and not self._holding:
                self._loop.add_reader(self._sock, self._read)

    def close(self) -> None:
        if not self._closed:
            self.pause()
            self._closed = True
            self._sock.close()

    def _read(self) -> None:
        try:
            found = self._buffers.read(self._sock)
        except BlockingIOError:
            return
        except OSError:  # The network reports an error of a datagram that we sent; the socket goes on.
            self.read_errors += 1
            return
        self._on_read(found)
