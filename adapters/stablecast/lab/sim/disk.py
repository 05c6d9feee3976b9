"""A store's disk: the journal's twin in memory. A crash keeps what was synced, and any beginning of the rest.

Records go to the disk in the order they were appended; a torn one has no checksum and ends what is kept. A sync takes a
while and covers what was appended before it began; then the highest ticket of which every record is synced is reported.
"""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from functools import partial

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND
from stablecast.lab.sim.virtual_time import World
from stablecast.store.journal.record_format import Block

FASTEST_SYNC_NS = MILLISECOND // 5
USUAL_SYNC_NS = 3 * MILLISECOND
SLOW_SYNC_NS = 250 * MILLISECOND
"""How long a sync takes, and how much longer while the disk is slow."""


class Kind(IntEnum):
    """What a record is."""

    STATE = 0
    MESSAGES = 1
    CUT = 2
    TRIM = 3


@attrs.define
class Record:
    """A record of client or stream `stream`: its state as of life `tag`, messages [first, stop) of `tag`, or what goes.

    A cut lets go what is from `first` on, a trim what is below. What is `bad` does not come back as it was written.
    """

    ticket: int
    kind: Kind
    state: Callable[[], bytes] | None = None
    stream: int = 0
    first: int = 0
    stop: int = 0
    tag: int = 0
    block: Block = b""
    bad: bool = False


Contents = dict[int, dict[int, Record]]
"""Which record shows which number, by stream."""


def apply(contents: Contents, record: Record) -> None:
    """What a record does to what can be read."""
    if record.kind is Kind.MESSAGES:
        contents.setdefault(record.stream, {}).update(dict.fromkeys(range(record.first, record.stop), record))
    elif record.kind is not Kind.STATE:
        numbers, cut = contents.get(record.stream, {}), record.kind is Kind.CUT
        for number in [number for number in numbers if (number >= record.first) is cut]:
            del numbers[number]


class Disk:
    """What survives the processes of one store. `contents` can be read, `durable` is the synced part of it.

    `clients` are the tags of the newest synced states. Beside it the `memory` of the process, which does not survive.
    """

    def __init__(self) -> None:
        """An empty disk."""
        self.log: list[Record] = []
        self.contents: Contents = {}
        self.durable: Contents = {}
        self.memory: Contents = {}
        self.clients: dict[int, int] = {}
        self.slow = False
        self.full = False
        self._wiped = False
        self._unsynced: deque[Record] = deque()

    def crash(self, keep: float) -> None:
        """The process is gone: of what was not synced the first part is kept, as much as `keep` (0 to 1) says."""
        for _ in range(round(keep * len(self._unsynced))):
            self._commit(self._unsynced.popleft())
        self._unsynced.clear()
        self.memory = {}
        self.verify()

    def verify(self) -> None:
        """Whoever starts here reads everything, and takes what is bad for not there."""
        self.log = [record for record in self.log if not record.bad]
        self.contents, self.durable = {}, {}
        for record in self.log:
            apply(self.contents, record)
            apply(self.durable, record)

    def wipe(self) -> None:
        """A new disk."""
        self.log, self.contents, self.durable, self.clients = [], {}, {}, {}
        self._wiped = True

    def whole(self) -> list[Record]:
        """The synced records of messages that are not bad."""
        shown = {id(record): record for numbers in self.durable.values() for record in numbers.values()}
        return [record for record in shown.values() if not record.bad]

    def drop(self, stream: int, first: int, stop: int) -> None:
        """[first, stop) were read and are bad: they are not here any more."""
        for contents in (self.contents, self.durable):
            numbers = contents.get(stream, {})
            for number in range(first, stop):
                if number in numbers and numbers[number].bad:
                    del numbers[number]

    @property
    def remembers(self) -> bool:
        """Whether whoever starts here knows what earlier processes knew."""
        return bool(self.log) or not self._wiped

    def states(self) -> list[bytes]:
        """The newest state record of each client, as behind a checkpoint."""
        newest = {record.stream: record.state for record in self.log if record.kind is Kind.STATE}
        return [state() for state in newest.values() if state is not None]

    def sizes(self, stream: int) -> list[tuple[int, int, int]]:
        """First number, count and bytes of the runs of a stream that can be read."""
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
        """Below which number a stream was trimmed; None: never."""
        trail: int | None = None
        for record in self.log:
            if record.stream == stream and record.kind is Kind.TRIM:
                trail = record.first
            elif record.stream == stream and record.kind is Kind.CUT and trail is not None:
                trail = min(trail, record.first)
        return trail

    def append(self, record: Record) -> None:
        """Take a record; it can be read at once."""
        apply(self.contents, record)
        if record.kind in (Kind.CUT, Kind.TRIM):
            apply(self.memory, record)
        self._unsynced.append(record)

    def keep(self, stream: int, first: int, stop: int, tag: int) -> None:
        """Messages are in memory; on disk they may be later, or never."""
        apply(self.memory, Record(0, Kind.MESSAGES, None, stream, first, stop, tag))

    def _commit(self, record: Record) -> None:
        self.log.append(record)
        apply(self.durable, record)
        if record.kind is Kind.STATE:
            self.clients[record.stream] = record.tag

    def take_batch(self) -> int:
        """How many records a sync that begins now covers."""
        return len(self._unsynced)

    def commit(self, count: int) -> int:
        """A sync is done; returns the highest ticket of which every record is synced."""
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
        """Whether anything is not synced."""
        return bool(self._unsynced)


