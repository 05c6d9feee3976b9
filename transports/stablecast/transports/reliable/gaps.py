"""Missing datagrams: when to request them, and when to give them up.

Numbers are extended. A datagram is missing when a later datagram, or a session message, shows that it was sent. It is
requested after the initial backoff, and again after each further backoff. Both vary at random: of many receivers that
lost the same datagram only the fastest requests it, and the repair silences the others. An NCF silences the datagram
for the suppress interval, which replaces the running backoff (U22).

A datagram is given up when it was missing for the generation interval, or when the source no longer has it. In the
latter case it is below the trail, and it is never requested.

Each datagram has a deadline of its own, and all datagrams due at one time share a NAK. (The product starts one timer
with the first loss and lets later ones wait for it, up to a second. The observed traffic shows a cost and no gain.)
"""

import heapq
from itertools import islice

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.transports.reliable.effects import DatagramsLost, LossReason, ReceiverEffect
from stablecast.transports.reliable.settings import MAX_MISSING, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics

STALE_DEADLINES = 64
"""Stale deadlines that may remain in the heap, besides one deadline for each missing datagram."""


@attrs.define
class DatagramGap:
    """A missing datagram: its detection (ns), its next request (ns; None: never), and the number of requests."""

    found_at: int
    due: int | None
    asked: int = 0


@attrs.define
class Gaps:
    """The missing datagrams of one session.

    Attributes:
        high: The newest number known to be sent; None before the first datagram.
        trail: The oldest number that the source has, as far as is known.
        missing: By number; also in the order of detection, because new gaps are above all old ones.
        deadlines: Heap of request times and numbers. An entry that differs from the gap's `due` is stale.
    """

    settings: ReceiverSettings
    seeded: Seeded
    statistics: ReceiverStatistics
    high: int | None = None
    trail: int = 0
    missing: dict[int, DatagramGap] = attrs.field(factory=dict)
    deadlines: list[tuple[int, int]] = attrs.field(factory=list)

    def begin(self, high: int) -> None:
        """Begin after `high`: the receiver joined later, so earlier datagrams are not missing."""
        self.high = self.trail = high

    def on_datagram(self, number: int, again: bool, now: int, out: list[ReceiverEffect]) -> bool:
        """Note the arrival of a datagram, and return whether it is new. Call `begin` first."""
        assert self.high is not None
        if number > self.high:
            if number > self.high + 1:
                self.extend(number - 1, now, out)
            self.high = number
            return True
        gap = self.missing.pop(number, None)
        if gap is None:
            self.statistics.duplicate_data += 1
            return False
        if not again:
            self.statistics.out_of_order += 1
        if gap.asked:
            self.statistics.repaired(now - gap.found_at, gap.asked)
        self._tidy()
        return True

    def extend(self, high: int, now: int, out: list[ReceiverEffect]) -> None:
        """Note that everything up to `high` was sent: numbers not yet received are missing. Call `begin` first."""
        assert self.high is not None
        first, self.high = self.high + 1, max(self.high, high)
        stop = self.high + 1
        self.statistics.lost += stop - first
        gone = min(max(first, self.trail), stop)
        self._give_up(first, gone, LossReason.WINDOW, out)
        # A hostile source may announce any number: a gap for each missing datagram could fill the memory.
        start = max(gone, stop - MAX_MISSING)
        excess = max(0, len(self.missing) + stop - start - MAX_MISSING)
        self._lose(list(islice(self.missing, excess)), LossReason.TOO_MANY, out)
        self._give_up(gone, start, LossReason.TOO_MANY, out)
        settings = self.settings
        due = now + self._varied(settings.initial_backoff_ns) if settings.send_naks and start < stop else None
        for number in range(start, stop):
            self.missing[number] = DatagramGap(now, due)
            if due is not None:
                heapq.heappush(self.deadlines, (due, number))

    def advance(self, trail: int, out: list[ReceiverEffect]) -> None:
        """Note that the source no longer has datagrams below `trail`."""
        if trail <= self.trail:
            return
        self.trail = trail
        lost: list[int] = []
        for number in self.missing:
            # Numbers ascend, so the first one that the source still has ends the search.
            if number >= trail:
                break
            lost.append(number)
        self._lose(lost, LossReason.WINDOW, out)

    def refuse(self, numbers: list[int], now: int) -> None:
        """Note that the source does not send these numbers now."""
        if not self.settings.send_naks:
            return
        due = now + self.settings.suppress_ns
        for number in numbers:
            gap = self.missing.get(number)
            if gap is not None:
                gap.due = due
                heapq.heappush(self.deadlines, (due, number))
        self._tidy()

    def ask(self, now: int) -> list[int]:
        """Return the numbers to request now, ascending."""
        due: list[int] = []
        while self.deadlines and self.deadlines[0][0] <= now:
            deadline, number = heapq.heappop(self.deadlines)
            gap = self.missing.get(number)
            if gap is not None and gap.due == deadline:
                gap.due = None
                due.append(number)
        if due:
            # One backoff for all of them, so that they share a NAK next time as well.
            again = now + self._varied(self.settings.backoff_ns)
            for number in due:
                gap = self.missing[number]
                gap.due = again
                gap.asked += 1
                heapq.heappush(self.deadlines, (again, number))
        return sorted(due)

    def expire(self, now: int, out: list[ReceiverEffect]) -> None:
        """Give up datagrams that were missing for the generation interval."""
        oldest = now - self.settings.generation_ns
        lost: list[int] = []
        for number, gap in self.missing.items():
            if gap.found_at > oldest:
                break
            lost.append(number)
        self._lose(lost, LossReason.TIME, out)

    def next(self) -> int | None:
        """Return when `ask` or `expire` is due, in nanoseconds."""
        if not self.missing:
            return None
        expiry = next(iter(self.missing.values())).found_at + self.settings.generation_ns
        while self.deadlines:
            due, number = self.deadlines[0]
            gap = self.missing.get(number)
            if gap is not None and gap.due == due:
                return min(due, expiry)
            # A stale deadline would wake the driver up for nothing.
            heapq.heappop(self.deadlines)
        return expiry

    def _lose(self, numbers: list[int], reason: LossReason, out: list[ReceiverEffect]) -> None:
        """Give up these missing numbers, which must be ascending."""
        start = 0
        for place, number in enumerate(numbers):
            del self.missing[number]
            if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
                self._give_up(numbers[start], number + 1, reason, out)
                start = place + 1
        if numbers:
            self._tidy()

    def _give_up(self, first: int, stop: int, reason: LossReason, out: list[ReceiverEffect]) -> None:
        if first < stop:
            if reason is LossReason.WINDOW:
                self.statistics.unrecovered_txw += stop - first
            else:
                self.statistics.unrecovered_tmo += stop - first
            out.append(DatagramsLost(first, stop - first, reason))

    def _varied(self, span: int) -> int:
        return self.seeded.between(span // 2, span * 3 // 2)

    def _tidy(self) -> None:
        """Rebuild the heap when most of its deadlines are stale, so that its size stays bounded."""
        if len(self.deadlines) > 2 * len(self.missing) + STALE_DEADLINES:
            self.deadlines = [(gap.due, number) for number, gap in self.missing.items() if gap.due is not None]
            heapq.heapify(self.deadlines)
