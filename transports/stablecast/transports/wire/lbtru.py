"""LBT-RU: the datagrams of reliable unicast. Data carries LBMC messages; the other kinds open, keep and end a session.

A datagram is a header, the fields of its kind, options, and for data the messages. The options name the session and the
client; a reset has none, public dissectors misread them there.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, assert_never

import attrs

from stablecast.transports.wire.chained_headers import decode_chain, encode_chain
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import U16, U32, Layout
from stablecast.transports.wire.sequence_lists import (
    Format,
    Reason,
    decode_sqns,
    encode_sqns,
    join_reason,
    split_reason,
)

__all__ = [
    "Ack",
    "ClientId",
    "Data",
    "Format",
    "Nak",
    "Ncf",
    "Option",
    "Packet",
    "Reason",
    "Request",
    "Reset",
    "SessionId",
    "SessionMessage",
    "client_of",
    "decode",
    "encode",
    "encode_data",
    "read_data",
    "read_series",
    "session_of",
]

HEADER = struct.Struct(">BBH")
"""Version and kind, code of the first option, and a word that each kind uses in its way."""
NO_OPTION = 0
"""Ends the chain of options."""

_DATA = struct.Struct(">II")
_SESSION = struct.Struct(">III")
_NAK = struct.Struct(">HH")
_NCF = struct.Struct(">IHBB")
_ACK = struct.Struct(">I")
_PLAIN = struct.Struct(">BBHIIBBHI")
"""`HEADER`, `_DATA` and a session ID: all before the messages of a datagram without other options."""
_SERIES = struct.Struct(">4sII8s")
"""The same; what is alike in all datagrams of a session in two pieces."""
_SESSION_LENGTH = 8
"""Bytes of the option with the session ID."""
_LAST = 0xFFFF_FFFF


@attrs.frozen(kw_only=True)
class SessionId:
    """SID: the session of the source's transport, the same as in its advertisement."""

    CODE: ClassVar[int] = 1
    flags: U16 = 0
    session_id: U32


@attrs.frozen(kw_only=True)
class ClientId:
    """CID: the receiving client on the session."""

    CODE: ClassVar[int] = 2
    flags: U16 = 0
    client_id: U32


Option = SessionId | ClientId


@attrs.frozen(kw_only=True)
class Data:
    """Messages, the first time or again.

    Attributes:
        sqn: Number of the datagram on the session.
        trail: The oldest number that the source can send again.
        payload: LBMC messages, back to back.
    """

    KIND: ClassVar[int] = 0
    RETRANSMISSION: ClassVar[int] = 0x4000
    flags: int = 0
    sqn: int
    trail: int
    options: tuple[Option, ...] = ()
    payload: bytes


@attrs.frozen(kw_only=True)
class SessionMessage:
    """SM: the source is there, and these are its edges; with `SYN` it opens the session for a client."""

    KIND: ClassVar[int] = 2
    SYN: ClassVar[int] = 0x8000
    flags: int = 0
    sm_sqn: int
    lead: int
    trail: int
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Nak:
    """NAK: a receiver asks for these numbers, in ascending order. The lower four bits of `format` are a `Format`."""

    KIND: ClassVar[int] = 3
    reserved: int = 0
    format: int = Format.SELECTIVE
    sqns: tuple[int, ...]
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Ncf:
    """NCF: the source has these NAKs and does not send the data, for a `Reason`."""

    KIND: ClassVar[int] = 4
    reserved: int = 0
    trail: int
    padding: int = 0
    reason: int
    format: int = Format.SELECTIVE
    sqns: tuple[int, ...]
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Ack:
    """ACK: a receiver has everything up to this number, and is there."""

    KIND: ClassVar[int] = 5
    reserved: int = 0
    sqn: int
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Request:
    """CREQ: a receiver asks for the session; `SYN` is the only request known."""

    KIND: ClassVar[int] = 6
    SYN: ClassVar[int] = 0
    request: int = SYN
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Reset:
    """RST: the source knows nothing of the session, or ends it; 0 is the only reason known."""

    KIND: ClassVar[int] = 7
    reason: int = 0


