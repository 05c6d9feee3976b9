"""Datagram sockets of a world, also for multicast groups."""

import errno
import socket
from collections import deque
from typing import Any, cast

from stablecast.lab.world.network import ANY, LOOPBACK, Address, is_group, refusal
from stablecast.lab.world.sockets import SimulatedSocket, SocketOwner

LARGEST = 65_507
"""Bytes of the largest datagram."""

OVERHEAD = 256
"""Bytes of the receive buffer that a datagram takes beside its data."""

_MULTICAST_NUMBERS = (socket.IP_MULTICAST_LOOP, socket.IP_MULTICAST_TTL)


class UdpSocket(SimulatedSocket):
    def __init__(self, process: SocketOwner, kind: socket.SocketKind = socket.SOCK_DGRAM, proto: int = 0) -> None:
        super().__init__(process, kind, proto)
        self._queue: deque[tuple[bytes, Address]] = deque()
        self._queued = 0
        self._groups: set[tuple[str, str]] = set()
        self.lost = 0

    # ------------------------------------------------------------------------------------------------- as in the system

    def connect(self, address: Address) -> None:
        """Send to one address only, and receive from it only."""
        self.alive()
        self._bind_if_needed()
        self.remote = (self.process.resolve(address[0]), address[1])
        self.local = (self.source_for(self.remote[0]), self.local[1])

    def connect_ex(self, address: Address) -> int:
        self.connect(address)
        return 0

    def send(self, data: Any, flags: int = 0) -> int:
        """Send a datagram to the connected address. Raises OSError."""
        if self.remote is None:
            raise refusal(errno.EDESTADDRREQ)
        return self._send(data, self.remote)

    def sendto(self, data: Any, *rest: Any) -> int:
        """Send a datagram to an address, the last argument. Raises OSError."""
        host, port = rest[-1]
        return self._send(data, (self.process.resolve(host), port))

    def recvfrom(self, size: int, flags: int = 0) -> tuple[bytes, Address]:
        if self.closed or self.error or not self._queue:
            self.alive()
            self.await_ready()
            self.alive()
            self._raise_error()
        data, sender = self._queue.popleft()
        self._queued -= len(data) + OVERHEAD
        return data[:size], sender

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return the next datagram, cut to `size` bytes."""
        return self.recvfrom(size, flags)[0]

    def recvfrom_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> tuple[int, Address]:
        """Write the next datagram to a buffer; return its size and its sender."""
        data, sender = self.recvfrom(nbytes or len(buffer), flags)
        memoryview(buffer)[: len(data)] = data
        return len(data), sender

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        return self.recvfrom_into(buffer, nbytes, flags)[0]

    def setsockopt(self, level: int, option: int, value: Any, length: int = 0) -> None:
        """Set an option; join or leave a group. Raises OSError."""
        if level == socket.IPPROTO_IP and option in _MULTICAST_NUMBERS and isinstance(value, bytes):
            value = int.from_bytes(value, "little")
        super().setsockopt(level, option, value, length)
        if level == socket.IPPROTO_IP and option in (socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP):
            self._change_membership(value, joins=option == socket.IP_ADD_MEMBERSHIP)

    def _change_membership(self, value: bytes, *, joins: bool) -> None:
        group, interface = socket.inet_ntoa(value[:4]), socket.inet_ntoa(value[4:8])
        interface = self.host.address if interface == ANY else interface
        if not is_group(group):
            raise refusal(errno.EINVAL)
        if interface not in (self.host.address, LOOPBACK):
            raise refusal(errno.ENODEV)
        if joins and (group, interface) in self._groups:
            raise refusal(errno.EADDRINUSE)
        if not joins and (group, interface) not in self._groups:
            raise refusal(errno.EADDRNOTAVAIL)
        (self._groups.add if joins else self._groups.remove)((group, interface))

    # ------------------------------------------------------------------------------------------------- for the world

    @property
    def readable(self) -> bool:
        return bool(self._queue or self.error or self.closed)

    @property
    def writable(self) -> bool:
        """Always: the network takes or loses a datagram at once."""
        return True

    @property
    def loops(self) -> bool:
        return bool(self.options.get((socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP), 1))

    def is_member(self, group: Address, source: Address) -> bool:
        interface = LOOPBACK if source[0] == LOOPBACK else self.host.address
        return self.local[0] in (group[0], ANY) and (group[0], interface) in self._groups

    def takes(self, source: Address) -> bool:
        """Return whether the socket receives from an address: a connected one from its peer only."""
        return self.remote is None or self.remote == source

    def arrive(self, data: bytes, source: Address) -> None:
        size = len(data) + OVERHEAD
        if self._queued + size > self.options[socket.SOL_SOCKET, socket.SO_RCVBUF]:
            self.lost += 1
            return
        self._queue.append((data, source))
        self._queued += size
        self.changed()

    def refused(self, target: Address) -> None:
        """Note that nobody listens there; the next call of a connected socket raises it."""
        if self.remote == target and not self.closed:
            self.error = errno.ECONNREFUSED
            self.changed()

    def claim(self, host: str, port: int) -> None:
        """Enter the socket at its address. Raises OSError if another holds it and both do not share it."""
        others = self.network.datagrams_at(self.host.address, port)
        reuse = (socket.SOL_SOCKET, socket.SO_REUSEADDR)
        for other in cast("list[UdpSocket]", others):
            shared = self.options.get(reuse) and other.options.get(reuse)
            if not shared and (ANY in (host, other.local[0]) or host == other.local[0]):
                raise refusal(errno.EADDRINUSE)
        others.append(self)

    def check_address(self, host: str) -> None:
        """Raise OSError unless the host has the address; a group may be bound, too."""
        if not is_group(host):
            super().check_address(host)

    def release(self) -> None:
        if self.local[1]:
            self.network.datagrams_at(self.host.address, self.local[1]).remove(self)
        self._groups.clear()
        self._queue.clear()

    def _send(self, data: Any, to: Address) -> int:
        self.alive()
        self._raise_error()
        self._bind_if_needed()
        octets = bytes(data)
        if len(octets) > LARGEST:
            raise refusal(errno.EMSGSIZE)
        self.network.send_datagram(self, (self._source(to[0]), self.local[1]), to, octets)
        return len(octets)

    def _source(self, target: str) -> str:
        chosen = self.options.get((socket.IPPROTO_IP, socket.IP_MULTICAST_IF))
        if chosen and is_group(target):
            return socket.inet_ntoa(chosen[:4])
        return self.source_for(target)

    def _bind_if_needed(self) -> None:
        if not self.local[1]:
            self.bind((ANY, 0))

    def _raise_error(self) -> None:
        if self.error:
            number, self.error = self.error, 0
            raise refusal(number)
