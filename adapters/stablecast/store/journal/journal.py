"""The journal: one per store, owned by one event loop.

Everything here runs on the loop thread: it lays out records, keeps the index and decides what to delete. The bytes and
the syncs are the business of the writer and its thread (`writer`), reading back and deleting that of the fetcher's
(`fetcher`); their reports come back through the loop. What is not synced yet is read from memory.
"""

import asyncio
import secrets
import struct
import time
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Self

from stablecast.core.errors import MisuseError
from stablecast.store.journal.disk import DISK, Disk
from stablecast.store.journal.errors import JournalError
from stablecast.store.journal.index import Erase
from stablecast.store.journal.lock import DirectoryLock
from stablecast.store.journal.pending import Pending
from stablecast.store.journal.record_format import (
    HIGHEST,
    LOWEST,
    MESSAGES_HEAD,
    RECORD_HEADER_BYTES,
    VERSION,
    Block,
    Kind,
    bounded,
    checked_state,
    join_states,
)
from stablecast.store.journal.record_reader import Reading
from stablecast.store.journal.recovery import Recovered, recover
from stablecast.store.journal.segments import Place, Position, Record, Segment, segment_path
from stablecast.store.journal.writer import Syncs, Writer
from stablecast.text import refusal

MAX_QUEUED_BYTES = 64 << 20
"""Bytes appended and not yet synced above which `Journal.pressure` asks the owner to stop reading."""

MAX_QUEUED_RECORDS = 16_384
"""The same in records: one takes some 700 bytes of memory beside its block, and a process never gives them back."""


class _Life(IntEnum):
    OPEN = 0
    RUNNING = 1
    CLOSING = 2
    FAILED = 3
    CLOSED = 4


_STARTED = frozenset((_Life.RUNNING, _Life.CLOSING, _Life.FAILED))
"""When the writer's thread may be alive."""


