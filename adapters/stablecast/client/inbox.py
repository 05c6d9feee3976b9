"""The queue of batches that sessions delivered and the application has not consumed.

Batches wait in the order of their delivery. One batch is *in hand*: the application was handed its first `handed`
messages. The batches of a session that ended stay here. The session with the next life of the same source asks for them
(`unconsumed`), and may drop messages that were not handed over yet (`drop`).

Pure: no event loop and no clock. The client wraps it for asyncio (`iteration`, `callbacks`), and so does the simulator.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""Bytes delivered and not handed over. Beyond that, streams are not read until half of them are handed over."""

BATCH_BYTES = 512
"""Bytes that a batch costs besides its messages."""

TOPIC_TURN_MESSAGES = 64
"""Messages of one topic that a pattern's application gets before those of other topics that wait."""


class QueuedBatch(Protocol):
    """A batch as the inbox needs it; `count` is its number of messages, `incarnation` the life that sent them."""

    count: int
    incarnation: int
    owner: Any

    @property
    def size(self) -> int: ...

    def settle(self, count: int) -> None:
        """Report the first `count` messages as consumed."""

    @property
    def reported(self) -> int:
        """Return the number of messages, from the first on, that were reported as consumed."""

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the numbers of messages [begin, end) as ranges [first, stop), ascending."""

    def within(self, first: int, stop: int) -> tuple[int, int]:
        """Return [begin, end), the messages that have a number in [first, stop)."""

    def part(self, begin: int, end: int) -> Self:
        """Return a batch of messages [begin, end)."""

    def cut(self, count: int) -> None:
        """Keep the first `count` messages only."""


BatchT = TypeVar("BatchT", bound=QueuedBatch)

Bounds = Callable[[BatchT], tuple[int, int] | None]
"""A function that selects numbers [first, stop) of a batch; None selects none."""


class Inbox(Generic[BatchT]):
    """A bounded queue of batches, and the batch in hand.

    Attributes:
        full: True if more than `MAX_QUEUED_BYTES` wait, until half of them are handed over.
        current: The batch in hand, None before the first.
        handed: The number of its messages that the application was handed.
        held: Messages that the application settles one by one, each in a batch of its own.
        wake: Called once when the next batch is put. A reader sets it to wait.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        """Make an empty inbox. It calls `on_room` when it is no longer full."""
        self.full = False
        self.current: BatchT | None = None
        self.handed = 0
        self.held: dict[BatchT, None] = {}
        self.wake: Callable[[], None] | None = None
        self._on_room = on_room
        self._queue: deque[BatchT] | TopicQueue[BatchT] = deque()
        self._bytes = 0
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, batch: BatchT) -> None:
        """Add a batch, and wake the reader that waits for one."""
        self._queue.append(batch)
        self._bytes += batch.size + BATCH_BYTES
        if self._bytes + self._held_bytes > MAX_QUEUED_BYTES:
            self.full = True
        self._wake()

    def put_first(self, batch: BatchT) -> None:
        """Add a message that comes again before all others, and wake the reader that waits for one."""
        self.return_rest()
        self.put_back(batch)
        self._wake()

    def next_batch(self, most: int | None = None) -> BatchT | None:
        """Return the next batch, or its first `most` messages, and put it in hand; None if nothing waits.

        The caller must first report the batch that was in hand as consumed.
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
        """Add the rest of a batch before all others."""
        self._queue.appendleft(batch)
        self._bytes += batch.size + BATCH_BYTES

    def hold(self, batch: BatchT) -> None:
        """Keep a message that the application was handed and settles by itself."""
        self.held[batch] = None
        self._held_bytes += batch.size + BATCH_BYTES
        if self._bytes + self._held_bytes > MAX_QUEUED_BYTES:
            self.full = True

    def release(self, batch: BatchT) -> bool:
        """Keep a message no more; return False if it was not kept."""
        if batch not in self.held:
            return False
        del self.held[batch]
        self._held_bytes -= batch.size + BATCH_BYTES
        if self.full:
            self._make_room()
        return True

    @property
    def rest(self) -> int:
        """Return the number of messages of the batch in hand that the application was not handed yet."""
        return 0 if self.current is None else self.current.count - self.handed

    def return_rest(self) -> None:
        """Put the messages of the batch in hand that were not handed over back, before all others."""
        if self.current is not None and self.rest:
            self.put_back(self.current.part(self.handed, self.current.count))
            self.current.cut(self.handed)

    def settle_in_hand(self, owner: object, first: int, number: int) -> None:
        """Report what `owner` delivered and the application was handed as consumed, if it is acknowledged.

        The acknowledgement covers the batch in hand, up to `number`, if the batch has one of `first` to `number`.
        """
        if self.current is not None and self.current.owner is owner:
            begin, end = self.current.within(first, number + 1)
            if begin < end:
                self.current.settle(min(self.handed, end))

    def clear(self) -> None:
        """Drop all messages that were not handed over."""
        self._queue.clear()
        self._bytes = 0
        if self.current is not None:
            self.current.cut(self.handed)

    def unconsumed(self) -> Iterator[tuple[BatchT, int, int]]:
        """Yield the messages that are not consumed: each batch with its numbers [first, stop)."""
        for batch in self.held:
            for first, stop in batch.spans(batch.reported, batch.count):
                yield batch, first, stop
        if self.current is not None:
            for first, stop in self.current.spans(self.current.reported, self.current.count):
                yield self.current, first, stop
        for batch in self._queue:
            for first, stop in batch.spans(0, batch.count):
                yield batch, first, stop

    def drop(self, bounds: Bounds[BatchT]) -> list[tuple[BatchT, int, int]]:
        """Drop the messages in `bounds` that were not handed over yet; return them as `unconsumed` does.

        A message in pieces is dropped if one of its numbers is in the bounds.
        """
        dropped: list[tuple[BatchT, int, int]] = []
        before, self._bytes = list(self._queue), 0
        self._queue.clear()
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
        """Drop messages of one batch, and queue the rest.

        The batch in hand stays in hand. Only its messages above the dropped ones are queued.
        """
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

    def _wake(self) -> None:
        wake = self.wake
        if wake is not None:
            self.wake = None
            wake()

    def _make_room(self) -> None:
        if self._bytes + self._held_bytes <= MAX_QUEUED_BYTES // 2:
            self.full = False
            self._on_room()


class TopicQueue(Generic[BatchT]):
    """The batches of several topics, those of the topic whose turn it is first. Each topic keeps its order."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[BatchT]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[BatchT]:
        for line in self._lines.values():
            yield from line

    @property
    def topics(self) -> int:
        """Return the number of topics that have a batch here."""
        return len(self._lines)

    def append(self, batch: BatchT) -> None:
        self._lines.setdefault(batch.owner.topic, deque()).append(batch)
        self._count += 1

    def appendleft(self, batch: BatchT) -> None:
        """Add a batch before all others: it is its topic's turn."""
        topic = batch.owner.topic
        self._lines.setdefault(topic, deque()).appendleft(batch)
        self._lines.move_to_end(topic, last=False)
        self._count += 1

    def popleft(self) -> BatchT:
        """Remove the first batch, and return it. There must be one."""
        topic, line = next(iter(self._lines.items()))
        batch = line.popleft()
        if not line:
            del self._lines[topic]
        self._count -= 1
        return batch

    def clear(self) -> None:
        self._lines.clear()
        self._count = 0

    def end_turn(self, topic: str) -> None:
        """Give all other topics a turn before this one."""
        if topic in self._lines:
            self._lines.move_to_end(topic)


class FairInbox(Inbox[BatchT]):
    """The inbox of a pattern: the topics take turns.

    A slow application would else read the whole backlog of one topic before the first message of the next.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        super().__init__(on_room)
        self._queue = self._topics = TopicQueue[BatchT]()

    def next_batch(self, most: int | None = None) -> BatchT | None:
        """Return the next messages of the topic whose turn it is, as an inbox does; None if nothing waits."""
        if self._topics.topics > 1:
            most = min(most or TOPIC_TURN_MESSAGES, TOPIC_TURN_MESSAGES)
        batch = super().next_batch(most)
        if batch is not None:
            self._topics.end_turn(batch.owner.topic)
        return batch
