"""What the topics of a session lack: numbers that were left out, and for how long.

A datagram that is given up says nothing of its topics. So each topic counts for itself: a gap shows with the next
message, or with the topic's high-water mark (TSNI); it closes when the messages come, and is lost when it is as old as
the generation interval, whatever became of the datagrams (worked example of the reference: lost at 0 s, told by the
mark at 5 s, lost for good at 15 s; without a mark never). Where a topic is heard first is where it begins: nothing
before that is missing.

Gaps are looked at whenever something arrives, and every check interval.
"""

from collections import deque

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.transports.reliable.effects import ReceiverEffect, TopicLost
from stablecast.transports.reliable.settings import MAX_TOPIC_GAPS, MAX_TOPICS


@attrs.define
class SessionTopic:
    """The newest number that is known to have been sent, and what is missing of those below."""

    high: int
    missing: RangeSet = attrs.field(factory=RangeSet)


@attrs.frozen
class TopicGap:
    """[first, stop) of a topic was missing at `found_at` (ns); some of it may have come since."""

    found_at: int
    topic: int
    first: int
    stop: int


@attrs.define
class Topics:
    """The topics of one session, by index.

    Attributes:
        generation_ns: Age at which a gap is lost.
        check_ns: Between looks; 0: only when something arrives.
        gaps: What was found missing, oldest first.
        look_at: When the next look is due.
    """

    generation_ns: int
    check_ns: int
    topics: dict[int, SessionTopic] = attrs.field(factory=dict)
    gaps: deque[TopicGap] = attrs.field(factory=deque)
    look_at: int | None = None

    def on_run(self, index: int, first: int, count: int, now: int) -> bool:
        """Messages came, `first` is a wire number; returns whether they are welcome: not of a topic too many."""
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
        """The source says that a topic's newest wire number is `high`."""
        topic = self.topics.get(index)
        if topic is None:
            self._begin(index, high)
            return
        newest = serial.extend(high, topic.high)
        if newest > topic.high:
            self._miss(index, topic, topic.high + 1, newest + 1, now)
            topic.high = newest

    def look(self, now: int, out: list[ReceiverEffect]) -> None:
        """Gaps that are too old are lost, and the oldest of too many."""
        oldest = now - self.generation_ns
        while self.gaps and (self.gaps[0].found_at <= oldest or len(self.gaps) > MAX_TOPIC_GAPS):
            self._lose(self.gaps.popleft(), out)
        if self.look_at is not None and self.look_at <= now:
            self.look_at = now + self.check_ns if self.gaps else None

    def end(self, out: list[ReceiverEffect]) -> None:
        """Nothing comes any more: what is missing is lost."""
        while self.gaps:
            self._lose(self.gaps.popleft(), out)
        self.look_at = None

    def _begin(self, index: int, high: int) -> bool:
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
