"""Which life of a source sent what, and what of it the application consumed.

A sequence number alone identifies nothing: numbers of unstable messages are used again after a restart (formal design,
section 7.3). Messages are told apart by (incarnation, number).
"""

import attrs

from stablecast.core.ranges import RangeSet

MAX_LIVES = 64
"""Lives of one source that a session tells apart; of older ones duplicates may be delivered again."""


@attrs.define
class Lives:
    """The senders of the messages seen in a session, and what was consumed of each life, earlier sessions included."""

    senders: list[tuple[int, int, int]] = attrs.field(factory=list)
    consumed: dict[int, RangeSet] = attrs.field(factory=dict)

    def saw(self, first: int, stop: int, incarnation: int) -> None:
        """[first, stop) came from this life; neighbours merge, so that entries are few."""
        for at, (low, high, sender) in enumerate(self.senders):
            if sender == incarnation and low <= stop and first <= high:
                self.senders[at] = (min(low, first), max(high, stop), sender)
                return
        self.senders.append((first, stop, incarnation))
        del self.senders[:-MAX_LIVES]

    def on_consumed(self, first: int, stop: int) -> None:
        """The application is done with [first, stop) of this session."""
        for low, high, sender in self.senders:
            if max(first, low) < min(stop, high):
                self.remember(sender, max(first, low), min(stop, high))

    def remember(self, incarnation: int, first: int, stop: int) -> None:
        """[first, stop) of this life is consumed."""
        self.consumed.setdefault(incarnation, RangeSet()).add(first, stop)
        if len(self.consumed) > MAX_LIVES:
            del self.consumed[next(iter(self.consumed))]

    def known(self, incarnation: int, first: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [first, stop) of this life that are consumed already."""
        consumed = self.consumed.get(incarnation)
        return [] if consumed is None else consumed.within(first, stop)
