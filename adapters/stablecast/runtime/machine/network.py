"""The network of the host. Sockets that wait are given to the running event loop."""

import fcntl
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stablecast.runtime.machine.datagram_memory import DatagramMemory, DatagramReader, Socket

_SIOCGIFFLAGS = 0x8913
_SIOCGIFADDR = 0x8915
_NAME_BYTES = 15
_ANY_PORT = 9


Place = tuple[str, int]
"""An IP address and a port."""

resolve = socket.gethostbyname
"""Return the IPv4 address of a host name."""


def _listed(place: Place) -> str:
    """Return an address as the kernel lists it: words of 32 bits in the order of the machine, then the port."""
    packed = ipaddress.ip_address(place[0]).packed
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{place[1]:04X}"


def stream(family: int = socket.AF_INET) -> Socket:
    """Return a new socket for TCP."""
    return socket.socket(family, socket.SOCK_STREAM)


def datagram() -> Socket:
    """Return a new socket for UDP over IPv4."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def reader_of_datagrams(memory: DatagramMemory) -> DatagramReader:
    """Return a function that reads many datagrams into a memory, by one system call if there is one."""
    from stablecast.runtime.machine import datagram_reading  # noqa: PLC0415 - `ctypes` is slow to import

    return datagram_reading.together(memory) or datagram_reading.one_by_one(memory)


def route(address: str) -> str:
    """Return the own IPv4 address from which packets to an IPv4 address leave; nothing is sent."""
    with datagram() as sock:
        # The kernel chooses the route here. A bound address would be the answer of this program, not of the route.
        sock.connect((address, _ANY_PORT))
        own: str = sock.getsockname()[0]
        return own


def is_of_owner(local: Place, remote: Place) -> bool:
    """Return whether the other end of a connection on this host belongs to this user or to root.

    Linux lists the user of each socket; elsewhere nobody is known. `local` and `remote` are as this end sees them.
    """
    ends = f"{_listed(remote)} {_listed(local)} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), Path(table).open(encoding="ascii") as lines:
            for line in lines:
                if ends in line:
                    return int(line.split()[7]) in (0, os.geteuid())
    return False


def devices() -> Iterator[tuple[str, str, int]]:
    """Yield name, IPv4 address and flags (`IFF_*`) of each device with an address, in the order of the system."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("16s24x", name.encode()[:_NAME_BYTES])
            with suppress(OSError):  # A device without an address, or one that has just gone.
                address = socket.inet_ntoa(fcntl.ioctl(sock, _SIOCGIFADDR, request)[20:24])
                (flags,) = struct.unpack_from("H", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)
                yield name, address, flags