Packet = Data | SessionMessage | Nak | Ncf | Ack | Request | Reset

_SID, _CID = Layout(SessionId), Layout(ClientId)


def session_of(packet: Packet) -> int | None:
    """The session that a packet names, if it does."""
    found = [option.session_id for option in _options_of(packet) if isinstance(option, SessionId)]
    return found[0] if found else None


def client_of(packet: Packet) -> int | None:
    """The client that a packet names, if it does."""
    found = [option.client_id for option in _options_of(packet) if isinstance(option, ClientId)]
    return found[0] if found else None


def _options_of(packet: Packet) -> tuple[Option, ...]:
    return () if isinstance(packet, Reset) else packet.options


def encode(packet: Packet) -> bytes:
    """The datagram of a packet.

    Raises:
        WireError: If a field does not fit.
    """
    first, options = encode_chain(_options_of(packet), NO_OPTION, _pack_option)
    try:
        word, body, payload = _parts(packet)
        return HEADER.pack(packet.KIND, first, word) + body + options + payload
    except struct.error as error:
        raise WireError(f"a field of {type(packet).__name__} does not fit: {error}") from error


def encode_data(
    flags: int, sqn: int, trail: int, session_id: int, payloads: Iterable[bytes | memoryview]
) -> list[bytes]:
    """The same of data, quicker: with this number and the next ones, mod 2^32; a session of 0 is not named.

    The fields must fit.
    """
    first, option = (SessionId.CODE, _option(session_id)) if session_id else (NO_OPTION, b"")
    head, pack, found = HEADER.pack(Data.KIND, first, flags), _DATA.pack, []
    for payload in payloads:
        found.append(b"".join((head, pack(sqn, trail), option, payload)))
        sqn = sqn + 1 & _LAST
    return found


def _option(session_id: int) -> bytes:
    """A session ID as the only option."""
    return struct.pack(">BBHI", NO_OPTION, _SESSION_LENGTH, 0, session_id)


def _parts(packet: Packet) -> tuple[int, bytes, bytes]:
    """The word of the header, the fields behind it, and the payload."""
    match packet:
        case Data():
            return packet.flags, _DATA.pack(packet.sqn, packet.trail), packet.payload
        case SessionMessage():
            return packet.flags, _SESSION.pack(packet.sm_sqn, packet.lead, packet.trail), b""
        case Nak():
            return packet.reserved, _NAK.pack(len(packet.sqns), packet.format) + encode_sqns(packet.sqns), b""
        case Ncf():
            reason = join_reason(packet.reason, packet.format)
            fixed = _NCF.pack(packet.trail, len(packet.sqns), packet.padding, reason)
            return packet.reserved, fixed + encode_sqns(packet.sqns), b""
        case Ack():
            return packet.reserved, _ACK.pack(packet.sqn), b""
        case Request():
            return packet.request, b"", b""
        case Reset():
            return packet.reason, b"", b""
        case _:
            assert_never(packet)


def _pack_option(option: Option) -> tuple[int, bytes]:
    body = _SID.pack(option) if isinstance(option, SessionId) else _CID.pack(option)
    return option.CODE, body


def _unpack_option(code: int, body: bytes) -> Option:
    match code:
        case SessionId.CODE:
            return _SID.unpack(body)
        case ClientId.CODE:
            return _CID.unpack(body)
        case _:
            raise WireError(f"there is no option {code}")


def decode(octets: bytes) -> Packet:
    """Decodes a datagram.

    Raises:
        WireError: If it is no whole packet, or if anything follows one that has no payload.
    """
    try:
        kind, first, word = HEADER.unpack_from(octets)
        decoder = _DECODERS.get(kind)  # a version other than 0 is in no key
        if decoder is None:
            raise WireError(f"version {kind >> 4}, kind {kind & 0xF} is not a packet")
        return decoder(octets, first, word)
    except struct.error as error:
        raise WireError(f"a packet of {len(octets)} bytes is too short: {error}") from error


