"""A set of ints kept as sorted, disjoint, coalesced half-open ranges.

Acknowledgements, gaps and stored extents all live in such sets. Numbers mostly arrive in order, so operations on the
last range, usually the only one, are O(1); others find their place by bisection. The owner, which knows the window,
bounds the size of the set.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter

import attrs

_start = itemgetter(0)
_stop = itemgetter(1)


@attrs.define
class RangeSet:
    """Set of ints; equal when the members are equal.

    Attributes:
        ranges: The members as [start, stop) pairs, ascending, with at least one absent int between two neighbours.

    >>> held = RangeSet()
    >>> held.add(1, 4), held.add(6, 8), held.add(2, 7)
    ([(1, 4)], [(6, 8)], [(4, 6)])
    >>> list(held), held.total(), held.contiguous_from(1)
    ([(1, 8)], 7, 8)
    """

    ranges: list[tuple[int, int]] = attrs.field(factory=list)

    def add(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Add [start, stop) and return the parts that were absent, ascending; an empty range adds nothing."""
        if start >= stop:
            return []
        ranges = self.ranges
        if not ranges:
            ranges.append((start, stop))
            return [(start, stop)]
        # Numbers mostly arrive in order, so these tests of the last range keep `add` at O(1).
        last_start, last_stop = ranges[-1]
        if start > last_stop:
            ranges.append((start, stop))
            return [(start, stop)]
        if start >= last_start:
            if stop <= last_stop:
                return []
            ranges[-1] = (last_start, stop)
            return [(last_stop, stop)]
        return self._splice_in(start, stop)

    def _splice_in(self, start: int, stop: int) -> list[tuple[int, int]]:
        new = self.missing(start, stop)
        if new:
            # Ranges that merely touch [start, stop) are merged too, so that neighbours never become adjacent.
            low = bisect_left(self.ranges, start, key=_stop)
            high = bisect_right(self.ranges, stop, key=_start)
            if low < high:
                start = min(start, self.ranges[low][0])
                stop = max(stop, self.ranges[high - 1][1])
            self.ranges[low:high] = [(start, stop)]
        return new

    def update(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Add all of these [start, stop) ranges."""
        for start, stop in ranges:
            self.add(start, stop)

    def remove(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Remove [start, stop) and return the parts that were present, ascending."""
        ranges = self.ranges
        if not ranges or ranges[-1][1] <= start:
            return []
        low, high = self._overlap(start, stop)
        if low >= high:
            return []
        gone = self.within(start, stop)
        left, right = self.ranges[low][0], self.ranges[high - 1][1]
        rest = []
        if left < start:
            rest.append((left, start))
        if stop < right:
            rest.append((stop, right))
        self.ranges[low:high] = rest
        return gone

    def forget(self, stop: int) -> None:
        """Remove everything below `stop`."""
        ranges = self.ranges
        if not ranges or ranges[0][0] >= stop:
            return
        if ranges[-1][1] <= stop:
            ranges.clear()
        elif ranges[0][1] <= stop:
            del ranges[: bisect_right(ranges, stop, key=_stop)]
        if ranges and ranges[0][0] < stop:
            ranges[0] = (stop, ranges[0][1])

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the gaps inside [start, stop), ascending."""
        ranges = self.ranges
        if not ranges or ranges[-1][1] <= start:
            return [(start, stop)] if start < stop else []
        gaps = []
        for present_start, present_stop in self.within(start, stop):
            if start < present_start:
                gaps.append((start, present_start))
            start = present_stop
        if start < stop:
            gaps.append((start, stop))
        return gaps

    def within(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the members inside [start, stop) as ranges, ascending."""
        ranges = self.ranges
        if not ranges:
            return []
        last_start, last_stop = ranges[-1]
        if last_start <= start:
            if last_stop >= stop:
                return [(start, stop)] if start < stop else []
            return [(start, last_stop)] if start < last_stop else []
        low, high = self._overlap(start, stop)
        if low >= high:
            return []
        parts = ranges[low:high]
        parts[0] = (max(start, parts[0][0]), parts[0][1])
        parts[-1] = (parts[-1][0], min(stop, parts[-1][1]))
        return parts

    def _overlap(self, start: int, stop: int) -> tuple[int, int]:
        """Return the slice of `ranges` that shares an int with [start, stop); empty (low >= high) if none does."""
        if start >= stop:
            return 0, 0
        return bisect_right(self.ranges, start, key=_stop), bisect_left(self.ranges, stop, key=_start)

    def contiguous_from(self, n: int) -> int:
        """Return the first int >= `n` that is not a member."""
        ranges = self.ranges
        if not ranges:
            return n
        start, stop = ranges[-1]
        if stop <= n:
            return n
        if start <= n:
            return stop
        start, stop = ranges[bisect_right(ranges, n, key=_stop)]
        return stop if start <= n else n

    def total(self) -> int:
        """Return the count of members."""
        return sum(stop - start for start, stop in self.ranges)

    @property
    def first(self) -> int | None:
        """The least member, or None if there is none."""
        return self.ranges[0][0] if self.ranges else None

    @property
    def last(self) -> int | None:
        """The greatest member (inclusive), or None if there is none."""
        return self.ranges[-1][1] - 1 if self.ranges else None

    def copy(self) -> "RangeSet":
        """Return an independent set with the same members."""
        return RangeSet(self.ranges.copy())

    def __contains__(self, n: int) -> bool:
        return self.contiguous_from(n) != n

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.ranges)

    def __len__(self) -> int:
        """Return the number of ranges, not of members; see `total`."""
        return len(self.ranges)
