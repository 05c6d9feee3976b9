"""Deadlines of many things of one kind, in one heap.

An early look is harmless, because the caller arms the next deadline after each look. So an entry that is postponed
stays in the heap, and each key has one valid entry.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

KeyT = TypeVar("KeyT", bound=Hashable)


@attrs.define
class KeyedDeadlines(Generic[KeyT]):
    """At most one deadline, in nanoseconds, for each key."""

    deadlines: dict[KeyT, int] = attrs.field(factory=dict)
    heap: list[tuple[int, int, KeyT]] = attrs.field(factory=list)
    count: int = 0

    def arm(self, key: KeyT, due: int) -> None:
        """Look at `key` at `due`, or earlier if it has an earlier deadline."""
        present = self.deadlines.get(key)
        if present is None or due < present:
            self.deadlines[key] = due
            self.count += 1  # ties are broken by age, so that simulations repeat
            heapq.heappush(self.heap, (due, self.count, key))

    def stop(self, key: KeyT) -> None:
        self.deadlines.pop(key, None)

    def pop(self, now: int) -> KeyT | None:
        """Remove and return the next key that is due by `now`."""
        while self.heap and self.heap[0][0] <= now:
            due, _, key = heapq.heappop(self.heap)
            if self.deadlines.get(key) == due:
                del self.deadlines[key]
                return key
        return None

    def next(self) -> int | None:
        """Return the earliest deadline, or None."""
        while self.heap and self.deadlines.get(self.heap[0][2]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None
