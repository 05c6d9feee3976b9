"""A first pass over a capture: the protocols of endpoints, and the names of topics."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from stablecast.evidence.capture import flow_guess
from stablecast.evidence.capture.files import CaptureFrame, CutError, frames, watched
from stablecast.evidence.capture.ip import TCP, UDP, Endpoint, IpPacket, TcpSegment, UdpDatagram, flow_of, intact
from stablecast.evidence.capture.link import ipv4_packet
from stablecast.evidence.capture.network import Carried, IpNetwork
from stablecast.evidence.capture.ports import MAX_LEARNED, PortPlan, TrafficKind, parse_told
from stablecast.evidence.capture.tcp import MAX_WAITING, WRAP
from stablecast.transports.wire import lbmr, lbtrm
from stablecast.transports.wire.errors import WireError

MAX_TRIES = 8
"""Datagrams or segments of a flow that are examined to guess its protocol."""
MAX_BEGUN = 4096
"""Bytes of a flow that are joined to guess its protocol, if its segments are smaller than messages."""
MAX_FLOWS = 4096
"""Flows with joined bytes at a time."""
MAX_ORDER = 64
"""Segments of a direction among which the first one is searched."""
MAX_SUMS = 64
"""Packets of an address that are examined to find out whether it sets checksums."""
FIRST_MULTICAST = 224
"""First number of the lowest address of a group."""
_SESSION = slice(2, lbtrm.HEADER.size)
"""The port for NAKs and the session in a datagram of LBT-RM."""


def survey(path: Path, told: Iterable[str] = (), watch: Callable[[int], None] | None = None) -> PortPlan:
    """Read a capture once and return its plan.

    Args:
        path: The file.
        told: What the caller knows, as `kind=port` and `kind=low-high`.
        watch: See `files.watched`.

    Raises:
        CaptureError: If the file cannot be read, is no capture or is damaged, or if `told` cannot be read.
    """
    found = FrameSurvey(PortPlan(told=parse_told(told)))
    with suppress(CutError):  # A caller that reads the frames afterwards gets them all, and then this error.
        for frame in watched(frames(path), watch):
            found.add_frame(frame)
    found.settle()
    return found.plan


class FrameSurvey:
    """A survey of frames as they come. `plan` has what they taught; after `settle` also whose checksums count."""

    def __init__(self, plan: PortPlan) -> None:
        self.plan = plan
        self._surveyor, self._network, self._settled = _Surveyor(plan), _Witness(), set[bytes]()

    def add_frame(self, frame: CaptureFrame) -> None:
        """Learn from the next frame what it shows of ports and topics."""
        flow = flow_of(ipv4_packet(frame.link, frame.octets) or b"")
        if flow in self._settled:
            return
        carried = self._network.unwrap(frame)
        self._network.abandon()
        match carried.content if carried else None:
            case UdpDatagram() as datagram:
                self._surveyor.datagram(datagram)
            case TcpSegment() as segment:
                self._surveyor.segment(segment)
                if flow and len(self._settled) < MAX_LEARNED and self._knows(segment):
                    self._settled.add(flow)

    def _knows(self, segment: TcpSegment) -> bool:
        return self._surveyor.knows(segment) and self._network.knows(segment)

    def settle(self) -> None:
        """Note in the plan which addresses have checksums to check."""
        self.plan.checking.clear()
        self.plan.checking.update(self._network.checking)


class _Witness(IpNetwork):
    """A network that counts right checksums among the first packets of each address.

    Captured packets may lack them: network cards fill them in, and loopback needs none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, tuple[int, int]] = {}

    @property
    def checking(self) -> set[str]:
        """Return the addresses with more right checksums than wrong or missing ones."""
        return {address for address, (seen, right) in self._counts.items() if 2 * right > seen}

    def knows(self, segment: TcpSegment) -> bool:
        """Return whether no more packets of its sender are examined."""
        return self._counts.get(segment.source[0], (MAX_SUMS, 0))[0] >= MAX_SUMS

    def carry(self, packet: IpPacket, frames: tuple[int, ...]) -> Carried:
        seen, right = self._counts.get(packet.source, (0, 0))
        if seen < MAX_SUMS and not packet.missing and (seen or len(self._counts) < MAX_LEARNED):
            self._counts[packet.source] = seen + 1, right + (intact(packet) is True)
        return super().carry(packet, frames)


