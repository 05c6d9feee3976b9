"""A store's disk: the journal's twin in memory. A crash keeps what was synced, and any beginning of the rest.

Records go to the disk in the order they were appended; a torn one has no checksum and ends what is kept. A sync takes a
while and covers what was appended before it began; then the highest ticket of which every record is synced is reported.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum

import attrs

from stablecast.core.units import MILLISECOND
from stablecast.journal.format import Block
from stablecast.sim.world import World

FASTEST_SYNC_NS = MILLISECOND // 5
USUAL_SYNC_NS = 3 * MILLISECOND
SLOW_SYNC_NS = 250 * MILLISECOND
"""How long a sync takes, and how much longer while the disk is slow."""


class Kind(IntEnum):
    """What a record is."""

    STATE = 0
    MESSAGES = 1
    CUT = 2


@attrs.define
class Record:
    """A record of client or stream `stream`: its state as of life `tag`, messages [first, stop) of `tag`, or a cut."""

    ticket: int
    kind: Kind
    state: Callable[[], bytes] | None = None
    stream: int = 0
    first: int = 0
    stop: int = 0
    tag: int = 0
    block: Block = b""


Contents = dict[int, dict[int, Record]]
"""Which record shows which number, by stream."""


def apply(contents: Contents, record: Record) -> None:
    """What a record does to what can be read."""
    if record.kind is Kind.MESSAGES:
        contents.setdefault(record.stream, {}).update(dict.fromkeys(range(record.first, record.stop), record))
    elif record.kind is Kind.CUT:
        numbers = contents.get(record.stream, {})
        for number in [number for number in numbers if number >= record.first]:
            del numbers[number]


class Disk:
    """What survives the processes of one store. `contents` can be read, `durable` is the synced part of it.

    `clients` are the tags of the newest synced states.
    """

    def __init__(self) -> None:
        """An empty disk."""
        self.log: list[Record] = []
        self.contents: Contents = {}
        self.durable: Contents = {}
        self.clients: dict[int, int] = {}
        self.slow = False
        self.full = False
        self._unsynced: deque[Record] = deque()

    def crash(self, keep: float) -> None:
        """The process is gone: of what was not synced the first part is kept, as much as `keep` (0 to 1) says."""
        for _ in range(round(keep * len(self._unsynced))):
            self._commit(self._unsynced.popleft())
        self._unsynced.clear()
        self.contents = {}
        for record in self.log:
            apply(self.contents, record)

    def wipe(self) -> None:
        """A new disk."""
        self.log, self.contents, self.durable, self.clients = [], {}, {}, {}

    def states(self) -> list[bytes]:
        """The newest state record of each client, as behind a checkpoint."""
        newest = {record.stream: record.state for record in self.log if record.kind is Kind.STATE}
        return [state() for state in newest.values() if state is not None]

    def extents(self, stream: int) -> list[tuple[int, int]]:
        """First number and count of the runs of a stream that can be read."""
        found: list[tuple[int, int]] = []
        for number in sorted(self.contents.get(stream, {})):
            if found and sum(found[-1]) == number:
                found[-1] = (found[-1][0], found[-1][1] + 1)
            else:
                found.append((number, 1))
        return found

    def read(self, stream: int, first: int, stop: int) -> Iterator[tuple[int, Record]]:
        """The numbers in [first, stop) that can be read, each with its record."""
        numbers = self.contents.get(stream, {})
        for number in range(first, stop):
            record = numbers.get(number)
            if record is not None:
                yield number, record

    def append(self, record: Record) -> None:
        """Take a record; it can be read at once."""
        apply(self.contents, record)
        self._unsynced.append(record)

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
    """Syncs one process's disk, one sync at a time, and reports tickets; a full disk fails the next sync, for good."""

    def __init__(
        self, world: World, disk: Disk, on_synced: Callable[[int], None], on_failed: Callable[[], None]
    ) -> None:
        """Nothing to sync yet."""
        self._world = world
        self._disk = disk
        self._on_synced = on_synced
        self._on_failed = on_failed
        self._busy = False
        self.stopped = False

    def append(self, record: Record) -> None:
        """Append a record and see that it gets synced."""
        self._disk.append(record)
        self._sync()

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
