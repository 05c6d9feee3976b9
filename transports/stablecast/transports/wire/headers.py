"""The chained headers of LBMC: one declaration for each, their union, and the registry that finds them by code.

The fields have the names that dissectors show. Stablecast sends the headers of the first two sections. It only reads
the headers of the others, in captures.
"""

from typing import ClassVar, get_args

import attrs

from stablecast.transports.wire import fields as f
from stablecast.transports.wire.chained_headers import check_length
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.router_headers import (
    ContextInformation,
    GatewayAdvertisement,
    GatewayCapabilities,
    GatewayKeepalive,
    GatewayName,
    PatternInterest,
    RouteInfo,
    RouteNeighbor,
    TopicInterest,
)


@attrs.frozen(kw_only=True)
class _Flagged(f.Coded):
    """The first field of most headers."""

    flags: f.U16 = 0


@attrs.frozen(kw_only=True)
class _ShortFlagged(f.Coded):
    """The same in one byte."""

    flags: f.U8 = 0


# Messages, topics, contexts and late join.


@attrs.frozen(kw_only=True)
class Fragment(_Flagged, code=1):
    """FRAG: a piece of a message of `len` bytes; the number of the first piece identifies the message."""

    first_sqn: f.U32
    offset: f.U32
    len: f.U32


@attrs.frozen(kw_only=True)
class Batch(_Flagged, code=2):
    """BATCH: the start or the end of an explicit batch."""

    START: ClassVar[int] = 0x0002
    END: ClassVar[int] = 0x0001


Request = f.read_only(
    "Request", 4, flags=f.Spare(f.U8), transport=f.Spare(f.U8), qidx=f.U32, port=f.U16, reserved=f.Spare(f.U16),
    ipaddr=f.Ipv4,
)  # fmt: skip
"""REQUEST: the message asks for a response to a request port."""


@attrs.frozen(kw_only=True)
class TopicName(_Flagged, code=5):
    """TOPICNAME: the name, and the number of NULs after it (none is needed)."""

    topic: f.Text
    nuls: f.Nuls = 0


@attrs.frozen(kw_only=True)
class Otid(_Flagged, code=11):
    """OTID: originating transport ID, opaque."""

    otid: f.Octets32


@attrs.frozen(kw_only=True)
class CtxInstD(_Flagged, code=12):
    """CTXINSTD: context instance of the destination."""

    ctxinst: f.Octets8


CtxInstR = f.read_only("CtxInstR", 13, flags=f.Spare(f.U16), ctxinst=f.Octets8)
"""CTXINSTR: context instance to return the answer to."""


SourceIndex = f.read_only("SourceIndex", 14, flags=f.Spare(f.U16), srcidx=f.U64)
"""SRCIDX: index of a source on its transport."""


@attrs.frozen(kw_only=True)
class LjInfo(_Flagged, code=30):
    """LJ_INFO: the numbers that a source can send again, in answer to the request `qidx`."""

    low_seqnum: f.U32
    high_seqnum: f.U32
    qidx: f.U32


@attrs.frozen(kw_only=True)
class Tsni(f.Coded, code=32):
    """TSNI: pairs of a topic index and the highest number sent on it; the lower 15 bits of `flags` count them."""

    MAX_RECORDS: ClassVar[int] = 31
    flags: f.U16
    records: f.Pairs

    @classmethod
    def of(cls, *records: tuple[int, int]) -> "Tsni":
        """Return a header with its count; at most `MAX_RECORDS` pairs fit one header."""
        return cls(flags=len(records), records=records)


@attrs.frozen(kw_only=True)
class CtxInst(_Flagged, code=66):
    """CTXINST: context instance of the sender."""

    ctxinst: f.Octets8


@attrs.frozen(kw_only=True)
class LjiReq(_Flagged, code=78):
    """LJI_REQ: late join information request; the flags mark the valid ones of the last three fields."""

    request_idx: f.U32
    transport_idx: f.U32
    topic_idx: f.U32
    req_ip: f.Ipv4
    req_port: f.U16
    res: f.U16 = 0
    tx_low_sqn: f.U32 = 0
    rx_req_max: f.U32 = 0
    rx_req_outstanding_max: f.U32 = 0


@attrs.frozen(kw_only=True)
class TopicIdx(_ShortFlagged, code=101):
    """TOPIC_IDX: index of a topic on its transport."""

    res: f.U8 = 0
    tidx: f.U32


