"""Simulate connections: ordered bytes that are delayed, stall, break, and arrive in pieces of any size.

A connection loses no bytes, as TCP does not: it delays them, or it breaks and both ends are notified. A partition
between two hosts holds back bytes, connection attempts and notifications until it heals.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.virtual_time import VirtualWorld

FASTEST_NS = MILLISECOND // 20
USUAL_NS = 2 * MILLISECOND
SLOWEST_NS = 60 * MILLISECOND
SLOW_SHARE = 0.02
"""Delay of bytes, and the share of transfers with a much longer delay."""

SPLIT_SHARE = 0.1
"""Share of transfers that arrive in two pieces."""

Accept = Callable[["Connection"], None]


class SimulatedPeer(Protocol):
    host: str
    alive: bool
    connections: list["Connection"]

    def deliver(self, action: Callable[[], None]) -> None:
        """Run an action now, or after a freeze, or never after a crash."""


class VirtualNetwork:
    """Know the listeners and the partitions between hosts."""

    def __init__(self, world: VirtualWorld) -> None:
        self.world = world
        self.listeners: dict[str, tuple[SimulatedPeer, Accept]] = {}
        self._blocked: dict[tuple[str, str], int] = {}
        self._waiting: list[tuple[str, str, Callable[[], None]]] = []

    @property
    def partitions(self) -> list[tuple[str, str]]:
        """The directions between hosts that are blocked."""
        return list(self._blocked)

    def delay(self) -> int:
        """Return a random delay in ns."""
        rng = self.world.rng
        longest = SLOWEST_NS if rng.random() < SLOW_SHARE else USUAL_NS
        return FASTEST_NS + int(rng.random() * longest)

    def blocked(self, sender: str, receiver: str) -> bool:
        """Return whether `sender` cannot reach `receiver`."""
        return bool(self._blocked) and (sender, receiver) in self._blocked

    def block(self, sender: str, receiver: str) -> None:
        """Block one direction between two hosts until `unblock` was called as often."""
        pair = (sender, receiver)
        self._blocked[pair] = self._blocked.get(pair, 0) + 1

    def unblock(self, sender: str, receiver: str) -> None:
        """Undo one `block`. The last one releases what waits."""
        pair = (sender, receiver)
        left = self._blocked[pair] - 1
        if left:
            self._blocked[pair] = left
            return
        del self._blocked[pair]
        waiting, self._waiting = self._waiting, []
        for first, second, action in waiting:
            self.when_open(first, second, action)

    def when_open(self, sender: str, receiver: str, action: Callable[[], None]) -> None:
        """Run an action after a delay, or when `sender` reaches `receiver` again."""
        if self.blocked(sender, receiver):
            self._waiting.append((sender, receiver, action))
        else:
            self.world.after(self.delay(), action)

    def dial(self, dialer: SimulatedPeer, address: str, made: Accept, refused: Callable[[], None]) -> None:
        """Connect to the listener of `address`; call `made` or `refused` at the dialer."""
        host = address.partition(":")[0]

        def attempt() -> None:
            if not dialer.alive:
                return
            for pair in ((dialer.host, host), (host, dialer.host)):
                if self.blocked(*pair):
                    self._waiting.append((*pair, attempt))
                    return
            listener = self.listeners.get(address)
            if listener is None:
                dialer.deliver(refused)
                return
            acceptor, accept = listener
            connection = Connection(self, dialer, acceptor)
            acceptor.deliver(lambda: accept(connection))
            dialer.deliver(lambda: made(connection))

        self.world.after(self.delay(), attempt)

    def cut(self, first: str, second: str, processes: Sequence[SimulatedPeer]) -> None:
        """Break all connections between two hosts and drop their bytes."""
        pair = {first, second}
        for process in processes:
            for connection in list(process.connections):
                if connection.dialer is process and {process.host, connection.acceptor.host} == pair:
                    connection.snap()


class Connection:
    """Transfer bytes from the end that writes first. Call `on_data` and `on_lost` at the ends."""

    def __init__(self, network: VirtualNetwork, dialer: SimulatedPeer, acceptor: SimulatedPeer) -> None:
        self.network = network
        self.dialer = dialer
        self.acceptor = acceptor
        self.on_data: Callable[[bytes], None] = _ignore
        self.on_lost: dict[bool, Callable[[], None]] = {}
        self._pending: list[bytes] = []
        self._pumping = False
        self._writer = dialer
        self._closer: SimulatedPeer | None = None
        self.broken = False
        dialer.connections.append(self)
        acceptor.connections.append(self)

    def write(self, by: SimulatedPeer, data: bytes) -> None:
        """Send bytes. A broken connection drops them silently, as a socket does."""
        if self.broken or self._closer is not None:
            return
        self._writer = by
        self._pending.append(data)
        self._pump_soon()

    def close(self, by: SimulatedPeer, *, flush: bool = True) -> None:
        """Close one end. The other end is notified after the written bytes, or instead of them if `flush` is False."""
        if self.broken or self._closer is not None:
            return
        self._closer = by
        if self._writer is not by or not flush:
            self._pending.clear()
        self._leave(by)
        self._pump_soon()

    def snap(self) -> None:
        """Break the connection. Both ends are notified, each after its own delay."""
        if self.broken:
            return
        self.broken = True
        for process in (self.dialer, self.acceptor):
            if process is not self._closer:
                self._leave(process)
                self._notify(process)

    def _pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            self.network.world.after(self.network.delay(), self._pump)

    def _pump(self) -> None:
        if self.broken:
            return
        network, writer = self.network, self._writer
        reader = self.acceptor if writer is self.dialer else self.dialer
        peer = None
        if self._closer is not None:
            peer = self.dialer if self._closer is self.acceptor else self.acceptor
        # A close travels from the closing end, in the direction opposite to the peer's bytes.
        ends = (writer.host, reader.host) if peer is not writer else (reader.host, writer.host)
        if network.blocked(*ends):
            network.when_open(*ends, self._pump)
            return
        self._pumping = False
        if self._pending:
            data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
            self._pending.clear()
            if network.world.rng.random() < SPLIT_SHARE and len(data) > 1:
                at = network.world.rng.randrange(1, len(data))
                self._pending.append(data[at:])
                data = data[:at]
                self._pump_soon()
            reader.deliver(lambda: self.on_data(data))
        if peer is not None and not self._pending:
            self.broken = True
            self._leave(peer)
            peer.deliver(self.on_lost.get(peer is self.dialer, _nobody))

    def _notify(self, process: SimulatedPeer) -> None:
        lost = self.on_lost.get(process is self.dialer, _nobody)
        self.network.world.after(self.network.delay(), lambda: process.deliver(lost))

    def _leave(self, process: SimulatedPeer) -> None:
        process.connections.remove(self)


def _ignore(_: bytes) -> None:
    """Drop bytes of a direction without a reader."""


def _nobody() -> None:
    """Ignore a notification."""
