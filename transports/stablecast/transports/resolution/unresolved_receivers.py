"""Receivers that wait for a source: the start of the wait, and the next report.

A receiver that is not resolved looks like one with silent sources. So it is reported after a while, and then ever more
rarely. Reports that are due at one instant are returned together.
"""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines

PATIENCE = 10 * SECOND
"""Wait before the first report of a receiver; each further wait is twice the wait before."""


@attrs.define
class UnresolvedTopics:
    """The unresolved topics of one context; times in nanoseconds.

    Attributes:
        since: Start of each topic's wait.
        reports: The next report of each topic.
    """

    patience: int = PATIENCE
    since: dict[str, int] = attrs.field(factory=dict, init=False)
    reports: KeyedDeadlines[str] = attrs.field(factory=KeyedDeadlines, init=False)

    def begin(self, topic: str, now: int) -> None:
        """Start the wait of a topic without session; a wait that has started continues."""
        if topic not in self.since:
            self.since[topic] = now
            self.reports.arm(topic, now + self.patience)

    def end(self, topic: str) -> None:
        """End the wait of a topic: it has a session, or is not wanted any more."""
        self.since.pop(topic, None)
        self.reports.stop(topic)

    def due_reports(self, now: int) -> dict[str, int]:
        """Return the wait of each topic whose report is due."""
        waits: dict[str, int] = {}
        while (topic := self.reports.pop(now)) is not None:
            waits[topic] = now - self.since[topic]
            wait = self.patience
            while wait <= waits[topic]:
                wait *= 2
            self.reports.arm(topic, self.since[topic] + wait)
        return waits

    def next(self) -> int | None:
        """Return when `due_reports` has a report, in nanoseconds."""
        return self.reports.next()
