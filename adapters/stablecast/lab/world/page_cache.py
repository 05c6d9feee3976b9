"""The pages of a simulated file: the bytes that programs see, and the changes that a power cut may undo.

The bytes are kept once. Each write adds a record with the bytes that it replaced, and a sync drops the records. So an
append and its sync cost little, whatever the size of the file. A power cut undoes all records and applies a seeded part
of them again, at the granularity of pages and sectors.
"""

from enum import IntEnum
from random import Random
from typing import Final

SECTOR_BYTES: Final = 512
"""Bytes that a disk writes whole or not at all."""

PAGE_BYTES: Final = 4096
"""Bytes that the system writes back together, if no power cut comes between their sectors."""

MAX_CHANGES: Final = 4096
"""Changes without a sync at most; above it the older half is written back, as the system does in time."""

ALL_LOST: Final = 0.2
PREFIX_KEPT: Final = 0.5
"""Shares of the power cuts that lose every unsynced change, and that keep the first ones. Others keep any pages."""

TORN_PAGES: Final = 0.25
"""The share of pages of which a power cut keeps some sectors only."""


class ChangeFate(IntEnum):
    """The outcome of a change at a power cut: open, lost for good after a failed sync, or durable."""

    DIRTY = 0
    LOST = 1
    DURABLE = 2


class FileChange:
    """One change of a file.

    Attributes:
        offset: Place of the bytes.
        length: Bytes that were written, 0 if only the size changed.
        old: Bytes that were replaced or cut off.
        before: Size of the file before, in bytes.
        after: Size of the file after, in bytes.
        fate: The outcome of the change at a power cut.
    """

    __slots__ = ("after", "before", "fate", "length", "offset", "old")

    def __init__(self, offset: int, length: int, old: bytes, before: int, after: int) -> None:
        """Make a change that no sync has covered."""
        self.offset = offset
        self.length = length
        self.old = old
        self.before = before
        self.after = after
        self.fate = ChangeFate.DIRTY


