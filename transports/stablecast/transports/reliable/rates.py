"""The rate limits of a context: so many bytes in each interval; what is left over is not carried on.

Data beyond the limit is queued and counts as sent; until it has left, the context is *blocked* for more (runner-up of
the traps: the datagram over the limit succeeds, the next one blocks). Retransmissions beyond theirs are queued up to a
bound and then shed. With the next interval, retransmissions leave first: they are older.

Where retransmissions count as data too (LBT-RM), they must not starve it. Their own limit need not be lower: it can be
set, and a datagram that is larger than an interval's allowance leaves alone. So data that waited for a whole interval
in which none left goes first in the next one, and retransmissions get what it leaves.
"""

from collections import deque
from enum import IntEnum

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable.settings import MAX_QUEUED_REPAIRS, RateSettings


class RepairVerdict(IntEnum):
    """What became of a retransmission."""

    SENT = 0
    QUEUED = 1
    SHED = 2


@attrs.define
class QueuedDatagram:
    """A datagram of a session that waits: its number and size in bytes.

    `to`: who asked for it, if it is not for all.
    """

    session: int
    number: int
    size: int
    to: str = ""


@attrs.define
class RateLimiter:
    """What may leave now, and what waits for the next interval.

    Attributes:
        interval: The number of the interval that the allowances are of.
        data_left: Bytes of data that may still leave in it; the last datagram may not exceed them, unless it is the
            only one of its interval.
        repairs_left: The same of retransmissions.
        data_went: Whether data left in this interval.
        starved: Whether data waited in the last interval, and none left.
    """

    settings: RateSettings
    interval: int = -1
    data_left: int = 0
    repairs_left: int = 0
    data_went: bool = False
    starved: bool = False
    data: deque[QueuedDatagram] = attrs.field(factory=deque)
    repairs: deque[QueuedDatagram] = attrs.field(factory=deque)

    @property
    def blocked(self) -> bool:
        """Whether data waits; then nobody may submit more."""
        return bool(self.data)

    def admits(self, size: int, now: int) -> bool:
        """Datagrams of data of so many bytes together: returns whether all leave now; else each is to be admitted."""
        self._refill(now)
        if self.data or size > self.data_left:
            return False
        self.data_left -= size
        self.data_went = True
        return True

    def admit(self, item: QueuedDatagram, now: int) -> bool:
        """Data: returns whether it leaves now; otherwise it is queued."""
        self._refill(now)
        if not self.data and self._takes_data(item.size):
            return True
        self.data.append(item)
        return False

    def repair(self, item: QueuedDatagram, now: int) -> RepairVerdict:
        """A retransmission."""
        self._refill(now)
        if not self.repairs and self._takes_repair(item.size):
            return RepairVerdict.SENT
        if len(self.repairs) >= MAX_QUEUED_REPAIRS:
            return RepairVerdict.SHED
        self.repairs.append(item)
        return RepairVerdict.QUEUED

    def release(self, now: int) -> tuple[list[QueuedDatagram], list[QueuedDatagram]]:
        """Retransmissions and data that may leave now."""
        self._refill(now)
        repairs: list[QueuedDatagram] = []
        data = self._released_data() if self.starved else []
        while self.repairs and self._takes_repair(self.repairs[0].size):
            repairs.append(self.repairs.popleft())
        return repairs, data + self._released_data()

    def _released_data(self) -> list[QueuedDatagram]:
        released: list[QueuedDatagram] = []
        while self.data and self._takes_data(self.data[0].size):
            released.append(self.data.popleft())
        return released

    def next_release(self) -> int | None:
        """When `release` is due, in nanoseconds."""
        return (self.interval + 1) * self.settings.interval_ns if self.data or self.repairs else None

    def forget(self, session: int, to: str = "") -> None:
        """Nothing of this session is sent any more; with `to`, no retransmissions to this one."""
        self.repairs = deque(item for item in self.repairs if item.session != session or (to and item.to != to))
        if not to:
            self.data = deque(item for item in self.data if item.session != session)

    def _refill(self, now: int) -> None:
        interval = now // self.settings.interval_ns
        if interval != self.interval:
            self.interval = interval
            self.starved, self.data_went = bool(self.data) and not self.data_went, False
            self.data_left = self._full(self.settings.data_bits)
            self.repairs_left = self._full(self.settings.repair_bits)

    def _full(self, bits: int) -> int:
        return bits * self.settings.interval_ns // (8 * SECOND)

    def _takes_data(self, size: int) -> bool:
        if not self._has_room(size):
            return False
        self.data_left -= size
        self.data_went = True
        return True

    def _has_room(self, size: int) -> bool:
        return size <= self.data_left or self.data_left == self._full(self.settings.data_bits)

    def _takes_repair(self, size: int) -> bool:
        settings = self.settings
        if size > self.repairs_left < self._full(settings.repair_bits):
            return False
        if settings.repairs_count:
            if not self._has_room(size) or (self.data and self.starved and not self.data_went):
                return False
            self.data_left -= size
        self.repairs_left -= size
        return True
