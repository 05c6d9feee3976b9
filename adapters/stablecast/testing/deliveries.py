"""What became of the messages that programs had in hand when a fault ended them, for the report of a failing world."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final, Protocol

import attrs

from stablecast.client.batch import Batch
from stablecast.client.observer import Observer, session_watches
from stablecast.testing.fault_injection import line_in
from stablecast.testing.schedule import MILLISECOND

SHOWN: Final = 12
"""Sessions of programs that faults ended which a report names at most: the first ones."""


class WatchedSession(Protocol):
    topic: str

    def observe(self, observer: Observer) -> None: ...


@attrs.frozen
class Acknowledged:
    """An acknowledgement: when (ns), and the line of the program that made it; empty for a callback's return."""

    at: int
    line: str


@attrs.define
class Fate:
    """A message around the end of a program: how it was acknowledged, and whether it came again.

    Attributes:
        at: When the program ended (ns), on `host`.
        topic, life, number: The message.
        done: Its acknowledgement, if it had one.
        again: The host to which it was handed out after that, and when (ns).
    """

    at: int
    host: str
    topic: str
    life: int
    number: int
    done: Acknowledged | None
    again: tuple[str, int] | None = None

    def __str__(self) -> str:
        how, fate = "was not acknowledged", "was never handed out again"
        if self.done is not None:
            by = f" by {self.done.line}" if self.done.line else ""
            how = f"was acknowledged{by} {(self.at - self.done.at) / MILLISECOND:,.3f} ms before"
        if self.again is not None:
            fate = f"was handed out again to {self.again[0]} at {self.again[1] / MILLISECOND:,.3f} ms"
        return f"{self.number} {how}, and {fate}"


@attrs.define
class SessionLedger(Observer):
    """What one session handed to its program, and the program did not acknowledge.

    Attributes:
        world: The ledgers of its world.
        host: The host of the program.
        topic: The topic of the session.
        held: The life of each message in hand, by number.
        last: The newest acknowledged message: number, life, and how.
    """

    world: "Deliveries"
    host: str
    topic: str
    held: dict[int, int] = attrs.field(factory=dict)
    last: tuple[int, int, Acknowledged] | None = None

    def delivered(self, batch: Batch) -> None:
        """Note what goes to the program."""
        numbers = range(batch.first, batch.first + batch.count)
        self.held.update(dict.fromkeys(numbers, batch.incarnation))
        self.world.hand(self, batch.incarnation, numbers)

    def consumed(self, first: int, last: int) -> None:
        """Note what the program acknowledged, and where."""
        for number in range(first, last + 1):
            life = self.held.pop(number, None)
            if life is not None:
                self.last = number, life, Acknowledged(self.world.clock(), _line())

    def fates(self, at: int) -> Iterator[Fate]:
        """Yield the last message that was acknowledged when the program ended, and the first one that was not."""
        if self.last is not None:
            number, life, done = self.last
            yield Fate(at, self.host, self.topic, life, number, done)
        for number, life in islice(self.held.items(), 1):
            yield Fate(at, self.host, self.topic, life, number, None)


@attrs.define
class Deliveries:
    """The ledgers of all sessions of a world.

    Attributes:
        clock: Returns the time of the world, in ns.
        running: Returns the host whose program runs.
    """

    clock: Callable[[], int]
    running: Callable[[], str]
    _open: dict[str, list[SessionLedger]] = attrs.field(factory=dict)
    _ended: list[list[Fate]] = attrs.field(factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch each session that begins meanwhile."""
        session_watches.append(self._begin)
        try:
            yield
        finally:
            session_watches.remove(self._begin)

    def _begin(self, session: WatchedSession) -> None:
        ledger = SessionLedger(self, self.running(), session.topic)
        session.observe(ledger)
        self._open.setdefault(ledger.host, []).append(ledger)

    def hand(self, ledger: SessionLedger, life: int, numbers: range) -> None:
        """Note which messages of ended programs are handed out again."""
        for one in (fate for fates in self._ended for fate in fates):
            if one.again is None and (one.topic, one.life) == (ledger.topic, life) and one.number in numbers:
                one.again = ledger.host, self.clock()

    def end(self, host: str) -> None:
        """Note that a fault ended the programs of a host."""
        for ledger in self._open.pop(host, ()):
            fates = list(ledger.fates(self.clock()))
            if fates and len(self._ended) < SHOWN:
                self._ended.append(fates)

    def lines(self) -> list[str]:
        """Return what became of the messages around each end, for people."""
        return [
            f"{fates[0].at / MILLISECOND:12,.3f} ms  {fates[0].host}  {fates[0].topic}: {'; '.join(map(str, fates))}"
            for fates in self._ended
        ]


def _line() -> str:
    """Return the innermost line of the user's program; empty if there is none."""
    frame = inspect.currentframe()
    while frame is not None and not line_in(frame):
        frame = frame.f_back
    return line_in(frame)
