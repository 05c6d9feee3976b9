"""LBMR packets of routers, their neighbours, monitors and old releases.

These are topic management (type 4) and the extended packets that `lbmr` does not decode. Routers ask with topic
management who uses a topic, and contexts answer and take leave; routers announce the domains that they reach. The
others occur in captures only. Packets between queues (type 6, extension 2) are not decoded.
"""

import struct
from collections.abc import Callable
from typing import ClassVar, assert_never

import attrs

from stablecast.transports.wire import fields as f
from stablecast.transports.wire import lbmr
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr_gateway import Gateway, decode_gateway, encode_gateway, split_records

VERSION = 1
MANAGEMENT, QUEUES, EXTENDED = 4, 6, 7
"""Types of packets."""
QUEUE_MANAGEMENT = 2
"""Extension of packets between queues."""

_LEAD, _INSTANCE = struct.Struct(">BB"), struct.Struct(">BB8s")
_TMB, _TMR = struct.Struct(">HH"), struct.Struct(">HBB")
_OPTIONS, _RECORD = struct.Struct(">HH"), struct.Struct(">HH")
_OPTIONS_PRESENT, _KIND_MASK = 0x08, 0x07


LEAVE, USE = 0, 1
"""Types of records of topic management."""


@attrs.frozen
class TopicRecord:
    """TMR: a question who uses a topic or a pattern, an answer to it, or the end of a use."""

    ANSWER: ClassVar[int] = 0x80  # flags
    PCRE: ClassVar[int] = 0x40
    REGEX: ClassVar[int] = 0x20
    type: int
    flags: int
    name: str

    @classmethod
    def of(cls, query: lbmr.Query, kind: int, flags: int = 0) -> "TopicRecord":
        """Return the record of this type about what a query asks for."""
        if isinstance(query, lbmr.TopicQuery):
            return cls(kind, flags, query.name)
        language = cls.REGEX if query.pattern_type == lbmr.PatternLanguage.REGEX else cls.PCRE
        return cls(kind, flags | language, query.pattern)

    @property
    def query(self) -> lbmr.Query:
        if self.flags & self.PCRE:
            return lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, self.name)
        if self.flags & self.REGEX:
            return lbmr.WildcardQuery(lbmr.PatternLanguage.REGEX, self.name)
        return lbmr.TopicQuery(self.name)

    @property
    def answers(self) -> bool:
        """Whether it is the answer to a question."""
        return bool(self.flags & self.ANSWER)

    @property
    def answer(self) -> "TopicRecord":
        return attrs.evolve(self, flags=self.flags | self.ANSWER)

    @property
    def octets(self) -> int:
        return _TMR.size + len(f.octets_of(self.name)) + 1


@attrs.frozen(kw_only=True)
class Management:
    """Topic management: a block of records. The counts of plain packets stand before it and have no meaning."""

    counts: tuple[int, int] = (0, 0)
    records: tuple[TopicRecord, ...]


@attrs.frozen(kw_only=True)
class _ElectionHead:
    dep_type: f.U16
    length: f.U16
    flags: f.U16
    source: f.Ipv4
    store: f.Ipv4
    transport_index: f.U32
    topic_index: f.U32
    source_port: f.U16
    store_port: f.U16
    rest: f.Rest


@attrs.frozen(kw_only=True)
class Election(f.Coded, code=1):
    """PSER: a proxy for a source is elected (`dep_type` 0) or elected again (1).

    Attributes:
        instances: Pairs of a type, 0 for the source and 1 for the store, and a context instance; empty without the flag
            for options.
    """

    OPTIONS: ClassVar[int] = 0x8000
    dep_type: int = 0
    flags: int = 0
    source: str
    store: str
    transport_index: int
    topic_index: int
    source_port: int
    store_port: int
    topic: str
    instances: tuple[tuple[int, bytes], ...] = ()


@attrs.frozen(kw_only=True)
class DomainRoute(f.Coded, code=6):
    """The domains that a gateway reaches."""

    count: f.U16
    address: f.Ipv4
    port: f.U16
    reserved: f.U16 = 0
    length: f.U32
    domains: f.Words


RemoteAddress = f.read_only(
    "RemoteAddress", 1, flags=f.U16, domain=f.U32, address=f.Ipv4, port=f.U16, reserved=f.Spare(f.U16)
)
"""Address of a context in another domain."""


