"""The sources that a context has been told of, by up to five services at once (hot/hot, T-401).

Each service that told of a source holds it here, on the connection on which it said so. A source goes when a service
says so, or did not name it in a full exchange, and no other service holds it on a connection that is still there: a
service that restarted or lost touch takes nothing away from the others. A broken connection takes nothing away at all.
"""

from collections.abc import Iterator, Mapping

import attrs

from stablecast.transports.resolution.records import SourceRecord

OWN = -1
"""The holder of the context's own sources, always on connection 0."""

Live = Mapping[int, int]
"""The connection of each holder that has one."""


@attrs.define
class KnownSource:
    """One source; `source` is its source string, `holders` tells on which connection each holder named it last."""

    otid: bytes
    topic: str
    source: str
    record: SourceRecord
    holders: dict[int, int] = attrs.field(factory=dict)


@attrs.define
class KnownSources:
    """All sources that a context knows."""

    entries: dict[bytes, KnownSource] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)

    def put(self, entry: KnownSource, holder: int, connection: int) -> bool:
        """A holder tells of a source; returns whether that is news."""
        present = self.entries.get(entry.otid)
        news = present is None or (present.topic, present.record) != (entry.topic, entry.record)
        if present is not None and news:
            entry.holders = present.holders
            self.drop(present.otid)
        if present is None or news:
            self.entries[entry.otid] = present = entry
            self.topics.setdefault(entry.topic, {})[entry.otid] = None
        present.holders[holder] = connection
        return news

    def release(self, otid: bytes, holder: int, live: Live) -> KnownSource | None:
        """A holder says that a source is no more; returns it if that is so."""
        entry = self.entries.get(otid)
        if entry is None or entry.holders.pop(holder, None) is None:
            return None
        return self._check(entry, live)

    def sweep(self, holder: int, live: Live) -> list[KnownSource]:
        """A holder has told all on its connection: it lets go of what it did not name. Returns what is no more."""
        older = [entry for entry in self.entries.values() if entry.holders.get(holder, live[holder]) != live[holder]]
        for entry in older:
            del entry.holders[holder]
        return [entry for entry in older if self._check(entry, live)]

    def drop(self, otid: bytes) -> None:
        """Forget a source."""
        entry = self.entries.pop(otid)
        del self.topics[entry.topic][otid]
        if not self.topics[entry.topic]:
            del self.topics[entry.topic]

    def of(self, topic: str) -> Iterator[KnownSource]:
        """The sources of a topic."""
        return (self.entries[otid] for otid in self.topics.get(topic, {}))

    def _check(self, entry: KnownSource, live: Live) -> KnownSource | None:
        if any(live.get(holder) == connection for holder, connection in entry.holders.items()):
            return None
        self.drop(entry.otid)
        return entry
