"""Group commit: a thread that writes and syncs records while the event loop goes on.

The loop's thread puts records on a queue. The writer's thread removes all of them, writes them with as few `pwritev`
calls as IOV_MAX and the buffer length allow, syncs once, and reports. Records that arrive during a sync share the next
one.

**Flushes on the loop.** Where a flush is short, waking another thread takes longer than the flush. There the loop's
thread writes and syncs the records of its turn itself, when the turn ends. It does so if the last `STEADY` flushes were
short, the records are few bytes, and the writer's thread has none. After one flush that was not short, the writer's
thread takes over and measures again. The descriptor belongs to the writer's thread while that has records, else to the
loop's.

**The bell.** The threads share a deque, whose `append` and `popleft` are atomic, and a lock as a bell. The writer's
thread acquires the bell *before* it empties the queue. The loop releases it *after* it has put a record. So no record
is left behind while the thread sleeps. A bell that rings already is not rung again. (An event does the same with ten
more calls for each record.) The thread may wake once too often; then the queue is empty, and it touches nothing.

**Failures.** After a failed write or sync nothing is tried again. The kernel may have dropped the dirty pages, and the
next sync would report a success that did not happen.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

from stablecast.core.machine.durations import Durations
from stablecast.runtime import machine
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.lock import DirectoryLock, check_name
from stablecast.store.journal.record_format import Block, JournalError, RecordKind, seal
from stablecast.store.journal.segments import JournalRecord, JournalSegment, open_for_writing

if TYPE_CHECKING:
    from concurrent.futures import Future

IOV_MAX = os.sysconf("SC_IOV_MAX")
"""Buffers of one vectored write at most, by the system."""

STEADY = 2
"""Short flushes in a row before the loop's thread does one."""

SMALL_BYTES = 4 << 10
"""Bytes of records that the loop's thread writes at most. With more, waking the writer's thread costs little."""


@attrs.define
class Syncs:
    """The count of syncs, their times, and the last and the longest in ns. The thread that syncs updates it."""

    count: int = 0
    last_ns: int = 0
    longest_ns: int = 0
    times: Durations = attrs.field(factory=Durations)

    def add(self, took_ns: int) -> None:
        self.count, self.last_ns, self.longest_ns = self.count + 1, took_ns, max(self.longest_ns, took_ns)
        self.times.add(took_ns)


class NextSegment:
    """A segment that a thread of its own opens.

    Opening takes two syncs. If the writer's thread did that between two flushes, messages would wait for all of them.
    """

    def __init__(self, segment: JournalSegment, disk: Disk, lock: DirectoryLock) -> None:
        """Begin to open the segment, if the directory is still the locked one."""
        self._descriptor: Future[int] = machine.threads.future()
        machine.threads.start("opening", self._run, segment, disk, lock)

    def descriptor(self) -> int:
        """Wait until the segment is open; return its descriptor, which the caller closes.

        Raises:
            FilesLostError: The directory has another name, or none.
            OSError: The segment cannot be opened.
        """
        return self._descriptor.result()

    def drop(self) -> None:
        """Wait until the segment is open, and close it."""
        with suppress(OSError, JournalError):  # If it could not be opened, there is nothing to close.
            machine.files.close(self.descriptor())

    def _run(self, segment: JournalSegment, disk: Disk, lock: DirectoryLock) -> None:
        try:
            lock.check()
            disk.step("roll")
            descriptor = open_for_writing(segment, disk.sync, lock, disk.segment_bytes if disk.preallocate else 0)
            disk.step("rolled")
        except Exception as error:  # noqa: BLE001 - the writer raises it
            self._descriptor.set_exception(error)
        else:
            self._descriptor.set_result(descriptor)