@attrs.frozen(kw_only=True)
class TopicSourceExfunc(_Flagged, code=104):
    """TOPIC_SOURCE_EXFUNC: the request port of a source and the services that the source offers."""

    LATE_JOIN: ClassVar[int] = 0x1
    UME: ClassVar[int] = 0x2
    UMQ: ClassVar[int] = 0x4
    src_ip: f.Ipv4
    src_port: f.U16
    unused: f.U16 = 0
    functionality_flags: f.U32


@attrs.frozen(kw_only=True)
class TcpSid(_Flagged, code=107):
    """TCP_SID: session ID of a TCP source, the same as in its advertisement; sent before its first data."""

    sid: f.U32


@attrs.frozen(kw_only=True)
class ExtendedOption(_ShortFlagged, code=254):
    """EXTOPT: an option of a kind (`subtype`), in several headers if it exceeds one."""

    IGNORE: ClassVar[int] = 0x80  # who does not know the header, or the subtype, may ignore it
    IGNORE_SUBTYPE: ClassVar[int] = 0x40
    MAX_DATA: ClassVar[int] = 247
    id: f.U8 = 0
    subtype: f.U16
    fragment_offset: f.U16 = 0
    data: f.Rest


# Persistence: registration, acknowledgement, recovery, liveness, stores, proxy election.


@attrs.frozen(kw_only=True)
class Preg(_ShortFlagged, code=18):
    """PREG: registration request to a store, which answers to `resp_ip:resp_port`."""

    PROXY_SOURCE: ClassVar[int] = 0x20
    RECEIVER_PACED: ClassVar[int] = 0x10
    DEREGISTER: ClassVar[int] = 0x08
    SOURCE: ClassVar[int] = 0x80  # in `marker`: a source registers
    MARKER_MASK: ClassVar[int] = 0x7F
    marker: f.U8 = 0
    reg_id: f.U32
    transport_idx: f.U32
    topic_idx: f.U32
    src_reg_id: f.U32 = 0
    resp_port: f.U16
    res2: f.U16 = 0
    resp_ip: f.Ipv4


@attrs.frozen(kw_only=True)
class PregResp(f.Coded, code=19):
    """PREG_RESP: answer to a registration; with `ERROR` the lower four bits of `code` are the reason instead."""

    OLD_CLIENT: ClassVar[int] = 0x40
    ERROR: ClassVar[int] = 0x20
    NO_ACKS: ClassVar[int] = 0x10
    RECEIVER_PACED: ClassVar[int] = 0x02
    DEREGISTER: ClassVar[int] = 0x01
    REASON_MASK: ClassVar[int] = 0x0F
    SOURCE: ClassVar[int] = 0x80  # in `marker`, as in the request
    MARKER_MASK: ClassVar[int] = 0x7F
    code: f.U8 = 0
    marker: f.U8 = 0
    reg_id: f.U32
    transport_idx: f.U32
    topic_idx: f.U32
    low_seqnum: f.U32
    high_seqnum: f.U32


@attrs.frozen(kw_only=True)
class Ack(_ShortFlagged, code=20):
    """ACK: `id_2` is the topic index from a store (STABLE), the source's registration ID from a receiver (CDELV).

    `NACK` is an extension of ours: a STABLE acknowledgement with it states that the store has lost the messages
    (P-441).
    """

    ARRIVAL_ORDER: ClassVar[int] = 0x40
    USER_REG_ID: ClassVar[int] = 0x10
    EXPLICIT: ClassVar[int] = 0x08
    NACK: ClassVar[int] = 0x04
    CDELV: ClassVar[int] = 0  # values of `type`
    STABLE: ClassVar[int] = 1
    type: f.U8
    transport_idx: f.U32
    id_2: f.U32
    rcv_reg_id: f.U32
    seqnum: f.U32


@attrs.frozen(kw_only=True)
class RxReq(_Flagged, code=21):
    """RXREQ: requests one message again, which is to be sent to `rx_ip:rx_port`."""

    TSNI: ClassVar[int] = 0x4000
    MARKER_MASK: ClassVar[int] = 0x00FF
    request_idx: f.U32
    transport_idx: f.U32
    id_2: f.U32
    seqnum: f.U32
    rx_port: f.U16
    res: f.U16 = 0
    rx_ip: f.Ipv4


