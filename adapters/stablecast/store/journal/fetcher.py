"""Reading, deleting and summaries, in a thread of their own: a slow disk holds up neither live messages nor the writer.

Jobs are done in their order. So a segment is deleted after everything that was to be read from it, and its descriptor
is closed by the only thread that uses it.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from stablecast.store.journal.disk import Disk
from stablecast.store.journal.errors import JournalError
from stablecast.store.journal.segments import Place, Segment, SegmentReader, leave_summary
from stablecast.store.journal.summary import summary_path

Fetched = Callable[[list[bytes | JournalError]], None]
"""Told each block, or why there is none."""

Tell = Callable[..., None]
"""Calls on the owner's loop."""


class Fetcher:
    """The thread and its queue, which its owner bounds."""

    def __init__(self, disk: Disk, tell: Tell) -> None:
        """A thread that has not started."""
        self._step = disk.step
        self._tell = tell
        self._reader = SegmentReader(disk.open_files)
        self._jobs: deque[Callable[[], None] | None] = deque()
        self._wakeup = threading.Semaphore(0)
        self._stopped = asyncio.Event()
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="fetcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def fetch(self, records: list[Place], done: Fetched) -> None:
        """Read blocks; records stay as they are once they are synced."""
        self._put(lambda: self._tell(done, [self._block(record) for record in records]))

    def remove(self, segment: Segment, failed: Callable[[OSError], None]) -> None:
        """Delete a segment; `failed` is told if that cannot be done."""
        self._put(lambda: self._remove(segment, failed))

    def summarize(self, segment: Segment) -> None:
        """Leave a summary of a segment that is full."""
        self._put(partial(leave_summary, segment))

    async def close(self) -> None:
        """Let the thread end when everything before is done, and wait for it."""
        self._put(None)
        await self._stopped.wait()

    def abort(self) -> None:
        """End the thread after the job it is in, and wait for that."""
        self._jobs.clear()
        self._put(None)
        self._thread.join()

    def _put(self, job: Callable[[], None] | None) -> None:
        self._jobs.append(job)
        self._wakeup.release()

    def _run(self) -> None:
        while True:
            self._wakeup.acquire()
            job = self._jobs.popleft() if self._jobs else None
            if job is None:
                break
            job()
        self._reader.close_all()
        self._tell(self._stopped.set)

    def _block(self, record: Place) -> bytes | JournalError:
        try:
            return self._reader.block(record)
        except JournalError as error:
            return error

    def _remove(self, segment: Segment, failed: Callable[[OSError], None]) -> None:
        self._reader.close(segment)
        self._step("reclaim")
        try:
            segment.path.unlink()
            summary_path(segment.path).unlink(missing_ok=True)
        except OSError as error:
            self._tell(failed, error)
        self._step("reclaimed")
