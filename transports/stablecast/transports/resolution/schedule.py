"""When a topic's turn comes: a quick initial phase, then a slow sustaining phase that never ends.

Intervals grow from `shortest` to `longest`, each twice the one before. Turns are planned ahead from the start of the
phase, so that late calls do not add up, and stand on a grid of ticks, so that topics whose turns fall into one tick
share a datagram. The end of the initial phase is looked at when a turn is taken: the turn already planned at the
initial pace still comes (6.14 as observed; T-102, T-107). There is no quiescent phase (T-115, T26): topics that went
quiet are how receivers of a healed network stay deaf.
"""

import heapq
from typing import Generic, TypeVar

import attrs

from stablecast.core.units import MILLISECOND, SECOND

KeyT = TypeVar("KeyT", int, str)

STALE_TURNS = 64
"""Turns of stopped topics that may wait in the plan, besides one for each topic in it."""


@attrs.frozen
class Pace:
    """The phases of one kind of record, in nanoseconds.

    Attributes:
        tick: Grid of the initial phase.
        shortest: First interval of the initial phase.
        longest: Interval at which it stops growing.
        initial: Length of the initial phase.
        sustain_tick: Grid of the sustaining phase.
        sustain: Interval of the sustaining phase.
    """

    tick: int
    shortest: int
    longest: int
    initial: int = 5 * SECOND
    sustain_tick: int = 100 * MILLISECOND
    sustain: int = SECOND


ADVERTISING = Pace(tick=10 * MILLISECOND, shortest=10 * MILLISECOND, longest=500 * MILLISECOND)
"""0, 10, 30, 70, 150, 310, 630, 1130 ms, then every 500 ms to 5130 ms; then every second (T-102, T-103, T-109)."""

QUERYING = Pace(tick=20 * MILLISECOND, shortest=20 * MILLISECOND, longest=200 * MILLISECOND)
"""0, 20, 60, 140, 300, 500 ms, then every 200 ms to 5100 ms; then every second (T-107, T-112)."""


def on_grid(instant: int, tick: int) -> int:
    """The first multiple of `tick` not before `instant`, both in nanoseconds.

    >>> on_grid(21, 10), on_grid(30, 10)
    (30, 30)
    """
    return -(-instant // tick) * tick


@attrs.define
class Turn:
    """The next turn of one topic.

    Attributes:
        due: Instant in nanoseconds.
        planned: The instant before it was moved to the grid; the average pace follows this one.
        interval: Nanoseconds from `planned` to the turn after it.
        initial_ends: End of the initial phase; 0 in the sustaining phase.
    """

    due: int
    planned: int
    interval: int
    initial_ends: int


@attrs.define
class Rounds(Generic[KeyT]):
    """The turns of all topics of one kind at one pace."""

    pace: Pace
    turns: dict[KeyT, Turn] = attrs.field(factory=dict)
    plan: list[tuple[int, KeyT]] = attrs.field(factory=list, init=False)

    def begin(self, key: KeyT, now: int) -> None:
        """`key` enters the initial phase; its first turn comes at the next tick."""
        start = on_grid(now, self.pace.tick)
        self._put(key, Turn(start, start, self.pace.shortest, start + self.pace.initial))

    def sustain(self, key: KeyT, now: int) -> None:
        """`key` enters the sustaining phase; its first turn comes at the next tick."""
        start = on_grid(now, self.pace.tick)
        self._put(key, Turn(start, start, self.pace.sustain, 0))

    def stop(self, key: KeyT) -> None:
        """`key` has no more turns; nothing happens if it has none anyway."""
        if self.turns.pop(key, None) is not None and len(self.plan) > 2 * len(self.turns) + STALE_TURNS:
            self.plan = [(turn.due, kept) for kept, turn in self.turns.items()]
            heapq.heapify(self.plan)

    def sustaining(self, key: KeyT) -> bool:
        """Tells whether the next turn of `key` belongs to the sustaining phase."""
        return key in self.turns and not self.turns[key].initial_ends

    def take(self, now: int) -> list[KeyT]:
        """Returns whose turn it is at `now`, each once, and plans their next ones; missed turns are not made up."""
        taken: list[KeyT] = []
        while self.plan and self.plan[0][0] <= now:
            due, key = heapq.heappop(self.plan)
            turn = self.turns.get(key)
            if turn is not None and turn.due == due:
                taken.append(key)
                self._advance(turn, now)
                heapq.heappush(self.plan, (turn.due, key))
        return taken

    def next(self) -> int | None:
        """Returns when the next turn is due, in nanoseconds, or None."""
        while self.plan:
            due, key = self.plan[0]
            turn = self.turns.get(key)
            if turn is not None and turn.due == due:
                return due
            heapq.heappop(self.plan)
        return None

    def _put(self, key: KeyT, turn: Turn) -> None:
        self.stop(key)
        self.turns[key] = turn
        heapq.heappush(self.plan, (turn.due, key))

    def _advance(self, turn: Turn, now: int) -> None:
        """Moves `turn` to the first one after `now`."""
        pace = self.pace
        while turn.initial_ends and turn.due <= now:
            if turn.planned >= turn.initial_ends:
                turn.initial_ends, turn.interval = 0, pace.sustain
                break
            turn.planned += turn.interval
            turn.interval = min(2 * turn.interval, pace.longest)
            turn.due = on_grid(turn.planned, pace.tick)
        if turn.due <= now:
            turn.planned += max(1, (now - turn.planned) // pace.sustain) * pace.sustain
            turn.due = on_grid(turn.planned, pace.sustain_tick)
            while turn.due <= now:
                turn.planned += pace.sustain
                turn.due = on_grid(turn.planned, pace.sustain_tick)
