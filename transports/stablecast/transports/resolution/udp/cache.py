"""What a context has heard of sources, wanted or not: a new receiver joins what is known at once (T-005, T-028).

Over UDP nobody says that a source is no more, so what nobody subscribed to stays: a source that is deleted and made
anew is here twice (T-015). The number is bounded, and what was silent for long may be forgotten; both are counted.
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
    """Sources by topic; the one not heard of for the longest time first.

    Attributes:
        heard_at: When each was heard of last (ns).
        dropped: Sources that had to go for want of room.
        expired: Sources that went for their silence.
    """

    options: CacheOptions = CacheOptions()
    heard_at: dict[Key, int] = attrs.field(factory=dict, init=False)
    topics: dict[str, dict[Key, SourceRecord]] = attrs.field(factory=dict, init=False)
    dropped: int = attrs.field(default=0, init=False)
    expired: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return len(self.heard_at)

    def heard(self, topic: str, record: SourceRecord, now: int) -> None:
        """A source was advertised."""
        if not self.options.on:
            return
        key = (topic, record.address, record.session_id, record.index)
        self.heard_at.pop(key, None)
        self.heard_at[key] = now  # At the end: the dictionary stays in the order of silence.
        self.topics.setdefault(topic, {})[key] = record
        if len(self.heard_at) > self.options.most:
            self._drop(next(iter(self.heard_at)))
            self.dropped += 1

    def forget(self, topic: str, record: SourceRecord) -> None:
        """A source is no more."""
        key = (topic, record.address, record.session_id, record.index)
        if key in self.heard_at:
            self._drop(key)

    def forget_topic(self, topic: str) -> None:
        """The sources of a topic are doubtful."""
        for key in list(self.topics.get(topic, ())):
            self._drop(key)

    def expire(self, now: int) -> None:
        """Forgets what was silent for too long."""
        while (due := self.next()) is not None and due <= now:
            self._drop(next(iter(self.heard_at)))
            self.expired += 1

    def next(self) -> int | None:
        """When `expire` has something to do (ns)."""
        first = next(iter(self.heard_at.values()), None)
        return None if first is None or not self.options.forget_after else first + self.options.forget_after

    def of(self, topic: str) -> tuple[SourceRecord, ...]:
        """The sources of a topic."""
        return tuple(self.topics.get(topic, {}).values())

    def matching(self, expression: re.Pattern[str]) -> Iterator[str]:
        """The topics that a pattern means."""
        return (topic for topic in list(self.topics) if expression.search(topic))

    def _drop(self, key: Key) -> None:
        del self.heard_at[key]
        sources = self.topics[key[0]]
        del sources[key]
        if not sources:
            del self.topics[key[0]]