@attrs.frozen(kw_only=True)
class Keepalive(_ShortFlagged, code=22):
    """KEEPALIVE: a client or a store is alive; `type` is its role."""

    RESPONSE_REQUESTED: ClassVar[int] = 0x40
    STORE: ClassVar[int] = 0  # values of `type`
    RECEIVER: ClassVar[int] = 1
    SOURCE: ClassVar[int] = 2
    type: f.U8
    transport_idx: f.U32
    topic_idx: f.U32
    reg_id: f.U32


@attrs.frozen(kw_only=True)
class StoreId(f.Coded, code=23):
    """STOREID: one store of a source, in the lower 15 bits of `flags`."""

    ID_MASK: ClassVar[int] = 0x7FFF
    flags: f.U16


@attrs.frozen(kw_only=True)
class RangedAck(_Flagged, code=24):
    """RANGED_ACK: the ACK before it acknowledges this whole inclusive range."""

    first_seqnum: f.U32
    last_seqnum: f.U32


AckId = f.read_only("AckId", 25, flags=f.Spare(f.U16), id=f.U32)
"""ACK_ID: number of an acknowledgement."""


@attrs.frozen(kw_only=True)
class Capability(_Flagged, code=26):
    """CAPABILITY: the capabilities of the sender."""

    QUORUM_CONSENSUS: ClassVar[int] = 0x4000
    CLIENT_LIFETIME: ClassVar[int] = 0x2000


@attrs.frozen(kw_only=True)
class ProxySource(_Flagged, code=27):
    """PROXY_SRC: the source wants a proxy after its end."""

    ENABLE: ClassVar[int] = 0x4000


@attrs.frozen(kw_only=True)
class StoreGroup(_ShortFlagged, code=28):
    """STORE_GROUP: a group of the source's stores and its size."""

    grp_idx: f.U8
    grp_sz: f.U16
    res1: f.U16 = 0


@attrs.frozen(kw_only=True)
class _StoreEntry(_ShortFlagged):
    grp_idx: f.U8
    store_tcp_port: f.U16
    store_idx: f.U16
    store_ip_addr: f.Ipv4
    src_reg_id: f.U32


@attrs.frozen(kw_only=True)
class Store(_StoreEntry, code=29):
    """STORE: a store of the source."""


StoreCtxInst = f.read_only("StoreCtxInst", 60, flags=f.Spare(f.U16), ctxinst=f.Octets8)
"""UME_CTXINSTS: context instance of a store."""


StoreName = f.read_only("StoreName", 61, flags=f.Spare(f.U16), store=f.Text, nuls=f.Spare(f.Nuls))
"""STORENAME: name of a store, and the number of NULs after it."""


@attrs.frozen(kw_only=True)
class ProxyElection(_Flagged, code=65):
    """PSER: election of a proxy source; the flags mark the valid instances, both of which always have their place."""

    source_ip: f.Ipv4
    store_ip: f.Ipv4
    transport_idx: f.U32
    topic_idx: f.U32
    source_port: f.U16
    store_port: f.U16
    source_ctxinst: f.Octets8 = bytes(8)
    store_ctxinst: f.Octets8 = bytes(8)


@attrs.frozen(kw_only=True)
class ClientLifetime(_Flagged, code=70):
    """CLIENT_LIFETIME: timeouts that the client requests, in milliseconds."""

    activity_tmo: f.U32
    lifetime: f.U32
    ttl: f.U32 = 0


@attrs.frozen(kw_only=True)
class UmeSessionId(_Flagged, code=71):
    """UME_SID: session ID of the registering client."""

    sid: f.U64


@attrs.frozen(kw_only=True)
class ReceiverKeepalive(_Flagged, code=80):
    """RCV_KEEPALIVE: a receiver informs the source that it is alive."""

    rcv_regid: f.U32
    session_id: f.U64
    ctxinst: f.Octets8


@attrs.frozen(kw_only=True)
class SriReq(_Flagged, code=83):
    """SRI_REQ: requests the registration information of a source."""

    transport_idx: f.U32
    topic_idx: f.U32


@attrs.frozen(kw_only=True)
class Sri(_Flagged, code=85):
    """SRI: source registration information; the stores follow as further headers."""

    ACK_TO_SOURCE: ClassVar[int] = 0x0001
    INITIAL_SQN_KNOWN: ClassVar[int] = 0x0002
    version: f.U32
    low_sqn: f.U32
    high_sqn: f.U32


