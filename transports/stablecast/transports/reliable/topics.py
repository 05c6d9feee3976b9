"""Gaps in the topics of a session: missing numbers and their age.

A datagram that is given up shows nothing about its topics, so each topic keeps its own count. A gap shows with the next
message, or with the topic's high-water mark (TSNI). It closes when the messages arrive. It is lost when it reaches the
generation interval, independent of the datagrams. A topic begins with its first message: nothing before it is missing.

The worked example of the reference: messages are lost at 0 s, and the mark reveals this at 5 s. They are lost for good
at 15 s; without a mark never.

Gaps are checked whenever a datagram arrives, and every check interval.
"""

from collections import deque

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.transports.reliable.effects import ReceiverEffect, TopicLost
from stablecast.transports.reliable.settings import MAX_TOPIC_GAPS, MAX_TOPICS


@attrs.define
class SessionTopic:
    """The newest number known to be sent, and the missing numbers below it."""

    high: int
    missing: RangeSet = attrs.field(factory=RangeSet)


@attrs.frozen
class TopicGap:
    """[first, stop) of a topic was missing at `found_at` (ns); parts of it may have arrived since."""

    found_at: int
    topic: int
    first: int
    stop: int


@attrs.define
class Topics:
    """The topics of one session, by index.

    Attributes:
        generation_ns: Age at which a gap is lost.
        check_ns: Between checks; 0: only when a datagram arrives.
        gaps: The detected gaps, oldest first.
        look_at: The next check.
    """

    generation_ns: int
    check_ns: int
    topics: dict[int, SessionTopic] = attrs.field(factory=dict)
    gaps: deque[TopicGap] = attrs.field(factory=deque)
    look_at: int | None = None

    def on_run(self, index: int, first: int, count: int, now: int) -> bool:
        """Note messages from the wire number `first` on. Return whether to deliver them: not beyond `MAX_TOPICS`."""
        topic = self.topics.get(index)
        if topic is None:
            return self._begin(index, first + count - 1)
        start = serial.extend(first, topic.high)
        stop = start + count
        if stop - 1 > topic.high:
            self._miss(index, topic, topic.high + 1, start, now)
            topic.high = stop - 1
        if topic.missing:
            topic.missing.remove(start, stop)
        return True

    def on_mark(self, index: int, high: int, now: int) -> None:
        """Note that a topic's newest wire number is `high`."""
        topic = self.topics.get(index)
        if topic is None:
            self._begin(index, high)
            return
        newest = serial.extend(high, topic.high)
        if newest > topic.high:
            self._miss(index, topic, topic.high + 1, newest + 1, now)
            topic.high = newest

    def look(self, now: int, out: list[ReceiverEffect]) -> None:
        """Report old gaps as lost, and the oldest of too many gaps."""
        oldest = now - self.generation_ns
        # Gaps are in the order of detection, so the first young one ends the search.
        while self.gaps and (self.gaps[0].found_at <= oldest or len(self.gaps) > MAX_TOPIC_GAPS):
            self._lose(self.gaps.popleft(), out)
        if self.look_at is not None and self.look_at <= now:
            self.look_at = now + self.check_ns if self.gaps else None

    def end(self, out: list[ReceiverEffect]) -> None:
        """Report all gaps as lost, at the end of the session."""
        while self.gaps:
            self._lose(self.gaps.popleft(), out)
        self.look_at = None

    def _begin(self, index: int, high: int) -> bool:
        # Topic indices come from the peer: without a bound they could fill the memory.
        if len(self.topics) >= MAX_TOPICS:
            return False
        self.topics[index] = SessionTopic(high)
        return True

    def _miss(self, index: int, topic: SessionTopic, first: int, stop: int, now: int) -> None:
        if first < stop:
            topic.missing.add(first, stop)
            self.gaps.append(TopicGap(now, index, first, stop))
            if self.check_ns and self.look_at is None:
                self.look_at = now + self.check_ns

    def _lose(self, gap: TopicGap, out: list[ReceiverEffect]) -> None:
        for start, stop in self.topics[gap.topic].missing.remove(gap.first, gap.stop):
            out.append(TopicLost(gap.topic, serial.wire(start), stop - start))
