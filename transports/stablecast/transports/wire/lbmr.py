"""LBMR: the datagrams of topic resolution.

A packet is a header with counts, the queries, the advertisements (TIRs), and a trailer of options whose last four bytes
tell its length. Of the extended packets, the context information, which resolves the names of stores, and the request
that wakes what went quiet are read here; others are told from nonsense (`is_foreign`).
"""

import struct
from enum import IntEnum
from typing import ClassVar

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import dotted, octets_of, packed
from stablecast.transports.wire.options import (
    LENGTH_OPTION,
    PACKET_LENGTH,
    PACKET_OPTIONS,
    ContextInstance,
    Cost,
    DomainId,
    ExtendedFunctionality,
    LateJoin,
    LbtrmTransport,
    LbtruTransport,
    LocalDomain,
    OriginatingTransport,
    PacketOption,
    SourceId,
    SourceType,
    StoreContextInstance,
    TcpTransport,
    TirOption,
    Transport,
    Ume,
    UmeStore,
    UmeStoreGroup,
    UnknownOption,
    UnknownTransport,
    Version,
    length_option,
    pack_options,
    unpack_options,
)
from stablecast.transports.wire.records import (
    Advertisement,
    PatternType,
    Query,
    RecordReader,
    TopicQuery,
    WildcardQuery,
    encode_query,
    encode_tir,
)

__all__ = [
    "MAX_DATAGRAM",
    "RELEASE",
    "VERSION",
    "Advertisement",
    "AnyPacket",
    "ContextInfo",
    "ContextInstance",
    "Cost",
    "DomainId",
    "ExtendedFunctionality",
    "LateJoin",
    "LbtrmTransport",
    "LbtruTransport",
    "LocalDomain",
    "OriginatingTransport",
    "Packet",
    "PacketKind",
    "PacketOption",
    "PatternType",
    "Query",
    "ResolutionRequest",
    "SourceId",
    "SourceType",
    "StoreContextInstance",
    "TcpTransport",
    "TirOption",
    "TopicQuery",
    "Transport",
    "Ume",
    "UmeStore",
    "UmeStoreGroup",
    "UnknownOption",
    "UnknownTransport",
    "Version",
    "WildcardQuery",
    "decode",
    "encode",
    "is_foreign",
    "standard_options",
]

MAX_DATAGRAM = 8192
"""Bytes of a datagram (resolver_datagram_max_size)."""
VERSION = 1
"""The version that is sent; 0, of older releases, is read too."""
RELEASE = 0x060E0000
"""The release whose packets these are, 6.14.0.0, as the version option tells it."""
MAX_QUERIES = 255
MAX_ADVERTISEMENTS = 65_535

_HEADER = struct.Struct(">BBH")
_CONTEXT = struct.Struct(">BBBBHH4s8s")
_OPTIONS_PRESENT = 0x08
_KIND_MASK = 0x07
_EXTENDED = 7
_CONTEXT_INFO = 3
_REQUEST = 4
_FOREIGN_KINDS = (4, 5, 6)
_VERSIONS = (0, 1)


class PacketKind(IntEnum):
    """The kinds of plain packets. A NORMAL one without records is the resolver's keepalive."""

    NORMAL = 0
    WILDCARD = 1
    RECEIVER_ALIVE = 2
    SOURCE_ALIVE = 3


_KINDS = {int(kind): kind for kind in PacketKind}
_QUERIES = {PacketKind.NORMAL: TopicQuery, PacketKind.WILDCARD: WildcardQuery}
"""The queries that a packet of each kind holds; the other kinds hold no record at all."""


