"""Receivers that wait for a source: the start of the wait, and the next report.

A receiver that is not resolved looks like one with silent sources. So it is reported after a while, and then ever more
rarely. Reports that are due at one instant are returned together.
"""

import heapq

import attrs

from stablecast.core.machine.units import SECOND

PATIENCE = 10 * SECOND
"""Wait before the first report of a receiver; each further wait is twice the wait before."""


@attrs.define
class UnresolvedTopics:
    """The unresolved topics of one context; times in nanoseconds.

    Attributes:
        since: Start of each topic's wait.
        wait: Length of each topic's wait at its next report.
    """

    patience: int = PATIENCE
    since: dict[str, int] = attrs.field(factory=dict, init=False)
    wait: dict[str, int] = attrs.field(factory=dict, init=False)
    plan: list[tuple[int, str]] = attrs.field(factory=list, init=False)

    def begin(self, topic: str, now: int) -> None:
        """Start the wait of a topic without session; a wait that has started continues."""
        if topic not in self.since:
            self.since[topic] = now
            self.wait[topic] = self.patience
            heapq.heappush(self.plan, (now + self.patience, topic))

    def end(self, topic: str) -> None:
        """End the wait of a topic: it has a session, or is not wanted any more."""
        self.since.pop(topic, None)
        self.wait.pop(topic, None)

    def due_reports(self, now: int) -> dict[str, int]:
        """Return the wait of each topic whose report is due."""
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
        """Return when `due_reports` has a report, in nanoseconds."""
        while self.plan and not self._is_due(*self.plan[0]):
            heapq.heappop(self.plan)
        return self.plan[0][0] if self.plan else None

    def _is_due(self, due: int, topic: str) -> bool:
        return topic in self.since and self.since[topic] + self.wait[topic] == due
