"""Stability acknowledgements of a store to one source, collected (P-839, P-840).

With a minimum of one message each run is acknowledged as soon as it is stable. With a larger one runs are collected
until there are so many messages, or until the oldest has waited for the interval; then all go, as ranges. What is lost
here is refused at once: the source need not send it again (P-441).

What was let go before it was written is *owed*: it is told once the disk knows that it is gone, or a crash of the store
and of the source would have its number used again (T19; formal design, 7.8).
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Send
from stablecast.core.protocol.messages import Address, Incarnation, StableAck
from stablecast.core.store.sync_tickets import Tickets, Waiting


@attrs.define
class AckBatch:
    """What is stable and not yet told. `interval_ns` in ns, `minimum` in messages."""

    minimum: int
    interval_ns: int
    source: Address
    store_index: int
    incarnation: Incarnation
    pending: RangeSet = attrs.field(factory=RangeSet)
    due: int | None = None
    owed: RangeSet = attrs.field(factory=RangeSet)

    def address(self, source: Address, store_index: int, incarnation: Incarnation) -> None:
        """Whom to tell from now on; another life is not told of what the one before sent."""
        if incarnation != self.incarnation:
            self.pending, self.due, self.owed = RangeSet(), None, RangeSet()
        self.source, self.store_index, self.incarnation = source, store_index, incarnation

    def add(self, first: int, stop: int, now: int, out: list[Effect]) -> None:
        """[first, stop) is to be acknowledged, but for what is owed."""
        enough = stop - first >= self.minimum or not self.interval_ns
        if enough and not self.pending.ranges and not self.owed.ranges:
            out.append(Send(self.source, self._ack(first, stop)))
            return
        for low, high in self.owed.missing(first, stop):
            self.pending.add(low, high)
        if self.due is None and self.pending:
            self.due = now + self.interval_ns
        self.flush(now, out)

    def owe(self, gone: list[tuple[int, int]], reg_id: int, tickets: Tickets) -> None:
        """These were let go just now and never written: the newest write says so."""
        for low, high in gone:
            self.owed.add(low, high)
            tickets.wait(Waiting(tickets.last, reg_id, self.incarnation, first=low, stop=high))

    def withdraw(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Drop [first, stop), which is not stable any more; return the parts that would have been acknowledged."""
        unsent = self.pending.remove(first, stop)
        if not self.pending:
            self.due = None
        return unsent

    def flush(self, now: int, out: list[Effect]) -> None:
        """Acknowledge what there is, unless it is too little and time is left."""
        if self.due is None or (now < self.due and self.pending.total() < self.minimum):
            return
        for low, high in self.pending:
            out.append(Send(self.source, self._ack(low, high)))
        self.pending, self.due = RangeSet(), None

    def refuse(self, first: int, stop: int, out: list[Effect]) -> None:
        """[first, stop) is lost here for good."""
        out.append(Send(self.source, self._ack(first, stop, nack=True)))

    def _ack(self, first: int, stop: int, nack: bool = False) -> StableAck:
        modulus = serial.MODULUS
        return StableAck(self.store_index, self.incarnation, first % modulus, (stop - 1) % modulus, nack)
