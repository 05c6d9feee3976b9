"""Functions that read many datagrams into one memory: by `recvmmsg`, or by one `recvfrom` each where it is missing.

Python's own sockets have no such call. One call for each datagram, with an address object for each, costs as much again
as the protocol itself. The C library is called through `ctypes`.
"""

import ctypes
import os
import socket
import struct
from functools import lru_cache

from stablecast.runtime.machine.datagram_memory import DatagramMemory, DatagramReader, Socket

NAME_BYTES = 16
"""Bytes of a socket address as the kernel writes it: family (2), port (2), IPv4 address (4), padding (8)."""

_NAME = struct.Struct("=H2s4s8x")


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


def together(memory: DatagramMemory) -> DatagramReader | None:
    """Return a function that reads all datagrams by one system call, None if the system has no such call."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "recvmmsg", None)
    if call is None:
        return None
    count = memory.count
    messages = (_ReceivedMessage * count)()
    words = memoryview(messages).cast("B").cast("I")
    step = ctypes.sizeof(_ReceivedMessage) // words.itemsize
    sizes = words[_ReceivedMessage.size.offset // words.itemsize :: step]
    at, names = (ctypes.addressof(ctypes.c_char.from_buffer(octets)) for octets in (memory.octets, memory.names))
    # The kernel writes through these pointers, so the vectors and the memory must live as long as the function.
    parts = [_IoVector(at + number * memory.stride, memory.size) for number in range(count)]
    for number, (part, message) in enumerate(zip(parts, messages, strict=True)):
        name = names + number * NAME_BYTES
        message.header = _MessageHeader(name=name, name_size=NAME_BYTES, parts=ctypes.pointer(part), parts_count=1)

    def read(sock: Socket, _alive: object = (memory, parts)) -> list[int]:
        found = call(sock.fileno(), messages, count, 0, None)
        if found < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return sizes[:found].tolist()

    return read


def one_by_one(memory: DatagramMemory) -> DatagramReader:
    """Return a function that reads each datagram by a call of its own."""
    view = memoryview(memory.octets)
    starts = range(0, memory.count * memory.stride, memory.stride)
    rooms = [view[start : start + memory.size] for start in starts]

    def read(sock: Socket) -> list[int]:
        sizes: list[int] = []
        for number, room in enumerate(rooms):
            try:
                size, (host, port) = sock.recvfrom_into(room)
            except OSError:
                if sizes:
                    break
                raise
            memory.names[number * NAME_BYTES : (number + 1) * NAME_BYTES] = _name(host, port)
            sizes.append(size)
        return sizes

    return read


@lru_cache(maxsize=4_096)
def _name(host: str, port: int) -> bytes:
    """Return a socket address as the kernel writes it."""
    return _NAME.pack(socket.AF_INET, port.to_bytes(2), socket.inet_aton(host))
