"""The chained headers that linked routers send each other; `headers` has them in its union and its registry."""

from typing import ClassVar

import attrs

from stablecast.transports.wire import fields as f


@attrs.frozen(kw_only=True)
class TopicInterest(f.Coded, code=57):
    """TOPIC_INTEREST: a domain behind the sender has receivers of the topic, or no more."""

    CANCEL: ClassVar[int] = 0x4000
    flags: f.U16 = 0
    domain_id: f.U32


@attrs.frozen(kw_only=True)
class PatternInterest(f.Coded, code=58):
    """PATTERN_INTEREST: the same of a pattern; `type` is its language."""

    CANCEL: ClassVar[int] = 0x40
    flags: f.U8 = 0
    type: f.U8
    domain_id: f.U32
    index: f.I64 = 0


@attrs.frozen(kw_only=True)
class GatewayAdvertisement(f.Coded, code=59):
    """ADVERTISEMENT: a source that the sender repeats on the link, or its end."""

    EOS: ClassVar[int] = 0x40  # flags
    LATE_JOIN: ClassVar[int] = 0x8000_0000  # ad_flags
    UME: ClassVar[int] = 0x4000_0000
    flags: f.U8 = 0
    hop_count: f.U8
    ad_flags: f.U32
    cost: f.U32
    transport_idx: f.U32
    topic_idx: f.U32
    low_seqno: f.U32
    high_seqno: f.U32
    domain_id: f.U32
    pat_idx: f.I64
    ctxinst: f.Octets8


@attrs.frozen(kw_only=True)
class ContextInformation(f.Coded, code=64):
    """CTXINFO: the address of a context, or a question for it; its name fills the rest."""

    QUERY: ClassVar[int] = 0x4000
    ADDRESS: ClassVar[int] = 0x2000
    INSTANCE: ClassVar[int] = 0x1000
    NAME: ClassVar[int] = 0x0800
    flags: f.U16 = 0
    reserved: f.U8 = 0
    hop_count: f.U8
    port: f.U16
    addr: f.Ipv4
    domain_id: f.U32
    ctxinst: f.Octets8
    name: f.Rest


@attrs.frozen(kw_only=True)
class GatewayCapabilities(f.Coded, code=68):
    """TNWG_CAPABILITIES: the capabilities of the router; the lower 15 bits of `flags` are its version."""

    UME: ClassVar[int] = 0x8000_0000  # capabilities1
    PCRE: ClassVar[int] = 0x8000_0000  # capabilities3
    REGEX: ClassVar[int] = 0x4000_0000
    flags: f.U16
    capabilities1: f.U32
    capabilities2: f.U32
    capabilities3: f.U32
    capabilities4: f.U32


@attrs.frozen(kw_only=True)
class GatewayKeepalive(f.Coded, code=79):
    """TNWG_KA: a router asks its peer for a sign of life, or answers; the time is the sender's own."""

    QUERY: ClassVar[int] = 0x4000
    RESPONSE: ClassVar[int] = 0x2000
    flags: f.U16 = 0
    index: f.U32
    ts_seconds: f.U64
    ts_microseconds: f.U32
    reserved_1: f.U32 = 0
    reserved_2: f.U64 = 0
    reserved_3: f.U64 = 0
    reserved_4: f.U64 = 0
    reserved_5: f.U64 = 0
    reserved_6: f.U64 = 0


@attrs.frozen(kw_only=True)
class RouteInfo(f.Coded, code=86):
    """ROUTE_INFO: a router of the network; one ROUTE_INFO_NEIGHBOR follows for each of its neighbours."""

    flags: f.U16 = 0
    gateway_version: f.U32
    configuration_signature: f.U32
    node_id: f.U64
    topology: f.U32
    vers: f.U16
    sqn: f.U16
    ttl: f.U8
    reserved1: f.U8 = 0
    reserved2: f.U16 = 0


@attrs.frozen(kw_only=True)
class RouteNeighbor(f.Coded, code=87):
    """ROUTE_INFO_NEIGHBOR: a neighbour of a router, and the costs of the portal between."""

    flags: f.U16 = 0
    node_id: f.U64
    ingress_cost: f.U32
    egress_cost: f.U32


@attrs.frozen(kw_only=True)
class GatewayName(f.Coded, code=88):
    """GATEWAY_NAME: name of a router, with the NULs after it."""

    flags: f.U16 = 0
    gateway_name: f.Rest
