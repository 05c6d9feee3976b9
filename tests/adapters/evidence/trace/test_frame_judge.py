"""The verdict on one frame alone, as a worker gives it."""

from pathlib import Path

import attrs
import pytest

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import frame_judge
from stablecast.evidence.trace.converter import Endpoint, Json, restore
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frames import TraceFrame
from stablecast.evidence.trace.reports import TraceViolation
from tests.adapters.evidence.trace.traced import first_trace, read_frames, with_records

PATH = Path("somewhere.sct")


@pytest.fixture
def frames(traces: Path) -> list[TraceFrame]:
    """Return the frames of the busiest store."""
    return list(read_frames(max(traces.glob("store-*"), key=lambda path: path.stat().st_size)))


def found(frame: TraceFrame) -> list[TraceViolation]:
    one = FrameJudge(PATH, frame)
    one.run(None)
    return list(one.found.values())


def busy(frames: list[TraceFrame]) -> TraceFrame:
    return max(frames, key=lambda frame: len(frame.records))


def with_record(frame: TraceFrame, at: int, **fields: object) -> TraceFrame:
    records: list[Json] = [*frame.records]
    records[at] = {**records[at], **fields}
    return with_records(frame, records)


def test_each_frame_is_clean_without_the_others(traces: Path) -> None:
    for path in traces.iterdir():
        assert [found(frame) for frame in read_frames(path) if found(frame)] == []


def test_rules_remember_the_frames_before(frames: list[TraceFrame]) -> None:
    standing = FrameJudge(PATH, frames[0]).run(None)
    for frame in frames[1:]:
        assert FrameJudge(PATH, frame).run(standing) is standing


def test_a_snapshot_that_is_none_ends_the_judging(frames: list[TraceFrame]) -> None:
    frame = attrs.evolve(frames[2], head=attrs.evolve(frames[2].head, text={}))
    one = FrameJudge(PATH, frame)
    assert one.run(None) is None
    (violation,) = one.found.values()
    first = frame.head.first
    assert (violation.record, violation.rule) == (first, "schema")
    assert violation.text.startswith(f"the snapshot before record {first} is not a StoreEndpoint: ")


def test_records_before_a_malformed_one_are_replayed(frames: list[TraceFrame]) -> None:
    frame = busy(frames)
    first = frame.head.first
    frame = with_record(with_record(frame, 1, out=[]), -1, out=[7])
    assert {(v.record, v.rule) for v in found(frame)} >= {(first + len(frame.records) - 1, "schema")}
    assert "replay" not in {v.rule for v in found(with_record(busy(frames), -1, out=[7]))}


def test_a_machine_that_fails_is_a_violation_and_no_crash(frames: list[TraceFrame]) -> None:
    frame = busy(frames)
    at = next(at for at, record in enumerate(frame.records) if "PersistMessages" in str(record["out"]))
    event = {**frame.records[at]["in"], "wire_first": -1}
    (violation,) = found(with_record(frame, at, **{"in": event}))
    assert violation.record == frame.head.first + at
    assert violation.rule == "replay"
    assert "the machine cannot take it: ValueError: wire number -1" in violation.text


@pytest.mark.parametrize("extra", [0, 1])
def test_long_values_are_cut_in_sentences_only(
    frames: list[TraceFrame], monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    monkeypatch.setattr(frame_judge, "SHOWN", 10)
    frame = busy(frames)
    at = next(at for at, record in enumerate(frame.records) if record["out"])
    effects = frame.records[at]["out"]
    (violation, *_) = found(with_record(frame, at, out=[*effects, *effects[:extra]] if extra else effects[:-1]))
    value = violation.found if extra else violation.expected
    assert value in effects
    assert '{"_": "Sen...' in violation.text or '{"_": "Per...' in violation.text or '{"_": "Joi...' in violation.text
    assert violation.text.count("nothing") == 1


def test_a_record_too_few_is_named(frames: list[TraceFrame]) -> None:
    frame = busy(frames)
    last = frame.head.first + len(frame.records) - 1
    violations = found(with_records(frame, frame.records[:-1]))
    assert (last, "numbering") in [(violation.record, violation.rule) for violation in violations]


def test_a_snapshot_that_fits_the_schema_and_means_nothing_is_a_violation(traces: Path) -> None:
    (frame, *_) = read_frames(first_trace(traces, "source"))
    frame.head.snapshot["config"]["stores"][0]["group"] = 9
    one = FrameJudge(PATH, frame, fresh=True)
    assert one.run(None) is None
    (violation,) = one.found.values()
    assert (violation.record, violation.rule) == (frame.head.first, "schema")
    assert "makes no sense: KeyError" in violation.text


def test_a_time_that_no_table_can_hold_is_no_record(frames: list[TraceFrame]) -> None:
    (violation, *_) = found(with_record(busy(frames), 3, t=1 << 70))
    assert (violation.record, violation.rule) == (busy(frames).head.first + 3, "schema")
    assert "does not fit 64 bits" in violation.text


def test_a_machine_that_is_known_is_not_restored(frames: list[TraceFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the snapshot read that says what it is; but for one of another role, or another state."""
    restored: list[Role] = []

    def counted(role: Role, value: Json) -> Endpoint:
        restored.append(role)
        return restore(role, value)

    monkeypatch.setattr(frame_judge, "restore", counted)
    known = KnownState()
    for frame in frames:
        one = FrameJudge(PATH, frame, known=known)
        one.run(None)
        assert one.found == {}
    assert len(restored) == 1
    FrameJudge(PATH, frames[-2], known=known).run(None)
    assert len(restored) == 2
    other = attrs.evolve(frames[-1], head=attrs.evolve(frames[-1].head, role=Role.SOURCE))
    wrong = FrameJudge(PATH, other, known=known)
    wrong.run(None)
    assert [*wrong.found] == ["schema"]
