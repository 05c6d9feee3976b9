"""Simulate a store's disk in memory, in place of the journal.

A crash keeps the synced records and a prefix of the others, because records reach the disk in order and a torn one ends
the log. A sync takes time and covers the records appended before it began. It then reports the highest ticket whose
records are all synced.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.messages import StoreMemory
from stablecast.lab.sim.virtual_time import VirtualWorld
from stablecast.store.client_records import Waiting, client_record, clients_of, generation_of, memory_record
from stablecast.store.declaration import marked
from stablecast.store.journal.record_format import Block

FASTEST_SYNC_NS = MILLISECOND // 5
USUAL_SYNC_NS = 3 * MILLISECOND
SLOW_SYNC_NS = 250 * MILLISECOND
"""Duration of a sync, and its addition while the disk is slow."""


NO_STREAM = 0
"""The stream of a record about the store itself; no client has this RegID."""


class DiskRecordKind(IntEnum):
    STATE = 0
    MESSAGES = 1
    CUT = 2
    TRIM = 3


@attrs.define
class DiskRecord:
    """Hold a record of client or stream `stream`.

    A message record holds the messages [first, stop) of life `tag`. A cut removes numbers from `first` on, and a trim
    those below it. A `bad` record fails its checksum when it is read.
    """

    ticket: int
    kind: DiskRecordKind
    state: Callable[[], bytes] | None = None
    stream: int = 0
    first: int = 0
    stop: int = 0
    tag: int = 0
    block: Block = b""
    bad: bool = False


Contents = dict[int, dict[int, DiskRecord]]
"""The record that holds each number, by stream."""


def apply(contents: Contents, record: DiskRecord) -> None:
    if record.kind is DiskRecordKind.MESSAGES:
        contents.setdefault(record.stream, {}).update(dict.fromkeys(range(record.first, record.stop), record))
    elif record.kind is not DiskRecordKind.STATE:
        numbers, cut = contents.get(record.stream, {}), record.kind is DiskRecordKind.CUT
        for number in [number for number in numbers if (number >= record.first) is cut]:
            del numbers[number]


class VirtualDisk:
    """Hold what survives the processes of one store.

    Attributes:
        contents: Readable records.
        durable: Synced part of `contents`.
        starts: Starts of the store, which a copy of the disk does not forget.
        memory: Messages in the process's memory, which a crash loses.
    """

    def __init__(self) -> None:
        self.log: list[DiskRecord] = []
        self.contents: Contents = {}
        self.durable: Contents = {}
        self.memory: Contents = {}
        self.slow = False
        self.full = False
        self.starts = 0
        self._wiped = False
        self._unsynced: deque[DiskRecord] = deque()

    def crash(self, keep: float) -> None:
        """Lose the unsynced records except the first `keep` (0 to 1) of them, and lose the memory."""
        for _ in range(round(keep * len(self._unsynced))):
            self._commit(self._unsynced.popleft())
        self._unsynced.clear()
        self.memory = {}
        self._read()

    def verify(self) -> list[tuple[int, int]]:
        """Read all records at a start, and drop bad ones; return stream and number of each message in them."""
        self._read()
        lost = self.bad()
        self.log = [record for record in self.log if not record.bad]
        self._read()
        return lost

    def _read(self) -> None:
        self.contents, self.durable = {}, {}
        for record in self.log:
            apply(self.contents, record)
            apply(self.durable, record)

    def wipe(self) -> None:
        self.log, self.contents, self.durable = [], {}, {}
        self._wiped = True

    def backup(self) -> list[DiskRecord]:
        """Return a copy of the synced records, without damage that comes later."""
        return [attrs.evolve(record) for record in self.log if not record.bad]

    def restore(self, backup: Sequence[DiskRecord], *, declared: bool) -> None:
        """Put back a copy. An operator may declare it, and then the store has no memory."""
        self.log = [attrs.evolve(record) for record in backup]
        if declared:
            for client in map(marked, clients_of(self.states()).values()):
                state = partial(client_record, client)
                self.log.append(DiskRecord(0, DiskRecordKind.STATE, state, client.reg_id))
            generation, *_ = generation_of(self.states())
            state = partial(memory_record, StoreMemory.LOST, generation, Waiting.REQUIRED)
            self.log.append(DiskRecord(0, DiskRecordKind.STATE, state, NO_STREAM))
        self._read()

    def whole(self) -> list[DiskRecord]:
        """Return the synced message records that are not bad."""
        shown = {id(record): record for numbers in self.durable.values() for record in numbers.values()}
        return [record for record in shown.values() if not record.bad]

    def bad(self) -> list[tuple[int, int]]:
        """Return stream and number of every message in a bad record."""
        streams = self.contents.items()
        return [(stream, number) for stream, numbers in streams for number in numbers if numbers[number].bad]

    def drop(self, stream: int, first: int, stop: int) -> None:
        """Remove the bad records of [first, stop) after they were read."""
        for contents in (self.contents, self.durable):
            numbers = contents.get(stream, {})
            for number in range(first, stop):
                if number in numbers and numbers[number].bad:
                    del numbers[number]

    @property
    def remembers(self) -> bool:
        """True if a new process knows what earlier ones knew."""
        return bool(self.log) or not self._wiped

    def states(self) -> list[bytes]:
        """Return the newest state of each client, as a checkpoint has it."""
        newest = {record.stream: record.state for record in self.log if record.kind is DiskRecordKind.STATE}
        return [state() for state in newest.values() if state is not None]

    def sizes(self, stream: int) -> list[tuple[int, int, int]]:
        """Return first number, count and bytes of the readable runs of a stream."""
        found: list[tuple[int, int, int]] = []
        for number, record in sorted(self.contents.get(stream, {}).items()):
            size = len(record.block) // (record.stop - record.first)
            if found and found[-1][0] + found[-1][1] == number:
                first, count, before = found.pop()
                found.append((first, count + 1, before + size))
            else:
                found.append((number, 1, size))
        return found

    def trail(self, stream: int) -> int | None:
        """Return the number below which a stream was trimmed; None: never."""
        trail: int | None = None
        for record in self.log:
            if record.stream == stream and record.kind is DiskRecordKind.TRIM:
                trail = record.first
            elif record.stream == stream and record.kind is DiskRecordKind.CUT and trail is not None:
                trail = min(trail, record.first)
        return trail

    def trails(self) -> dict[int, int]:
        found = {stream: self.trail(stream) for stream in {record.stream for record in self.log}}
        return {stream: trail for stream, trail in found.items() if trail is not None}

    def note(self, record: DiskRecord) -> None:
        """Write a state at a start: it reaches the disk before anything that a client learns."""
        self.log.append(record)

    def append(self, record: DiskRecord) -> None:
        """Append a record; it can be read at once."""
        apply(self.contents, record)
        if record.kind in (DiskRecordKind.CUT, DiskRecordKind.TRIM):
            apply(self.memory, record)
        self._unsynced.append(record)

    def keep(self, stream: int, first: int, stop: int, tag: int) -> None:
        """Keep messages in memory; they may reach the disk later, or never."""
        apply(self.memory, DiskRecord(0, DiskRecordKind.MESSAGES, None, stream, first, stop, tag))

    def _commit(self, record: DiskRecord) -> None:
        self.log.append(record)
        apply(self.durable, record)

    def take_batch(self) -> int:
        """Return how many records a sync that begins now covers."""
        return len(self._unsynced)

    def commit(self, count: int) -> int:
        """Finish a sync of `count` records; return the highest ticket whose records are all synced."""
        before = last = 0
        for _ in range(count):
            record = self._unsynced.popleft()
            self._commit(record)
            if record.ticket > last:
                before, last = last, record.ticket
        waiting = self._unsynced[0].ticket if self._unsynced else 0
        return before if waiting == last else last

    @property
    def waiting(self) -> bool:
        """True if records are not synced."""
        return bool(self._unsynced)


@attrs.define(eq=False)
class Syncer:
    """Sync one process's disk, one sync at a time, and report tickets. A full disk fails the next sync for good.

    It has the interface that a store's shelf needs of the journal. A read of a bad record reports stream, first number
    and stop after a delay.
    """

    _world: VirtualWorld
    _disk: VirtualDisk
    _on_synced: Callable[[int], None]
    _on_failed: Callable[[], None]
    _on_damaged: Callable[[int, int, int], None]
    _busy: bool = False
    stopped: bool = False

    def append(self, record: DiskRecord) -> None:
        self._disk.append(record)
        self._sync()

    def append_messages(self, stream: int, first: int, count: int, tag: int, block: Block, ticket: int) -> None:
        self.append(DiskRecord(ticket, DiskRecordKind.MESSAGES, None, stream, first, first + count, tag, block))

    def cut(self, stream: int, at: int, ticket: int) -> None:
        """Remove the numbers from `at` on."""
        self.append(DiskRecord(ticket, DiskRecordKind.CUT, None, stream, at))

    def trim(self, stream: int, number: int, ticket: int) -> None:
        """Remove the numbers below `number`."""
        self.append(DiskRecord(ticket, DiskRecordKind.TRIM, None, stream, number))

    def forget(self, stream: int, ticket: int) -> None:
        self.cut(stream, 0, ticket)

    def read(self, stream: int, number: int) -> tuple[int, int, int, Block] | None:
        """Return the run that holds a number, as `Journal.read` does."""
        numbers = self._disk.contents.get(stream, {})
        record = numbers.get(number)
        if record is None:
            return None
        stop = number + 1
        while stop < record.stop and numbers.get(stop) is record:
            stop += 1
        if record.bad:
            self._disk.drop(stream, number, stop)
            self._world.after(
                int(self._world.rng.random() * USUAL_SYNC_NS), partial(self._report_damage, stream, number, stop)
            )
            return None
        return record.first, stop - record.first, record.tag, record.block

    def _report_damage(self, stream: int, first: int, stop: int) -> None:
        """Report the numbers of [first, stop) that were not written again since."""
        gone = RangeSet([(first, stop)])
        for number in self._disk.contents.get(stream, {}):
            gone.remove(number, number + 1)
        for low, high in [] if self.stopped else gone:
            self._on_damaged(stream, low, high)

    def _sync(self) -> None:
        if self._busy or self.stopped:
            return
        self._busy = True
        longest = SLOW_SYNC_NS if self._disk.slow else USUAL_SYNC_NS
        count: int | None = None

        def done() -> None:
            if self.stopped:
                return
            if self._disk.full:
                self.stopped = True
                self._on_failed()
                return
            assert count is not None
            self._busy = False
            ticket = self._disk.commit(count)
            if self._disk.waiting:
                self._sync()
            if ticket:
                self._on_synced(ticket)

        def begin() -> None:
            nonlocal count
            if not self.stopped:
                count = self._disk.take_batch()
                self._world.after(FASTEST_SYNC_NS + int(self._world.rng.random() * longest), done)

        self._world.after(0, begin)
