"""Payloads to layers: what is decoded, what is unknown though well formed, what is malformed, and all of it again."""

import struct

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.protocol import messages as core
from stablecast.evidence.capture import layers
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.layers import Decoded, Layer
from stablecast.transports import codec
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended, lbtrm, lbtru, rsocket, srs
from stablecast.transports.wire import lbmr_gateway as g
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.support.datagrams import RM_PACKETS, RU_PACKETS
from tests.support.layouts import mutations
from tests.support.messages import MESSAGES
from tests.support.packets import PACKETS

OPTIONS = lbmr.standard_options(b"INSTANCE")
QUERY = lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),), (), OPTIONS)
DATA = Message(MessageKind.DATA, 1, 2, (), b"payload")


def verdicts(found: Decoded) -> list[FrameVerdict]:
    return [problem.verdict for problem in found.problems]


def types(found: Decoded) -> list[str]:
    return [layer.type for layer in found.layers]


# Topic resolution.


def advertised(transport: lbmr.Transport, *options: lbmr.TirOption) -> bytes:
    tir = lbmr.Advertisement("orders", transport, 60, 1, options)
    return lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,), OPTIONS))


def test_queries_and_advertisements_are_counted_as_parts() -> None:
    tir = lbmr.Advertisement("orders", lbmr.TcpTransport("10.0.0.1", 5, 14371), 60, 1)
    packet = attrs.evolve(QUERY, advertisements=(tir, tir))
    found = layers.resolution(lbmr.encode(packet), roundtrip=True)
    assert found == Decoded((Layer("LBMR", "NORMAL", packet, ("TQR", "TIR", "TIR")),))
    wildcard = lbmr.Packet(lbmr.PacketKind.WILDCARD, (lbmr.WildcardQuery(1, "^o"),))
    assert layers.resolution(lbmr.encode(wildcard), roundtrip=True).layers[0].parts == ("WC-TQR",)


