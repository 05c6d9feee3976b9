"""Captures to packets: every layer of all our traffic, in any file, in parts, and with anything else in between."""

import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.evidence.capture.decoder import CapturePacket, packets
from stablecast.evidence.capture.files import marks
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.evidence.capture.traffic_survey import survey
from tests.support import captures
from tests.support.captures import ETHERNET, datagram, framed, pieces, segment
from tests.support.layouts import mutations
from tests.support.pcap import SECOND
from tests.support.traffic_capture import (
    FRAMES,
    RECEIVER,
    SERVICE,
    SOURCE,
    STREAM,
    all_kinds,
    data,
)

OURS = all_kinds().packets
SYN = 0x02


def read(path: Path, roundtrip: bool = True) -> list[CapturePacket]:
    return list(packets(path, roundtrip=roundtrip))


def of(tmp_path: Path, *frames: bytes, link: int = captures.RAW) -> list[CapturePacket]:
    return read(captures.pcap(tmp_path / "a.pcap", frames, link))


def verdicts(found: list[CapturePacket]) -> dict[int, FrameVerdict]:
    """Return the final verdict on each frame."""
    final = {packet.number: packet.verdict for packet in found if packet.number}
    for packet in found:
        final.update(packet.settles)
    return final


def test_every_kind_of_traffic_is_decoded(tmp_path: Path) -> None:
    found = of(tmp_path, *OURS)
    assert len(OURS) == FRAMES
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}
    assert [packet.number for packet in found] == list(range(1, FRAMES + 1))
    types = Counter(layer.type for packet in found for layer in packet.layers)
    assert types == {
        "LBMR NORMAL": 1,
        "LBT-RM DATA": 2,
        "LBT-RM SM": 1,
        "LBT-RM NAK": 1,
        "LBT-RU CREQ": 1,
        "LBT-RU DATA": 1,
        "LBMC DATA": 7,
        "LBMC CONTROL": 2,
        "UMP SourceInfoRequest": 1,
        "RSOCKET SETUP": 1,
        "RSOCKET PARAMETERS": 1,
        "RSOCKET REQUEST_FNF": 1,
        "SRS RCV_INFO": 2,
    }


def test_a_packet_tells_when_who_and_which_session(tmp_path: Path) -> None:
    found = of(tmp_path, *OURS)
    nak = found[4]
    assert (nak.source, nak.target, nak.kind) == (RECEIVER, ("10.0.0.1", 14_390), TrafficKind.LBTRM)
    assert nak.session == "LBTRM:10.0.0.1:14390:00000077:224.10.10.10:14400"
    assert nak.time_ns == (SECOND + 4) * 1_000_000_000 + 5000
    assert {packet.kind for packet in found} == set(TrafficKind)
    assert [packet.session for packet in found[-2:]] == ["SRS:10.0.0.9:27000"] * 2


@pytest.mark.parametrize("link", [captures.ETHERNET, captures.NULL, captures.COOKED, captures.COOKED_2])
def test_in_any_link_layer(tmp_path: Path, link: int) -> None:
    found = of(tmp_path, *(framed(link, packet) for packet in OURS), link=link)
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}


def test_in_pcapng(tmp_path: Path) -> None:
    found = read(captures.pcapng(tmp_path / "a", (framed(ETHERNET, packet, 1) for packet in OURS), ETHERNET))
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}


def test_datagrams_that_were_cut_up(tmp_path: Path) -> None:
    cut = [part for packet in OURS for part in reversed(pieces(packet, 40))]
    blocks = [captures.enhanced(number, part, ticks=number) for number, part in enumerate(cut)]  # a microsecond each
    path = tmp_path / "a.pcapng"
    path.write_bytes(captures.section() + captures.interface(captures.RAW) + b"".join(blocks))
    found = read(path)
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}
    assert len(verdicts(found)) == len(cut)
    assert sum(len(packet.layers) for packet in found) == 22


def test_pieces_of_datagrams_that_do_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, others = pieces(OURS[1], 16), pieces(datagram(SOURCE, ("10.0.0.7", 9), bytes(40)), 16)
    tail = pieces(OURS[2], 16)[1:]
    found = of(tmp_path, ours[0], others[0], *others[1:], *tail[:1])
    assert verdicts(found) == {
        1: FrameVerdict.INCOMPLETE,
        **dict.fromkeys(range(2, 6), FrameVerdict.OTHER),
    }
    monkeypatch.setattr("stablecast.evidence.capture.network.MAX_HELD", 0)
    assert set(verdicts(of(tmp_path, ours[0], others[0])).values()) == {FrameVerdict.INCOMPLETE, FrameVerdict.OTHER}


def test_streams_out_of_order_and_again(tmp_path: Path) -> None:
    octets = data(0) + data(1, bytes(100)) + data(2)
    parts = [(1 + at, octets[at : at + 30]) for at in range(0, len(octets), 30)]
    frames = [segment(STREAM, RECEIVER, 0, b"", SYN)]
    frames += [segment(STREAM, RECEIVER, *part) for part in [*reversed(parts), *parts]]
    found = of(tmp_path, *frames, segment(STREAM, RECEIVER, 1 + len(octets), b"", 0x11))
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}
    assert [layer.type for packet in found for layer in packet.layers] == ["LBMC DATA"] * 3


