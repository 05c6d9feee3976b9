"""The file systems of the host: files by descriptor, and names.

A function that fails raises `OSError` with the number that the system call gave. The aliases are the functions of `os`
and `os.path` with their arguments.
"""

import builtins
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

Octets = bytes | bytearray | memoryview
"""Bytes to write."""

Mapped = bytes | mmap
"""The bytes of a mapped file; the mapping ends with its context."""

Place = str | PathLike[str]
"""The path of a file."""

MIN_INODES = 4
"""Free inodes below which a file system has no room: a segment, its summary, and what others make meanwhile."""

open = os.open  # noqa: A001 - callers write `files.open`
close = os.close
read = os.read
write = os.write
pread = os.pread
pwrite = os.pwrite
pwritev = os.pwritev
truncate = os.ftruncate
allocate = os.posix_fallocate
sync_data = os.fdatasync
sync = os.fsync
status = os.fstat
exists = os.path.exists
is_file = os.path.isfile
is_directory = os.path.isdir
stat = os.stat
names = os.listdir
rename = os.replace
remove = os.unlink


def lock(descriptor: int) -> None:
    """Lock a file for this descriptor alone. Raises BlockingIOError if another descriptor has the lock."""
    # A lock by `lockf` would end when the process closes any other descriptor of the file.
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def file(path: Place, mode: str, buffering: int = -1) -> BinaryIO:
    """Open a binary file of Python; `mode` is "rb", "wb" or "ab"."""
    opener = _unless_linked if mode == "ab" and os.geteuid() == 0 else None
    return cast("BinaryIO", builtins.open(path, mode, buffering, opener=opener))


def read_bytes(path: Place) -> bytes:
    return Path(path).read_bytes()


def write_bytes(path: Place, octets: Octets) -> None:
    """Create or replace the contents of a file; nothing is synced."""
    Path(path).write_bytes(octets)


@contextmanager
def map(path: Place) -> Iterator[Mapped]:  # noqa: A001 - callers write `files.map`
    """Map a whole file that is not empty, for reading."""
    with Path(path).open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        yield data


def is_readable(path: Place) -> bool:
    """Return whether this process may read a file."""
    return os.access(path, os.R_OK)


def set_times(path: Place, accessed_ns: int, modified_ns: int) -> None:
    """Set the times of a file in ns since the epoch."""
    os.utime(path, ns=(accessed_ns, modified_ns))


def make_directories(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)


def copy(path: Place, to: Place) -> None:
    """Copy a file with its times."""
    import shutil  # noqa: PLC0415 - slow to import, and only damaged files are copied

    shutil.copy2(path, to)


def sync_directory(directory: Place) -> None:
    """Make the names in a directory durable: created files exist, and removed files stay away."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(directory: Place) -> int:
    """Return the bytes that this process may still write to a directory's file system; 0 if it has no inode.

    Quotas of a user do not show here.
    """
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
