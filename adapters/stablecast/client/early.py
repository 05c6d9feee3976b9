"""Runs that came before the announcement of their source: where datagrams carry both, they may overtake it."""

from collections import deque

import attrs

from stablecast.transports import codec
from stablecast.transports.lbttcp import Run

MAX_EARLY = 256
"""Runs that are kept; of more the oldest go, as lost as if they had come before we joined."""


@attrs.define
class Early:
    """Runs by session ID."""

    runs: deque[tuple[int, Run]] = attrs.field(factory=lambda: deque(maxlen=MAX_EARLY))

    def keep(self, session_id: int, run: Run) -> None:
        """Its source is not known yet."""
        self.runs.append((session_id, run))

    def take(self, incarnation: int) -> list[Run]:
        """The runs of this life, in order, which are not kept any more."""
        taken = [run for session_id, run in self.runs if codec.join(session_id, run.topic_index) == incarnation]
        if taken:
            others = [kept for kept in self.runs if codec.join(kept[0], kept[1].topic_index) != incarnation]
            self.runs.clear()
            self.runs.extend(others)
        return taken
