"""The sources that a router knows, and their proxies: one for each portal whose domain wants the topic.

A source is known by its OTID, which every hop repeats. It may be found at several places; it is joined at one, the
cheapest, while it has a proxy, and nowhere else. A source that was lost keeps its proxies for a while, because it often
comes back at another place at once (R-062).
"""

from collections.abc import Collection, Iterator

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing.duplicates import NumberWindow
from stablecast.transports.wire.lbmc import Message

MAX_PLACES = 8
"""Places of one source that are remembered."""

Place = tuple[str, int, int]
"""Address, session ID and index of a source on a hop."""


def place_of(record: SourceRecord) -> Place:
    """Return the place of a record."""
    return record.address, record.session_id, record.index


@attrs.define
class ProxySource:
    """The router's own source for another one, in one portal.

    Attributes:
        window: The numbers that have passed.
        names: Its session and index on this hop; None: it is not open yet.
        most_bytes: Bytes of the longest message that fits; 0: any.
    """

    portal: int
    window: NumberWindow
    names: tuple[int, int] | None = None
    most_bytes: int = 0


@attrs.define
class RoutedSource:
    """One source.

    Attributes:
        origin: Its OTID.
        portal: The portal in whose domain it was found.
        places: Where it can be joined.
        joined: Where it is joined.
        info: Its newest announcement, as it came.
        high: Its newest number, on the wire.
        proxies: Its proxies, by portal.
        lost: Whether it is gone, and only its proxies are left for a while.
    """

    origin: bytes
    topic: str
    portal: int
    places: dict[Place, SourceRecord] = attrs.field(factory=dict)
    joined: SourceRecord | None = None
    info: Message | None = None
    high: int | None = None
    proxies: dict[int, ProxySource] = attrs.field(factory=dict)
    lost: bool = False

    @property
    def best(self) -> SourceRecord | None:
        """The cheapest place; None if none is left."""
        return min(self.places.values(), key=lambda one: (one.cost, one.hops, place_of(one)), default=None)

    def found(self, record: SourceRecord) -> None:
        """Note a place, or what changed there."""
        self.places.pop(place_of(record), None)
        self.places[place_of(record)] = record
        if len(self.places) > MAX_PLACES:
            del self.places[next(iter(self.places))]

    def gone(self, place: Place) -> None:
        """Forget a place."""
        self.places.pop(place, None)

    def move(self) -> Iterator[fx.RouterEffect]:
        """Join the best place if there are proxies, and leave any other.

        A place that works is not left for a cheaper one before it ends: one router has one portal in each domain, so
        other places are older or newer records of the same source.
        """
        wanted = None
        if self.proxies:
            stays = self.joined is not None and place_of(self.joined) in self.places
            wanted = self.joined if stays else self.best
        if self.joined is not None and wanted is not self.joined:
            self.joined = None
            yield fx.LeaveSource(self.portal, self.origin)
        if wanted is not None and self.joined is None:
            self.joined = wanted
            yield fx.JoinSource(self.portal, self.origin, self.topic, wanted)


@attrs.define
class RoutedSources:
    """All sources that a router knows, by OTID and by topic."""

    sources: dict[bytes, RoutedSource] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    def add(self, source: RoutedSource) -> None:
        """Note a new source."""
        self.sources[source.origin] = source
        self.topics.setdefault(source.topic, {})[source.origin] = None

    def remove(self, source: RoutedSource) -> None:
        """Forget a source, which must be known."""
        del self.sources[source.origin]
        del self.topics[source.topic][source.origin]
        if not self.topics[source.topic]:
            del self.topics[source.topic]

    def of(self, topics: Collection[str]) -> list[RoutedSource]:
        """Return the sources of these topics."""
        return [self.sources[origin] for topic in topics for origin in self.topics.get(topic, ())]

    def proxies_of(self, portal: int) -> int:
        """Return the number of proxies in a portal."""
        return sum(portal in source.proxies for source in self.sources.values())
