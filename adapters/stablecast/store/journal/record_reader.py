"""The reading half of a journal: which run holds a number, its bytes, and when it came.

What is not synced yet is in memory. What is can be read here and now, or be fetched by a thread of its own (`fetcher`).
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from stablecast.core.errors import MisuseError
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.fetcher import Fetched, Fetcher
from stablecast.store.journal.index import Index
from stablecast.store.journal.pending import Pending
from stablecast.store.journal.record_format import Block
from stablecast.store.journal.segments import Place, SegmentReader


@attrs.frozen
class Found:
    """The run that holds a number: see `Journal.read`. `block` is None while it has to be fetched."""

    first: int
    count: int
    tag: int
    record: Place
    block: Block | None


class Reading:
    """What was recovered or appended, and is alive."""

    def __init__(self, directory: Path, index: Index, disk: Disk, pending: Pending) -> None:
        """Reads what `index` says, from `pending` what is not synced."""
        self._directory = directory
        self._disk = disk
        self._index = index
        self._pending = pending
        self._reader = SegmentReader(disk.open_files)
        self._fetcher = Fetcher(disk, self._tell)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def trail(self, stream: int) -> int | None:
        """Returns below which number a stream was trimmed; None: never."""
        erase = self._index.trails.get(stream)
        return None if erase is None else erase.stop

    def read(self, stream: int, number: int) -> tuple[int, int, int, bytes] | None:
        """Returns (first, count, tag, block) of the run that holds a number, or None.

        The block's first message is `first`. The run is live from `number` to before `first` + `count`, even if the
        block is longer; numbers in it before `number` may by now be held by another run (`extents` tells).

        Raises:
            JournalError: If the disk cannot be read or the record is damaged.
        """
        found = self._index.find(stream, number)
        if found is None:
            return None
        _, stop, record = found
        return record.first, stop - record.first, record.tag, self._block(record)

    def find(self, stream: int, number: int) -> Found | None:
        """The run that holds a number, with its block if that is in memory; None: there is none."""
        found = self._index.find(stream, number)
        if found is None:
            return None
        _, stop, record = found
        return Found(record.first, stop - record.first, record.tag, record, self._pending.block(record))

    def fetch(self, records: list[Place], done: Fetched) -> None:
        """Reads the blocks of synced records in a thread of its own; `done` is called on the loop.

        A record that goes meanwhile is read all the same: its segment is deleted by the same thread, later.
        """
        self._fetcher.fetch(records, done)

    def came_at(self, stream: int, number: int) -> int | None:
        """Returns when the run that holds a number came, in ns of the epoch; None: it is not here, or not known.

        Raises:
            JournalError: If the disk cannot be read.
        """
        found = self._index.find(stream, number)
        return None if found is None else self._reader.came_at(found[2])

    def extents(self, stream: int) -> list[tuple[int, int, int]]:
        """Returns (first, count, tag) of every live run of a stream, ascending and disjoint."""
        return self._index.extents(stream)

    def sizes(self, stream: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first, count, bytes) of every live run of a stream; of a part of a block its share of the bytes."""
        return self._index.sizes(stream)

    def _block(self, record: Place) -> bytes:
        block = self._pending.block(record)
        if block is not None:
            return bytes(block)
        if self._closed:
            raise MisuseError(f"the journal in {self._directory} is closed; read before that")
        return self._reader.block(record)

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        """Carries a report of a thread to the loop; if that is closed there is nobody left to tell."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *args)

    def _close_reading(self) -> None:
        self._closed = True
        self._reader.close_all()
