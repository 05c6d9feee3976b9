"""LBMC headers about messages, topics, contexts and late join; the fields have the names that dissectors show."""

from typing import ClassVar

import attrs

from stablecast.transports.wire.fields import U8, U16, U32, U64, Ipv4, Nuls, Octets8, Octets32, Pairs, Rest, Text


@attrs.frozen(kw_only=True)
class Fragment:
    """FRAG: a piece of a message of `len` bytes; the number of the first piece names the message."""

    CODE: ClassVar[int] = 1
    flags: U16 = 0
    first_sqn: U32
    offset: U32
    len: U32


@attrs.frozen(kw_only=True)
class Batch:
    """BATCH: where an explicit batch starts and ends."""

    CODE: ClassVar[int] = 2
    START: ClassVar[int] = 0x0002
    END: ClassVar[int] = 0x0001
    flags: U16 = 0


@attrs.frozen(kw_only=True)
class Request:
    """REQUEST: the message asks for a response to a request port."""

    CODE: ClassVar[int] = 4
    flags: U8 = 0
    transport: U8 = 0
    qidx: U32
    port: U16
    reserved: U16 = 0
    ipaddr: Ipv4


@attrs.frozen(kw_only=True)
class TopicName:
    """TOPICNAME: the name, and how many NULs follow it (none is needed)."""

    CODE: ClassVar[int] = 5
    flags: U16 = 0
    topic: Text
    nuls: Nuls = 0


@attrs.frozen(kw_only=True)
class Otid:
    """OTID: originating transport ID, compared as a whole."""

    CODE: ClassVar[int] = 11
    flags: U16 = 0
    otid: Octets32


@attrs.frozen(kw_only=True)
class CtxInstD:
    """CTXINSTD: context instance that the message is for."""

    CODE: ClassVar[int] = 12
    flags: U16 = 0
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class CtxInstR:
    """CTXINSTR: context instance to return to."""

    CODE: ClassVar[int] = 13
    flags: U16 = 0
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class SourceIndex:
    """SRCIDX: source index."""

    CODE: ClassVar[int] = 14
    flags: U16 = 0
    srcidx: U64


@attrs.frozen(kw_only=True)
class LjInfo:
    """LJ_INFO: the numbers that a source can send again, in answer to the request `qidx`."""

    CODE: ClassVar[int] = 30
    flags: U16 = 0
    low_seqnum: U32
    high_seqnum: U32
    qidx: U32


@attrs.frozen(kw_only=True)
class Tsni:
    """TSNI: pairs of a topic index and the highest number sent on it; the lower 15 bits of `flags` count them."""

    CODE: ClassVar[int] = 32
    MAX_RECORDS: ClassVar[int] = 31
    flags: U16
    records: Pairs

    @classmethod
    def of(cls, *records: tuple[int, int]) -> "Tsni":
        """A header with its count; at most `MAX_RECORDS` pairs have room in one."""
        return cls(flags=len(records), records=records)


@attrs.frozen(kw_only=True)
class CtxInst:
    """CTXINST: context instance of the sender."""

    CODE: ClassVar[int] = 66
    flags: U16 = 0
    ctxinst: Octets8


@attrs.frozen(kw_only=True)
class LjiReq:
    """LJI_REQ: late join information request; the flags say which of the last three fields are meant."""

    CODE: ClassVar[int] = 78
    LOW_SQN: ClassVar[int] = 0x0001
    RX_REQ_MAX: ClassVar[int] = 0x0002
    RX_REQ_OUTSTANDING_MAX: ClassVar[int] = 0x0004
    flags: U16 = 0
    request_idx: U32
    transport_idx: U32
    topic_idx: U32
    req_ip: Ipv4
    req_port: U16
    res: U16 = 0
    tx_low_sqn: U32 = 0
    rx_req_max: U32 = 0
    rx_req_outstanding_max: U32 = 0


@attrs.frozen(kw_only=True)
class TopicIdx:
    """TOPIC_IDX: topic index."""

    CODE: ClassVar[int] = 101
    flags: U8 = 0
    res: U8 = 0
    tidx: U32


@attrs.frozen(kw_only=True)
class TopicSourceExfunc:
    """TOPIC_SOURCE_EXFUNC: the request port of a source and what the source offers."""

    CODE: ClassVar[int] = 104
    LATE_JOIN: ClassVar[int] = 0x1
    UME: ClassVar[int] = 0x2
    UMQ: ClassVar[int] = 0x4
    ULB: ClassVar[int] = 0x8
    flags: U16 = 0
    src_ip: Ipv4
    src_port: U16
    unused: U16 = 0
    functionality_flags: U32


@attrs.frozen(kw_only=True)
class TcpSid:
    """TCP_SID: session ID of a TCP source, the same as in its advertisement; sent before its first data."""

    CODE: ClassVar[int] = 107
    flags: U16 = 0
    sid: U32


@attrs.frozen(kw_only=True)
class ExtendedOption:
    """EXTOPT: an option of a kind (`subtype`), in pieces where one header has no room for it."""

    CODE: ClassVar[int] = 254
    IGNORE: ClassVar[int] = 0x80  # who does not know the header, or the subtype, may ignore it
    IGNORE_SUBTYPE: ClassVar[int] = 0x40
    MORE_FRAGMENTS: ClassVar[int] = 0x20
    MAX_DATA: ClassVar[int] = 247
    flags: U8 = 0
    id: U8 = 0
    subtype: U16
    fragment_offset: U16 = 0
    data: Rest
