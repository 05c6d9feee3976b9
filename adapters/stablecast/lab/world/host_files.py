"""The files of simulated hosts behind the seam to the machine: the shipped programs act on those of their host."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Concatenate, ParamSpec, TypeVar, cast

from stablecast.lab.world.filesystem import FileSystem
from stablecast.runtime.machine import Mapped, Octets, Place

P = ParamSpec("P")
T = TypeVar("T")


def _of_current(method: Callable[Concatenate[FileSystem, P], T]) -> "Callable[Concatenate[HostFiles, P], T]":
    """Return a method that calls one of the file system of the running program."""

    def call(self: "HostFiles", /, *arguments: P.args, **options: P.kwargs) -> T:
        return method(self._current(), *arguments, **options)

    return call


class HostFiles:
    """`machine.files` of a world; each call acts on the file system of the running program."""

    __slots__ = ("_current",)

    def __init__(self, current: Callable[[], FileSystem]) -> None:
        """Dispatch to the file system that `current` returns."""
        self._current = current

    open = _of_current(FileSystem.open)
    close = _of_current(FileSystem.close)
    read = _of_current(FileSystem.read)
    write = _of_current(FileSystem.write)
    pread = _of_current(FileSystem.pread)
    pwrite = _of_current(FileSystem.pwrite)
    pwritev = _of_current(FileSystem.pwritev)
    truncate = _of_current(FileSystem.ftruncate)
    allocate = _of_current(FileSystem.posix_fallocate)
    sync_data = _of_current(FileSystem.fdatasync)
    sync = _of_current(FileSystem.fsync)
    status = _of_current(FileSystem.fstat)
    exists = _of_current(FileSystem.exists)
    stat = _of_current(FileSystem.stat)
    names = _of_current(FileSystem.listdir)
    rename = _of_current(FileSystem.rename)
    remove = _of_current(FileSystem.unlink)

    def lock(self, descriptor: int, /) -> None:
        """Lock a file for this descriptor alone. Raises BlockingIOError if another descriptor has the lock."""
        self._current().flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def file(self, path: Place, mode: str, buffering: int = -1) -> BinaryIO:
        """Open a binary file of Python."""
        return cast("BinaryIO", self._current().open_file(path, mode, buffering))

    def read_bytes(self, path: Place, /) -> bytes:
        """Return the contents of a file."""
        with self.file(path, "rb") as file:
            return file.read()

    def write_bytes(self, path: Place, octets: Octets, /) -> None:
        """Create or replace the contents of a file; nothing is synced."""
        with self.file(path, "wb") as file:
            file.write(octets)

    @contextmanager
    def map(self, path: Place, /) -> Iterator[Mapped]:
        """Return a copy of a whole file. Raises ValueError for an empty file, as a mapping does."""
        data = self.read_bytes(path)
        if not data:
            raise ValueError("cannot mmap an empty file")
        yield data

    def is_file(self, path: Place, /) -> bool:
        """Return whether there is a file of this name."""
        return self.exists(path) and S_ISREG(self.stat(path).st_mode)

    def is_directory(self, path: Place, /) -> bool:
        """Return whether there is a directory of this name."""
        return self.exists(path) and S_ISDIR(self.stat(path).st_mode)

    def is_readable(self, path: Place, /) -> bool:
        """Return whether this process may read a file."""
        return self._current().access(path, os.R_OK)

    def set_times(self, path: Place, accessed_ns: int, modified_ns: int, /) -> None:
        """Set the times of a file in ns since the epoch."""
        self._current().utime(path, ns=(accessed_ns, modified_ns))

    def make_directories(self, directory: Path, /) -> None:
        """Make a directory and its parents, if they are missing."""
        system = self._current()
        for path in (*reversed(directory.parents), directory):
            if not system.exists(path):
                system.mkdir(path)
        # `mkdir` names the file that stands in the place of the directory.
        if not self.is_directory(directory):
            system.mkdir(directory)

    def copy(self, path: Place, to: Place, /) -> None:
        """Copy a file with its times."""
        found = self.stat(path)
        self.write_bytes(to, self.read_bytes(path))
        self.set_times(to, found.st_atime_ns, found.st_mtime_ns)

    def sync_directory(self, directory: Place, /) -> None:
        """Make the names in a directory durable: created files exist, and removed files stay away."""
        system = self._current()
        descriptor = system.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            system.fsync(descriptor)
        finally:
            system.close(descriptor)

    def free_bytes(self, directory: Place, /) -> int:
        """Return the bytes that this process may still write to the disk of a directory."""
        found = self._current().statvfs(directory)
        return found.f_bavail * found.f_frsize
