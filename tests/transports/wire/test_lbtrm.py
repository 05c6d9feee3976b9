"""LBT-RM datagrams: encode and decode are inverse both ways, and nothing but WireError comes out of bad bytes."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbtrm import Data, Nak, Ncf, Option, Packet, SessionMessage, decode, encode
from stablecast.transports.wire.reliable_packets import Reason
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


X = memoryview(b"x")


def plain(sqn: int, **other: object) -> lbtrm.Data:
    fields: dict[str, Any] = {
        "nak_port": 5,
        "session_id": 9,
        "trail": 3,
        "payload": b"x",
        "symbol": lbtrm.Data.fill(sqn),
    }
    return lbtrm.Data(**{**fields, "sqn": sqn, "symbol": lbtrm.Data.fill(sqn), **other})


def test_the_quick_ways_to_write_and_read_data_do_the_same() -> None:
    octets = lbtrm.encode(plain(4))
    assert lbtrm.encode_data(5, 9, 4, 3, lbtrm.Data.UNICAST_NAKS, [b"x"]) == [octets]
    last = 0xFFFF_FFFF
    both = [lbtrm.encode(plain(last)), lbtrm.encode(plain(0))]
    assert lbtrm.encode_data(5, 9, last, 3, lbtrm.Data.UNICAST_NAKS, [b"x", X]) == both
    assert lbtrm.read_data(octets) == (5, 9, 4, 3, lbtrm.Data.UNICAST_NAKS, X)
    assert lbtrm.read_data(octets[:19]) is None
    assert lbtrm.read_data(lbtrm.encode(plain(4, options=(lbtrm.Option(7, b"ab"),)))) is None


@pytest.mark.parametrize(
    "strange",
    [
        plain(0, flags=lbtrm.Data.UNICAST_NAKS | lbtrm.Data.RETRANSMISSION),
        plain(1),
        plain(0, session_id=8),
        plain(0, options=(lbtrm.Option(7, b"ab"),)),
        lbtrm.SessionMessage(nak_port=5, session_id=9, sm_sqn=0, lead=0, trail=0),
    ],
)
def test_a_series_ends_with_what_is_not_of_it(strange: lbtrm.Packet) -> None:
    """Numbers wrap; the trail is that of the last one."""
    datagrams = [lbtrm.encode(packet) for packet in (plain(0xFFFF_FFFF, trail=7), strange, plain(0))]
    name = datagrams[0][2:8]
    assert lbtrm.read_series(datagrams, name, 0xFFFF_FFFF) == ([X], 7)
    assert lbtrm.read_series([datagrams[0], datagrams[2], b"short"], name, 0xFFFF_FFFF) == ([X, X], 3)
