"""The progress of each endpoint of a capture over time, for a page: few points of each line, however many come."""

from collections import defaultdict
from typing import Final

import attrs

from stablecast.core.protocol.messages import Address, Incarnation

MAX_POINTS: Final = 400
"""Points of a line; beyond that every second one is dropped."""


@attrs.define
class TimelineLine:
    """The points of a line; of `step` points one is kept, and `last` is the newest."""

    points: list[tuple[int, int]] = attrs.field(factory=list)
    step: int = 1
    passed: int = 0
    last: tuple[int, int] = (0, 0)

    def add(self, time_ns: int, number: int) -> None:
        """Add a point to the line, unless its step skips it."""
        self.last = time_ns, number
        if self.passed % self.step == 0:
            self.points.append(self.last)
        self.passed += 1
        if len(self.points) > MAX_POINTS:
            del self.points[1::2]
            self.step *= 2

    def drawn(self) -> list[tuple[int, int]]:
        return self.points if self.points[-1:] == [self.last] else [*self.points, self.last]


@attrs.define
class Timeline:
    """All lines, by role, endpoint, kind of numbers, and life."""

    lines: dict[tuple[str, Address, str, Incarnation], TimelineLine] = attrs.field(
        factory=lambda: defaultdict(TimelineLine)
    )

    def add(self, who: tuple[str, Address], kind: str, life: Incarnation, time_ns: int, number: int) -> None:
        self.lines[*who, kind, life].add(time_ns, number)
