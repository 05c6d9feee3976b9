"""The sources that a context knows, from up to five services at once (hot/hot, T-401).

Each service that announced a source holds it, on the connection of the announcement. A service releases a source by a
record, or by not naming it in a full exchange. The source then ends unless another service holds it on a live
connection. So a service that restarted or lost touch removes nothing that others hold. A broken connection removes
nothing at all.
"""

from collections.abc import Iterator, Mapping

import attrs

from stablecast.transports.resolution.records import SourceRecord

OWN = -1
"""The holder of the context's own sources, always on connection 0."""

Live = Mapping[int, int]
"""The connection of each connected holder."""


@attrs.define
class KnownSource:
    """One source; `source` is its source string. `holders` maps each holder to the connection on which it named it."""

    otid: bytes
    topic: str
    source: str
    record: SourceRecord
    holders: dict[int, int] = attrs.field(factory=dict)


@attrs.define
class KnownSources:
    entries: dict[bytes, KnownSource] = attrs.field(factory=dict)
    topics: dict[str, dict[bytes, None]] = attrs.field(factory=dict)

    def put(self, entry: KnownSource, holder: int, connection: int) -> bool:
        """Note that a holder announced a source, and return whether the record is new."""
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
        """Note that a holder reported the end of a source, and return the source if no other holds it."""
        entry = self.entries.get(otid)
        if entry is None or entry.holders.pop(holder, None) is None:
            return None
        return self._check(entry, live)

    def sweep(self, holder: int, live: Live) -> list[KnownSource]:
        """Release the sources that a holder did not name in a full exchange, and return those that ended."""
        older = [entry for entry in self.entries.values() if entry.holders.get(holder, live[holder]) != live[holder]]
        for entry in older:
            del entry.holders[holder]
        return [entry for entry in older if self._check(entry, live)]

    def drop(self, otid: bytes) -> None:
        """Forget a source, which must be known."""
        entry = self.entries.pop(otid)
        del self.topics[entry.topic][otid]
        if not self.topics[entry.topic]:
            del self.topics[entry.topic]

    def of(self, topic: str) -> Iterator[KnownSource]:
        return (self.entries[otid] for otid in self.topics.get(topic, {}))

    def _check(self, entry: KnownSource, live: Live) -> KnownSource | None:
        if any(live.get(holder) == connection for holder, connection in entry.holders.items()):
            return None
        self.drop(entry.otid)
        return entry
