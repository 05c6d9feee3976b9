"""A batch of stability acknowledgements from a store to one source (P-839, P-840).

With a minimum of one message each run is acknowledged as soon as it is stable. With a larger minimum runs are collected
until they have that many messages, or until the oldest has waited for the interval. Then all go, as ranges. A lost
message is refused at once: the source need not send it again (P-441).

A message released before it was written is *owed*: it is acknowledged once its release is on disk. Otherwise a crash of
the store and of the source would have its number used again (T19; formal design, 7.8).
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Send
from stablecast.core.protocol.messages import Address, Incarnation, StableAck
from stablecast.core.store.sync_tickets import PendingSync, SyncTickets


@attrs.define
class AckBatch:
    """Stable ranges that are not acknowledged yet. `interval_ns` in ns, `minimum` in messages."""

    minimum: int
    interval_ns: int
    source: Address
    store_index: int
    incarnation: Incarnation
    pending: RangeSet = attrs.field(factory=RangeSet)
    due: int | None = None
    owed: RangeSet = attrs.field(factory=RangeSet)

    def address(self, source: Address, store_index: int, incarnation: Incarnation) -> None:
        """Set the source to acknowledge to; another life gets nothing of the earlier one."""
        if incarnation != self.incarnation:
            self.pending, self.due, self.owed = RangeSet(), None, RangeSet()
        self.source, self.store_index, self.incarnation = source, store_index, incarnation

    def add(self, first: int, stop: int, now: int, out: list[Effect]) -> None:
        """Add [start, stop) except what is owed, and acknowledge if that is enough."""
        enough = stop - first >= self.minimum or not self.interval_ns
        # The usual case, one run a sync, needs no set.
        if enough and not self.pending.ranges and not self.owed.ranges:
            out.append(Send(self.source, self._ack(first, stop)))
            return
        for low, high in self.owed.missing(first, stop):
            self.pending.add(low, high)
        if self.due is None and self.pending:
            self.due = now + self.interval_ns
        self.flush(now, out)

    def owe(self, gone: list[tuple[int, int]], reg_id: int, tickets: SyncTickets) -> None:
        """Owe the ranges `gone`, released just now and never written; the newest ticket covers their release."""
        for low, high in gone:
            self.owed.add(low, high)
            tickets.wait(PendingSync(tickets.last, reg_id, self.incarnation, first=low, stop=high))

    def withdraw(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Drop [first, stop) from the batch: it cannot be read any more, so it must not be called stable."""
        unsent = self.pending.remove(first, stop)
        if not self.pending:
            self.due = None
        return unsent

    def flush(self, now: int, out: list[Effect]) -> None:
        """Acknowledge the batch, unless it is too small and time is left."""
        if self.due is None or (now < self.due and self.pending.total() < self.minimum):
            return
        for low, high in self.pending:
            out.append(Send(self.source, self._ack(low, high)))
        self.pending, self.due = RangeSet(), None

    def refuse(self, first: int, stop: int, out: list[Effect]) -> None:
        """Refuse [first, stop), which is lost here for good."""
        out.append(Send(self.source, self._ack(first, stop, nack=True)))

    def _ack(self, first: int, stop: int, nack: bool = False) -> StableAck:
        modulus = serial.MODULUS
        return StableAck(self.store_index, self.incarnation, first % modulus, (stop - 1) % modulus, nack)