def read_data(octets: bytes) -> tuple[int, int, int, int, memoryview] | None:
    """Session, flags, number, trail and messages of data that names its session and no more, quicker than `decode`.

    None of anything else.
    """
    if len(octets) < _PLAIN.size or octets[0] != Data.KIND or octets[1] != SessionId.CODE:
        return None
    _, _, flags, sqn, trail, following, length, _, session_id = _PLAIN.unpack_from(octets)
    if following != NO_OPTION or length != _SESSION_LENGTH:
        return None
    return session_id, flags, sqn, trail, memoryview(octets)[_PLAIN.size :]


def read_series(
    datagrams: Sequence[bytes | memoryview], session_id: int, number: int
) -> tuple[list[bytes | memoryview], int]:
    """The messages of the first datagrams that are such data of a session, sent for the first time, in order.

    `number` is that of the first datagram; the trail is that of the last one.
    """
    unpack, size, count, trail = _SERIES.unpack_from, _SERIES.size, 0, 0
    lead, named = HEADER.pack(Data.KIND, SessionId.CODE, 0), _option(session_id)
    for octets in datagrams:
        if len(octets) < size:
            break
        head, sqn, oldest, option = unpack(octets)
        if sqn != number or head != lead or option != named:
            break
        number = number + 1 & _LAST
        trail = oldest
        count += 1
    return [octets[size:] for octets in datagrams[:count]], trail


def _decode_data(octets: bytes, first: int, word: int) -> Data:
    sqn, trail = _DATA.unpack_from(octets, HEADER.size)
    options, start = decode_chain(octets, HEADER.size + _DATA.size, first, NO_OPTION, _unpack_option)
    return Data(flags=word, sqn=sqn, trail=trail, options=options, payload=octets[start:])


def _decode_session(octets: bytes, first: int, word: int) -> SessionMessage:
    sm_sqn, lead, trail = _SESSION.unpack_from(octets, HEADER.size)
    options = _last_options(octets, HEADER.size + _SESSION.size, first)
    return SessionMessage(flags=word, sm_sqn=sm_sqn, lead=lead, trail=trail, options=options)


def _decode_nak(octets: bytes, first: int, word: int) -> Nak:
    count, form = _NAK.unpack_from(octets, HEADER.size)
    sqns, end = decode_sqns(octets, HEADER.size + _NAK.size, count)
    return Nak(reserved=word, format=form, sqns=sqns, options=_last_options(octets, end, first))


def _decode_ncf(octets: bytes, first: int, word: int) -> Ncf:
    trail, count, padding, octet = _NCF.unpack_from(octets, HEADER.size)
    sqns, end = decode_sqns(octets, HEADER.size + _NCF.size, count)
    reason, form = split_reason(octet)
    options = _last_options(octets, end, first)
    return Ncf(reserved=word, trail=trail, padding=padding, reason=reason, format=form, sqns=sqns, options=options)


def _decode_ack(octets: bytes, first: int, word: int) -> Ack:
    sqn = _ACK.unpack_from(octets, HEADER.size)[0]
    return Ack(reserved=word, sqn=sqn, options=_last_options(octets, HEADER.size + _ACK.size, first))


def _decode_request(octets: bytes, first: int, word: int) -> Request:
    return Request(request=word, options=_last_options(octets, HEADER.size, first))


def _decode_reset(octets: bytes, first: int, word: int) -> Reset:
    if first != NO_OPTION or len(octets) != HEADER.size:
        raise WireError("a reset has no options, and nothing follows it")
    return Reset(reason=word)


def _last_options(octets: bytes, position: int, first: int) -> tuple[Option, ...]:
    options, end = decode_chain(octets, position, first, NO_OPTION, _unpack_option)
    if end != len(octets):
        raise WireError(f"{len(octets) - end} bytes follow the packet")
    return options


_DECODERS: dict[int, Callable[[bytes, int, int], Packet]] = {
    Data.KIND: _decode_data,
    SessionMessage.KIND: _decode_session,
    Nak.KIND: _decode_nak,
    Ncf.KIND: _decode_ncf,
    Ack.KIND: _decode_ack,
    Request.KIND: _decode_request,
    Reset.KIND: _decode_reset,
}
