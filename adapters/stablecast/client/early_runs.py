"""Runs that came before the announcement of their source: where datagrams carry both, they may overtake it."""

from collections import deque

import attrs

from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run

MAX_EARLY = 256
"""Runs that are kept; of more the oldest go, as lost as if they had come before we joined."""

MAX_EARLY_BYTES = 8 * 1024 * 1024
"""The same in bytes: so much as one read brings has room."""


@attrs.define
class Early:
    """Runs by session ID, oldest first; `size` is their bytes."""

    runs: deque[tuple[int, Run]] = attrs.field(factory=deque)
    size: int = 0

    def keep(self, session_id: int, run: Run) -> None:
        """Its source is not known yet. What is kept is a copy: a part of a read would keep all that was read."""
        self.runs.append((session_id, attrs.evolve(run, block=bytes(run.block))))
        self.size += len(run.block)
        while len(self.runs) > MAX_EARLY or self.size > MAX_EARLY_BYTES:
            self.size -= len(self.runs.popleft()[1].block)

    def take(self, incarnation: int) -> list[Run]:
        """The runs of this life, in order, which are not kept any more."""
        taken = [run for session_id, run in self.runs if codec.join(session_id, run.topic_index) == incarnation]
        if taken:
            others = [kept for kept in self.runs if codec.join(kept[0], kept[1].topic_index) != incarnation]
            self.runs = deque(others)
            self.size -= sum(len(run.block) for run in taken)
        return taken
