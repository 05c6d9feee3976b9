"""The sources that a router knows, and their proxies: one for each portal whose domain wants the topic.

A source is known by its OTID, which every hop repeats. It is joined while it has a proxy, at the place that resolution
found last: the cheapest of several (`resolution.ways`). A source that was lost keeps its proxies for a while, because
it often comes back at once, perhaps at another place (R-062).
"""

from collections.abc import Collection, Iterator

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing.duplicates import NumberWindow
from stablecast.transports.routing.link_messages import SourceTold
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.wire.lbmc import Message

MAX_COST, MAX_HOPS = 0x7FFF_FFFF, 0xFF
"""The largest cost and number of routers that an advertisement can say."""


@attrs.define
class ProxySource:
    """The router's own source for another one, in one portal.

    Attributes:
        window: The numbers that have passed.
        names: Its session and index on this hop; None: it is not open yet.
        most_bytes: Bytes of the longest message that fits; 0: any.
        told: What a link was told of it; None: it is a source in a domain.
    """

    portal: int
    window: NumberWindow
    names: tuple[int, int] | None = None
    most_bytes: int = 0
    told: SourceTold | None = None


@attrs.define
class RoutedSource:
    """One source.

    Attributes:
        origin: Its OTID.
        portal: The portal in whose domain it was found.
        domain: The domain in which it is.
        record: Where it can be joined; None: it was lost, and only its proxies are left for a while.
        joined: Where it is joined.
        info: Its newest announcement, as it came.
        high: Its newest number, on the wire.
        proxies: Its proxies, by portal.
        elsewhere: Other places of it, by the portal that found them. Another router repeats it there, or did.
    """

    origin: bytes
    topic: str
    portal: int
    domain: int = 0
    record: SourceRecord | None = None
    joined: SourceRecord | None = None
    info: Message | None = None
    high: int | None = None
    proxies: dict[int, ProxySource] = attrs.field(factory=dict)
    elsewhere: dict[int, SourceRecord] = attrs.field(factory=dict)

    def leave(self) -> Iterator[fx.RouterEffect]:
        """Leave the place where the source is joined. What comes over a link has no place, and comes unasked."""
        if self.joined is not None:
            if self.joined.address:
                yield fx.LeaveSource(self.portal, self.origin)
            self.joined = None

    def move(self) -> Iterator[fx.RouterEffect]:
        """Join the source where it is if there are proxies, and leave any other place."""
        wanted = self.record if self.proxies else None
        if self.joined is not None and (wanted is None or wanted.name != self.joined.name):
            yield from self.leave()
        if wanted is not None and self.joined is None:
            self.joined = wanted
            if wanted.address:
                yield fx.JoinSource(self.portal, self.origin, self.topic, wanted)


def told(record: SourceRecord, entry: PortalSettings) -> SourceRecord:
    """Return what the advertisement of a proxy says of a source that came in through the portal `entry`."""
    return attrs.evolve(
        record,
        address="",
        session_id=0,
        index=0,
        cost=min(record.cost + entry.cost, MAX_COST),
        hops=min(record.hops + 1, MAX_HOPS),
        domain=record.domain or entry.domain,
    )


def distance(record: SourceRecord) -> tuple[int, int]:
    """Return how far a source is from one of its places, to compare places."""
    return record.cost, record.hops


@attrs.define
class RoutedSources:
    """All sources that a router knows, by OTID and by topic."""

    sources: dict[bytes, RoutedSource] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.sources)

    def add(self, source: RoutedSource) -> None:
        self.sources[source.origin] = source
        self.topics.setdefault(source.topic, {})[source.origin] = None

    def remove(self, source: RoutedSource) -> None:
        """Forget a source, which must be known."""
        del self.sources[source.origin]
        del self.topics[source.topic][source.origin]
        if not self.topics[source.topic]:
            del self.topics[source.topic]

    def of(self, topics: Collection[str]) -> list[RoutedSource]:
        return [self.sources[origin] for topic in topics for origin in self.topics.get(topic, ())]
