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

    def copy(self) -> "LargeMessages":
        """Return an independent copy."""
        return LargeMessages(self.firsts.copy(), self.lasts.copy())

    def add(self, first: int, last: int) -> None:
        """Add a message with the numbers `first`..`last`, above all earlier ones."""
        self.firsts.append(first)
        self.lasts.append(last)

    def forget(self, below: int) -> None:
        """Forget the messages that end below a number."""
        if self.firsts and self.firsts[0] < below:
            gone = bisect_left(self.lasts, below)
            del self.firsts[:gone], self.lasts[:gone]

    def begun(self, below: int) -> list[tuple[int, int]]:
        """Return the numbers [first, stop) of each large message that begins below a number."""
        at = bisect_left(self.firsts, below)
        return [(first, last + 1) for first, last in zip(self.firsts[:at], self.lasts[:at], strict=True)]

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

    def count(self, first: int, stop: int) -> int:
        """Return the messages in [first, stop), which begins and ends with a message."""
        count = stop - first
        if self.firsts:
            for at in range(bisect_left(self.firsts, first), len(self.firsts)):
                if self.firsts[at] >= stop:
                    break
                count -= self.lasts[at] - self.firsts[at]
        return count

    def touched(self, parts: list[tuple[int, int]]) -> int:
        """Return the messages that have a number in one of these parts, which ascend."""
        bounds = RangeSet()
        bounds.update((self._around(low)[0], self._around(high - 1)[1] + 1) for low, high in parts)
        return sum(self.count(start, stop) for start, stop in bounds)

    def first_of(self, number: int) -> int:
        """Return the first number of the message that contains this one."""
        return self._around(number)[0]

    def _around(self, number: int) -> tuple[int, int]:
        """Return the first and last number of the message that contains this one."""
        at = bisect_right(self.firsts, number) - 1
        if at >= 0 and self.lasts[at] >= number:
            return (self.firsts[at], self.lasts[at])
        return (number, number)
