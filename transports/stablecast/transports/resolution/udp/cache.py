"""The cache of all sources that a context has seen: a new receiver joins known sources at once (T-005, T-028).

Over UDP no message ends a source, so sources without subscribers stay. A source that is deleted and created again is
cached twice (T-015). The number of sources is bounded, and sources that were silent for long may be forgotten. Both
are counted.
"""

import re
from collections.abc import Iterator

import attrs

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.settings import CacheOptions

Key = tuple[str, str, int, int]
"""Topic, address, session ID, index."""


@attrs.define
class SourceCache:
    """Sources by topic, the longest silent first.

    Attributes:
        heard_at: Last advertisement of each source (ns).
        dropped: Sources removed for lack of room.
        expired: Sources removed because of silence.
    """

    options: CacheOptions = CacheOptions()
    heard_at: dict[Key, int] = attrs.field(factory=dict, init=False)
    topics: dict[str, dict[Key, SourceRecord]] = attrs.field(factory=dict, init=False)
    dropped: int = attrs.field(default=0, init=False)
    expired: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return len(self.heard_at)

    def heard(self, topic: str, record: SourceRecord, now: int) -> None:
        if not self.options.on:
            return
        key = (topic, record.address, record.session_id, record.index)
        self.heard_at.pop(key, None)
        self.heard_at[key] = now  # at the end, so that the dictionary stays in the order of silence
        self.topics.setdefault(topic, {})[key] = record
        if len(self.heard_at) > self.options.most:
            self._drop(next(iter(self.heard_at)))
            self.dropped += 1

    def forget(self, topic: str, record: SourceRecord) -> None:
        key = (topic, record.address, record.session_id, record.index)
        if key in self.heard_at:
            self._drop(key)

    def forget_topic(self, topic: str) -> None:
        """Remove the sources of a topic, because they are doubtful."""
        for key in list(self.topics.get(topic, ())):
            self._drop(key)

    def expire(self, now: int) -> None:
        """Remove sources that were silent for too long."""
        while (due := self.next()) is not None and due <= now:
            self._drop(next(iter(self.heard_at)))
            self.expired += 1

    def next(self) -> int | None:
        """Return when `expire` is due, in nanoseconds."""
        first = next(iter(self.heard_at.values()), None)
        return None if first is None or not self.options.forget_after else first + self.options.forget_after

    def of(self, topic: str) -> tuple[SourceRecord, ...]:
        return tuple(self.topics.get(topic, {}).values())

    def matching(self, expression: re.Pattern[str]) -> Iterator[str]:
        return (topic for topic in list(self.topics) if expression.search(topic))

    def _drop(self, key: Key) -> None:
        del self.heard_at[key]
        sources = self.topics[key[0]]
        del sources[key]
        if not sources:
            del self.topics[key[0]]
