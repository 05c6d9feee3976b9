"""The network of a world: hosts with addresses, the paths between them, and what goes wrong on a path.

A path is one-way. It delays what it carries, and it may lose, duplicate or reorder datagrams, and it may be cut. A
stream waits for its path: it repeats what was lost, and it goes on when a cut path heals. It fails only as TCP does: by
a refusal, by a reset, or by a peer that stays silent longer than the options of the socket permit.
"""

import errno
import os
from functools import lru_cache
from typing import Protocol

import attrs

from stablecast.lab.world.kernel import Kernel

LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"  # noqa: S104 - the address that stands for all of a host

EPHEMERAL_PORTS = (32_768, 60_999)
"""Ports that a host gives to sockets that ask for none."""

REPEAT_NS = 200_000_000
"""Time after which a stream repeats what was lost; it doubles each time, until something is acknowledged."""

LONGEST_REPEAT_NS = 120_000_000_000
"""The longest such time, as in Linux."""

HEALED_NS = 1_000_000_000
"""Time within which a stream notices that its path is whole again."""

Address = tuple[str, int]


@attrs.define
class Path:
    """The way from one host to another.

    Attributes:
        delay_ns: Least time that a packet takes.
        jitter_ns: Time that it takes at most in addition.
        loss: Share of packets that are lost.
        duplication: Share of datagrams that arrive twice.
        reordering: Share of datagrams that take ten times as long.
        cut: Whether nothing passes.
        since: Time of the last cut in ns.
        last: Time in ns at which the last datagram arrives; without reordering the next one arrives later.
    """

    delay_ns: int = 50_000
    jitter_ns: int = 50_000
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    cut: bool = False
    since: int = 0
    last: int = 0

    def time(self, kernel: Kernel) -> int:
        """Return the time of the next packet in ns."""
        return self.delay_ns + kernel.below(self.jitter_ns + 1)


INSIDE = Path(5_000, 10_000)
"""The path of a host to itself."""


class NetworkHost(Protocol):
    name: str
    address: str
    powered: bool
    privileged: bool
    network: "SimulatedNetwork"


@attrs.define
class Way:
    """A path with the hosts at its two ends."""

    here: NetworkHost
    there: NetworkHost
    path: Path

    @property
    def passes(self) -> bool:
        """Return whether a packet arrives now: both hosts have power and the path is not cut."""
        return self.there.powered and self.here.powered and not self.path.cut


class ConnectionEnd(Protocol):
    """One end of a stream as the network sees it; `here` and `there` are the addresses of the two hosts."""

    here: str
    there: str

    def on_unreachable(self) -> None:
        """Start the clocks of a connection whose peer cannot be reached."""

    def repeat(self) -> None:
        """Send again what waited for the path."""

    def fail(self, number: int) -> None:
        """End the connection with an error that the socket reports once."""

    def orphan(self) -> None:
        """Learn some time after the host of the peer is back that the peer is gone."""


class StreamPort(Protocol):
    local: Address
    listening: bool


class DatagramPort(Protocol):
    local: Address
    remote: Address | None

    @property
    def host(self) -> NetworkHost: ...

    @property
    def loops(self) -> bool:
        """Return whether the own host receives what this socket sends to groups."""

    def is_member(self, group: Address, source: Address) -> bool:
        """Return whether the socket receives what `source` sends to a group."""

    def takes(self, source: Address) -> bool: ...

    def arrive(self, data: bytes, source: Address) -> None:
        """Queue a datagram, or lose it if the buffer is full."""

    def refused(self, target: Address) -> None:
        """Note that nobody listens there."""


