"""LBMR: the datagrams of topic resolution.

A packet is a header with counts, the queries, the advertisements (TIRs), and a trailer of options. The last four bytes
of the trailer hold its length. This module decodes two extended packets: the context information, which resolves the
names of stores, and the request that wakes quiet contexts. `is_foreign` recognises the other extended packets.

The observed product sets the Ignore bit in every option, so the bit is the default here.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, ClassVar, TypeVar, assert_never, get_args

import attrs

from stablecast.transports.wire import fields as f
from stablecast.transports.wire.chained_headers import LEAD, MIN_LENGTH, check_length
from stablecast.transports.wire.errors import WireError

# Options and transports.


@attrs.frozen(kw_only=True)
class _Optional(f.Coded):
    """The first field of most options."""

    flags: f.U16 = f.IGNORE


@attrs.frozen(kw_only=True)
class _ShortOptional(f.Coded):
    """The same in one byte."""

    flags: f.U8 = f.IGNORE_SHORT


@attrs.frozen(kw_only=True)
class Ume(_Optional, code=1):
    """The source is persistent. The option holds its first store, for old receivers."""

    LATE_JOIN: ClassVar[int] = 0x4000
    STORES: ClassVar[int] = 0x2000
    QUORUM_CONSENSUS: ClassVar[int] = 0x1000
    ACK_TO_SOURCE: ClassVar[int] = 0x0800
    store_port: f.U16
    source_port: f.U16
    store_address: f.Ipv4
    source_address: f.Ipv4
    source_reg_id: f.U32
    transport_index: f.U32
    high_sqn: f.U32
    low_sqn: f.U32


@attrs.frozen(kw_only=True)
class UmeStore(_ShortOptional, code=2):
    """A store of the persistent source."""

    group_index: f.U8
    store_port: f.U16
    store_index: f.U16
    store_address: f.Ipv4
    source_reg_id: f.U32


UmeStoreGroup = f.read_only(
    "UmeStoreGroup",
    3,
    flags=f.Spare(f.U8, f.IGNORE_SHORT),
    group_index=f.U8,
    group_size=f.U16,
    reserved=f.Spare(f.U16),
)
"""A group of the source's stores, and its size."""


@attrs.frozen(kw_only=True)
class LateJoin(_Optional, code=4):
    """The source can send the messages `low_sqn` to `high_sqn` again."""

    ACK_TO_SOURCE: ClassVar[int] = 0x4000
    source_port: f.U16
    reserved: f.U16 = 0
    source_address: f.Ipv4
    transport_index: f.U32
    high_sqn: f.U32
    low_sqn: f.U32


@attrs.frozen(kw_only=True)
class Cost(_ShortOptional, code=7):
    """The distance of the source through gateways: their number, and the sum of their costs."""

    hop_count: f.U8
    cost: f.I32


@attrs.frozen(kw_only=True)
class OriginatingTransport(_Optional, code=8):
    """The transport at the source's own end, opaque."""

    otid: f.Octets32


@attrs.frozen(kw_only=True)
class ContextInstance(_ShortOptional, code=9):
    """Instance of the source's context."""

    index: f.U8 = 0
    instance: f.Octets8


StoreContextInstance = f.read_only(
    "StoreContextInstance", 10, flags=f.Spare(f.U8, f.IGNORE_SHORT), store_index=f.U8, instance=f.Octets8
)
"""Instance of a store's context."""


@attrs.frozen(kw_only=True)
class DomainId(_Optional, code=13):
    """Routing domain of the source."""

    domain: f.U32


@attrs.frozen(kw_only=True)
class ExtendedFunctionality(_Optional, code=14):
    """Request port of the source's context, and the services that the source offers; sent for every source."""

    LATE_JOIN: ClassVar[int] = 0x1
    UME: ClassVar[int] = 0x2
    UMQ: ClassVar[int] = 0x4
    source_port: f.U16
    reserved: f.U16 = 0
    source_address: f.Ipv4
    functionality: f.U32


@attrs.frozen(kw_only=True)
class SourceId(_Optional, code=129):
    """Context instance of the sender of the packet."""

    source_id: f.Octets8


@attrs.frozen(kw_only=True)
class SourceType(_ShortOptional, code=130):
    """The type of the sender of the packet: application, gateway or store."""

    APPLICATION: ClassVar[int] = 0
    GATEWAY: ClassVar[int] = 1
    STORE: ClassVar[int] = 2
    source_type: f.U8


@attrs.frozen(kw_only=True)
class Version(f.Coded, code=131):
    """Release of the sender: one byte each of major, minor, service, patch."""

    UME: ClassVar[int] = 0x0001
    UMQ: ClassVar[int] = 0x0002
    flags: f.U16 = f.IGNORE | 0x0001
    version: f.U32


