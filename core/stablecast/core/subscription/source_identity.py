"""The lives that belong to one source, as far as a receiver can know.

A topic may have several sources, and the messages that the application consumed of one do not count for another. Stores
distinguish sources by registration: the *place* of a source is a store's address and its RegID there. Two lives belong
to one source if they share a place, or if the announcement of one names the other as an earlier life.

A life that shares nothing is another source, or one whose stores were emptied. If exactly one source is gone, the
receiver assumes the latter for the history of consumption. The application then learns that its source stepped back.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.receiver.lives import MAX_LIVES

Place = tuple[str, int]
"""The address of a store, and the RegID of the source there."""


@attrs.define
class SourceIdentity:
    """The sources of one topic.

    Attributes:
        sources: The source of each life, by incarnation; the life that was noted longest ago comes first.
        places: Where each source is registered.
        count: Sources seen so far; each gets the next number as its name.
    """

    sources: dict[int, int] = attrs.field(factory=dict)
    places: dict[int, set[Place]] = attrs.field(factory=dict)
    count: int = 0

    def begin(self, info: SourceInfo, living: Iterable[int]) -> set[int]:
        """Note the life that announces itself; return the lives whose consumption it must know, itself included.

        `living` are the incarnations that the receiver has joined now.
        """
        there = {self.sources[other] for other in living if other in self.sources}
        known = self._sources_of(info)
        gone = set(self.places) - there
        related = known or (gone if len(gone) == 1 else set())
        earlier = {other for other, source in self.sources.items() if source in related}
        self._note(info, known)
        return earlier | {info.incarnation}

    def learn(self, info: SourceInfo | None, lives: Iterable[int]) -> None:
        """Note the newest announcement of a life, and the `lives` of its source whose messages its session knows.

        A life that did not begin here, or was forgotten since, is ignored. So is a session without an announcement.
        """
        if info is None or info.incarnation not in self.sources:
            return
        for other in lives:
            self.sources.setdefault(other, self.sources[info.incarnation])
        self._note(info, self._sources_of(info))

    def same(self, life: int, other: int) -> bool:
        """Return True if two incarnations are known to be lives of one source."""
        return life == other or (life in self.sources and self.sources[life] == self.sources.get(other))

    def _sources_of(self, info: SourceInfo) -> set[int]:
        """Return the sources that the announced life belongs to: more than one if it shows them to be the same."""
        lives = (info.incarnation, *(life for life, _ in info.lives))
        here = places_of(info)
        shared = {source for source, known in self.places.items() if known & here}
        return shared | {self.sources[life] for life in lives if life in self.sources}

    def _note(self, info: SourceInfo, same: set[int]) -> None:
        """Unite the sources that are the `same`, and enter the life there. The oldest lives make room."""
        if not same:
            self.count += 1
        source = min(same, default=self.count)
        self.places[source] = places_of(info).union(*(self.places.pop(one, set()) for one in same))
        self.sources |= {life: source for life, one in self.sources.items() if one in same}
        for life, _ in info.lives:
            self.sources.setdefault(life, source)
        self.sources.pop(info.incarnation, None)
        self.sources[info.incarnation] = source
        while len(self.sources) > MAX_LIVES:
            del self.sources[next(iter(self.sources))]
        for forgotten in self.places.keys() - set(self.sources.values()):
            del self.places[forgotten]


def places_of(info: SourceInfo) -> set[Place]:
    """Return where the source that announces itself is registered, and under which RegID."""
    return {(store.address, store.source_reg_id) for store in info.stores}