class Journal(Reading):
    """Durable records of a store: open, look at what was recovered, `set_checkpoint`, `start`, append.

    Attributes:
        recovered_states: The states of the newest checkpoint and the STATE bodies after it, in order.
        reports: What the scan found cut or damaged, one sentence each.
        whole: Whether there was a journal, and no state behind its newest checkpoint can be missing.
        on_synced: Called on the loop with the highest ticket of which every record is synced.
        on_failed: Called on the loop, once, when the disk fails; no ticket is reported after it. By default it raises.
    """

    def __init__(self, directory: Path, lock: DirectoryLock, found: Recovered, disk: Disk):
        """Use `open`."""
        super().__init__(directory, found.index, disk, Pending(found.root))
        self.recovered_states = found.states
        self.reports = found.reports
        self.whole = bool(found.segments) and not found.damaged
        self.on_synced: Callable[[int], None] = _ignore
        self.on_failed: Callable[[JournalError], None] = _raise
        self._lock = lock
        self._segments = found.segments
        self._next_number = found.next_number
        self._active = found.newest
        if self._active is not None:
            current = self._active.version == VERSION
            self._active.limit = max(self._active.end, disk.segment_bytes) if current else self._active.end
        self._checkpoint: Callable[[], list[bytes]] | None = None
        self._dead: dict[Segment, int] = {}
        self._life = _Life.OPEN
        self._failure: JournalError | None = None
        self._stopped = asyncio.Event()
        self._writer = Writer(
            disk,
            self._tell,
            committed=self._on_committed,
            failed=self._on_failed,
            stopped=self._stopped.set,
        )

    @classmethod
    def open(cls, directory: Path, disk: Disk = DISK) -> Self:
        """Locks a directory and recovers what it holds.

        Args:
            directory: An existing directory; an empty one is a new journal.
            disk: How to write, sync and read.

        Raises:
            JournalError: If the directory is missing, not writable, in use, or written by a newer release.
        """
        if not directory.is_dir():
            raise JournalError(f"there is no journal directory {directory}; create it or correct the path")
        try:
            lock = DirectoryLock(directory)
        except OSError as error:
            raise JournalError(
                f"cannot write to the journal directory {directory}: {refusal(error)}; give this user access to it"
            ) from error
        try:
            return cls(directory, lock, recover(directory, disk), disk)
        except OSError as error:
            lock.release()
            raise JournalError(f"cannot read the journal in {directory}: {error}; check the disk") from error
        except JournalError as error:
            lock.release()
            raise JournalError(f"cannot use the journal in {directory}: {error}") from error

    def set_checkpoint(self, callback: Callable[[], list[bytes]]) -> None:
        """Sets what describes the owner's whole state: JSON objects that make every earlier STATE record needless.

        It is called within an append, when a segment is full. It may already tell of what is about to be appended.
        """
        self._checkpoint = callback

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts the writer; reports come on `loop`.

        Raises:
            MisuseError: If `set_checkpoint` was not called, or the journal was started before.
        """
        if self._checkpoint is None or self._life is not _Life.OPEN:
            raise MisuseError("call Journal.set_checkpoint before Journal.start, and start a journal once")
        self._loop = loop
        self._life = _Life.RUNNING
        self._reader.close_all()
        self._fetcher.start()
        self._writer.start(loop.call_soon)
        self._retire(segment for segment in self._segments.values() if not segment.live)

    async def close(self) -> None:
        """Syncs everything, stops the writer and unlocks the directory.

        Raises:
            JournalError: If the disk failed, now or before; the directory is unlocked all the same.
        """
        if self._life is _Life.RUNNING:
            self._life = _Life.CLOSING
        if self._life in _STARTED:
            self._writer.close()
            await self._stopped.wait()
            await self._fetcher.close()
        self._release()
        if self._failure is not None:
            raise self._failure

    def abort(self) -> None:
        """Stops at once: nothing more is synced or reported. Waits for the one system call that is under way."""
        if self._life in _STARTED:
            self._writer.abort()
            self._fetcher.abort()
        self._release()
        self._stopped.set()

    @property
    def pressure(self) -> bool:
        """Whether more than `MAX_QUEUED_BYTES` or `MAX_QUEUED_RECORDS` wait for the disk."""
        pending = self._pending
        return pending.size > MAX_QUEUED_BYTES or pending.added - pending.synced > MAX_QUEUED_RECORDS

    @property
    def queued_bytes(self) -> int:
        """Bytes appended and not yet synced."""
        return self._pending.size

    @property
    def segments(self) -> int:
        """Segments in use."""
        return len(self._segments)

    @property
    def disk_bytes(self) -> int:
        """Bytes of the segments in use."""
        return sum(segment.end for segment in self._segments.values())

    @property
    def syncs(self) -> Syncs:
        """How many there were, and how long they took."""
        return self._writer.syncs

    def append_messages(self, stream: int, first: int, count: int, tag: int, block: Block, ticket: int) -> None:
        """Appends a run of messages; where numbers overlap it replaces what the stream had.

        Args:
            stream: Key of the stream, 64 bits.
            first: Extended sequence number of the first message.
            count: Numbers in the run, 1 or more.
            tag: Incarnation of the source, 64 bits.
            block: The messages as received. It is not copied, so it must not change any more.
            ticket: 1 or more, never lower than the one before.

        Raises:
            MisuseError: If an argument is out of range or the journal is not running.
            JournalError: If the disk has failed.
        """
        if count < 1:
            raise MisuseError(f"a run of {count} messages cannot be appended; give at least one")
        try:
            head = MESSAGES_HEAD.pack(stream, first, count, tag, time.time_ns())
        except struct.error as error:
            raise MisuseError(f"a number of the run does not fit its field: {error}") from error
        record = self._append(Kind.MESSAGES, (head, bounded(block)), ticket)
        record.segment.summary.add(stream, first, count, tag, record.offset, record.size)
        emptied = self._index.add(stream, Place(record.segment, record.offset, record.size, first, tag, count))
        if emptied:
            self._retire(emptied)

    def append_state(self, body: bytes, ticket: int) -> None:
        """Appends a piece of the owner's state: one JSON object, UTF-8.

        Raises:
            MisuseError: If the body is no JSON object, the ticket is out of order or the journal is not running.
            JournalError: If the disk has failed.
        """
        self._append(Kind.STATE, (checked_state(body),), ticket)

    def cut(self, stream: int, at: int, ticket: int) -> None:
        """Forgets the numbers >= `at` of a stream, durably when `ticket` is reported. Raises like `append_state`."""
        self._erase(Erase(stream, at, HIGHEST, self._position()), ticket)

    def forget(self, stream: int, ticket: int) -> None:
        """Forgets a stream, durably when `ticket` is reported. Raises like `append_state`."""
        self._erase(Erase(stream, LOWEST, HIGHEST, self._position()), ticket)

    def trim(self, stream: int, number: int, ticket: int) -> None:
        """Forgets the numbers < `number` of a stream, durably when `ticket` is reported. Raises like `append_state`.

        `number` is the stream's trail from then on, even if nothing is left of the stream.
        """
        self._erase(Erase(stream, LOWEST, number, self._position()), ticket)

    def disown(self, stream: int, first: int, stop: int, place: Place) -> None:
        """Forgets [first, stop) as this record, which cannot be read, and older ones have them: no open believes it.

        Nobody waits for that. What was written since stays. Raises like `append_state`.
        """
        if self._life is not _Life.RUNNING:
            raise self._not_running()
        segment, offset = place.position
        erase = Erase(stream, first, stop, (segment, offset + 1))
        self._erased(erase, self._put(Kind.ERASE, (erase.body(),), 0))

    def _position(self) -> Position:
        """The place behind everything appended so far."""
        return (self._next_number, 0) if self._active is None else (self._active.number, self._active.end)

    def _not_running(self) -> Exception:
        if self._failure is not None:
            return self._failure
        return MisuseError(f"the journal in {self._directory} is not running; append between start and close")

    def _erase(self, erase: Erase, ticket: int) -> None:
        self._erased(erase, self._append(Kind.ERASE, (erase.body(),), ticket))

    def _erased(self, erase: Erase, record: Record) -> None:
        record.segment.streams.add(erase.stream)
        emptied = self._index.erase(erase)
        if emptied:
            self._retire(emptied)

    def _append(self, kind: Kind, parts: tuple[Block, ...], ticket: int) -> Record:
        """Checks and queues a record of the owner."""
        if self._life is not _Life.RUNNING:
            raise self._not_running()
        self._pending.issue(ticket)
        return self._put(kind, parts, ticket)

    def _put(self, kind: Kind, parts: tuple[Block, ...], ticket: int) -> Record:
        """Gives a record its place, in a new segment if the active one is full, and queues it."""
        size = RECORD_HEADER_BYTES + sum(map(len, parts))
        active = self._active
        if active is None or active.end + size > active.limit:
            active = self._roll(size)
        record = Record(active, active.end, size, kind, ticket, parts)
        if kind is not Kind.MESSAGES:
            active.summary.note(active.end)
        active.end += size
        self._pending.add(record)
        self._writer.put(record)
        return record

    def _roll(self, size: int) -> Segment:
        """Begins a segment: the erasures that still matter, then a checkpoint, then room for at least `size` bytes."""
        states = join_states([] if self._checkpoint is None else self._checkpoint())
        number = self._next_number
        self._next_number += 1
        erases = self._index.prune(self._segments.values())
        previous = self._active
        segment = Segment(number, secrets.randbits(32), segment_path(self._directory, number), limit=HIGHEST)
        self._segments[number] = self._active = segment
        for erase in erases:
            self._put(Kind.ERASE, (erase.body(),), 0)
            segment.streams.add(erase.stream)
        self._put(Kind.CHECKPOINT, (states,), 0)
        segment.limit = segment.end + max(self._disk.segment_bytes, size)
        if previous is not None:
            self._fetcher.summarize(previous)
            if not previous.live:
                self._dead[previous] = self._pending.added
        return segment

    def _retire(self, segments: Iterable[Segment]) -> None:
        """Notes segments without live messages. They go when all that killed the messages is synced."""
        for segment in segments:
            self._dead[segment] = self._pending.added
        self._collect()

    def _collect(self) -> None:
        """Deletes the noted segments that nothing needs: what killed them and a newer checkpoint are on the disk."""
        for segment, due in list(self._dead.items()):
            if segment.live:  # it was the active one, and got new messages
                del self._dead[segment]
                continue
            if due > self._pending.synced or segment.number >= self._pending.root:
                continue
            self._reader.close(segment)
            del self._dead[segment], self._segments[segment.number]
            self._fetcher.remove(segment, self._on_failed)

    def _on_committed(self, count: int) -> None:
        """The next `count` records are synced."""
        if self._life not in (_Life.RUNNING, _Life.CLOSING):
            return
        reported = self._pending.done
        self._pending.commit(count)
        if self._dead:
            self._collect()
        if self._pending.done != reported:
            self.on_synced(self._pending.done)

    def _on_failed(self, error: Exception) -> None:
        if self._life not in (_Life.RUNNING, _Life.CLOSING):
            return
        self._life = _Life.FAILED
        why = refusal(error)
        self._failure = JournalError(
            f"the journal in {self._directory} cannot be written: {why}; make room or replace the disk, then restart"
        )
        self._failure.__cause__ = error
        self.on_failed(self._failure)

    def _release(self) -> None:
        self._life = _Life.CLOSED
        self._close_reading()
        self._lock.release()


def _ignore(_ticket: int) -> None:
    """The owner does not wait for tickets."""


def _raise(error: JournalError) -> None:
    raise error
