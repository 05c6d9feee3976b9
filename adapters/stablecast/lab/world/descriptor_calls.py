"""The system calls of a simulated file system that take a descriptor."""

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from stablecast.lab.world.disk import BLOCK_BYTES, MILLISECOND, SimulatedDisk, failure
from stablecast.lab.world.inodes import DirectoryInode, FileInode, Inode


class OpenFile:
    """An open file: descriptors stand for it, and duplicates of a descriptor share it.

    Attributes:
        inode: The file or directory.
        path: The path by which it was opened.
        flags: The flags of `os.open`.
        position: The offset of the next read or write, in bytes.
        references: The count of descriptors.
    """

    __slots__ = ("appends", "flags", "inode", "path", "position", "readable", "references", "synced", "writable")

    def __init__(self, inode: FileInode | DirectoryInode, path: str, flags: int) -> None:
        access = flags & os.O_ACCMODE
        self.inode = inode
        self.path = path
        self.flags = flags
        self.position = 0
        self.references = 1
        self.readable = access != os.O_WRONLY
        self.writable = access != os.O_RDONLY
        self.appends = bool(flags & os.O_APPEND)
        self.synced = bool(flags & (os.O_DSYNC | os.O_SYNC))
        inode.opens += 1


DESCRIPTOR_LIMIT: Final = 1024
"""Descriptors of a process at most, like the usual limit of the system."""

LOCK_POLL_NS: Final = MILLISECOND
"""Time between two looks at a lock that another holds, in ns of virtual time."""

DEVICE: Final = 0x57
"""The number of the simulated device, as `os.stat` shows it."""

Bytes = bytes | bytearray | memoryview
WritableBytes = bytearray | memoryview

_SEEK_DATA: Final = getattr(os, "SEEK_DATA", 3)
_SEEK_HOLE: Final = getattr(os, "SEEK_HOLE", 4)


