"""Any record's state can be had, whichever way one comes to it."""

import itertools
from pathlib import Path

import pytest

from stablecast.trace.errors import TraceError
from stablecast.trace.frames import read_frames
from stablecast.trace.tools.travel import Trace, open_all
from tests.adapters.trace.traced import put_together, take_apart


@pytest.fixture
def trace(traces: Path) -> Trace:
    """The one with the most frames."""
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


def test_what_is_not_there_is_told(trace: Trace, tmp_path: Path) -> None:
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
            trace.record(trace.places[-1].first - 1)


def test_a_trace_without_records_is_none(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(next(traces.glob("*.sct")))[:1]
    del frames[0][1:-1]
    with pytest.raises(TraceError, match="there are no records"):
        open_all([put_together(tmp_path / "empty.sct", frames)])