@attrs.frozen(kw_only=True)
class LocalDomain(_Optional, code=132):
    """Domain of the sender; 0 without gateways."""

    domain: f.U32


@attrs.frozen
class _UnicastTransport(f.Coded):
    """The address at which a source listens; old sources have no session ID."""

    address: f.Ipv4
    session_id: f.OptionalU32
    port: f.U16


@attrs.frozen
class TcpTransport(_UnicastTransport, code=0x00):
    """The address at which a TCP source listens."""


@attrs.frozen
class LbtruTransport(_UnicastTransport, code=0x01):
    """The address at which an LBT-RU source listens."""


@attrs.frozen
class LbtrmTransport(f.Coded, code=0x10):
    """The session of an LBT-RM source: its group, and its unicast port for NAKs."""

    source_address: f.Ipv4
    group: f.Ipv4
    session_id: f.U32
    destination_port: f.U16
    nak_port: f.U16


@attrs.frozen
class UnknownOption:
    """An option that is not declared here; `body` is all bytes after its lead."""

    code: int
    body: bytes


@attrs.frozen
class UnknownTransport:
    """A transport that is not declared here, as bytes."""

    code: int
    body: bytes


TirOption = (
    ContextInstance | Cost | DomainId | ExtendedFunctionality | LateJoin | OriginatingTransport | Ume | UmeStore
    | UnknownOption
)  # fmt: skip
"""The options of an advertisement that stablecast sends or follows."""
_READ_ONLY = (StoreContextInstance, UmeStoreGroup)
PacketOption = LocalDomain | SourceId | SourceType | Version | UnknownOption
Transport = LbtrmTransport | LbtruTransport | TcpTransport | UnknownTransport

LENGTH_OPTION = struct.Struct(">BBH")
"""The option that holds the length of an options block, itself included."""
TIR_LENGTH = 0
"""Code of the option that starts the options of an advertisement and holds their length."""
PACKET_LENGTH = 128
"""Code of the option that ends a packet and holds the length of its options."""
_CODES = frozenset(range(256))
TIR_OPTIONS: f.CodeSpace[TirOption] = f.CodeSpace(
    (*get_args(TirOption), *_READ_ONLY), UnknownOption, codes=_CODES - {TIR_LENGTH}
)
PACKET_OPTIONS: f.CodeSpace[PacketOption] = f.CodeSpace(
    get_args(PacketOption), UnknownOption, codes=_CODES - {PACKET_LENGTH}
)
TRANSPORTS: f.CodeSpace[Transport] = f.CodeSpace(get_args(Transport), UnknownTransport, codes=range(0x80))

OptionT = TypeVar("OptionT")


def pack_options(registry: f.CodeSpace[OptionT], options: Iterable[OptionT]) -> bytes:
    """Return the bytes of the options, back to back, without the option that holds their length."""
    packed = []
    for option in options:
        code, body = registry.pack(option)
        check_length(option, body)
        packed.append(bytes((code, LEAD + len(body))) + body)
    return b"".join(packed)


def length_option(code: int, options: bytes) -> bytes:
    """Return the option that holds the length of these options and of itself."""
    return LENGTH_OPTION.pack(code, LENGTH_OPTION.size, LENGTH_OPTION.size + len(options))


def unpack_options(registry: f.CodeSpace[OptionT], octets: bytes) -> tuple[OptionT, ...]:
    """Decode options that stand back to back. Raises WireError if there is none: an empty block is not announced."""
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
    """Return the trailer of a packet with these options; empty if there are none."""
    octets = pack_options(PACKET_OPTIONS, options)
    return octets and octets + length_option(PACKET_LENGTH, octets)


def trailer_start(data: bytes, least: int) -> int:
    """Return the start of a packet's trailer, whose length is its last field.

    Raises:
        WireError: If there is no trailer, or if it starts in the first `least` bytes.
    """
    end = len(data) - LENGTH_OPTION.size
    code, length, total = LENGTH_OPTION.unpack_from(data, end) if end > 0 else (0, 0, 0)
    start = len(data) - int(total)
    if code != PACKET_LENGTH or length != LENGTH_OPTION.size or not least <= start <= end:
        raise WireError("the packet does not end with the length of its options")
    return start


# Records.

SHORT_PACKET = 512
"""Length in bytes of the longest packets that are remembered. Longer ones have many records, and rarely the same."""

REMEMBERED_PACKETS = 256
"""Packets that are remembered."""

_TIR = struct.Struct(">BBHI")
_TRANSPORT_OPTIONS = 0x80
_TRANSPORT_MASK = 0x7F


