"""The deadlines of a service: one heap for all of its clients.

An early look is harmless, because the service arms the next deadline after each look. So an entry that is postponed
stays in the heap, and each key has one valid entry.
"""

import heapq
from enum import IntEnum

import attrs


class Matter(IntEnum):
    """The reasons for a look at a connection, a client or a source."""

    SILENCE = 0
    LIFETIME = 1
    LEAVE = 2


Item = tuple[Matter, int | bytes]


@attrs.define
class ServiceDeadlines:
    """Deadlines in nanoseconds, by matter and key."""

    deadlines: dict[Item, int] = attrs.field(factory=dict)
    heap: list[tuple[int, int, Item]] = attrs.field(factory=list)
    count: int = 0

    def arm(self, item: Item, due: int) -> None:
        """Look at `item` at `due`, or earlier if it has an earlier deadline."""
        present = self.deadlines.get(item)
        if present is None or due < present:
            self.deadlines[item] = due
            self.count += 1  # ties are broken by age, so that simulations repeat
            heapq.heappush(self.heap, (due, self.count, item))

    def stop(self, item: Item) -> None:
        """Remove the deadline of `item`."""
        self.deadlines.pop(item, None)

    def pop(self, now: int) -> Item | None:
        """Remove and return the next item that is due by `now`."""
        while self.heap and self.heap[0][0] <= now:
            due, _, item = heapq.heappop(self.heap)
            if self.deadlines.get(item) == due:
                del self.deadlines[item]
                return item
        return None

    def next(self) -> int | None:
        """Return the earliest deadline, or None."""
        while self.heap and self.deadlines.get(self.heap[0][2]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None
