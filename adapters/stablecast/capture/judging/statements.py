"""What packets state, in terms of the protocol: data of a life, messages between endpoints, datagrams of LBT-RM.

Which life a datum belongs to is the session of its stream and its topic index. A stream of LBT-TCP says its session
first, and again in each SRI, so a capture that begins later learns it soon; until then nobody knows, and nothing is
stated.
"""

from collections.abc import Iterator
from typing import Final

import attrs

from stablecast.capture.decoding import Packet
from stablecast.capture.ip import Endpoint
from stablecast.capture.ports import Kind, TransportKey
from stablecast.capture.verdicts import Verdict
from stablecast.core import messages as core
from stablecast.core.messages import Incarnation
from stablecast.transports import codec
from stablecast.transports.wire import lbmc, lbtrm, lbtru
from stablecast.transports.wire.errors import WireError

Ends = tuple[Endpoint, Endpoint]

_GAPS: Final = (Verdict.INCOMPLETE, Verdict.MALFORMED)
_DATAGRAMS: Final = (Kind.LBTRM, Kind.LBTRU)


@attrs.frozen
class At:
    """Where something was seen: the frame, when, and between whom."""

    frame: int
    time_ns: int
    ends: Ends


@attrs.frozen
class Sent:
    """A message of a stream, sent for the first time there."""

    at: At
    life: Incarnation
    wire_number: int
    size: int
    stream: bool


@attrs.frozen
class Again:
    """A message that is sent again, to one endpoint or as a part of a datagram."""

    at: At
    life: Incarnation
    wire_number: int


@attrs.frozen
class Said:
    """A message between endpoints."""

    at: At
    message: core.Message


@attrs.frozen
class Datagram:
    """A datagram of LBT-RM and its session."""

    at: At
    session: TransportKey
    packet: lbtrm.Packet


@attrs.frozen
class Gap:
    """Bytes of a direction are missing in the capture, or cannot be read."""

    at: At


Statement = Sent | Again | Said | Datagram | Gap


@attrs.define
class Reader:
    """Reads packets in order; knows the sessions of streams."""

    sessions: dict[Ends, int] = attrs.field(factory=dict)

    def read(self, packet: Packet) -> Iterator[Statement]:
        """What a packet states."""
        if packet.source is None or packet.target is None:
            return
        at = At(packet.number, packet.time_ns, (packet.source, packet.target))
        doubtful = packet.lost > 0 or any(problem.verdict in _GAPS for problem in packet.problems)
        doubtful |= packet.verdict is Verdict.DAMAGED and packet.kind in _DATAGRAMS  # a segment comes again
        if doubtful:
            yield Gap(at)
        repair = False
        for layer in packet.layers:
            if doubtful and layer.protocol == "LBMC":
                yield Gap(at)  # where in between the bytes are missing is not known
            match layer.record:
                case lbtru.Data() as record:
                    repair = bool(record.flags & lbtru.Data.RETRANSMISSION)
                case lbtrm.Data() | lbtrm.SessionMessage() | lbtrm.Nak() | lbtrm.Ncf() as record:
                    repair = isinstance(record, lbtrm.Data) and bool(record.flags & lbtrm.Data.RETRANSMISSION)
                    if packet.transport is not None:
                        yield Datagram(at, packet.transport, record)
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
            yield Again(at, recovered.incarnation, recovered.wire_number)
        elif message.kind is lbmc.MessageKind.DATA:
            life = self._life(at.ends, packet, message.topic_index)
            if life is not None and repair:
                yield Again(at, life, message.sequence)
            elif life is not None:
                yield Sent(at, life, message.sequence, len(message.payload), packet.kind is Kind.LBTTCP)

    def _life(self, ends: Ends, packet: Packet, index: int) -> Incarnation | None:
        session = packet.transport[2] if packet.transport else None
        session = self.sessions.get(ends) if session is None else session
        return None if session is None else codec.join(session, index)
