"""Where datagrams are read, many by one call: `recvmmsg`, or where the system has none, one after the other.

Python's own sockets have no such call; a call for each datagram, with an address made for each, costs as much again.
The C library is called by `ctypes`: who has no UDP session does not load it.
"""

import ctypes
import os
import socket
from itertools import groupby
from operator import itemgetter

from stablecast.runtime import datagrams
from stablecast.runtime.datagrams import MAX_DATAGRAM, READ_DATAGRAMS, Sent

_STRIDE = MAX_DATAGRAM + 1 + 8 * 1024 + 128
"""Bytes from place to place: not a power of two, or all places would share few lines of the processor's cache."""

_ADDRESS = 16
"""Bytes of an address, as the kernel writes it: two of family, two of port, four of address, nothing."""


class _Part(ctypes.Structure):
    """`iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """`msghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint32),
        ("parts", ctypes.POINTER(_Part)),
        ("parts_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """`mmsghdr`."""

    _fields_ = (("header", _Header), ("size", ctypes.c_uint))


class Room:
    """Places for the datagrams of one read; all sockets of a thread share them, so that their memory is at hand."""

    def __init__(self, together: bool = True) -> None:
        """`together`: by one call, if the system has it."""
        room, self._names = bytearray(READ_DATAGRAMS * _STRIDE), bytearray(READ_DATAGRAMS * _ADDRESS)
        view = memoryview(room)
        self._places = [view[start : start + MAX_DATAGRAM] for start in range(0, len(room), _STRIDE)]
        self._call = getattr(ctypes.CDLL(None, use_errno=True), "recvmmsg", None) if together else None
        self._messages = (_Message * READ_DATAGRAMS)()
        words = memoryview(self._messages).cast("B").cast("I")
        self._sizes = words[_Message.size.offset // words.itemsize :: ctypes.sizeof(_Message) // words.itemsize]
        at, names = (ctypes.addressof(ctypes.c_char.from_buffer(memory)) for memory in (room, self._names))
        self._parts = [_Part(at + start, MAX_DATAGRAM) for start in range(0, len(room), _STRIDE)]
        for number, (part, message) in enumerate(zip(self._parts, self._messages, strict=True)):
            name = names + number * _ADDRESS
            message.header = _Header(name=name, name_size=_ADDRESS, parts=ctypes.pointer(part), parts_count=1)

    def read(self, sock: socket.socket) -> list[Sent]:
        """What waits at a socket that does not block, at most `READ_DATAGRAMS`.

        Raises:
            BlockingIOError: If nothing does.
            OSError: If the network's answer to something that was sent does.
        """
        if self._call is None:
            return self._one_by_one(sock)
        count = self._call(sock.fileno(), self._messages, READ_DATAGRAMS, 0, None)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        sizes = self._sizes[:count].tolist()
        found = [place[:size] for place, size in zip(self._places, sizes, strict=False)]
        names = self._names[: count * _ADDRESS]
        first = names[:_ADDRESS]
        if names == first * count:
            return [(_place(first), found)]
        places = [_place(names[start : start + _ADDRESS]) for start in range(0, len(names), _ADDRESS)]
        return _by_sender(list(zip(places, found, strict=True)))

    def _one_by_one(self, sock: socket.socket) -> list[Sent]:
        found: list[tuple[str, memoryview]] = []
        for place in self._places:
            try:
                size, sender = sock.recvfrom_into(place)
            except OSError:
                if found:
                    break
                raise
            found.append((datagrams.joined(*sender), place[:size]))
        return _by_sender(found)


def _place(name: bytes | bytearray) -> str:
    """`ip:port` of an address."""
    return datagrams.joined(socket.inet_ntoa(name[4:8]), int.from_bytes(name[2:4]))


def _by_sender(found: list[tuple[str, memoryview]]) -> list[Sent]:
    return [(sender, [octets for _, octets in those]) for sender, those in groupby(found, itemgetter(0))]
