"""The examination of a capture: packets go in, findings with advice come out."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.doctor import resolution_findings
from stablecast.evidence.capture.doctor.capture_quality import CaptureQuality
from stablecast.evidence.capture.doctor.findings import CaptureAdvice
from stablecast.evidence.capture.doctor.resolution_history import ResolutionHistory
from stablecast.evidence.capture.doctor.router_history import ResolutionPacket, RouterHistory, ServiceRecord
from stablecast.evidence.capture.doctor.session_findings import SessionFindings
from stablecast.evidence.capture.doctor.session_history import SessionHistory
from stablecast.evidence.capture.doctor.thresholds import Thresholds
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.ports import TrafficKind, TransportKey
from stablecast.evidence.capture.statements import At, StatedDatagram, is_repair
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire import lbmc, lbmr, lbtrm

MAX_SESSIONS: Final = 1 << 12
"""Sessions that are followed, at most."""

MAX_UNREACHABLE: Final = 1 << 16
"""Pairs of a receiver and a source in ICMP messages, at most."""


@attrs.define
class Examination:
    """The state of an examination. Several ones of a capture whose clock was set share its `quality`."""

    thresholds: Thresholds = attrs.field(factory=Thresholds)
    quality: CaptureQuality = attrs.field(factory=CaptureQuality)
    _sessions: dict[tuple[TransportKey, Endpoint | None], SessionHistory] = attrs.field(factory=dict)
    _topics: dict[TransportKey, Counter[int]] = attrs.field(factory=dict)
    _resolution: ResolutionHistory = attrs.field(factory=ResolutionHistory)
    _routers: RouterHistory = attrs.field(factory=RouterHistory)
    _unreachable: Counter[tuple[Endpoint, Endpoint]] = attrs.field(factory=Counter)
    _end_ns: int = 0

    def add_packet(self, packet: CapturePacket) -> None:
        """Follow a packet of topic resolution, the refusal of a NAK, and count the messages of a datagram."""
        self._end_ns = max(self._end_ns, packet.time_ns)
        self.quality.add_packet(packet)
        if packet.refused is not None and len(self._unreachable) < MAX_UNREACHABLE:
            self._unreachable[packet.refused.source, packet.refused.target] += 1
        if packet.copied:
            return
        first = packet.layers[0].record if packet.layers else None
        if isinstance(first, ResolutionPacket) and packet.source and packet.target:
            at = At(packet.number, packet.time_ns, (packet.source, packet.target))
            self._routers.add(at, first)
            if isinstance(first, lbmr.Packet):
                self._resolution.add(at, first, self._topics)
        elif packet.kind is TrafficKind.SRS and packet.source and packet.target:
            at = At(packet.number, packet.time_ns, (packet.source, packet.target))
            for layer in packet.layers:
                if isinstance(layer.record, ServiceRecord):
                    self._routers.add_record(at, layer.record)
        elif isinstance(first, lbtrm.Data) and packet.transport is not None and not is_repair(first):
            topics = self._topics.setdefault(packet.transport, Counter())
            for layer in packet.layers[1:]:
                match layer.record:
                    case Run() as run:
                        topics[run.topic_index] += run.count
                    case lbmc.Message(kind=lbmc.MessageKind.DATA) as message:
                        topics[message.topic_index] += 1

    def add_copy(self, datagram: StatedDatagram) -> None:
        self.quality.add_datagram(datagram.at.frame, copied=True)

    def add_datagram(self, datagram: StatedDatagram) -> None:
        """Follow a datagram of a session, which is no copy."""
        self.quality.add_datagram(datagram.at.frame, copied=False)
        key = datagram.session, datagram.client
        history = self._sessions.get(key)
        if history is None:
            if len(self._sessions) >= MAX_SESSIONS:
                return
            history = self._sessions[key] = SessionHistory(*_names(datagram))
        history.add(datagram.at, datagram.packet)

    def findings(self) -> list[CaptureAdvice]:
        """Return the findings so far, those of sessions first; `quality` has its own."""
        return [*self._of_sessions(), *self._of_resolution()]

    def _of_sessions(self) -> Iterator[CaptureAdvice]:
        for (session, _), history in self._sessions.items():
            port = session[0], session[1]
            unreachable = {receiver: count for (receiver, at), count in self._unreachable.items() if at == port}
            alive_ns = self._resolution.advertised_ns.get(session, 0)
            yield from SessionFindings(history, self.thresholds, self._end_ns, unreachable, alive_ns).all()

    def _of_resolution(self) -> Iterator[CaptureAdvice]:
        multicast = {session: history for (session, client), history in self._sessions.items() if client is None}
        for session, history in multicast.items():
            history.topics = self._topics.get(session, Counter())
        yield from resolution_findings.unwanted(self._resolution, multicast, self.thresholds)
        yield from resolution_findings.deaf(self._resolution, self.thresholds)
        yield from self._routers.findings(self.thresholds, self._end_ns)


def _names(datagram: StatedDatagram) -> tuple[str, str]:
    """Return the name of a session and the beginning of its options' names."""
    address, port, number = datagram.session
    name = f"{address}:{port}:{number or 0:08x}"
    if datagram.client is None:
        return f"LBTRM:{name}", "transport_lbtrm"
    return f"LBTRU:{name}:{datagram.client[0]}:{datagram.client[1]}", "transport_lbtru"