class MalformedRecordError(WireError):
    """The content of a record is malformed, but the record ends where it should. The next records can be decoded."""


class PatternLanguage(IntEnum):
    PCRE = 1
    REGEX = 2


@attrs.frozen
class TopicQuery:
    """Requests the sources of one topic (TQR)."""

    name: str


@attrs.frozen
class WildcardQuery:
    """Requests the sources of all topics that match (WC-TQR)."""

    pattern_type: int
    pattern: str


Query = TopicQuery | WildcardQuery


@attrs.frozen
class Advertisement:
    """A source of a topic (TIR).

    Attributes:
        name: The topic.
        transport: The transport of its data.
        ttl: Seconds, as far as is known; 16 is observed in the first advertisement of a topic, 60 in later ones.
        index: Index of the topic on the transport, 32 bits.
        options: All options but the one that holds their length.
    """

    name: str
    transport: Transport
    ttl: int
    index: int
    options: tuple[TirOption, ...] = ()


def encode_query(query: Query) -> bytes:
    """Return the bytes of a query. Raises WireError."""
    match query:
        case TopicQuery(name):
            return f.octets_of(name) + b"\0"
        case WildcardQuery(pattern_type, pattern):
            return struct.pack(">B", pattern_type) + f.octets_of(pattern) + b"\0"
        case _:
            assert_never(query)


def encode_tir(tir: Advertisement) -> bytes:
    """Return the bytes of an advertisement. Raises WireError."""
    code, block = TRANSPORTS.pack(tir.transport)
    options = pack_options(TIR_OPTIONS, tir.options)
    if options:
        code |= _TRANSPORT_OPTIONS
        options = length_option(TIR_LENGTH, options) + options
    return f.octets_of(tir.name) + b"\0" + _TIR.pack(code, len(block), tir.ttl, tir.index) + options + block


class LbmrRecordReader:
    """Reads a packet record by record, from its start to `end`. Raises WireError for a record that exceeds `end`."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        self._end = end
        self.position = 0

    def octets(self, size: int) -> bytes:
        start = self.position
        if size > self._end - start:
            raise WireError(f"{size} bytes are announced where {self._end - start} are left")
        self.position = start + size
        return self._data[start : self.position]

    def fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next fields of fixed size."""
        return layout.unpack(self.octets(layout.size))

    def name(self) -> str:
        """Return the next name, without its NUL."""
        stop = self._data.find(b"\0", self.position, self._end)
        if stop < 0:
            raise WireError("a name has no end")
        name = f.text_of(self._data[self.position : stop])
        self.position = stop + 1
        return name

    def topic_query(self) -> Query:
        return TopicQuery(self.name())

    def wildcard_query(self) -> Query:
        return WildcardQuery(self.octets(1)[0], self.name())

    def advertisement(self) -> Advertisement:
        """Return the next record as an advertisement. Raises MalformedRecordError if only this record is malformed."""
        name = self.name()
        code, length, ttl, index = self.fixed(_TIR)
        options = self._options() if code & _TRANSPORT_OPTIONS else None
        block = self.octets(length)
        try:
            transport = TRANSPORTS.unpack(code & _TRANSPORT_MASK, block)
            return Advertisement(
                name, transport, ttl, index, () if options is None else unpack_options(TIR_OPTIONS, options)
            )
        except WireError as error:
            raise MalformedRecordError(f"the advertisement of {name!r}: {error}") from error

    def _options(self) -> bytes:
        code, length, total = self.fixed(LENGTH_OPTION)
        if code != TIR_LENGTH or length != LENGTH_OPTION.size or total < LENGTH_OPTION.size:
            raise WireError("the options of an advertisement do not start with their length")
        return self.octets(total - LENGTH_OPTION.size)

    def finish(self) -> None:
        """Raise WireError unless the last record ended at `end`."""
        if self.position != self._end:
            raise WireError(f"{self._end - self.position} bytes follow the last record")


# Packets.

VERSION = 1
"""The version that is sent. Version 0, of older releases, is decoded too."""
RELEASE = 0x060E0000
"""The release whose packets these are, 6.14.0.0, in the form of the version option."""


class PacketKind(IntEnum):
    """The kinds of plain packets. A NORMAL packet without records is the resolver's keepalive."""

    NORMAL = 0
    WILDCARD = 1
    RECEIVER_ALIVE = 2
    SOURCE_ALIVE = 3