def refusal(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class SimulatedNetwork:
    """All hosts, the paths between them, and the sockets that are bound to an address."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.usual = Path()
        self._hosts: dict[str, NetworkHost] = {}
        self._names: dict[str, str] = {"localhost": LOOPBACK}
        self._paths: dict[tuple[str, str], Path] = {}
        self._ways: dict[tuple[str, str], Way] = {}
        self._streams: dict[tuple[str, int], list[StreamPort]] = {}
        self._datagrams: dict[int, dict[str, list[DatagramPort]]] = {}  # by port and host
        self._networks: dict[str, int] = {}
        self.ends: dict[ConnectionEnd, None] = {}
        self.used_ports: dict[str, int] = {}

    # ----------------------------------------------------------------------------------------------------------- hosts

    def add(self, host: NetworkHost) -> None:
        """Connect a host to all others."""
        self._hosts[host.address] = host
        self._names[host.name] = host.address

    def place(self, address: str, network: int) -> None:
        """Place a host in one of several networks; hosts of two networks do not reach each other.

        A host in none reaches all. Place hosts before anything uses their paths.
        """
        self._networks[address] = network

    def _are_apart(self, one: str, other: str) -> bool:
        networks = self._networks
        return one in networks and other in networks and networks[one] != networks[other]

    def resolve(self, name: str) -> str:
        """Return the address of a host name, or of an address. Raises KeyError."""
        return name if name in self._hosts or name in (LOOPBACK, ANY) else self._names[name]

    def host(self, address: str) -> NetworkHost | None:
        return self._hosts.get(address)

    def path(self, source: str, target: str) -> Path:
        """Return the path between two addresses; the first use makes it like `usual`."""
        path = self._paths.get((source, target))
        if path is None:
            path = attrs.evolve(INSIDE if source == target else self.usual)
            self._paths[source, target] = path
        return path

    def passes(self, source: str, target: str) -> bool:
        """Return whether a packet arrives now."""
        way = self.way(source, target)
        return way is not None and way.passes

    def way(self, source: str, target: str) -> Way | None:
        """Return the path between two hosts, with the hosts; None unless both exist, in one network."""
        way = self._ways.get((source, target))  # This is asked for each packet.
        if way is None:
            here, there = self._hosts.get(source), self._hosts.get(target)
            if here is None or there is None or self._are_apart(source, target):
                return None
            way = self._ways[source, target] = Way(here, there, self.path(source, target))
        return way

    def connected(self, one: str, other: str) -> bool:
        """Return whether packets pass both ways."""
        return self.passes(one, other) and self.passes(other, one)

    # ---------------------------------------------------------------------------------------------------------- faults

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from one address to another."""
        path = self.path(source, target)
        if not path.cut:
            path.cut, path.since = True, self.kernel.now
            self.unreachable(source, target)

    def heal(self, source: str, target: str) -> None:
        """Let packets pass again; streams notice it soon."""
        path = self.path(source, target)
        if path.cut:
            path.cut = False
            self.reachable(source, target)

    def reset(self, one: str, other: str) -> int:
        """Reset all streams between two addresses; return their number."""
        ends = self._between(one, other)
        for end in ends:
            end.fail(errno.ECONNRESET)
        return len(ends) // 2

    def unreachable(self, source: str, target: str) -> None:
        """Start the clocks of the streams between two hosts that cannot reach each other."""
        for end in self._between(source, target):
            end.on_unreachable()

    def reachable(self, source: str, target: str) -> None:
        """Let the streams between two hosts repeat what waits."""
        for end in self._between(source, target):
            self.kernel.after(self.kernel.random.randrange(HEALED_NS), end.repeat)

    def _between(self, one: str, other: str) -> list[ConnectionEnd]:
        return [end for end in self.ends if {end.here, end.there} == {one, other}]

    # --------------------------------------------------------------------------------------------------------- sockets

    def route(self, host: str, address: str) -> str:
        """Return the host to which packets for an address go from a host: its own one for a loopback address."""
        return host if address.startswith("127.") else address

    def free_port(self, host: str, *, streams: bool) -> int:
        first, last = EPHEMERAL_PORTS
        bound = self.streams_at if streams else self.datagrams_at
        port = self.used_ports.get(host, first + self.kernel.random.randrange(1_000))
        while bound(host, port):
            port = port + 1 if port < last else first
        self.used_ports[host] = port + 1 if port < last else first
        return port

    def streams_at(self, host: str, port: int) -> list[StreamPort]:
        return self._streams.setdefault((host, port), [])

    def datagrams_at(self, host: str, port: int) -> list[DatagramPort]:
        return self._datagrams.setdefault(port, {}).setdefault(host, [])

    def listener(self, host: str, address: Address) -> StreamPort | None:
        for one in self._streams.get((host, address[1]), ()):
            if one.listening and one.local[0] in (address[0], ANY):
                return one
        return None

    def send_datagram(self, sender: DatagramPort, source: Address, to: Address, data: bytes) -> None:
        """Carry a datagram to an address, or to each host with a member of a group."""
        here = sender.host.address
        if not is_group(to[0]):
            self._carry(here, self.route(here, to[0]), source, to, data, sender)
            return
        for host, sockets in list(self._datagrams.get(to[1], {}).items()):
            if (sender.loops or host != here) and any(one.is_member(to, source) for one in sockets):
                self._carry(here, host, source, to, data, None)

    def _carry(
        self, here: str, there: str, source: Address, to: Address, data: bytes, sender: DatagramPort | None
    ) -> None:
        way = self.way(here, there)
        if way is None or not way.passes:
            return
        kernel, path = self.kernel, way.path
        rng = kernel.random
        for _ in range(2 if path.duplication and rng.random() < path.duplication else 1):
            if path.loss and rng.random() < path.loss:
                continue
            when = kernel.now + path.time(kernel)
            if path.reordering and rng.random() < path.reordering:
                when += 10 * (path.delay_ns + path.jitter_ns)
            else:
                path.last = when = max(when, path.last + 1)
            kernel.at(when, lambda: self._deliver(there, source, to, data, sender))

    def _deliver(self, there: str, source: Address, to: Address, data: bytes, sender: DatagramPort | None) -> None:
        sockets = self._datagrams.get(to[1], {}).get(there, ())
        if is_group(to[0]):
            for one in list(sockets):
                if one.is_member(to, source):
                    one.arrive(data, source)
            return
        found = [one for one in sockets if one.local[0] in (to[0], ANY) and one.takes(source)]
        if found:  # The most particular one, and of several the latest, as in Linux.
            rank = [(one.remote is not None, one.local[0] != ANY) for one in found]
            found[max(range(len(found)), key=lambda index: (rank[index], index))].arrive(data, source)
        elif sender is not None and self.passes(there, sender.host.address):
            wait = self.path(there, sender.host.address).time(self.kernel)
            self.kernel.after(wait, lambda: sender.refused(to))


@lru_cache(maxsize=1_024)
def is_group(address: str) -> bool:
    return 224 <= int(address.partition(".")[0]) <= 239
