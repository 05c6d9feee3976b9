"""LBMC headers of persistence: registration, acknowledgement, recovery, liveness, stores, proxy election."""

from typing import ClassVar

import attrs

from stablecast.transports.wire.fields import U8, U16, U32, U64, Ipv4, Nuls, Octets8, Text


@attrs.frozen(kw_only=True)
class Preg:
    """PREG: registration request, to a store; its answer goes to `resp_ip:resp_port`."""

    CODE: ClassVar[int] = 18
    NO_ACK_FORWARDING: ClassVar[int] = 0x40
    PROXY_SOURCE: ClassVar[int] = 0x20
    RECEIVER_PACED: ClassVar[int] = 0x10
    DEREGISTER: ClassVar[int] = 0x08
    SOURCE: ClassVar[int] = 0x80  # in `marker`: a source registers
    MARKER_MASK: ClassVar[int] = 0x7F
    flags: U8 = 0
    marker: U8 = 0
    reg_id: U32
    transport_idx: U32
    topic_idx: U32
    src_reg_id: U32 = 0
    resp_port: U16
    res2: U16 = 0
    resp_ip: Ipv4


@attrs.frozen(kw_only=True)
class PregResp:
    """PREG_RESP: answer to a registration; with `ERROR` the lower four bits of `code` are the reason instead."""

    CODE: ClassVar[int] = 19
    OLD_CLIENT: ClassVar[int] = 0x40
    ERROR: ClassVar[int] = 0x20
    NO_ACKS: ClassVar[int] = 0x10
    RECEIVER_PACED: ClassVar[int] = 0x02
    DEREGISTER: ClassVar[int] = 0x01
    REASON_MASK: ClassVar[int] = 0x0F
    SOURCE: ClassVar[int] = 0x80  # in `marker`, as in the request
    MARKER_MASK: ClassVar[int] = 0x7F
    code: U8 = 0
    marker: U8 = 0
    reg_id: U32
    transport_idx: U32
    topic_idx: U32
    low_seqnum: U32
    high_seqnum: U32


@attrs.frozen(kw_only=True)
class Ack:
    """ACK: `id_2` is the topic index from a store (STABLE), the source's registration ID from a receiver (CDELV).

    `NACK` is ours: a STABLE acknowledgement with it says that the messages are lost at the store (P-441).
    """

    CODE: ClassVar[int] = 20
    ARRIVAL_ORDER: ClassVar[int] = 0x40
    NO_ACK_FORWARDING: ClassVar[int] = 0x20
    USER_REG_ID: ClassVar[int] = 0x10
    EXPLICIT: ClassVar[int] = 0x08
    NACK: ClassVar[int] = 0x04
    CDELV: ClassVar[int] = 0  # values of `type`
    STABLE: ClassVar[int] = 1
    flags: U8 = 0
    type: U8
    transport_idx: U32
    id_2: U32
    rcv_reg_id: U32
    seqnum: U32


@attrs.frozen(kw_only=True)
class RxReq:
    """RXREQ: asks for one message again, to be sent to `rx_ip:rx_port`."""

    CODE: ClassVar[int] = 21
    TSNI: ClassVar[int] = 0x4000
    MARKER_MASK: ClassVar[int] = 0x00FF
    flags: U16 = 0
    request_idx: U32
    transport_idx: U32
    id_2: U32
    seqnum: U32
    rx_port: U16
    res: U16 = 0
    rx_ip: Ipv4


@attrs.frozen(kw_only=True)
class Keepalive:
    """KEEPALIVE: a client or a store is alive; `type` says who."""

    CODE: ClassVar[int] = 22
    RESPONSE_REQUESTED: ClassVar[int] = 0x40
    NO_TIR_SEEN: ClassVar[int] = 0x20
    STORE: ClassVar[int] = 0  # values of `type`
    RECEIVER: ClassVar[int] = 1
    SOURCE: ClassVar[int] = 2
    flags: U8 = 0
    type: U8
    transport_idx: U32
    topic_idx: U32
    reg_id: U32


@attrs.frozen(kw_only=True)
class StoreId:
    """STOREID: which of a source's stores is meant, in the lower 15 bits of `flags`."""

    CODE: ClassVar[int] = 23
    ID_MASK: ClassVar[int] = 0x7FFF
    flags: U16


@attrs.frozen(kw_only=True)
class RangedAck:
    """RANGED_ACK: the ACK before it acknowledges all of this inclusive range."""

    CODE: ClassVar[int] = 24
    flags: U16 = 0
    first_seqnum: U32
    last_seqnum: U32


