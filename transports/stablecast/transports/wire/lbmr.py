"""LBMR: the datagrams of topic resolution.

A packet is a header with counts, the queries, the advertisements (TIRs), and a trailer of options whose last four bytes
tell its length. Of the extended packets, the context information, which resolves the names of stores, and the request
that wakes what went quiet are read here; others are told from nonsense (`is_foreign`).
"""

import struct

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import dotted, octets_of, packed
from stablecast.transports.wire.resolution_options import (
    LENGTH_OPTION,
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
    pack_trailer,
    trailer_start,
    unpack_options,
)
from stablecast.transports.wire.resolution_packets import (
    RELEASE,
    VERSION,
    AnyPacket,
    ContextInfo,
    Packet,
    PacketKind,
    Reading,
    ResolutionRequest,
    standard_options,
)
from stablecast.transports.wire.resolution_records import (
    Advertisement,
    MalformedRecordError,
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
    "Reading",
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
    "read",
    "standard_options",
]

MAX_DATAGRAM = 65_507
"""Bytes that UDP carries over IPv4; contexts agree on fewer (resolver_datagram_max_size)."""
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


_KINDS = {int(kind): kind for kind in PacketKind}
_QUERIES = {PacketKind.NORMAL: TopicQuery, PacketKind.WILDCARD: WildcardQuery}
"""The queries that a packet of each kind holds; the other kinds hold no record at all."""


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
        octets = _encode_body(packet, lead) + pack_trailer(packet.options)
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
    reading = read(data)
    if reading.fault:
        raise reading.fault
    return reading.packet


def read(data: bytes) -> Reading:
    """Decodes a datagram as far as it can be read.

    Of a plain packet, a malformed advertisement is left out; where a record does not end in time, those before it are
    what there is. A trailer that cannot be read has no options.

    Raises:
        WireError: If it is no packet of a kind that is known here, or no record of it can be read.
    """
    frame = _decode_frame(data)
    records = RecordReader(data, frame.end)
    if data[0] & _KIND_MASK != _EXTENDED:
        return _decode_plain(records, frame)
    if frame.fault:
        raise frame.fault
    if data[1] == _REQUEST:
        flags = records.fixed(_HEADER)[2]
        packet: AnyPacket = ResolutionRequest(flags=flags, options=frame.options, version=frame.version)
    else:
        packet = _decode_context(records, frame)
    records.finish()
    return Reading(packet)


def is_foreign(data: bytes) -> bool:
    """Whether this is a packet, as far as can be told, of a kind that is not read here."""
    try:
        frame = _decode_frame(data)
    except WireError:
        return False
    kind, extension = data[0] & _KIND_MASK, data[1]
    foreign = kind in _FOREIGN_KINDS or (kind == _EXTENDED and extension not in (_CONTEXT_INFO, _REQUEST))
    return foreign and frame.fault is None


@attrs.frozen
class _Frame:
    """What surrounds the records: they end at `end`; `fault` is that of the trailer."""

    version: int
    end: int
    options: tuple[PacketOption, ...] = ()
    fault: WireError | None = None


def _decode_frame(data: bytes) -> _Frame:
    if not _HEADER.size <= len(data) <= MAX_DATAGRAM:
        raise WireError(f"a datagram of {len(data)} bytes is no packet")
    version, end = data[0] >> 4, len(data)
    if version not in _VERSIONS:
        raise WireError(f"version {version} is not {VERSION} or an older one")
    if not data[0] & _OPTIONS_PRESENT:
        return _Frame(version, end)
    try:
        end = trailer_start(data, _HEADER.size)
        return _Frame(version, end, unpack_options(PACKET_OPTIONS, data[end : -LENGTH_OPTION.size]))
    except WireError as error:
        return _Frame(version, end, fault=error)


def _decode_plain(records: RecordReader, frame: _Frame) -> Reading:
    lead, queries, advertisements = records.fixed(_HEADER)
    kind = _KINDS.get(lead & _KIND_MASK)
    if kind is None or (kind not in _QUERIES and (queries or advertisements)):
        raise WireError(f"there is no packet of kind {lead & _KIND_MASK} with records")
    next_query = records.wildcard_query if kind is PacketKind.WILDCARD else records.topic_query
    asked: list[Query] = []
    told: list[Advertisement] = []
    fault = frame.fault
    try:
        asked.extend(next_query() for _ in range(queries))
        for _ in range(advertisements):
            try:
                told.append(records.advertisement())
            except MalformedRecordError as error:
                fault = fault or error
        records.finish()
    except WireError as error:
        fault = fault or error
    if fault and not asked and not told:
        raise fault
    packet = Packet(kind, tuple(asked), tuple(told), frame.options, frame.version)
    return Reading(packet, fault)


def _decode_context(records: RecordReader, frame: _Frame) -> ContextInfo:
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
        options=frame.options,
        version=frame.version,
    )
