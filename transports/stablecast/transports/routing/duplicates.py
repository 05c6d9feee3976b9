"""The numbers of one source that passed one portal: each passes once (R-168).

The window moves up by whole steps and forgets what is below it. Numbers below the window were known once, so they do
not pass: a message that comes so late is a copy, or is asked for again at a store. The window belongs to the source's
life and not to a stream: it goes on when the source is joined at another place.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet

SIZE, STEP = 16_384, 2_048
"""Numbers in a window, and numbers by which it moves."""


@attrs.define
class NumberWindow:
    """The window of one source at one portal; `base` is the lowest number in it, None before the first number."""

    size: int = SIZE
    step: int = STEP
    base: int | None = None
    seen: RangeSet = attrs.field(factory=RangeSet)

    def extended(self, number: int) -> int:
        """Return the extended number of a wire number that was taken."""
        return serial.extend(number, (self.base or 0) + self.size // 2)

    def take(self, first: int, count: int) -> list[tuple[int, int]]:
        """Note numbers from the wire number `first` on; return those that are new, as pairs (skip, count).

        >>> window = NumberWindow()
        >>> window.take(10, 5), window.take(12, 5), window.take(10, 7)
        ([(0, 5)], [(3, 2)], [])
        """
        if self.base is None:
            # Repairs of an LBT-RM hop may come before the first message of another datagram.
            self.base = first - self.size // 2
        start = serial.extend(first, self.base + self.size // 2)
        stop = start + count
        if stop > self.base + self.size:
            self.base += -(-(stop - self.base - self.size) // self.step) * self.step
        new = self.seen.add(max(start, self.base), stop)
        self.seen.forget(self.base)
        return [(low - start, high - low) for low, high in new]
