"""LBMR messages between gateways (extension 5): interest, addresses of contexts, and requests to resolve.

The lengths in their heads are stored as they came, because it is not documented what they count. Public dissectors
assume that the length of a context counts its head and its options.
"""

import struct
from typing import Annotated, Any, ClassVar

import attrs

from stablecast.transports.wire import fields as f
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr import UnknownOption, pack_options, unpack_options

_RECORD, _COUNT = struct.Struct(">HBBI"), struct.Struct(">H")


@attrs.frozen
class InterestRecord:
    """The gateway's other side has receivers of a topic or a pattern; `symbol` is its name with the NULs after it."""

    PATTERN: ClassVar[int] = 0x80  # flags
    CANCEL: ClassVar[int] = 0x40
    flags: int
    pattern_type: int
    domain: int
    symbol: bytes


def split_records(octets: bytes, count: int, layout: struct.Struct) -> list[tuple[Any, ...]]:
    """Split bytes into records that begin with `layout`, whose first field is the length of the record.

    Returns:
        The other fields of each record, and the bytes after them.

    Raises:
        WireError: If there are not exactly `count` whole records.
    """
    records, at = [], 0
    for _ in range(count):
        if at + layout.size > len(octets):
            raise WireError("a record is missing")
        length, *fields = layout.unpack_from(octets, at)
        end = at + length
        if length < layout.size or end > len(octets):
            raise WireError(f"a record cannot be {length} bytes long here")
        records.append((*fields, octets[at + layout.size : end]))
        at = end
    if at != len(octets):
        raise WireError(f"{len(octets) - at} bytes follow the last record")
    return records


def _decode_interest(octets: bytes) -> tuple[tuple[InterestRecord, ...], bytes]:
    if len(octets) < _COUNT.size:
        raise WireError("records of interest without their count")
    found = split_records(octets[_COUNT.size :], int.from_bytes(octets[: _COUNT.size]), _RECORD)
    return tuple(InterestRecord(*fields) for fields in found), b""


def _encode_interest(records: tuple[InterestRecord, ...]) -> bytes:
    packed = (_RECORD.pack(_RECORD.size + len(r.symbol), r.flags, r.pattern_type, r.domain) + r.symbol for r in records)
    return _COUNT.pack(len(records)) + b"".join(packed)


@attrs.frozen(kw_only=True)
class GatewayInterest(f.Coded, code=0):
    """The topics and patterns that are wanted on a gateway's other side."""

    length: f.U16
    records: Annotated[tuple[InterestRecord, ...], f.Tail(_decode_interest, _encode_interest)] = ()


InstanceOption = f.read_only("InstanceOption", 0, flags=f.U16, instance=f.Octets8)
"""Instance of the context, 8 bytes."""


AddressOption = f.read_only("AddressOption", 1, flags=f.U16, port=f.U16, reserved=f.Spare(f.U16), address=f.Ipv4)
"""Address and port of the context."""


DomainOption = f.read_only("DomainOption", 2, flags=f.U16, domain=f.U32)
"""Routing domain of the context."""


NameOption = f.read_only("NameOption", 3, flags=f.U16, name=f.Rest)
"""Name of the context, with the NULs after it."""


_OPTIONS = (InstanceOption, AddressOption, DomainOption, NameOption)
OPTIONS: f.CodeSpace[object] = f.CodeSpace(_OPTIONS, UnknownOption, codes=range(256))


def _decode_options(octets: bytes) -> tuple[tuple[object, ...], bytes]:
    return unpack_options(OPTIONS, octets) if octets else (), b""


def _encode_options(options: tuple[object, ...]) -> bytes:
    return pack_options(OPTIONS, options)


@attrs.frozen(kw_only=True)
class GatewayContext(f.Coded, code=1):
    """The address of a context, or a request for it."""

    QUERY: ClassVar[int] = 0x8000_0000  # flags1
    length: f.U16
    hop_count: f.U8 = 0
    reserved: f.U8 = 0
    flags1: f.U32
    flags2: f.U32 = 0
    options: Annotated[tuple[object, ...], f.Tail(_decode_options, _encode_options)] = ()


@attrs.frozen(kw_only=True)
class GatewayRequest(f.Coded, code=2):
    """Requests all contexts to repeat what they have stopped sending."""

    length: f.U16


@attrs.frozen(kw_only=True)
class UnknownMessage:
    """A message of another type, as bytes."""

    type: int
    body: bytes


GatewayBody = GatewayInterest | GatewayContext | GatewayRequest | UnknownMessage


@attrs.frozen(kw_only=True)
class Gateway(f.Coded, code=5):
    """A message from one gateway to another."""

    length: int
    reserved: int = 0
    body: GatewayBody


@attrs.frozen(kw_only=True)
class _Head:
    length: f.U16
    type: f.U16
    reserved: f.U16
    rest: f.Rest


_HEAD = f.Layout(_Head)
_BODIES = {body.CODE: f.Layout[Any](body) for body in (GatewayInterest, GatewayContext, GatewayRequest)}


def encode_gateway(message: Gateway) -> bytes:
    """Return the bytes of a message, without the two bytes of every packet. Raises WireError or struct.error."""
    body = message.body
    kind = body.type if isinstance(body, UnknownMessage) else body.CODE
    if isinstance(body, UnknownMessage) and kind <= GatewayRequest.CODE:
        raise WireError(f"type {kind} of a gateway's message is not an unknown type")
    rest = body.body if isinstance(body, UnknownMessage) else _BODIES[kind].pack(body)
    head = _Head(length=message.length, type=kind, reserved=message.reserved, rest=rest)
    return _HEAD.pack(head)


def decode_gateway(octets: bytes) -> Gateway:
    """Decode the message that follows the first two bytes of a packet. Raises WireError."""
    head = _HEAD.unpack(octets)
    layout = _BODIES.get(head.type)
    body = layout.unpack(head.rest) if layout else UnknownMessage(type=head.type, body=head.rest)
    return Gateway(length=head.length, reserved=head.reserved, body=body)
