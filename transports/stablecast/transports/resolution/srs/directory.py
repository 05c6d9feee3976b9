"""The directory of a service: sources by OTID and topic, and the interest of clients in topics and patterns.

A source belongs to the client that announced it. Its record goes to clients that want its topic or a matching pattern,
and to those that want everything (flood). It never goes to its own client (T-404, T-405).
"""

import re
from collections.abc import Iterable

import attrs

from stablecast.transports.resolution.pattern_cost import choice_bits
from stablecast.transports.resolution.patterns import compiled
from stablecast.transports.resolution.records import MAX_TOPIC_BYTES

MAX_STEPS_AT_ONCE = 1 << 26
"""Steps of searches that one record or one request of a client may cost: a quarter of a second.

Beyond it patterns match every topic, as those do that are too dear by themselves.
"""


@attrs.frozen
class Interest:
    """A topic for which a client has receivers, or a pattern."""

    name: str
    pattern: bool = False


@attrs.frozen
class AnnouncedSource:
    """A source in the directory.

    Attributes:
        otid: Its name, 32 bytes.
        topic: Its topic.
        octets: Its record in the form in which it is forwarded.
        owner: The client that announced it.
    """

    otid: bytes
    topic: str
    octets: bytes
    owner: bytes


@attrs.define
class WatchedPattern:
    """A wanted pattern; if `expression` is None it matches every topic."""

    expression: re.Pattern[str] | None
    clients: dict[bytes, None] = attrs.field(factory=dict)
    power: int = 1

    @classmethod
    def watch(cls, pattern: str) -> "WatchedPattern":
        """Return a pattern that no client wants yet."""
        expression = compiled(pattern)
        if expression is None:
            return cls(None)
        return cls(expression, power=max(1, -(-choice_bits(pattern, 0) // MAX_TOPIC_BYTES.bit_length())))

    def matches(self, topic: str, steps: int) -> bool:
        """Return whether the pattern matches the topic, or was not searched for want of steps."""
        return self.expression is None or steps > MAX_STEPS_AT_ONCE or self.expression.search(topic) is not None

    def cost(self, topic: str) -> int:
        """Return the steps of a search at worst."""
        steps: int = (len(topic) + 1) ** self.power
        return steps


@attrs.define
class Directory:
    """Sources and interest of all clients, in the order of their arrival."""

    sources: dict[bytes, AnnouncedSource] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)
    wanted: dict[str, dict[bytes, None]] = attrs.field(factory=dict)
    patterns: dict[str, WatchedPattern] = attrs.field(factory=dict)
    flooded: dict[bytes, None] = attrs.field(factory=dict)

    def put(self, source: AnnouncedSource) -> bool:
        """Add or replace a source, and return whether its record is new."""
        present = self.sources.get(source.otid)
        if present == source:
            return False
        if present is not None:
            self.remove(source.otid)
        self.sources[source.otid] = source
        self.topics.setdefault(source.topic, {})[source.otid] = None
        return True

    def remove(self, otid: bytes) -> AnnouncedSource:
        """Remove and return a known source."""
        source = self.sources.pop(otid)
        del self.topics[source.topic][otid]
        if not self.topics[source.topic]:
            del self.topics[source.topic]
        return source

    def want(self, client: bytes, interest: Interest) -> None:
        if not interest.pattern:
            self.wanted.setdefault(interest.name, {})[client] = None
            return
        watched = self.patterns.get(interest.name)
        if watched is None:
            watched = self.patterns[interest.name] = WatchedPattern.watch(interest.name)
        watched.clients[client] = None

    def unwant(self, client: bytes, interest: Interest) -> None:
        """Remove a client's interest, which must be known."""
        clients = self.patterns[interest.name].clients if interest.pattern else self.wanted[interest.name]
        del clients[client]
        if not clients:
            del (self.patterns if interest.pattern else self.wanted)[interest.name]

    def wanting(self, interest: Interest) -> Iterable[bytes]:
        if interest.pattern:
            watched = self.patterns.get(interest.name)
            return () if watched is None else watched.clients
        return self.wanted.get(interest.name, ())

    def flood(self, client: bytes, everything: bool) -> None:
        """Set whether a client wants everything, or only its interest."""
        if everything:
            self.flooded[client] = None
        else:
            self.flooded.pop(client, None)

    def audience(self, source: AnnouncedSource) -> list[bytes]:
        told = {**self.flooded, **self.wanted.get(source.topic, {})}
        steps = 0
        for watched in self.patterns.values():
            steps += watched.cost(source.topic)
            if watched.matches(source.topic, steps):
                told.update(watched.clients)
        told.pop(source.owner, None)
        return list(told)

    def meant(self, client: bytes, interests: Iterable[Interest]) -> list[AnnouncedSource]:
        """Return the sources that match a client's interests; all sources if it wants everything."""
        if client in self.flooded:
            return [source for source in self.sources.values() if source.owner != client]
        found: dict[bytes, None] = {}
        steps = 0
        for interest in interests:
            if interest.pattern:
                watched = self.patterns[interest.name]
                for topic, otids in self.topics.items():
                    steps += watched.cost(topic)
                    if watched.matches(topic, steps):
                        found.update(otids)
            else:
                found.update(self.topics.get(interest.name, {}))
        sources = (self.sources[otid] for otid in found)
        return [source for source in sources if source.owner != client]
