"""The identity of a source's life in messages, and the few messages that carry nothing else.

An incarnation is split over the header fields that carry it: transport index (the session ID of the source's transport)
and topic index. Retransmissions carry two incarnations: the session of the destination, and the original sender.
"""

import struct
from collections.abc import Sequence
from typing import TypeVar

import attrs

from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.codec.lbttcp import RetransmissionSeries
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

INSTANCE = struct.Struct(">Q")

RECOVERED_KINDS = frozenset({lbmc.MessageKind.RETRANSMISSION, lbmc.MessageKind.PROACTIVE})
"""The kinds of retransmissions: requested, and proactive."""

_CHAINED = (h.Fragment, h.ApplicationChain)
_LEAD = lbmc.DATA_HEADER.size

TOPIC_BITS = 32
"""Bits of the topic index in an incarnation, below the session ID. Hot loops shift by it instead of calling `join`."""

HeaderT = TypeVar("HeaderT", bound=h.Header)


@attrs.frozen
class Recovered:
    """A retransmitted message for the session `session`, originally sent by `incarnation`.

    Attributes:
        proactive: The source retransmits it without a request, to a store that has not acknowledged it (P-436).
        headers: The chained headers of a message that is not plain (`stablecast.transports.codec.chained_messages`).
    """

    session: Incarnation
    incarnation: Incarnation
    wire_number: int
    payload: bytes
    proactive: bool = False
    headers: tuple[h.Header, ...] = ()

    @property
    def data(self) -> bytes:
        """The message as originally sent."""
        index = split(self.incarnation)[1]
        if not self.headers:
            return lbmc.DATA_HEADER.pack(0, 0, _LEAD + len(self.payload), index, self.wire_number) + self.payload
        return lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, index, self.wire_number, self.headers, self.payload))


@attrs.frozen
class RecoveredRun:
    """Retransmitted plain messages with consecutive numbers; other fields as in `Recovered`."""

    session: Incarnation
    incarnation: Incarnation
    wire_number: int
    payloads: Sequence[bytes]
    proactive: bool = False


def join(session_id: int, topic_index: int) -> Incarnation:
    """Return the incarnation of a source on a transport."""
    return session_id << TOPIC_BITS | topic_index


def split(incarnation: Incarnation) -> tuple[int, int]:
    """Return the session ID of the transport and the topic index."""
    return incarnation >> TOPIC_BITS, incarnation & 0xFFFF_FFFF


def greeting(session_id: int) -> bytes:
    """Return the first message of a source on every connection of its stream."""
    return control(h.TcpSid(sid=session_id))


def session_of(message: lbmc.Message) -> int | None:
    """Return the session ID that a message on a source's stream announces, or None."""
    sid = find(message, h.TcpSid)
    return None if sid is None else sid.sid


def decode_recovered(message: lbmc.Message) -> Recovered:
    """Decode a retransmission. Raises WireError if an incarnation is missing, or for a message of another kind."""
    if message.kind not in RECOVERED_KINDS:
        raise WireError(f"a message of kind {message.kind} is not a retransmission")
    session = INSTANCE.unpack(need(message, h.CtxInstD).ctxinst)[0]
    incarnation = INSTANCE.unpack(need(message, h.CtxInst).ctxinst)[0]
    proactive = message.kind is lbmc.MessageKind.PROACTIVE
    headers = tuple(header for header in message.headers if isinstance(header, _CHAINED))
    return Recovered(session, incarnation, message.sequence, bytes(message.payload), proactive, headers)


def decode_series(series: RetransmissionSeries) -> RecoveredRun:
    """Decode retransmissions that are alike. Raises WireError like `decode_recovered`."""
    first = decode_recovered(series)
    return RecoveredRun(first.session, first.incarnation, first.wire_number, series.payloads, first.proactive)


def control(*headers: h.Header) -> bytes:
    return lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, 0, 0, headers, b""))


def find(message: lbmc.Message, kind: type[HeaderT]) -> HeaderT | None:
    for header in message.headers:
        if isinstance(header, kind):
            return header
    return None


def need(message: lbmc.Message, kind: type[HeaderT]) -> HeaderT:
    """Return the first header of a kind. Raises WireError if there is none."""
    header = find(message, kind)
    if header is None:
        raise WireError(f"header {kind.__name__} is missing")
    return header
