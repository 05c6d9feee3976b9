"""Packets as statements in terms of the protocol: data of a life, messages between endpoints, datagrams of LBT-RM.

The life of a datum is given by the session of its stream and its topic index. A stream of LBT-TCP sends its session
first, and again in each SRI, so a capture that begins later learns it soon. Until then there are no statements.

Where a router repeats a source, the stream has other names. The advertisement says which life that is. So what both
sides of a router send is of one life, if its advertisement is in the capture before its data.

A unicast message across domains is one statement of its origin to its destination, although each router passes it on.
Addresses are without the numbers of domains: a capture shows the same process as near and as far.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.core.machine.records import record
from stablecast.core.protocol import messages as core
from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import Endpoint, FrameVerdict
from stablecast.evidence.capture.ports import MAX_LEARNED, TrafficKind, TransportKey
from stablecast.transports import codec
from stablecast.transports.codec import routed
from stablecast.transports.codec.domains import without_domains
from stablecast.transports.codec.lbttcp import RetransmissionSeries, Run
from stablecast.transports.codec.routed import StreamWindow, destination_of
from stablecast.transports.resolution import records
from stablecast.transports.resolution.srs import source_records
from stablecast.transports.wire import lbmc, lbmr, lbtrm, lbtru, srs
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Stream

Ends = tuple[Endpoint, Endpoint]

MAX_STREAMS = 4_096
"""Streams of messages across domains; the oldest is forgotten, and its messages may count once more."""

_GAPS: Final = (FrameVerdict.INCOMPLETE, FrameVerdict.MALFORMED)
DATAGRAMS: Final = (TrafficKind.LBTRM, TrafficKind.LBTRU)
"""Protocols of datagrams with numbers."""
Reliable = lbtrm.Packet | lbtru.Data | lbtru.SessionMessage | lbtru.Nak | lbtru.Ncf
"""Datagrams that make a transport reliable."""


@record
class At:
    """The place of a statement: frame, time, endpoints."""

    frame: int
    time_ns: int
    ends: Ends


@record
class SentStatement:
    """Messages (`count`) with consecutive numbers, sent for the first time on their stream; `size` of all."""

    at: At
    life: Incarnation
    wire_number: int
    count: int
    size: int
    stream: bool


@record
class RepeatedRun:
    """Messages with consecutive numbers, sent again to one endpoint or as a part of a datagram."""

    at: At
    life: Incarnation
    wire_number: int
    count: int


@record
class StatedMessage:
    at: At
    message: core.Message


@record
class StatedDatagram:
    """A datagram of a session of LBT-RM, or of a session of LBT-RU with a `client`."""

    at: At
    session: TransportKey
    packet: Reliable
    client: Endpoint | None = None


@record
class MissingBytes:
    """Bytes of a direction that are not captured, or malformed."""

    at: At


@record
class NewConnection:
    """Another connection begins between endpoints that had one."""

    at: At


Statement = NewConnection | SentStatement | RepeatedRun | StatedMessage | StatedDatagram | MissingBytes


def _place(one: routed.Endpoint) -> Endpoint:
    return one.ip, one.port


def is_repair(packet: Reliable) -> bool:
    match packet:
        case lbtrm.Data() | lbtru.Data():
            return bool(packet.flags & packet.RETRANSMISSION)
        case _:
            return False


@attrs.define
class StatementReader:
    """Reader of packets in order.

    Attributes:
        sessions: The sessions of streams.
        lives: The lives that routers repeat, by session and topic index of the repetition.
        streams: What came on streams across domains, by the instance of their sender and their number.
    """

    sessions: dict[Ends, int] = attrs.field(factory=dict)
    lives: dict[Incarnation, Incarnation] = attrs.field(factory=dict)
    streams: dict[tuple[bytes, int], StreamWindow] = attrs.field(factory=dict)

    def statements_of(self, packet: CapturePacket) -> Iterator[Statement]:
        if packet.source is None or packet.target is None:
            return
        at = At(packet.number, packet.time_ns, (packet.source, packet.target))
        if packet.anew:
            yield NewConnection(at)
        doubtful = packet.lost > 0 or any(problem.verdict in _GAPS for problem in packet.problems)
        doubtful |= packet.verdict is FrameVerdict.DAMAGED and packet.kind in DATAGRAMS  # a segment comes again
        if doubtful:
            yield MissingBytes(at)
        repair = False
        said: At | None = at  # where a message across domains was said; None if it was said before
        for layer in packet.layers:
            if doubtful:
                yield MissingBytes(at)  # where in between the bytes are missing is not known
            match layer.record:
                case Run() as run:
                    yield from self._sent(at, packet, run, repair)
                case lbtrm.Data() | lbtrm.SessionMessage() | lbtrm.Nak() | lbtrm.Ncf() as record:
                    repair = is_repair(record)
                    if packet.transport is not None:
                        yield StatedDatagram(at, packet.transport, record)
                case lbtru.Data() | lbtru.SessionMessage() | lbtru.Nak() | lbtru.Ncf() as record:
                    repair = is_repair(record)
                    if packet.transport is not None:
                        client = packet.source if isinstance(record, lbtru.Nak) else packet.target
                        yield StatedDatagram(at, packet.transport, record, client)
                case lbmc.Message() as message:
                    said = self._said(at, message)
                    if said is not None:
                        yield from self._carried(said, packet, message, repair)
                case core.SourceInfo() as info if said is not None:
                    life = self.lives.get(info.incarnation, info.incarnation)
                    named = info if life == info.incarnation else attrs.evolve(info, incarnation=life)
                    yield StatedMessage(said, without_domains(named))
                case lbmr.Packet() | srs.SourceInfo() as told:
                    self.learn(told)
                case record if layer.protocol == "UMP" and said is not None:
                    meant: core.Message = record  # type: ignore[assignment] # what this protocol carries
                    yield StatedMessage(said, without_domains(meant))

    def _said(self, at: At, message: lbmc.Message) -> At | None:
        """Return where a message was said; None if it is seen on a later part of its way across domains."""
        way = destination_of(message) if message.headers else None
        if way is None:
            return at
        if way.stream is not None and not self._is_new(way.stream):
            return None
        return attrs.evolve(at, ends=(_place(way.origin), _place(way.destination)))

    def _is_new(self, stream: Stream) -> bool:
        key = stream.ctxinst, stream.stream_id
        window = self.streams.get(key)
        if window is None:
            window = self.streams[key] = StreamWindow()
            if len(self.streams) > MAX_STREAMS:
                del self.streams[next(iter(self.streams))]
        return window.first_time(stream.sqn)

    def learn(self, told: lbmr.Packet | srs.SourceInfo) -> None:
        """Note the lives that routers repeat, from advertisements or from the record of a service."""
        if isinstance(told, lbmr.Packet):
            found = [records.source_record(tir, told.options) for tir in told.advertisements]
        else:
            found = [source_records.source_record(told)]
        for source in found:
            if source is not None and not source.is_direct and len(self.lives) < MAX_LEARNED:
                self.lives[source.hop] = source.life

    def _carried(self, at: At, packet: CapturePacket, message: lbmc.Message, repair: bool) -> Iterator[Statement]:
        session = codec.session_of(message)
        if session is not None:
            self.sessions[at.ends] = session
        if message.kind in codec.RECOVERED_KINDS:
            try:
                recovered = codec.decode_recovered(message)
            except WireError:
                return
            count = len(message.payloads) if isinstance(message, RetransmissionSeries) else 1
            yield RepeatedRun(at, recovered.incarnation, recovered.wire_number, count)
        elif message.kind is lbmc.MessageKind.DATA:
            run = Run(message.topic_index, message.sequence, 1, len(message.payload), message.payload)
            yield from self._sent(at, packet, run, repair)

    def _sent(self, at: At, packet: CapturePacket, run: Run, repair: bool) -> Iterator[Statement]:
        session = packet.transport[2] if packet.transport else None
        session = self.sessions.get(at.ends) if session is None else session
        if session is None:
            return
        hop = codec.join(session, run.topic_index)
        life = self.lives.get(hop, hop)
        if repair:
            yield RepeatedRun(at, life, run.first, run.count)
        else:
            yield SentStatement(at, life, run.first, run.count, run.payload_bytes, packet.kind is TrafficKind.LBTTCP)
