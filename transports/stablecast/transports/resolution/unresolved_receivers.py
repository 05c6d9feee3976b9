"""Receivers that wait for a source: since when, and when to say so.

A receiver that is not resolved looks like one whose sources have nothing to say; so it is told of after a while, and
then ever more rarely. What is due at one instant is told together.
"""

import heapq

import attrs

from stablecast.core.machine.units import SECOND

PATIENCE = 10 * SECOND
"""Wait before a receiver is told of for the first time; each further wait is twice the one before."""


@attrs.define
class UnresolvedTopics:
    """The unresolved topics of one context; times in nanoseconds.

    Attributes:
        since: Since when each topic waits.
        wait: After which wait each is told of next.
    """

    patience: int = PATIENCE
    since: dict[str, int] = attrs.field(factory=dict, init=False)
    wait: dict[str, int] = attrs.field(factory=dict, init=False)
    plan: list[tuple[int, str]] = attrs.field(factory=list, init=False)

    def begin(self, topic: str, now: int) -> None:
        """A topic has no session; nothing changes if it had none before."""
        if topic not in self.since:
            self.since[topic] = now
            self.wait[topic] = self.patience
            heapq.heappush(self.plan, (now + self.patience, topic))

    def end(self, topic: str) -> None:
        """It has one, or is not wanted any more."""
        self.since.pop(topic, None)
        self.wait.pop(topic, None)

    def take(self, now: int) -> dict[str, int]:
        """How long each topic has waited that is to be told of now."""
        told: dict[str, int] = {}
        while self.plan and self.plan[0][0] <= now:
            due, topic = heapq.heappop(self.plan)
            if self._is_due(due, topic):
                told[topic] = now - self.since[topic]
                self.wait[topic] *= 2
                while self.since[topic] + self.wait[topic] <= now:
                    self.wait[topic] *= 2
                heapq.heappush(self.plan, (self.since[topic] + self.wait[topic], topic))
        return told

    def next(self) -> int | None:
        """When `take` has something to tell."""
        while self.plan and not self._is_due(*self.plan[0]):
            heapq.heappop(self.plan)
        return self.plan[0][0] if self.plan else None

    def _is_due(self, due: int, topic: str) -> bool:
        return topic in self.since and self.since[topic] + self.wait[topic] == due
