"""The files of simulated hosts behind the seam to the machine: the shipped programs act on those of their host."""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from stablecast.lab.world.filesystem import FileSystem
from stablecast.runtime.machine import Mapped, Octets, Place


class HostFiles:
    """`machine.files` of a world; each call acts on the file system of the running program."""

    __slots__ = ("_current",)

    def __init__(self, current: Callable[[], FileSystem]) -> None:
        """Dispatch to the file system that `current` returns."""
        self._current = current

    # --------------------------------------------------------------------------------------------------- descriptors

    def open(self, path: Place, flags: int, mode: int = 0o777) -> int:
        """Open a file and return its descriptor."""
        return self._current().open(path, flags, mode)

    def close(self, descriptor: int, /) -> None:
        """Close a descriptor and release its lock."""
        self._current().close(descriptor)

    def read(self, descriptor: int, count: int, /) -> bytes:
        """Read at most `count` bytes at the descriptor's position."""
        return self._current().read(descriptor, count)

    def write(self, descriptor: int, octets: Octets, /) -> int:
        """Write at the descriptor's position and return the number of written bytes."""
        return self._current().write(descriptor, octets)

    def pread(self, descriptor: int, count: int, offset: int, /) -> bytes:
        """Read at most `count` bytes at `offset`."""
        return self._current().pread(descriptor, count, offset)

    def pwrite(self, descriptor: int, octets: Octets, offset: int, /) -> int:
        """Write at `offset` and return the number of written bytes."""
        return self._current().pwrite(descriptor, octets, offset)

    def pwritev(self, descriptor: int, parts: Sequence[Octets], offset: int, /) -> int:
        """Write several parts at `offset` and return the number of written bytes."""
        return self._current().pwritev(descriptor, parts, offset)

    def truncate(self, descriptor: int, size: int, /) -> None:
        """Set the size of a file in bytes."""
        self._current().ftruncate(descriptor, size)

    def allocate(self, descriptor: int, offset: int, size: int, /) -> None:
        """Reserve `size` bytes of the disk from `offset` on."""
        self._current().posix_fallocate(descriptor, offset, size)

    def sync_data(self, descriptor: int, /) -> None:
        """Make the contents and the size of a file durable."""
        self._current().fdatasync(descriptor)

    def sync(self, descriptor: int, /) -> None:
        """Make a file and its attributes durable."""
        self._current().fsync(descriptor)

    def status(self, descriptor: int, /) -> os.stat_result:
        """Return the attributes of an open file."""
        return self._current().fstat(descriptor)

    def lock(self, descriptor: int, /) -> None:
        """Lock a file for this descriptor alone. Raises BlockingIOError if another descriptor has the lock."""
        self._current().flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    # --------------------------------------------------------------------------------------------------------- names

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

    def exists(self, path: Place, /) -> bool:
        """Return whether there is a file or directory of this name."""
        return self._current().exists(path)

    def is_file(self, path: Place, /) -> bool:
        """Return whether there is a file of this name."""
        return self.exists(path) and stat.S_ISREG(self.stat(path).st_mode)

    def is_directory(self, path: Place, /) -> bool:
        """Return whether there is a directory of this name."""
        return self.exists(path) and stat.S_ISDIR(self.stat(path).st_mode)

    def is_readable(self, path: Place, /) -> bool:
        """Return whether this process may read a file."""
        return self._current().access(path, os.R_OK)

    def stat(self, path: Place, /) -> os.stat_result:
        """Return the attributes of a file or directory."""
        return self._current().stat(path)

    def set_times(self, path: Place, accessed_ns: int, modified_ns: int, /) -> None:
        """Set the times of a file in ns since the epoch."""
        self._current().utime(path, ns=(accessed_ns, modified_ns))

    def names(self, directory: Place, /) -> list[str]:
        """Return the names in a directory, in an order that depends on the seed only."""
        return self._current().listdir(directory)

    def make_directories(self, directory: Path, /) -> None:
        """Make a directory and its parents, if they are missing."""
        system = self._current()
        for path in (*reversed(directory.parents), directory):
            if not system.exists(path):
                system.mkdir(path)
        # `mkdir` names the file that stands in the place of the directory.
        if not self.is_directory(directory):
            system.mkdir(directory)

    def rename(self, path: Place, to: Place, /) -> None:
        """Rename a file and replace the one that has the name."""
        self._current().rename(path, to)

    def remove(self, path: Place, /) -> None:
        """Remove the name of a file."""
        self._current().unlink(path)

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
