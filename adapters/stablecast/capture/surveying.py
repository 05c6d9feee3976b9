"""A first reading of a capture: who speaks what, and what topics are called."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stablecast.capture import guess
from stablecast.capture.errors import CutError
from stablecast.capture.files import frames
from stablecast.capture.ip import TCP, UDP, Datagram, Endpoint, Packet, Segment, intact
from stablecast.capture.network import Carried, Network
from stablecast.capture.ports import MAX_LEARNED, Kind, Plan, parse_told
from stablecast.capture.tcp import MAX_WAITING
from stablecast.transports.wire import lbmr, lbtrm
from stablecast.transports.wire.errors import WireError

MAX_TRIES = 8
"""Datagrams or segments of a flow that are looked at to find out what it is."""
MAX_ORDER = 64
"""Segments of a direction among which the first one is looked for."""
MAX_SUMS = 64
"""Packets of an address that are looked at to find out whether it sets checksums."""
FIRST_MULTICAST = 224
WRAP = 1 << 32


def survey(path: Path, told: Iterable[str] = ()) -> Plan:
    """Reads a capture once.

    Args:
        path: The file.
        told: What the caller knows, as `kind=port` and `kind=low-high`.

    Raises:
        CaptureError: If the file is no capture or is damaged, or if `told` cannot be read.
        OSError: If the file cannot be read.
    """
    surveyor = _Surveyor(Plan(told=parse_told(told)))
    network = _Witness()
    with suppress(CutError):  # Who goes on to read the frames gets them all, and then this.
        for frame in frames(path):
            carried = network.take(frame)
            network.abandon()
            match carried.content if carried else None:
                case Datagram() as datagram:
                    surveyor.datagram(datagram)
                case Segment() as segment:
                    surveyor.segment(segment)
                case _:
                    pass
    surveyor.plan.checking = network.checking
    return surveyor.plan


class _Witness(Network):
    """Counts right checksums among the first packets of each address.

    Not every packet has them where it is captured: network cards fill them in, and loopback needs none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, tuple[int, int]] = {}

    @property
    def checking(self) -> set[str]:
        """Addresses of which more were right than wrong or not set."""
        return {address for address, (seen, right) in self._counts.items() if 2 * right > seen}

    def carry(self, packet: Packet, frames: tuple[int, ...]) -> Carried:
        """See `Network`."""
        seen, right = self._counts.get(packet.source, (0, 0))
        if seen < MAX_SUMS and not packet.missing and (seen or len(self._counts) < MAX_LEARNED):
            self._counts[packet.source] = seen + 1, right + (intact(packet) is True)
        return super().carry(packet, frames)


class _Surveyor:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._tries: dict[tuple[int, Endpoint, Endpoint], int] = {}
        self._seen: dict[tuple[Endpoint, Endpoint], int] = {}

    def datagram(self, datagram: Datagram) -> None:
        kind = self.plan.kind(UDP, datagram.source, datagram.target)
        if kind is None and self._may_try(UDP, datagram.source, datagram.target):
            kind = guess.guess_datagram(datagram.payload)
            if kind is not None:
                self._believe(kind, datagram)
        if kind is Kind.LBMR:
            self._learn(datagram.payload)
        elif kind is Kind.LBTRM:
            self._learn_session(datagram)

    def segment(self, segment: Segment) -> None:
        self._order(segment)
        if not segment.payload:
            return
        kind = self.plan.kind(TCP, segment.source, segment.target)
        if kind is None and self._may_try(TCP, segment.source, segment.target):
            kind = guess.guess_stream(segment.payload)
            if kind is not None:
                self.plan.learn_flow(kind, segment.source, segment.target)

    def _order(self, segment: Segment) -> None:
        """Finds the first of the segments of a direction whose SYN is not there; a byte alone is a sign of life."""
        ends = (segment.source, segment.target)
        seen = self._seen.get(ends, 0)
        if seen >= MAX_ORDER or (not seen and len(self._seen) >= MAX_LEARNED):
            return
        self._seen[ends] = MAX_ORDER if segment.syn else seen + 1
        if segment.syn:
            return
        first = self.plan.starts.setdefault(ends, segment.sequence)
        if (first - segment.sequence) % WRAP < MAX_WAITING and len(segment.payload) > 1:
            self.plan.starts[ends] = segment.sequence

    def _may_try(self, protocol: int, source: Endpoint, target: Endpoint) -> bool:
        """Counts the tries of a flow, so that much other traffic costs little."""
        flow = (protocol, source, target)
        tries = self._tries.get(flow, 0)
        if tries >= MAX_TRIES or (not tries and len(self._tries) >= MAX_LEARNED):
            return False
        self._tries[flow] = tries + 1
        return True

    def _believe(self, kind: Kind, datagram: Datagram) -> None:
        if int(datagram.target[0].partition(".")[0]) >= FIRST_MULTICAST:
            self.plan.learn_endpoint(kind, datagram.target)
        else:
            self.plan.learn_flow(kind, datagram.source, datagram.target)

    def _learn(self, payload: bytes) -> None:
        with suppress(WireError):
            self.plan.learn(lbmr.decode(payload))

    def _learn_session(self, datagram: Datagram) -> None:
        """The header of multicast data tells the port for NAKs, and its target the group."""
        try:
            packet = lbtrm.decode(datagram.payload)
        except WireError:
            return
        if isinstance(packet, lbtrm.Data | lbtrm.SessionMessage):
            self.plan.learn_session(datagram.source[0], packet.nak_port, packet.session_id, datagram.target)
