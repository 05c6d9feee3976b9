"""Runs that come before the announcement of their source.

Datagrams carry both, so a run may overtake the announcement.
"""

from collections import deque

import attrs

from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run

MAX_EARLY = 256
"""Runs that are kept until their source announces itself. Beyond that, the oldest are lost."""

MAX_EARLY_BYTES = 8 * 1024 * 1024
"""Bytes of those runs: one read of the transport fits."""


@attrs.define
class EarlyRuns:
    """Runs that came before the announcement of their source, by session id, oldest first; `size` is their bytes."""

    runs: deque[tuple[int, Run]] = attrs.field(factory=deque)
    size: int = 0

    def keep(self, session_id: int, run: Run) -> None:
        """Keep a copy of a run, because a slice of a read would keep the whole read in memory."""
        self.runs.append((session_id, attrs.evolve(run, block=bytes(run.block))))
        self.size += len(run.block)
        while len(self.runs) > MAX_EARLY or self.size > MAX_EARLY_BYTES:
            self.size -= len(self.runs.popleft()[1].block)

    def remove(self, incarnation: int) -> list[Run]:
        """Remove the runs of a life and return them in order."""
        removed = [run for session_id, run in self.runs if codec.join(session_id, run.topic_index) == incarnation]
        if removed:
            others = [kept for kept in self.runs if codec.join(kept[0], kept[1].topic_index) != incarnation]
            self.runs = deque(others)
            self.size -= sum(len(run.block) for run in removed)
        return removed
