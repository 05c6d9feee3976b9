"""A first reading finds out who speaks what."""

from pathlib import Path

import pytest

from stablecast.evidence.capture.files import CaptureError
from stablecast.evidence.capture.ip import TCP, UDP, Endpoint
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.evidence.capture.traffic_survey import MAX_ORDER, MAX_TRIES, survey
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbtrm, lbtru
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.support import captures
from tests.support.captures import datagram, pieces, segment

A, B = ("10.0.0.1", 41_000), ("10.0.0.2", 42_000)
RESOLUTION, GROUP = ("224.9.10.11", 12_965), ("239.1.1.1", 30_000)
MESSAGE = lbmc.encode(Message(MessageKind.DATA, 1, 2, (), b"payload"))
GREETING = lbmc.encode(Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=5),)))
RM_DATA = lbtrm.encode(lbtrm.Data(nak_port=31_000, session_id=7, sqn=1, trail=0, payload=MESSAGE))
TIR = lbmr.Advertisement("orders", lbmr.TcpTransport("10.0.0.1", 5, 41_000), 60, 1)
ADVERTISEMENT = lbmr.encode(lbmr.Packet(lbmr.PacketKind.NORMAL, (), (TIR,)))


def of(tmp_path: Path, *packets: bytes) -> Path:
    return captures.pcap(tmp_path / "a.pcap", packets)


def test_an_advertisement_explains_what_came_before_it(tmp_path: Path) -> None:
    path = of(tmp_path, segment(A, B, 1, b"in the middle"), datagram(B, RESOLUTION, ADVERTISEMENT))
    plan = survey(path)
    assert plan.kind(TCP, A, B) is TrafficKind.LBTTCP
    assert plan.topic(("10.0.0.1", 41_000, None), 1) == "orders"


def test_multicast_on_a_port_of_its_own_is_found_with_its_naks(tmp_path: Path) -> None:
    plan = survey(of(tmp_path, datagram(A, GROUP, RM_DATA), datagram(A, GROUP, b"nonsense")))
    assert plan.kind(UDP, B, GROUP) is TrafficKind.LBTRM
    assert plan.kind(UDP, B, ("10.0.0.1", 31_000)) is TrafficKind.LBTRM


def test_unicast_and_streams_on_ports_of_their_own_are_found(tmp_path: Path) -> None:
    ack = lbtru.encode(lbtru.Ack(sqn=1))
    data = lbtru.encode(lbtru.Data(sqn=1, trail=0, payload=MESSAGE))
    plan = survey(of(tmp_path, datagram(A, B, ack), datagram(B, A, data), segment(A, B, 1, GREETING)))
    assert plan.kind(UDP, A, B) is TrafficKind.LBTRU
    assert plan.kind(TCP, B, A) is TrafficKind.LBTTCP


def test_resolution_on_a_port_of_its_own_is_learned_from(tmp_path: Path) -> None:
    plan = survey(of(tmp_path, datagram(B, GROUP, ADVERTISEMENT)))
    assert plan.kind(TCP, B, A) is TrafficKind.LBTTCP


def test_ports_of_the_caller_are_kept(tmp_path: Path) -> None:
    plan = survey(of(tmp_path, datagram(A, B, b"anything")), ["lbtru=42000"])
    assert plan.kind(UDP, A, B) is TrafficKind.LBTRU
    with pytest.raises(CaptureError, match="'x' is not kind=port"):
        survey(tmp_path / "a.pcap", ["x"])


def test_other_traffic_is_nobodys(tmp_path: Path) -> None:
    packets = [datagram(A, B, b"something else"), segment(A, B, 1, b"GET /"), segment(A, B, 6, b""), b"\x60"]
    plan = survey(of(tmp_path, *packets, *pieces(datagram(A, B, bytes(30)), 16)[:1]))
    assert plan.kind(UDP, A, B) is plan.kind(TCP, A, B) is None