def test_extended_packets() -> None:
    info = lbmr.encode(lbmr.ContextInfo(flags=0x4000, name="store", options=OPTIONS))
    request = lbmr.encode(lbmr.ResolutionRequest(flags=7))
    assert types(layers.resolution(info, roundtrip=True)) == ["LBMR CONTEXT_INFO"]
    assert types(layers.resolution(request, roundtrip=True)) == ["LBMR RESOLUTION_REQUEST"]
    management = lbmr_extended.Management(records=(lbmr_extended.TopicRecord(1, 0, "orders"),))
    found = layers.resolution(lbmr_extended.encode(lbmr_extended.Packet(management)), roundtrip=True)
    assert found.layers[0].parts == ("TMR",)
    route = lbmr_extended.DomainRoute(count=1, address="10.0.0.1", port=1, length=20, domains=(7,))
    found = layers.resolution(lbmr_extended.encode(lbmr_extended.Packet(route)), roundtrip=False)
    assert (types(found), verdicts(found)) == (["LBMR DOMAIN_ROUTE"], [])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (g.GatewayRequest(length=2), []),
        (g.GatewayInterest(length=4), []),
        (g.GatewayContext(length=12, flags1=0, options=(g.DomainOption(flags=0, domain=1),)), []),
        (g.GatewayContext(length=12, flags1=0, options=(lbmr.UnknownOption(9, b"xx"),)), [FrameVerdict.UNKNOWN]),
        (g.UnknownMessage(type=3, body=b"x"), [FrameVerdict.UNKNOWN]),
    ],
)
def test_messages_of_gateways(body: g.GatewayBody, expected: list[FrameVerdict]) -> None:
    packet = lbmr_extended.Packet(g.Gateway(length=6, body=body))
    found = layers.resolution(lbmr_extended.encode(packet), roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBMR GATEWAY"], expected)


@pytest.mark.parametrize(
    ("octets", "verdict"),
    [
        (b"\x16\0\0\0", FrameVerdict.UNKNOWN),  # of queues
        (b"\x17\2\0\0", FrameVerdict.UNKNOWN),
        (b"\x15\0\0\0", FrameVerdict.MALFORMED),  # no such type
        (b"\x17\x09\0\0", FrameVerdict.MALFORMED),  # no such extension
        (b"\x10", FrameVerdict.MALFORMED),
        (lbmr.encode(attrs.evolve(QUERY, version=0)), FrameVerdict.MALFORMED),
        (b"\x04\0\0\0\0\4\0\0", FrameVerdict.MALFORMED),  # of version 0
        (lbmr.encode(attrs.evolve(QUERY, options=(lbmr.UnknownOption(200, b"xx"),))), FrameVerdict.UNKNOWN),
        (advertised(lbmr.UnknownTransport(0x30, b"")), FrameVerdict.UNKNOWN),
        (advertised(lbmr.UnknownTransport(0x40, bytes(9))), FrameVerdict.MALFORMED),
        (advertised(lbmr.TcpTransport("10.0.0.1", 5, 6), lbmr.UnknownOption(99, b"xx")), FrameVerdict.UNKNOWN),
        (advertised(lbmr.TcpTransport("10.0.0.1", 5, 6), lbmr.UnknownOption(12, b"xx")), FrameVerdict.MALFORMED),
    ],
)
def test_defects_of_a_packet_of_resolution_are_named(octets: bytes, verdict: FrameVerdict) -> None:
    assert verdicts(layers.resolution(octets, roundtrip=True)) == [verdict]


def test_parts_of_an_advertisement_that_are_listed_are_no_problem() -> None:
    options = (lbmr.UnknownOption(6, b"queue"), lbmr.DomainId(domain=1))
    ipc = advertised(lbmr.UnknownTransport(0x40, bytes(10)), *options)
    assert verdicts(layers.resolution(ipc, roundtrip=True)) == []


# The reliable transports.


def test_datagrams_carry_messages() -> None:
    control = Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=5),))
    payload = lbmc.encode(DATA) + lbmc.encode(control)
    multicast = lbtrm.encode(lbtrm.Data(nak_port=1, session_id=2, sqn=3, trail=0, payload=payload))
    found = layers.multicast(multicast, roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBT-RM DATA", "LBMC DATA", "LBMC CONTROL"], [])
    unicast = lbtru.encode(lbtru.Data(sqn=3, trail=0, options=(lbtru.SessionId(session_id=5),), payload=payload))
    found = layers.unicast(unicast, roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBT-RU DATA", "LBMC DATA", "LBMC CONTROL"], [])


def test_datagrams_without_messages() -> None:
    assert types(layers.multicast(lbtrm.encode(lbtrm.Nak(nak_port=1, session_id=2, sqns=(3,))), True)) == ["LBT-RM NAK"]
    assert types(layers.unicast(lbtru.encode(lbtru.Reset()), True)) == ["LBT-RU RST"]


def test_options_of_multicast_are_unknown() -> None:
    packet = lbtrm.SessionMessage(
        nak_port=1, session_id=2, sm_sqn=0, lead=0, trail=0, options=(lbtrm.Option(9, b"xx"),)
    )
    assert verdicts(layers.multicast(lbtrm.encode(packet), roundtrip=True)) == [FrameVerdict.UNKNOWN]


@pytest.mark.parametrize("decode", [layers.multicast, layers.unicast])
def test_other_datagrams_are_malformed(decode: object) -> None:
    assert callable(decode)
    assert verdicts(decode(b"nonsense", True)) == [FrameVerdict.MALFORMED]


# Messages.


def test_behind_a_malformed_message_the_next_one_is_read() -> None:
    good = lbmc.encode(DATA)
    found = layers.messages(good + b"\x08\x65\0\x08\xff\0\0\0" + good, roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBMC DATA", "LBMC DATA"], [FrameVerdict.MALFORMED])


@pytest.mark.parametrize("tail", [b"\0", b"\0\0\0\0", b"\0\0\xff\xff\0\0\0\0\0\0\0\0"])
def test_bytes_after_the_last_message_are_malformed(tail: bytes) -> None:
    found = layers.messages(lbmc.encode(DATA) + tail, roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBMC DATA"], [FrameVerdict.MALFORMED])


def test_a_message_without_headers_or_payload_says_nothing() -> None:
    assert types(layers.message(b"\x01\xff\0\4", roundtrip=True)) == ["LBMC EOT"]


def test_the_meaning_of_a_control_message_is_a_layer() -> None:
    meant = core.SourceInfoRequest(5)
    found = layers.message(codec.encode(meant), roundtrip=True)
    assert found.layers[1] == Layer("UMP", "SourceInfoRequest", meant)


def test_a_control_message_that_means_nothing_here_is_no_problem() -> None:
    other = lbmc.encode(Message(MessageKind.CONTROL, headers=(h.StoreDomain(domain=1),)))
    assert layers.message(other) == Decoded((Layer("LBMC", "CONTROL", lbmc.decode(other)[0], ("STORE_DOMAIN",)),))


PROPERTIES = struct.pack("<IHBB4I", 0xABACDABA, 1, 0x10, 0, 24, 27, 0, 4) + b"px\0" + struct.pack("<i", 42)


def with_properties(length: int, payload: bytes, *more: h.Header) -> bytes:
    chain = h.ApplicationChain(first=6, chain=struct.pack(">BBHI", 255, 8, 0, length))
    return lbmc.encode(attrs.evolve(DATA, headers=(chain, *more), payload=payload))


def test_properties_are_a_layer() -> None:
    found = layers.message(with_properties(len(PROPERTIES), b"payload" + PROPERTIES), roundtrip=True)
    assert (types(found), verdicts(found)) == (["LBMC DATA", "PROPERTIES BLOCK"], [])


def test_properties_of_a_fragmented_message_are_left_alone() -> None:
    piece = h.Fragment(first_sqn=1, offset=0, len=100)
    assert types(layers.message(with_properties(50, b"payload", piece), roundtrip=True)) == ["LBMC DATA"]


def headed(*headers: h.Header) -> bytes:
    return lbmc.encode(attrs.evolve(DATA, headers=headers))


@pytest.mark.parametrize(
    ("octets", "verdict"),
    [
        (headed(h.UnknownHeader(48, b"xx")), FrameVerdict.UNKNOWN),  # of queues
        (headed(h.UnknownHeader(200, b"xx")), FrameVerdict.MALFORMED),
        (headed(h.Fragment(first_sqn=1, offset=5, len=11)), FrameVerdict.MALFORMED),  # behind the end of its message
        (headed(h.ApplicationHeader(data=b"")), FrameVerdict.MALFORMED),
        (headed(h.ApplicationChain(first=1, chain=b"\0")), FrameVerdict.MALFORMED),
        (with_properties(8, b"payload"), FrameVerdict.MALFORMED),  # more than the payload
        (with_properties(7, b"payload"), FrameVerdict.MALFORMED),  # no magic number
    ],
)
def test_defects_of_a_message_are_named(octets: bytes, verdict: FrameVerdict) -> None:
    assert verdicts(layers.message(octets, roundtrip=True)) == [verdict]


# Topic resolution over TCP.


def framed(frame: rsocket.Frame) -> Decoded:
    return layers.resolution_frame(rsocket.encode(frame), frame, frame.payload, roundtrip=True)


def test_a_setup_has_parameters() -> None:
    setup = rsocket.RsocketSetup(1000, 2000)
    octets = rsocket.encode(rsocket.setup_frame(setup))
    found = layers.resolution_frame(octets, rsocket.setup_frame(setup), b"", roundtrip=True)
    assert [layer.record for layer in found.layers] == [rsocket.setup_frame(setup), setup]
    assert verdicts(found) == []


def test_frames_carry_messages() -> None:
    payload = srs.encode(srs.RegistrationResponse(client_id=1))
    found = framed(rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=payload))
    assert (types(found), verdicts(found)) == (["RSOCKET PAYLOAD", "SRS REGISTRATION_RESPONSE"], [])
    frame = rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=payload)
    assert layers.resolution_frame(rsocket.encode(frame), frame, payload, roundtrip=False) == found


def test_messages_of_newer_services_are_read() -> None:
    """Routes, domains and names of stores, which tshark 4.0.17 refuses."""
    at = {"address": "10.0.0.1", "port": 1, "instance": b"CTXINST1"}
    said: list[srs.Message] = [
        srs.RouteInfo(domains=(1, 2), **at),  # type: ignore[arg-type]
        srs.DomainInfo(domain=1, instance=b"CTXINST1"),
        srs.NameQuery(name="store-A", instance=b"CTXINST1"),
        srs.NameEnd(name="store-A", origin=b"CTXINST2", **at),  # type: ignore[arg-type]
    ]
    found = framed(rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=b"".join(map(srs.encode, said))))
    kinds = ["ROUTE_INFO", "DOMAIN_INFO", "CONTEXT_NAME_QUERY", "CONTEXT_NAME_END"]
    assert (types(found), verdicts(found)) == (["RSOCKET PAYLOAD", *(f"SRS {kind}" for kind in kinds)], [])


@pytest.mark.parametrize(
    ("frame", "verdict"),
    [
        (rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=b"\0\x0d\0\1"), FrameVerdict.MALFORMED),
        (rsocket.Frame(rsocket.FrameKind.PAYLOAD, 1, payload=b"\0\x63\0\0"), FrameVerdict.MALFORMED),
        (rsocket.Frame(rsocket.FrameKind.SETUP, payload=b"short"), FrameVerdict.MALFORMED),
    ],
)
def test_defects_of_a_frame_are_named(frame: rsocket.Frame, verdict: FrameVerdict) -> None:
    found = layers.resolution_frame(rsocket.encode(frame), frame, frame.payload, roundtrip=False)
    assert verdicts(found) == [verdict]
    assert types(found) == [f"RSOCKET {frame.kind.name}"]


