"""Evidence of a capture about one life of a source: its messages, their acknowledgements, and its groups.

No packet has the rule by which stores are counted. So there are two bounds: the weakest rule (most of one group) and
the strongest (all stores of all groups). Between them the state is unknown. It is unknown as well if a store's
acknowledgements are not in the capture, because that store may have everything.
"""

from typing import Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.judge.findings import RuleStanding
from stablecast.evidence.capture.statements import At, Ends

RETENTION_BYTES: Final = 24 << 20
"""Payload that a source keeps by default before a release is forced (retransmit_retention_size_limit)."""


@attrs.define
class CapturedLife:
    """A life of a source, as far as the capture shows it.

    Attributes:
        incarnation: Its name.
        newest: The highest number that was sent, as far as the capture shows; None if it does not.
        low: Its first number, None before an SRI.
        payload: Bytes of the messages seen.
        first: The lowest number that was seen as it was sent; acknowledgements of earlier ones may be missing.
        acked: Acknowledged numbers of each store, by index.
        heard_ns: Time of each store's last acknowledgement.
        answers: Endpoints at which acknowledgements of stores arrive.
        doubted: Whether some acknowledgements of stores may be missing.
        lines: The first connection on which each store answers, by index.
        parted: Stores that answer on another one, too, or did before; acknowledgements there may be missing.
        groups, sizes: Stores of each group, and its configured number of stores.
    """

    incarnation: Incarnation
    newest: int | None = None
    low: int | None = None
    first: int | None = None
    payload: int = 0
    acked: dict[int, RangeSet] = attrs.field(factory=dict)
    heard_ns: dict[int, int] = attrs.field(factory=dict)
    answers: set[Endpoint] = attrs.field(factory=set)
    doubted: bool = False
    lines: dict[int, Ends] = attrs.field(factory=dict)
    parted: set[int] = attrs.field(factory=set)
    groups: dict[int, set[int]] = attrs.field(factory=dict)
    sizes: tuple[int, ...] = ()

    def extended(self, wire_number: int) -> int:
        return serial.extend(wire_number, self.newest or 0)

    def reach(self, number: int) -> None:
        self.newest = number if self.newest is None else max(self.newest, number)

    def inform(self, info: SourceInfo) -> None:
        """Note the source's own description."""
        low = self.extended(info.low)
        self.low = low if self.low is None else self.low
        self.reach(serial.extend(info.high, low))
        self.sizes = info.group_sizes
        for store in info.stores:
            self.groups.setdefault(store.group, set()).add(store.index)

    def acknowledge(self, at: At, store_index: int, first: int, last: int) -> None:
        if store_index not in self.lines and self.first is not None and first > self.first:
            self.parted.add(store_index)
        self.answer(at, store_index)
        self.acked.setdefault(store_index, RangeSet()).add(first, last + 1)
        self.heard_ns[store_index] = at.time_ns
        self.answers.add(at.ends[1])

    def answer(self, at: At, store_index: int, high: int | None = None) -> None:
        """Note the connection of a store's answer; `high`: the last number it has as it registers the source."""
        if self.lines.setdefault(store_index, at.ends) != at.ends:
            self.parted.add(store_index)
        if high is not None and self.first is not None and high >= self.first and store_index not in self.acked:
            self.parted.add(store_index)

    def doubt(self, ends: Ends) -> None:
        """Note missing bytes: an acknowledgement may be among them if they arrive at this endpoint."""
        self.doubted |= ends[1] in self.answers or not self.answers

    def stable(self, first: int, stop: int) -> RuleStanding:
        """Return fine if these are stable by every rule, broken if one is by none, else cannot tell."""
        edges = {edge for held in self.acked.values() for bounds in held for edge in bounds if first < edge < stop}
        return max((self._stable(number) for number in (first, *sorted(edges))), default=RuleStanding.FINE)

    def _stable(self, number: int) -> RuleStanding:
        sure = {store for store, held in self.acked.items() if number in held}
        if self.groups and all(stores <= sure for stores in self.groups.values()):
            return RuleStanding.FINE
        unheard = {store for stores in self.groups.values() for store in stores if store not in self.acked}
        unheard |= self.parted
        possible = (
            self.doubted
            or not self.groups
            or any(len(stores & (sure | unheard)) > self._size(group) // 2 for group, stores in self.groups.items())
        )
        return RuleStanding.CANNOT_TELL if possible else RuleStanding.BROKEN

    def spoken_since(self, time_ns: int) -> bool:
        """Return whether every store has acknowledged something later; its last one may be missing."""
        return all(heard_ns > time_ns for heard_ns in self.heard_ns.values())

    def _size(self, group: int) -> int:
        return self.sizes[group] if group < len(self.sizes) else len(self.groups[group])
