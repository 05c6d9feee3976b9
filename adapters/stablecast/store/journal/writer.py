"""Group commit: the thread that writes and syncs while the event loop goes on.

The loop thread puts records on a queue; the thread takes all there are, writes them with as few `pwritev` calls as
IOV_MAX and the buffer length allow, syncs once, reports, and looks again. So whatever arrives during a sync shares the
next one.

To wake the thread and to be woken by it takes longer than a flush where flushes are short. There the loop's thread
writes and syncs itself, at the end of its turn, what came in that turn: if the last `STEADY` flushes were short, if it
is little, and if the thread has nothing to do. One flush that was not short, whoever saw it, and it is the thread's
again, which measures on. The descriptor is the thread's while it has records it has not done with, else the loop's.

The two threads share a deque, whose `append` and `popleft` are atomic, and a bell: a lock that the thread takes and the
loop gives back. The thread takes it *before* it empties the queue and the loop rings *after* it has put a record: no
record is ever left behind asleep. A bell that nobody has heard yet is not rung again. (An event does the same, with ten
calls in the way of a record.) The thread may wake once more for what it has taken already, finds the queue empty then,
and touches nothing: what the loop keeps for itself is never in the queue.

After a failed write or sync nothing is tried again: the kernel may have dropped the dirty pages and the next sync
would report a success that is none.
"""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from time import monotonic_ns

import attrs

from stablecast.store.journal.disk import Disk
from stablecast.store.journal.next_segment import Opening
from stablecast.store.journal.record_format import Block, Kind, seal
from stablecast.store.journal.segments import Record, Segment

IOV_MAX = os.sysconf("SC_IOV_MAX")
"""Bound of the system on the buffers of one vectored write."""

STEADY = 2
"""Flushes in a row that must have been short before the loop's thread does one."""

SMALL_BYTES = 4 << 10
"""Up to so many bytes of records the loop writes itself; with more, waking the thread counts little."""


@attrs.define
class Syncs:
    """How many there were, and how long the last and the longest took, in ns. Written by the thread alone."""

    count: int = 0
    last_ns: int = 0
    longest_ns: int = 0

    def add(self, took_ns: int) -> None:
        """One more."""
        self.count, self.last_ns, self.longest_ns = self.count + 1, took_ns, max(self.longest_ns, took_ns)


