"""Any record's state can be had, whichever way one comes to it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.evidence.trace.errors import SchemaError, TraceError
from stablecast.evidence.trace.frames import TraceFrame, unread_frames
from stablecast.evidence.trace.tools import travel
from stablecast.evidence.trace.tools.travel import OpenedFrame, Trace, open_all
from tests.adapters.evidence.trace.traced import Frames, first_trace, put_together, read_frames, take_apart


@pytest.fixture
def trace(traces: Path) -> Trace:
    path = max(traces.glob("*.sct"), key=lambda one: len(list(read_frames(one))))
    return Trace.open([path])


def test_the_state_at_the_end_of_a_frame_begins_the_next(trace: Trace) -> None:
    frames = list(read_frames(trace.places[0].path))
    for before, after in itertools.pairwise(frames):
        if before.records:
            assert trace.state(after.head.first - 1) == after.head.snapshot


def test_back_is_where_one_was(trace: Trace) -> None:
    there = trace.count // 2
    state = trace.state(there)
    trace.state(trace.count - 1)
    trace.state(trace.first)
    assert trace.state(there) == state
    assert trace.record(there).number == there


def test_a_time_is_that_of_the_last_record_before(trace: Trace) -> None:
    for number in (trace.first, trace.count // 2, trace.count - 1):
        at = trace.at_time(trace.record(number).time)
        assert at >= number
        assert trace.record(at).time == trace.record(number).time
    assert trace.at_time(-1) == trace.first


def test_missing_records_are_reported(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no record"):
        trace.record(trace.count)
    with pytest.raises(TraceError, match="no traces"):
        open_all([tmp_path])


def test_records_that_the_recorder_dropped_are_missing(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(max(traces.glob("*.sct"), key=lambda one: len(list(read_frames(one)))))
    frames[-1][0]["first"] += 5
    path = put_together(tmp_path / "gap.sct", frames)
    trace = Trace.open([path])
    if len(trace.places) > 1:
        with pytest.raises(TraceError, match="is missing"):
            trace.record(trace.begin(len(trace.places) - 1).first - 1)


def test_a_trace_without_records_is_none(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(next(traces.glob("*.sct")))[:1]
    del frames[0][1:-1]
    with pytest.raises(TraceError, match="there are no records"):
        open_all([put_together(tmp_path / "empty.sct", frames)])


def long_trace(path: Path, frames: int) -> Frames:
    head, line, *_, foot = next(lines for lines in take_apart(path) if len(lines) > 2)
    return [
        [head | {"frame": number, "first": number}, line | {"n": number}, foot | {"end": number, "records": 1}]
        for number in range(frames)
    ]


def test_a_step_replays_few_records_whichever_way_it_goes(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states on the way are those that a frame replayed at once comes to."""
    monkeypatch.setattr(travel, "SPACING", 8)
    at = max(range(len(trace.places)), key=lambda place: len(trace.frame(place).lines))
    last = len(trace.frame(at).lines)
    assert last > 2 * 8
    straight, opened = OpenedFrame.at(trace.places[at]), trace.frame(at)
    states = [straight.state(count) for count in range(last + 1)]
    assert straight.replayed == last
    assert opened.state(last) == states[last]
    assert opened.replayed == last
    for count in (*reversed(range(last)), *range(last), 3, last, last // 2):
        before = opened.replayed
        assert opened.state(count) == states[count]
        assert opened.replayed - before < 8
    assert opened.record(last - 1).number == opened.frame.head.first + last - 1


def test_opening_and_jumping_read_few_frames(traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a trace is: frames between are found by halving."""
    path = put_together(tmp_path / "long.sct", long_trace(first_trace(traces, "source"), 200))
    read: list[int] = []

    def counted(path: Path, start: int = 0) -> Iterator[tuple[TraceFrame, int]]:
        read.append(start)
        return unread_frames(path, start)

    monkeypatch.setattr("stablecast.evidence.trace.tools.travel.unread_frames", counted)
    trace = Trace.open([path])
    assert len(read) == 2
    for number in (0, trace.count // 3, trace.count - 1):
        read.clear()
        assert trace.record(number).number == number
        assert len(read) <= 10
    read.clear()
    trace.record(trace.count - 1)
    assert read == []


def test_a_line_that_is_no_record_is_told(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(traces, "source"))
    at = next(at for at, lines in enumerate(frames) if len(lines) > 2)
    frames[at][1]["in"] = {"_": "Nothing"}
    trace = Trace.open([put_together(tmp_path / "forged.sct", frames)])
    with pytest.raises(SchemaError, match="not a record"):
        trace.state(frames[at][0]["first"])


def test_a_frame_that_is_not_finished_can_be_travelled_in(torn: Path) -> None:
    path = next(path for path in sorted(torn.glob("store-*")) if not [*read_frames(path)][-1].foot.ends_known)
    trace = Trace.open([path])
    frames = list(read_frames(path))
    assert trace.count == sum(frame.count for frame in frames)
    assert trace.record(trace.count - 1).number == trace.count - 1
    trace.state(trace.count - 1)


def test_states_of_a_long_frame_lie_further_apart(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travel, "SPACING", 1)
    monkeypatch.setattr(travel, "MAX_STATES", 3)
    opened = OpenedFrame.at(max(trace.places, key=lambda place: len(OpenedFrame.at(place).lines)))
    last = len(opened.lines)
    opened.state(last)
    assert len(opened.states) <= 4
    assert opened.spacing == -(-last // 3)
