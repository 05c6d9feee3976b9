"""Buffers for datagrams that are read many by one call: `recvmmsg`, or one `recvfrom` each where it is missing.

Python's own sockets have no such call. One call for each datagram, with an address object for each, costs as much again
as the protocol itself. The C library is called through `ctypes`.
"""

import ctypes
import os
import socket
import threading
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

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

_joined = lru_cache(maxsize=4_096)(join)


class _IoVector(ctypes.Structure):
    """`iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _MessageHeader(ctypes.Structure):
    """`msghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint32),
        ("parts", ctypes.POINTER(_IoVector)),
        ("parts_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _ReceivedMessage(ctypes.Structure):
    """`mmsghdr`."""

    _fields_ = (("header", _MessageHeader), ("size", ctypes.c_uint))


class DatagramBuffers:
    """Buffers for the datagrams of one read. All sockets of a thread share them, so that the cache holds them."""

    def __init__(self, together: bool = True) -> None:
        """Allocate the buffers; `together` reads all datagrams by one call if the system has it."""
        octets, self._names = bytearray(READ_DATAGRAMS * _STRIDE), bytearray(READ_DATAGRAMS * _ADDRESS)
        view = memoryview(octets)
        self._buffers = [view[start : start + MAX_DATAGRAM] for start in range(0, len(octets), _STRIDE)]
        self._call = getattr(ctypes.CDLL(None, use_errno=True), "recvmmsg", None) if together else None
        self._messages = (_ReceivedMessage * READ_DATAGRAMS)()
        words = memoryview(self._messages).cast("B").cast("I")
        step = ctypes.sizeof(_ReceivedMessage) // words.itemsize
        self._sizes = words[_ReceivedMessage.size.offset // words.itemsize :: step]
        at, names = (ctypes.addressof(ctypes.c_char.from_buffer(memory)) for memory in (octets, self._names))
        # The kernel writes through these pointers, so the vectors must live as long as the buffers.
        self._parts = [_IoVector(at + start, MAX_DATAGRAM) for start in range(0, len(octets), _STRIDE)]
        for number, (part, message) in enumerate(zip(self._parts, self._messages, strict=True)):
            name = names + number * _ADDRESS
            message.header = _MessageHeader(name=name, name_size=_ADDRESS, parts=ctypes.pointer(part), parts_count=1)

    def read(self, sock: socket.socket) -> list[Sent]:
        """Read the datagrams that wait at a non-blocking socket, at most `READ_DATAGRAMS`.

        Raises:
            BlockingIOError: No datagram waits.
            OSError: The network reported an error about an earlier datagram that this socket sent.
        """
        if self._call is None:
            return self._one_by_one(sock)
        count = self._call(sock.fileno(), self._messages, READ_DATAGRAMS, 0, None)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        sizes = self._sizes[:count].tolist()
        found = [buffer[:size] for buffer, size in zip(self._buffers, sizes, strict=False)]
        names = self._names[: count * _ADDRESS]
        first = names[:_ADDRESS]
        if names == first * count:  # The usual case, one sender, makes one address.
            return [(_sender(first), found)]
        senders = [_sender(names[start : start + _ADDRESS]) for start in range(0, len(names), _ADDRESS)]
        return _by_sender(list(zip(senders, found, strict=True)))

    def _one_by_one(self, sock: socket.socket) -> list[Sent]:
        found: list[tuple[str, memoryview]] = []
        for buffer in self._buffers:
            try:
                size, sender = sock.recvfrom_into(buffer)
            except OSError:
                if found:
                    break
                raise
            found.append((_joined(*sender), buffer[:size]))
        return _by_sender(found)


class _ThreadBuffers(threading.local):
    """The buffers of each thread: several stores of a process have a thread each."""

    def __init__(self) -> None:
        self.buffers = DatagramBuffers()


_OF_THREAD = _ThreadBuffers()


def thread_buffers() -> DatagramBuffers:
    """Return the buffers of the calling thread; the first call allocates them."""
    return _OF_THREAD.buffers


def _sender(name: bytes | bytearray) -> str:
    return _joined(socket.inet_ntoa(name[4:8]), int.from_bytes(name[2:4]))


def _by_sender(found: list[tuple[str, memoryview]]) -> list[Sent]:
    return [(sender, [octets for _, octets in those]) for sender, those in groupby(found, itemgetter(0))]
