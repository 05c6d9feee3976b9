"""Messages that were cut into fragments: the ranges of numbers that are whole messages.

Every number that no large message covers is a message of its own. Events for whole messages name a range of numbers
that begins and ends with a message (P-334, P-335).
"""

from bisect import bisect_left, bisect_right

import attrs

from stablecast.core.machine.ranges import RangeSet


@attrs.define
class LargeMessages:
    """First and last numbers of the large messages in the window, ascending and disjoint."""

    firsts: list[int] = attrs.field(factory=list)
    lasts: list[int] = attrs.field(factory=list)

    def add(self, first: int, last: int) -> None:
        """Add a message with the numbers `first`..`last`, above all earlier ones."""
        self.firsts.append(first)
        self.lasts.append(last)

    def forget(self, below: int) -> None:
        """Forget the messages that end below a number."""
        if self.firsts and self.firsts[0] < below:
            gone = bisect_left(self.lasts, below)
            del self.firsts[:gone], self.lasts[:gone]

    def whole(self, parts: list[tuple[int, int]], held: RangeSet) -> list[tuple[int, int]]:
        """Return as ranges the messages that became whole when these parts were added to `held`."""
        if not self.firsts:
            return parts
        whole: list[tuple[int, int]] = []
        for low, high in parts:
            first, last = self._around(low)
            start = first if held.contiguous_from(first) > last else last + 1
            first, last = self._around(high - 1)
            stop = last + 1 if held.contiguous_from(first) > last else first
            if whole:
                start = max(start, whole[-1][1])
            if start < stop:
                whole.append((start, stop))
        return whole

    def first_of(self, number: int) -> int:
        """Return the first number of the message that contains this one."""
        return self._around(number)[0]

    def _around(self, number: int) -> tuple[int, int]:
        """Return the first and last number of the message that contains this one."""
        at = bisect_right(self.firsts, number) - 1
        if at >= 0 and self.lasts[at] >= number:
            return (self.firsts[at], self.lasts[at])
        return (number, number)