@attrs.frozen(kw_only=True)
class StoreExt(_StoreEntry, code=105):
    """STORE_EXT: a store of the source, with its domain and the version of this entry."""

    domain_id: f.U32 = 0
    version: f.U32


@attrs.frozen(kw_only=True)
class ElectionToken(_ShortFlagged, code=106):
    """ELECTION_TOKEN: the bid of a store in a proxy election; the lowest token wins, then the lowest index."""

    store_index: f.U8
    token: f.U32


@attrs.frozen(kw_only=True)
class OriginatingDomain(_Flagged, code=74):
    """ODOMAIN: the domain in which a message originates."""

    domain: f.U32


@attrs.frozen(kw_only=True)
class Stream(_Flagged, code=75):
    """STREAM: the position of a message among those from one context to another in another domain."""

    stream_id: f.U32
    sqn: f.U32
    ctxinst: f.Octets8


@attrs.frozen(kw_only=True)
class Destination(_Flagged, code=100):
    """DESTINATION: destination and origin of a message, across domains."""

    domain_id: f.U32
    ipaddr: f.Ipv4
    port: f.U16
    hops_taken: f.U16 = 0
    orig_domain_id: f.U32
    orig_ipaddr: f.Ipv4
    orig_port: f.U16
    reserved: f.U16 = 0


# Applications, filters and domains.


@attrs.frozen(kw_only=True)
class ApplicationHeader(_Flagged, code=6):
    """APPHDR: bytes of the application, whose code is the lower 15 bits of `flags`."""

    data: f.Rest


@attrs.frozen(kw_only=True)
class ApplicationChain(f.Coded, code=7):
    """APPHDR_CHAIN: a chain of the application's elements; `elements` splits it.

    Attributes:
        first: Kind of the first element.
        chain: The elements, each a kind of the next element, a length, two reserved bytes, and data.
    """

    HOT_FAILOVER: ClassVar[int] = 2
    PROPERTIES: ClassVar[int] = 6
    NONE: ClassVar[int] = 255
    LEAD: ClassVar[int] = 4
    res: f.U8 = 0
    first: f.U8
    chain: f.Rest

    def elements(self) -> tuple[tuple[int, bytes], ...]:
        """Return kind and data of each element. Raises WireError if the chain does not fill its bytes exactly."""
        kind, at, found = self.first, 0, []
        while kind != self.NONE:
            lead = self.chain[at : at + self.LEAD]
            end = at + (lead[1] if len(lead) == self.LEAD else 0)
            if not at + self.LEAD < end <= len(self.chain):
                raise WireError(f"an element of kind {kind} does not fit its chain")
            found.append((kind, self.chain[at + self.LEAD : end]))
            kind, at = lead[0], end
        if at != len(self.chain):
            raise WireError(f"{len(self.chain) - at} bytes follow the last element")
        return tuple(found)

    @classmethod
    def of(cls, numbers: tuple[tuple[int, int], ...]) -> "ApplicationChain":
        """Return a chain of elements that hold one number of 32 bits each; `numbers` are kinds and numbers."""
        kinds = [*(kind for kind, _ in numbers), cls.NONE]
        elements = (
            bytes((following, cls.LEAD + 4, 0, 0)) + number.to_bytes(4)
            for following, (_, number) in zip(kinds[1:], numbers, strict=True)
        )
        return cls(first=kinds[0], chain=b"".join(elements))

    def properties_length(self) -> int:
        """Return the bytes of the message properties at the end of the payload. Raises WireError like `elements`."""
        return self._number(self.PROPERTIES, "the length of the message properties") or 0

    def hot_number(self) -> int | None:
        """Return the hot-failover number, None if there is none. Raises WireError like `elements`."""
        return self._number(self.HOT_FAILOVER, "a hot-failover number")

    def _number(self, wanted: int, what: str) -> int | None:
        found = [data for kind, data in self.elements() if kind == wanted]
        if any(len(data) != 4 for data in found):
            raise WireError(f"{what} has four bytes")
        return int.from_bytes(found[0]) if found else None


FilterInit = f.read_only(
    "FilterInit", 16, flags=f.Spare(f.U8), transport=f.Spare(f.U8), transport_idx=f.U32, client_idx=f.U32,
    ssf_port=f.U16, res=f.Spare(f.U16), ssf_ip=f.Ipv4,
)  # fmt: skip
"""SSF_INIT: a receiver opens source-side filtering."""


