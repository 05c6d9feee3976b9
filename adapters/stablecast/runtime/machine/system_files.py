"""The file systems of the real machine."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, cast

from stablecast.runtime.machine.protocols import Mapped, Octets, Place

MIN_INODES = 4
"""Free inodes below which a file system has no room: a segment, its summary, and what others make meanwhile."""


class SystemFiles:
    """The file systems of this host; each function of a descriptor is the one of `os`."""

    __slots__ = ()
    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    pwritev = staticmethod(os.pwritev)
    truncate = staticmethod(os.ftruncate)
    allocate = staticmethod(os.posix_fallocate)
    sync_data = staticmethod(os.fdatasync)
    sync = staticmethod(os.fsync)
    status = staticmethod(os.fstat)
    exists = staticmethod(os.path.exists)
    is_file = staticmethod(os.path.isfile)
    is_directory = staticmethod(os.path.isdir)
    stat = staticmethod(os.stat)
    names = staticmethod(os.listdir)
    rename = staticmethod(os.replace)
    remove = staticmethod(os.unlink)

    def lock(self, descriptor: int) -> None:
        """Lock a file for this descriptor alone. Raises BlockingIOError if another descriptor has the lock."""
        # A lock by `lockf` would end when the process closes any other descriptor of the file.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def file(self, path: Place, mode: str, buffering: int = -1) -> BinaryIO:
        """Open a binary file of Python."""
        opener = _unless_linked if mode == "ab" and os.geteuid() == 0 else None
        return cast("BinaryIO", open(path, mode, buffering, opener=opener))

    def read_bytes(self, path: Place) -> bytes:
        """Return the contents of a file."""
        return Path(path).read_bytes()

    def write_bytes(self, path: Place, octets: Octets) -> None:
        """Create or replace the contents of a file."""
        Path(path).write_bytes(octets)

    @contextmanager
    def map(self, path: Place) -> Iterator[Mapped]:
        """Map a whole file that is not empty, for reading."""
        with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield data

    def is_readable(self, path: Place) -> bool:
        """Return whether this process may read a file."""
        return os.access(path, os.R_OK)

    def set_times(self, path: Place, accessed_ns: int, modified_ns: int) -> None:
        """Set the times of a file in ns since the epoch."""
        os.utime(path, ns=(accessed_ns, modified_ns))

    def make_directories(self, directory: Path) -> None:
        """Make a directory and its parents, if they are missing."""
        directory.mkdir(parents=True, exist_ok=True)

    def copy(self, path: Place, to: Place) -> None:
        """Copy a file with its times."""
        import shutil  # noqa: PLC0415 - slow to import, and only damaged files are copied

        shutil.copy2(path, to)

    def sync_directory(self, directory: Place) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, directory: Place) -> int:
        """Return the bytes that this process may still write to a directory's file system; 0 if it has no inode."""
        found = os.statvfs(directory)
        if found.f_files and found.f_favail < MIN_INODES:  # Some file systems count no inodes.
            return 0
        return (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * found.f_frsize


def _unless_linked(path: str, flags: int) -> int:
    """Open a file for root, through a symbolic link only if that is root's.

    Daemons give their log to another user. One who may write to its directory could lead root to any file.
    """
    if Path(path).is_symlink() and os.lstat(path).st_uid == 0:
        return os.open(path, flags, 0o666)
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
