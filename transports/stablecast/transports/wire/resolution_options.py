"""Options and transports of topic resolution: what an advertisement carries, and what ends each packet.

The observed product sets the Ignore bit in every option, so it is the default here.
"""

import struct
from collections.abc import Iterable
from typing import ClassVar, TypeVar, get_args

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import (
    I32,
    IGNORE,
    IGNORE_SHORT,
    U8,
    U16,
    U32,
    Ipv4,
    Octets8,
    Octets32,
    OptionalU32,
    Registry,
)

LEAD = 2
"""Bytes before the body of each option: code, length."""
MIN_LENGTH = 4
MAX_LENGTH = 255
"""Bytes of an option, the lead included."""


@attrs.frozen(kw_only=True)
class Ume:
    """The source is persistent; its first store, for old receivers."""

    CODE: ClassVar[int] = 1
    LATE_JOIN: ClassVar[int] = 0x4000
    STORES: ClassVar[int] = 0x2000
    QUORUM_CONSENSUS: ClassVar[int] = 0x1000
    ACK_TO_SOURCE: ClassVar[int] = 0x0800
    CONTEXT_ID: ClassVar[int] = 0x0400
    flags: U16 = IGNORE
    store_port: U16
    source_port: U16
    store_address: Ipv4
    source_address: Ipv4
    source_reg_id: U32
    transport_index: U32
    high_sqn: U32
    low_sqn: U32


@attrs.frozen(kw_only=True)
class UmeStore:
    """A store of the source."""

    CODE: ClassVar[int] = 2
    CONTEXT_ID: ClassVar[int] = 0x40
    flags: U8 = IGNORE_SHORT
    group_index: U8
    store_port: U16
    store_index: U16
    store_address: Ipv4
    source_reg_id: U32


@attrs.frozen(kw_only=True)
class UmeStoreGroup:
    """A group of the source's stores."""

    CODE: ClassVar[int] = 3
    flags: U8 = IGNORE_SHORT
    group_index: U8
    group_size: U16
    reserved: U16 = 0


@attrs.frozen(kw_only=True)
class LateJoin:
    """The source can send old messages again, `low_sqn` to `high_sqn`."""

    CODE: ClassVar[int] = 4
    ACK_TO_SOURCE: ClassVar[int] = 0x4000
    flags: U16 = IGNORE
    source_port: U16
    reserved: U16 = 0
    source_address: Ipv4
    transport_index: U32
    high_sqn: U32
    low_sqn: U32


@attrs.frozen(kw_only=True)
class Cost:
    """How far away the source is, through gateways."""

    CODE: ClassVar[int] = 7
    flags: U8 = IGNORE_SHORT
    hop_count: U8
    cost: I32


@attrs.frozen(kw_only=True)
class OriginatingTransport:
    """The transport at the source's own end, compared as a whole."""

    CODE: ClassVar[int] = 8
    flags: U16 = IGNORE
    otid: Octets32


@attrs.frozen(kw_only=True)
class ContextInstance:
    """Instance of the source's context."""

    CODE: ClassVar[int] = 9
    flags: U8 = IGNORE_SHORT
    index: U8 = 0
    instance: Octets8


@attrs.frozen(kw_only=True)
class StoreContextInstance:
    """Instance of a store's context."""

    CODE: ClassVar[int] = 10
    flags: U8 = IGNORE_SHORT
    store_index: U8
    instance: Octets8


@attrs.frozen(kw_only=True)
class DomainId:
    """Domain of the source."""

    CODE: ClassVar[int] = 13
    flags: U16 = IGNORE
    domain: U32


@attrs.frozen(kw_only=True)
class ExtendedFunctionality:
    """Request port of the source's context, and what the source offers; sent for every source."""

    CODE: ClassVar[int] = 14
    LATE_JOIN: ClassVar[int] = 0x1
    UME: ClassVar[int] = 0x2
    UMQ: ClassVar[int] = 0x4
    ULB: ClassVar[int] = 0x8
    flags: U16 = IGNORE
    source_port: U16
    reserved: U16 = 0
    source_address: Ipv4
    functionality: U32


@attrs.frozen(kw_only=True)
class SourceId:
    """Context instance of the sender of the packet."""

    CODE: ClassVar[int] = 129
    flags: U16 = IGNORE
    source_id: Octets8


@attrs.frozen(kw_only=True)
class SourceType:
    """What the sender of the packet is."""

    CODE: ClassVar[int] = 130
    APPLICATION: ClassVar[int] = 0
    GATEWAY: ClassVar[int] = 1
    STORE: ClassVar[int] = 2
    flags: U8 = IGNORE_SHORT
    source_type: U8


@attrs.frozen(kw_only=True)
class Version:
    """Release of the sender: one byte each of major, minor, service, patch."""

    CODE: ClassVar[int] = 131
    UME: ClassVar[int] = 0x0001
    UMQ: ClassVar[int] = 0x0002
    flags: U16 = IGNORE | 0x0001
    version: U32


