"""LBMR messages between gateways (extension 5): interest, addresses of contexts, and requests to resolve.

The lengths in their heads are stored as they came, because it is not documented what they count. Public dissectors
assume that the length of a context counts its head and its options.
"""

import struct
from typing import ClassVar, assert_never, get_args

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import U8, U16, U32, CodeSpace, Ipv4, Layout, Octets8, Rest
from stablecast.transports.wire.lbmr import UnknownOption, pack_options, unpack_options

_RECORD = struct.Struct(">HBBI")


@attrs.frozen
class InterestRecord:
    """The gateway's other side has receivers of a topic or a pattern; `symbol` is its name with the NULs after it."""

    PATTERN: ClassVar[int] = 0x80  # flags
    CANCEL: ClassVar[int] = 0x40
    REFRESH: ClassVar[int] = 0x20
    flags: int
    pattern_type: int
    domain: int
    symbol: bytes


@attrs.frozen(kw_only=True)
class GatewayInterest:
    """The topics and patterns that are wanted on a gateway's other side."""

    TYPE: ClassVar[int] = 0
    length: int
    records: tuple[InterestRecord, ...] = ()


@attrs.frozen(kw_only=True)
class InstanceOption:
    """Instance of the context."""

    CODE: ClassVar[int] = 0
    flags: U16
    instance: Octets8


@attrs.frozen(kw_only=True)
class AddressOption:
    """Address of the context."""

    CODE: ClassVar[int] = 1
    flags: U16
    port: U16
    reserved: U16 = 0
    address: Ipv4


@attrs.frozen(kw_only=True)
class DomainOption:
    """Domain of the context."""

    CODE: ClassVar[int] = 2
    flags: U16
    domain: U32


@attrs.frozen(kw_only=True)
class NameOption:
    """Name of the context, with the NULs after it."""

    CODE: ClassVar[int] = 3
    flags: U16
    name: Rest


GatewayOption = InstanceOption | AddressOption | DomainOption | NameOption | UnknownOption
OPTIONS: CodeSpace[GatewayOption] = CodeSpace(get_args(GatewayOption), UnknownOption, codes=range(256))


@attrs.frozen(kw_only=True)
class GatewayContext:
    """The address of a context, or a request for it."""

    TYPE: ClassVar[int] = 1
    QUERY: ClassVar[int] = 0x8000_0000  # flags1
    GATEWAY_SOURCE: ClassVar[int] = 0x4000_0000
    GATEWAY_RECEIVER: ClassVar[int] = 0x2000_0000
    PROXY: ClassVar[int] = 0x1000_0000
    length: int
    hop_count: int = 0
    reserved: int = 0
    flags1: int
    flags2: int = 0
    options: tuple[GatewayOption, ...] = ()


@attrs.frozen(kw_only=True)
class GatewayRequest:
    """Requests all contexts to repeat what they have stopped sending."""

    TYPE: ClassVar[int] = 2
    length: U16


@attrs.frozen(kw_only=True)
class UnknownMessage:
    """A message of another type, as bytes."""

    type: int
    body: bytes


GatewayBody = GatewayInterest | GatewayContext | GatewayRequest | UnknownMessage


@attrs.frozen(kw_only=True)
class Gateway:
    """A message from one gateway to another."""

    EXTENSION: ClassVar[int] = 5
    length: int
    reserved: int = 0
    body: GatewayBody


@attrs.frozen(kw_only=True)
class _Head:
    length: U16
    type: U16
    reserved: U16
    rest: Rest


@attrs.frozen(kw_only=True)
class _InterestHead:
    length: U16
    count: U16
    rest: Rest


@attrs.frozen(kw_only=True)
class _ContextHead:
    length: U16
    hop_count: U8
    reserved: U8
    flags1: U32
    flags2: U32
    rest: Rest


_HEAD, _INTEREST, _CONTEXT, _REQUEST = (
    Layout(_Head),
    Layout(_InterestHead),
    Layout(_ContextHead),
    Layout(GatewayRequest),
)
_CONTEXT_FIELDS = ("length", "hop_count", "reserved", "flags1", "flags2")


def encode_gateway(message: Gateway) -> bytes:
    """Return the bytes of a message, without the two bytes of every packet. Raises WireError or struct.error."""
    body = message.body
    kind = body.type if isinstance(body, UnknownMessage) else body.TYPE
    if isinstance(body, UnknownMessage) and kind <= GatewayRequest.TYPE:
        raise WireError(f"type {kind} of a gateway's message is not an unknown type")
    head = _Head(length=message.length, type=kind, reserved=message.reserved, rest=_encode_body(body))
    return _HEAD.pack(head)


def _encode_body(body: GatewayBody) -> bytes:
    match body:
        case GatewayInterest(length=length, records=records):
            packed = (
                _RECORD.pack(_RECORD.size + len(one.symbol), one.flags, one.pattern_type, one.domain) + one.symbol
                for one in records
            )
            return _INTEREST.pack(_InterestHead(length=length, count=len(records), rest=b"".join(packed)))
        case GatewayContext(options=options):
            shared = {name: getattr(body, name) for name in _CONTEXT_FIELDS}
            return _CONTEXT.pack(_ContextHead(rest=pack_options(OPTIONS, options), **shared))
        case GatewayRequest():
            return _REQUEST.pack(body)
        case UnknownMessage(body=octets):
            return octets
        case _:
            assert_never(body)


def decode_gateway(octets: bytes) -> Gateway:
    """Decode the message that follows the first two bytes of a packet. Raises WireError."""
    head = _HEAD.unpack(octets)
    return Gateway(length=head.length, reserved=head.reserved, body=_decode_body(head.type, head.rest))


def _decode_body(kind: int, octets: bytes) -> GatewayBody:
    match kind:
        case GatewayInterest.TYPE:
            head = _INTEREST.unpack(octets)
            return GatewayInterest(length=head.length, records=_take_records(head.rest, head.count))
        case GatewayContext.TYPE:
            context = _CONTEXT.unpack(octets)
            shared = {name: getattr(context, name) for name in _CONTEXT_FIELDS}
            return GatewayContext(options=unpack_options(OPTIONS, context.rest) if context.rest else (), **shared)
        case GatewayRequest.TYPE:
            return _REQUEST.unpack(octets)
        case _:
            return UnknownMessage(type=kind, body=octets)


def _take_records(octets: bytes, count: int) -> tuple[InterestRecord, ...]:
    records, at = [], 0
    for _ in range(count):
        if at + _RECORD.size > len(octets):
            raise WireError("a record of interest is missing")
        length, flags, pattern_type, domain = _RECORD.unpack_from(octets, at)
        end = at + length
        if length < _RECORD.size or end > len(octets):
            raise WireError(f"a record of interest cannot be {length} bytes long")
        records.append(InterestRecord(flags, pattern_type, domain, octets[at + _RECORD.size : end]))
        at = end
    if at != len(octets):
        raise WireError(f"{len(octets) - at} bytes follow the last record of interest")
    return tuple(records)