class DescriptorCalls:
    """The descriptors of one process.

    Attributes:
        disk: The disk, which processes of one host share.
        gone: True after the process has ended: every call fails then.
        descriptor_limit: Descriptors at most; above it, EMFILE.
        reserved_descriptors: Descriptors of other kinds, as sockets, that count as well.
    """

    def __init__(self, disk: SimulatedDisk, numbers: Iterator[int]) -> None:
        """Begin without descriptors; `numbers` gives each a number that no other has."""
        self.disk = disk
        self.gone = False
        self.descriptor_limit = DESCRIPTOR_LIMIT
        self.reserved_descriptors = 0
        self._numbers = numbers
        self._files: dict[int, OpenFile] = {}

    @property
    def open_descriptors(self) -> int:
        """Return the count of open descriptors, reserved ones aside."""
        return len(self._files)

    def owns(self, fd: int) -> bool:
        return fd in self._files

    def file_of(self, fd: int) -> OpenFile:
        """Return what a descriptor stands for. Raises OSError: EBADF."""
        file = self._files.get(fd)
        if file is None:
            raise failure(errno.EBADF)
        return file

    def check_limit(self) -> None:
        """Raise EMFILE if the process may not open another descriptor."""
        if len(self._files) + self.reserved_descriptors >= self.descriptor_limit:
            raise failure(errno.EMFILE)

    def kill(self) -> None:
        """End the process: close its descriptors and release its locks, without any sync."""
        for fd in list(self._files):
            self.close(fd)
        self.gone = True

    def close(self, fd: int) -> None:
        """Close a descriptor; the last one of an open file releases its lock."""
        file = self._files.pop(fd, None)
        if file is None:
            # The `finally` clauses of a program that was killed run later. They must not fail where nothing is left.
            if self.gone:
                return
            raise failure(errno.EBADF)
        file.references -= 1
        if not file.references:
            inode = file.inode
            self._unlock(file)
            inode.opens -= 1
            self.disk.release(inode)

    def dup(self, fd: int) -> int:
        file = self.file_of(fd)
        self.check_limit()
        file.references += 1
        number = next(self._numbers)
        self._files[number] = file
        return number

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, fd: int, count: int) -> bytes:
        """Read at the position; return fewer bytes only at the end."""
        file = self.file_of(fd)
        data = self._read(file, count, file.position)
        file.position += len(data)
        return data

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read at an offset; return fewer bytes only at the end."""
        if offset < 0:
            raise failure(errno.EINVAL)
        return self._read(self.file_of(fd), count, offset)

    def readv(self, fd: int, buffers: Sequence[WritableBytes]) -> int:
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        return _fill(views, self.read(fd, sum(map(len, views))))

    def preadv(self, fd: int, buffers: Sequence[WritableBytes], offset: int, flags: int = 0) -> int:
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        return _fill(views, self.pread(fd, sum(map(len, views)), offset))

    def mapped(self, fd: int) -> bytes:
        """Return the bytes of a file, in place of a read-only mapping."""
        return self._read(self.file_of(fd), self.fstat(fd).st_size, 0)

    def _read(self, file: OpenFile, count: int, offset: int) -> bytes:
        if not file.readable:
            raise failure(errno.EBADF)
        inode = file.inode
        if not isinstance(inode, FileInode):
            raise failure(errno.EISDIR)
        if count < 0:
            raise failure(errno.EINVAL)
        self.disk.before_read()
        return bytes(inode.pages.data[offset : offset + count])

    # ------------------------------------------------------------------------------------------------------- writing

    def write(self, fd: int, data: Bytes) -> int:
        """Write at the position, or at the end of a file opened to append; return how many bytes fit."""
        file = self.file_of(fd)
        block = bytes(data)
        start = file.inode.size if file.appends else file.position
        count = self._write(file, block, start)
        file.position = start + count
        return count

    def writev(self, fd: int, buffers: Iterable[Bytes]) -> int:
        """Write buffers at the position; return how many bytes fit."""
        return self.write(fd, b"".join(buffers))

    def pwrite(self, fd: int, data: Bytes, offset: int) -> int:
        """Write at an offset; return how many bytes fit."""
        return self.pwritev(fd, (data,), offset)

    def pwritev(self, fd: int, buffers: Iterable[Bytes], offset: int, flags: int = 0) -> int:
        """Write buffers at an offset; return how many bytes fit."""
        file = self._files.get(fd)
        if offset < 0 or file is None:
            raise failure(errno.EINVAL if offset < 0 else errno.EBADF)
        # The offset of a file that was opened to append does not count, as on Linux.
        return self._write(file, b"".join(buffers), file.inode.size if file.appends else offset)

    def ftruncate(self, fd: int, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        if size < 0:
            raise failure(errno.EINVAL)
        file = self.file_of(fd)
        inode = file.inode
        if not file.writable or not isinstance(inode, FileInode):
            raise failure(errno.EINVAL)
        self.disk.resize(inode, size)

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        """Extend the file with zeros up to `offset` + `length`; a longer file stays as it is."""
        file = self.file_of(fd)
        inode = file.inode
        if offset < 0 or length <= 0:
            raise failure(errno.EINVAL)
        if not file.writable or not isinstance(inode, FileInode):
            raise failure(errno.EBADF)
        if offset + length > inode.size:
            self.disk.resize(inode, offset + length)

    def fdatasync(self, fd: int) -> None:
        """Make the data of a file, or the names in a directory, durable when this returns."""
        inode = self.file_of(fd).inode
        if isinstance(inode, FileInode):
            self.disk.sync_file(inode)
        else:
            self.disk.sync_directory(inode)
        if self.gone:
            # The power went while the caller waited, so the sync promises nothing.
            raise failure(errno.EIO)

    fsync = fdatasync

    def sync(self) -> None:
        """Make everything on the disk durable when this returns."""
        self.disk.sync_all()

    def copy_range(self, source: int, target: int, count: int, at: int | None = None, to: int | None = None) -> int:
        """Copy bytes between files, at their positions unless offsets are given; return the count."""
        data = self.read(source, count) if at is None else self.pread(source, count, at)
        return self.write(target, data) if to is None else self.pwrite(target, data, to)

    def _write(self, file: OpenFile, block: bytes, offset: int) -> int:
        inode = file.inode
        if not file.writable or not isinstance(inode, FileInode):
            raise failure(errno.EBADF)
        if not block:
            return 0
        count = self.disk.write(inode, block, offset)
        if file.synced:
            self.disk.sync_file(inode)
        return count

    # --------------------------------------------------------------------------------------------- position and state

    def lseek(self, fd: int, offset: int, whence: int = os.SEEK_SET) -> int:
        file = self.file_of(fd)
        size = file.inode.size
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: file.position, os.SEEK_END: size, _SEEK_DATA: 0, _SEEK_HOLE: 0}
        if whence not in bases:
            raise failure(errno.EINVAL)
        if whence in (_SEEK_DATA, _SEEK_HOLE):
            if not 0 <= offset < size:
                raise failure(errno.ENXIO)
            # A simulated file has no holes, except the one that every file has at its end.
            position = offset if whence == _SEEK_DATA else size
        else:
            position = bases[whence] + offset
        if position < 0:
            raise failure(errno.EINVAL)
        file.position = position
        return position

    def fstat(self, fd: int) -> os.stat_result:
        """Return what `os.fstat` does, with virtual times."""
        return stat_of(self.file_of(fd).inode)

    def fstatvfs(self, fd: int) -> os.statvfs_result:
        self.file_of(fd)
        return self._room()

    def fchmod(self, fd: int, mode: int) -> None:
        """Set the permissions, which are shown and never judged."""
        self._set_mode(self.file_of(fd).inode, mode)

    def flock(self, fd: int, operation: int) -> None:
        """Lock or unlock an open file, and wait for others unless LOCK_NB is set.

        Raises:
            BlockingIOError: Another open file holds the lock, and LOCK_NB is set.
        """
        file = self.file_of(fd)
        wanted = operation & ~fcntl.LOCK_NB
        if wanted == fcntl.LOCK_UN:
            self._unlock(file)
            return
        if wanted not in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            raise failure(errno.EINVAL)
        inode = file.inode
        while any(other is not file for other in inode.lockers) and (wanted == fcntl.LOCK_EX or inode.exclusive):
            if operation & fcntl.LOCK_NB:
                raise failure(errno.EAGAIN)
            self.disk.pause(LOCK_POLL_NS)
            self.file_of(fd)
        self._unlock(file)
        inode.lockers.append(file)
        inode.exclusive = wanted == fcntl.LOCK_EX

    def _unlock(self, file: OpenFile) -> None:
        inode = file.inode
        inode.lockers = [other for other in inode.lockers if other is not file]

    def _set_mode(self, inode: Inode, mode: int) -> None:
        self.disk.before_change()
        inode.mode = (inode.mode & ~0o7777) | (mode & 0o7777)
        inode.ctime = self.disk.now()

    def _room(self) -> os.statvfs_result:
        disk = self.disk
        free = max(0, disk.capacity - disk.used) // BLOCK_BYTES
        blocks = free + -(-disk.used // BLOCK_BYTES)
        return os.statvfs_result((BLOCK_BYTES, BLOCK_BYTES, blocks, free, free, 1 << 20, 1 << 19, 1 << 19, 0, 255))


def stat_of(inode: Inode) -> os.stat_result:
    links = inode.links
    if isinstance(inode, DirectoryInode) and links:
        links = 2 + sum(isinstance(entry, DirectoryInode) for entry in inode.entries.values())
    times = (inode.atime, inode.mtime, inode.ctime)
    fields = (
        inode.mode,
        inode.number,
        DEVICE,
        links,
        inode.uid,
        inode.gid,
        inode.size,
        *(time // 1_000_000_000 for time in times),
        *(time / 1e9 for time in times),
        *times,
        BLOCK_BYTES,
        -(-inode.size // 512),
        0,
    )
    return os.stat_result(fields)


def _fill(views: list[memoryview], data: bytes) -> int:
    at = 0
    for view in views:
        part = data[at : at + len(view)]
        view[: len(part)] = part
        at += len(part)
    return at