def test_a_capture_may_begin_out_of_order(tmp_path: Path) -> None:
    first, second, third = data(0)[:9], data(0)[9:], data(1)
    parts = [(-3 + len(first), second), (-3, first), (-3 + len(first + second), third)]
    found = of(tmp_path, *(segment(STREAM, RECEIVER, *part) for part in parts))
    assert set(verdicts(found).values()) == {FrameVerdict.DECODED}
    assert sum(len(packet.layers) for packet in found) == 2


def test_bytes_that_were_not_captured_cost_the_messages_around_them(tmp_path: Path) -> None:
    parts = [data(0), data(1)[:9], data(2)]
    first, second, third = parts
    found = of(
        tmp_path,
        segment(STREAM, RECEIVER, 1, first + second),
        segment(STREAM, RECEIVER, 1 + len(first) + len(data(1)), third),
    )
    assert verdicts(found) == {1: FrameVerdict.INCOMPLETE, 2: FrameVerdict.DECODED}
    assert found[-1].number == 0
    assert found[-1].problems[0].text == f"{len(data(1)) - 9} bytes of the stream were not captured"


def test_a_frame_that_was_cut_is_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    block = captures.enhanced(0, OURS[1][:-3])
    size = len(OURS[1]).to_bytes(4, "little")
    path.write_bytes(captures.section() + captures.interface(101) + block[:24] + size + block[28:])
    (packet,) = read(path)
    assert packet.verdict is FrameVerdict.INCOMPLETE
    assert [problem.text for problem in packet.problems] == ["3 bytes of the datagram were not captured"]


def test_a_datagram_that_announces_more_than_it_has_is_malformed(tmp_path: Path) -> None:
    octets = OURS[1]
    (packet,) = of(tmp_path, octets[:24] + b"\xff\xff" + octets[26:])
    assert packet.verdict is FrameVerdict.MALFORMED
    assert "bytes more than its packet has" in packet.problems[0].text


def test_another_connection_between_the_same_endpoints(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        segment(STREAM, RECEIVER, 99, b"", SYN),
        segment(STREAM, RECEIVER, 100, data(0) + data(1)[:5]),
        segment(STREAM, RECEIVER, 5000, b"", SYN),
        segment(STREAM, RECEIVER, 5001, data(2)),
    )
    assert verdicts(found) == {
        1: FrameVerdict.DECODED,
        2: FrameVerdict.INCOMPLETE,
        3: FrameVerdict.DECODED,
        4: FrameVerdict.DECODED,
    }


def test_connections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.evidence.capture.decoder.MAX_DIRECTIONS", 1)
    others = [("10.0.0.2", 1), ("10.0.0.2", 2)]
    found = of(tmp_path, *(segment(STREAM, other, 1, data(0)[:5]) for other in others))
    assert verdicts(found) == {1: FrameVerdict.INCOMPLETE, 2: FrameVerdict.INCOMPLETE}
    assert [packet.number for packet in found] == [1, 0, 2, 0]


def test_other_traffic_is_none_of_ours(tmp_path: Path) -> None:
    others = [datagram(SOURCE, ("10.0.0.7", 9), b"else"), segment(SOURCE, ("10.0.0.7", 9), 1, b"GET /"), b"\x60"]
    found = of(tmp_path, *others)
    assert set(verdicts(found).values()) == {FrameVerdict.OTHER}
    assert [(packet.kind, packet.layers, packet.session) for packet in found] == [(None, (), "")] * 3


def test_parts_of_a_capture_with_one_plan(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", OURS)
    plan, found = survey(path), marks(path, 500)
    stops = [mark.offset for mark in found[1:]] + [None]
    assert len(found) > 2
    parts = [list(packets(path, plan, mark, stop)) for mark, stop in zip(found, stops, strict=True)]
    numbers = [packet.number for part in parts for packet in part if packet.number]
    assert numbers == list(range(1, FRAMES + 1))
    datagrams = [
        packet
        for part in parts
        for packet in part
        if packet.kind in {TrafficKind.LBTRM, TrafficKind.LBTRU, TrafficKind.LBMR}
    ]
    assert datagrams == [
        packet
        for packet in packets(path, plan)
        if packet.kind in {TrafficKind.LBTRM, TrafficKind.LBTRU, TrafficKind.LBMR}
    ]


def test_plans_marks_and_packets_travel_between_processes(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", OURS)
    sent = (survey(path), marks(path, 500), read(path))
    assert pickle.loads(pickle.dumps(sent)) == sent


@pytest.mark.no_cover
@given(st.lists(st.sampled_from(OURS).flatmap(mutations), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_mutated_frames_never_raise_and_are_all_counted(tmp_path: Path, frames: list[bytes]) -> None:
    final = verdicts(of(tmp_path, *frames))
    assert len(final) == len(frames)
    assert not {FrameVerdict.PART, FrameVerdict.DIFFERENT}.intersection(final.values())


@given(st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=40)), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_bytes_in_a_stream_never_raise_and_are_all_counted(tmp_path: Path, parts: list[tuple[int, bytes]]) -> None:
    frames = [segment(STREAM, RECEIVER, 1, data(0)), *(segment(STREAM, RECEIVER, *part) for part in parts)]
    frames += [segment(RECEIVER, SERVICE, *part) for part in parts]
    final = verdicts(of(tmp_path, *frames))
    assert len(final) == len(frames)
    assert not {FrameVerdict.PART, FrameVerdict.DIFFERENT}.intersection(final.values())
