"""Connections between processes: ordered bytes that take their time, stall, break, and come in any pieces.

Nothing is lost inside a connection, as with TCP: it delays, or it breaks and both ends learn it. Hosts can be cut off
from each other: then bytes, attempts to connect and the news of a broken connection wait until they are not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.virtual_time import World

if TYPE_CHECKING:
    from stablecast.lab.sim.process import Process

FASTEST_NS = MILLISECOND // 20
USUAL_NS = 2 * MILLISECOND
SLOWEST_NS = 60 * MILLISECOND
SLOW_SHARE = 0.02
"""How long bytes travel, and how often it is much longer than usual."""

SPLIT_SHARE = 0.1
"""How often what is under way arrives in two pieces."""

Accept = Callable[["Connection"], None]


class Network:
    """Who listens where, and which hosts cannot reach which."""

    def __init__(self, world: World) -> None:
        """Nobody listens, nothing is blocked."""
        self.world = world
        self.listeners: dict[str, tuple[Process, Accept]] = {}
        self._blocked: dict[tuple[str, str], int] = {}
        self._waiting: list[tuple[str, str, Callable[[], None]]] = []

    def delay(self) -> int:
        """How long something travels."""
        rng = self.world.rng
        longest = SLOWEST_NS if rng.random() < SLOW_SHARE else USUAL_NS
        return FASTEST_NS + int(rng.random() * longest)

    def blocked(self, sender: str, receiver: str) -> bool:
        """Whether nothing gets from one host to another."""
        return bool(self._blocked) and (sender, receiver) in self._blocked

    def block(self, sender: str, receiver: str) -> None:
        """Nothing gets from one host to another until as many `unblock`."""
        pair = (sender, receiver)
        self._blocked[pair] = self._blocked.get(pair, 0) + 1

    def unblock(self, sender: str, receiver: str) -> None:
        """Undo one `block`; what waited goes on when none is left."""
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
        """Do something a little later if one host reaches another; else when it does."""
        if self.blocked(sender, receiver):
            self._waiting.append((sender, receiver, action))
        else:
            self.world.after(self.delay(), action)

    def dial(self, dialer: "Process", address: str, made: Accept, refused: Callable[[], None]) -> None:
        """Connect to whoever listens at `address`."""
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

    def cut(self, first: str, second: str, processes: list["Process"]) -> None:
        """All connections between two hosts break; what was under way is lost."""
        pair = {first, second}
        for process in processes:
            for connection in list(process.connections):
                if connection.dialer is process and {process.host, connection.acceptor.host} == pair:
                    connection.snap()


class Connection:
    """One connection. Bytes flow one way here, from whoever writes first; `on_data` and `on_lost` hear at the ends."""

    def __init__(self, network: Network, dialer: "Process", acceptor: "Process") -> None:
        """Both ends are up."""
        self.network = network
        self.dialer = dialer
        self.acceptor = acceptor
        self.on_data: Callable[[bytes], None] = _ignore
        self.on_lost: dict[bool, Callable[[], None]] = {}
        self._pending: list[bytes] = []
        self._pumping = False
        self._writer = dialer
        self._closer: Process | None = None
        self.broken = False
        dialer.connections.append(self)
        acceptor.connections.append(self)

    def write(self, by: "Process", data: bytes) -> None:
        """Send; lost without a word if the connection is broken, as with a socket."""
        if self.broken or self._closer is not None:
            return
        self._writer = by
        self._pending.append(data)
        self._pump_soon()

    def close(self, by: "Process", *, flush: bool = True) -> None:
        """One end is gone; the other learns it behind what was written, or instead of it."""
        if self.broken or self._closer is not None:
            return
        self._closer = by
        if self._writer is not by or not flush:
            self._pending.clear()
        self._leave(by)
        self._pump_soon()

    def snap(self) -> None:
        """It breaks in the middle: both ends learn it, each in its time."""
        if self.broken:
            return
        self.broken = True
        for process in (self.dialer, self.acceptor):
            if process is not self._closer:
                self._leave(process)
                self._tell(process)

    def _pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            self.network.world.after(self.network.delay(), self._pump)

    def _pump(self) -> None:
        """What is under way arrives, or part of it."""
        if self.broken:
            return
        network, writer = self.network, self._writer
        reader = self.acceptor if writer is self.dialer else self.dialer
        peer = None
        if self._closer is not None:
            peer = self.dialer if self._closer is self.acceptor else self.acceptor
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

    def _tell(self, process: "Process") -> None:
        lost = self.on_lost.get(process is self.dialer, _nobody)
        self.network.world.after(self.network.delay(), lambda: process.deliver(lost))

    def _leave(self, process: "Process") -> None:
        process.connections.remove(self)


def _ignore(_: bytes) -> None:
    """Nobody listens on this direction."""


def _nobody() -> None:
    """Nobody asked to be told."""
