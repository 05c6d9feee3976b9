"""Ports of our traffic: from the caller, from advertisements, from the look of flows, and the defaults."""

import re
from collections.abc import Iterable
from enum import Enum

import attrs

from stablecast.evidence.capture.files import CaptureError
from stablecast.evidence.capture.ip import TCP, UDP, Endpoint
from stablecast.transports.wire import lbmr

MAX_LEARNED = 1 << 20
"""Endpoints, flows and topics of a capture that are remembered, at most."""
MAX_PORT = 65_535


class TrafficKind(Enum):
    """The protocol of an endpoint. A store and a request port use that of a source over TCP."""

    LBMR = "lbmr"
    LBTRM = "lbtrm"
    LBTRU = "lbtru"
    LBTTCP = "lbttcp"
    STORE = "store"
    SRS = "srs"


_OVER_UDP = (TrafficKind.LBMR, TrafficKind.LBTRM, TrafficKind.LBTRU)
PROTOCOLS = {kind: UDP if kind in _OVER_UDP else TCP for kind in TrafficKind}

_DEFAULTS = (
    (TrafficKind.LBMR, (12_965, 12_965)),
    (TrafficKind.LBMR, (15_380, 15_380)),
    (TrafficKind.LBMR, (14_402, 14_406)),
    (TrafficKind.LBTRM, (14_390, 14_401)),
    (TrafficKind.LBTRU, (14_360, 14_389)),
    (TrafficKind.LBTTCP, (14_371, 14_395)),
    (TrafficKind.STORE, (14_567, 14_567)),
    (TrafficKind.SRS, (27_000, 27_000)),
)


def _table(entries: Iterable[tuple[TrafficKind, tuple[int, int]]]) -> dict[tuple[int, int], TrafficKind]:
    return {(PROTOCOLS[kind], port): kind for kind, (low, high) in entries for port in range(low, high + 1)}


DEFAULTS = _table(_DEFAULTS)
"""Kinds by protocol and port, from the tables of the formats."""


_TOLD = re.compile(
    rf"({'|'.join(kind.value for kind in TrafficKind)})=([0-9]{{1,5}})(?:-([0-9]{{1,5}}))?", re.IGNORECASE
)


def parse_told(texts: Iterable[str]) -> dict[tuple[int, int], TrafficKind]:
    """Return a table of `kind=port` and `kind=low-high` texts. Raise CaptureError for any other."""
    told = []
    for text in texts:
        match = _TOLD.fullmatch(text)
        low, high = (int(match[2]), int(match[3] or match[2])) if match else (0, 0)
        if match is None or not 0 < low <= high <= MAX_PORT:
            kinds = ", ".join(kind.value for kind in TrafficKind)
            raise CaptureError(f"'{text}' is not kind=port or kind=low-high with one of the kinds {kinds}")
        told.append((TrafficKind(match[1].lower()), (low, high)))
    return _table(told)


TransportKey = tuple[str, int, int | None]
"""Address and port of a source, for LBT-RM the one for NAKs, and its session if it is known."""