@attrs.frozen
class Packet:
    """A plain packet.

    Attributes:
        kind: A WILDCARD packet has wildcard queries, a NORMAL packet has topic queries, other kinds have no records.
        queries: At most `MAX_QUERIES`.
        advertisements: At most `MAX_ADVERTISEMENTS`.
        options: The trailer, without the option that holds its length.
        version: 0 or 1.
    """

    kind: PacketKind
    queries: tuple[Query, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


@attrs.frozen(kw_only=True)
class ContextInfo:
    """The address of the context with a name, or a request for it.

    Attributes:
        flags: All flags but `NAME`, which follows from `name`. Address and instance are always present, even without
            their flags.
        name: The name of a store, or None.
    """

    QUERY: ClassVar[int] = 0x8000
    ADDRESS: ClassVar[int] = 0x4000
    INSTANCE: ClassVar[int] = 0x2000
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
    """Requests all contexts to repeat what they have stopped sending; `flags` selects the kinds of records."""

    NAME_QUERIES: ClassVar[int] = 0x20
    NAMES: ClassVar[int] = 0x10
    ADVERTISEMENTS: ClassVar[int] = 0x04
    QUERIES: ClassVar[int] = 0x02
    PATTERN_QUERIES: ClassVar[int] = 0x01
    flags: int
    options: tuple[PacketOption, ...] = ()
    version: int = VERSION


AnyPacket = Packet | ContextInfo | ResolutionRequest
"""All packets that this module decodes."""


@attrs.frozen
class DecodedPacket:
    """The decodable part of a datagram, and its first fault; None for a whole packet."""

    packet: AnyPacket
    fault: WireError | None = None


def standard_options(
    instance: bytes, source_type: int = SourceType.APPLICATION, release: int = RELEASE, domain: int = 0
) -> tuple[PacketOption, ...]:
    """Return the trailer that the product ends each packet with, 36 bytes; `instance` names the sender's context."""
    return (
        SourceId(source_id=instance),
        SourceType(source_type=source_type),
        Version(version=release),
        LocalDomain(domain=domain),
    )


# Encoding and decoding.

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
"""The class of the queries in a packet of each kind. Other kinds hold no records."""


def encode(packet: AnyPacket) -> bytes:
    """Encode a packet.

    Raises:
        WireError: If a field does not fit, if the records do not belong to the kind of the packet, or if the datagram
            exceeds `MAX_DATAGRAM`.
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
    name = b"" if info.name is None else f.octets_of(info.name) + b"\0"
    flags = info.flags | (0 if info.name is None else ContextInfo.NAME)
    length = _CONTEXT.size + len(name)
    address = f.packed(info.address)
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
    """Decode a datagram.

    Raises:
        WireError: If it is no whole packet of a known kind, or if bytes follow its last record.
    """
    reading = decode_partly(data)
    if reading.fault:
        raise reading.fault
    return reading.packet


def decode_partly(data: bytes) -> DecodedPacket:
    """Decode as much of a datagram as possible. The newest short ones are remembered: contexts repeat themselves.

    In a plain packet, a malformed advertisement is skipped. If a record exceeds the packet, only the records before it
    are
    returned. A malformed trailer yields no options.

    Raises:
        WireError: If the datagram is no packet of a known kind, or if no record of it can be decoded.
    """
    return _remembered(data) if len(data) <= SHORT_PACKET else _decode_anew(data)


def _decode_anew(data: bytes) -> DecodedPacket:
    frame = _decode_frame(data)
    records = LbmrRecordReader(data, frame.end)
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
    return DecodedPacket(packet)


_remembered = lru_cache(REMEMBERED_PACKETS)(_decode_anew)


def is_foreign(data: bytes) -> bool:
    """Return whether the datagram looks like a packet of a kind that this module does not decode."""
    try:
        frame = _decode_frame(data)
    except WireError:
        return False
    kind, extension = data[0] & _KIND_MASK, data[1]
    foreign = kind in _FOREIGN_KINDS or (kind == _EXTENDED and extension not in (_CONTEXT_INFO, _REQUEST))
    return foreign and frame.fault is None


@attrs.frozen
class _Frame:
    """The version and the trailer around the records, which end at `end`; `fault` is that of the trailer."""

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


def _decode_plain(records: LbmrRecordReader, frame: _Frame) -> DecodedPacket:
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
    return DecodedPacket(packet, fault)


def _decode_context(records: LbmrRecordReader, frame: _Frame) -> ContextInfo:
    _, extension, length, hop_count, flags, port, address, instance = records.fixed(_CONTEXT)
    name = records.name() if flags & ContextInfo.NAME else None
    if extension != _CONTEXT_INFO or length != records.position:
        raise WireError(f"extended packet of type {extension} and {length} bytes is no context information")
    return ContextInfo(
        flags=flags & ~ContextInfo.NAME,
        hop_count=hop_count,
        port=port,
        address=f.dotted(address),
        instance=instance,
        name=name,
        options=frame.options,
        version=frame.version,
    )
