"""The files, directories and links of a simulated disk, and the changes of names that a power cut may undo."""

import stat
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from stablecast.lab.world.page_cache import PageCache

MAX_NAME_CHANGES: Final = 4096
"""Changes of names without a sync at most; above it the older half is durable, as the system does in time."""

IN_ORDER: Final = 0.75
"""The share of power cuts that keep the first changes of names. Others keep any changes that do not need lost ones."""


class Inode:
    """A file, a directory or a link, whatever its names.

    Attributes:
        number: The number that no other inode of the disk has.
        mode: Kind and permissions, as in `os.stat`. Permissions are kept and not judged, as for root.
        links: The count of names.
        opens: The count of descriptors.
        atime: Time of the last read, likewise `mtime` of a change and `ctime` of a change of metadata; ns of the epoch.
    """

    __slots__ = ("atime", "ctime", "gid", "links", "mode", "mtime", "number", "opens", "uid")

    def __init__(self, number: int, mode: int, now: int) -> None:
        self.number = number
        self.mode = mode
        self.uid = self.gid = 0
        self.links = 0
        self.opens = 0
        self.atime = self.mtime = self.ctime = now

    @property
    def size(self) -> int:
        """Return the size in bytes as `os.stat` shows it."""
        return 0


class FileInode(Inode):
    """A regular file.

    Attributes:
        pages: Its bytes.
        lockers: The open files that hold its lock.
        exclusive: True if the lock is exclusive.
    """

    __slots__ = ("exclusive", "lockers", "pages")

    def __init__(self, number: int, mode: int, now: int, data: bytes = b"") -> None:
        super().__init__(number, stat.S_IFREG | stat.S_IMODE(mode), now)
        self.pages = PageCache(data)
        self.lockers: list[object] = []
        self.exclusive = False

    @property
    def size(self) -> int:
        return len(self.pages.data)


class LinkInode(Inode):
    """A symbolic link to the path `target`."""

    __slots__ = ("target",)

    def __init__(self, number: int, now: int, target: str) -> None:
        """Make a link, which may lead nowhere."""
        super().__init__(number, stat.S_IFLNK | 0o777, now)
        self.target = target

    @property
    def size(self) -> int:
        return len(self.target.encode("utf-8", "surrogateescape"))


class DirectoryInode(Inode):
    """A directory.

    Attributes:
        entries: The inode of each name.
        parent: The directory that holds it; the root is its own parent.
        whole: True if nothing of the real machine shows through it, see `FileSystem.shows_real`.
        lockers: The open files that hold its lock.
        exclusive: True if the lock is exclusive.
    """

    __slots__ = ("entries", "exclusive", "lockers", "parent", "whole")

    def __init__(self, number: int, mode: int, now: int, parent: "DirectoryInode | None" = None) -> None:
        super().__init__(number, stat.S_IFDIR | stat.S_IMODE(mode), now)
        self.entries: dict[str, Inode] = {}
        self.parent = parent or self
        self.whole = True
        self.lockers: list[object] = []
        self.exclusive = False

    @property
    def size(self) -> int:
        return 4096


Entry = tuple[DirectoryInode, str, Inode | None, Inode | None]
"""A name in a directory, and its inode before and after a change."""


def _keys(change: tuple[Entry, ...]) -> set[tuple[int, str]]:
    """Return what a change is about: its names and its inodes. Changes with a common key keep their order."""
    names = {(directory.number, name) for directory, name, _, _ in change}
    inodes = {(inode.number, "") for *_, before, after in change for inode in (before, after) if inode is not None}
    return names | inodes


class NameChanges:
    """The changes of names that no sync of a directory has covered. Each is carried out whole or not at all."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, tuple[Entry, ...]]] = []
        self._count = 0

    def __len__(self) -> int:
        """Return the count of changes that a power cut may undo."""
        return len(self._changes)

    def apply(self, *entries: Entry) -> None:
        """Change names. Several entries are one change: a power cut leaves all or none of them."""
        _assign((directory, name, after) for directory, name, _, after in entries)
        self._changes.append((self._count, entries))
        self._count += 1
        if len(self._changes) > MAX_NAME_CHANGES:
            del self._changes[: MAX_NAME_CHANGES // 2]

    def mark(self) -> int:
        """Return a mark after all changes so far, for `commit`."""
        return self._count

    def commit(self, directory: DirectoryInode, mark: int) -> None:
        """Make the changes in a directory before a mark durable, and the earlier ones that they need."""
        needed: set[tuple[int, str]] = set()
        left = []
        for number, change in reversed(self._changes):
            keys = _keys(change)
            inside = any(entry[0] is directory for entry in change)
            if number < mark and (inside or not needed.isdisjoint(keys)):
                needed |= keys
            else:
                left.append((number, change))
        self._changes = left[::-1]

    def clear(self) -> None:
        """Make all changes durable."""
        self._changes = []

    def crash(self, rng: Random) -> None:
        """Undo the changes that a power cut loses."""
        changes = [change for _, change in self._changes]
        self.clear()
        for change in reversed(changes):
            _assign((directory, name, before) for directory, name, before, _ in reversed(change))
        for change in self._kept(changes, rng) if changes else ():
            _assign((directory, name, after) for directory, name, _, after in change)

    def _kept(self, changes: list[tuple[Entry, ...]], rng: Random) -> list[tuple[Entry, ...]]:
        """Return the changes that reached the disk by themselves."""
        if rng.random() < IN_ORDER:
            return changes[: rng.randint(0, len(changes))]
        kept = []
        lost: set[tuple[int, str]] = set()
        for change in changes:
            keys = _keys(change)
            if lost.isdisjoint(keys) and rng.random() < 0.5:
                kept.append(change)
            else:
                lost |= keys
        return kept


def _assign(names: Iterable[tuple[DirectoryInode, str, Inode | None]]) -> None:
    for directory, name, inode in names:
        if inode is None:
            directory.entries.pop(name, None)
        else:
            directory.entries[name] = inode
            if isinstance(inode, DirectoryInode):
                inode.parent = directory


def walk(directory: DirectoryInode, visit: Callable[[DirectoryInode, str, Inode], None]) -> None:
    """Call `visit` with each name below a directory, in the order of names, directories before their contents."""
    for name, inode in sorted(directory.entries.items(), key=lambda entry: entry[0]):
        visit(directory, name, inode)
        if isinstance(inode, DirectoryInode):
            walk(inode, visit)
