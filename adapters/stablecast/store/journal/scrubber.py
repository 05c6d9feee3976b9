"""The scrubber: it reads every synced record of a running journal once in a period, so that damage is found in time.

A disk loses single records silently. While nobody reads them, nobody misses them, and a second disk may lose the same
ones. The fetcher's thread reads a piece at a time, at a bounded rate, and only while it has nothing else to do. A
segment with a bad record is examined by its owner, record by record.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import attrs

from stablecast.runtime import machine
from stablecast.store.journal.disk import ScrubPace
from stablecast.store.journal.fetcher import Fetcher
from stablecast.store.journal.record_format import FILE_HEADER_BYTES, JournalError
from stablecast.store.journal.segments import JournalSegment, RecordPlace

BUSY_SECONDS = 0.25
"""Wait while the fetcher has other jobs."""


EXAMINED = 32
"""Records of a damaged segment that are read at one time."""


@attrs.frozen
class SegmentExamination:
    """The streams and records of a damaged segment, which get fewer while they are read; `report` gets bad ones."""

    fetcher: Fetcher
    left: list[tuple[int, RecordPlace]]
    report: Callable[[int, RecordPlace, JournalError], None]

    def read(self) -> None:
        """Read some records, and then the others."""
        some = [self.left.pop() for _ in range(min(EXAMINED, len(self.left)))]

        def found(blocks: list[bytes | JournalError]) -> None:
            for (stream, place), block in zip(some, blocks, strict=True):
                if isinstance(block, JournalError):
                    self.report(stream, place, block)
            self.read()

        if some:
            self.fetcher.fetch([place for _, place in some], found)


@attrs.define
class Scrubs:
    """The bytes verified so far, the passes that ended, and the time of the last end (ns of the epoch; 0: none)."""

    verified: int = 0
    passes: int = 0
    ended_ns: int = 0


class Scrubber:
    """One pass after another over the segments of a journal. All methods run on the loop of the journal."""

    def __init__(
        self,
        pace: ScrubPace,
        verified: bool,
        fetcher: Fetcher,
        synced: Callable[[], dict[JournalSegment, int]],
        examine: Callable[[JournalSegment], None],
    ) -> None:
        """Make a scrubber that has not started.

        Args:
            pace: The period and the rate.
            verified: True if the open verified all records.
            fetcher: Reads the records.
            synced: Returns the segments in use, and the offset in each up to which it is synced.
            examine: Called with a segment in which a record is bad.
        """
        self.done = Scrubs()
        self._pace = pace
        self._verified_at_open = verified
        self._fetcher = fetcher
        self._synced = synced
        self._examine = examine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self._hurried = False
        self._reading = False
        self._again = False
        self._left: deque[JournalSegment] = deque()
        self._offset = FILE_HEADER_BYTES

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the first pass: after one period if the open verified everything already, else now."""
        self._loop = loop
        if self._pace.period_s:
            self._after(self._pace.period_s if self._verified_at_open else 0, self._begin)

    def stop(self) -> None:
        """End the pass that is under way; no other begins."""
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()

    def hurry(self) -> None:
        """Begin a pass now, at the highest rate."""
        self._hurried = True
        if self._reading:
            self._again = True
        elif self._loop is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._begin()

    def _begin(self) -> None:
        assert self._loop is not None
        self._began = self._loop.time()
        self._left = deque(self._synced())
        self._offset = FILE_HEADER_BYTES
        self._step()

    def _step(self) -> None:
        """Read the next piece, if nobody waits for the fetcher."""
        if self._fetcher.busy:
            self._after(BUSY_SECONDS, self._step)
            return
        synced = self._synced()
        while self._left:
            segment = self._left[0]
            # A segment that was deleted meanwhile is not read.
            stop = synced.get(segment, 0)
            if self._offset < stop:
                self._reading = True
                self._fetcher.verify(
                    segment, self._offset, stop, partial(self._verified, segment, sum(synced.values()))
                )
                return
            self._next()
        self._end()

    def _verified(self, segment: JournalSegment, size: int, reached: int | JournalError) -> None:
        self._reading = False
        if self._loop is None:
            return
        if self._again:
            self._again = False
            self._begin()
            return
        if isinstance(reached, JournalError) or reached == self._offset:
            # The owner examines the rest of this segment too.
            self._next()
            self._examine(segment)
            self._after(0, self._step)
            return
        count, self._offset = reached - self._offset, reached
        self.done.verified += count
        rate = self._pace.most_bytes if self._hurried else self._pace.rate(size)
        self._after(count / rate, self._step)

    def _next(self) -> None:
        self._left.popleft()
        self._offset = FILE_HEADER_BYTES

    def _end(self) -> None:
        assert self._loop is not None
        self.done.passes += 1
        self.done.ended_ns = machine.clock.wall_ns()
        self._hurried = False
        if self._pace.period_s:
            self._after(max(0.0, self._began + self._pace.period_s - self._loop.time()), self._begin)

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        if self._loop is not None:
            self._timer = self._loop.call_later(seconds, then)
