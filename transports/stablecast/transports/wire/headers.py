"""The chained headers of LBMC: their union and their registry; code that uses headers imports them from here."""

from typing import get_args

import attrs

from stablecast.transports.wire.chained_headers import check_length
from stablecast.transports.wire.context_headers import (
    ApplicationChain,
    ApplicationHeader,
    Authentication,
    ContextInformation,
    Destination,
    Domain,
    FilterInit,
    FilterRequest,
    Hmac,
    OriginatingDomain,
    StoreDomain,
    Stream,
)
from stablecast.transports.wire.fields import Registry
from stablecast.transports.wire.gateway_headers import (
    GatewayAdvertisement,
    GatewayCapabilities,
    GatewayKeepalive,
    GatewayName,
    PatternDomainInterest,
    PatternIndex,
    PatternInterest,
    RouteInfo,
    RouteNeighbor,
    TopicDomainInterest,
    TopicInterest,
    TopicSource,
)
from stablecast.transports.wire.persistence_headers import (
    Ack,
    AckId,
    Capability,
    ClientLifetime,
    ElectionToken,
    Keepalive,
    Preg,
    PregResp,
    ProxyElection,
    ProxySource,
    RangedAck,
    ReceiverKeepalive,
    RxReq,
    Sri,
    SriReq,
    Store,
    StoreCtxInst,
    StoreExt,
    StoreGroup,
    StoreId,
    StoreName,
    UmeSessionId,
)
from stablecast.transports.wire.topic_headers import (
    Batch,
    CtxInst,
    CtxInstD,
    CtxInstR,
    ExtendedOption,
    Fragment,
    LjInfo,
    LjiReq,
    Otid,
    Request,
    SourceIndex,
    TcpSid,
    TopicIdx,
    TopicName,
    TopicSourceExfunc,
    Tsni,
)

__all__ = [
    "HEADERS",
    "Ack",
    "AckId",
    "ApplicationChain",
    "ApplicationHeader",
    "Authentication",
    "Batch",
    "Capability",
    "ClientLifetime",
    "ContextInformation",
    "CtxInst",
    "CtxInstD",
    "CtxInstR",
    "Destination",
    "Domain",
    "ElectionToken",
    "ExtendedOption",
    "FilterInit",
    "FilterRequest",
    "Fragment",
    "GatewayAdvertisement",
    "GatewayCapabilities",
    "GatewayKeepalive",
    "GatewayName",
    "Header",
    "Hmac",
    "Keepalive",
    "LjInfo",
    "LjiReq",
    "OriginatingDomain",
    "Otid",
    "PatternDomainInterest",
    "PatternIndex",
    "PatternInterest",
    "Preg",
    "PregResp",
    "ProxyElection",
    "ProxySource",
    "RangedAck",
    "ReceiverKeepalive",
    "Request",
    "RouteInfo",
    "RouteNeighbor",
    "RxReq",
    "SourceIndex",
    "Sri",
    "SriReq",
    "Store",
    "StoreCtxInst",
    "StoreDomain",
    "StoreExt",
    "StoreGroup",
    "StoreId",
    "StoreName",
    "Stream",
    "TcpSid",
    "TopicDomainInterest",
    "TopicIdx",
    "TopicInterest",
    "TopicName",
    "TopicSource",
    "TopicSourceExfunc",
    "Tsni",
    "UmeSessionId",
    "UnknownHeader",
    "pack",
    "unpack",
]


@attrs.frozen
class UnknownHeader:
    """A header that is not declared here, kept by its length; `body` is all behind the lead."""

    code: int
    body: bytes


Header = (
    Ack
    | AckId
    | ApplicationChain
    | ApplicationHeader
    | Authentication
    | Batch
    | Capability
    | ClientLifetime
    | ContextInformation
    | CtxInst
    | CtxInstD
    | CtxInstR
    | Destination
    | Domain
    | ElectionToken
    | ExtendedOption
    | FilterInit
    | FilterRequest
    | Fragment
    | GatewayAdvertisement
    | GatewayCapabilities
    | GatewayKeepalive
    | GatewayName
    | Hmac
    | Keepalive
    | LjInfo
    | LjiReq
    | OriginatingDomain
    | Otid
    | PatternDomainInterest
    | PatternIndex
    | PatternInterest
    | Preg
    | PregResp
    | ProxyElection
    | ProxySource
    | RangedAck
    | ReceiverKeepalive
    | Request
    | RouteInfo
    | RouteNeighbor
    | RxReq
    | SourceIndex
    | Sri
    | SriReq
    | Store
    | StoreCtxInst
    | StoreDomain
    | StoreExt
    | StoreGroup
    | StoreId
    | StoreName
    | Stream
    | TcpSid
    | TopicDomainInterest
    | TopicIdx
    | TopicInterest
    | TopicName
    | TopicSource
    | TopicSourceExfunc
    | Tsni
    | UmeSessionId
    | UnknownHeader
)

HEADERS: Registry[Header] = Registry(get_args(Header), UnknownHeader, codes=range(1, 255))
"""Codes 0 and 255 end a chain."""


def pack(header: Header) -> tuple[int, bytes]:
    """Encodes one header: its code, and its body without the lead.

    Raises:
        WireError: If a field does not fit, or if there is no header of its length.
    """
    code, body = HEADERS.pack(header)
    check_length(header, body)
    return code, body


def unpack(code: int, body: bytes) -> Header:
    """Decodes the body of the header that `code` announces.

    Raises:
        WireError: If the body has another size than the layout, or if there can be no such header.
    """
    return HEADERS.unpack(code, body)
