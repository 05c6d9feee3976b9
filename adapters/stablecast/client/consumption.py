"""What the application of a receiver consumed in this run, by the life of the source that sent it.

Pure, for the client and for simulators. A session that begins is told of it, so that the application gets each message
once. Several sessions report on the same life, and each knows a part only: a session with another source, or with a
life that uses other stores, does not learn what the application consumes of earlier lives after it began. Therefore
the reports are united. A later report never takes away what an earlier one said.
"""

from collections.abc import Container, Mapping

import attrs

from stablecast.client.succession import Ranges
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.receiver.lives import MAX_LIVES


@attrs.define
class Consumption:
    """The consumed numbers of each life; the life that was reported longest ago comes first."""

    lives: dict[int, RangeSet] = attrs.field(factory=dict)

    def add(self, reported: Mapping[int, Ranges]) -> None:
        """Add what a session reports. Beyond `MAX_LIVES` lives, forget those that were reported longest ago."""
        for life, ranges in reported.items():
            known = self.lives.pop(life, None) or RangeSet()
            self.lives[life] = known
            for first, stop in ranges:
                known.add(first, stop)
        while len(self.lives) > MAX_LIVES:
            del self.lives[next(iter(self.lives))]

    def history(self, lives: Container[int] | None = None) -> dict[int, Ranges]:
        """Return what was consumed of these lives, None for all: a session that begins is told so."""
        return {life: list(ranges) for life, ranges in self.lives.items() if lives is None or life in lives}
