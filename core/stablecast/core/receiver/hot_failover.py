"""Hot failover: one stream of numbered messages that several sources send, each message once for the application.

    EMPTY --first--> COMPLETE --gap--> GAPPED --filled--> COMPLETE
                                       GAPPED --missed--> GAPPED

The sources of a topic send the same messages, and give each the same *hot number*. The first copy of a number wins,
whichever source sent it, and later copies are duplicates. The sources are otherwise independent: each has stores and
sequence numbers of its own, and the receiver recovers from the stores of each.

* A number is *taken* when the application is handed its message. It stays taken, so that no copy comes twice. An
  application that is handed nothing more may return a number (`put_back`).
* While a number below the newest is not taken, the stream has a *gap*. A slower source may still bring it. Each source
  sends its numbers in ascending order, so a source that brought a higher number has *passed* it.
* When all joined sources have passed a number, it is *missed*: all of them lost it. It is reported once. A copy that
  comes later all the same is taken, because a late message is better than none.
* Numbers below the first one are taken when they come. They belong to a source that is behind, or that returned.

The order is that of arrival: a number that only a slower source has comes late. A machine that held messages back would
add the delay of the slowest source, against which hot failover exists.

Numbers are extended; the wire has 32 bits. Sources are the lives that send.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.ranges import RangeSet

MAX_GAPS = 1000
"""Gaps in the taken numbers. Beyond that, numbers below the oldest gap are forgotten, and could come twice."""


class HotState(IntEnum):
    """The taken numbers: none, all up to the newest, or with a gap that a source may still fill."""

    EMPTY = 0
    COMPLETE = 1
    GAPPED = 2


class HotEvent(IntEnum):
    FIRST = 0
    GAP = 1
    FILLED = 2
    MISSED = 3


class HotChart(Chart):
    states = States.from_enum(HotState, initial=HotState.EMPTY, use_enum_instance=True)

    first = states.EMPTY.to(states.COMPLETE)
    gap = states.COMPLETE.to(states.GAPPED)
    filled = states.GAPPED.to(states.COMPLETE)
    missed = states.GAPPED.to.itself(internal=True, on="report_missed")


@attrs.define
class HotFailover:
    """The numbers of one stream.

    Attributes:
        taken: The numbers that the application was handed.
        newest: The highest number that was ever taken, None before the first.
        floor: No number below it is missed: the first number, or the end of the newest range that was reported.
        passed: By joined source, the number above the newest that it brought; None before its first.
        outbox: Missed ranges [first, stop) to report, until `take_missed`.
    """

    state: HotState = HotState.EMPTY
    taken: RangeSet = attrs.field(factory=RangeSet)
    newest: int | None = None
    floor: int = 0
    passed: dict[int, int | None] = attrs.field(factory=dict)
    outbox: list[tuple[int, int]] = attrs.field(factory=list)

    def extended(self, wire: int) -> int:
        """Return the extended number for one of 32 bits. Before the first number there is room below it."""
        return serial.MODULUS + wire if self.newest is None else serial.extend(wire, self.newest)

    def join(self, source: int) -> None:
        """Count on a source: numbers that it has not passed are not missed yet."""
        self.passed.setdefault(source, None)

    def leave(self, source: int) -> None:
        if source in self.passed:
            del self.passed[source]
            self._review()

    def fresh(self, number: int) -> bool:
        """Return whether no copy of the number was taken."""
        return number not in self.taken

    def take(self, source: int, number: int) -> bool:
        """Take the copy of a number that a source brought; return False if it is a duplicate."""
        if source in self.passed:
            known = self.passed[source]
            self.passed[source] = number + 1 if known is None else max(known, number + 1)
        fresh = bool(self.taken.add(number, number + 1))
        self.newest = number if self.newest is None else max(self.newest, number)
        if self.state is HotState.EMPTY:
            self.floor = number
            fire(HOT, self, HotEvent.FIRST)
        if len(self.taken) > MAX_GAPS:
            self.taken.forget(self.taken.ranges[1][0])
            self.floor = max(self.floor, self.taken.ranges[0][0])
        self._review()
        return fresh

    def put_back(self, source: int, number: int) -> None:
        """Return a number whose message the application was not handed after all. Its source has yet to pass it."""
        self.taken.remove(number, number + 1)
        known = self.passed.get(source)
        if known is not None:
            self.passed[source] = min(known, number)
        self._review()

    def take_missed(self) -> list[tuple[int, int]]:
        """Return the ranges [first, stop) that all sources lost, and empty the outbox."""
        missed, self.outbox = self.outbox, []
        return missed

    def report_missed(self, stop: int) -> None:
        """Report the gaps below a number that all joined sources have passed."""
        self.outbox += self.taken.missing(self.floor, stop)
        self.floor = stop

    def _review(self) -> None:
        """Apply the rules after a number was taken, or a source joined or left."""
        newest = self.taken.last
        if newest is None:
            return
        if self.state is HotState.COMPLETE and self.taken.missing(self.floor, newest):
            fire(HOT, self, HotEvent.GAP)
        if self.state is not HotState.GAPPED:
            return
        # A source that has brought nothing yet may bring everything.
        passed = min((self.floor if stop is None else stop for stop in self.passed.values()), default=newest)
        if self.taken.missing(self.floor, min(passed, newest)):
            fire(HOT, self, HotEvent.MISSED, min(passed, newest))
        if not self.taken.missing(self.floor, newest):
            fire(HOT, self, HotEvent.FILLED)


_S = HotState
_E = HotEvent
HOT = lower(
    HotChart,
    HotFailover,
    HotState,
    HotEvent,
    reject={
        _S.EMPTY: (_E.GAP, _E.FILLED, _E.MISSED),
        _S.COMPLETE: (_E.FIRST, _E.FILLED, _E.MISSED),
        _S.GAPPED: (_E.FIRST, _E.GAP),
    },
)
