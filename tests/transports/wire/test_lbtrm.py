"""LBT-RM datagrams: encode and decode are inverse both ways, and nothing but WireError comes out of bad bytes."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbtrm import Data, Nak, Ncf, Option, Packet, Reason, SessionMessage, decode, encode
from tests.support.datagrams import RM_PACKETS
from tests.support.layouts import mutations

DATA = Data(nak_port=14390, session_id=0x11223344, sqn=9, trail=2, symbol=Data.fill(9), payload=b"hello")
SM = SessionMessage(nak_port=14390, session_id=0x11223344, sm_sqn=0, lead=3, trail=0)
NAK = Nak(nak_port=14390, session_id=0x11223344, sqns=(2, 3))
NCF = Ncf(nak_port=14390, session_id=0x11223344, trail=1, reason=Reason.IGNORED, sqns=(2,))


@given(RM_PACKETS)
def test_decoding_undoes_encoding(packet: Packet) -> None:
    assert decode(encode(packet)) == packet


@given(st.binary(max_size=64) | RM_PACKETS.map(encode).flatmap(mutations))
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        packet = decode(octets)
    except WireError:
        return
    assert encode(packet) == octets


@pytest.mark.parametrize(
    ("packet", "octets"),
    [
        (DATA, "00 00 3836 11223344 00000009 00000002 80 03 0001 68656c6c6f"),
        (SM, "02 00 3836 11223344 00000000 00000003 00000000 80 03 0000"),
        (NAK, "03 00 3836 11223344 0002 0000 00000002 00000003"),
        (NCF, "04 00 3836 11223344 00000001 0001 00 10 00000002"),
    ],
)
def test_packets_look_like_the_documented_ones(packet: Packet, octets: str) -> None:
    assert encode(packet) == bytes.fromhex(octets)


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "00 00 3836 112233",  # no whole header
        "10 00 3836 11223344 00000009 00000002 80 03 0001",  # version 1
        "01 00 3836 11223344 00000009 00000002 80 03 0001",  # no such kind
        "00 00 3836 11223344 00000009 00000002 80 03 00",  # no whole data header
        "00 01 3836 11223344 00000009 00000002 80 03 0001 00 03 00",  # an option of three bytes
        "02 00 3836 11223344 00000000 00000003 00000000 80 03 0000 00",  # a byte behind a session message
        "03 00 3836 11223344 0002 0000 00000002",  # a NAK of two with one number
        "03 00 3836 11223344 0001 0000 00000002 00000003",  # a NAK of one with two numbers
        "04 00 3836 11223344 00000001 0002 00 10 00000002",  # an NCF of two with one number
    ],
)
def test_malformed_packets_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode(bytes.fromhex(octets))


@pytest.mark.parametrize(
    "packet",
    [
        attrs.evolve(DATA, sqn=1 << 32),
        attrs.evolve(DATA, nak_port=1 << 16),
        attrs.evolve(NAK, sqns=(-1,)),
        attrs.evolve(NCF, reason=16),
        attrs.evolve(NCF, format=-1),
        attrs.evolve(SM, options=(Option(0, b"12"),)),
        attrs.evolve(SM, options=(Option(1, b"1"),)),
    ],
)
def test_packets_that_cannot_be_are_refused(packet: Packet) -> None:
    with pytest.raises(WireError):
        encode(packet)
