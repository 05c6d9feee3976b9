"""LBT-RM: the datagrams of reliable multicast. Data carries LBMC messages; the other kinds keep the session whole.

A datagram is a header that names the session, the fields of its kind, perhaps options of which none is known, and for
data the messages. Without parity the group fields mean nothing: the product sends a group of 2^3 and the number modulo
8 all the same, and receivers ignore both.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, assert_never

import attrs

from stablecast.transports.wire.chained_headers import check_length, decode_chain, encode_chain
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.sequence_lists import (
    Format,
    Reason,
    decode_sqns,
    encode_sqns,
    join_reason,
    split_reason,
)

__all__ = [
    "Data",
    "Format",
    "Nak",
    "Ncf",
    "Option",
    "Packet",
    "Reason",
    "SessionMessage",
    "decode",
    "encode",
    "encode_data",
    "read_data",
    "read_series",
]

HEADER = struct.Struct(">BBHI")
"""Version and kind, code of the first option, port for NAKs, session."""
GROUP_SHIFT = 3
"""What the product sends as group size where there is no parity."""
NO_OPTION = 0
"""Ends the chain of options."""

_DATA = struct.Struct(">IIBBH")
_SESSION = struct.Struct(">IIIBBH")
_NAK = struct.Struct(">HH")
_NCF = struct.Struct(">IHBB")
_PLAIN = struct.Struct(">BBHIIIBBH")
"""`HEADER` and `_DATA`: all before the messages of a datagram without options."""
_SERIES = struct.Struct(">8sIIB3x")
"""The same; what is alike in all datagrams of a session in one piece."""
_NO_OPTIONS = bytes((0, NO_OPTION))
_SYMBOLS = (1 << GROUP_SHIFT) - 1
_LAST = 0xFFFF_FFFF


@attrs.frozen
class Option:
    """An option, kept by its length; `body` is all behind its lead."""

    code: int
    body: bytes


@attrs.frozen(kw_only=True)
class _Header:
    """What every datagram tells.

    Attributes:
        nak_port: Port of the source's host that unicast NAKs go to; a NAK repeats it.
        session_id: Session of the source's transport, 32 bits.
        options: No option is known.
    """

    nak_port: int
    session_id: int
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Data(_Header):
    """Messages, the first time or again.

    Attributes:
        sqn: Number of the datagram on the session; the first one is 0.
        trail: The oldest number that the source can send again.
        flags: The upper four bits; the lower four are the kind of parity.
        group_shift, symbol: Group size and place in the group; `fill` gives what the product sends without parity.
        payload: LBMC messages, back to back.
    """

    KIND: ClassVar[int] = 0
    UNICAST_NAKS: ClassVar[int] = 0x80
    MULTICAST_NAKS: ClassVar[int] = 0x40
    RETRANSMISSION: ClassVar[int] = 0x20
    LATE_JOIN: ClassVar[int] = 0x10
    sqn: int
    trail: int
    flags: int = UNICAST_NAKS
    group_shift: int = GROUP_SHIFT
    symbol: int = 0
    payload: bytes

    @staticmethod
    def fill(sqn: int) -> int:
        """The symbol that the product sends without parity."""
        return sqn % (1 << GROUP_SHIFT)


@attrs.frozen(kw_only=True)
class SessionMessage(_Header):
    """SM: the source is there, and these are its edges.

    Attributes:
        sm_sqn: Number among the session messages, first 0.
        lead: The newest number sent.
        trail: The oldest number that the source can send again.
        flags, group_shift: As in `Data`.
    """

    KIND: ClassVar[int] = 2
    sm_sqn: int
    lead: int
    trail: int
    flags: int = Data.UNICAST_NAKS
    group_shift: int = GROUP_SHIFT
    reserved: int = 0


@attrs.frozen(kw_only=True)
class Nak(_Header):
    """NAK: a receiver asks for these numbers, in ascending order. The lower four bits of `format` are a `Format`."""

    KIND: ClassVar[int] = 3
    format: int = Format.SELECTIVE
    sqns: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Ncf(_Header):
    """NCF: the source has these NAKs and does not send the data, for a `Reason`."""

    KIND: ClassVar[int] = 4
    trail: int
    reserved: int = 0
    reason: int
    format: int = Format.SELECTIVE
    sqns: tuple[int, ...]


Packet = Data | SessionMessage | Nak | Ncf


def encode(packet: Packet) -> bytes:
    """The datagram of a packet.

    Raises:
        WireError: If a field does not fit.
    """
    first, options = encode_chain(packet.options, NO_OPTION, _pack_option)
    try:
        body, payload = _body(packet)
        return HEADER.pack(packet.KIND, first, packet.nak_port, packet.session_id) + body + options + payload
    except struct.error as error:
        raise WireError(f"a field of {type(packet).__name__} does not fit: {error}") from error


def encode_data(
    nak_port: int, session_id: int, sqn: int, trail: int, flags: int, payloads: Iterable[bytes | memoryview]
) -> list[bytes]:
    """The same of data as the product sends it without parity, quicker: with this number and the next ones, mod 2^32.

    The fields must fit.
    """
    head = HEADER.pack(Data.KIND, NO_OPTION, nak_port, session_id)
    pack, found = _DATA.pack, []
    for payload in payloads:
        found.append(b"".join((head, pack(sqn, trail, flags, GROUP_SHIFT, sqn & _SYMBOLS), payload)))
        sqn = sqn + 1 & _LAST
    return found


def _body(packet: Packet) -> tuple[bytes, bytes]:
    match packet:
        case Data():
            fields = (packet.sqn, packet.trail, packet.flags, packet.group_shift, packet.symbol)
            return _DATA.pack(*fields), packet.payload
        case SessionMessage():
            edges = (packet.sm_sqn, packet.lead, packet.trail)
            return _SESSION.pack(*edges, packet.flags, packet.group_shift, packet.reserved), b""
        case Nak():
            return _NAK.pack(len(packet.sqns), packet.format) + encode_sqns(packet.sqns), b""
        case Ncf():
            reason = join_reason(packet.reason, packet.format)
            fixed = _NCF.pack(packet.trail, len(packet.sqns), packet.reserved, reason)
            return fixed + encode_sqns(packet.sqns), b""
        case _:
            assert_never(packet)


def _pack_option(option: Option) -> tuple[int, bytes]:
    check_length(option, option.body)
    if not NO_OPTION < option.code <= 0xFF:
        raise WireError(f"there is no option {option.code}")
    return option.code, option.body


def decode(octets: bytes) -> Packet:
    """Decodes a datagram.

    Raises:
        WireError: If it is no whole packet, or if anything follows one that has no payload.
    """
    try:
        kind, first, nak_port, session_id = HEADER.unpack_from(octets)
        decoder = _DECODERS.get(kind)  # a version other than 0 is in no key
        if decoder is None:
            raise WireError(f"version {kind >> 4}, kind {kind & 0xF} is not a packet")
        return decoder(octets, first, nak_port, session_id)
    except struct.error as error:
        raise WireError(f"a packet of {len(octets)} bytes is too short: {error}") from error


def read_data(octets: bytes) -> tuple[int, int, int, int, int, memoryview] | None:
    """Port for NAKs, session, number, trail, flags and messages of data without options, quicker than `decode`.

    None of anything else.
    """
    if len(octets) < _PLAIN.size or octets[0] != Data.KIND or octets[1] != NO_OPTION:
        return None
    _, _, nak_port, session_id, sqn, trail, flags, _, _ = _PLAIN.unpack_from(octets)
    return nak_port, session_id, sqn, trail, flags, memoryview(octets)[_PLAIN.size :]


def read_series(
    datagrams: Sequence[bytes | memoryview], name: bytes, number: int
) -> tuple[list[bytes | memoryview], int]:
    """The messages of the first datagrams that are such data of a session, sent for the first time, in order.

    `name` is what its headers have behind the code of the first option, `number` that of the first datagram; the trail
    is that of the last one.
    """
    unpack, expected, again, size = _SERIES.unpack_from, _NO_OPTIONS + name, Data.RETRANSMISSION, _SERIES.size
    count = trail = 0
    for octets in datagrams:
        if len(octets) < size:
            break
        head, sqn, oldest, flags = unpack(octets)
        if sqn != number or head != expected or flags & again:
            break
        number = number + 1 & _LAST
        trail = oldest
        count += 1
    return [octets[size:] for octets in datagrams[:count]], trail


def _decode_data(octets: bytes, first: int, nak_port: int, session_id: int) -> Data:
    sqn, trail, flags, shift, symbol = _DATA.unpack_from(octets, HEADER.size)
    options, start = decode_chain(octets, HEADER.size + _DATA.size, first, NO_OPTION, Option)
    return Data(
        nak_port=nak_port,
        session_id=session_id,
        options=options,
        sqn=sqn,
        trail=trail,
        flags=flags,
        group_shift=shift,
        symbol=symbol,
        payload=octets[start:],
    )


def _decode_session(octets: bytes, first: int, nak_port: int, session_id: int) -> SessionMessage:
    sm_sqn, lead, trail, flags, shift, reserved = _SESSION.unpack_from(octets, HEADER.size)
    return SessionMessage(
        nak_port=nak_port,
        session_id=session_id,
        options=_last_options(octets, HEADER.size + _SESSION.size, first),
        sm_sqn=sm_sqn,
        lead=lead,
        trail=trail,
        flags=flags,
        group_shift=shift,
        reserved=reserved,
    )


def _decode_nak(octets: bytes, first: int, nak_port: int, session_id: int) -> Nak:
    count, form = _NAK.unpack_from(octets, HEADER.size)
    sqns, end = decode_sqns(octets, HEADER.size + _NAK.size, count)
    options = _last_options(octets, end, first)
    return Nak(nak_port=nak_port, session_id=session_id, options=options, format=form, sqns=sqns)


def _decode_ncf(octets: bytes, first: int, nak_port: int, session_id: int) -> Ncf:
    trail, count, reserved, octet = _NCF.unpack_from(octets, HEADER.size)
    sqns, end = decode_sqns(octets, HEADER.size + _NCF.size, count)
    reason, form = split_reason(octet)
    return Ncf(
        nak_port=nak_port,
        session_id=session_id,
        options=_last_options(octets, end, first),
        trail=trail,
        reserved=reserved,
        reason=reason,
        format=form,
        sqns=sqns,
    )


def _last_options(octets: bytes, position: int, first: int) -> tuple[Option, ...]:
    options, end = decode_chain(octets, position, first, NO_OPTION, Option)
    if end != len(octets):
        raise WireError(f"{len(octets) - end} bytes follow the packet")
    return options


_DECODERS: dict[int, Callable[[bytes, int, int, int], Packet]] = {
    Data.KIND: _decode_data,
    SessionMessage.KIND: _decode_session,
    Nak.KIND: _decode_nak,
    Ncf.KIND: _decode_ncf,
}
