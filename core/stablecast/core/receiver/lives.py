"""Which life of a source sent what, and what of it the application consumed.

A sequence number alone identifies nothing: numbers of unstable messages are used again after a restart. Messages are
told apart by (incarnation, number) (formal design, 7.4). The documented receiver knows numbers only: then all lives are
one, and a number that was consumed once is never handed over again, whatever message has it now.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet

MAX_LIVES = 1024
"""Lives of one source that a session tells apart; of older ones duplicates may be delivered again."""

ANY_LIFE = 0
"""What every life is called when they are not told apart."""


@attrs.define
class Lives:
    """What of each life was seen in a session, and what was consumed of it, earlier sessions included."""

    told_apart: bool = True
    seen: dict[int, RangeSet] = attrs.field(factory=dict)
    consumed: dict[int, RangeSet] = attrs.field(factory=dict)

    def saw(self, first: int, stop: int, incarnation: int) -> None:
        """[first, stop) came from this life."""
        self._note(self.seen, self._name(incarnation), first, stop)

    def on_consumed(self, first: int, stop: int) -> None:
        """The application is done with [first, stop) of this session."""
        for life, seen in self.seen.items():
            for low, high in seen.within(first, stop):
                self._note(self.consumed, life, low, high)

    def remember(self, incarnation: int, first: int, stop: int) -> None:
        """[first, stop) of this life is consumed."""
        self._note(self.consumed, self._name(incarnation), first, stop)

    def known(self, incarnation: int, first: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [first, stop) of this life that are consumed already."""
        consumed = self.consumed.get(self._name(incarnation))
        return [] if consumed is None else consumed.within(first, stop)

    def newest(self, incarnation: int) -> int | None:
        """The highest number consumed of any life but this one, None if there is none."""
        lasts = [held.last for life, held in self.consumed.items() if life != incarnation]
        return max((last for last in lasts if last is not None), default=None)

    def _name(self, incarnation: int) -> int:
        return incarnation if self.told_apart else ANY_LIFE

    def _note(self, lives: dict[int, RangeSet], life: int, first: int, stop: int) -> None:
        """Add to a life's ranges; the life noted first makes room for one too many."""
        noted = lives.get(life)
        if noted is None:
            noted = lives[life] = RangeSet()
            if len(lives) > MAX_LIVES:
                del lives[next(iter(lives))]
        noted.add(first, stop)
