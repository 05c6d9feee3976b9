"""The rule of one process per journal, and the names by which others would find the files that this process has open.

The lock is on the directory itself and on the file `lock` in it, which names the holder. A file system that locks no
directories has the lock on the file alone. Whoever removes that file cannot let a second process in.

A process that has a file open goes on to write and sync it when its name is gone. No later start would find what it
wrote, so `DirectoryLock.check` compares each name with what is open.
"""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from stablecast.runtime import machine
from stablecast.store.journal.record_format import JournalError

LOCK_NAME = "lock"
MAX_PID_BYTES = 32
"""Bytes read from the lock file at most."""

LOOK_SECONDS = 2.0
"""Seconds between two comparisons of names with open files while nothing is written."""

GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ELOOP))
"""System errors that say that a name leads nowhere any more. Others, such as a lack of memory, prove nothing."""

Identity = tuple[int, int]
"""Device and inode: two names with the same identity lead to the same file."""


class FilesLostError(JournalError):
    """Files that are in use were removed, replaced or unmounted, so nothing written to them can be read again."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was removed, replaced or unmounted while the store used it; find what did that, and let the store "
            "get its messages back from the others"
        )


def identity(descriptor: int) -> Identity:
    found = machine.files.status(descriptor)
    return found.st_dev, found.st_ino


def check_name(path: Path, known: Identity | None) -> None:
    """Check that a name leads to a file of this identity, or to any file. Raises FilesLostError."""
    try:
        found = machine.files.stat(path)
    except OSError as error:
        if error.errno in GONE:
            raise FilesLostError(path) from error
        return
    if known not in (None, (found.st_dev, found.st_ino)):
        raise FilesLostError(path)


def shown_to_others(directory: Path) -> bool:
    """Return whether other users may read the files of a store. Earlier releases made them so; the lock stands for all.

    Raises OSError.
    """
    above, within = (machine.files.stat(path).st_mode for path in (directory, directory / LOCK_NAME))
    return bool(above & stat.S_IXOTH and within & stat.S_IROTH)


class DirectoryLock:
    """An exclusive lock, held from construction to `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory.

        Raises:
            JournalError: Another process, or another journal of this one, holds the lock.
            OSError: The lock file cannot be created or opened.
        """
        self._held: list[int] = []
        self._names: dict[Path, Identity | None] = {}
        try:
            above = self._open(directory, os.O_RDONLY | os.O_DIRECTORY)
            self._fd = self._open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT)
            machine.files.lock(self._fd)
            self._lock_directory(above)
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

    def watch(self, paths: Iterable[Path]) -> None:
        """Watch names of other files, too, whose contents may be replaced."""
        self._names |= dict.fromkeys(paths)

    def check(self) -> None:
        """Check that the names of the directory, of the lock and of the watched files still lead to them.

        Any thread may call this. Raises FilesLostError.
        """
        for path, known in self._names.items():
            check_name(path, known)

    def sync_names(self) -> None:
        """Make the names in the directory durable. Raises OSError."""
        machine.files.sync(self._held[0])

    def release(self) -> None:
        """Release the lock. The file stays, because removing it would race with a process that waits to lock it."""
        while self._held:
            machine.files.close(self._held.pop())

    def _open(self, path: Path, flags: int) -> int:
        descriptor = machine.files.open(path, flags, 0o600)
        self._held.append(descriptor)
        self._names[path] = identity(descriptor)
        return descriptor

    @staticmethod
    def _lock_directory(descriptor: int) -> None:
        """Lock the directory itself, where that is possible: some network file systems lock written files only."""
        try:
            machine.files.lock(descriptor)
        except BlockingIOError:
            raise
        except OSError:
            return