def test_malformed_resolution_and_multicast_teach_nothing(tmp_path: Path) -> None:
    ends: list[tuple[Endpoint, Endpoint]] = [(A, RESOLUTION), (A, ("224.10.10.10", 14_400)), (A, (B[0], 14_390))]
    plan = survey(of(tmp_path, *(datagram(*pair, b"nonsense") for pair in ends)))
    assert (plan.endpoints, plan.groups) == ({}, {})


def test_naks_name_no_group(tmp_path: Path) -> None:
    nak = lbtrm.encode(lbtrm.Nak(nak_port=14_390, session_id=7, sqns=(1,)))
    assert survey(of(tmp_path, datagram(A, (B[0], 14_390), nak))).groups == {}


@pytest.mark.parametrize(
    ("segments", "start"),
    [
        ([(50, b"one"), (40, b"two"), (45, b"three"), (30, b"!"), (60, b"four")], 40),
        ([(50, b""), (40, b"two")], 40),
        ([(3, b"one"), (-9, b"two")], -9 & 0xFFFF_FFFF),
        ([(50, b"one")] * MAX_ORDER + [(40, b"two")], 50),
    ],
)
def test_the_first_segment_without_a_syn(tmp_path: Path, segments: list[tuple[int, bytes]], start: int) -> None:
    plan = survey(of(tmp_path, *(segment(A, B, *one) for one in segments)))
    assert plan.starts == {(A, B): start}


def test_a_syn_tells_the_start_itself(tmp_path: Path) -> None:
    plan = survey(of(tmp_path, segment(A, B, 50, b"", 0x02), segment(A, B, 40, b"old")))
    assert plan.starts == {}


@pytest.mark.parametrize(("others", "kind"), [(MAX_TRIES - 1, TrafficKind.LBTTCP), (MAX_TRIES, None)])
def test_a_flow_of_others_is_soon_left_alone(tmp_path: Path, others: int, kind: TrafficKind | None) -> None:
    packets = [segment(A, B, 1, b"nonsense")] * others + [segment(A, B, 9, GREETING)]
    assert survey(of(tmp_path, *packets)).kind(TCP, A, B) is kind


def tiny(octets: bytes, size: int) -> list[bytes]:
    return [segment(A, B, 1 + at, octets[at : at + size]) for at in range(0, len(octets), size)]


@pytest.mark.parametrize("size", [1, 3, 10])
def test_segments_smaller_than_messages_are_read_together(tmp_path: Path, size: int) -> None:
    assert survey(of(tmp_path, *tiny(GREETING + MESSAGE, size))).kind(TCP, A, B) is TrafficKind.LBTTCP
    assert survey(of(tmp_path, *tiny(MESSAGE[:12], 3))).kind(TCP, A, B) is None


def test_bytes_that_fit_once_they_are_put_together_are_no_proof(tmp_path: Path) -> None:
    others = bytes.fromhex("0000 000c") + b"12345678"  # lengths of four bytes are usual elsewhere, too
    assert survey(of(tmp_path, *tiny(others, 5))).kind(TCP, A, B) is None
    assert survey(of(tmp_path, *tiny(others + b"\xff" * 12, 5))).kind(TCP, A, B) is None


def test_settled_flows_are_skipped(tmp_path: Path) -> None:
    """A flow of which everything is known, and then a new connection between the same endpoints."""
    packets = [segment(A, B, 1 + at, GREETING) for at in range(0, 200 * len(GREETING), len(GREETING))]
    plan = survey(of(tmp_path, *packets, segment(A, B, 9, b"", 0x02), segment(B, A, 7, MESSAGE)))
    assert plan.kind(TCP, A, B) is TrafficKind.LBTTCP
    assert plan.starts == {(A, B): 1, (B, A): 7}


def test_the_flows_that_are_looked_at_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.evidence.capture.traffic_survey.MAX_LEARNED", 1)
    packets = [datagram(A, B, b"nonsense"), segment(A, B, 1, GREETING), datagram(A, B, b"nonsense")]
    assert survey(of(tmp_path, *packets)).kind(TCP, A, B) is None
