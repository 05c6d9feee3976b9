"""The journal: one per store, owned by one event loop.

All code here runs on the loop's thread. It lays out records, keeps the index and decides which segments to delete. The
writer and its thread write and sync (`writer`); the fetcher's thread reads back and deletes (`fetcher`). Their reports
come back through the loop. Blocks that are not synced yet are read from memory.
"""

import asyncio
import errno
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Self

from stablecast.core.errors import MisuseError
from stablecast.core.machine.durations import Durations
from stablecast.runtime import machine
from stablecast.store.journal.disk import DISK, Disk
from stablecast.store.journal.fetcher import Fetched, Fetcher
from stablecast.store.journal.index import Erase
from stablecast.store.journal.lock import LOOK_SECONDS, DirectoryLock, FilesLostError
from stablecast.store.journal.number_pieces import Live
from stablecast.store.journal.record_format import (
    HIGHEST,
    LOWEST,
    MESSAGES_HEAD,
    RECORD_HEADER_BYTES,
    VERSION,
    Block,
    JournalError,
    RecordKind,
    bounded,
    checked_state,
    join_states,
)
from stablecast.store.journal.recovery import RecoveredJournal, recover
from stablecast.store.journal.scrubber import Scrubber, SegmentExamination
from stablecast.store.journal.segments import (
    JournalRecord,
    JournalSegment,
    Position,
    RecordPlace,
    SegmentReader,
    StoredRun,
    segment_path,
)
from stablecast.store.journal.times import TimeSearch
from stablecast.store.journal.unsynced_records import Pending
from stablecast.store.journal.writer import JournalWriter, Syncs
from stablecast.text import refusal
from stablecast.text.scarcity import REMEDY, is_scarce

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))
"""System errors that end when somebody frees disk space."""

MAX_QUEUED_BYTES = 64 << 20
"""Bytes appended and not yet synced above which `Journal.pressure` asks the owner to stop reading."""

MAX_QUEUED_RECORDS = 16_384
"""Records likewise: each takes some 700 bytes of memory beside its block, which a process never gives back."""


class _Life(IntEnum):
    OPEN = 0
    RUNNING = 1
    CLOSING = 2
    FAILED = 3
    CLOSED = 4


_STARTED = frozenset((_Life.RUNNING, _Life.CLOSING, _Life.FAILED))
"""The states in which the writer's thread may be alive."""


