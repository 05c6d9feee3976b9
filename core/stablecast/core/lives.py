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
    """What of each life was seen in a session, and what was consumed of it, earlier sessions included."""

    seen: dict[int, RangeSet] = attrs.field(factory=dict)
    consumed: dict[int, RangeSet] = attrs.field(factory=dict)

    def saw(self, first: int, stop: int, incarnation: int) -> None:
        """[first, stop) came from this life."""
        _note(self.seen, incarnation, first, stop)

    def on_consumed(self, first: int, stop: int) -> None:
        """The application is done with [first, stop) of this session."""
        for incarnation, seen in self.seen.items():
            for low, high in seen.within(first, stop):
                self.remember(incarnation, low, high)

    def remember(self, incarnation: int, first: int, stop: int) -> None:
        """[first, stop) of this life is consumed."""
        _note(self.consumed, incarnation, first, stop)

    def known(self, incarnation: int, first: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [first, stop) of this life that are consumed already."""
        consumed = self.consumed.get(incarnation)
        return [] if consumed is None else consumed.within(first, stop)


def _note(lives: dict[int, RangeSet], incarnation: int, first: int, stop: int) -> None:
    """Add to a life's ranges; the life noted first makes room for one too many."""
    lives.setdefault(incarnation, RangeSet()).add(first, stop)
    if len(lives) > MAX_LIVES:
        del lives[next(iter(lives))]
