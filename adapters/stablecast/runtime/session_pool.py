"""The sessions of a context, and the choice of one for a new source (documented).

Sources that name the same address share one session. The other sources share a pool: each opens a session until the
pool is full, then they use the sessions of the pool in turn. A session ends with its last source.
"""

from collections import Counter
from collections.abc import Callable

import attrs


@attrs.define
class SessionPool:
    """Session numbers: `named` by the address that sources name, `pool` by their place in the pool."""

    named: dict[str, int] = attrs.field(factory=dict)
    pool: dict[int, int] = attrs.field(factory=dict)
    sources: Counter[int] = attrs.field(factory=Counter)
    turn: int = 0

    def choose(self, name: str, size: int, make: Callable[[int], int]) -> int:
        """Return the session of one more source; an empty `name` selects from a pool of `size` sessions.

        `make` opens a session at a place of the pool, or at the named address (place 0), and may raise.
        """
        if name:
            number = self.named.get(name)
            if number is None:
                number = self.named[name] = make(0)
        elif len(self.pool) < size:
            # The first free place, because a session that ended has freed its group or port.
            place = next(place for place in range(size) if place not in self.pool)
            number = self.pool[place] = make(place)
        else:
            those = sorted(self.pool.values())
            number = those[self.turn % len(those)]
            self.turn += 1
        self.sources[number] += 1
        return number

    def leave(self, number: int) -> bool:
        """Remove one source of a session; return whether it was the last, which ends the session."""
        self.sources[number] -= 1
        if self.sources[number]:
            return False
        del self.sources[number]
        self.named = {name: session for name, session in self.named.items() if session != number}
        self.pool = {place: session for place, session in self.pool.items() if session != number}
        return True
