"""The packets of LBT-RM and LBT-RU have one form: fixed fields, sequence numbers, options, payload.

An attrs class declares the fixed fields of a packet in the order of the wire, with the annotations of `fields`. The
first two bytes of each packet are version with kind, and the code of the first option. They are in no declaration.
"""

import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Annotated, Any, Generic, TypeVar

import attrs

from stablecast.transports.wire.chained_headers import decode_chain, encode_chain
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import WORD, Fixed, FixedPart

NO_OPTION = 0
"""Ends the chain of options."""

_LEAD = 2


class Reason(IntEnum):
    """The reason why a source answers a NAK with a confirmation (NCF). Peers may send other values."""

    NO_RETRY = 0
    IGNORED = 1
    DELAYED = 2
    SHED = 3


class Format(IntEnum):
    """The meaning of the numbers in a NAK or an NCF. Peers may send other values."""

    SELECTIVE = 0
    PARITY = 1


Sqns = Annotated[tuple[int, ...], Fixed("H", encode=len)]
"""Sequence numbers of datagrams, 32 bits each: the fixed fields hold their count, and the numbers follow these."""
ReasonAndFormat = Annotated[int, Fixed("B")]
"""A reason, in the upper four bits of a byte. The field `format` has the lower four bits and no declaration."""

OptionT = TypeVar("OptionT")
PacketT = TypeVar("PacketT")


class _PacketLayout:
    """The fields of one kind of packet."""

    def __init__(self, record: type[Any]) -> None:
        fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
        kinds = [(field.name, *getattr(field.type, "__metadata__", ())) for field in fields]
        self.record = record
        self._part = FixedPart([(pair[0], pair[1]) for pair in kinds if len(pair) > 1])
        names = {field.name for field in fields}
        self.has_options, self.has_payload = "options" in names, "payload" in names
        self._has_sqns, self._has_reason = "sqns" in names, "reason" in names and "format" in names

    def encode(self, packet: Any) -> bytes:
        if self._has_reason:
            octets = self._part.octets(attrs.evolve(packet, reason=join_reason(packet.reason, packet.format)))
        else:
            octets = self._part.octets(packet)
        return octets + encode_sqns(packet.sqns) if self._has_sqns else octets

    def decode(self, octets: bytes) -> tuple[dict[str, Any], int]:
        end = _LEAD + self._part.struct.size
        if end > len(octets):
            raise WireError(f"a packet of {len(octets)} bytes is too short for {self.record.__name__}")
        # No field needs a conversion, and this is called for each packet: `FixedPart.values` costs a third more.
        values: dict[str, Any] = dict(zip(self._part.names, self._part.struct.unpack_from(octets, _LEAD), strict=True))
        if self._has_sqns:
            values["sqns"], end = decode_sqns(octets, end, values["sqns"])
        if self._has_reason:
            values["reason"], values["format"] = split_reason(values["reason"])
        return values, end


class PacketCodec(Generic[PacketT, OptionT]):
    """Encoder and decoder of the packets of one transport.

    Args:
        packets: Their classes, each with its `KIND`.
        pack: Returns code and body of an option. Raises WireError.
        unpack: The inverse.
    """

    def __init__(
        self,
        packets: Iterable[type[PacketT]],
        pack: Callable[[OptionT], tuple[int, bytes]],
        unpack: Callable[[int, bytes], OptionT],
    ) -> None:
        self._layouts: dict[type[Any], _PacketLayout] = {packet: _PacketLayout(packet) for packet in packets}
        self._by_kind = {layout.record.CODE: layout for layout in self._layouts.values()}
        self._pack, self._unpack = pack, unpack

    def encode(self, packet: PacketT) -> bytes:
        """Return the datagram of a packet. Raises WireError if a field does not fit."""
        record: Any = packet
        layout = self._layouts[type(packet)]
        first, options = encode_chain(record.options if layout.has_options else (), NO_OPTION, self._pack)
        payload = record.payload if layout.has_payload else b""
        return bytes((record.CODE, first)) + layout.encode(packet) + options + payload

    def decode(self, octets: bytes) -> PacketT:
        """Decode a datagram.

        Raises:
            WireError: If it is no whole packet, or if bytes follow a packet that has no payload.
        """
        if len(octets) < _LEAD:
            raise WireError(f"a packet of {len(octets)} bytes is too short")
        layout = self._by_kind.get(octets[0])  # a version other than 0 is in no key
        if layout is None:
            raise WireError(f"version {octets[0] >> 4}, kind {octets[0] & 0xF} is not a packet")
        values, end = layout.decode(octets)
        if layout.has_options:
            if octets[1] != NO_OPTION:
                values["options"], end = decode_chain(octets, end, octets[1], NO_OPTION, self._unpack)
        elif octets[1] != NO_OPTION:
            raise WireError(f"a {layout.record.__name__} has no options")
        if layout.has_payload:
            values["payload"] = octets[end:]
        elif end != len(octets):
            raise WireError(f"{len(octets) - end} bytes follow the packet")
        packet: PacketT = layout.record(**values)
        return packet


def encode_sqns(sqns: tuple[int, ...]) -> bytes:
    """Return the bytes of sequence numbers. Raises WireError if one exceeds 32 bits."""
    try:
        return struct.pack(f">{len(sqns)}I", *sqns)
    except struct.error as error:
        raise WireError(f"a sequence number does not fit 32 bits: {error}") from error


def decode_sqns(octets: bytes, position: int, count: int) -> tuple[tuple[int, ...], int]:
    """Return `count` numbers from `position` on, and their end. Raises WireError if there are fewer."""
    end = position + count * WORD.size
    if end > len(octets):
        raise WireError(f"{count} sequence numbers are announced, {(len(octets) - position) // WORD.size} are there")
    return struct.unpack_from(f">{count}I", octets, position), end


def split_reason(octet: int) -> tuple[int, int]:
    """Return the reason and the format of a confirmation, which share a byte."""
    return octet >> 4, octet & 0x0F


def join_reason(reason: int, form: int) -> int:
    """Return the byte of a reason and a format. Raises WireError if one exceeds four bits."""
    if not (0 <= reason <= 0x0F and 0 <= form <= 0x0F):
        raise WireError(f"reason {reason} or format {form} does not fit four bits")
    return reason << 4 | form
