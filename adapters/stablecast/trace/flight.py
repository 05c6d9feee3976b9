"""F1: a source that blocks never has more in flight than its flight size.

Judged from what was sent and what became stable, or was given up: what the source itself counts as in flight may be
more, for it also waits for confirmations. A message of many fragments is sent whole (P-131) and not judged.
"""

from typing import ClassVar, Final

import attrs

from stablecast.core.effects import Effect, Notify
from stablecast.core.events import NotStable, NotStableFlag, Reclaimed, Stable, StableFlag
from stablecast.core.inputs import Input, Sent
from stablecast.core.ranges import RangeSet
from stablecast.core.settings import FlightBehavior
from stablecast.core.source import SourceEndpoint

NAME: Final = "F1"


@attrs.define
class FlightKept:
    """F1. `open` is what was sent and is neither stable nor given up."""

    limit: int
    open: RangeSet
    name: str = NAME
    watches: ClassVar[tuple[type, ...]] = (Sent, Notify)

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

    def on_input(self, event: Input) -> str | None:
        """Judges what is sent."""
        if isinstance(event, Sent):
            self.open.add(event.first, event.first + event.count)
            total = self.open.total()
            if total > self.limit and not event.large:
                return f"{total} messages are in flight, the flight size is {self.limit}"
        return None

    def on_effect(self, effect: Effect) -> str | None:
        """Learns what is not in flight any more."""
        match effect:
            case Notify(Stable(first=first, last=last, flags=flags)) if StableFlag.STABLE in flags:
                self.open.remove(first, last + 1)
            case Notify(Reclaimed(first=first, last=last)):
                self.open.remove(first, last + 1)
            case Notify(NotStable(first=first, last=last, flags=flags)) if NotStableFlag.TIMEOUT in flags:
                self.open.remove(first, last + 1)
        return None
