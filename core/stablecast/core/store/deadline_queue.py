"""Deadlines of many keys, of which only those that are due cost anything.

An entry requests a visit of `key` at a time or a little before. An early visit is harmless, so entries are moved up at
once and moved back only when they come up.
"""

from heapq import heappop, heappush

import attrs


@attrs.define
class DeadlineQueue:
    """At most one deadline (ns) for each key; the heap may hold others that were moved up."""

    deadlines: dict[int, int] = attrs.field(factory=dict)
    heap: list[tuple[int, int]] = attrs.field(factory=list)

    def wake(self, key: int, deadline: int | None) -> None:
        """Visit `key` by this deadline, or by an earlier one already set; None requests nothing."""
        if deadline is None:
            return
        present = self.deadlines.get(key)
        if present is None or deadline < present:
            self.deadlines[key] = deadline
            heappush(self.heap, (deadline, key))

    def due(self, now: int) -> list[int]:
        """Remove and return the keys to visit now, the earliest first."""
        keys: list[int] = []
        while self.heap and self.heap[0][0] <= now:
            deadline, key = heappop(self.heap)
            # Entries that were moved up leave their old heap entry behind; it is skipped here.
            if self.deadlines.get(key) == deadline:
                del self.deadlines[key]
                keys.append(key)
        return keys

    def drop(self, key: int) -> None:
        self.deadlines.pop(key, None)

    def next(self) -> int | None:
        """Return when `due` should be asked; never too late."""
        return self.heap[0][0] if self.heap else None
