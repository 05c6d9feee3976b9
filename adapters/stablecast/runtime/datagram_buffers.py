"""Buffers for datagrams that are read many by one call, see `machine.network.reader_of_datagrams`."""

import socket
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from stablecast.runtime import machine
from stablecast.runtime.address import join

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