class Journal:
    """Durable records of a store: open, use what was recovered, `set_checkpoint`, `start`, append, `close`.

    Attributes:
        recovered_states: The states of the newest checkpoint and the STATE bodies after it, in order.
        reports: One sentence for each damage or torn end that the scan found.
        waits: For each batch, the time from the arrival of its oldest message until the batch is synced.
        whole: True if there was a journal, and no state after its newest checkpoint can be missing.
        unnamed: True if messages may be missing, and the journal does not know their numbers.
        lost: Stream, first, count and bytes of all messages in records that the open could not read. No other method
            shows them.
        on_synced: Called on the loop with the highest ticket of which every record is synced.
        on_failed: Called on the loop, once, when the disk fails; no ticket is reported after it. By default it raises.
        on_bad: Called on the loop with stream, record and error of a record with live messages that the scrubber
            cannot read.
        scrubber: Verifies all records again, slowly, or at once by its method `hurry`.
    """

    def __init__(self, directory: Path, lock: DirectoryLock, found: RecoveredJournal, disk: Disk):
        """Make a journal of what was recovered; call `open` instead."""
        self.recovered_states = found.states
        self.reports = found.reports
        self.waits = Durations()
        self.whole = bool(found.segments) and not found.damaged
        self.unnamed = found.unnamed
        self.lost = [
            (stream, first, stop - first, place.block_bytes * (stop - first) // place.count)
            for stream, first, stop, place in found.lost
        ]
        self.on_synced: Callable[[int], None] = lambda _: None
        self.on_failed: Callable[[JournalError], None] = _raise
        self.on_bad: Callable[[int, RecordPlace, JournalError], None] = lambda *_: None
        self._directory = directory
        self._disk = disk
        self._lock = lock
        self._index = found.index
        self._segments = found.segments
        self._next_number = found.next_number
        self._active = found.newest
        if self._active is not None:
            # A segment of an older version is full, because its records have another layout.
            current = self._active.version == VERSION
            # Behind a gap a new checkpoint is due, with all states and erasures.
            self._active.limit = disk.segment_bytes if current and not found.gapped else 0
        self._checkpoint: Callable[[], list[bytes]] | None = None
        self._dead: dict[JournalSegment, int] = {}
        self._ended: deque[tuple[JournalSegment, int]] = deque()
        self._gapped = found.gapped
        self._life = _Life.OPEN
        self._failure: JournalError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        for stream, first, stop, place in found.lost:
            self.disown(stream, first, stop, place)
        self._pending = Pending(found.root)
        self._reader = SegmentReader(disk.open_files)
        self._fetcher = Fetcher(disk, self._tell, lock)
        self.scrubber = Scrubber(disk.scrub, disk.verify, self._fetcher, self._synced, self._examine)
        self._writer = JournalWriter(
            disk,
            self._tell,
            committed=self._on_committed,
            failed=self._on_failed,
            stopped=self._stopped.set,
            lock=lock,
        )
        self._look_timer: asyncio.TimerHandle | None = None

    @classmethod
    def open(cls, directory: Path, disk: Disk = DISK, beside: Iterable[Path] = ()) -> Self:
        """Lock a directory and recover its records.

        Args:
            directory: An existing directory; an empty one is a new journal.
            disk: The way to write, sync and read.
            beside: Other files of the owner. If one loses its name while the journal runs, the journal fails.

        Raises:
            JournalError: The directory is missing, not writable, in use, or written by a newer release.
        """
        if not machine.files.is_directory(directory):
            raise JournalError(f"there is no journal directory {directory}; create it or correct the path")
        try:
            lock = DirectoryLock(directory)
            lock.watch(beside)
        except OSError as error:
            why = f"{refusal(error)}; {remedy_of(error, 'give this user access to it')}"
            raise JournalError(f"cannot write to the journal directory {directory}: {why}") from error
        try:
            return cls(directory, lock, recover(directory, disk), disk)
        except OSError as error:
            lock.release()
            raise JournalError(
                f"cannot read the journal in {directory}: {error}; {remedy_of(error, 'check the disk')}"
            ) from error
        except JournalError as error:
            lock.release()
            raise JournalError(f"cannot use the journal in {directory}: {error}") from error

    def set_checkpoint(self, callback: Callable[[], list[bytes]]) -> None:
        """Set the function that returns the owner's whole state: JSON objects that replace every earlier STATE record.

        An append calls it when a segment is full. The state may already include the record that is being appended.
        """
        self._checkpoint = callback

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads; their reports come on `loop`.

        Raises:
            MisuseError: `set_checkpoint` was not called, or the journal was started before.
        """
        if self._checkpoint is None or self._life is not _Life.OPEN:
            raise MisuseError("call Journal.set_checkpoint before Journal.start, and start a journal once")
        self._loop = loop
        self._life = _Life.RUNNING
        # The owner may have read the times of many segments while it recovered; few of them will be read again.
        self._reader.close_all()
        self._fetcher.start()
        self._writer.start(loop.call_soon)
        self.scrubber.start(loop)
        self._look_later()
        self._retire(segment for segment in self._segments.values() if not segment.live)

    async def close(self) -> None:
        """Sync all records, stop the threads and unlock the directory.

        Raises:
            JournalError: The disk failed, now or before. The directory is unlocked all the same.
        """
        if self._life is _Life.RUNNING:
            self._life = _Life.CLOSING
        self.scrubber.stop()
        self._look_no_more()
        if self._life in _STARTED:
            self._writer.close()
            await self._stopped.wait()
            if self._failure is None and self._active is not None and self._active.on_disk:
                # A segment that ended cleanly has no torn end, so the next open finds damage in it by its summary.
                self._summarize(self._active)
            # The fetcher ends last, because syncs that the writer reports may still delete segments.
            await self._fetcher.close()
        self._release()
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """Stop at once, without further syncs or reports. Wait for the system call that is under way."""
        self.scrubber.stop()
        self._look_no_more()
        if self._life in _STARTED:
            self._writer.abort()
            self._fetcher.abort()
        self._release()
        self._stopped.set()

    @property
    def pressure(self) -> bool:
        """Return True if more than `MAX_QUEUED_BYTES` or `MAX_QUEUED_RECORDS` wait for the disk."""
        pending = self._pending
        return pending.size > MAX_QUEUED_BYTES or pending.added - pending.synced > MAX_QUEUED_RECORDS

    @property
    def queued_bytes(self) -> int:
        """Return the bytes that were appended and are not yet synced."""
        return self._pending.size

    @property
    def segments(self) -> int:
        """Return the number of segments in use."""
        return len(self._segments)

    @property
    def disk_bytes(self) -> int:
        """Return the bytes of the segments in use."""
        return sum(segment.end for segment in self._segments.values())

    @property
    def syncs(self) -> Syncs:
        return self._writer.syncs

    # --------------------------------------------------------------------------------------------------------- reading

    def trail(self, stream: int) -> int | None:
        """Return the number below which a stream was trimmed, None if it never was."""
        erase = self._index.trails.get(stream)
        return None if erase is None else erase.stop

    def find(self, stream: int, number: int) -> StoredRun | None:
        """Return the run that holds a number, with its block if that is in memory; None if no run does."""
        found = self._index.find(stream, number)
        if found is None:
            return None
        _, stop, record = found
        return StoredRun(record.first, stop - record.first, record.tag, record, self._pending.block(record))

    def fetch(self, records: list[RecordPlace], done: Fetched) -> None:
        """Read the blocks of synced records in the fetcher's thread; it calls `done` on the loop.

        A segment that is deleted meanwhile is still read, because the same thread deletes it later.
        """
        self._fetcher.fetch(records, done)

    def came_at(self, stream: int, number: int) -> int | None:
        """Return when the run with a number was appended, in ns of the epoch; None if that is not known.

        Raises:
            JournalError: The disk cannot be read.
        """
        found = self._index.find(stream, number)
        return None if found is None else self._reader.came_at(found[2])

    def times(self, stream: int) -> TimeSearch:
        """Return the search for the messages of a stream by the time at which they came."""

        def following(number: int) -> Live | None:
            pieces = self._index.streams.get(stream)
            return None if pieces is None else pieces.following(number)

        return TimeSearch(following, self._read_times)

    def _read_times(self, records: list[RecordPlace]) -> asyncio.Future[list[int | None]]:
        """Read the times of records in the fetcher's thread; a record that is not synced came now."""
        found: asyncio.Future[list[int | None]] = asyncio.get_running_loop().create_future()
        if self._life is not _Life.RUNNING:
            found.set_result([None] * len(records))
            return found
        waiting = [self._pending.block(record) is not None for record in records]
        now = machine.clock.wall_ns()

        def done(times: list[int | None]) -> None:
            if not found.done():
                read = iter(times)
                found.set_result([now if waits else next(read) for waits in waiting])

        self._fetcher.times([record for record, waits in zip(records, waiting, strict=True) if not waits], done)
        return found

    def extents(self, stream: int) -> list[tuple[int, int, int]]:
        """Return (first, count, tag) of every live run of a stream, ascending and disjoint."""
        return self._index.extents(stream)

    def sizes(self, stream: int) -> Iterator[tuple[int, int, int]]:
        """Yield (first, count, bytes) of every live run of a stream; a part of a block has its share of the bytes."""
        return self._index.sizes(stream)

    # ------------------------------------------------------------------------------------------------------- appending

    def append_messages(self, stream: int, first: int, count: int, tag: int, block: Block, ticket: int) -> None:
        """Append a run of messages. It replaces messages of the stream with the same numbers.

        Args:
            stream: Key of the stream, 64 bits.
            first: Extended sequence number of the first message.
            count: Numbers in the run, 1 or more.
            tag: Incarnation of the source, 64 bits.
            block: The messages as received. The journal does not copy it, so it must not change any more.
            ticket: 1 or more, never lower than the one before.

        Raises:
            MisuseError: An argument is out of range, or the journal is not running.
            JournalError: The disk has failed.
        """
        if count < 1:
            raise MisuseError(f"a run of {count} messages cannot be appended; give at least one")
        try:
            head = MESSAGES_HEAD.pack(stream, first, count, tag, machine.clock.wall_ns())
        except struct.error as error:
            raise MisuseError(f"a number of the run does not fit its field: {error}") from error
        record = self._append(RecordKind.MESSAGES, (head, bounded(block)), ticket)
        record.segment.summary.add(stream, first, count, tag, record.offset, record.size)
        emptied = self._index.add(stream, RecordPlace(record.segment, record.offset, record.size, first, tag, count))
        if emptied:
            self._retire(emptied)

    def append_state(self, body: bytes, ticket: int) -> None:
        """Append a piece of the owner's state: one JSON object, UTF-8.

        Raises:
            MisuseError: The body is no JSON object, the ticket is out of order, or the journal is not running.
            JournalError: The disk has failed.
        """
        self._append(RecordKind.STATE, (checked_state(body),), ticket)

    def append_note(self, body: bytes) -> None:
        """Append a state that no ticket reports, to a running journal."""
        self._put(RecordKind.STATE, (checked_state(body),), 0)

    def cut(self, stream: int, at: int, ticket: int) -> None:
        """Forget the numbers >= `at` of a stream, durably when `ticket` is reported. Raises like `append_state`."""
        self._erase(Erase(stream, at, HIGHEST, self._position()), ticket)

    def forget(self, stream: int, ticket: int) -> None:
        """Forget a stream, durably when `ticket` is reported. Raises like `append_state`."""
        self._erase(Erase(stream, LOWEST, HIGHEST, self._position()), ticket)

    def trim(self, stream: int, number: int, ticket: int) -> None:
        """Forget the numbers < `number` of a stream, durably when `ticket` is reported. Raises like `append_state`.

        `number` is the stream's trail from then on, even if no message of the stream is left.
        """
        self._erase(Erase(stream, LOWEST, number, self._position()), ticket)

    def disown(self, stream: int, first: int, stop: int, place: RecordPlace) -> None:
        """Forget [first, stop) in a record that cannot be read, and in older ones, so that no later open shows them.

        No ticket reports this. Messages that were written since stay. Before `start` it is durable with the next
        checkpoint. Raises like `append_state`.
        """
        if self._life not in (_Life.OPEN, _Life.RUNNING):
            raise self._not_running()
        segment, offset = place.position
        # An erasure looks back from a position. One byte further includes the bad record, and none after it.
        erase = Erase(stream, first, stop, (segment, offset + 1))
        if self._life is _Life.OPEN:
            self._index.erase(erase)
            return
        self._erased(erase, self._put(RecordKind.ERASE, (erase.body(),), 0))

    def _position(self) -> Position:
        """Return the place after all appended records."""
        return (self._next_number, 0) if self._active is None else (self._active.number, self._active.end)

    def _not_running(self) -> Exception:
        if self._failure is not None:
            return self._failure
        return MisuseError(f"the journal in {self._directory} is not running; append between start and close")

    def _erase(self, erase: Erase, ticket: int) -> None:
        self._erased(erase, self._append(RecordKind.ERASE, (erase.body(),), ticket))

    def _erased(self, erase: Erase, record: JournalRecord) -> None:
        record.segment.streams.add(erase.stream)
        emptied = self._index.erase(erase)
        if emptied:
            self._retire(emptied)

    def _append(self, kind: RecordKind, parts: tuple[Block, ...], ticket: int) -> JournalRecord:
        """Check and queue a record of the owner."""
        if self._life is not _Life.RUNNING:
            raise self._not_running()
        self._pending.issue(ticket)
        return self._put(kind, parts, ticket)

    def _put(self, kind: RecordKind, parts: tuple[Block, ...], ticket: int) -> JournalRecord:
        """Queue a record at the end of the active segment, or of a new one if that is full."""
        size = RECORD_HEADER_BYTES + sum(map(len, parts))
        active = self._active
        if active is None or active.end + size > active.limit:
            active = self._roll(size)
        record = JournalRecord(active, active.end, size, kind, ticket, parts)
        if kind is not RecordKind.MESSAGES:
            active.summary.note(active.end)
        active.end += size
        self._pending.add(record)
        self._writer.put(record)
        return record

    def _roll(self, size: int) -> JournalSegment:
        """Begin a segment with the erasures that still matter and a checkpoint, and room for `size` more bytes."""
        # The checkpoint is computed first: if the owner raises, no segment was begun.
        states = join_states([] if self._checkpoint is None else self._checkpoint())
        number = self._next_number
        self._next_number += 1
        erases = self._index.prune(self._segments.values())
        previous = self._active
        # HIGHEST keeps `_put` below from rolling again before the checkpoint is there.
        segment = JournalSegment(number, machine.entropy.bits(32), segment_path(self._directory, number), limit=HIGHEST)
        self._segments[number] = self._active = segment
        for erase in erases:
            self._put(RecordKind.ERASE, (erase.body(),), 0)
            segment.streams.add(erase.stream)
        self._put(RecordKind.CHECKPOINT, (states,), 0)
        segment.limit = segment.end + max(self._disk.segment_bytes, size)
        if previous is not None:
            self._ended.append((previous, self._pending.added))
            if not previous.live:
                self._dead[previous] = self._pending.added
        return segment

    def _synced(self) -> dict[JournalSegment, int]:
        return self._pending.synced_ends(segment for segment in self._segments.values() if segment.on_disk)

    def _examine(self, segment: JournalSegment) -> None:
        """Report each live record of a damaged segment that cannot be read."""
        if segment is self._active and self._life is _Life.RUNNING:
            # The bad record may be a state or an erasure. A new checkpoint has them all.
            self._roll(0)
        live = [(stream, place) for stream in segment.streams for place in self._index.places(stream, segment)]
        synced = [(stream, place) for stream, place in live if self._pending.block(place) is None]
        SegmentExamination(self._fetcher, synced, self.on_bad).read()

    def _summarize_ended(self) -> None:
        """Have the summaries of ended segments written, once their records are on the disk.

        A summary that outlived its records in a power cut would make a torn end look like damage.
        """
        while self._ended and self._ended[0][1] <= self._pending.synced:
            segment, _ = self._ended.popleft()
            if segment.number in self._segments:
                self._summarize(segment)

    def _summarize(self, segment: JournalSegment) -> None:
        """Have the summary of an ended segment written, unless it would hide a gap too early."""
        if segment not in self._gapped:
            self._fetcher.summarize(segment)

    def _close_gaps(self) -> None:
        """Write summaries without the gaps that the open found. A synced checkpoint now has what follows from them."""
        gapped, self._gapped = self._gapped, []
        for segment in gapped:
            if segment.number in self._segments:
                self._fetcher.summarize(segment)

    # -------------------------------------------------------------------------------------------------------- deleting

    def _retire(self, segments: Iterable[JournalSegment]) -> None:
        """Note segments without live messages, to delete them later."""
        for segment in sorted(segments, key=lambda one: one.number):
            self._dead[segment] = self._pending.added
        self._collect()

    def _collect(self) -> None:
        """Delete the noted segments that no open needs any more.

        The records that killed their messages must be on the disk, and so must a newer checkpoint. Otherwise a crash
        would leave a journal in which the messages are gone, but not the reason.
        """
        for segment, due in list(self._dead.items()):
            if segment.live:  # It was the active one, and got new messages.
                del self._dead[segment]
                continue
            if due > self._pending.synced or segment.number >= self._pending.root:
                continue
            self._reader.close(segment)
            del self._dead[segment], self._segments[segment.number]
            self._fetcher.remove(segment, self._on_failed)

    # --------------------------------------------------------------------------------------------------------- looking

    def _look(self) -> None:
        """Compare the names of all files with what is open: others may have removed or replaced them."""
        self._fetcher.look([one for one in self._segments.values() if one.on_disk], self._on_failed)
        self._look_later()

    def _look_later(self) -> None:
        assert self._loop is not None
        self._look_timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def _look_no_more(self) -> None:
        if self._look_timer is not None:
            self._look_timer.cancel()

    # ---------------------------------------------------------------------------------------------- reports of threads

    def _tell(self, callback: Callable[..., None], *args: object) -> None:
        """Carry a report of a thread to the loop. A closed loop has no listener, so the report is dropped."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *args)

    def _on_committed(self, count: int) -> None:
        """Note that the next `count` records are synced."""
        if self._life not in (_Life.RUNNING, _Life.CLOSING):
            return  # A report that was under way when the journal failed or was aborted must not make a ticket stable.
        came_at = self._pending.came_at()
        if came_at is not None:
            # The oldest message of a batch waits the longest. One clock read for a batch costs little beside its sync.
            self.waits.add(machine.clock.wall_ns() - came_at)
        reported = self._pending.done
        root = self._pending.root
        self._pending.commit(count)
        if self._gapped and self._pending.root > root:
            self._close_gaps()
        if self._ended:
            self._summarize_ended()
        if self._dead:
            self._collect()
        if self._pending.done != reported:
            self.on_synced(self._pending.done)

    def _on_failed(self, error: Exception) -> None:
        if self._life not in (_Life.RUNNING, _Life.CLOSING):
            return
        self._life = _Life.FAILED
        self._look_no_more()
        if isinstance(error, FilesLostError):
            self._failure = error
        else:
            text = f"the journal in {self._directory} cannot be written: {refusal(error)}"
            self._failure = JournalError(f"{text}; {remedy_of(error, 'make room or replace the disk, then restart')}")
            self._failure.__cause__ = error
        self.on_failed(self._failure)

    def _release(self) -> None:
        self._life = _Life.CLOSED
        self._reader.close_all()
        self._lock.release()


def remedy_of(error: BaseException, otherwise: str) -> str:
    """Return what an operator can do about a failure."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return "make room (bytes, inodes or quota), then restart"
    return REMEDY if is_scarce(error) else otherwise


def _raise(error: JournalError) -> None:
    raise error