RemoteInstance = f.read_only("RemoteInstance", 2, flags=f.U16, instance=f.Octets8)
"""Instance of a context in another domain."""


RemoteOrigin = f.read_only("RemoteOrigin", 3, flags=f.U16, domain=f.U32)
"""Domain of a context in another domain."""


RemoteName = f.read_only("RemoteName", 4, flags=f.U16, name=f.Rest)
"""Name of a context in another domain, with the NULs after it."""


_REMOTE_OPTIONS = (RemoteAddress, RemoteInstance, RemoteOrigin, RemoteName)
REMOTE_OPTIONS: f.CodeSpace[object] = f.CodeSpace(_REMOTE_OPTIONS, lbmr.UnknownOption, codes=range(1, 256))


@attrs.frozen
class RemoteRecord:
    """One context, or a request for it."""

    QUERY: ClassVar[int] = 0x8000
    flags: int
    options: tuple[object, ...]


@attrs.frozen(kw_only=True)
class _RemoteHead:
    length: f.U16
    count: f.U16
    reserved: f.U16
    rest: f.Rest


@attrs.frozen(kw_only=True)
class RemoteContexts(f.Coded, code=7):
    """Addresses of contexts, across domains."""

    length: int
    reserved: int = 0
    records: tuple[RemoteRecord, ...]

    @classmethod
    def of(cls, *records: RemoteRecord) -> "RemoteContexts":
        """Return a packet of these records, with its length."""
        packed = _encode_remote(cls(length=0, records=records))
        return cls(length=_LEAD.size + len(packed), records=records)


Body = Management | Election | Gateway | DomainRoute | RemoteContexts


@attrs.frozen
class Packet:
    body: Body
    options: tuple[lbmr.PacketOption, ...] = ()
    version: int = VERSION


_ELECTION, _ROUTE, _REMOTE = f.Layout(_ElectionHead), f.Layout(DomainRoute), f.Layout(_RemoteHead)


def is_queueing(data: bytes) -> bool:
    """Return whether a datagram is of the kinds for queues, which are not decoded."""
    kind = data[0] & _KIND_MASK
    return kind == QUEUES or (kind == EXTENDED and data[1] == QUEUE_MANAGEMENT)


def is_extended(data: bytes) -> bool:
    """Return whether this module decodes datagrams of this kind."""
    kind = data[0] & _KIND_MASK
    return kind == MANAGEMENT or (kind == EXTENDED and data[1] in _DECODERS)


def encode(packet: Packet) -> bytes:
    """Encode a packet. Raises WireError if a field does not fit."""
    lead = packet.version << 4 | (_OPTIONS_PRESENT if packet.options else 0)
    try:
        octets = _encode_body(packet.body, lead) + lbmr.pack_trailer(packet.options)
    except struct.error as error:
        raise WireError(f"a field of {type(packet.body).__name__} does not fit: {error}") from error
    return octets


def _encode_body(body: Body, lead: int) -> bytes:
    match body:
        case Management(counts=(queries, advertisements)):
            return struct.pack(">BBH", lead | MANAGEMENT, queries, advertisements) + _encode_records(body.records)
        case Election():
            octets = _encode_election(body)
        case Gateway():
            octets = encode_gateway(body)
        case DomainRoute():
            octets = _ROUTE.pack(body)
        case RemoteContexts():
            octets = _encode_remote(body)
        case _:
            assert_never(body)
    return _LEAD.pack(lead | EXTENDED, body.CODE) + octets


def _encode_records(records: tuple[TopicRecord, ...]) -> bytes:
    packed = []
    for record in records:
        name = f.octets_of(record.name) + b"\0"
        packed.append(_TMR.pack(_TMR.size + len(name), record.type, record.flags) + name)
    block = b"".join(packed)
    return _TMB.pack(_TMB.size + len(block), len(packed)) + block


def _encode_election(body: Election) -> bytes:
    topic = f.octets_of(body.topic) + b"\0"
    rest = topic
    if body.flags & Election.OPTIONS:
        instances = b"".join(_INSTANCE.pack(_INSTANCE.size, kind, instance) for kind, instance in body.instances)
        rest += _OPTIONS.pack(0, _OPTIONS.size + len(instances)) + instances
    shared = {name: getattr(body, name) for name in _ELECTION_FIELDS}
    head = _ElectionHead(length=_ELECTION_SIZE + len(topic), rest=rest, **shared)
    return _ELECTION.pack(head)


