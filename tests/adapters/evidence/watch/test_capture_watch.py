"""A watch of a growing capture names what `verify` and the doctor find in it, in time, and nothing else."""

from pathlib import Path

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.files import CaptureError, CaptureRing, GrowingCapture, frames
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.watch import capture_watch
from stablecast.evidence.watch.alarms import AlarmKind
from stablecast.evidence.watch.capture_watch import CaptureWatch
from tests.adapters.evidence.capture.judge.test_persistence_rules import acks_too_much, sends_twice
from tests.adapters.evidence.capture.judge.test_variants import FRAMES, written
from tests.adapters.evidence.capture.judge.wire_session import World, settled
from tests.adapters.evidence.watch.__main__ import LIMIT_NS
from tests.adapters.evidence.watch.played_captures import named_faults, played
from tests.support import captures


@pytest.mark.parametrize("plant", [acks_too_much, sends_twice])
def test_a_fault_is_named_in_time(tmp_path: Path, plant: object) -> None:
    world = settled(World())
    plant(world)  # type: ignore[operator] # one of the planted faults
    found = [*named_faults("one", world.talk.write(tmp_path / "one.pcap"))]
    assert found
    assert all(one.delay_ns is not None and one.delay_ns <= LIMIT_NS for one in found)


def test_a_clean_capture_has_no_alarm(tmp_path: Path) -> None:
    assert played(written(tmp_path / "one.pcap", FRAMES), tmp_path / "one.live") == {}


def test_frames_come_once_however_the_file_grows(tmp_path: Path) -> None:
    octets = written(tmp_path / "one.pcap", FRAMES).read_bytes()
    copy = tmp_path / "copy.pcap"
    growing, found = GrowingCapture(copy), []
    for end in range(0, len(octets) + 1000, 1000):
        copy.write_bytes(octets[:end])
        found += [(one.number, one.time_ns, one.octets) for one in growing.read()]
    assert found == [(one.number, one.time_ns, one.octets) for one in frames(tmp_path / "one.pcap")]


@pytest.mark.parametrize("order", ["<", ">"])
def test_blocks_come_once_however_the_file_grows(tmp_path: Path, order: str) -> None:
    packets = [packet for _, packet in FRAMES]
    whole = captures.pcapng(tmp_path / "one.pcapng", packets, captures.RAW, order)
    octets, copy = whole.read_bytes(), tmp_path / "copy.pcapng"
    growing, found = GrowingCapture(copy), []
    for end in range(0, len(octets) + 777, 777):
        copy.write_bytes(octets[:end])
        found += [(one.number, one.octets) for one in growing.read()]
    assert found == [(one.number, one.octets) for one in frames(whole)]


@pytest.mark.parametrize("octets", [b"no capture at all, and longer than a head", b"\x1f\x8b" * 20])
def test_what_cannot_be_followed_is_one_sentence(tmp_path: Path, octets: bytes) -> None:
    (tmp_path / "one.pcap").write_bytes(octets)
    with pytest.raises(CaptureError, match=r"one\.pcap"):
        list(GrowingCapture(tmp_path / "one.pcap").read())
    alarms = CaptureWatch(CaptureRing(tmp_path / "one.pcap"), PortPlan()).poll(0)
    assert [one.kind for one in alarms] == [AlarmKind.DAMAGE]


def test_a_ring_is_followed_from_file_to_file_and_lost_files_are_reported(tmp_path: Path) -> None:
    third = len(FRAMES) // 3
    parts = [FRAMES[:third], FRAMES[third : 2 * third], FRAMES[2 * third :]]
    names = [tmp_path / f"ring_0000{number}.pcap" for number in range(4)]
    watch = CaptureWatch(CaptureRing(tmp_path), PortPlan())
    for now, (name, part) in enumerate(zip(names, parts, strict=False)):
        written(name, part)
        assert watch.poll(now * SECOND) == []
    names[0].unlink()
    names[1].unlink()
    names[2].unlink()
    written(names[3], FRAMES[:third])
    notes = [*watch.poll(4 * SECOND), *watch.poll(5 * SECOND)]
    assert watch.frames == len(FRAMES) + third
    assert [one.kind for one in notes] == [AlarmKind.NOTE]


def test_a_capture_is_judged_on_where_an_earlier_watch_stopped(tmp_path: Path) -> None:
    path = written(tmp_path / "one.pcap", FRAMES[:40])
    first = CaptureWatch(CaptureRing(path), PortPlan())
    first.poll(0)
    written(path, FRAMES[:60])
    first.poll(SECOND)
    state = first.as_json()
    second = CaptureWatch(CaptureRing(path), PortPlan())
    second.resume(state)
    written(path, FRAMES)
    second.poll(2 * SECOND)
    second.poll(3 * SECOND)
    assert first.frames + second.frames == len(FRAMES)


def test_the_judges_begin_anew_after_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory is bounded, and a trouble that lasts is reported again."""
    monkeypatch.setattr(capture_watch, "EPOCH_NS", 3 * SECOND)
    world = settled(World())
    sends_twice(world)
    path = world.talk.write(tmp_path / "one.pcap")
    watch, found = CaptureWatch(CaptureRing(path), PortPlan()), []
    for now in range(8):
        found += watch.poll(now * SECOND)
    assert {one.rule for one in found} == {"D3"}
    assert len(found) == len({one.place for one in found})
    assert watch.reported == set()
