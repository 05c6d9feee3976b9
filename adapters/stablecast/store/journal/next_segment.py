"""The next segment is opened while the one before it is flushed.

Where a flush takes long, a segment begun between two flushes would be a third in a row that messages wait for. So a
thread of its own opens it, and the writer takes the descriptor when it has done with the segment before.
"""

import os
import threading
from concurrent.futures import Future
from contextlib import suppress

from stablecast.store.journal.disk import Disk
from stablecast.store.journal.segments import Segment, open_for_writing


class Opening:
    """A segment on its way."""

    def __init__(self, segment: Segment, disk: Disk) -> None:
        """Begins to open it."""
        self._descriptor: Future[int] = Future()
        # A daemon thread: a disk that never answers must not keep the process from ending.
        threading.Thread(target=self._run, args=(segment, disk), name="opening", daemon=True).start()

    def descriptor(self) -> int:
        """Waits for it and returns its descriptor, which is then the caller's. Raises what opening it raised."""
        return self._descriptor.result()

    def drop(self) -> None:
        """Waits for it and closes it, for nothing will be written."""
        with suppress(OSError):  # where it could not be opened there is nothing to close
            os.close(self.descriptor())

    def _run(self, segment: Segment, disk: Disk) -> None:
        try:
            disk.step("roll")
            descriptor = open_for_writing(segment, disk.sync, disk.segment_bytes if disk.preallocate else 0)
            disk.step("rolled")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the writer's to meet
            self._descriptor.set_exception(error)
        else:
            self._descriptor.set_result(descriptor)