@attrs.frozen(kw_only=True)
class LocalDomain:
    """Domain of the sender; 0 without gateways."""

    CODE: ClassVar[int] = 132
    flags: U16 = IGNORE
    domain: U32


@attrs.frozen
class TcpTransport:
    """Where a TCP source listens; old sources have no session ID."""

    CODE: ClassVar[int] = 0x00
    address: Ipv4
    session_id: OptionalU32
    port: U16


@attrs.frozen
class LbtruTransport:
    """Where an LBT-RU source listens; old sources have no session ID."""

    CODE: ClassVar[int] = 0x01
    address: Ipv4
    session_id: OptionalU32
    port: U16


@attrs.frozen
class LbtrmTransport:
    """The session of an LBT-RM source: its group, and its unicast port for NAKs."""

    CODE: ClassVar[int] = 0x10
    source_address: Ipv4
    group: Ipv4
    session_id: U32
    destination_port: U16
    nak_port: U16


@attrs.frozen
class UnknownOption:
    """An option that is not declared here, kept by its length; `body` is all behind the lead."""

    code: int
    body: bytes


@attrs.frozen
class UnknownTransport:
    """A transport that is not declared here, kept by its length."""

    code: int
    body: bytes


TirOption = (
    ContextInstance
    | Cost
    | DomainId
    | ExtendedFunctionality
    | LateJoin
    | OriginatingTransport
    | StoreContextInstance
    | Ume
    | UmeStore
    | UmeStoreGroup
    | UnknownOption
)
PacketOption = LocalDomain | SourceId | SourceType | Version | UnknownOption
Transport = LbtrmTransport | LbtruTransport | TcpTransport | UnknownTransport

LENGTH_OPTION = struct.Struct(">BBH")
"""The option that tells the length of an options block, itself included."""
TIR_LENGTH = 0
"""Code of the option that starts the options of an advertisement and tells their length."""
PACKET_LENGTH = 128
"""Code of the option that ends a packet and tells the length of its options."""
_CODES = frozenset(range(256))
TIR_OPTIONS: Registry[TirOption] = Registry(get_args(TirOption), UnknownOption, codes=_CODES - {TIR_LENGTH})
PACKET_OPTIONS: Registry[PacketOption] = Registry(get_args(PacketOption), UnknownOption, codes=_CODES - {PACKET_LENGTH})
TRANSPORTS: Registry[Transport] = Registry(get_args(Transport), UnknownTransport, codes=range(0x80))

OptionT = TypeVar("OptionT")


def pack_options(registry: Registry[OptionT], options: Iterable[OptionT]) -> bytes:
    """The options back to back, without the one that tells the length of them all."""
    packed = []
    for option in options:
        code, body = registry.pack(option)
        length = LEAD + len(body)
        if not MIN_LENGTH <= length <= MAX_LENGTH:
            raise WireError(f"option {code} of {length} bytes: an option has {MIN_LENGTH} to {MAX_LENGTH}")
        packed.append(bytes((code, length)) + body)
    return b"".join(packed)


def length_option(code: int, options: bytes) -> bytes:
    """The option that tells the length of these options and itself."""
    return LENGTH_OPTION.pack(code, LENGTH_OPTION.size, LENGTH_OPTION.size + len(options))


def unpack_options(registry: Registry[OptionT], octets: bytes) -> tuple[OptionT, ...]:
    """Decodes options that stand back to back; there is at least one, for an empty block is never announced."""
    options, position = [], 0
    while len(octets) - position >= MIN_LENGTH:
        code, length = octets[position], octets[position + 1]
        end = position + length
        if length < MIN_LENGTH or end > len(octets):
            raise WireError(f"option {code} cannot be {length} bytes long here")
        options.append(registry.unpack(code, octets[position + LEAD : end]))
        position = end
    if position < len(octets) or not options:
        raise WireError(f"{len(octets) - position} bytes stand where an option must")
    return tuple(options)


def pack_trailer(options: Iterable[PacketOption]) -> bytes:
    """What ends a packet that has options; empty if it has none."""
    octets = pack_options(PACKET_OPTIONS, options)
    return octets and octets + length_option(PACKET_LENGTH, octets)


def trailer_start(data: bytes, least: int) -> int:
    """Where the trailer of a packet starts, which is told at its end; behind the first `least` bytes."""
    end = len(data) - LENGTH_OPTION.size
    code, length, total = LENGTH_OPTION.unpack_from(data, end) if end > 0 else (0, 0, 0)
    start = len(data) - int(total)
    if code != PACKET_LENGTH or length != LENGTH_OPTION.size or not least <= start <= end:
        raise WireError("the packet does not end with the length of its options")
    return start
