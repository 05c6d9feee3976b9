"""The rule of one process per journal: an advisory lock on the file `lock` in its directory, which names the holder."""

import os
from pathlib import Path

from stablecast.runtime import machine
from stablecast.store.journal.record_format import JournalError

LOCK_NAME = "lock"
MAX_PID_BYTES = 32
"""Bytes read from the lock file at most."""


class DirectoryLock:
    """An exclusive lock, held from construction to `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory.

        Raises:
            JournalError: Another process, or another journal of this one, holds the lock.
            OSError: The lock file cannot be created or opened.
        """
        self._fd = machine.files.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            machine.files.lock(self._fd)
            machine.files.truncate(self._fd, 0)
            machine.files.pwrite(self._fd, f"{machine.process.pid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = (
                machine.files.pread(self._fd, MAX_PID_BYTES, 0).decode("ascii", "replace").strip()
                or "of unknown number"
            )
            self.release()
            raise JournalError(
                f"the journal in {directory} is in use by process {holder}; stop that process or use another directory"
            ) from error
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock. The file stays, because removing it would race with a process that waits to lock it."""
        if self._fd >= 0:
            machine.files.close(self._fd)
            self._fd = -1
