"""Histograms of durations, cheap enough for the thread that syncs."""

from bisect import bisect_left
from typing import Final

import attrs

from stablecast.core.machine.units import MICROSECOND, SECOND

BOUNDS_NS: Final = (
    *(digits * power * MICROSECOND for power in (100, 1_000, 10_000, 100_000) for digits in (1, 2, 5)),
    *(number * SECOND for number in (1, 2, 5, 10, 60)),
)
"""Upper bounds (ns) of the buckets, from 100 us to a minute. One more bucket has everything above."""

Labels = tuple[tuple[str, str], ...]
"""Names and values."""
Exemplar = tuple[int, Labels, int, int]
"""Bucket of one observation, its labels, its duration in ns, and its instant in ns of the epoch."""


@attrs.frozen
class DurationView:
    """A histogram as it was.

    Attributes:
        counts: Observations by bucket of `BOUNDS_NS`, the last one without a bound.
        total_ns: Sum of all observations.
        exemplars: The newest observation of each bucket, of those that were added with labels.
    """

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_NS) + 1)
    total_ns: int = 0
    exemplars: tuple[Exemplar, ...] = ()

    @property
    def count(self) -> int:
        return sum(self.counts)


@attrs.define
class Durations:
    """A histogram that one thread adds to. Another thread may view it; it then may miss the newest observation."""

    _counts: list[int] = attrs.field(factory=lambda: [0] * (len(BOUNDS_NS) + 1))
    _total_ns: int = 0
    _exemplars: dict[int, Exemplar] = attrs.field(factory=dict)

    def add(self, took_ns: int) -> None:
        """Count a duration. A negative one counts as 0, because a wall clock may leap."""
        took_ns = max(0, took_ns)
        self._counts[bisect_left(BOUNDS_NS, took_ns)] += 1
        self._total_ns += took_ns

    def add_example(self, took_ns: int, labels: Labels, now_ns: int) -> None:
        """Count a duration and keep it with its labels as the newest of its bucket."""
        self.add(took_ns)
        bucket = bisect_left(BOUNDS_NS, max(0, took_ns))
        self._exemplars[bucket] = bucket, labels, max(0, took_ns), now_ns

    def view(self) -> DurationView:
        return DurationView(tuple(self._counts), self._total_ns, tuple(self._exemplars.values()))
