"""Messages by the life of the source that sent them: those received, and those that the application consumed.

A sequence number alone identifies nothing, because numbers of unstable messages are used again after a restart. A
message is identified by (incarnation, number) (formal design, 7.4). The documented receiver knows numbers only. Then
all lives are one, and a number that was consumed once is never delivered again, even for another message.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet

MAX_LIVES = 1024
"""Lives of one source that a session distinguishes; of older ones duplicates may be delivered again."""

ANY_LIFE = 0
"""The name of every life when lives are not distinguished."""


@attrs.define
class Lives:
    """Numbers by life: seen in this session, and consumed in this and earlier sessions."""

    told_apart: bool = True
    seen: dict[int, RangeSet] = attrs.field(factory=dict)
    consumed: dict[int, RangeSet] = attrs.field(factory=dict)

    def saw(self, first: int, stop: int, incarnation: int) -> None:
        """Record that [first, stop) came from this life."""
        self._note(self.seen, self._name(incarnation), first, stop)

    def on_consumed(self, first: int, stop: int) -> None:
        """Record that the application finished [first, stop) of this session."""
        for life, seen in self.seen.items():
            for low, high in seen.within(first, stop):
                self._note(self.consumed, life, low, high)

    def remember(self, incarnation: int, first: int, stop: int) -> None:
        """Record that [first, stop) of this life was consumed."""
        self._note(self.consumed, self._name(incarnation), first, stop)

    def known(self, incarnation: int, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of [first, stop) of this life that were consumed already."""
        consumed = self.consumed.get(self._name(incarnation))
        return [] if consumed is None else consumed.within(first, stop)

    def newest(self, incarnation: int) -> int | None:
        """Return the highest number consumed of any other life, None if there is none."""
        lasts = [held.last for life, held in self.consumed.items() if life != incarnation]
        return max((last for last in lasts if last is not None), default=None)

    def _name(self, incarnation: int) -> int:
        return incarnation if self.told_apart else ANY_LIFE

    def _note(self, lives: dict[int, RangeSet], life: int, first: int, stop: int) -> None:
        noted = lives.get(life)
        if noted is None:
            noted = lives[life] = RangeSet()
            # A peer could invent lives without end, so the oldest makes room.
            if len(lives) > MAX_LIVES:
                del lives[next(iter(lives))]
        noted.add(first, stop)
