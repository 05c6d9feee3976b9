"""The number of stores that is enough, by the acknowledgements of a source: the arithmetic of S1 and C1."""

from collections.abc import Iterator
from typing import assert_never

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.messages import StableAck
from stablecast.core.protocol.quorum import Intergroup, Intragroup
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior
from stablecast.core.source import SourceEndpoint


@attrs.define
class Acknowledged:
    """Acknowledgements of each store; a store holds for ever what it acknowledged once.

    `groups`: the stores of each group and the number of them that must hold a message; `enough` groups must agree.
    Rules about active stores ask for no less.
    """

    incarnation: int
    groups: list[tuple[list[int], int]]
    enough: int
    next: int
    acked: list[RangeSet]
    _met: tuple[int, int] = (0, 0)
    """Numbers that enough stores hold for ever; the rules ask for the same ones one after the other."""

    @classmethod
    def begin(cls, source: SourceEndpoint) -> "Acknowledged":
        config = source.config
        return cls(config.incarnation, *asked_for(config), source.next_number, list(source.status.acked))

    def on_complete(self, event: RegistrationComplete) -> None:
        """Note where this life begins."""
        self.next = event.number

    def on_sent(self, event: Sent) -> None:
        self.next = event.first + event.count

    def on_acked(self, ack: StableAck) -> None:
        if ack.incarnation == self.incarnation and 0 <= ack.store_index < len(self.acked):
            first, last = both_extended(ack.first, ack.last, self.next)
            if last >= self.next:
                last = self.next - 1
            self.acked[ack.store_index].add(first, last + 1)

    def holds(self, store: int, first: int, stop: int) -> bool:
        return 0 <= store < len(self.acked) and self.acked[store].contiguous_from(first) >= stop

    def pieces(self, first: int, stop: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the parts of [first, stop) with the same holders: the first number, and the stores."""
        at = first
        while at < stop:
            holders, end = [], stop
            for store, held in enumerate(self.acked):
                reached = held.contiguous_from(at)
                if reached > at:
                    holders.append(store)
                    end = min(end, reached)
            yield at, holders
            # Without any holder the first number stands for the rest.
            at = end

    def lacking(self, first: int, stop: int) -> tuple[int, list[int]] | None:
        """Return the first of [first, stop) that too few stores hold, and its holders."""
        low, high = self._met
        if low <= first and stop <= high:
            return None
        if not self.suffice([store for store, held in enumerate(self.acked) if held.contiguous_from(first) >= stop]):
            for number, holders in self.pieces(first, stop):
                if not self.suffice(holders):
                    return number, holders
        self._met = (low if low <= first <= high else first, stop)
        return None

    def suffice(self, holders: list[int]) -> bool:
        enough = 0
        for stores, needed in self.groups:
            enough += len([store for store in holders if store in stores]) >= needed
        return enough >= self.enough


def asked_for(config: SourceConfig) -> tuple[list[tuple[list[int], int]], int]:
    """Return the stores of each group with the holders it needs, and the number of groups."""
    stores = list(range(len(config.stores)))
    if config.behavior is StoreBehavior.RR:
        return [(stores, 1)], 1
    every = config.groups.intragroup is Intragroup.ALL
    groups = [
        ([store for store in stores if config.stores[store].group == group], size if every else size // 2 + 1)
        for group, size in enumerate(config.groups.sizes)
    ]
    match config.groups.intergroup:
        case Intergroup.ALL:
            return groups, len(groups)
        case Intergroup.MAJORITY:
            return groups, len(groups) // 2 + 1
        case Intergroup.ANY | Intergroup.ALL_ACTIVE:
            return groups, 1
        case _:
            assert_never(config.groups.intergroup)


def extended(number: int, near: int) -> int:
    """Return the full number of a message's number, also for a forged trace."""
    if near - serial.HALF <= number < near + serial.HALF:
        return number
    return serial.extend(serial.wire(number), near)


def both_extended(first: int, last: int, near: int) -> tuple[int, int]:
    """Return the full numbers of a range's ends."""
    if near - serial.HALF <= first <= last < near + serial.HALF:
        return first, last
    return extended(first, near), extended(last, near)