class PageCache:
    """The bytes of one file.

    Attributes:
        data: The bytes that programs read. Do not export views of it, because then it could not grow.
    """

    __slots__ = ("_changes", "_first", "_lossy", "data")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self._changes: list[FileChange] = []
        self._first = 0  # The number of the first change in the list.
        self._lossy = False  # True if a change in the list is lost.

    @property
    def unsynced(self) -> int:
        """Return the count of changes that a power cut may undo."""
        return sum(change.fate is not ChangeFate.DURABLE for change in self._changes)

    def write(self, block: bytes, offset: int) -> None:
        """Write bytes at an offset; a gap before them is filled with zeros."""
        data = self.data
        size = len(data)
        end = offset + len(block)
        if offset == size:
            old = b""
            data += block
        elif offset < size:
            old = bytes(data[offset:end])
            data[offset:end] = block
        else:
            old = b""
            data.extend(bytes(offset - size))
            data += block
        self._note(FileChange(offset, len(block), old, size, max(size, end)))

    def resize(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        data = self.data
        before = len(data)
        if size < before:
            old = bytes(data[size:])
            del data[size:]
            self._note(FileChange(size, 0, old, before, size))
        elif size > before:
            data.extend(bytes(size - before))
            self._note(FileChange(before, 0, b"", before, size))

    def mark(self) -> int:
        """Return a mark after all changes so far, for `commit` and `lose`."""
        return self._first + len(self._changes)

    def commit(self, mark: int) -> None:
        """Make the changes before a mark durable, except those that are lost already."""
        count = mark - self._first
        if count <= 0:
            return
        if not self._lossy:
            del self._changes[:count]
            self._first = mark
            return
        # Changes are undone in order, so durable ones stay in the list after a lost one.
        pages: set[int] = set()
        for change in reversed(self._changes[:count]):
            touched = range(change.offset // PAGE_BYTES, -(-(change.offset + change.length) // PAGE_BYTES))
            # A page is written as programs see it, so it brings a lost change with it.
            if change.fate is ChangeFate.DIRTY or (touched and pages.issuperset(touched)):
                change.fate = ChangeFate.DURABLE
                pages.update(touched)

    def lose(self, mark: int) -> None:
        """Drop the dirty changes before a mark: programs still read them, but no later sync writes them."""
        for change in self._changes[: max(0, mark - self._first)]:
            if change.fate is ChangeFate.DIRTY:
                change.fate = ChangeFate.LOST
                self._lossy = True

    def crash(self, rng: Random) -> None:
        """Leave what a power cut leaves: all that is durable, and a seeded part of the other changes."""
        if self._changes:
            blocks = self._undo_all()
            chosen = rng.random()
            if chosen >= ALL_LOST + PREFIX_KEPT:
                self._replay(blocks, _ScatteredPages(rng, len(blocks)), rng.randint(0, len(blocks)))
            else:
                kept = 0 if chosen < ALL_LOST else rng.randint(0, len(blocks))
                self._replay(blocks, _FirstChanges(rng, kept, torn=chosen >= ALL_LOST), kept + (rng.random() < 0.5))
        self._first, self._changes, self._lossy = self.mark(), [], False

    def _note(self, change: FileChange) -> None:
        self._changes.append(change)
        if len(self._changes) > MAX_CHANGES and not self._lossy:
            self.commit(self._first + MAX_CHANGES // 2)

    def _undo_all(self) -> list[bytes]:
        """Return to the state before all changes; return the bytes that each of them wrote."""
        data = self.data
        blocks = []
        for change in reversed(self._changes):
            blocks.append(bytes(data[change.offset : change.offset + change.length]))
            if change.after > change.before:
                del data[change.before :]
            elif change.after < change.before:
                data.extend(bytes(change.before - change.after))
            data[change.offset : change.offset + len(change.old)] = change.old
        blocks.reverse()
        return blocks

    def _replay(self, blocks: list[bytes], kept: "_FirstChanges | _ScatteredPages", sized: int) -> None:
        """Apply durable changes again, and the sectors in `kept` of dirty ones; sizes change up to number `sized`."""
        data = self.data
        size = len(data)
        for number, (change, block) in enumerate(zip(self._changes, blocks, strict=True)):
            if change.fate is ChangeFate.LOST:
                continue
            durable = change.fate is ChangeFate.DURABLE
            # A cut is a write of zeros here. If only a later change extends the file again, it must read zeros there.
            start, written = (
                (change.after, bytes(change.before - change.after))
                if change.after < change.before
                else (change.offset, block)
            )
            spans = [(start, start + len(written))] if durable else kept.spans(number, start, start + len(written))
            for first, stop in spans:
                if len(data) < stop:
                    data.extend(bytes(stop - len(data)))
                data[first:stop] = written[first - start : stop - start]
            if change.after != change.before and (durable or number < sized):
                size = change.after
        if size < len(data):
            del data[size:]
        else:
            data.extend(bytes(size - len(data)))


class _FirstChanges:
    """A power cut that kept the first changes, and perhaps the first sectors of the next one."""

    def __init__(self, rng: Random, kept: int, *, torn: bool) -> None:
        self._rng = rng
        self._kept = kept
        self._torn = torn

    def spans(self, number: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of the bytes [start, stop) of a change that are on the disk."""
        if number > self._kept or (number == self._kept and not self._torn):
            return []
        if number == self._kept:
            sectors = range(start // SECTOR_BYTES, (stop - 1) // SECTOR_BYTES + 1)
            stop = min(stop, (sectors.start + self._rng.randint(0, len(sectors))) * SECTOR_BYTES)
        return [(start, stop)] if stop > start else []


class _ScatteredPages:
    """A power cut that found each page written back at another time, and some pages half written."""

    def __init__(self, rng: Random, changes: int) -> None:
        self._rng = rng
        self._changes = changes
        self._versions: dict[int, tuple[int, ...]] = {}  # By page, the changes that its sectors have.

    def spans(self, number: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of the bytes [start, stop) of a change that are on the disk."""
        found = []
        for page in range(start // PAGE_BYTES, -(-stop // PAGE_BYTES)):
            low = page * PAGE_BYTES
            for sector, version in enumerate(self._versions.get(page) or self._drawn(page)):
                first = max(start, low + sector * SECTOR_BYTES)
                last = min(stop, low + (sector + 1) * SECTOR_BYTES)
                if number < version and first < last:
                    found.append((first, last))
        return found

    def _drawn(self, page: int) -> tuple[int, ...]:
        rng = self._rng
        newest = rng.randint(0, self._changes)
        oldest = rng.randint(0, newest) if rng.random() < TORN_PAGES else newest
        sectors = range(PAGE_BYTES // SECTOR_BYTES)
        drawn = self._versions[page] = (
            (newest,) * len(sectors)
            if oldest == newest
            else tuple(newest if rng.random() < 0.5 else oldest for _ in sectors)
        )
        return drawn
