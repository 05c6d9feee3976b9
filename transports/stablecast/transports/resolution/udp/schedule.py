"""The turns of all topics of one kind: one plan, one timer, two limits.

Turns lie in a calendar of ticks, so that the work depends on the records sent, not on the known topics. A topic whose
turn has come waits in a queue until its limit admits it; initial and sustaining phase each have their own. There is one
deadline for all (100,000 topics are one timer). `phases` decides the next turn of a topic.

The limits on a context's records of one kind, in intervals of a tenth of a second.

Each interval permits one record, and more until the interval's share is used up. So one record may exceed the share,
and a limit of one bit a second still permits ten records a second. An interval begins with its first record. Waiting
records leave in ten bursts a second, and no second exceeds its limit.
"""

import heapq
from collections import deque
from typing import Generic, TypeVar

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.resolution.udp.phases import NEVER, Phase, TopicTurns
from stablecast.transports.resolution.udp.settings import PhasePace, RateLimit

INTERVAL = 100 * MILLISECOND
"""The interval in which records are counted."""

PER_SECOND = 10


@attrs.define
class Limiter:
    """The use of one limit; times in nanoseconds."""

    limit: RateLimit
    ends: int = attrs.field(default=0, init=False)
    records: int = attrs.field(default=0, init=False)
    bits: int = attrs.field(default=0, init=False)

    def admits(self, now: int) -> bool:
        """Return whether one more record may be sent."""
        if now >= self.ends:
            return True
        records, bits = self.limit.records, self.limit.bits
        return not (records and PER_SECOND * self.records >= records) and not (bits and PER_SECOND * self.bits >= bits)

    def spend(self, octets: int, now: int) -> None:
        """Note that a record of `octets` bytes is sent."""
        if now >= self.ends:
            self.ends, self.records, self.bits = now + INTERVAL, 0, 0
        self.records += 1
        self.bits += 8 * octets

    def opens(self) -> int:
        """Return when a record is certainly permitted."""
        return self.ends


KeyT = TypeVar("KeyT", int, str)

STALE_TURNS = 64
"""Stale turns that may remain in the plan, besides one turn for each topic."""


@attrs.define
class TurnSchedule(Generic[KeyT]):
    """The turns of all topics of one kind.

    Attributes:
        initial: The limit of initial phases.
        sustaining: The limit of sustaining phases.
        calendar: The topics that may have a turn at each instant.
        waiting: The topics whose turn has come, by phase, while the limit delays them.
    """

    initial: Limiter
    sustaining: Limiter
    topics: dict[KeyT, TopicTurns] = attrs.field(factory=dict, init=False)
    calendar: dict[int, list[KeyT]] = attrs.field(factory=dict, init=False)
    instants: list[int] = attrs.field(factory=list, init=False)
    waiting: dict[Phase, deque[KeyT]] = attrs.field(init=False)
    planned: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.waiting = {Phase.INITIAL: deque(), Phase.SUSTAINING: deque()}

    def begin(self, key: KeyT, pace: PhasePace, octets: int, now: int) -> None:
        """Begin with `key`, new or anew: it enters its first phase, and its first turn comes at the next tick."""
        topic = self.topics[key] = TopicTurns(pace, octets)
        topic.begin(now)
        self._plan(key, topic)

    def asked(self, key: KeyT, now: int, *, answered: bool) -> None:
        """Note a query for `key`, which was answered just now if `answered`."""
        topic = self.topics[key]
        if topic.seen != NEVER and not answered:
            return  # its turn has come and waits for the limit only
        before = topic.due
        topic.asked(now, answered)
        if topic.due != before:
            topic.seen = NEVER
            self._plan(key, topic)

    def enough(self, key: KeyT) -> None:
        """Cancel the turns of `key` until it is asked for."""
        self.topics[key].enough()
        self._clear()

    def stop(self, key: KeyT) -> None:
        self.topics.pop(key, None)
        self._clear()

    def phase(self, key: KeyT) -> Phase:
        return self.topics[key].state

    def take_turns(self, now: int) -> list[KeyT]:
        """Return the keys whose turn it is at `now`, each once, and plan their next turns."""
        self._collect(now)
        taken: list[KeyT] = []
        for phase, limiter in ((Phase.INITIAL, self.initial), (Phase.SUSTAINING, self.sustaining)):
            queue = self.waiting[phase]
            while queue and limiter.admits(now):
                key = queue.popleft()
                if self._waits(key, phase):
                    topic = self.topics[key]
                    limiter.spend(topic.octets, now)
                    taken.append(key)
                    topic.taken(now)
                    self._plan(key, topic)
        return taken

    def next(self) -> int | None:
        """Return when `take_turns` is due, in nanoseconds, or None."""
        lanes = ((Phase.INITIAL, self.initial), (Phase.SUSTAINING, self.sustaining))
        due = [limiter.opens() for phase, limiter in lanes if self.waiting[phase]]
        while self.instants:
            instant = self.instants[0]
            keys = self.calendar[instant]
            while keys and not self._is_due(keys[-1], instant):
                keys.pop()
                self.planned -= 1
            if keys:
                due.append(instant)
                break
            # No topic has a turn at this instant any more: the driver need not wake up for it.
            del self.calendar[heapq.heappop(self.instants)]
        return min(due, default=None)

    def _is_due(self, key: KeyT, instant: int) -> bool:
        topic = self.topics.get(key)
        return topic is not None and topic.due == instant and topic.seen == NEVER

    def _collect(self, now: int) -> None:
        """Move the topics whose turn has come to the queues of their limits."""
        while self.instants and self.instants[0] <= now:
            instant = heapq.heappop(self.instants)
            keys = self.calendar.pop(instant)
            self.planned -= len(keys)
            for key in keys:
                if self._is_due(key, instant):
                    topic = self.topics[key]
                    topic.seen = now
                    self.waiting[topic.state].append(key)

    def _plan(self, key: KeyT, topic: TopicTurns) -> None:
        if topic.due != NEVER:
            keys = self.calendar.get(topic.due)
            if keys is None:
                keys = self.calendar[topic.due] = []
                heapq.heappush(self.instants, topic.due)
            keys.append(key)
            self.planned += 1
        self._clear()

    def _clear(self) -> None:
        """Remove stale turns once they are many, so that the plan stays bounded."""
        entries = self.planned + sum(map(len, self.waiting.values()))
        if entries <= 2 * len(self.topics) + STALE_TURNS:
            return
        self.calendar, self.planned = {}, 0
        for phase, queue in self.waiting.items():
            kept = (key for key in dict.fromkeys(queue) if self._waits(key, phase))
            self.waiting[phase] = deque(kept)
        for key, topic in self.topics.items():
            if topic.due != NEVER and topic.seen == NEVER:
                self.calendar.setdefault(topic.due, []).append(key)
                self.planned += 1
        self.instants = sorted(self.calendar)

    def _waits(self, key: KeyT, phase: Phase) -> bool:
        topic = self.topics.get(key)
        return topic is not None and topic.seen != NEVER and topic.state is phase
