"""One UDP socket on the running event loop: it reads many datagrams at a time, and sends at once or not at all.

There is no queue of ours: what the kernel does not take is dropped and counted, as the network would drop it. The
protocols above repair that.
"""

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from stablecast.runtime.address import join, parse
from stablecast.runtime.ports import PortError

READ_DATAGRAMS = 64
"""Datagrams of one read; then others have their turn."""

MAX_DATAGRAM = 65_535
"""Bytes that each datagram of a read has room for."""

RECEIVE_BUFFER = 8 * 1024 * 1024
"""Bytes that the kernel may hold for us (transport_lbtrm_receiver_socket_buffer); it may grant less."""

SEND_BUFFER = 1024 * 1024
"""Bytes that the kernel may hold to be sent (transport_lbtrm_source_socket_buffer)."""

Sent = tuple[str, list[memoryview]]
"""Who sent (`ip:port`), and what, in order. The bytes are there until the next read of the thread."""

_parsed = lru_cache(maxsize=4_096)(parse)
joined = lru_cache(maxsize=4_096)(join)


class _Rooms(threading.local):
    """The room of each thread; several stores of a process have a thread each."""

    def __init__(self) -> None:
        from stablecast.runtime.datagram_buffers import Room  # noqa: PLC0415 - most contexts have no UDP session

        self.room = Room()


_ROOMS = _Rooms()


def open_socket() -> socket.socket:
    """A datagram socket that does not block. Raises PortError if this process may not have one more."""
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        text = f"cannot open a UDP socket: {error.strerror}; allow this process more open files (ulimit -n)"
        raise PortError(text) from None
    sock.setblocking(False)
    return sock


def bind(interface: str, low: int, high: int = 0) -> socket.socket:
    """A socket at the first free port of a range, of this one port, or (0) at one of the system's choice.

    Raises PortError.
    """
    sock = open_socket()
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
    """A bound socket, which is ours from now on.

    `on_read` gets the datagrams of one read, in order, those of one sender that came together at once; it must not
    raise. What goes to `peer`, where there is one, is spared looking for the way each time.
    """

    def __init__(self, sock: socket.socket, on_read: Callable[[list[Sent]], None], peer: str = "") -> None:
        """Read from now on."""
        self.dropped = 0
        self.errors = 0
        self._sock = sock
        self._on_read = on_read
        self._room = _ROOMS.room
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._holding: set[object] = set()
        self._peer = ""
        if peer:
            with suppress(OSError):  # Whoever sends is told, each time.
                sock.connect(parse(peer))
                self._peer = peer
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
        send: Callable[[bytes, Any], int] = self._sock.sendto
        target: tuple[str, int] | int = _parsed(to)
        if to == self._peer:
            send, target = self._sock.send, 0  # No flags.
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
        try:
            found = self._room.read(self._sock)
        except BlockingIOError:
            return
        except OSError:  # The network's answer to something that we sent.
            self.errors += 1
            return
        self._on_read(found)
