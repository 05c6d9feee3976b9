"""One UDP socket on the running event loop: it reads many datagrams at a time, and sends at once or not at all.

There is no queue of ours: what the kernel does not take is dropped and counted, as the network would drop it. The
protocols above repair that.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache

from stablecast.net.address import join, parse
from stablecast.net.ports import PortError

READ_DATAGRAMS = 64
"""Datagrams of one read; then others have their turn."""

READ_BYTES = 96 * 1024
"""The same in bytes: what is read and put together goes through memory that is at hand."""

MAX_DATAGRAM = 65_535
"""Bytes that a read has room for."""

RECEIVE_BUFFER = 8 * 1024 * 1024
"""Bytes that the kernel may hold for us (transport_lbtrm_receiver_socket_buffer); it may grant less."""

SEND_BUFFER = 1024 * 1024
"""Bytes that the kernel may hold to be sent (transport_lbtrm_source_socket_buffer)."""

Datagram = tuple[bytes, str]
"""Bytes, and who sent them: `ip:port`."""

_BUFFER = memoryview(bytearray(MAX_DATAGRAM))
"""Where each datagram is read, to be copied at its own size: memory that is as large as the largest costs more."""

_parsed = lru_cache(maxsize=4_096)(parse)
_joined = lru_cache(maxsize=4_096)(join)


def bind(interface: str, low: int, high: int = 0) -> socket.socket:
    """A socket at the first free port of a range, of this one port, or (0) at one of the system's choice.

    Raises PortError.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    for port in range(low, max(low, high) + 1):
        try:
            sock.bind((interface, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                sock.close()
                raise PortError(f"cannot use UDP port {port} on {interface}: {error.strerror}") from None
        else:
            return sock
    sock.close()
    raise PortError(f"UDP ports {low} to {max(low, high)} on {interface} are in use: choose others")


class DatagramSocket:
    """A bound socket, which is ours from now on. `on_read` gets the datagrams of one read and must not raise."""

    def __init__(self, sock: socket.socket, on_read: Callable[[list[Datagram]], None]) -> None:
        """Read from now on."""
        self.dropped = 0
        self.errors = 0
        self._sock = sock
        self._on_read = on_read
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._holding: set[object] = set()
        self._loop.add_reader(sock, self._read)

    @property
    def port(self) -> int:
        """Its port."""
        port: int = self._sock.getsockname()[1]
        return port

    def send(self, to: str, datagrams: Iterable[bytes]) -> None:
        """Send these to one address."""
        if self._closed:
            return
        target = _parsed(to)
        send = self._sock.sendto
        for octets in datagrams:
            try:
                send(octets, target)
            except BlockingIOError:
                self.dropped += 1
            except OSError:  # Unreachable, too large, or what an earlier one met: the protocol asks again.
                self.errors += 1

    def pause(self, who: object = None) -> None:
        """Read no more while anybody wants none: the kernel keeps some, and drops the rest."""
        if not self._closed and not self._holding:
            self._loop.remove_reader(self._sock)
        self._holding.add(who)

    def resume(self, who: object = None) -> None:
        """Read on, as far as this one is concerned."""
        if who in self._holding:
            self._holding.remove(who)
            if not self._closed and not self._holding:
                self._loop.add_reader(self._sock, self._read)

    def close(self) -> None:
        """Neither read nor send any more."""
        if not self._closed:
            self.pause()
            self._closed = True
            self._sock.close()

    def _read(self) -> None:
        found: list[Datagram] = []
        total = 0
        receive, buffer = self._sock.recvfrom_into, _BUFFER
        for _ in range(READ_DATAGRAMS):
            try:
                size, sender = receive(buffer)
            except BlockingIOError:
                break
            except OSError:  # The network's answer to something that we sent.
                self.errors += 1
                continue
            found.append((bytes(buffer[:size]), _joined(*sender)))
            total += size
            if total >= READ_BYTES:
                break
        if found:
            self._on_read(found)
