"""The names of lives where routers repeat them: on each hop a source has another session and another topic index.

Advertisements tell both. What a stream carries has the names of its hop; everything else names the life. Without an
advertisement of a router the two are equal, and nothing is kept.
"""

from collections.abc import Container

import attrs

from stablecast.core.protocol.messages import Incarnation

MAX_NAMES = 4_096
"""Names that one receiver keeps. Beyond them the longest unheard is forgotten that no session uses."""

Hop = Incarnation
"""The session ID and the topic index on a hop, joined like those of a life."""


@attrs.define
class HopNames:
    """The lives behind the names of hops, with their places, the longest unheard first; and their names by place."""

    lives: dict[Hop, tuple[Incarnation, str]] = attrs.field(factory=dict)
    hops: dict[tuple[str, Incarnation], Hop] = attrs.field(factory=dict)

    def learn(self, transport: str, hop: Hop, life: Incarnation, used: Container[Incarnation]) -> None:
        """Note what a life is called at a place. Beyond the bound, forget another one that is not `used`."""
        if hop == life:
            return
        self._forget(hop)
        self.lives[hop] = life, transport
        self.hops[transport, life] = hop
        if len(self.lives) > MAX_NAMES:
            idle = (one for one, (other, _) in self.lives.items() if other not in used)
            self._forget(next(idle, hop))

    def _forget(self, hop: Hop) -> None:
        life, place = self.lives.pop(hop, (0, ""))
        if self.hops.get((place, life)) == hop:
            del self.hops[place, life]

    def life(self, hop: Hop) -> Incarnation:
        """Return the life behind a name."""
        known = self.lives.get(hop)
        return hop if known is None else known[0]

    def hop(self, transport: str, life: Incarnation) -> Hop:
        """Return the name of a life at a place."""
        return self.hops.get((transport, life), life)
