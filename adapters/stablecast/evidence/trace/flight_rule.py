"""F1: a source that blocks never has more in flight than its flight size.

The judge counts messages that were sent and are neither stable nor given up. A message that was cut counts once, until
its last piece is stable (P-313). The source may count more, because it also waits for confirmations.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.events import NotStable, NotStableFlag, Reclaimed, Stable, StableFlag
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.settings import FlightBehavior
from stablecast.core.source import SourceEndpoint
from stablecast.core.source.large_messages import LargeMessages
from stablecast.evidence.trace.rule_protocol import RuleHandlers

_STABLE, _TIMEOUT = int(StableFlag.STABLE), int(NotStableFlag.TIMEOUT)


@attrs.define
class FlightKept:
    """Rule F1; `open` is sent and neither stable nor given up, `large` has the messages that were cut."""

    limit: int
    open: RangeSet
    large: LargeMessages = attrs.field(factory=LargeMessages)
    name: str = "F1"

    def handlers(self) -> RuleHandlers:
        """Return the handlers for inputs and for effects."""
        return {Sent: self._on_sent}, {Stable: self._on_stable, Reclaimed: self._over, NotStable: self._on_not_stable}

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "FlightKept":
        """Start with the state of this source."""
        status = source.status
        flying = RangeSet()
        flying.update(status.unsettled)
        for first, stop in (*status.stable, *status.settled):
            flying.remove(first, stop)
        return cls(source.config.flight_messages, flying, status.large)

    @staticmethod
    def judges(source: SourceEndpoint) -> bool:
        """Return whether a source promises this rule."""
        config = source.config
        return bool(config.stores) and config.flight_messages > 0 and config.flight_behavior is FlightBehavior.BLOCK

    def _on_sent(self, event: Sent) -> str | None:
        self.open.add(event.first, event.first + event.count)
        for first, last in event.large:
            self.large.add(first, last)
        spanned = self.open.ranges
        self.large.forget(spanned[0][0])
        if spanned[-1][1] - spanned[0][0] <= self.limit:  # As a rule, and not all ranges need be looked at.
            return None
        total = self.large.touched(spanned)
        return f"{total} messages are in flight, the flight size is {self.limit}" if total > self.limit else None

    def _on_stable(self, event: Stable) -> None:
        if int(event.flags) & _STABLE:
            self._over(event)

    def _on_not_stable(self, event: NotStable) -> None:
        if int(event.flags) & _TIMEOUT:
            self._over(event)

    def _over(self, event: Stable | Reclaimed | NotStable) -> None:
        self.open.remove(event.first, event.last + 1)
