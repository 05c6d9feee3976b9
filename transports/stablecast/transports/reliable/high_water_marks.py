"""High-water marks (TSNI): the newest number of each idle topic, which reveals the loss of its last messages.

A topic without data for the interval is announced, and again after each interval, until the threshold ends. Topics that
are due together share a message. Every mark is data of the session, so it delays the next session message.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.reliable.settings import MAX_TOPICS
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.fields import PAIR
from stablecast.transports.wire.headers import Tsni


@attrs.define
class TopicMark:
    """The newest number of a topic, its next announcement, and the end of its announcements (0: never)."""

    high: int
    due: int
    until: int

    def is_due(self, now: int) -> bool:
        return self.due <= now and (not self.until or now < self.until)


@attrs.define
class TopicMarks:
    """The topics of a session, by index. `next` is at or before the first announcement; `most` fit a message.

    `telling` are those that were found due, and wait for the next message.
    """

    interval: int
    active: int
    most: int
    topics: dict[int, TopicMark] = attrs.field(factory=dict)
    next: int | None = None
    telling: deque[int] = attrs.field(factory=deque)

    def on_data(self, topic: int, high: int, now: int) -> None:
        """Note data up to the wire number `high`. Raises MisuseError if the session has too many topics."""
        due = now + self.interval
        until = due + self.active if self.active else 0
        mark = self.topics.get(topic)
        if mark is not None:
            mark.high, mark.due, mark.until = high, due, until
        elif len(self.topics) < MAX_TOPICS:
            self.topics[topic] = TopicMark(high, due, until)
        else:
            raise MisuseError(f"a session has at most {MAX_TOPICS} topics: use another session")
        # An early look is harmless, so `next` is not recomputed for each message.
        if self.interval and self.next is None:
            self.next = due

    def forget(self, topic: int) -> None:
        """Remove a topic, because its source is closed."""
        self.topics.pop(topic, None)

    def due_message(self, now: int) -> bytes:
        """Return a message with the topics that are due; empty if there are none."""
        if self.next is None or now < self.next:
            return b""
        if not self.telling:
            self.telling.extend(topic for topic, mark in self.topics.items() if mark.is_due(now))
        told: list[tuple[int, int]] = []
        while self.telling and len(told) < self.most:
            topic = self.telling.popleft()
            mark = self.topics.get(topic)
            if mark is not None and mark.is_due(now):
                told.append((topic, mark.high))
                mark.due = now + self.interval
        if not self.telling:  # Otherwise the next call tells the others.
            self.next = min((m.due for m in self.topics.values() if not m.until or m.due < m.until), default=None)
        return message(told)


def room_for(octets: int) -> int:
    """Return the number of topics that fit in `octets` bytes, rounded down."""
    return (octets - 2 * lbmc.PREFIX.size) // (PAIR.size + 1)


def message(told: list[tuple[int, int]]) -> bytes:
    """Return the control message with these pairs of topic index and newest number; empty if there are none.

    >>> message([(7, 41)]).hex()
    '08200010ff0c00010000000700000029'
    """
    if not told:
        return b""
    headers = tuple(Tsni.of(*part) for part in _parts(told))
    return lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=headers))


def marks(item: lbmc.Message) -> Iterator[tuple[int, int]]:
    """Yield the pairs of topic index and newest number in a message."""
    for header in item.headers:
        if isinstance(header, Tsni):
            yield from header.records


def _parts(told: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    pairs = iter(told)
    while part := tuple(islice(pairs, Tsni.MAX_RECORDS)):
        yield part
