"""When to look at whom: deadlines of many things of one kind, of which only those that are due cost anything.

An entry says "look at `key` at this time or a little before"; looking too early is harmless, so entries are moved up
at once and moved back only when they come up. Nothing here reads a clock.
"""

from heapq import heappop, heappush

import attrs


@attrs.define
class Agenda:
    """At most one deadline (ns) for each key; the heap may hold others that were moved up."""

    deadlines: dict[int, int] = attrs.field(factory=dict)
    heap: list[tuple[int, int]] = attrs.field(factory=list)

    def wake(self, key: int, deadline: int | None) -> None:
        """Look at `key` by then, or earlier if that was said before; None asks for nothing."""
        if deadline is None:
            return
        present = self.deadlines.get(key)
        if present is None or deadline < present:
            self.deadlines[key] = deadline
            heappush(self.heap, (deadline, key))

    def due(self, now: int) -> list[int]:
        """The keys to look at now, the earliest first; they are off the agenda."""
        keys: list[int] = []
        while self.heap and self.heap[0][0] <= now:
            deadline, key = heappop(self.heap)
            if self.deadlines.get(key) == deadline:
                del self.deadlines[key]
                keys.append(key)
        return keys

    def drop(self, key: int) -> None:
        """There is no such thing any more."""
        self.deadlines.pop(key, None)

    def next(self) -> int | None:
        """When `due` should be asked; never too late."""
        return self.heap[0][0] if self.heap else None
