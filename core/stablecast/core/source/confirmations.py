"""Which receivers consumed what, and what enough of them did (P-329, P-330).

A confirmation names a range. `unique` different receivers must have confirmed a message before it counts as confirmed;
0 asks for none. A message that a receiver lost for good is in no range of that receiver: it stays unconfirmed, whatever
the receiver confirms above it (P-349). A receiver is identified by its session id, as a negative number: its RegID
differs from store to store, and the RegID it names may change when it returns. A receiver without a session id is
identified by the RegID that it names.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet

MAX_RECEIVERS = 10_000
"""Receivers whose confirmations a source keeps count of; later ones are not counted."""

MAX_RUNS = 1_000
"""Separate ranges that are remembered of a receiver; below the oldest of them it confirms nothing more."""

Parts = list[tuple[int, int]]


@attrs.define
class ConfirmedRanges:
    """What one receiver confirmed, from `low` on."""

    low: int
    numbers: RangeSet = attrs.field(factory=RangeSet)

    def add(self, first: int, stop: int) -> Parts:
        """Add [first, stop) and return the parts that are news."""
        news = self.numbers.add(max(first, self.low), stop)
        if len(self.numbers) > MAX_RUNS:
            _, self.low = self.numbers.ranges[0]
            self.numbers.forget(self.low)
        return news


@attrs.define
class Confirmations:
    """Confirmed ranges by receiver; `counted[n]` is what more than n receivers confirmed, up to `unique` of them.

    What is confirmed counts for the application whether its copy is still retained or not.
    """

    unique: int = 0
    first: int = 0
    confirmed: dict[int, ConfirmedRanges] = attrs.field(factory=dict)
    counted: list[RangeSet] = attrs.field(
        default=attrs.Factory(lambda self: [RangeSet() for _ in range(self.unique)], takes_self=True)
    )

    def begin(self, number: int) -> None:
        """Take `number` as the first that there is to confirm."""
        self.first = number

    def enough(self, start: int, stop: int) -> Parts:
        """Return the parts of [start, stop) that enough receivers confirmed; all of it if none needs to."""
        return self.counted[-1].within(start, stop) if self.counted else [(start, stop)]

    def on_confirmed(self, receiver: int, first: int, stop: int) -> tuple[Parts, Parts]:
        """Count that a receiver consumed [first, stop).

        Returns the parts that this receiver had not confirmed before, and those that enough receivers have confirmed
        only now.
        """
        who = self.confirmed.get(receiver)
        if stop <= max(first, self.first) or (who is None and len(self.confirmed) >= MAX_RECEIVERS):
            return [], []
        if who is None:
            who = self.confirmed[receiver] = ConfirmedRanges(self.first)
        news = who.add(first, stop)
        return news, self._count(news)

    def _count(self, news: Parts) -> Parts:
        """Another receiver confirmed these: each number rises by one level."""
        rising, risen = news, list[tuple[int, int]]()
        for counted in self.counted:
            before = [part for low, high in rising for part in counted.within(low, high)]
            risen = [part for low, high in rising for part in counted.add(low, high)]
            rising = before
            if len(counted) > MAX_RUNS:
                counted.forget(counted.ranges[0][1])
        return risen