@attrs.frozen(kw_only=True)
class AckId:
    """ACK_ID: number of an acknowledgement."""

    CODE: ClassVar[int] = 25
    flags: U16 = 0
    id: U32


@attrs.frozen(kw_only=True)
class Capability:
    """CAPABILITY: what the sender can do."""

    CODE: ClassVar[int] = 26
    QUORUM_CONSENSUS: ClassVar[int] = 0x4000
    CLIENT_LIFETIME: ClassVar[int] = 0x2000
    flags: U16 = 0


@attrs.frozen(kw_only=True)
class ProxySource:
    """PROXY_SRC: the source wants a proxy when it is gone."""

    CODE: ClassVar[int] = 27
    ENABLE: ClassVar[int] = 0x4000
    COMPATIBLE: ClassVar[int] = 0x2000
    flags: U16 = 0


@attrs.frozen(kw_only=True)
class StoreGroup:
    """STORE_GROUP: a group of the source's stores and its size."""

    CODE: ClassVar[int] = 28
    flags: U8 = 0
    grp_idx: U8
    grp_sz: U16
    res1: U16 = 0


@attrs.frozen(kw_only=True)
class Store:
    """STORE: a store of the source."""

    CODE: ClassVar[int] = 29
    flags: U8 = 0
    grp_idx: U8
    store_tcp_port: U16
    store_idx: U16
    store_ip_addr: Ipv4
    src_reg_id: U32


@attrs.frozen(kw_only=True)
class StoreCtxInst:
    """UME_CTXINSTS: context instance of a store."""

    CODE: ClassVar[int] = 60
    flags: U16 = 0
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class StoreName:
    """STORENAME: name of a store, and how many NULs follow it."""

    CODE: ClassVar[int] = 61
    flags: U16 = 0
    store: Text
    nuls: Nuls = 0


@attrs.frozen(kw_only=True)
class ProxyElection:
    """PSER: election of a proxy source; the flags say which instances are meant, both have their place always."""

    CODE: ClassVar[int] = 65
    SOURCE_INSTANCE: ClassVar[int] = 0x4000
    STORE_INSTANCE: ClassVar[int] = 0x2000
    REELECTION: ClassVar[int] = 0x1000
    flags: U16 = 0
    source_ip: Ipv4
    store_ip: Ipv4
    transport_idx: U32
    topic_idx: U32
    source_port: U16
    store_port: U16
    source_ctxinst: Octets8 = bytes(8)
    store_ctxinst: Octets8 = bytes(8)


@attrs.frozen(kw_only=True)
class ClientLifetime:
    """CLIENT_LIFETIME: timeouts that the client asks for, in milliseconds."""

    CODE: ClassVar[int] = 70
    flags: U16 = 0
    activity_tmo: U32
    lifetime: U32
    ttl: U32 = 0


@attrs.frozen(kw_only=True)
class UmeSessionId:
    """UME_SID: session ID of the registering client."""

    CODE: ClassVar[int] = 71
    flags: U16 = 0
    sid: U64


@attrs.frozen(kw_only=True)
class ReceiverKeepalive:
    """RCV_KEEPALIVE: a receiver tells the source that it is alive."""

    CODE: ClassVar[int] = 80
    flags: U16 = 0
    rcv_regid: U32
    session_id: U64
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class SriReq:
    """SRI_REQ: asks a source for its registration information."""

    CODE: ClassVar[int] = 83
    flags: U16 = 0
    transport_idx: U32
    topic_idx: U32


@attrs.frozen(kw_only=True)
class Sri:
    """SRI: source registration information; the stores follow as further headers."""

    CODE: ClassVar[int] = 85
    ACK_TO_SOURCE: ClassVar[int] = 0x0001
    INITIAL_SQN_KNOWN: ClassVar[int] = 0x0002
    flags: U16 = 0
    version: U32
    low_sqn: U32
    high_sqn: U32


@attrs.frozen(kw_only=True)
class StoreExt:
    """STORE_EXT: a store of the source, with its domain and the version of this entry."""

    CODE: ClassVar[int] = 105
    flags: U8 = 0
    grp_idx: U8
    store_tcp_port: U16
    store_idx: U16
    store_ip_addr: Ipv4
    src_reg_id: U32
    domain_id: U32 = 0
    version: U32


@attrs.frozen(kw_only=True)
class ElectionToken:
    """ELECTION_TOKEN: what a store throws into a proxy election; the lowest wins, then the lowest index."""

    CODE: ClassVar[int] = 106
    flags: U8 = 0
    store_index: U8
    token: U32
