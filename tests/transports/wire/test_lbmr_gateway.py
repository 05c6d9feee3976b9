"""Messages between gateways: round trips, documented bytes, and nothing but WireError for bad bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire import lbmr_gateway as g
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr_extended import Packet, decode, encode
from tests.support.layouts import members, mutations, records

BYTE = st.integers(0, 0xFF)
SHORT = st.integers(0, 0xFFFF)
WORD = st.integers(0, 0xFFFF_FFFF)
OPTIONS = st.lists(members(g.OPTIONS, lbmr.UnknownOption, 255), max_size=3).map(tuple)
BODIES: st.SearchStrategy[g.GatewayBody] = st.one_of(
    st.builds(
        g.GatewayInterest,
        length=SHORT,
        records=st.lists(st.builds(g.InterestRecord, BYTE, BYTE, WORD, st.binary(max_size=9)), max_size=3).map(tuple),
    ),
    st.builds(g.GatewayContext, length=SHORT, hop_count=BYTE, reserved=BYTE, flags1=WORD, flags2=WORD, options=OPTIONS),
    records(g.GatewayRequest),
    st.builds(g.UnknownMessage, type=st.integers(3, 0xFFFF), body=st.binary(max_size=9)),
)
MESSAGES = st.builds(g.Gateway, length=SHORT, reserved=SHORT, body=BODIES)
ADDRESS = g.AddressOption(flags=0x8000, port=14567, address="10.0.0.3")
NAME = g.NameOption(flags=0x8000, name=b"store-A\0")


def packet(body: g.GatewayBody) -> Packet:
    return Packet(g.Gateway(length=6, body=body))


@given(MESSAGES)
def test_decoding_undoes_encoding(message: g.Gateway) -> None:
    octets = encode(Packet(message))
    assert lbmr_extended.is_extended(octets)
    assert decode(octets) == Packet(message)


@given(st.binary(max_size=64).map(lambda rest: b"\x17\5" + rest) | MESSAGES.map(Packet).map(encode).flatmap(mutations))
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        found = decode(octets)
    except WireError:
        return
    assert encode(found) == octets


def test_messages_look_like_the_documented_ones() -> None:
    """wire/lbmr.md, extended type 5."""
    interest = g.GatewayInterest(length=15, records=(g.InterestRecord(g.InterestRecord.PATTERN, 1, 7, b"^a\0"),))
    assert encode(packet(interest)) == bytes.fromhex("17 05 0006 0000 0000 000f 0001 000b 80 01 00000007") + b"^a\0"
    context = g.GatewayContext(length=48, flags1=g.GatewayContext.QUERY, options=(ADDRESS, NAME))
    head = "17 05 0006 0001 0000 0030 00 00 80000000 00000000 01 0c 8000 38e7 0000 0a000003 03 0c 8000"
    assert encode(packet(context)) == bytes.fromhex(head) + b"store-A\0"
    assert encode(packet(g.GatewayRequest(length=2))) == bytes.fromhex("17 05 0006 0002 0000 0002")


@pytest.mark.parametrize(
    "octets",
    [
        "17 05 0006 0000 00",  # no whole head
        "17 05 0006 0000 0000 0004",  # no whole head of interest
        "17 05 0006 0000 0000 0004 0001",  # a record is missing
        "17 05 0006 0000 0000 0004 0001 0007 80 01 00000007",  # a record of seven bytes
        "17 05 0006 0000 0000 0004 0001 0009 80 01 00000007",  # a record longer than its packet
        "17 05 0006 0000 0000 0004 0000 00",  # a byte behind the records
        "17 05 0006 0001 0000 0030 00 00 80000000 000000",  # no whole head of a context
        "17 05 0006 0001 0000 0030 00 00 80000000 00000000 01 0b 8000 38e7 0000 0a0000",  # an address of three bytes
        "17 05 0006 0002 0000 0002 00",  # a byte behind a request
    ],
)
def test_malformed_messages_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode(bytes.fromhex(octets))


@pytest.mark.parametrize(
    "body",
    [
        g.UnknownMessage(type=2, body=b""),
        g.GatewayRequest(length=-1),
        g.GatewayInterest(length=0, records=(g.InterestRecord(256, 0, 0, b""),)),
        g.GatewayContext(length=0, flags1=0, options=(lbmr.UnknownOption(3, b"xx"),)),
    ],
)
def test_messages_that_cannot_be_are_refused(body: g.GatewayBody) -> None:
    with pytest.raises(WireError):
        encode(packet(body))
