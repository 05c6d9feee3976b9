"""Confirmed consumption: by receiver, and by the number of receivers (P-329, P-330).

A confirmation names a range. `unique` different receivers must have confirmed a message before it counts as confirmed;
0 requires none. A receiver never confirms a message that it lost for good, even if it confirms higher ones (P-349). A
receiver is identified by its session id, as a negative number, because its RegID differs between stores and may change
when it returns. A receiver without a session id is identified by the RegID that it names.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet

MAX_RECEIVERS = 10_000
"""Receivers whose confirmations a source counts; later ones are not counted."""

MAX_RUNS = 1_000
"""Separate ranges that are kept of a receiver; below the oldest of them it confirms nothing more."""

Parts = list[tuple[int, int]]


@attrs.define
class ConfirmedRanges:
    """The numbers that one receiver confirmed, from `low` on."""

    low: int
    numbers: RangeSet = attrs.field(factory=RangeSet)

    def add(self, first: int, stop: int) -> Parts:
        """Add [first, stop) and return the new parts."""
        news = self.numbers.add(max(first, self.low), stop)
        if len(self.numbers) > MAX_RUNS:
            # A receiver that confirms every second number must not grow this set without end.
            _, self.low = self.numbers.ranges[0]
            self.numbers.forget(self.low)
        return news


@attrs.define
class Confirmations:
    """Confirmed ranges by receiver. `counted[n]` has the numbers that more than n receivers confirmed, up to `unique`.

    A confirmation counts whether the copy of the message is still retained or not.
    """

    unique: int = 0
    first: int = 0
    confirmed: dict[int, ConfirmedRanges] = attrs.field(factory=dict)
    counted: list[RangeSet] = attrs.field(
        default=attrs.Factory(lambda self: [RangeSet() for _ in range(self.unique)], takes_self=True)
    )

    def begin(self, number: int) -> None:
        """Set the first number that can be confirmed."""
        self.first = number

    def enough(self, start: int, stop: int) -> Parts:
        """Return the parts of [start, stop) that enough receivers confirmed; all of it if none needs to."""
        return self.counted[-1].within(start, stop) if self.counted else [(start, stop)]

    def on_confirmed(self, receiver: int, first: int, stop: int) -> tuple[Parts, Parts]:
        """Count that a receiver consumed [first, stop).

        Return the parts that this receiver had not confirmed before, and those that only now have enough confirmations.
        """
        who = self.confirmed.get(receiver)
        if stop <= max(first, self.first) or (who is None and len(self.confirmed) >= MAX_RECEIVERS):
            return [], []
        if who is None:
            who = self.confirmed[receiver] = ConfirmedRanges(self.first)
        news = who.add(first, stop)
        return news, self._count(news)

    def _count(self, news: Parts) -> Parts:
        # One more receiver confirmed these numbers, so each rises by one level.
        rising, risen = news, list[tuple[int, int]]()
        for counted in self.counted:
            before = [part for low, high in rising for part in counted.within(low, high)]
            risen = [part for low, high in rising for part in counted.add(low, high)]
            rising = before
            if len(counted) > MAX_RUNS:
                # The same bound for the sums: old numbers count as never confirmed.
                counted.forget(counted.ranges[0][1])
        return risen
