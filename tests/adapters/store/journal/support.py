"""Shared parts of the journal's tests: a journal that collects its reports, and the files of a directory."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stablecast.store.journal import Disk, Journal, JournalError
from stablecast.store.journal.disk import Sync, Write
from stablecast.store.journal.segments import list_segments

FAST_DIRECTORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""The directory for files of property tests; None is the default of `tempfile`."""


class Owner:
    """A running journal and what it told."""

    def __init__(self, journal: Journal, states: Callable[[], list[bytes]]) -> None:
        self.journal = journal
        self.synced: list[int] = []
        self.failures: list[JournalError] = []
        self._changed = asyncio.Event()
        journal.on_synced = self._on_synced
        journal.on_failed = self._on_failed
        journal.set_checkpoint(states)
        journal.start(asyncio.get_running_loop())

    @property
    def last(self) -> int:
        return self.synced[-1] if self.synced else 0

    async def until(self, ticket: int) -> None:
        while self.last < ticket:
            assert not self.failures
            self._changed.clear()
            await self._changed.wait()

    async def until_failed(self) -> None:
        while not self.failures:
            self._changed.clear()
            await self._changed.wait()

    def _on_synced(self, ticket: int) -> None:
        assert ticket > self.last
        self.synced.append(ticket)
        self._changed.set()

    def _on_failed(self, error: JournalError) -> None:
        self.failures.append(error)
        self._changed.set()


def no_states() -> list[bytes]:
    return []


def start(
    directory: Path,
    *,
    states: Callable[[], list[bytes]] = no_states,
    segment_bytes: int = 1 << 20,
    sync: Sync = os.fdatasync,
    write: Write = os.pwritev,
    short_ns: int = -1,
) -> Owner:
    """Opens and starts a journal on the running loop; a `sync` may wait, for by default that loop does not flush."""
    return Owner(Journal.open(directory, Disk(write, sync, segment_bytes, short_ns=short_ns)), states)


async def done_by_fetcher(owner: Owner) -> None:
    """Waits until the fetcher has done all jobs that it has."""
    done = asyncio.Event()
    owner.journal.fetch([], lambda _: done.set())
    await done.wait()


def segments(directory: Path) -> list[Path]:
    """The segment files, oldest first."""
    return list(list_segments(directory)[0].values())


def open_in(directory: Path) -> list[str]:
    """The names of the open files in a directory, also of those that were deleted."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            if link.readlink().is_relative_to(directory):
                found.append(link.readlink().name)
    return found


def read(journal: Journal, stream: int, number: int) -> tuple[int, int, int, bytes] | None:
    """(first, count, tag, block) of the run that holds a number, from memory or the disk."""
    found = journal.find(stream, number)
    if found is None:
        return None
    block = journal._reader.block(found.record) if found.block is None else bytes(found.block)
    return found.first, found.count, found.tag, block


def numbers(journal: Journal, stream: int) -> dict[int, int]:
    return {number: tag for first, count, tag in journal.extents(stream) for number in range(first, first + count)}