class JournalWriter:
    """The thread, its queue, and the flushes that the loop's thread does instead."""

    def __init__(
        self,
        disk: Disk,
        tell: Callable[..., None],
        committed: Callable[[int], None],
        failed: Callable[[Exception], None],
        stopped: Callable[[], None],
        lock: DirectoryLock,
    ) -> None:
        """Make a thread that has not started.

        Args:
            disk: The system calls, and their limits.
            tell: Calls one of the next three on the loop with its arguments; any thread may use it.
            committed: Gets the count of records that are now synced, in the order of `put`.
            failed: Gets the first error; nothing is written or synced after it.
            stopped: Called last.
            lock: The lock of the directory.
        """
        self.syncs = Syncs()
        self._disk = disk
        self._tell = tell
        self._committed = committed
        self._failed = failed
        self._stopped = stopped
        self._lock = lock
        self._queue: deque[JournalRecord] = deque()
        self._held: list[JournalRecord] = []
        self._held_bytes = 0
        self._given = 0  # Records that were queued.
        self._done = 0  # Records that the thread has synced of them.
        self._short = 0  # Short flushes in a row.
        self._broken: Exception | None = None
        self._bell = machine.threads.lock()
        self._bell.acquire()
        self._closing = False
        self._aborted = False
        self._segment: JournalSegment | None = None
        self._next: NextSegment | None = None
        self._fd = -1
        self._end = 0
        self._thread: machine.Thread | None = None

    def start(self, soon: Callable[[Callable[[], None]], object]) -> None:
        """Start the thread; `soon` schedules a call for the end of the loop's turn."""
        self._soon = soon
        self._thread = machine.threads.start("journal", self._run)

    def put(self, record: JournalRecord) -> None:
        """Queue a record. The owner counts the bytes, and bounds how many wait."""
        self._held.append(record)
        self._held_bytes += record.size
        if self._held_bytes > SMALL_BYTES or not self._may_flush_here(record.segment):
            self._pass_on()
        elif len(self._held) == 1:
            self._soon(self._end_turn)

    def close(self) -> None:
        """End the thread when all records are synced; return at once."""
        self._closing = True
        self._pass_on()

    def abort(self) -> None:
        """End the thread after its current system call, and wait for it."""
        self._aborted = True
        self._ring()
        if self._thread is not None:
            self._thread.join()

    def _may_flush_here(self, segment: JournalSegment) -> bool:
        """Return True if the loop's thread may write: the segment is open, and the other thread has no records."""
        # `_done` is read once and only grows, so a stale value costs a wake-up and never an order of records.
        return self._short >= STEADY and self._given == self._done and segment is self._segment

    def _pass_on(self) -> None:
        """Queue the records that were held for the end of the turn."""
        held, self._held, self._held_bytes = self._held, [], 0
        self._given += len(held)
        self._queue.extend(held)
        self._ring()

    def _end_turn(self) -> None:
        """Write and sync the held records on the loop. The other thread has none."""
        held, self._held, self._held_bytes = self._held, [], 0
        if not held or self._aborted:
            return
        try:
            self._commit(held[0].segment, held)
        except Exception as error:  # noqa: BLE001 - the thread raises it, so that there is one way to fail
            self._given += len(held)
            self._broken = error
            self._ring()
            return
        self._committed(len(held))

    def _ring(self) -> None:
        """Wake the thread. Only the loop releases the bell, so a bell that is locked here stays locked until then."""
        if self._bell.locked():
            self._bell.release()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
            if self._fd >= 0 and not self._aborted:
                self._give_back()
        except Exception as error:  # noqa: BLE001 - a dead thread must not look like a slow disk
            self._tell(self._failed, error)
        finally:
            if self._next is not None:
                self._next.drop()
            if self._fd >= 0:
                machine.files.close(self._fd)
            self._tell(self._stopped)

    def _turn(self) -> bool:
        self._bell.acquire()
        if self._broken is not None:
            raise self._broken
        last = self._closing  # Read first: records that were put before close() are in this batch.
        batch = [self._queue.popleft() for _ in range(len(self._queue))]
        parts = [(segment, list(records)) for segment, records in groupby(batch, key=attrgetter("segment"))]
        for at, (segment, records) in enumerate(parts, start=1):
            if self._aborted:
                break
            if segment is not self._segment:
                self._switch(segment)
            if at < len(parts):
                # The next segment is opened while this one is flushed: both take about as long.
                self._next = NextSegment(parts[at][0], self._disk, self._lock)
            self._commit(segment, records)
        if self._aborted:
            return False
        if batch:
            self._done += len(batch)
            self._tell(self._committed, len(batch))
        return not last

    def _commit(self, segment: JournalSegment, records: list[JournalRecord]) -> None:
        """Write and sync records of one segment. All earlier records are synced, also those of earlier segments."""
        step = self._disk.step
        offset = records[0].offset
        buffers: list[Block] = []
        checkpoint = False
        for record in records:
            # Each header names the offset up to which the segment was synced before. Recovery tells damage from a torn
            # end by it.
            buffers.append(seal(record.kind, record.ticket, offset, record.parts, segment.salt))
            buffers += record.parts
            checkpoint = checkpoint or record.kind is RecordKind.CHECKPOINT
        step("checkpoint" if checkpoint else "append")
        for some in self._portions(buffers):
            offset = self._write_all(some, offset)
            step("written")
        self._end = offset
        if not self._aborted:
            began = machine.clock.monotonic_ns()
            self._disk.sync(self._fd)
            # The kernel syncs a file without a name as well, but no later start would find the records.
            if not machine.files.status(self._fd).st_nlink:
                check_name(segment.path, segment.identity)
            took = machine.clock.monotonic_ns() - began
            self.syncs.add(took)
            self._short = self._short + 1 if took <= self._disk.short_ns else 0
            step("checkpoint-synced" if checkpoint else "synced")

    def _portions(self, buffers: list[Block]) -> Iterator[list[Block]]:
        portion: list[Block] = []
        size = 0
        for buffer in buffers:
            if portion and (len(portion) >= IOV_MAX or size + len(buffer) > self._disk.buffer_bytes):
                yield portion
                portion, size = [], 0
            portion.append(buffer)
            size += len(buffer)
        yield portion

    def _switch(self, segment: JournalSegment) -> None:
        """Close the full segment and go on with the next."""
        if self._fd >= 0:
            self._give_back()
            machine.files.close(self._fd)
            self._fd = -1  # Opening may fail, and then `_run` must not close the old one again.
        following, self._next = self._next or NextSegment(segment, self._disk, self._lock), None
        self._fd = following.descriptor()
        self._segment = segment

    def _give_back(self) -> None:
        """Free the reserved room of the segment that is not used."""
        if self._disk.preallocate:
            machine.files.truncate(self._fd, self._end)
            self._disk.sync(self._fd)

    def _write_all(self, buffers: list[Block], offset: int) -> int:
        """Write the buffers, in as many calls as the system takes; return the offset after them."""
        while buffers and not self._aborted:
            written = self._disk.write(self._fd, buffers, offset)
            if written <= 0:  # Without this check the loop might never end.
                raise OSError(errno.EIO, "nothing was written")
            offset += written
            buffers = _unwritten(buffers, written)
        return offset


def _unwritten(buffers: list[Block], written: int) -> list[Block]:
    """Return the buffers that a write of `written` bytes left over."""
    for at, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[at + 1 :]]
        written -= len(buffer)
    return []
