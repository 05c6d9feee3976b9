"""Datagrams of LBT-RM and LBT-RU that left one host and did not come to another, by the captures of both."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.statements import StatedDatagram, is_repair
from stablecast.evidence.incident.actors import Proof
from stablecast.evidence.incident.witness import CaptureWitness
from stablecast.transports.wire import lbtrm, lbtru

MAX_DATAGRAMS: Final = 200_000
"""Datagrams of one capture that are compared with other captures, at most."""

EDGE_NS: Final = SECOND // 2
"""Time near the ends of a capture that does not count, ns."""

NAKS: Final = "NAKs"
REPAIRS: Final = "repairs"
DATA: Final = "new datagrams"

Key = tuple[object, ...]


@attrs.frozen
class PassedDatagram:
    """A datagram that passed a capture: its key, with the ordinal of a repetition, and the place."""

    key: Key
    kind: str
    sender: str
    time: int
    frame: int


@attrs.define
class DatagramLedger:
    witness: CaptureWitness
    passed: list[PassedDatagram] = attrs.field(factory=list)
    sessions: set[object] = attrs.field(factory=set)
    _times: Counter[Key] = attrs.field(factory=Counter)

    def add(self, datagram: StatedDatagram) -> None:
        """Note the next datagram, unless it is one that nobody waits for."""
        packet = datagram.packet
        kind: str | None = None
        sqns: tuple[int, ...] = ()
        match packet:
            case lbtrm.Nak() | lbtru.Nak():
                kind, sqns = NAKS, tuple(packet.sqns)
            case lbtrm.Data() | lbtru.Data():
                kind, sqns = REPAIRS if is_repair(packet) else DATA, (packet.sqn,)
        sender = datagram.at.ends[0]
        if kind != NAKS:
            self.sessions.add((datagram.session, datagram.client))
        if kind is None or len(self.passed) >= MAX_DATAGRAMS:
            return
        key: Key = (kind, datagram.session, datagram.client, sender, sqns)
        self._times[key] += 1
        at = datagram.at
        self.passed.append(PassedDatagram((*key, self._times[key]), kind, sender[0], at.time_ns, at.frame))


@attrs.frozen
class PathLoss:
    """Datagrams of one kind from one host to another: how many left, how many of them did not come, and when."""

    kind: str
    sender: str
    receiver: str
    left: int
    lost: int
    since: int
    until: int
    proofs: tuple[Proof, ...]

    @property
    def share(self) -> float:
        return self.lost / self.left


def losses(ledgers: Iterable[DatagramLedger]) -> Iterator[PathLoss]:
    """Yield the losses between each two hosts with captures of their own."""
    own = [one for one in ledgers if one.witness.address]
    for sender in own:
        for receiver in own:
            if receiver is not sender and receiver.witness.clock != sender.witness.clock:
                yield from _between(sender, receiver)


def _between(sender: DatagramLedger, receiver: DatagramLedger) -> Iterator[PathLoss]:
    came = {one.key for one in receiver.passed}
    here, there = sender.witness, receiver.witness
    since, until = there.wall(there.pulse.first) + EDGE_NS, there.wall(there.pulse.last) - EDGE_NS
    found: dict[str, tuple[list[PassedDatagram], list[PassedDatagram]]] = {}
    for one in sender.passed:
        if one.sender != here.address or not since <= here.wall(one.time) <= until:
            continue
        session = one.key[1], one.key[2]
        # A NAK goes to its source, and a session to the hosts that joined it.
        if one.key[1][0] != there.address if one.kind == NAKS else session not in receiver.sessions:  # type: ignore[index]
            continue
        left, lost = found.setdefault(one.kind, ([], []))
        left.append(one)
        if one.key not in came:
            lost.append(one)
    for kind, (left, lost) in found.items():
        if lost:
            first, last = here.wall(lost[0].time), here.wall(lost[-1].time)
            proofs = tuple(Proof(here.path, one.frame, here.wall(one.time)) for one in lost[:3])
            yield PathLoss(kind, here.address, there.address, len(left), len(lost), first, last, proofs)
