"""The thread that reads blocks, deletes segments and writes summaries, so that a slow disk delays no live message.

The thread does its jobs in order. Therefore it deletes a segment after all reads from it, and it closes the segment's
descriptor itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from stablecast.runtime import machine
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.lock import DirectoryLock, FilesLostError, check_name
from stablecast.store.journal.record_format import JournalError
from stablecast.store.journal.segments import JournalSegment, RecordPlace, SegmentReader, leave_summary
from stablecast.store.journal.summary import summary_path

Verified = Callable[[int | JournalError], None]
"""A callback that gets the offset after the last good record, or the reason why none could be read."""

Fetched = Callable[[list[bytes | JournalError]], None]
"""A callback that gets each block, or the reason why there is none."""


class Fetcher:
    """The thread and its queue, which the owner bounds."""

    def __init__(self, disk: Disk, tell: Callable[..., None], lock: DirectoryLock) -> None:
        """Make a thread that has not started.

        Args:
            disk: The limits and the steps.
            tell: Calls its first argument on the loop with the others.
            lock: The lock of the directory.
        """
        self._step = disk.step
        self._lock = lock
        self._tell = tell
        self._reader = SegmentReader(disk.open_files)
        self._jobs: deque[Callable[[], None] | None] = deque()
        self._begun = 0  # Jobs that the loop queued, and those of them that the thread has done.
        self._done = 0
        self._wakeup = machine.threads.semaphore(0)
        self._stopped = asyncio.Event()
        self._thread: machine.Thread | None = None

    def start(self) -> None:
        """Start the thread, once."""
        self._thread = machine.threads.start("fetcher", self._run)

    def fetch(self, records: list[RecordPlace], done: Fetched) -> None:
        """Read the blocks of synced records, and call `done` on the loop."""
        self._put(lambda: self._tell(done, [self._block(record) for record in records]))

    def times(self, records: list[RecordPlace], done: Callable[[list[int | None]], None]) -> None:
        """Read when synced records came, and call `done` on the loop."""
        self._put(lambda: self._tell(done, [self._came_at(record) for record in records]))

    @property
    def busy(self) -> bool:
        """Return True if a job waits or is under way."""
        return self._begun != self._done

    def verify(self, segment: JournalSegment, offset: int, stop: int, done: Verified) -> None:
        """Verify a piece of a segment (`SegmentReader.verify`), and call `done` on the loop."""
        self._put(lambda: self._tell(done, self._verified(segment, offset, stop)))

    def look(self, segments: list[JournalSegment], failed: Callable[[Exception], None]) -> None:
        """Check the names of the directory and of segments that exist; call `failed` on the loop if one is wrong."""
        self._put(lambda: self._look(segments, failed))

    def remove(self, segment: JournalSegment, failed: Callable[[Exception], None]) -> None:
        """Delete a segment; call `failed` on the loop if that is not possible."""
        self._put(lambda: self._remove(segment, failed))

    def summarize(self, segment: JournalSegment) -> None:
        self._put(lambda: self._summarize(segment))

    async def close(self) -> None:
        """End the thread after all jobs, and wait for it."""
        self._put(None)
        await self._stopped.wait()

    def abort(self) -> None:
        """End the thread after its current job, and wait for it."""
        self._jobs.clear()
        self._put(None)
        if self._thread is not None:
            self._thread.join()

    def _put(self, job: Callable[[], None] | None) -> None:
        # The job comes first: a thread that wakes must find it.
        self._begun += 1
        self._jobs.append(job)
        self._wakeup.release()

    def _run(self) -> None:
        while True:
            self._wakeup.acquire()
            job = self._jobs.popleft() if self._jobs else None  # `abort` removes jobs whose wake-up is still counted.
            if job is None:
                break
            job()
            self._done += 1
        self._reader.close_all()
        self._tell(self._stopped.set)

    def _block(self, record: RecordPlace) -> bytes | JournalError:
        try:
            return self._reader.block(record)
        except JournalError as error:
            return error

    def _came_at(self, record: RecordPlace) -> int | None:
        with suppress(JournalError):  # A record that cannot be read has no time; its messages are reported when read.
            return self._reader.came_at(record)
        return None

    def _verified(self, segment: JournalSegment, offset: int, stop: int) -> int | JournalError:
        try:
            return self._reader.verify(segment, offset, stop)
        except JournalError as error:
            return error

    def _look(self, segments: list[JournalSegment], failed: Callable[[Exception], None]) -> None:
        """Compare names. The thread deletes no segment of the list before, because it does its jobs in order."""
        try:
            self._lock.check()
            names = set(machine.files.names(segments[0].path.parent)) if segments else ()
            for segment in segments:
                # One listing is cheaper than a question for each of many names.
                if segment is segments[-1] or segment.path.name not in names:
                    check_name(segment.path, segment.identity)
        except FilesLostError as error:
            self._tell(failed, error)
        except OSError:
            return  # A failed listing proves nothing. The next look comes soon.

    def _summarize(self, segment: JournalSegment) -> None:
        with suppress(FilesLostError):  # The directory of another journal gets no file of this one.
            self._lock.check()
            leave_summary(segment)

    def _remove(self, segment: JournalSegment, failed: Callable[[Exception], None]) -> None:
        self._reader.close(segment)
        self._step("reclaim")
        try:
            self._lock.check()
            # The segment goes first. A summary without its segment is removed at the next open.
            machine.files.remove(segment.path)
            with suppress(FileNotFoundError):
                machine.files.remove(summary_path(segment.path))
        except (OSError, FilesLostError) as error:
            self._tell(failed, error)
        self._step("reclaimed")
