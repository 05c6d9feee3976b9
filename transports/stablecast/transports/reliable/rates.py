"""The rate limits of a context: a number of bytes in each interval, without credit for unused bytes.

Data beyond the limit is queued and counts as sent. Until it has left, the context is *blocked* for more data (runner-up
of the traps: the datagram over the limit succeeds, the next one blocks). Retransmissions beyond their limit are queued
up to a bound, and then shed. In the next interval, retransmissions leave first because they are older.

With LBT-RM, retransmissions count as data too, and must not starve it. Their own limit need not be lower, because it is
an option, and because a datagram larger than an interval's allowance leaves alone. So data that waited for a whole
interval in which none left goes first in the next interval. Retransmissions get the rest.
"""

from collections import deque
from enum import IntEnum

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable.settings import MAX_QUEUED_REPAIRS, RateSettings


class RepairVerdict(IntEnum):
    SENT = 0
    QUEUED = 1
    SHED = 2


@attrs.define
class QueuedDatagram:
    """A waiting datagram of a session: its number and size in bytes.

    Attributes:
        to: The requester of a retransmission; empty if it is for everybody.
    """

    session: int
    number: int
    size: int
    to: str = ""


@attrs.define
class RateLimiter:
    """The allowances of the current interval, and the datagrams that wait for the next one.

    Attributes:
        interval: The number of the current interval.
        data_left: Bytes of data that may still leave in it. Only a datagram that is alone in its interval may exceed
            them.
        repairs_left: The same for retransmissions.
        data_went: True if data left in this interval.
        starved: True if data waited in the last interval and none left.
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
        """True if data waits, so that no more may be submitted."""
        return bool(self.data)

    def admits(self, size: int, now: int) -> bool:
        """Return whether datagrams of data of `size` bytes in total leave now. If not, call `admit` for each."""
        self._refill(now)
        if self.data or size > self.data_left:
            return False
        self.data_left -= size
        self.data_went = True
        return True

    def admit(self, item: QueuedDatagram, now: int) -> bool:
        """Return whether a datagram of data leaves now; otherwise it is queued."""
        self._refill(now)
        if not self.data and self._takes_data(item.size):
            return True
        self.data.append(item)
        return False

    def repair(self, item: QueuedDatagram, now: int) -> RepairVerdict:
        """Send, queue or shed a retransmission."""
        self._refill(now)
        if not self.repairs and self._takes_repair(item.size):
            return RepairVerdict.SENT
        if len(self.repairs) >= MAX_QUEUED_REPAIRS:
            return RepairVerdict.SHED
        self.repairs.append(item)
        return RepairVerdict.QUEUED

    def release(self, now: int) -> tuple[list[QueuedDatagram], list[QueuedDatagram]]:
        """Return the retransmissions and the data that may leave now."""
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
        """Return when `release` is due, in nanoseconds."""
        return (self.interval + 1) * self.settings.interval_ns if self.data or self.repairs else None

    def forget(self, session: int, to: str = "") -> None:
        """Drop the queued datagrams of a session; with `to`, only the retransmissions to this requester."""
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
        # A datagram larger than the whole allowance leaves alone: otherwise it would never leave.
        return size <= self.data_left or self.data_left == self._full(self.settings.data_bits)

    def _takes_repair(self, size: int) -> bool:
        settings = self.settings
        if size > self.repairs_left < self._full(settings.repair_bits):
            return False
        if settings.repairs_count:
            # Data that waited for a whole interval goes first: otherwise retransmissions could starve it.
            if not self._has_room(size) or (self.data and self.starved and not self.data_went):
                return False
            self.data_left -= size
        self.repairs_left -= size
        return True