@attrs.frozen
class Packet:
    """A plain packet.

    Attributes:
        kind: A WILDCARD packet has wildcard queries, a NORMAL one topic queries, the others have no records.
        queries: At most `MAX_QUERIES`.
        advertisements: At most `MAX_ADVERTISEMENTS`.
        options: The trailer, without the option that tells its length.
        version: 0 or 1.
    """

    kind: PacketKind
    queries: tuple[Query, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


@attrs.frozen(kw_only=True)
class ContextInfo:
    """Asks for, or tells, where the context of a name is.

    Attributes:
        flags: All but `NAME`, which the name itself tells. Address and instance have their place without theirs.
        name: The name of a store, or None.
    """

    QUERY: ClassVar[int] = 0x8000
    ADDRESS: ClassVar[int] = 0x4000
    INSTANCE: ClassVar[int] = 0x2000
    GATEWAY_SOURCE: ClassVar[int] = 0x1000
    GATEWAY_RECEIVER: ClassVar[int] = 0x0800
    PROXY: ClassVar[int] = 0x0400
    NAME: ClassVar[int] = 0x0001
    flags: int
    hop_count: int = 0
    port: int = 0
    address: str = "0.0.0.0"  # noqa: S104  no address
    instance: bytes = bytes(8)
    name: str | None = None
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


@attrs.frozen(kw_only=True)
class ResolutionRequest:
    """Asks all contexts to speak again of what went quiet; `flags` tells of what."""

    ROUTER_INTEREST: ClassVar[int] = 0x40
    NAME_QUERIES: ClassVar[int] = 0x20
    NAMES: ClassVar[int] = 0x10
    ADVERTISEMENTS: ClassVar[int] = 0x04
    QUERIES: ClassVar[int] = 0x02
    PATTERN_QUERIES: ClassVar[int] = 0x01
    flags: int
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


AnyPacket = Packet | ContextInfo | ResolutionRequest
"""Everything that is read here."""


def standard_options(
    instance: bytes, source_type: int = SourceType.APPLICATION, release: int = RELEASE, domain: int = 0
) -> tuple[PacketOption, ...]:
    """The trailer that the product ends each packet with, 36 bytes; `instance` names the sender's context."""
    return (
        SourceId(source_id=instance),
        SourceType(source_type=source_type),
        Version(version=release),
        LocalDomain(domain=domain),
    )


def encode(packet: AnyPacket) -> bytes:
    """The datagram of a packet.

    Raises:
        WireError: If a field does not fit, if the records are not of the packet's kind, or if the datagram exceeds
            `MAX_DATAGRAM`.
    """
    if packet.version not in _VERSIONS:
        raise WireError(f"there is no version {packet.version}")
    lead = packet.version << 4 | (_OPTIONS_PRESENT if packet.options else 0)
    try:
        octets = _encode_body(packet, lead)
        if packet.options:
            trailer = pack_options(PACKET_OPTIONS, packet.options)
            octets += trailer + length_option(PACKET_LENGTH, trailer)
    except struct.error as error:
        raise WireError(f"a field of {type(packet).__name__} does not fit: {error}") from error
    if len(octets) > MAX_DATAGRAM:
        raise WireError(f"a datagram of {len(octets)} bytes exceeds {MAX_DATAGRAM}: send its records in several")
    return octets


def _encode_body(packet: AnyPacket, lead: int) -> bytes:
    match packet:
        case ContextInfo():
            return _encode_context(packet, lead)
        case ResolutionRequest():
            return _HEADER.pack(lead | _EXTENDED, _REQUEST, packet.flags)
        case _:
            return _encode_plain(packet, lead)


def _encode_context(info: ContextInfo, lead: int) -> bytes:
    if info.flags & ContextInfo.NAME:
        raise WireError("the flag for a name is told by the name")
    if len(info.instance) != 8:
        raise WireError(f"an instance has 8 bytes, not {len(info.instance)}")
    name = b"" if info.name is None else octets_of(info.name) + b"\0"
    flags = info.flags | (0 if info.name is None else ContextInfo.NAME)
    length = _CONTEXT.size + len(name)
    address = packed(info.address)
    fixed = _CONTEXT.pack(
        lead | _EXTENDED, _CONTEXT_INFO, length, info.hop_count, flags, info.port, address, info.instance
    )
    return fixed + name


def _encode_plain(packet: Packet, lead: int) -> bytes:
    queries, advertisements = packet.queries, packet.advertisements
    expected = _QUERIES.get(packet.kind)
    if not expected and (queries or advertisements):
        raise WireError(f"a packet of kind {packet.kind.name} has no records")
    if any(type(query) is not expected for query in queries):
        raise WireError(f"the queries do not belong into a packet of kind {packet.kind.name}")
    if len(queries) > MAX_QUERIES or len(advertisements) > MAX_ADVERTISEMENTS:
        raise WireError(f"{len(queries)} queries and {len(advertisements)} advertisements do not fit one packet")
    records = [_HEADER.pack(lead | packet.kind, len(queries), len(advertisements))]
    records += [encode_query(query) for query in queries]
    records += [encode_tir(tir) for tir in advertisements]
    return b"".join(records)


def decode(data: bytes) -> AnyPacket:
    """Decodes a datagram.

    Raises:
        WireError: If it is no whole packet of a kind that is known here, or if anything follows its last record.
    """
    version, end, options = _decode_frame(data)
    records = RecordReader(data, end)
    if data[0] & _KIND_MASK != _EXTENDED:
        packet: AnyPacket = _decode_plain(records, options, version)
    elif data[1] == _REQUEST:
        packet = ResolutionRequest(flags=records.fixed(_HEADER)[2], options=options, version=version)
    else:
        packet = _decode_context(records, options, version)
    records.finish()
    return packet


def is_foreign(data: bytes) -> bool:
    """Whether this is a packet, as far as can be told, of a kind that is not read here."""
    try:
        _decode_frame(data)
    except WireError:
        return False
    kind, extension = data[0] & _KIND_MASK, data[1]
    return kind in _FOREIGN_KINDS or (kind == _EXTENDED and extension not in (_CONTEXT_INFO, _REQUEST))


def _decode_frame(data: bytes) -> tuple[int, int, tuple[PacketOption, ...]]:
    """The version of a packet, where its records end, and its trailer."""
    if not _HEADER.size <= len(data) <= MAX_DATAGRAM:
        raise WireError(f"a datagram of {len(data)} bytes is no packet")
    version = data[0] >> 4
    if version not in _VERSIONS:
        raise WireError(f"version {version} is not {VERSION} or an older one")
    if not data[0] & _OPTIONS_PRESENT:
        return version, len(data), ()
    return version, *_decode_trailer(data)


def _decode_plain(records: RecordReader, options: tuple[PacketOption, ...], version: int) -> Packet:
    lead, queries, advertisements = records.fixed(_HEADER)
    kind = _KINDS.get(lead & _KIND_MASK)
    if kind is None or (kind not in _QUERIES and (queries or advertisements)):
        raise WireError(f"there is no packet of kind {lead & _KIND_MASK} with records")
    next_query = records.wildcard_query if kind is PacketKind.WILDCARD else records.topic_query
    return Packet(
        kind,
        tuple(next_query() for _ in range(queries)),
        tuple(records.advertisement() for _ in range(advertisements)),
        options,
        version,
    )


def _decode_trailer(data: bytes) -> tuple[int, tuple[PacketOption, ...]]:
    """Where the trailer starts, which is told at its end, and its options."""
    end = len(data) - LENGTH_OPTION.size
    code, length, total = LENGTH_OPTION.unpack_from(data, end)
    start = len(data) - total
    if code != PACKET_LENGTH or length != LENGTH_OPTION.size or not _HEADER.size <= start <= end:
        raise WireError("the packet does not end with the length of its options")
    return start, unpack_options(PACKET_OPTIONS, data[start:end])


def _decode_context(records: RecordReader, options: tuple[PacketOption, ...], version: int) -> ContextInfo:
    _, extension, length, hop_count, flags, port, address, instance = records.fixed(_CONTEXT)
    name = records.name() if flags & ContextInfo.NAME else None
    if extension != _CONTEXT_INFO or length != records.position:
        raise WireError(f"extended packet of type {extension} and {length} bytes is no context information")
    return ContextInfo(
        flags=flags & ~ContextInfo.NAME,
        hop_count=hop_count,
        port=port,
        address=dotted(address),
        instance=instance,
        name=name,
        options=options,
        version=version,
    )
