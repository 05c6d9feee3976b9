"""What a service has to look at later, and when: one heap for all of its clients.

Looking too early is harmless, the one who looks says when to look again. So an entry that is put off stays where it is,
and a key has one valid entry at any time.
"""

import heapq
from enum import IntEnum

import attrs


class Matter(IntEnum):
    """What there is to look at."""

    SILENCE = 0
    LIFETIME = 1
    LEAVE = 2


Item = tuple[Matter, int | bytes]


@attrs.define
class ServiceDeadlines:
    """Deadlines in nanoseconds, by matter and the key of whom it is about."""

    deadlines: dict[Item, int] = attrs.field(factory=dict)
    heap: list[tuple[int, int, Item]] = attrs.field(factory=list)
    count: int = 0

    def arm(self, item: Item, due: int) -> None:
        """Look at `item` at `due`, or sooner if that was said before."""
        present = self.deadlines.get(item)
        if present is None or due < present:
            self.deadlines[item] = due
            self.count += 1  # Ties are broken by age: keys of different matters do not compare.
            heapq.heappush(self.heap, (due, self.count, item))

    def stop(self, item: Item) -> None:
        """Never mind."""
        self.deadlines.pop(item, None)

    def pop(self, now: int) -> Item | None:
        """The next thing to look at by `now`, which is off the agenda with that."""
        while self.heap and self.heap[0][0] <= now:
            due, _, item = heapq.heappop(self.heap)
            if self.deadlines.get(item) == due:
                del self.deadlines[item]
                return item
        return None

    def next(self) -> int | None:
        """When there is something to look at."""
        while self.heap and self.deadlines.get(self.heap[0][2]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None
