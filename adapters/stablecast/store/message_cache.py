"""The messages that a store holds in memory, as the blocks in which they came."""

from bisect import bisect_left, bisect_right

import attrs

from stablecast.store.journal.record_format import Block

COMPACT_RUNS = 64
"""Dropped runs whose places may stay. Beyond that, the places are freed when they are half of all."""

CachedRun = tuple[int, int, int, Block]
"""First number of a block, count up to the end of its live part, the life that sent it, and the block."""


@attrs.define(eq=False)
class _Runs:
    """One source's runs, ascending and disjoint, as parallel lists. The first `gone` of them were dropped."""

    starts: list[int] = attrs.field(factory=list)
    stops: list[int] = attrs.field(factory=list)
    blocks: list[tuple[int, int, Block]] = attrs.field(factory=list)
    gone: int = 0

    def add(self, start: int, stop: int, tag: int, block: Block) -> None:
        at = len(self.stops)
        if at > self.gone and start < self.stops[-1]:
            self.clear(start, stop)
            at = bisect_left(self.starts, start, self.gone)
        self.starts.insert(at, start)
        self.stops.insert(at, stop)
        self.blocks.insert(at, (start, tag, block))

    def clear(self, start: int, stop: int) -> None:
        """Forget the numbers [start, stop)."""
        low, high = bisect_right(self.stops, start, self.gone), bisect_left(self.starts, stop, self.gone)
        kept = []
        for at in range(low, high):
            sides = (self.starts[at], start), (stop, self.stops[at])
            kept += [(first, end, self.blocks[at]) for first, end in sides if first < end]
        self.starts[low:high] = [first for first, _, _ in kept]
        self.stops[low:high] = [end for _, end, _ in kept]
        self.blocks[low:high] = [block for _, _, block in kept]

    def drop_before(self, number: int) -> None:
        """Forget the messages below `number`."""
        at = bisect_right(self.stops, number, self.gone)
        # The bytes go now. Deleting the places each time would move all others, so they go when they are half of all.
        for place in range(self.gone, at):
            self.blocks[place] = (0, 0, b"")
        self.gone = at
        if at < len(self.starts):
            self.starts[at] = max(self.starts[at], number)
        if at > COMPACT_RUNS and 2 * at > len(self.starts):
            del self.starts[:at], self.stops[:at], self.blocks[:at]
            self.gone = 0

    def find(self, number: int) -> CachedRun | None:
        at = bisect_right(self.starts, number, self.gone) - 1
        if at < self.gone or number >= self.stops[at]:
            return None
        first, tag, block = self.blocks[at]
        return first, self.stops[at] - first, tag, block


_NO_RUNS = _Runs()
"""The runs of a source without messages; dropping from it changes nothing."""


class MessageCache:
    def __init__(self) -> None:
        self._sources: dict[int, _Runs] = {}

    def keep(self, source: int, first: int, count: int, tag: int, block: Block) -> None:
        """Keep `count` messages from number `first` on, sent by life `tag`. They replace others with these numbers."""
        runs = self._sources.get(source)
        if runs is None:
            runs = self._sources[source] = _Runs()
        runs.add(first, first + count, tag, block)

    def find(self, source: int, number: int) -> CachedRun | None:
        """Return the run that holds a number, None if no run does."""
        return self._sources.get(source, _NO_RUNS).find(number)

    def drop_before(self, source: int, number: int) -> None:
        """Forget a source's messages below `number`."""
        self._sources.get(source, _NO_RUNS).drop_before(number)

    def cut(self, source: int, number: int) -> None:
        """Forget a source's messages from `number` on."""
        runs = self._sources.get(source, _NO_RUNS)
        runs.clear(number, max([number, *runs.stops[-1:]]))

    def forget(self, source: int) -> None:
        self._sources.pop(source, None)
