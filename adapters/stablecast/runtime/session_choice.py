"""Which session of a context a new source gets (documented).

A source that names its place shares the session there with all that name the same. The others share a pool: as long as
it has room each opens a session, then they take the sessions of the pool in turn. A session ends with its last source.
"""

from collections import Counter
from collections.abc import Callable

import attrs


@attrs.define
class Berths:
    """Sessions by their number; `named` by what names their place, `pool` by their place in it."""

    named: dict[str, int] = attrs.field(factory=dict)
    pool: dict[int, int] = attrs.field(factory=dict)
    sources: Counter[int] = attrs.field(factory=Counter)
    turn: int = 0

    def take(self, name: str, size: int, make: Callable[[int], int]) -> int:
        """The session of one more source; `name` is empty for one of a pool of `size`.

        `make` opens a session at a place of the pool, or at the named one (0), and may raise.
        """
        if name:
            number = self.named.get(name)
            if number is None:
                number = self.named[name] = make(0)
        elif len(self.pool) < size:
            place = next(place for place in range(size) if place not in self.pool)
            number = self.pool[place] = make(place)
        else:
            those = sorted(self.pool.values())
            number = those[self.turn % len(those)]
            self.turn += 1
        self.sources[number] += 1
        return number

    def leave(self, number: int) -> bool:
        """One of its sources is gone; returns whether it was the last, which ends the session."""
        self.sources[number] -= 1
        if self.sources[number]:
            return False
        del self.sources[number]
        self.named = {name: session for name, session in self.named.items() if session != number}
        self.pool = {place: session for place, session in self.pool.items() if session != number}
        return True