# Again.


def test_a_different_encoding_is_reported() -> None:
    (problem,) = Decoded().checked(b"abcd", lambda: b"abXd").problems
    assert (problem.verdict, problem.text[-21:]) == (FrameVerdict.DIFFERENT, "first difference at 2")
    (problem,) = Decoded().checked(b"abcd", lambda: b"ab").problems
    assert problem.text.endswith("2 bytes instead of 4, the first difference at 2")


def test_a_failed_encoding_is_reported() -> None:
    def encode() -> bytes:
        raise WireError("too long")

    assert verdicts(Decoded().checked(b"", encode)) == [FrameVerdict.DIFFERENT]


RM = RM_PACKETS.map(lbtrm.encode)
RU = RU_PACKETS.map(lbtru.encode)
CARRIED = MESSAGES.map(
    lambda one: lbtrm.encode(lbtrm.Data(nak_port=1, session_id=1, sqn=1, trail=1, payload=lbmc.encode(one)))
)
CASES = st.one_of(
    st.tuples(st.just(layers.resolution), PACKETS.map(lbmr.encode).flatmap(mutations)),
    st.tuples(st.just(layers.multicast), st.one_of(RM, CARRIED).flatmap(mutations)),
    st.tuples(st.just(layers.unicast), RU.flatmap(mutations)),
    st.tuples(st.just(layers.messages), MESSAGES.map(lbmc.encode).flatmap(mutations)),
    st.tuples(st.sampled_from([layers.resolution, layers.multicast, layers.unicast, layers.messages]), st.binary()),
)


@pytest.mark.no_cover
@given(CASES)
@settings(max_examples=300)
def test_mutated_packets_never_raise_and_never_differ(case: tuple[object, bytes]) -> None:
    decode, octets = case
    assert callable(decode)
    assert FrameVerdict.DIFFERENT not in verdicts(decode(octets, True))
