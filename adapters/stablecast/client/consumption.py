"""The messages that the application of a receiver consumed in this run, by the life of the source that sent them.

Each new session starts with them, so that the application gets each message once. Several sessions report on the same
life, and each knows a part only. A session with another source or other stores does not learn what the application
consumes of earlier lives after it began. Therefore the reports are united: a later report removes nothing.

Pure, for the client and for simulators.
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
        """Add a session's report. Beyond `MAX_LIVES` lives, forget those that were reported longest ago."""
        for life, ranges in reported.items():
            known = self.lives.pop(life, None) or RangeSet()
            self.lives[life] = known
            known.update(ranges)
        while len(self.lives) > MAX_LIVES:
            del self.lives[next(iter(self.lives))]

    def history(self, lives: Container[int] | None = None) -> dict[int, Ranges]:
        """Return the consumed numbers as [first, stop) of these lives, None for all."""
        return {life: list(ranges) for life, ranges in self.lives.items() if lives is None or life in lives}
