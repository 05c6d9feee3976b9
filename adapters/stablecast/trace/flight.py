"""F1: a source that blocks never has more in flight than its flight size.

Judged from what was sent and what became stable, or was given up: what the source itself counts as in flight may be
more, for it also waits for confirmations. A message of many fragments is sent whole (P-131) and not judged.
"""

from typing import ClassVar, Final

import attrs

from stablecast.core.events import NotStable, NotStableFlag, Reclaimed, Stable, StableFlag
from stablecast.core.inputs import Sent
from stablecast.core.ranges import RangeSet
from stablecast.core.settings import FlightBehavior
from stablecast.core.source import SourceEndpoint

NAME: Final = "F1"

_STABLE, _TIMEOUT = int(StableFlag.STABLE), int(NotStableFlag.TIMEOUT)


@attrs.define
class FlightKept:
    """F1. `open` is what was sent and is neither stable nor given up."""

    limit: int
    open: RangeSet
    name: str = NAME
    hears: ClassVar[tuple[type, ...]] = (Sent,)
    tells: ClassVar[tuple[type, ...]] = (Stable, Reclaimed, NotStable)

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "FlightKept":
        """From here on."""
        window = source.window
        flying = RangeSet()
        for run in window.runs:
            flying.add(run.first, run.stop)
        for first, stop in (*window.stable, *window.settled):
            flying.remove(first, stop)
        return cls(source.config.flight_messages, flying)

    @staticmethod
    def judges(source: SourceEndpoint) -> bool:
        """Whether a source promises it."""
        config = source.config
        return bool(config.stores) and config.flight_messages > 0 and config.flight_behavior is FlightBehavior.BLOCK

    def on_input(self, event: Sent) -> str | None:
        """Judges what is sent."""
        self.open.add(event.first, event.first + event.count)
        spanned = self.open.ranges
        if spanned and spanned[-1][1] - spanned[0][0] <= self.limit:  # As a rule, and not all ranges need be looked at.
            return None
        total = self.open.total()
        if total > self.limit and not event.large:
            return f"{total} messages are in flight, the flight size is {self.limit}"
        return None

    def on_effect(self, effect: Stable | Reclaimed | NotStable) -> str | None:
        """Learns what is not in flight any more."""
        match effect:
            case Stable():
                over = int(effect.flags) & _STABLE
            case NotStable():
                over = int(effect.flags) & _TIMEOUT
            case _:
                over = True
        if over:
            self.open.remove(effect.first, effect.last + 1)
        return None
