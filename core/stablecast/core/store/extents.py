"""Runs of stored messages with their sizes and times, against which limits in bytes and ages are measured.

Numbers are kept in runs, never one by one. A run that is cut is assumed to have messages of one size: the parts differ
from the truth by less than the run, the sum does not. Runs come nearly in order, so adding is O(1) except for late
ones.
"""

from bisect import bisect_left
from collections import deque
from operator import attrgetter

import attrs

OVERHEAD_BYTES = 12
"""Bytes that a stored message costs beside its payload (P-128). Receiver-paced repositories do not count it."""

RUN_BYTES = 65_536
"""Neighbouring runs of one instant are joined up to this size in bytes, so that small ones cost little."""

_first = attrgetter("first")


@attrs.define
class Extent:
    """[first, stop) with `payload_bytes` in all, stored at `at` (ns)."""

    first: int
    stop: int
    payload_bytes: int
    at: int

    def share(self, number: int) -> int:
        """Return the bytes below `number`, which lies inside."""
        return self.payload_bytes * (number - self.first) // (self.stop - self.first)


@attrs.define
class Extents:
    """Disjoint runs, ascending, and their sums."""

    runs: deque[Extent] = attrs.field(factory=deque)
    messages: int = 0
    payload_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def oldest(self) -> Extent:
        """The run with the lowest numbers. Raises IndexError if there is none."""
        return self.runs[0]

    def add(self, first: int, stop: int, payload_bytes: int, at: int) -> None:
        """Add [first, stop), of which nothing was stored."""
        self.messages += stop - first
        self.payload_bytes += payload_bytes
        runs = self.runs
        if runs and runs[-1].stop > first:
            runs.insert(bisect_left(runs, first, key=_first), Extent(first, stop, payload_bytes, at))
        elif runs and (last := runs[-1]).stop == first and last.at == at and last.payload_bytes < RUN_BYTES:
            last.stop = stop
            last.payload_bytes += payload_bytes
        else:
            runs.append(Extent(first, stop, payload_bytes, at))

    def below(self, number: int, excess: int, overhead: int, horizon: int | None = None) -> int:
        """Return the least number >= `number` below which lie `excess` bytes and all that came by `horizon` (ns)."""
        for run in self.runs:
            if horizon is None or run.at > horizon:
                if excess <= 0:
                    break
                count = run.stop - run.first
                size = run.payload_bytes + overhead * count
                part = count if size <= excess else -(-excess * count // size)
                number = max(number, run.first + part)
                excess -= size
            else:
                number = max(number, run.stop)
                excess -= run.payload_bytes + overhead * (run.stop - run.first)
        return number

    def forget(self, number: int) -> None:
        """Remove everything below `number`."""
        runs = self.runs
        while runs and (run := runs[0]).first < number:
            if run.stop > number:
                gone = run.share(number)
                self._count(run.first, number, gone)
                run.first, run.payload_bytes = number, run.payload_bytes - gone
                return
            runs.popleft()
            self.messages -= run.stop - run.first
            self.payload_bytes -= run.payload_bytes

    def cut(self, number: int) -> None:
        """Remove everything from `number` on."""
        runs = self.runs
        while runs and runs[-1].stop > number:
            run = runs[-1]
            if run.first < number:
                kept = run.share(number)
                self._count(number, run.stop, run.payload_bytes - kept)
                run.stop, run.payload_bytes = number, kept
                return
            runs.pop()
            self._count(run.first, run.stop, run.payload_bytes)

    def remove(self, first: int, stop: int) -> None:
        """Remove [first, stop)."""
        runs, self.runs = self.runs, deque()
        self.messages = self.payload_bytes = 0
        for run in runs:
            for low, high in ((run.first, min(run.stop, first)), (max(run.first, stop), run.stop)):
                if low < high:
                    self.add(low, high, run.share(high) - run.share(low), run.at)

    def _count(self, first: int, stop: int, payload_bytes: int) -> None:
        self.messages -= stop - first
        self.payload_bytes -= payload_bytes
