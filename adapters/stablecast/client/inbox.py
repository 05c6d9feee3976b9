"""A queue of batches that sessions delivered to an application and that it has not consumed.

Pure: no event loop, no clock. A client puts its asyncio shell around it (`reading`, `callbacks`), a simulator another.

Batches wait in the order of their delivery. One batch is *in hand*: the application was handed its first `handed`
messages. A session that ends leaves its batches here. The session with the next life of the same source asks what is
here (`unconsumed`), and may drop what was not handed over yet (`drop`).
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, Self, TypeVar

MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""Bytes delivered and not handed over; beyond that streams are not read until half of them were handed over."""

BATCH_BYTES = 512
"""What a batch costs besides its messages."""

FOREVER = 1 << 63
"""A number above every extended sequence number."""


class Waiting(Protocol):
    """A run of messages in the inbox."""

    count: int
    incarnation: int

    @property
    def size(self) -> int:
        """Bytes that it keeps in memory."""

    def settle(self, count: int) -> None:
        """Report the first `count` messages as consumed."""

    @property
    def reported(self) -> int:
        """How many messages, from the first on, were reported as consumed."""

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the numbers of messages [begin, end) as ranges [first, stop), ascending."""

    def within(self, first: int, stop: int) -> tuple[int, int]:
        """Return [begin, end), the messages that have a number in [first, stop)."""

    def part(self, begin: int, end: int) -> Self:
        """Return a batch of messages [begin, end)."""

    def cut(self, count: int) -> None:
        """Keep the first `count` messages only."""


BatchT = TypeVar("BatchT", bound=Waiting)

Bounds = Callable[[BatchT], tuple[int, int] | None]
"""Which numbers [first, stop) of a batch are meant; None for none of them."""


class Inbox(Generic[BatchT]):
    """A bounded queue of batches, and the batch in hand.

    Attributes:
        full: Whether more waits than may; `on_room` is called once half of it is handed over.
        current: The batch in hand, None before the first.
        handed: How many of its messages the application was handed.
        wake: Called once, with the next batch that is put; the reader that waits sets it.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        """Make an empty inbox."""
        self.full = False
        self.current: BatchT | None = None
        self.handed = 0
        self.wake: Callable[[], None] | None = None
        self._on_room = on_room
        self._queue: deque[BatchT] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        """How many batches wait."""
        return len(self._queue)

    def put(self, batch: BatchT) -> None:
        """Add a batch, and wake the reader that waits for one."""
        self._queue.append(batch)
        self._bytes += batch.size + BATCH_BYTES
        if self._bytes > MAX_QUEUED_BYTES:
            self.full = True
        wake = self.wake
        if wake is not None:
            self.wake = None
            wake()

    def take(self, most: int | None = None) -> BatchT | None:
        """Return the next batch, or its first `most` messages, which are in hand now; None if nothing waits.

        What was in hand before must be reported as consumed by then.
        """
        if not self._queue:
            return None
        batch = self._queue.popleft()
        self._bytes -= batch.size + BATCH_BYTES
        if most is not None and batch.count > most:
            self.put_back(batch.part(most, batch.count))
            batch.cut(most)
        self.current, self.handed = batch, batch.count
        if self.full:
            self._make_room()
        return batch

    def put_back(self, batch: BatchT) -> None:
        """Add the rest of a batch before everything that waits."""
        self._queue.appendleft(batch)
        self._bytes += batch.size + BATCH_BYTES

    @property
    def rest(self) -> int:
        """How many messages of the batch in hand the application was not handed yet."""
        return 0 if self.current is None else self.current.count - self.handed

    def return_rest(self) -> None:
        """Let what the application was not handed of the batch in hand wait again, before everything else."""
        if self.current is not None and self.rest:
            self.put_back(self.current.part(self.handed, self.current.count))
            self.current.cut(self.handed)

    def clear(self) -> None:
        """Drop what was not handed over."""
        self._queue.clear()
        self._bytes = 0
        if self.current is not None:
            self.current.cut(self.handed)

    def unconsumed(self) -> Iterator[tuple[BatchT, int, int]]:
        """Yield what waits or is in hand and not consumed, as a batch of it and its numbers [first, stop)."""
        if self.current is not None:
            for first, stop in self.current.spans(self.current.reported, self.current.count):
                yield self.current, first, stop
        for batch in self._queue:
            for first, stop in batch.spans(0, batch.count):
                yield batch, first, stop

    def drop(self, bounds: Bounds[BatchT]) -> list[tuple[BatchT, int, int]]:
        """Drop messages that were not handed over yet; return what was dropped, as `unconsumed` does.

        `bounds` says of each batch which numbers go. A message in pieces goes if one of its numbers does.
        """
        dropped: list[tuple[BatchT, int, int]] = []
        before, self._queue, self._bytes = self._queue, deque(), 0
        if self.current is not None and self.handed < self.current.count:
            self._drop_of(self.current, self.handed, bounds, dropped)
        for batch in before:
            self._drop_of(batch, 0, bounds, dropped)
        if self.full:
            self._make_room()
        return dropped

    def _drop_of(
        self, batch: BatchT, least: int, bounds: Bounds[BatchT], dropped: list[tuple[BatchT, int, int]]
    ) -> None:
        """Queue what is left of a batch. The one in hand stays in hand: of it only what is above a gap is queued."""
        meant = bounds(batch)
        begin, end = batch.within(*meant) if meant is not None else (batch.count, batch.count)
        begin = max(begin, least)
        rest = None
        if begin < end:
            dropped += [(batch, *span) for span in batch.spans(begin, end)]
            rest = batch.part(end, batch.count) if end < batch.count else None
            batch.cut(begin)
        for left in (None if batch is self.current else batch, rest):
            if left is not None and left.count:
                self._queue.append(left)
                self._bytes += left.size + BATCH_BYTES

    def _make_room(self) -> None:
        if self._bytes <= MAX_QUEUED_BYTES // 2:
            self.full = False
            self._on_room()
