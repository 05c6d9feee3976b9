"""One UDP socket on the running event loop: it reads many datagrams at a time and sends at once or not at all.

There is no send queue here. A datagram that the kernel does not accept is dropped and counted, as the network would
drop it. The protocols above repair the loss.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from stablecast.runtime import machine, ports
from stablecast.runtime.address import parse
from stablecast.runtime.datagram_buffers import Sent, thread_buffers
from stablecast.runtime.ports import PortError

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
        """Stop reading and sending, and close the socket."""
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
