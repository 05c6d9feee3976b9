"""Every declared header, one by one: the union, the registry and the layouts agree."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import headers as h
from stablecast.transports.wire import router_headers as r
from stablecast.transports.wire.chained_headers import LEAD, MAX_LENGTH
from stablecast.transports.wire.errors import WireError
from tests.support.layouts import HEADERS, records, sample

SIZES = {
    h.Fragment: 16, h.Batch: 4, h.Request: 16, h.Otid: 36, h.CtxInstD: 12, h.CtxInstR: 12, h.SourceIndex: 12,
    h.Preg: 28, h.PregResp: 24, h.Ack: 20, h.RxReq: 28, h.Keepalive: 16, h.StoreId: 4, h.RangedAck: 12, h.AckId: 8,
    h.Capability: 4, h.ProxySource: 4, h.StoreGroup: 8, h.Store: 16, h.LjInfo: 16, h.StoreCtxInst: 12,
    h.ProxyElection: 40, h.CtxInst: 12, h.ClientLifetime: 16, h.UmeSessionId: 12, h.LjiReq: 36,
    h.ReceiverKeepalive: 24, h.SriReq: 12, h.Sri: 16, h.TopicIdx: 8, h.TopicSourceExfunc: 16, h.StoreExt: 24,
    h.ElectionToken: 8, h.TcpSid: 8, h.FilterInit: 20, h.FilterRequest: 16, h.Domain: 8, h.OriginatingDomain: 8,
    h.Stream: 20, h.StoreDomain: 8, h.Hmac: 24, h.Destination: 28, r.TopicInterest: 8, r.PatternInterest: 16,
    r.GatewayAdvertisement: 48, r.GatewayCapabilities: 20, h.PatternIndex: 12, r.GatewayKeepalive: 64,
    r.RouteInfo: 32, r.RouteNeighbor: 20, h.TopicSource: 8,
}  # fmt: skip
"""Bytes of each header of fixed size with its lead, from the tables of the formats."""
VARIABLE = {
    h.TopicName, h.StoreName, h.Tsni, h.ExtendedOption, h.ApplicationHeader, h.ApplicationChain, r.ContextInformation,
    h.Authentication, r.GatewayName, h.TopicDomainInterest, h.PatternDomainInterest,
}  # fmt: skip


def test_every_header_is_in_the_registry() -> None:
    assert set(h.HEADERS.classes.values()) == {*get_args(h.Header), *h.READ_ONLY} - {h.UnknownHeader}
    assert set(SIZES) | VARIABLE == set(h.HEADERS.classes.values())


def test_every_declared_header_is_in_the_union() -> None:
    declared = {member for member in vars(h).values() if isinstance(member, type) and hasattr(member, "CODE")}
    assert declared == {*get_args(h.Header), *h.READ_ONLY} - {h.UnknownHeader}


@pytest.mark.parametrize("record", SIZES, ids=lambda record: str(record.__name__))
def test_fixed_headers_have_their_size(record: type[h.Header]) -> None:
    code, body = h.pack(sample(record))
    assert LEAD + len(body) == SIZES[record]
    for wrong in (body[:-1], body + b"\0"):
        with pytest.raises(WireError):
            h.unpack(code, wrong)


@given(HEADERS)
def test_decoding_undoes_encoding(header: h.Header) -> None:
    assert h.unpack(*h.pack(header)) == header


@given(st.sampled_from(sorted(h.HEADERS.classes)), st.binary(max_size=64))
def test_encoding_undoes_decoding(code: int, body: bytes) -> None:
    try:
        header = h.unpack(code, body)
    except WireError:
        return
    assert h.pack(header) == (code, body)


@given(records(h.Preg))
def test_a_layout_stands_as_the_tables_say(preg: h.Preg) -> None:
    body = h.pack(preg)[1]
    assert body[0] == preg.flags
    assert body[1] == preg.marker
    assert int.from_bytes(body[10:14]) == preg.topic_idx  # offset 12 with the lead
    assert body[22:26] == bytes(map(int, preg.resp_ip.split(".")))


def test_tsni_counts_its_records() -> None:
    header = h.Tsni.of((1, 2), (3, 4))
    assert header.flags == 2
    h.pack(h.Tsni.of(*[(0, 0)] * h.Tsni.MAX_RECORDS))
    with pytest.raises(WireError, match="not 4 to 255"):
        h.pack(h.Tsni.of(*[(0, 0)] * (h.Tsni.MAX_RECORDS + 1)))


@pytest.mark.parametrize(
    "header",
    [
        h.TopicName(topic="x" * 252),
        h.UnknownHeader(200, b"x"),
        h.UnknownHeader(200, bytes(254)),
        h.UnknownHeader(0, b"xx"),
        h.UnknownHeader(255, b"xx"),
        h.UnknownHeader(18, bytes(26)),
    ],
    ids=lambda header: f"{type(header).__name__}",
)
def test_headers_that_cannot_be_are_refused(header: h.Header) -> None:
    with pytest.raises(WireError):
        h.pack(header)


def test_the_longest_name_fits() -> None:
    assert len(h.pack(h.TopicName(topic="x" * 251))[1]) == MAX_LENGTH - LEAD


def test_the_longest_option_fits() -> None:
    longest = h.ExtendedOption(subtype=1, data=bytes(h.ExtendedOption.MAX_DATA))
    assert len(h.pack(longest)[1]) == MAX_LENGTH - LEAD
