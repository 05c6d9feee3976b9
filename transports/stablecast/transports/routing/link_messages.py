"""What two linked routers tell each other, from and to control messages. `spec/wire.md` has the order and the forms.

A link is a stream like that of LBT-TCP. Messages of sources and single contexts pass it as they are; this is the rest.
"""

import struct
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MICROSECOND, SECOND
from stablecast.transports.codec.extended_options import encode_option, find_option
from stablecast.transports.codec.identity import find
from stablecast.transports.codec.places import split
from stablecast.transports.resolution.records import SourceRecord, check_topic
from stablecast.transports.routing.network_map import MAX_DOMAIN, Neighbour, NodeRecord
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr
from stablecast.transports.wire import router_headers as r
from stablecast.transports.wire.chained_headers import LEAD, MAX_LENGTH
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import name_of, octets_of

VERSION = 1
"""The version of what is told on a link."""

LOST = 0x5359
"""Subtype of a destination at which messages may be lost."""

PATHS = 0x5357
"""Subtype of the names of paths."""

DIGEST = 0x5358
"""Subtype of the digest of all that was told."""

MAX_PATHS = 1_000
"""Domains in one message of names of paths."""

MAX_SYMBOL_BYTES = MAX_LENGTH - LEAD - 2
"""Bytes of a topic or a pattern in one header."""

MAX_ROUTER_NAME_BYTES = 200
"""Bytes of the name of a router on a link; the rest is cut."""

_PATH = struct.Struct(">IQ")
_DIGEST = struct.Struct(">IQQ")
_LOST = struct.Struct(">I4sH")
_NO_INSTANCE = bytes(8)
NOWHERE = "0.0.0.0", 0  # noqa: S104 - no address, in a question
_KEPT_TTL = 100
"""Routers that a record passes (documented). A record that is known goes no further, so nothing counts it down."""


@attrs.frozen
class Hello:
    """The first message of either side: who it is."""

    node: int
    name: str


@attrs.frozen
class PathsTold:
    """Domains, each with the name of the sender's path from it; 0: it has none."""

    names: tuple[tuple[int, int], ...]


@attrs.frozen
class InterestTold:
    """A domain behind the sender wants a symbol, or no more."""

    query: lbmr.Query
    domain: int
    on: bool


@attrs.frozen
class SourceTold:
    """A source that the sender repeats on the link under the index of the record, or no more."""

    topic: str
    record: SourceRecord
    on: bool


@attrs.frozen
class Digest:
    """What the sender has told up to here: the signature of its map, and sums of its interest and its sources."""

    signature: int
    interest: int
    sources: int


@attrs.frozen
class SignOfLife:
    """A question for a sign of life, with a digest, or the answer; `at` is the time of the question, in ns."""

    asks: bool
    number: int
    at: int
    digest: Digest | None = None


@attrs.frozen
class NameTold:
    """A question for the store of this name, on behalf of a domain, or where it is in a domain."""

    name: str
    domain: int
    asks: bool
    address: tuple[str, int] = NOWHERE
    instance: bytes = _NO_INSTANCE


@attrs.frozen
class MessageLost:
    """Messages to an address of a domain may be lost, or, without one, to all of the domain."""

    domain: int
    address: str


LinkMessage = Hello | NodeRecord | PathsTold | InterestTold | SourceTold | SignOfLife | NameTold | MessageLost


def encode(message: LinkMessage, signature: int = 0) -> bytes:
    """Return the bytes of a message; `signature` is that of the sender's map. Raises WireError if it does not fit."""
    return lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=tuple(_headers(message, signature))))


def paths(names: Iterable[tuple[int, int]]) -> Iterator[PathsTold]:
    """Yield the messages that tell the names of paths."""
    told = tuple(names)
    for first in range(0, len(told), MAX_PATHS):
        yield PathsTold(told[first : first + MAX_PATHS])


