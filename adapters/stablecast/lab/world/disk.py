"""A simulated disk: what survives the processes of a host, and the faults that it may have.

A power cut (`crash`) keeps everything that was synced and a seeded part of the rest. Data are durable when a sync of
their file returned, names when a sync of their directory returned. A killed process loses nothing of the disk, because
the page cache stays.

Faults may be set at any time; `heal` ends them:

- `full` leaves some bytes of room; a write gets as much as fits, and then ENOSPC.
- `slow` lengthens each sync, and `stall` makes every write and sync wait for a time.
- `fail_writes`, `fail_syncs` and `fail_reads` raise EIO, now or later, once or for good. After a failed sync the data
  that it covered may be lost although programs still read them, as on Linux.
- `rot` flips one bit of a stored file, silently.
- `read_only` refuses every change with EROFS.
- `wipe` empties a directory. `backup` copies one, and `restore` puts the copy back.
"""

import errno
import os
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final

import attrs

from stablecast.lab.world.inodes import DirectoryInode, FileInode, Inode, LinkInode, NameChanges, walk

FIRST_DESCRIPTOR: Final = 1_000_000
"""The lowest number of a simulated descriptor, above all real ones."""

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000

CAPACITY_BYTES: Final = 64 << 30
"""Bytes of a disk that is not full."""

MAX_FILE_BYTES: Final = 1 << 30
"""Bytes of one file at most: they are kept in memory, holes included."""

BLOCK_BYTES: Final = 4096
"""Bytes of a block, as `os.statvfs` shows them."""

FOR_EVER: Final = 1 << 60
"""A count of failures that no world reaches."""


def failure(number: int, path: str | None = None, second: str | None = None) -> OSError:
    if path is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), path, None, second)


@attrs.frozen
class DiskSpeed:
    """The times of a disk, in ns of virtual time.

    Attributes:
        shortest: The shortest sync.
        usual: The longest sync, rare ones aside.
        rare: The longest of the rare syncs.
        rare_share: The share of rare syncs, 0 to 1.
        write: The time of a write, usually 0: it goes to the page cache.
    """

    shortest: int = 50 * MICROSECOND
    usual: int = 500 * MICROSECOND
    rare: int = 10 * MILLISECOND
    rare_share: float = 0.01
    write: int = 0


@attrs.define
class PlannedFailure:
    """Failures to come: `after` calls succeed, and the next `count` fail."""

    after: int = 0
    count: int = 0

    def strikes(self) -> bool:
        """Count a call; return True if it fails."""
        if self.after > 0:
            self.after -= 1
            return False
        if self.count > 0:
            self.count -= 1
            return True
        return False


@attrs.frozen
class DiskBackup:
    """A copy of a directory: contents by path, relative and in the order of names; None is a directory.

    Attributes:
        files: Path, mode and bytes of each file or directory; the target of a link is a string.
    """

    files: tuple[tuple[str, int, bytes | str | None], ...]


