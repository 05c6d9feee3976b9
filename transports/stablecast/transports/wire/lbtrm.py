"""LBT-RM: the datagrams of reliable multicast. Data carries LBMC messages; the other kinds keep the session complete.

A datagram is a header that names the session, the fields of its kind, options, and for data the messages. No option is
known. Without parity the group fields mean nothing. The product still sends a group of 2^3 and the number modulo 8, and
receivers ignore both.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import ClassVar, get_args

import attrs

from stablecast.transports.wire.chained_headers import check_length
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import U8, U16, U32, Coded
from stablecast.transports.wire.reliable_packets import NO_OPTION, Format, PacketCodec, ReasonAndFormat, Sqns

HEADER = struct.Struct(">BBHI")
"""Version and kind, code of the first option, port for NAKs, session."""
GROUP_SHIFT = 3
"""The group size that the product sends without parity."""

_DATA = struct.Struct(">IIBBH")
_PLAIN = struct.Struct(">BBHIIIBBH")
"""`HEADER` and `_DATA`: all bytes before the messages of a datagram without options."""
_SERIES = struct.Struct(">8sIIB3x")
"""The same bytes; the first piece is equal in all datagrams of a session."""
_NO_OPTIONS = bytes((0, NO_OPTION))
_SYMBOLS = (1 << GROUP_SHIFT) - 1
_LAST = 0xFFFF_FFFF


@attrs.frozen
class Option:
    """An option of unknown meaning; `body` is all bytes after its lead."""

    code: int
    body: bytes


@attrs.frozen(kw_only=True)
class _Header(Coded):
    """The fields of every datagram.

    Attributes:
        nak_port: Port of the source's host for unicast NAKs; a NAK repeats it.
        session_id: Session of the source's transport, 32 bits.
    """

    nak_port: U16
    session_id: U32
    options: tuple[Option, ...] = ()


@attrs.frozen(kw_only=True)
class Data(_Header, code=0):
    """Messages, sent for the first time or again.

    Attributes:
        sqn: Number of the datagram on the session; the first one is 0.
        trail: The oldest number that the source can send again.
        flags: The upper four bits; the lower four are the kind of parity.
        group_shift, symbol: Group size and place in the group; `fill` returns the place that is sent without parity.
        payload: LBMC messages, back to back.
    """

    UNICAST_NAKS: ClassVar[int] = 0x80
    RETRANSMISSION: ClassVar[int] = 0x20
    LATE_JOIN: ClassVar[int] = 0x10
    sqn: U32
    trail: U32
    flags: U8 = UNICAST_NAKS
    group_shift: U8 = GROUP_SHIFT
    symbol: U16 = 0
    payload: bytes

    @staticmethod
    def fill(sqn: int) -> int:
        """Return the symbol that the product sends without parity."""
        return sqn % (1 << GROUP_SHIFT)


@attrs.frozen(kw_only=True)
class SessionMessage(_Header, code=2):
    """SM: the source is alive, and these are the limits of its window.

    Attributes:
        sm_sqn: Number among the session messages, from 0.
        lead: The newest number sent.
        trail: The oldest number that the source can send again.
        flags, group_shift: As in `Data`.
    """

    sm_sqn: U32
    lead: U32
    trail: U32
    flags: U8 = Data.UNICAST_NAKS
    group_shift: U8 = GROUP_SHIFT
    reserved: U16 = 0


@attrs.frozen(kw_only=True)
class Nak(_Header, code=3):
    """NAK: a receiver requests these numbers, in ascending order. The lower four bits of `format` are a `Format`."""

    sqns: Sqns
    format: U16 = Format.SELECTIVE


@attrs.frozen(kw_only=True)
class Ncf(_Header, code=4):
    """NCF: the source has received these NAKs and does not send the data, for a `Reason`."""

    trail: U32
    sqns: Sqns
    reserved: U8 = 0
    reason: ReasonAndFormat
    format: int = Format.SELECTIVE


Packet = Data | SessionMessage | Nak | Ncf


def _pack_option(option: Option) -> tuple[int, bytes]:
    check_length(option, option.body)
    if not NO_OPTION < option.code <= 0xFF:
        raise WireError(f"there is no option {option.code}")
    return option.code, option.body


_CODEC: PacketCodec[Packet, Option] = PacketCodec(get_args(Packet), _pack_option, Option)
encode, decode = _CODEC.encode, _CODEC.decode


def encode_data(
    nak_port: int, session_id: int, sqn: int, trail: int, flags: int, payloads: Iterable[bytes | memoryview]
) -> list[bytes]:
    """Return datagrams without options or parity, numbered from `sqn` on, mod 2^32. The fields must fit.

    This is faster than `encode`, because the datagrams share most of their header.
    """
    head = HEADER.pack(Data.CODE, NO_OPTION, nak_port, session_id)
    pack, found = _DATA.pack, []
    for payload in payloads:
        found.append(b"".join((head, pack(sqn, trail, flags, GROUP_SHIFT, sqn & _SYMBOLS), payload)))
        sqn = sqn + 1 & _LAST
    return found


def read_data(octets: bytes) -> tuple[int, int, int, int, int, memoryview] | None:
    """Return port for NAKs, session, number, trail, flags and messages of data without options; else None.

    This is faster than `decode`.
    """
    if len(octets) < _PLAIN.size or octets[0] != Data.CODE or octets[1] != NO_OPTION:
        return None
    _, _, nak_port, session_id, sqn, trail, flags, _, _ = _PLAIN.unpack_from(octets)
    return nak_port, session_id, sqn, trail, flags, memoryview(octets)[_PLAIN.size :]


def read_series(
    datagrams: Sequence[bytes | memoryview], name: bytes, number: int
) -> tuple[list[bytes | memoryview], int]:
    """Return the messages of the leading datagrams that continue a session, and the trail of the last of them.

    Each has the next number, was sent for the first time, and has no options. `name` is the header of the session
    after the code of the first option. `number` is the number that the first datagram must have.
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
