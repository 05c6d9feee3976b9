"""What packets state, in terms of the protocol: data of a life, messages between endpoints, datagrams of LBT-RM.

Which life a datum belongs to is the session of its stream and its topic index. A stream of LBT-TCP says its session
first, and again in each SRI, so a capture that begins later learns it soon; until then nobody knows, and nothing is
stated.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.core.machine.records import record
from stablecast.core.protocol import messages as core
from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.capture.decoder import Packet
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.ports import Kind, TransportKey
from stablecast.evidence.capture.verdicts import Verdict
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, Series
from stablecast.transports.wire import lbmc, lbtrm, lbtru
from stablecast.transports.wire.errors import WireError

Ends = tuple[Endpoint, Endpoint]

_GAPS: Final = (Verdict.INCOMPLETE, Verdict.MALFORMED)
DATAGRAMS: Final = (Kind.LBTRM, Kind.LBTRU)
"""What is spoken in datagrams with numbers."""
Reliable = lbtrm.Packet | lbtru.Data | lbtru.SessionMessage | lbtru.Nak | lbtru.Ncf
"""Datagrams that make a transport reliable."""


@record
class At:
    """Where something was seen: the frame, when, and between whom."""

    frame: int
    time_ns: int
    ends: Ends


@record
class Sent:
    """So many messages (`count`) with consecutive numbers, sent for the first time on their stream; `size`: of all."""

    at: At
    life: Incarnation
    wire_number: int
    count: int
    size: int
    stream: bool


@record
class Again:
    """Messages with consecutive numbers that are sent again, to one endpoint or as a part of a datagram."""

    at: At
    life: Incarnation
    wire_number: int
    count: int


@record
class Said:
    """A message between endpoints."""

    at: At
    message: core.Message


@record
class Datagram:
    """A datagram of a session of LBT-RM, or of a session of LBT-RU with a `client`."""

    at: At
    session: TransportKey
    packet: Reliable
    client: Endpoint | None = None


@record
class Gap:
    """Bytes of a direction are missing in the capture, or cannot be read."""

    at: At


@record
class Opened:
    """Another connection begins between endpoints that had one."""

    at: At


Statement = Opened | Sent | Again | Said | Datagram | Gap


def is_repair(packet: Reliable) -> bool:
    """Whether a datagram is sent again."""
    match packet:
        case lbtrm.Data() | lbtru.Data():
            return bool(packet.flags & packet.RETRANSMISSION)
        case _:
            return False


@attrs.define
class Reader:
    """Reads packets in order; knows the sessions of streams."""

    sessions: dict[Ends, int] = attrs.field(factory=dict)

    def read(self, packet: Packet) -> Iterator[Statement]:
        """What a packet states."""
        if packet.source is None or packet.target is None:
            return
        at = At(packet.number, packet.time_ns, (packet.source, packet.target))
        if packet.anew:
            yield Opened(at)
        doubtful = packet.lost > 0 or any(problem.verdict in _GAPS for problem in packet.problems)
        doubtful |= packet.verdict is Verdict.DAMAGED and packet.kind in DATAGRAMS  # a segment comes again
        if doubtful:
            yield Gap(at)
        repair = False
        for layer in packet.layers:
            if doubtful:
                yield Gap(at)  # where in between the bytes are missing is not known
            match layer.record:
                case Run() as run:
                    yield from self._sent(at, packet, run, repair)
                case lbtrm.Data() | lbtrm.SessionMessage() | lbtrm.Nak() | lbtrm.Ncf() as record:
                    repair = is_repair(record)
                    if packet.transport is not None:
                        yield Datagram(at, packet.transport, record)
                case lbtru.Data() | lbtru.SessionMessage() | lbtru.Nak() | lbtru.Ncf() as record:
                    repair = is_repair(record)
                    if packet.transport is not None:
                        client = packet.source if isinstance(record, lbtru.Nak) else packet.target
                        yield Datagram(at, packet.transport, record, client)
                case lbmc.Message() as message:
                    yield from self._carried(at, packet, message, repair)
                case record if layer.protocol == "UMP":
                    yield Said(at, record)  # type: ignore[arg-type] # what this protocol carries

    def _carried(self, at: At, packet: Packet, message: lbmc.Message, repair: bool) -> Iterator[Statement]:
        session = codec.session_of(message)
        if session is not None:
            self.sessions[at.ends] = session
        if message.kind in codec.RECOVERED_KINDS:
            try:
                recovered = codec.decode_recovered(message)
            except WireError:
                return
            count = len(message.payloads) if isinstance(message, Series) else 1
            yield Again(at, recovered.incarnation, recovered.wire_number, count)
        elif message.kind is lbmc.MessageKind.DATA:
            run = Run(message.topic_index, message.sequence, 1, len(message.payload), message.payload)
            yield from self._sent(at, packet, run, repair)

    def _sent(self, at: At, packet: Packet, run: Run, repair: bool) -> Iterator[Statement]:
        session = packet.transport[2] if packet.transport else None
        session = self.sessions.get(at.ends) if session is None else session
        if session is None:
            return
        life = codec.join(session, run.topic_index)
        if repair:
            yield Again(at, life, run.first, run.count)
        else:
            yield Sent(at, life, run.first, run.count, run.payload_bytes, packet.kind is Kind.LBTTCP)
