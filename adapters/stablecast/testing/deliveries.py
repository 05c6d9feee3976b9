"""What became of the messages that programs had in hand when a fault ended them, for the report of a failing world."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import attrs

from stablecast.client.batch import Batch
from stablecast.client.observer import Observer, session_watches
from stablecast.testing.schedule import MILLISECOND

SHOWN: Final = 12
"""Sessions of programs that faults ended which a report names at most."""

_INSIDE: Final = ("stablecast.", "asyncio", "selectors", "contextlib")


class WatchedSession(Protocol):
    """A session of a receiver."""

    topic: str
    source_name: str

    def observe(self, observer: Observer) -> None:
        """Let an observer watch from now on."""


@attrs.frozen
class Acknowledged:
    """An acknowledgement: when (ns), and the line of the program that made it; empty for a callback's return."""

    at: int
    line: str


@attrs.define
class SessionLedger(Observer):
    """What one session handed to its program.

    Attributes:
        owner: The topic, and the name of its source.
        clock: Returns the time of the world, in ns.
        handed: When each number was handed out, by number.
        acknowledged: How each number was acknowledged.
    """

    owner: tuple[str, str]
    clock: Callable[[], int]
    handed: dict[int, int] = attrs.field(factory=dict)
    acknowledged: dict[int, Acknowledged] = attrs.field(factory=dict)

    def delivered(self, batch: Batch) -> None:
        """Note what goes to the program."""
        now = self.clock()
        self.handed.update(dict.fromkeys(range(batch.first, batch.first + batch.count), now))

    def consumed(self, first: int, last: int) -> None:
        """Note what the program acknowledged, and where."""
        done = Acknowledged(self.clock(), _line())
        self.acknowledged.update(dict.fromkeys(range(first, last + 1), done))


@attrs.frozen
class Ended:
    """A session whose program a fault ended: the time, the host, and the ledger."""

    at: int
    host: str
    ledger: SessionLedger


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
    _all: list[tuple[str, SessionLedger]] = attrs.field(factory=list)
    _ended: list[Ended] = attrs.field(factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch each session that begins meanwhile."""
        session_watches.append(self._begin)
        try:
            yield
        finally:
            session_watches.remove(self._begin)

    def _begin(self, session: WatchedSession) -> None:
        ledger = SessionLedger((session.topic, session.source_name), self.clock)
        session.observe(ledger)
        host = self.running()
        self._open.setdefault(host, []).append(ledger)
        self._all.append((host, ledger))

    def end(self, host: str) -> None:
        """Note that a fault ended the programs of a host."""
        self._ended += [Ended(self.clock(), host, one) for one in self._open.pop(host, []) if one.handed]

    def lines(self) -> list[str]:
        """Return what became of the messages around each end, for people."""
        told = [line for one in self._ended for line in self._fates(one)]
        return told[:SHOWN] + ([f"... {len(told) - SHOWN} more"] if len(told) > SHOWN else [])

    def _fates(self, ended: Ended) -> Iterator[str]:
        """Yield what became of the last acknowledged message before an end, and of the first one that was not."""
        ledger = ended.ledger
        done = [number for number in ledger.handed if number in ledger.acknowledged][-1:]
        held = [number for number in ledger.handed if number not in ledger.acknowledged][:1]
        told = [f"{number} {self._how(ended, number)}, and {self._fate(ended, number)}" for number in (*done, *held)]
        if told:
            yield f"{ended.at / MILLISECOND:12,.3f} ms  {ended.host}  {ledger.owner[0]}: {'; '.join(told)}"

    def _how(self, ended: Ended, number: int) -> str:
        how = ended.ledger.acknowledged.get(number)
        if how is None:
            return "was not acknowledged"
        by = f" by {how.line}" if how.line else ""
        return f"was acknowledged{by} {(ended.at - how.at) / MILLISECOND:,.3f} ms before"

    def _fate(self, ended: Ended, number: int) -> str:
        again = self._again(ended, number)
        if again is None:
            return "was never handed out again"
        return f"was handed out again to {again[0]} at {again[1] / MILLISECOND:,.3f} ms"

    def _again(self, ended: Ended, number: int) -> tuple[str, int] | None:
        """Return the host and the time at which a message was handed out after an end."""
        later = (
            (host, ledger.handed[number])
            for host, ledger in self._all
            if ledger.owner == ended.ledger.owner and ledger.handed.get(number, -1) > ended.at
        )
        return next(later, None)


def _line() -> str:
    """Return the innermost line that is neither ours nor asyncio's; empty if there is none."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_INSIDE):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
