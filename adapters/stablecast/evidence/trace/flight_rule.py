"""F1: a source that blocks never has more in flight than its flight size, in messages or in bytes.

The judge counts messages that were sent and are neither stable nor given up. A message that was cut counts once, until
its last piece is stable (P-313). Bytes count by the runs of which nothing is settled: a trace does not say how long
each message of a run is. The source may count more, because it also waits for confirmations.
"""

from collections import deque

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
    byte_limit: int = 0
    runs: deque[tuple[int, int, int]] = attrs.field(factory=deque)
    """First and last number and bytes of each run of which something may be in flight; only with `byte_limit`."""
    name: str = "F1"

    def handlers(self) -> RuleHandlers:
        return {Sent: self._on_sent}, {Stable: self._on_stable, Reclaimed: self._over, NotStable: self._on_not_stable}

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "FlightKept":
        status = source.status
        flying = RangeSet()
        flying.update(status.unsettled)
        for first, stop in (*status.stable, *status.settled):
            flying.remove(first, stop)
        return cls(source.config.flight_messages, flying, status.large, source.config.flight_bytes)

    @staticmethod
    def judges(source: SourceEndpoint) -> bool:
        config = source.config
        limited = config.flight_messages > 0 or config.flight_bytes > 0
        return bool(config.stores) and limited and config.flight_behavior is FlightBehavior.BLOCK

    def _on_sent(self, event: Sent) -> str | None:
        self.open.add(event.first, event.first + event.count)
        for first, last in event.large:
            self.large.add(first, last)
        spanned = self.open.ranges
        self.large.forget(spanned[0][0])
        if self.byte_limit and (octets := self._octets(event)) > self.byte_limit:
            return f"{octets} bytes are in flight, the limit is {self.byte_limit}"
        if not self.limit or spanned[-1][1] - spanned[0][0] <= self.limit:
            return None  # As a rule, and not all ranges need be looked at.
        total = self.large.touched(spanned)
        return f"{total} messages are in flight, the flight size is {self.limit}" if total > self.limit else None

    def _octets(self, event: Sent) -> int:
        """Return the bytes of the runs that are wholly in flight, with this new one."""
        self.runs.append((event.first, event.first + event.count, event.payload_bytes))
        while not self.open.within(*self.runs[0][:2]):
            self.runs.popleft()
        return sum(octets for first, stop, octets in self.runs if not self.open.missing(first, stop))

    def _on_stable(self, event: Stable) -> None:
        if int(event.flags) & _STABLE:
            self._over(event)

    def _on_not_stable(self, event: NotStable) -> None:
        if int(event.flags) & _TIMEOUT:
            self._over(event)

    def _over(self, event: Stable | Reclaimed | NotStable) -> None:
        self.open.remove(event.first, event.last + 1)
