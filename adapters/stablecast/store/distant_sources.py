"""The sources of a store that lie in other domains: their streams are joined where routers repeat them in its own.

The place in such a registration means nothing here. The store asks for the topic in its domain, like a receiver, which
also tells the routers that the topic is wanted. It joins the place whose advertisement names the registered life.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.resolution.records import SourceRecord

if TYPE_CHECKING:
    from stablecast.resolver.combined_resolver import Combined


@attrs.define(eq=False)
class DistantSources:
    """The registered lives of other domains, by topic, each with the place that is joined for it, if one is known.

    `join` gets each life and its place.

    Attributes:
        resolver: How the store finds places; None: it has no resolution, or not yet.
    """

    _join: Callable[[Incarnation, SourceRecord], None]
    resolver: "Combined | None" = None
    _topics: dict[Incarnation, str] = attrs.field(factory=dict, init=False)
    _places: dict[Incarnation, SourceRecord] = attrs.field(factory=dict, init=False)

    def attach(self, resolver: "Combined") -> None:
        """Find the places of all lives from now on."""
        self.resolver = resolver
        for topic in dict.fromkeys(self._topics.values()):
            resolver.add_receiver(topic)

    def want(self, life: Incarnation, topic: str) -> None:
        """Join a life wherever it is repeated in this domain, until `leave`."""
        if life in self._topics:
            return
        self._topics[life] = topic
        if self.resolver is not None:
            self.resolver.add_receiver(topic)  # Also for a second life of the topic: all places are reported again.

    def leave(self, life: Incarnation) -> None:
        topic = self._topics.pop(life, None)
        self._places.pop(life, None)
        if topic is not None and self.resolver is not None and topic not in self._topics.values():
            self.resolver.remove_receiver(topic)

    def lost(self, life: Incarnation) -> None:
        """Note that the stream of a life has ended: it is joined at another place, or where it is found again."""
        place, topic = self._places.pop(life, None), self._topics.get(life)
        if place is not None and topic is not None and self.resolver is not None:
            others = any(self._topics[one] == topic for one in self._places)
            self.resolver.lost(topic, place.address, others=others)

    def found(self, topic: str, place: SourceRecord) -> None:
        """Join a place if a life was registered that is repeated there."""
        life = place.life
        if self._topics.get(life) != topic:
            return
        self._places[life] = place
        self._join(life, place)
        if self.resolver is not None and all(one in self._places for one, of in self._topics.items() if of == topic):
            self.resolver.resolved(topic)
