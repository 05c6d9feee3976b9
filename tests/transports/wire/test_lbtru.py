"""LBT-RU datagrams: encode and decode are inverse both ways, and nothing but WireError comes out of bad bytes."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbtru import (
    Ack,
    ClientId,
    Data,
    Nak,
    Ncf,
    Packet,
    Reason,
    Request,
    Reset,
    SessionId,
    SessionMessage,
    client_of,
    decode,
    encode,
    session_of,
)
from tests.support.datagrams import RU_PACKETS
from tests.support.layouts import mutations

SID, CID = SessionId(session_id=0x77), ClientId(client_id=0x99)
NCF = Ncf(trail=1, reason=Reason.IGNORED, sqns=(2,))


@given(RU_PACKETS)
def test_decoding_undoes_encoding(packet: Packet) -> None:
    assert decode(encode(packet)) == packet


@given(st.binary(max_size=64) | RU_PACKETS.map(encode).flatmap(mutations))
def test_encoding_undoes_decoding(octets: bytes) -> None:
    try:
        packet = decode(octets)
    except WireError:
        return
    assert encode(packet) == octets


@pytest.mark.parametrize(
    ("packet", "octets"),
    [
        (Request(options=(SID, CID)), "06 01 0000 02 08 0000 00000077 00 08 0000 00000099"),
        (
            SessionMessage(flags=SessionMessage.SYN, sm_sqn=1, lead=2, trail=3, options=(SID,)),
            "02 01 8000 00000001 00000002 00000003 00 08 0000 00000077",
        ),
        (Data(sqn=1, trail=1, payload=b"hello"), "00 00 0000 00000001 00000001 68656c6c6f"),
        (
            Data(flags=Data.RETRANSMISSION, sqn=1, trail=1, options=(SID,), payload=b"!"),
            "00 01 4000 00000001 00000001 00 08 0000 00000077 21",
        ),
        (Nak(sqns=(2,)), "03 00 0000 0001 0000 00000002"),
        (NCF, "04 00 0000 00000001 0001 00 10 00000002"),
        (Ack(sqn=1), "05 00 0000 00000001"),
        (Reset(), "07 00 0000"),
    ],
)
def test_packets_look_like_the_documented_ones(packet: Packet, octets: str) -> None:
    assert encode(packet) == bytes.fromhex(octets)


def test_options_tell_session_and_client() -> None:
    request = Request(options=(CID, SID))
    assert (session_of(request), client_of(request)) == (0x77, 0x99)
    assert (session_of(Ack(sqn=1)), client_of(Reset())) == (None, None)


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "06 00 00",  # no whole header
        "16 00 0000",  # version 1
        "01 00 0000",  # no such kind
        "05 00 0000 000000",  # no whole number
        "05 09 0000 00000001 00 08 000000000000",  # no such option
        "05 01 0000 00000001 00 06 00000000",  # an option shorter than its layout
        "05 00 0000 00000001 00",  # a byte behind an acknowledgement
        "03 00 0000 0005 0000 00000001",  # a NAK of five with one number
        "07 01 0000 00 08 0000 00000001",  # a reset with an option
        "07 00 0000 00",  # a byte behind a reset
    ],
)
def test_malformed_packets_are_refused(octets: str) -> None:
    with pytest.raises(WireError):
        decode(bytes.fromhex(octets))


@pytest.mark.parametrize(
    "packet",
    [
        Ack(sqn=-1),
        Request(request=1 << 16),
        Request(options=(SessionId(session_id=1 << 32),)),
        Nak(sqns=(1 << 32,)),
        attrs.evolve(NCF, reason=16),
    ],
)
def test_packets_that_cannot_be_are_refused(packet: Packet) -> None:
    with pytest.raises(WireError):
        encode(packet)
