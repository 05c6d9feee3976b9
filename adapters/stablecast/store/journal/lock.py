"""One process per journal: an advisory lock on the file `lock` in its directory, which names the holder."""

import fcntl
import os
from pathlib import Path

from stablecast.store.journal.errors import JournalError

LOCK_NAME = "lock"
MAX_PID_BYTES = 32
"""Bound on what is read from the lock file, in bytes."""


class DirectoryLock:
    """An exclusive lock, held from construction to `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Takes the lock.

        Raises:
            JournalError: If another process, or another journal of this one, holds it.
            OSError: If the lock file cannot be created or opened.
        """
        self._fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(self._fd, MAX_PID_BYTES, 0).decode("ascii", "replace").strip() or "of unknown number"
            self.release()
            raise JournalError(
                f"the journal in {directory} is in use by process {holder}; stop that process or use another directory"
            ) from error
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Gives the lock up. The file stays: removing it would race with a process that waits to lock it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
