"""The limits on a context's records of one kind, in intervals of a tenth of a second.

Each interval permits one record, and more until the interval's share is used up. So one record may exceed the share,
and a limit of one bit a second still permits ten records a second. An interval begins with its first record. Waiting
records leave in ten bursts a second, and no second exceeds its limit.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.resolution.udp.settings import RateLimit

INTERVAL = 100 * MILLISECOND
"""The interval in which records are counted."""

PER_SECOND = 10


@attrs.define
class Limiter:
    """The use of one limit; times in nanoseconds."""

    limit: RateLimit
    ends: int = attrs.field(default=0, init=False)
    records: int = attrs.field(default=0, init=False)
    bits: int = attrs.field(default=0, init=False)

    def admits(self, now: int) -> bool:
        """Return whether one more record may be sent."""
        if now >= self.ends:
            return True
        records, bits = self.limit.records, self.limit.bits
        return not (records and PER_SECOND * self.records >= records) and not (bits and PER_SECOND * self.bits >= bits)

    def spend(self, octets: int, now: int) -> None:
        """Note that a record of `octets` bytes is sent."""
        if now >= self.ends:
            self.ends, self.records, self.bits = now + INTERVAL, 0, 0
        self.records += 1
        self.bits += 8 * octets

    def opens(self) -> int:
        """Return when a record is certainly permitted."""
        return self.ends
