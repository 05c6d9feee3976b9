"""LBMC headers that gateways speak to each other: what stablecast reads in captures and does not send."""

from typing import ClassVar

import attrs

from stablecast.transports.wire.fields import I64, U8, U16, U32, U64, Octets8, Rest, Words


@attrs.frozen(kw_only=True)
class TopicInterest:
    """TOPIC_INTEREST: somebody behind the gateway has receivers of the topic."""

    CODE: ClassVar[int] = 57
    flags: U16 = 0
    domain_id: U32


@attrs.frozen(kw_only=True)
class PatternInterest:
    """PATTERN_INTEREST: somebody behind the gateway has receivers of the pattern."""

    CODE: ClassVar[int] = 58
    flags: U8 = 0
    type: U8
    domain_id: U32
    index: I64


@attrs.frozen(kw_only=True)
class GatewayAdvertisement:
    """ADVERTISEMENT: a source behind the gateway."""

    CODE: ClassVar[int] = 59
    flags: U8 = 0
    hop_count: U8
    ad_flags: U32
    cost: U32
    transport_idx: U32
    topic_idx: U32
    low_seqno: U32
    high_seqno: U32
    domain_id: U32
    pat_idx: I64
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class GatewayCapabilities:
    """TNWG_CAPABILITIES: what the gateway can do; the lower 15 bits of `flags` are its version."""

    CODE: ClassVar[int] = 68
    flags: U16
    capabilities1: U32
    capabilities2: U32
    capabilities3: U32
    capabilities4: U32


@attrs.frozen(kw_only=True)
class PatternIndex:
    """PATIDX: index of a pattern."""

    CODE: ClassVar[int] = 69
    flags: U16 = 0
    patidx: U64


@attrs.frozen(kw_only=True)
class TopicDomainInterest:
    """TOPIC_MD_INTEREST: as TOPIC_INTEREST, for several domains."""

    CODE: ClassVar[int] = 76
    flags: U16 = 0
    domain_count: U16
    res1: U16 = 0
    domains: Words


@attrs.frozen(kw_only=True)
class PatternDomainInterest:
    """PATTERN_MD_INTEREST: as PATTERN_INTEREST, for several domains."""

    CODE: ClassVar[int] = 77
    flags: U8 = 0
    type: U8
    domain_count: U16
    res1: U16 = 0
    index: I64
    domains: Words


@attrs.frozen(kw_only=True)
class GatewayKeepalive:
    """TNWG_KA: a gateway asks whether its peer is there, or says that it is."""

    CODE: ClassVar[int] = 79
    flags: U16 = 0
    index: U32
    ts_seconds: U64
    ts_microseconds: U32
    reserved_1: U32 = 0
    reserved_2: U64 = 0
    reserved_3: U64 = 0
    reserved_4: U64 = 0
    reserved_5: U64 = 0
    reserved_6: U64 = 0


@attrs.frozen(kw_only=True)
class RouteInfo:
    """ROUTE_INFO: a gateway's place in the topology; ROUTE_INFO_NEIGHBOR follows for each peer."""

    CODE: ClassVar[int] = 86
    flags: U16 = 0
    gateway_version: U32
    configuration_signature: U32
    node_id: U64
    topology: U32
    vers: U16
    sqn: U16
    ttl: U8
    reserved1: U8 = 0
    reserved2: U16 = 0


@attrs.frozen(kw_only=True)
class RouteNeighbor:
    """ROUTE_INFO_NEIGHBOR: a peer of a gateway and what the way there costs."""

    CODE: ClassVar[int] = 87
    flags: U16 = 0
    node_id: U64
    ingress_cost: U32
    egress_cost: U32


@attrs.frozen(kw_only=True)
class GatewayName:
    """GATEWAY_NAME: name of a gateway, with the NULs that follow it."""

    CODE: ClassVar[int] = 88
    flags: U16 = 0
    gateway_name: Rest


@attrs.frozen(kw_only=True)
class TopicSource:
    """TOPIC_SOURCE: a source of a topic, or its end."""

    CODE: ClassVar[int] = 103
    flags: U16 = 0
    domain_id: U32