def _headers(message: LinkMessage, signature: int) -> Iterator[h.Header]:
    match message:
        case Hello(node, name):
            languages = r.GatewayCapabilities.PCRE | r.GatewayCapabilities.REGEX
            yield r.GatewayCapabilities(
                flags=VERSION,
                capabilities1=r.GatewayCapabilities.UME,
                capabilities2=0,
                capabilities3=languages,
                capabilities4=0,
            )
            yield _route(node, 0, signature)
            yield _name(name)
        case NodeRecord(node, name, generation, neighbours):
            yield _route(node, generation, signature)
            for one in neighbours:
                yield r.RouteNeighbor(node_id=one.node, ingress_cost=one.cost_in, egress_cost=one.cost_out)
            yield _name(name)
        case PathsTold(names):
            yield from encode_option(PATHS, b"".join(_PATH.pack(*one) for one in names))
        case InterestTold(lbmr.TopicQuery(name), domain, on):
            yield r.TopicInterest(flags=0 if on else r.TopicInterest.CANCEL, domain_id=domain)
            yield h.TopicName(topic=name)
        case InterestTold(lbmr.WildcardQuery(kind, pattern), domain, on):
            yield r.PatternInterest(flags=0 if on else r.PatternInterest.CANCEL, type=kind, domain_id=domain)
            yield h.TopicName(topic=pattern)
        case SourceTold():
            yield from _source(message)
        case SignOfLife(asks, number, at, digest):
            kind = r.GatewayKeepalive.QUERY if asks else r.GatewayKeepalive.RESPONSE
            seconds, rest = divmod(at, SECOND)
            yield r.GatewayKeepalive(flags=kind, index=number, ts_seconds=seconds, ts_microseconds=rest // MICROSECOND)
            if digest is not None:
                yield from encode_option(DIGEST, _DIGEST.pack(digest.signature, digest.interest, digest.sources))
        case MessageLost(domain, address):
            host, port = split(address) if address else NOWHERE
            yield from encode_option(LOST, _LOST.pack(domain, IPv4Address(host).packed, port))
        case NameTold(name, domain, asks, (host, port), instance):
            info = r.ContextInformation
            yield info(
                flags=info.NAME | (info.QUERY if asks else info.ADDRESS | info.INSTANCE),
                hop_count=0,
                port=port,
                addr=host,
                domain_id=domain,
                ctxinst=instance,
                name=octets_of(name) + b"\0",
            )


def _route(node: int, generation: int, signature: int) -> r.RouteInfo:
    return r.RouteInfo(
        gateway_version=generation,
        configuration_signature=0,
        node_id=node,
        topology=signature,
        vers=VERSION,
        sqn=generation & 0xFFFF,
        ttl=_KEPT_TTL,
    )


def _name(name: str) -> r.GatewayName:
    return r.GatewayName(gateway_name=octets_of(name)[:MAX_ROUTER_NAME_BYTES] + b"\0")


def _source(told: SourceTold) -> Iterator[h.Header]:
    record = told.record
    late, kept = (r.GatewayAdvertisement.LATE_JOIN, r.GatewayAdvertisement.UME) if record.persistent else (0, 0)
    yield r.GatewayAdvertisement(
        flags=0 if told.on else r.GatewayAdvertisement.EOS,
        hop_count=record.hops,
        ad_flags=late | kept,
        cost=record.cost,
        transport_idx=record.session_id,
        topic_idx=record.index,
        low_seqno=0,
        high_seqno=0,
        domain_id=record.domain,
        pat_idx=0,
        ctxinst=record.instance or _NO_INSTANCE,
    )
    yield h.TopicName(topic=told.topic)
    yield h.Otid(otid=record.origin)
    if record.request_address:
        host, port = split(record.request_address)
        offered = h.TopicSourceExfunc.LATE_JOIN | h.TopicSourceExfunc.UME if record.persistent else 0
        yield h.TopicSourceExfunc(src_ip=host, src_port=port, functionality_flags=offered)


def decode(message: lbmc.Message) -> LinkMessage | None:
    """Return what a control message tells on a link; None for one of a source or an unknown kind. Raises WireError."""
    if message.kind != lbmc.MessageKind.CONTROL:
        return None
    match message.headers[0]:
        case r.GatewayCapabilities():
            return Hello(_node(message), _router_name(message))
        case r.RouteInfo(gateway_version=generation):
            beside = tuple(
                Neighbour(one.node_id, one.ingress_cost, one.egress_cost)
                for one in message.headers
                if isinstance(one, r.RouteNeighbor)
            )
            if any(not one.node or not one.cost_in or not one.cost_out for one in beside):
                raise WireError("a neighbour without a number, or a portal without a cost")
            return NodeRecord(_node(message), _router_name(message), generation, beside)
        case r.TopicInterest(flags=flags, domain_id=domain):
            return InterestTold(lbmr.TopicQuery(_symbol(message)), _domain(domain), not flags & r.TopicInterest.CANCEL)
        case r.PatternInterest(flags=flags, type=kind, domain_id=domain):
            query = lbmr.WildcardQuery(kind, _symbol(message))
            return InterestTold(query, _domain(domain), not flags & r.PatternInterest.CANCEL)
        case r.GatewayAdvertisement() as told:
            return _source_told(message, told)
        case r.GatewayKeepalive() as sign:
            data = find_option(message, DIGEST)
            if data and len(data) != _DIGEST.size:
                raise WireError(f"a digest cannot have {len(data)} bytes")
            at = sign.ts_seconds * SECOND + sign.ts_microseconds * MICROSECOND
            digest = Digest(*_DIGEST.unpack(data)) if data else None
            return SignOfLife(bool(sign.flags & r.GatewayKeepalive.QUERY), sign.index, at, digest)
        case r.ContextInformation() as info:
            asks = bool(info.flags & r.ContextInformation.QUERY)
            return NameTold(name_of(info.name), _domain(info.domain_id), asks, (info.addr, info.port), info.ctxinst)
        case h.ExtendedOption(subtype=subtype) if subtype == LOST:
            data = find_option(message, LOST)
            if len(data) != _LOST.size:
                raise WireError(f"a destination cannot have {len(data)} bytes")
            domain, host, port = _LOST.unpack(data)
            return MessageLost(_domain(domain), f"{IPv4Address(host)}:{port}" if port else "")
        case h.ExtendedOption(subtype=subtype) if subtype == PATHS:
            data = find_option(message, PATHS)
            if len(data) % _PATH.size:
                raise WireError(f"names of paths cannot have {len(data)} bytes")
            return PathsTold(tuple((domain, name) for domain, name in _PATH.iter_unpack(data)))
        case _:
            return None


def _source_told(message: lbmc.Message, told: r.GatewayAdvertisement) -> SourceTold:
    origin, place = find(message, h.Otid), find(message, h.TopicSourceExfunc)
    if origin is None:
        raise WireError("a source without an identity")
    topic = _symbol(message)
    try:
        check_topic(topic)
    except MisuseError as error:
        raise WireError(str(error)) from error
    record = SourceRecord(
        "",
        told.transport_idx,
        told.topic_idx,
        "" if place is None else f"{place.src_ip}:{place.src_port}",
        bool(told.ad_flags & r.GatewayAdvertisement.UME),
        b"" if told.ctxinst == _NO_INSTANCE else told.ctxinst,
        origin.otid,
        told.cost,
        told.hop_count,
        _domain(told.domain_id),
    )
    return SourceTold(topic, record, not told.flags & r.GatewayAdvertisement.EOS)


def _node(message: lbmc.Message) -> int:
    route = find(message, r.RouteInfo)
    if route is None or route.node_id <= MAX_DOMAIN:
        raise WireError("a router without a node of its own")
    return route.node_id


def _router_name(message: lbmc.Message) -> str:
    found = find(message, r.GatewayName)
    return "" if found is None else name_of(found.gateway_name)


def _symbol(message: lbmc.Message) -> str:
    found = find(message, h.TopicName)
    if found is None or not found.topic:
        raise WireError("interest or a source without a topic")
    return found.topic


def _domain(number: int) -> int:
    if not number:
        raise WireError("a domain without a number")
    return number