FilterRequest = f.read_only(
    "FilterRequest", 17, flags=f.Spare(f.U8), mode=f.U8, transport_idx=f.U32, topic_idx=f.U32, client_idx=f.U32
)
"""SSF_CREQ: a receiver includes or excludes a topic."""


Domain = f.read_only("Domain", 67, flags=f.Spare(f.U16), domain=f.U32)
"""DOMAIN: a routing domain."""


StoreDomain = f.read_only("StoreDomain", 84, flags=f.Spare(f.U16), domain=f.U32)
"""STORE_DOMAIN: the domain of a store."""


Authentication = f.read_only("Authentication", 96, flags=f.Spare(f.U8), opid=f.U8, blocks=f.Rest)
"""AUTH: a step of authentication: 1 request, 2 challenge, 3 answer, 4 result; `blocks` is opaque."""


Hmac = f.read_only("Hmac", 98, flags=f.Spare(f.U8), padding=f.Spare(f.U8), data=f.Octets20)
"""HMAC: a keyed hash of the message."""


# Gateways; those between linked routers are in `router_headers`.


PatternIndex = f.read_only("PatternIndex", 69, flags=f.Spare(f.U16), patidx=f.U64)
"""PATIDX: index of a pattern."""


TopicDomainInterest = f.read_only(
    "TopicDomainInterest",
    76,
    flags=f.Spare(f.U16),
    domain_count=f.U16,
    res1=f.Spare(f.U16),
    domains=f.Words,
)
"""TOPIC_MD_INTEREST: like TOPIC_INTEREST, for several domains."""


PatternDomainInterest = f.read_only(
    "PatternDomainInterest", 77, flags=f.Spare(f.U8), type=f.U8, domain_count=f.U16, res1=f.Spare(f.U16), index=f.I64,
    domains=f.Words,
)  # fmt: skip
"""PATTERN_MD_INTEREST: like PATTERN_INTEREST, for several domains."""


TopicSource = f.read_only("TopicSource", 103, flags=f.Spare(f.U16), domain_id=f.U32)
"""TOPIC_SOURCE: a source of a topic, or its end."""


@attrs.frozen
class UnknownHeader:
    """A header that is not declared here; `body` is all bytes after its lead."""

    code: int
    body: bytes


Header = (
    Ack | ApplicationChain | ApplicationHeader | Batch | Capability | ClientLifetime | ContextInformation | CtxInst |
    CtxInstD | Destination | ElectionToken | ExtendedOption | Fragment | GatewayAdvertisement | GatewayCapabilities |
    GatewayKeepalive | GatewayName | Keepalive | LjInfo | LjiReq | OriginatingDomain | Otid | PatternInterest | Preg |
    PregResp | ProxyElection | ProxySource | RangedAck | ReceiverKeepalive | RouteInfo | RouteNeighbor | RxReq | Sri |
    SriReq | Store | StoreExt | StoreGroup | StoreId | Stream | TcpSid | TopicIdx | TopicInterest | TopicName |
    TopicSourceExfunc | Tsni | UmeSessionId | UnknownHeader
)  # fmt: skip
"""The headers that stablecast sends or follows."""

READ_ONLY = (
    AckId, Authentication, CtxInstR, Domain, FilterInit, FilterRequest, Hmac, PatternDomainInterest, PatternIndex,
    Request, SourceIndex, StoreCtxInst, StoreDomain, StoreName, TopicDomainInterest, TopicSource
)  # fmt: skip
"""The other headers, which occur in captures."""

HEADERS: f.CodeSpace[Header] = f.CodeSpace((*get_args(Header), *READ_ONLY), UnknownHeader, codes=range(1, 255))
"""All headers by code. Codes 0 and 255 end a chain."""


def pack(header: Header) -> tuple[int, bytes]:
    """Return the code of a header and its body without the lead.

    Raises:
        WireError: If a field does not fit, or if the length of the header is out of range.
    """
    code, body = HEADERS.pack(header)
    check_length(header, body)
    return code, body


def unpack(code: int, body: bytes) -> Header:
    """Decode the body of the header that `code` announces.

    Raises:
        WireError: If the body has another size than the layout, or if the code is not allowed.
    """
    return HEADERS.unpack(code, body)