class SimulatedDisk:
    """The disk of one host.

    Attributes:
        root: The directory `/`.
        names: The changes of names that a power cut may undo.
        used: Bytes of all files.
        capacity: Bytes of the disk.
        descriptors: Gives each descriptor its number, unless a file system was given other numbers.
        read_only: True if every change is refused.
        changes: Number of changes of names, sizes and contents so far; it does not grow while a disk is quiet.
    """

    def __init__(
        self,
        now: Callable[[], int],
        rng: Random,
        wait: Callable[[int], None] = lambda _: None,
        speed: DiskSpeed | None = None,
    ) -> None:
        """Make an empty disk with the directory `/tmp`.

        Args:
            now: Returns the wall clock of the host, in ns of the epoch.
            rng: Decides the times of syncs, and the order of listings.
            wait: Blocks the calling thread for a time in ns.
            speed: The times of the disk.
        """
        self.now = now
        self.speed = speed or DiskSpeed()
        self._rng = rng
        self._wait = wait
        self.descriptors = count(FIRST_DESCRIPTOR)
        self._numbers = 1
        self._salt = rng.getrandbits(32)
        self.names = NameChanges()
        self.root = DirectoryInode(1, 0o755, now())
        self.root.links = 1
        self.used = 0
        self.changes = 0
        self.heal()
        self.root.whole = False
        self.make_directories("/tmp")  # noqa: S108 - a directory of the simulated disk

    # --------------------------------------------------------------------------------------------------------- faults

    def heal(self) -> None:
        """End all faults, except what they have destroyed already."""
        self.capacity = CAPACITY_BYTES
        self.read_only = False
        self._extra_ns = 0
        self._stalled_until = 0
        self._loses_data = True
        self._writes, self._syncs, self._reads = PlannedFailure(), PlannedFailure(), PlannedFailure()
        self._troubled = False

    def full(self, room: int = 0) -> None:
        """Leave room for this many bytes."""
        self.capacity = self.used + room

    def slow(self, extra: int) -> None:
        """Make each sync take this much longer, in ns."""
        self._extra_ns = extra

    def stall(self, duration: int) -> None:
        """Make every write and sync wait until this time (ns) has passed."""
        self._stalled_until = self.now() + duration
        self._troubled = True

    def fail_writes(self, after: int = 0, count: int = FOR_EVER) -> None:
        """Let `after` writes succeed, and fail the next `count` with EIO."""
        self._writes, self._troubled = PlannedFailure(after, count), True

    def fail_syncs(self, after: int = 0, count: int = FOR_EVER, *, lose: bool = True) -> None:
        """Let `after` syncs succeed, and fail the next `count` with EIO; `lose` the data that they covered."""
        self._syncs, self._loses_data = PlannedFailure(after, count), lose

    def fail_reads(self, after: int = 0, count: int = FOR_EVER) -> None:
        """Let `after` reads succeed, and fail the next `count` with EIO."""
        self._reads = PlannedFailure(after, count)

    def rot(self, rng: Random, path: str = "/") -> tuple[str, int, int] | None:
        """Flip one bit of a file at or below a path; return the file, the offset and the bit; None without a byte."""
        files = [(name, inode) for name, inode in self._found(path) if isinstance(inode, FileInode) and inode.size]
        if not files:
            return None
        name, inode = rng.choices(files, weights=[inode.size for _, inode in files])[0]
        offset, bit = rng.randrange(inode.size), rng.randrange(8)
        inode.pages.data[offset] ^= 1 << bit
        return name, offset, bit

    def wipe(self, path: str = "/") -> None:
        """Remove durably everything below a directory."""
        self.restore(DiskBackup(()), path)

    def backup(self, path: str = "/") -> DiskBackup:
        """Copy the contents of a directory as programs see them now."""
        base = len(path.rstrip("/")) + 1
        return DiskBackup(
            tuple(
                (
                    name[base:],
                    inode.mode,
                    bytes(inode.pages.data)
                    if isinstance(inode, FileInode)
                    else inode.target
                    if isinstance(inode, LinkInode)
                    else None,
                )
                for name, inode in self._found(path)
                if len(name) >= base
            )
        )

    def restore(self, backup: DiskBackup, path: str = "/") -> None:
        """Replace durably the contents of a directory by a copy. Open descriptors keep the files that they have."""
        self.make_directories(path)
        target = self._directory(path)
        assert target is not None
        self.names.clear()
        target.entries.clear()
        for name, mode, contents in backup.files:
            above, _, last = name.rpartition("/")
            directory = self._directory(f"{path}/{above}")
            assert directory is not None
            if contents is None:
                self.names.apply((directory, last, None, self.new_directory(mode, directory)))
            elif isinstance(contents, str):
                self.names.apply((directory, last, None, self.new_link(contents)))
            else:
                self.names.apply((directory, last, None, FileInode(self._number(), mode, self.now(), contents)))
        self.names.clear()
        self._recount()

    def crash(self, rng: Random) -> None:
        """Lose what a power cut loses. Every process of the host must have ended before."""
        # Names come first, because a removed file may get its old name back, and then it loses its unsynced data too.
        self.names.crash(rng)
        seen: set[int] = set()
        for _, inode in self._found("/"):
            inode.opens = 0
            if isinstance(inode, FileInode | DirectoryInode):
                inode.lockers.clear()
            if isinstance(inode, FileInode) and inode.number not in seen:
                seen.add(inode.number)
                inode.pages.crash(rng)
        self._recount()

    # ------------------------------------------------------------------------------------------- what file systems use

    def before_read(self) -> None:
        """Raise EIO if reads fail now."""
        if self._reads.count and self._reads.strikes():
            raise failure(errno.EIO)

    def before_change(self, path: str | None = None) -> None:
        """Refuse a change of a disk that is read-only."""
        self.changes += 1
        if self.read_only:
            raise failure(errno.EROFS, path)

    def before_write(self) -> None:
        """Wait while the disk stalls, and raise EIO if writes fail."""
        if self.read_only:
            raise failure(errno.EROFS)
        if self._troubled:
            self._stalled()
            if self._writes.strikes():
                raise failure(errno.EIO)
        if self.speed.write:
            self._wait(self.speed.write)

    def write(self, inode: FileInode, block: bytes, offset: int) -> int:
        """Write bytes to the page cache; return how many fit.

        Raises:
            OSError: ENOSPC, EFBIG, EROFS or EIO.
        """
        if self.read_only or self._troubled or self.speed.write:
            self.before_write()
        growth = offset + len(block) - len(inode.pages.data)
        if growth > 0:
            room = self.capacity - self.used
            if growth > room or growth + inode.size > MAX_FILE_BYTES:
                block = block[: max(0, len(block) - growth + self._room(inode, growth))]
                growth = offset + len(block) - inode.size
            self.used += max(0, growth)
        self.changes += 1
        inode.pages.write(block, offset)
        inode.mtime = inode.ctime = self.now()
        return len(block)

    def resize(self, inode: FileInode, size: int) -> None:
        """Change the size of a file. Raises OSError: ENOSPC, EFBIG, EROFS or EIO."""
        self.before_write()
        growth = size - inode.size
        if growth > 0 and self._room(inode, growth) < growth:
            raise failure(errno.ENOSPC)
        self.used += growth
        self.changes += 1
        inode.pages.resize(size)
        inode.mtime = inode.ctime = self.now()

    def pause(self, duration: int) -> None:
        """Block the calling thread for a time in ns."""
        self._wait(duration)

    def sync_file(self, inode: FileInode) -> None:
        """Make the data of a file durable, when this returns."""
        mark = inode.pages.mark()
        self._take_sync_time()
        if self._syncs.count and self._syncs.strikes():
            if self._loses_data:
                inode.pages.lose(mark)
            raise failure(errno.EIO)
        inode.pages.commit(mark)

    def sync_directory(self, directory: DirectoryInode) -> None:
        """Make the names in a directory durable, when this returns."""
        mark = self.names.mark()
        self._take_sync_time()
        if self._syncs.count and self._syncs.strikes():
            raise failure(errno.EIO)
        self.names.commit(directory, mark)

    def sync_all(self) -> None:
        """Make everything durable, when this returns."""
        marks = [(inode, inode.pages.mark()) for _, inode in self._found("/") if isinstance(inode, FileInode)]
        directories = [inode for _, inode in self._found("/") if isinstance(inode, DirectoryInode)]
        names = self.names.mark()
        self._take_sync_time()
        for inode, mark in marks:
            inode.pages.commit(mark)
        for directory in (self.root, *directories):
            self.names.commit(directory, names)

    def new_file(self, mode: int) -> FileInode:
        return FileInode(self._number(), mode, self.now())

    def new_directory(self, mode: int, parent: DirectoryInode) -> DirectoryInode:
        return DirectoryInode(self._number(), mode, self.now(), parent)

    def new_link(self, target: str) -> LinkInode:
        """Make a symbolic link without a name."""
        return LinkInode(self._number(), self.now(), target)

    def release(self, inode: Inode) -> None:
        """Free the bytes of a file that has neither names nor descriptors."""
        if isinstance(inode, FileInode) and not inode.links and not inode.opens:
            self.used -= inode.size

    def listing(self, directory: DirectoryInode) -> list[str]:
        """Return the names in a directory, in an order that depends on the seed only."""
        salt = self._salt
        return sorted(directory.entries, key=lambda name: (_scattered(name, salt), name))

    def make_directories(self, path: str) -> None:
        """Make a directory and those above it durably, as far as they are missing."""
        directory = self.root
        for name in filter(None, path.split("/")):
            inode = directory.entries.get(name)
            if inode is None:
                inode = self.new_directory(0o755, directory)
                inode.links = 1
                inode.whole = False
                directory.entries[name] = inode
            if not isinstance(inode, DirectoryInode):
                raise failure(errno.ENOTDIR, path)
            directory = inode

    def place_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Put a file on the disk durably, with the directories above it, as if it had always been there."""
        above, _, name = path.rpartition("/")
        self.make_directories(above)
        directory = self._directory(above)
        assert directory is not None
        inode = FileInode(self._number(), mode, self.now(), data)
        inode.links = 1
        self.used += len(data)
        directory.entries[name] = inode

    def _room(self, inode: FileInode, growth: int) -> int:
        """Return by how many bytes up to `growth` a file may grow; raise an error if by none.

        The last block of a file belongs to the file, so a file grows to the end of it on a full disk, too.
        """
        if inode.size + growth > MAX_FILE_BYTES:
            raise failure(errno.EFBIG)
        room = min(growth, max(-inode.size % BLOCK_BYTES, self.capacity - self.used))
        if room <= 0:
            raise failure(errno.ENOSPC)
        return room

    def _stalled(self) -> None:
        left = self._stalled_until - self.now()
        if left > 0:
            self._wait(left)

    def _take_sync_time(self) -> None:
        if self._troubled:
            self._stalled()
        rng, speed = self._rng, self.speed
        longest = speed.rare if rng.random() < speed.rare_share else speed.usual
        self._wait(speed.shortest + int(rng.random() * (longest - speed.shortest)) + self._extra_ns)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _directory(self, path: str) -> DirectoryInode | None:
        inode: Inode | None = self.root
        for name in filter(None, path.split("/")):
            inode = inode.entries.get(name) if isinstance(inode, DirectoryInode) else None
        return inode if isinstance(inode, DirectoryInode) else None

    def _found(self, path: str) -> list[tuple[str, Inode]]:
        """Return each path below a directory with its inode; a file alone if the path is one."""
        found: list[tuple[str, Inode]] = []
        above, _, last = path.rstrip("/").rpartition("/")
        inode = self._directory(path) or getattr(self._directory(above), "entries", {}).get(last)
        if not isinstance(inode, DirectoryInode):
            return [] if inode is None else [(path, inode)]
        paths = {inode.number: path.rstrip("/")}

        def visit(directory: DirectoryInode, name: str, inode: Inode) -> None:
            at = f"{paths[directory.number]}/{name}"
            if isinstance(inode, DirectoryInode):
                paths[inode.number] = at
            found.append((at, inode))

        walk(inode, visit)
        return found

    def _recount(self) -> None:
        """Count names and bytes again, after names were changed at one stroke."""
        found = [inode for _, inode in self._found("/")]
        for inode in found:
            inode.links = 0
        for inode in found:
            inode.links += 1
        files = {inode.number: inode.size for inode in found if isinstance(inode, FileInode)}
        self.used = sum(files.values())


def _scattered(name: str, salt: int) -> int:
    """Return a number that depends on a name and a salt, and not on the seed of Python's hashes."""
    value = salt
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value * 1_000_003 ^ byte) & 0xFFFF_FFFF
    return value
