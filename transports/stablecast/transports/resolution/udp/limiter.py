"""How much of one kind a context may say: counted in intervals of a tenth of a second.

In each interval one record may always be sent, and more while the interval's share is not used up; so the share may be
exceeded by one record, and a limit of one bit a second still sends ten records a second. An interval begins with the
first record in it, so that what waits goes out in ten bursts a second and no second sees more than its limit.
"""

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.resolution.udp.settings import RateLimit

INTERVAL = 100 * MILLISECOND
"""The share of a second that is looked at."""

PER_SECOND = 10


@attrs.define
class Limiter:
    """The use of one limit; times in nanoseconds."""

    limit: RateLimit
    ends: int = attrs.field(default=0, init=False)
    records: int = attrs.field(default=0, init=False)
    bits: int = attrs.field(default=0, init=False)

    def admits(self, now: int) -> bool:
        """Whether one more record may be sent."""
        if now >= self.ends:
            return True
        records, bits = self.limit.records, self.limit.bits
        return not (records and PER_SECOND * self.records >= records) and not (bits and PER_SECOND * self.bits >= bits)

    def spend(self, octets: int, now: int) -> None:
        """A record of so many bytes is sent."""
        if now >= self.ends:
            self.ends, self.records, self.bits = now + INTERVAL, 0, 0
        self.records += 1
        self.bits += 8 * octets

    def opens(self) -> int:
        """When a record is surely admitted."""
        return self.ends