class Syncer:
    """Syncs one process's disk, one sync at a time, and reports tickets; a full disk fails the next sync, for good.

    It is what a store's shelf takes for its journal. A read that finds a bad record is told a while later, with stream,
    first number and stop.
    """

    def __init__(
        self,
        world: World,
        disk: Disk,
        on_synced: Callable[[int], None],
        on_failed: Callable[[], None],
        on_damaged: Callable[[int, int, int], None],
    ) -> None:
        """Nothing to sync yet."""
        self._world = world
        self._disk = disk
        self._on_synced = on_synced
        self._on_failed = on_failed
        self._on_damaged = on_damaged
        self._busy = False
        self.stopped = False

    def append(self, record: Record) -> None:
        """Append a record and see that it gets synced."""
        self._disk.append(record)
        self._sync()

    def append_messages(self, stream: int, first: int, count: int, tag: int, block: Block, ticket: int) -> None:
        """Append a run."""
        self.append(Record(ticket, Kind.MESSAGES, None, stream, first, first + count, tag, block))

    def cut(self, stream: int, at: int, ticket: int) -> None:
        """Forget the numbers from `at` on."""
        self.append(Record(ticket, Kind.CUT, None, stream, at))

    def trim(self, stream: int, number: int, ticket: int) -> None:
        """Forget the numbers below `number`."""
        self.append(Record(ticket, Kind.TRIM, None, stream, number))

    def forget(self, stream: int, ticket: int) -> None:
        """Forget a stream."""
        self.cut(stream, 0, ticket)

    def read(self, stream: int, number: int) -> tuple[int, int, int, Block] | None:
        """The run that holds a number, as `Journal.read` has it."""
        numbers = self._disk.contents.get(stream, {})
        record = numbers.get(number)
        if record is None:
            return None
        stop = number + 1
        while stop < record.stop and numbers.get(stop) is record:
            stop += 1
        if record.bad:
            self._disk.drop(stream, number, stop)
            self._world.after(int(self._world.rng.random() * USUAL_SYNC_NS), partial(self._tell, stream, number, stop))
            return None
        return record.first, stop - record.first, record.tag, record.block

    def _tell(self, stream: int, first: int, stop: int) -> None:
        """Report what of [first, stop) did not come again since."""
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