_ELECTION_FIELDS = tuple(field.name for field in attrs.fields(_ElectionHead) if field.name not in {"length", "rest"})
_ELECTION_SIZE = 28
"""Bytes of an election before its topic, with the two bytes of every packet but without its options."""


def _encode_remote(body: RemoteContexts) -> bytes:
    records = []
    for record in body.records:
        options = lbmr.pack_options(REMOTE_OPTIONS, record.options)
        records.append(_RECORD.pack(_RECORD.size + len(options), record.flags) + options)
    head = _RemoteHead(length=body.length, count=len(records), reserved=body.reserved, rest=b"".join(records))
    return _REMOTE.pack(head)


def decode(data: bytes) -> Packet:
    """Decode a datagram.

    Raises:
        WireError: If it is no whole packet of a kind that this module decodes.
    """
    if len(data) < _LEAD.size:
        raise WireError(f"a datagram of {len(data)} bytes is no packet")
    if not is_extended(data):
        raise WireError(f"type {data[0] & _KIND_MASK}, extension {data[1]} is not decoded here")
    end, options = len(data), tuple[lbmr.PacketOption, ...]()
    if data[0] & _OPTIONS_PRESENT:
        end = lbmr.trailer_start(data, _LEAD.size)
        options = lbmr.unpack_options(lbmr.PACKET_OPTIONS, data[end : -lbmr.LENGTH_OPTION.size])
    if data[0] & _KIND_MASK == MANAGEMENT:
        body: Body = _decode_management(data[1:end])
    else:
        body = _DECODERS[data[1]](data[_LEAD.size : end])
    return Packet(body, options, data[0] >> 4)


def _decode_management(octets: bytes) -> Management:
    start = 3 + _TMB.size  # behind the counts
    if len(octets) < start:
        raise WireError("topic management without its block")
    queries, advertisements, length, count = struct.unpack_from(">BHHH", octets)
    if length != len(octets) - start + _TMB.size:
        raise WireError(f"a block of {length} bytes does not fill its packet")
    found = split_records(octets[start:], count, _TMR)
    return Management(counts=(queries, advertisements), records=tuple(_topic_record(*fields) for fields in found))


def _topic_record(kind: int, flags: int, name: bytes) -> TopicRecord:
    if name.find(0) != len(name) - 1:
        raise WireError("a record of topic management does not end with its name")
    return TopicRecord(kind, flags, f.text_of(name[:-1]))


def _decode_election(octets: bytes) -> Election:
    head = _ELECTION.unpack(octets)
    topic, nul, rest = head.rest.partition(b"\0")
    if not nul or head.length != _ELECTION_SIZE + len(topic) + 1:
        raise WireError("an election does not end with its topic")
    instances = _take_instances(rest) if head.flags & Election.OPTIONS else ()
    if rest and not head.flags & Election.OPTIONS:
        raise WireError(f"{len(rest)} bytes follow an election")
    shared = {name: getattr(head, name) for name in _ELECTION_FIELDS}
    return Election(topic=f.text_of(topic), instances=instances, **shared)


def _take_instances(octets: bytes) -> tuple[tuple[int, bytes], ...]:
    block = octets[_OPTIONS.size :]
    if len(octets) < _OPTIONS.size or _OPTIONS.unpack_from(octets) != (0, len(octets)):
        raise WireError("the options of an election do not start with their length")
    if len(block) % _INSTANCE.size:
        raise WireError("an option of an election has ten bytes")
    found = []
    for length, kind, instance in _INSTANCE.iter_unpack(block):
        if length != _INSTANCE.size:
            raise WireError(f"an option of an election cannot be {length} bytes long")
        found.append((kind, instance))
    return tuple(found)


def _decode_remote(octets: bytes) -> RemoteContexts:
    head = _REMOTE.unpack(octets)
    found = split_records(head.rest, head.count, _RECORD)
    records = tuple(RemoteRecord(flags, lbmr.unpack_options(REMOTE_OPTIONS, options)) for flags, options in found)
    return RemoteContexts(length=head.length, reserved=head.reserved, records=records)


_DECODERS: dict[int, Callable[[bytes], Body]] = {
    Election.CODE: _decode_election,
    Gateway.CODE: decode_gateway,
    DomainRoute.CODE: _ROUTE.unpack,
    RemoteContexts.CODE: _decode_remote,
}
