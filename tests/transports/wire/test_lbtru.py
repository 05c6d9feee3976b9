"""LBT-RU datagrams: encode and decode are inverse both ways, and nothing but WireError comes out of bad bytes."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import lbtru
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbtru import (
    Ack,
    ClientId,
    Data,
    Nak,
    Ncf,
    Packet,
    Request,
    Reset,
    SessionId,
    SessionMessage,
    decode,
    encode,
    session_of,
)
from stablecast.transports.wire.reliable_packets import Reason
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


def test_options_name_the_session() -> None:
    request = Request(options=(CID, SID))
    assert session_of(request) == 0x77
    assert session_of(Ack(sqn=1)) is session_of(Reset()) is None


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


X = memoryview(b"x")
NINE = (lbtru.SessionId(session_id=9),)


def plain(sqn: int, **other: object) -> lbtru.Data:
    fields: dict[str, Any] = {"trail": 3, "payload": b"x", "options": NINE}
    return lbtru.Data(**{**fields, "sqn": sqn, **other})


def test_the_quick_ways_to_write_and_read_data_do_the_same() -> None:
    octets = lbtru.encode(plain(4, flags=lbtru.Data.RETRANSMISSION))
    assert lbtru.encode_data(lbtru.Data.RETRANSMISSION, 4, 3, 9, [b"x"]) == [octets]
    assert lbtru.encode_data(0, 4, 3, 0, [b"x"]) == [lbtru.encode(plain(4, options=()))]
    both = [lbtru.encode(plain(0xFFFF_FFFF)), lbtru.encode(plain(0))]
    assert lbtru.encode_data(0, 0xFFFF_FFFF, 3, 9, [b"x", X]) == both
    assert lbtru.read_data(octets) == (9, lbtru.Data.RETRANSMISSION, 4, 3, X)
    assert lbtru.read_data(octets[:19]) is None
    assert lbtru.read_data(lbtru.encode(plain(4, options=()))[:20] + bytes(20)) is None
    assert lbtru.read_data(lbtru.encode(plain(4, options=(*NINE, lbtru.ClientId(client_id=1))))) is None


@pytest.mark.parametrize(
    "strange",
    [
        plain(0, flags=lbtru.Data.RETRANSMISSION),
        plain(1),
        plain(0, options=(lbtru.SessionId(session_id=8),)),
        plain(0, options=()),
        lbtru.SessionMessage(sm_sqn=0, lead=0, trail=0, options=NINE),
    ],
)
def test_a_series_ends_with_what_is_not_of_it(strange: lbtru.Packet) -> None:
    """Numbers wrap; the trail is that of the last one."""
    datagrams = [lbtru.encode(packet) for packet in (plain(0xFFFF_FFFF, trail=7), strange, plain(0))]
    assert lbtru.read_series(datagrams, 9, 0xFFFF_FFFF) == ([X], 7)
    assert lbtru.read_series([datagrams[0], datagrams[2], b"short"], 9, 0xFFFF_FFFF) == ([X, X], 3)