@attrs.define
class PortPlan:
    """The protocols of a capture, and the names of topics; small enough to send to readers of its parts.

    Attributes:
        told: From the caller: kinds by protocol and port.
        endpoints: From advertisements: kinds by protocol and endpoint.
        flows: From the look of flows: kinds by protocol and pair of endpoints.
        topics: Names by transport and topic index.
        groups: Group and port of an LBT-RM session by its transport.
        starts: First sequence number of a direction without a captured SYN; the first captured segment may be a later
            one.
        checking: Addresses whose packets have checksums: most of the first ones have right ones.
    """

    told: dict[tuple[int, int], TrafficKind] = attrs.field(factory=dict)
    endpoints: dict[tuple[int, Endpoint], TrafficKind] = attrs.field(factory=dict)
    flows: dict[tuple[int, Endpoint, Endpoint], TrafficKind] = attrs.field(factory=dict)
    topics: dict[tuple[TransportKey, int], str] = attrs.field(factory=dict)
    groups: dict[TransportKey, Endpoint] = attrs.field(factory=dict)
    starts: dict[tuple[Endpoint, Endpoint], int] = attrs.field(factory=dict)
    checking: set[str] = attrs.field(factory=set)

    def kind(self, protocol: int, source: Endpoint, target: Endpoint) -> TrafficKind | None:
        """Return the protocol between two endpoints; None if it is not ours."""
        return (
            self.told.get((protocol, target[1]))
            or self.told.get((protocol, source[1]))
            or self.endpoints.get((protocol, target))
            or self.endpoints.get((protocol, source))
            or self.flows.get((protocol, min(source, target), max(source, target)))
            or DEFAULTS.get((protocol, target[1]))
            or DEFAULTS.get((protocol, source[1]))
        )

    def learn_endpoint(self, kind: TrafficKind, endpoint: Endpoint) -> None:
        if endpoint[1] and len(self.endpoints) < MAX_LEARNED:
            self.endpoints.setdefault((PROTOCOLS[kind], endpoint), kind)

    def learn_flow(self, kind: TrafficKind, source: Endpoint, target: Endpoint) -> None:
        if len(self.flows) < MAX_LEARNED:
            self.flows[PROTOCOLS[kind], min(source, target), max(source, target)] = kind

    def learn(self, packet: lbmr.AnyPacket) -> None:
        """Note the sources and stores in a packet of topic resolution."""
        match packet:
            case lbmr.Packet():
                for tir in packet.advertisements:
                    self._learn_source(tir)
            case lbmr.ContextInfo() if packet.flags & lbmr.ContextInfo.ADDRESS and packet.name is not None:
                self.learn_endpoint(TrafficKind.STORE, (packet.address, packet.port))

    def _learn_source(self, tir: lbmr.Advertisement) -> None:
        match tir.transport:
            case lbmr.LbtrmTransport() as rm:
                key: TransportKey = (rm.source_address, rm.nak_port, rm.session_id)
                self.learn_endpoint(TrafficKind.LBTRM, (rm.group, rm.destination_port))
                self.learn_endpoint(TrafficKind.LBTRM, (rm.source_address, rm.nak_port))
                if len(self.groups) < MAX_LEARNED:
                    self.groups[key] = (rm.group, rm.destination_port)
            case lbmr.LbtruTransport() as ru:
                key = (ru.address, ru.port, ru.session_id)
                self.learn_endpoint(TrafficKind.LBTRU, (ru.address, ru.port))
            case lbmr.TcpTransport() as tcp:
                key = (tcp.address, tcp.port, None)
                self.learn_endpoint(TrafficKind.LBTTCP, (tcp.address, tcp.port))
            case _:
                return
        for option in tir.options:
            self._learn_option(option)
        if len(self.topics) < MAX_LEARNED:
            self.topics[key, tir.index] = tir.name

    def _learn_option(self, option: lbmr.TirOption) -> None:
        match option:
            case lbmr.Ume() | lbmr.UmeStore():
                self.learn_endpoint(TrafficKind.STORE, (option.store_address, option.store_port))
            case lbmr.LateJoin() | lbmr.ExtendedFunctionality():
                self.learn_endpoint(TrafficKind.LBTTCP, (option.source_address, option.source_port))

    def learn_session(self, address: str, nak_port: int, session_id: int, target: Endpoint) -> None:
        """Note the group of a multicast session from its data or session message."""
        if len(self.groups) < MAX_LEARNED and (address, nak_port, session_id) not in self.groups:
            self.groups[address, nak_port, session_id] = target
            self.learn_endpoint(TrafficKind.LBTRM, (address, nak_port))

    def listener(self, kind: TrafficKind, source: Endpoint, target: Endpoint) -> Endpoint:
        """Return the end of a connection that is known to listen, else the one with the lower port."""
        protocol = PROTOCOLS[kind]
        for known in (self.told, DEFAULTS):
            for end in (target, source):
                if (protocol, end) in self.endpoints or (protocol, end[1]) in known:
                    return end
        return min(source, target, key=lambda end: end[1])

    def topic(self, transport: TransportKey, index: int) -> str | None:
        address, port, _ = transport
        return self.topics.get((transport, index)) or self.topics.get(((address, port, None), index))
