"""LBT-RU: the datagrams of reliable unicast. Data carries LBMC messages; the other kinds open, keep and end a session.

A datagram is a header, the fields of its kind, options, and for data the messages. The header is version with kind, the
code of the first option, and a word that each kind uses in its own way: the first field of its declaration. The options
name the session and the client. A reset has no options, because public dissectors misread them there.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import ClassVar, get_args

import attrs

from stablecast.transports.wire.fields import U8, U16, U32, Coded, CodeSpace
from stablecast.transports.wire.reliable_packets import NO_OPTION, Format, PacketCodec, ReasonAndFormat, Sqns

HEADER = struct.Struct(">BBH")
"""Version and kind, code of the first option, and the word."""

_DATA = struct.Struct(">II")
_PLAIN = struct.Struct(">BBHIIBBHI")
"""`HEADER`, `_DATA` and a session ID: all bytes before the messages of a datagram without other options."""
_SERIES = struct.Struct(">4sII8s")
"""The same bytes; the outer pieces are equal in all datagrams of a session."""
_SESSION_LENGTH = 8
"""Bytes of the option with the session ID."""
_LAST = 0xFFFF_FFFF


@attrs.frozen(kw_only=True)
class SessionId(Coded, code=1):
    """SID: the session of the source's transport, the same as in its advertisement."""

    flags: U16 = 0
    session_id: U32


@attrs.frozen(kw_only=True)
class ClientId(Coded, code=2):
    """CID: the receiving client on the session."""

    flags: U16 = 0
    client_id: U32


Option = SessionId | ClientId


@attrs.frozen(kw_only=True)
class Data(Coded, code=0):
    """Messages, sent for the first time or again.

    Attributes:
        sqn: Number of the datagram on the session.
        trail: The oldest number that the source can send again.
        payload: LBMC messages, back to back.
    """

    RETRANSMISSION: ClassVar[int] = 0x4000
    flags: U16 = 0
    sqn: U32
    trail: U32
    options: tuple[Option, ...] = ()
    payload: bytes


@attrs.frozen(kw_only=True)
class SessionMessage(Coded, code=2):
    """SM: the source is alive, and these are the limits of its window. With `SYN` it accepts a client."""

    SYN: ClassVar[int] = 0x8000
    flags: U16 = 0
    sm_sqn: U32
    lead: U32
    trail: U32
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Nak(Coded, code=3):
    """NAK: a receiver requests these numbers, in ascending order. The lower four bits of `format` are a `Format`."""

    reserved: U16 = 0
    sqns: Sqns
    format: U16 = Format.SELECTIVE
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Ncf(Coded, code=4):
    """NCF: the source has received these NAKs and does not send the data, for a `Reason`."""

    reserved: U16 = 0
    trail: U32
    sqns: Sqns
    padding: U8 = 0
    reason: ReasonAndFormat
    format: int = Format.SELECTIVE
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Ack(Coded, code=5):
    """ACK: a receiver is alive and has everything up to this number."""

    reserved: U16 = 0
    sqn: U32
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Request(Coded, code=6):
    """CREQ: a receiver requests a connection; `SYN` is the only request known."""

    SYN: ClassVar[int] = 0
    request: U16 = SYN
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Reset(Coded, code=7):
    """RST: the source does not know the session, or ends it; 0 is the only reason known."""

    reason: U16 = 0


Packet = Data | SessionMessage | Nak | Ncf | Ack | Request | Reset

_OPTIONS: CodeSpace[Option] = CodeSpace(get_args(Option))
_CODEC: PacketCodec[Packet, Option] = PacketCodec(get_args(Packet), _OPTIONS.pack, _OPTIONS.unpack)
encode, decode = _CODEC.encode, _CODEC.decode


def session_of(packet: Packet) -> int | None:
    """Return the session that the options of a packet name, or None."""
    options = () if isinstance(packet, Reset) else packet.options
    return next((option.session_id for option in options if isinstance(option, SessionId)), None)


def encode_data(
    flags: int, sqn: int, trail: int, session_id: int, payloads: Iterable[bytes | memoryview]
) -> list[bytes]:
    """Return datagrams that are numbered from `sqn` on, mod 2^32. The fields must fit.

    With a session of 0 there is no session option. This is faster than `encode`, because the datagrams share most of
    their header.
    """
    first, option = (SessionId.CODE, _session_option(session_id)) if session_id else (NO_OPTION, b"")
    head, pack, found = HEADER.pack(Data.CODE, first, flags), _DATA.pack, []
    for payload in payloads:
        found.append(b"".join((head, pack(sqn, trail), option, payload)))
        sqn = sqn + 1 & _LAST
    return found


def _session_option(session_id: int) -> bytes:
    return struct.pack(">BBHI", NO_OPTION, _SESSION_LENGTH, 0, session_id)


def read_data(octets: bytes) -> tuple[int, int, int, int, memoryview] | None:
    """Return session, flags, number, trail and messages of data whose only option is the session; else None.

    This is faster than `decode`.
    """
    if len(octets) < _PLAIN.size or octets[0] != Data.CODE or octets[1] != SessionId.CODE:
        return None
    _, _, flags, sqn, trail, following, length, _, session_id = _PLAIN.unpack_from(octets)
    if following != NO_OPTION or length != _SESSION_LENGTH:
        return None
    return session_id, flags, sqn, trail, memoryview(octets)[_PLAIN.size :]


def read_series(
    datagrams: Sequence[bytes | memoryview], session_id: int, number: int
) -> tuple[list[bytes | memoryview], int]:
    """Return the messages of the leading datagrams that continue a session, and the trail of the last of them.

    Each has the next number, was sent for the first time, and has the session as its only option. `number` is the
    number that the first datagram must have.
    """
    unpack, size, count, trail = _SERIES.unpack_from, _SERIES.size, 0, 0
    lead, named = HEADER.pack(Data.CODE, SessionId.CODE, 0), _session_option(session_id)
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
