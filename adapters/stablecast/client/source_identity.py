"""Which lives are lives of one source, as far as a receiver can tell.

A topic may have several sources, and what was consumed of one says nothing about another. The stores tell sources
apart: a source is where it is registered, and under which RegID. A life that shares such a place with an earlier one is
a life of the same source. A life that shares none is another source, or one whose stores were emptied. The receiver
cannot tell, so it takes the life for the only source that is gone, if there is just one: the application then hears
that this source stepped back.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.receiver.lives import MAX_LIVES

Place = tuple[str, int]
"""The address of a store, and the RegID of the source there."""


@attrs.define
class SourceIdentity:
    """The sources of one topic: `sources` names the source of each life, `places` where each source is registered."""

    sources: dict[int, int] = attrs.field(factory=dict)
    places: dict[int, set[Place]] = attrs.field(factory=dict)
    count: int = 0

    def begin(self, life: int, places: set[Place], living: Iterable[int]) -> set[int]:
        """Note a new life, and return the earlier ones that may be lives of its source, itself included.

        Args:
            life: The incarnation that begins.
            places: Where it is registered.
            living: The incarnations that are joined now.
        """
        there = {self.sources[other] for other in living if other in self.sources}
        source = next((one for one, known in self.places.items() if known & places), None)
        if source is None:
            gone = set(self.places) - there
            related = gone if len(gone) == 1 else set[int]()
            self.count += 1
            source = self.count
        else:
            related = {source}
        earlier = {other for other, whose in self.sources.items() if whose in related}
        self.note(life, source, places)
        return earlier | {life}

    def learn(self, life: int, places: set[Place], lives: Iterable[int]) -> None:
        """Note where a life is registered by now, and of which earlier lives of its source it delivered messages."""
        source = self.sources.get(life)
        if source is None:
            return
        for other in lives:
            self.sources.setdefault(other, source)
        self.note(life, source, places)

    def note(self, life: int, source: int, places: set[Place]) -> None:
        """A life is of this source; the lives noted first make room."""
        self.sources.pop(life, None)
        self.sources[life] = source
        self.places.setdefault(source, set()).update(places)
        while len(self.sources) > MAX_LIVES:
            del self.sources[next(iter(self.sources))]
        for forgotten in self.places.keys() - set(self.sources.values()):
            del self.places[forgotten]
