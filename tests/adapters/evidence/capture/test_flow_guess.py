"""Flows that nobody announced: ours are found by what they say, others are left alone."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.evidence.capture.flow_guess import guess_datagram, guess_stream
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbtrm, lbtru, rsocket
from stablecast.transports.wire.lbmc import Message, MessageKind

MESSAGE = lbmc.encode(Message(MessageKind.DATA, 1, 2, (), b"payload"))
RM_DATA = lbtrm.Data(nak_port=14390, session_id=7, sqn=1, trail=0, payload=MESSAGE)
SM = lbtrm.SessionMessage(nak_port=14390, session_id=7, sm_sqn=0, lead=1, trail=0)
NAK = lbtrm.Nak(nak_port=14390, session_id=7, sqns=(1,))
NCF = lbtrm.Ncf(nak_port=14390, session_id=7, trail=0, reason=1, sqns=(1,))
RU_DATA = lbtru.Data(sqn=1, trail=0, payload=MESSAGE)
SID = lbtru.SessionId(session_id=7)
QUERY = lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),))
SETUP = rsocket.encode(rsocket.setup_frame(rsocket.RsocketSetup(1, 2)))


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (lbmr.encode(QUERY), TrafficKind.LBMR),
        (lbmr.encode(attrs.evolve(QUERY, queries=(), options=lbmr.standard_options(bytes(8)))), TrafficKind.LBMR),
        (lbmr.encode(lbmr.ContextInfo(flags=0)), TrafficKind.LBMR),
        (lbtrm.encode(RM_DATA), TrafficKind.LBTRM),
        (lbtrm.encode(SM), TrafficKind.LBTRM),
        (lbtrm.encode(NAK), TrafficKind.LBTRM),
        (lbtrm.encode(NCF), TrafficKind.LBTRM),
        (lbtru.encode(RU_DATA), TrafficKind.LBTRU),
        (lbtru.encode(lbtru.SessionMessage(sm_sqn=0, lead=1, trail=0)), TrafficKind.LBTRU),
        (lbtru.encode(lbtru.Nak(sqns=(1,))), TrafficKind.LBTRU),
        (lbtru.encode(lbtru.Ack(sqn=1, options=(SID,))), TrafficKind.LBTRU),
        (lbtru.encode(lbtru.Request(options=(SID,))), TrafficKind.LBTRU),
    ],
)
def test_our_datagrams_are_found(octets: bytes, kind: TrafficKind) -> None:
    assert guess_datagram(octets) is kind


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"something else",
        bytes.fromhex("1a2b 0100 0001 0000 0000 0000 03777777 00 0001 0001"),  # a question to a name server
        lbmr.encode(attrs.evolve(QUERY, version=0)),
        lbmr.encode(attrs.evolve(QUERY, queries=())),  # four bytes are too few to believe
        lbmr.encode(lbmr.ResolutionRequest(flags=7)),
        lbtrm.encode(attrs.evolve(RM_DATA, payload=b"")),
        lbtrm.encode(attrs.evolve(RM_DATA, payload=MESSAGE + b"!")),
        lbtrm.encode(attrs.evolve(RM_DATA, nak_port=0)),
        lbtrm.encode(attrs.evolve(SM, reserved=1)),
        lbtrm.encode(attrs.evolve(NAK, sqns=())),
        lbtru.encode(attrs.evolve(RU_DATA, flags=1)),
        lbtru.encode(lbtru.SessionMessage(flags=1, sm_sqn=0, lead=1, trail=0)),
        lbtru.encode(lbtru.Ack(sqn=1)),
        lbtru.encode(lbtru.Reset()),
    ],
)
def test_other_datagrams_are_left_alone(octets: bytes) -> None:
    assert guess_datagram(octets) is None


GREETING = lbmc.encode(Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=5),)))


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (GREETING, TrafficKind.LBTTCP),
        (GREETING + MESSAGE[:9], TrafficKind.LBTTCP),
        (MESSAGE, TrafficKind.LBTTCP),
        (SETUP, TrafficKind.SRS),
        (SETUP + rsocket.encode(rsocket.Frame(rsocket.FrameKind.REQUEST_N, 2, number=1)), TrafficKind.SRS),
        (b"", None),
        (MESSAGE[:9], None),  # not one whole message
        (GREETING + b"\xff" * 9, None),
        (b"\x08\x65\0\x08\xff\x04\0\0", None),  # a header that does not fit
        (SETUP + SETUP[:5], None),
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (bytes.fromhex("16030100c8010000c40303"), None),  # TLS
        (bytes.fromhex("00000085fe534d4240000100") + bytes(125), None),  # SMB
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", None),
    ],
)
def test_streams_are_ours_or_not(octets: bytes, kind: TrafficKind | None) -> None:
    assert guess_stream(octets) is kind


@given(st.binary(min_size=1, max_size=80))
def test_random_bytes_do_not_raise(octets: bytes) -> None:
    guess_datagram(octets)
    guess_stream(octets)