class Writer:
    """The thread and its queue, and what the loop's thread does in its place."""

    def __init__(
        self,
        disk: Disk,
        tell: Callable[..., None],
        committed: Callable[[int], None],
        failed: Callable[[Exception], None],
        stopped: Callable[[], None],
    ) -> None:
        """Prepares the thread.

        Args:
            disk: How to write.
            tell: Calls one of these three on the loop, from whichever thread: with the arguments that follow it.
            committed: Told how many records, in the order of `put`, are now synced.
            failed: Told the first error; nothing is written or synced after it.
            stopped: The last thing called.
        """
        self.syncs = Syncs()
        self._disk = disk
        self._tell = tell
        self._committed = committed
        self._failed = failed
        self._stopped = stopped
        self._queue: deque[Record] = deque()
        self._held: list[Record] = []
        self._held_bytes = 0
        self._given = 0  # records that were queued, and how many of them the thread has done with
        self._done = 0
        self._short = 0  # flushes since the last that was not
        self._broken: Exception | None = None
        self._bell = threading.Lock()
        self._bell.acquire()
        self._closing = False
        self._aborted = False
        self._segment: Segment | None = None
        self._opening: Opening | None = None  # of the segment that comes after it
        self._fd = -1
        self._end = 0
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self, soon: Callable[[Callable[[], None]], object]) -> None:
        """Starts the thread; `soon` calls at the end of the loop's turn."""
        self._soon = soon
        self._thread.start()

    def put(self, record: Record) -> None:
        """Takes a record; how much may wait is bounded by the owner, who counts the bytes."""
        self._held.append(record)
        self._held_bytes += record.size
        if self._held_bytes > SMALL_BYTES or not self._here(record.segment):
            self._pass_on()
        elif len(self._held) == 1:
            self._soon(self._end_turn)

    def close(self) -> None:
        """Lets the thread end when everything taken is synced; returns at once."""
        self._closing = True
        self._pass_on()

    def abort(self) -> None:
        """Ends the thread after the system call it is in, and waits for that."""
        self._aborted = True
        self._ring()
        self._thread.join()

    def _here(self, segment: Segment) -> bool:
        """Whether the loop's thread writes to a segment: none is to be opened, and the other thread has nothing."""
        return self._short >= STEADY and self._given == self._done and segment is self._segment

    def _pass_on(self) -> None:
        """The thread gets what was held for the end of the turn."""
        held, self._held, self._held_bytes = self._held, [], 0
        self._given += len(held)
        self._queue.extend(held)
        self._ring()

    def _end_turn(self) -> None:
        """Writes and syncs, on the loop, what was held; all that was passed on is done with."""
        held, self._held, self._held_bytes = self._held, [], 0
        if not held or self._aborted:
            return
        try:
            self._commit(held[0].segment, held)
        except Exception as error:  # noqa: BLE001 - the thread ends by it, as if it had met with it
            self._given += len(held)
            self._broken = error
            self._ring()
            return
        self._committed(len(held))

    def _ring(self) -> None:
        """Wake the thread. Nobody else rings, so a bell that is taken stays so until it is given back here."""
        if self._bell.locked():
            self._bell.release()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
            if self._fd >= 0 and not self._aborted:
                self._give_back()
        except Exception as error:  # noqa: BLE001 - whatever it is, a dead thread must not look like a slow disk
            self._tell(self._failed, error)
        finally:
            if self._opening is not None:
                self._opening.drop()
            if self._fd >= 0:
                os.close(self._fd)
            self._tell(self._stopped)

    def _turn(self) -> bool:
        self._bell.acquire()
        if self._broken is not None:
            raise self._broken
        last = self._closing  # read first: what was put before close() is in this batch
        batch = [self._queue.popleft() for _ in range(len(self._queue))]
        parts = [(segment, list(records)) for segment, records in groupby(batch, key=attrgetter("segment"))]
        for at, (segment, records) in enumerate(parts, start=1):
            if self._aborted:
                break
            if segment is not self._segment:
                self._switch(segment)
            if at < len(parts):
                self._opening = Opening(parts[at][0], self._disk)
            self._commit(segment, records)
        if self._aborted:
            return False
        if batch:
            self._done += len(batch)
            self._tell(self._committed, len(batch))
        return not last

    def _commit(self, segment: Segment, records: list[Record]) -> None:
        """Writes and syncs records of one segment. The segment before it is synced already: so is all before them."""
        step = self._disk.step
        offset = records[0].offset
        buffers: list[Block] = []
        checkpoint = False
        for record in records:
            buffers.append(seal(record.kind, record.ticket, offset, record.parts, segment.salt))
            buffers += record.parts
            checkpoint = checkpoint or record.kind is Kind.CHECKPOINT
        step("checkpoint" if checkpoint else "append")
        for some in self._portions(buffers):
            offset = self._write_all(some, offset)
            step("written")
        self._end = offset
        if not self._aborted:
            began = monotonic_ns()
            self._disk.sync(self._fd)
            took = monotonic_ns() - began
            self.syncs.add(took)
            self._short = self._short + 1 if took <= self._disk.short_ns else 0
            step("checkpoint-synced" if checkpoint else "synced")

    def _portions(self, buffers: list[Block]) -> Iterator[list[Block]]:
        """The buffers of each write."""
        portion: list[Block] = []
        size = 0
        for buffer in buffers:
            if portion and (len(portion) >= IOV_MAX or size + len(buffer) > self._disk.buffer_bytes):
                yield portion
                portion, size = [], 0
            portion.append(buffer)
            size += len(buffer)
        yield portion

    def _switch(self, segment: Segment) -> None:
        """Closes the segment that is full and takes the next."""
        if self._fd >= 0:
            self._give_back()
            os.close(self._fd)
            self._fd = -1
        opening, self._opening = self._opening or Opening(segment, self._disk), None
        self._fd = opening.descriptor()
        self._segment = segment

    def _give_back(self) -> None:
        """What was reserved for the segment and is not used is free again."""
        if self._disk.preallocate:
            os.ftruncate(self._fd, self._end)
            self._disk.sync(self._fd)

    def _write_all(self, buffers: list[Block], offset: int) -> int:
        """Writes the buffers, however short the single writes are, and returns the offset behind them."""
        while buffers and not self._aborted:
            written = self._disk.write(self._fd, buffers, offset)
            if written <= 0:
                raise OSError(errno.EIO, "nothing was written")
            offset += written
            buffers = _behind(buffers, written)
        return offset


def _behind(buffers: list[Block], written: int) -> list[Block]:
    """Returns what a write of `written` bytes left over."""
    for at, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[at + 1 :]]
        written -= len(buffer)
    return []
