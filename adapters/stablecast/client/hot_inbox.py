"""The inbox of a hot-failover receiver: it hands over each hot number once, and consumes the later copies.

Copies are compared when the application asks for the next message, not when they arrive. At that moment the application
has consumed all earlier messages, so a later copy may be acknowledged to its own stores at once. Before, it may not: if
the application crashed, and the first source with its stores were gone, the message would be lost. Messages that wait
here may also still be dropped, because a later life of their source has other messages under their numbers.
"""

from collections.abc import Callable, Iterator

from stablecast.client.batch import Batch
from stablecast.client.inbox import Bounds, Inbox
from stablecast.core.protocol.events import HotNumbersMissed
from stablecast.core.receiver.hot_failover import HotFailover


class HotInbox(Inbox[Batch]):
    """A queue that hands over the first copy of each hot number. Messages without a hot number pass as they are.

    Attributes:
        numbers: The hot numbers of the stream.
    """

    def __init__(
        self, on_room: Callable[[], None], report: Callable[[HotNumbersMissed], None], numbers: HotFailover
    ) -> None:
        """Make an empty inbox. It calls `report` when all sources have passed numbers that none of them brought."""
        super().__init__(on_room)
        self.numbers = numbers
        self._report = report
        self._in_hand: tuple[int, frozenset[int]] = (0, frozenset())

    def leave(self, source: int) -> None:
        """Count on a source no more, because its session is over."""
        self.numbers.leave(source)
        self._report_missed()

    def next_batch(self, most: int | None = None) -> Batch | None:
        """Return the next messages that are no later copies, as an inbox does; None if nothing waits."""
        self._in_hand = (0, frozenset())
        while (batch := super().next_batch(most)) is not None:
            count, fresh = self._alike(batch)
            if count < batch.count:
                super().put_back(batch.part(count, batch.count))
                batch.cut(count)
                self.handed = count
            self._take(batch, fresh)
            if fresh:
                return batch
            batch.settle(batch.count)
        return None

    def put_back(self, batch: Batch) -> None:
        """Add the rest of a batch before all others; its numbers are not taken any more."""
        self._return(self._numbers(batch), batch)
        super().put_back(batch)

    def drop(self, bounds: Bounds[Batch]) -> list[tuple[Batch, int, int]]:
        """Drop messages that were not handed over yet, as an inbox does; their numbers are not taken any more."""
        batch = self.current
        if batch is None or not self.rest:
            return super().drop(bounds)
        before = list(self._numbers(batch))[self.handed :]
        dropped = super().drop(bounds)
        kept = set(list(self._numbers(batch))[self.handed :])
        self._return((number for number in before if number not in kept), batch)
        return dropped

    def clear(self) -> None:
        """Drop messages as an inbox does. What the application did not consume may come to the next receiver."""
        if self.current is not None:
            unconsumed = list(self._numbers(self.current))[self.current.reported :]
            self._return(iter(unconsumed), self.current)
        super().clear()
        self.numbers.passed.clear()  # The sources are not gone: what they may still bring is not missed.

    def _alike(self, batch: Batch) -> tuple[int, bool]:
        """Return how many messages at the beginning are all fresh, or all later copies, and which of the two."""
        seen: set[int] = set()
        fresh = True
        for index, number in enumerate(self._numbers(batch)):
            first_copy = number < 0 or (number not in seen and self.numbers.fresh(number))
            if index == 0:
                fresh = first_copy
            elif first_copy is not fresh:
                return index, fresh
            seen.add(number)
        return batch.count, fresh

    def _take(self, batch: Batch, fresh: bool) -> None:
        numbers = [number for number in self._numbers(batch) if number >= 0]
        for number in numbers:
            self.numbers.take(_source(batch), number)
        self._in_hand = (batch.incarnation, frozenset(numbers if fresh else ()))
        if numbers:
            self._report_missed()

    def _return(self, numbers: Iterator[int], batch: Batch) -> None:
        life, in_hand = self._in_hand
        for number in numbers if life == batch.incarnation else ():
            if number in in_hand:
                self.numbers.put_back(_source(batch), number)

    def _numbers(self, batch: Batch) -> Iterator[int]:
        """Yield the extended hot number of each message, -1 for a message without one."""
        for number in batch.hot_numbers():
            yield -1 if number is None else self.numbers.extended(number)

    def _report_missed(self) -> None:
        for first, stop in self.numbers.take_missed():
            self._report(HotNumbersMissed(first, stop - 1))


def _source(batch: Batch) -> int:
    """Return the life whose session delivered a batch; it may have brought messages of earlier lives."""
    return getattr(batch.owner, "incarnation", batch.incarnation)