class _Surveyor:
    def __init__(self, plan: PortPlan) -> None:
        self.plan = plan
        self._tries: dict[tuple[int, Endpoint, Endpoint], int] = {}
        self._seen: dict[tuple[Endpoint, Endpoint], int] = {}
        self._begun: dict[tuple[Endpoint, Endpoint], tuple[int, bytes]] = {}
        self._sessions: set[tuple[Endpoint, Endpoint, bytes]] = set()

    def datagram(self, datagram: UdpDatagram) -> None:
        kind = self.plan.kind(UDP, datagram.source, datagram.target)
        if kind is None and self._may_try(UDP, datagram.source, datagram.target):
            kind = flow_guess.guess_datagram(datagram.payload)
            if kind is not None:
                self._believe(kind, datagram)
        if kind is TrafficKind.LBMR:
            self._learn(datagram.payload)
        elif kind is TrafficKind.LBTRM:
            self._learn_session(datagram)

    def segment(self, segment: TcpSegment) -> None:
        self._order(segment)
        if not segment.payload:
            return
        kind = self.plan.kind(TCP, segment.source, segment.target)
        if kind is None:
            self._guess(segment)

    def _guess(self, segment: TcpSegment) -> None:
        """Guess a flow. Segments may be smaller than messages: consecutive ones are joined and count as one."""
        ends = segment.source, segment.target
        following, before = self._begun.pop(ends, (None, b""))
        if following != segment.sequence:
            before = b""
            if not self._may_try(TCP, *ends):
                return
        octets = before + segment.payload
        kind = flow_guess.guess_stream(octets, least=2 if before else 1)
        if kind is not None:
            self.plan.learn_flow(kind, *ends)
        elif len(octets) < MAX_BEGUN and len(self._begun) < MAX_FLOWS and flow_guess.may_go_on(octets):
            self._begun[ends] = (segment.sequence + len(segment.payload)) % WRAP, octets

    def knows(self, segment: TcpSegment) -> bool:
        """Return whether later segments of its connection teach nothing."""
        ends = segment.source, segment.target
        if self._seen.get(ends, MAX_ORDER) < MAX_ORDER:
            return False
        tried = self._tries.get((TCP, *ends), 0) >= MAX_TRIES and ends not in self._begun
        return tried or self.plan.kind(TCP, *ends) is not None

    def _order(self, segment: TcpSegment) -> None:
        """Find the first segment of a direction without a SYN; a single byte is a keepalive."""
        ends = (segment.source, segment.target)
        seen = self._seen.get(ends, 0)
        if seen >= MAX_ORDER or (not seen and len(self._seen) >= MAX_LEARNED):
            return
        self._seen[ends] = MAX_ORDER if segment.syn else seen + 1
        if segment.syn:
            first = self.plan.starts.get(ends)
            start = (segment.sequence + 1) % WRAP
            if first is not None and (first - start) % WRAP < MAX_WAITING:
                self.plan.starts[ends] = start  # it was captured late
            return
        first = self.plan.starts.setdefault(ends, segment.sequence)
        if (first - segment.sequence) % WRAP < MAX_WAITING and len(segment.payload) > 1:
            self.plan.starts[ends] = segment.sequence

    def _may_try(self, protocol: int, source: Endpoint, target: Endpoint) -> bool:
        """Count the tries of a flow, so that much other traffic costs little."""
        flow = (protocol, source, target)
        tries = self._tries.get(flow, 0)
        if tries >= MAX_TRIES or (not tries and len(self._tries) >= MAX_LEARNED):
            return False
        self._tries[flow] = tries + 1
        return True

    def _believe(self, kind: TrafficKind, datagram: UdpDatagram) -> None:
        if int(datagram.target[0].partition(".")[0]) >= FIRST_MULTICAST:
            self.plan.learn_endpoint(kind, datagram.target)
        else:
            self.plan.learn_flow(kind, datagram.source, datagram.target)

    def _learn(self, payload: bytes) -> None:
        with suppress(WireError):
            self.plan.learn(lbmr.decode(payload))

    def _learn_session(self, datagram: UdpDatagram) -> None:
        """Learn the port for NAKs from the header of multicast data, and the group from its target."""
        session = datagram.source, datagram.target, datagram.payload[_SESSION]
        if session in self._sessions:
            return
        try:
            packet = lbtrm.decode(datagram.payload)
        except WireError:
            return
        if isinstance(packet, lbtrm.Data | lbtrm.SessionMessage):
            if len(self._sessions) < MAX_LEARNED:
                self._sessions.add(session)
            self.plan.learn_session(datagram.source[0], packet.nak_port, packet.session_id, datagram.target)
