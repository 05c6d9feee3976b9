"""The chained headers of LBMC: their union and their registry; code that uses headers imports them from here."""

from typing import get_args

import attrs

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.fields import Registry
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
    "LEAD",
    "MAX_LENGTH",
    "MIN_LENGTH",
    "Ack",
    "AckId",
    "Batch",
    "Capability",
    "ClientLifetime",
    "CtxInst",
    "CtxInstD",
    "CtxInstR",
    "ElectionToken",
    "ExtendedOption",
    "Fragment",
    "Header",
    "Keepalive",
    "LjInfo",
    "LjiReq",
    "Otid",
    "Preg",
    "PregResp",
    "ProxyElection",
    "ProxySource",
    "RangedAck",
    "ReceiverKeepalive",
    "Request",
    "RxReq",
    "SourceIndex",
    "Sri",
    "SriReq",
    "Store",
    "StoreCtxInst",
    "StoreExt",
    "StoreGroup",
    "StoreId",
    "StoreName",
    "TcpSid",
    "TopicIdx",
    "TopicName",
    "TopicSourceExfunc",
    "Tsni",
    "UmeSessionId",
    "UnknownHeader",
    "pack",
    "unpack",
]

LEAD = 2
"""Bytes before the body of each header: code of the next one, own length."""
MIN_LENGTH = 4
MAX_LENGTH = 255
"""Bytes of a header, the lead included."""


@attrs.frozen
class UnknownHeader:
    """A header that is not declared here, kept by its length; `body` is all behind the lead."""

    code: int
    body: bytes


Header = (
    Ack
    | AckId
    | Batch
    | Capability
    | ClientLifetime
    | CtxInst
    | CtxInstD
    | CtxInstR
    | ElectionToken
    | ExtendedOption
    | Fragment
    | Keepalive
    | LjInfo
    | LjiReq
    | Otid
    | Preg
    | PregResp
    | ProxyElection
    | ProxySource
    | RangedAck
    | ReceiverKeepalive
    | Request
    | RxReq
    | SourceIndex
    | Sri
    | SriReq
    | Store
    | StoreCtxInst
    | StoreExt
    | StoreGroup
    | StoreId
    | StoreName
    | TcpSid
    | TopicIdx
    | TopicName
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
        WireError: If a field does not fit, or if the header has no length in `MIN_LENGTH`..`MAX_LENGTH`.
    """
    code, body = HEADERS.pack(header)
    if not MIN_LENGTH <= LEAD + len(body) <= MAX_LENGTH:
        raise WireError(
            f"{type(header).__name__} of {LEAD + len(body)} bytes: a header has {MIN_LENGTH} to {MAX_LENGTH}"
        )
    return code, body


def unpack(code: int, body: bytes) -> Header:
    """Decodes the body of the header that `code` announces.

    Raises:
        WireError: If the body has another size than the layout, or if there can be no such header.
    """
    return HEADERS.unpack(code, body)
