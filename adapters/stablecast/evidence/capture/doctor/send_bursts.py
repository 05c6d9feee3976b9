"""Bursts of a source: those of a source at its data rate limit have the same size and come at equal times.

The limit is a number of bytes in each interval. A source with more to send sends them at the beginning of each.
"""

from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND

PAUSE_NS: Final = 2 * MILLISECOND
"""A longer pause ends a burst."""

FEWEST: Final = 4
"""Datagrams of a burst, at least: periodic single datagrams are the habit of an application."""

TOLERANCE: Final = 0.25
"""The share by which the time between two bursts may differ from the first such time."""


@attrs.frozen
class BurstRun:
    """Bursts in a row: their number, the time from the first to the last (ns), the bytes of the largest, its frame."""

    bursts: int = 0
    span_ns: int = 0
    octets: int = 0
    frame: int = 0

    @property
    def period_ns(self) -> float:
        return self.span_ns / max(1, self.bursts - 1)


@attrs.define
class SendBursts:
    """The bursts of one source; `longest` is the longest run of equal ones."""

    longest: BurstRun = attrs.field(factory=BurstRun)
    _began_ns: int = 0
    _last_ns: int = 0
    _frame: int = 0
    _octets: int = 0
    _count: int = 0
    _largest: int = 0
    _run: BurstRun = attrs.field(factory=BurstRun)
    _run_ns: int = 0
    _before_ns: int = 0

    def add(self, time_ns: int, octets: int, frame: int) -> None:
        """Count a datagram that was sent for the first time, at `time_ns`, with this many octets."""
        if self._count and time_ns - self._last_ns > PAUSE_NS:
            self._end()
        if not self._count:
            self._began_ns, self._frame = time_ns, frame
        self._last_ns = time_ns
        self._octets += octets
        self._count += 1
        self._largest = max(self._largest, octets)

    def _end(self) -> None:
        """End a burst, and join it to the run of those before it."""
        run, period = self._run, self._began_ns - self._before_ns
        alike = self._count >= FEWEST and abs(self._octets - run.octets) <= self._largest
        regular = run.bursts < 2 or abs(period - run.period_ns) <= TOLERANCE * run.period_ns
        if run.bursts and alike and regular:
            octets = max(run.octets, self._octets)
            self._run = BurstRun(run.bursts + 1, self._began_ns - self._run_ns, octets, run.frame)
        else:
            self._run = BurstRun(1, 0, self._octets, self._frame)
            self._run_ns = self._began_ns
        if self._run.bursts > self.longest.bursts:
            self.longest = self._run
        self._before_ns = self._began_ns
        self._octets = self._count = self._largest = 0
