"""The verdict on one frame alone, as a worker gives it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import frame_judge
from stablecast.evidence.trace.converter import Endpoint, Json, decode_effects, decode_input, restore
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frame_judge import FrameJudge, KnownState
from stablecast.evidence.trace.frame_replay import Answering, Step
from stablecast.evidence.trace.frames import Foot, FramePortion, FrameReader, TraceFrame
from stablecast.evidence.trace.reports import TraceViolation
from stablecast.evidence.trace.rule_protocol import EndpointRule
from tests.adapters.evidence.trace.traced import first_trace, read_frames, with_records

PATH = Path("somewhere.sct")


@pytest.fixture
def frames(traces: Path) -> list[TraceFrame]:
    """Return the frames of the busiest store."""
    return list(read_frames(max(traces.glob("store-*"), key=lambda path: path.stat().st_size)))


def judged(
    frame: TraceFrame, known: KnownState | None = None, standing: list[EndpointRule] | None = None, offset: int = 16
) -> FrameJudge:
    portion = FramePortion.of(frame, offset)
    one = FrameJudge.of(PATH, portion, known)
    one.begin(standing)
    one.judge(portion)
    return one


def found(frame: TraceFrame) -> list[TraceViolation]:
    return sorted(judged(frame).found.values(), key=lambda one: one.record)


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
    standing = judged(frames[0]).standing
    assert standing is not None
    for frame in frames[1:]:
        assert judged(frame, standing=standing).standing is standing


def test_a_snapshot_that_is_none_ends_the_judging(frames: list[TraceFrame]) -> None:
    frame = attrs.evolve(frames[2], head=attrs.evolve(frames[2].head, text={}))
    one = judged(frame)
    assert one.standing is None
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
    one = judged(frame, offset=0)
    assert one.standing is None
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
        assert judged(frame, known).found == {}
    assert len(restored) == 1
    judged(frames[-2], known)
    assert len(restored) == 2
    other = attrs.evolve(frames[-1], head=attrs.evolve(frames[-1].head, role=Role.SOURCE))
    assert [*judged(other, known).found] == ["schema"]


# A frame that is beyond doubt is replayed without being decoded.


def edited(before: bytes, after: bytes) -> Callable[[TraceFrame], TraceFrame]:
    return lambda frame: attrs.evolve(frame, body=frame.body.replace(before, after, 1))


def footed(**fields: Any) -> Callable[[TraceFrame], TraceFrame]:
    return lambda frame: attrs.evolve(frame, foot=attrs.evolve(frame.foot, **fields))


def without_last_line(frame: TraceFrame) -> TraceFrame:
    body = frame.body[: frame.body.rindex(b"\n", 0, -1) + 1]
    return attrs.evolve(frame, body=body, foot=Foot(frame.count - 1, frame.foot.digest, frame.foot.closed))


def with_lines_broken_elsewhere(frame: TraceFrame) -> TraceFrame:
    """Return the frame with as many lines as records, but one record in two lines and two in one."""
    first, second, third, rest = frame.body.split(b"\n", 3)
    body = b"\n".join([first.replace(b",", b",\n", 1), second + third, rest])
    return attrs.evolve(frame, body=body)


@pytest.mark.parametrize(
    "edit",
    [
        edited(b'"out":[]', b'"out":[ ]'),
        edited(b'"out":[]', b'"out":[{"_":"Leave","incarnation":1}]'),
        edited(b'"n":', b'"n":1'),
        edited(b'"t":', b'"t":-'),
        edited(b'"t":', b'"t":9999999999999999999'),
        edited(b'"_":"', b'"_":"No'),
        edited(b'"count":', b'"count":true,"c":'),
        edited(b'"wire_first":', b'"wire_first":7'),
        edited(b"}\n", b"}\n\n"),
        edited(b"}\n", b"\n"),
        footed(records=3),
        footed(digest="0"),
        without_last_line,
        with_lines_broken_elsewhere,
    ],
)
def test_every_defect_of_a_frame_is_doubted(
    frames: list[TraceFrame], edit: Callable[[TraceFrame], TraceFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    doubted = list[Json]()
    monkeypatch.setattr(frame_judge._BySchema, "judge", lambda _, lines, __: doubted.extend(lines))
    frame = busy(frames)
    judged(frame)
    assert not doubted
    assert edit(frame) != frame
    with suppress(TraceError):  # Not every line can be read at all.
        judged(edit(frame))
        assert doubted


def test_steps_are_what_the_converter_decodes(frames: list[TraceFrame]) -> None:
    for frame in filter(lambda frame: frame.body, frames):
        role = frame.head.role
        assert Answering(frame.head, restore(role, frame.head.snapshot)).to(frame.body) == [
            (line["n"], line["t"], decode_input(role, line["in"]), decode_effects(role, line["out"]))
            for line in frame.records
        ]


@pytest.mark.parametrize("sure", [None, 0, 1, 2])
@pytest.mark.parametrize("step", [None, 700])
def test_doubt_finds_nothing_where_there_is_nothing(
    whole_world: Path, monkeypatch: pytest.MonkeyPatch, sure: int | None, step: int | None
) -> None:
    """The fast and the slow way agree on the same records, however a frame is divided into portions."""
    answer = Answering.to

    def unsure(one: Answering, lines: bytes) -> list[Step]:
        calls[one] += 1
        if sure is not None and calls[one] > sure:
            raise ValueError
        return answer(one, lines)

    def told(path: Path, portions: list[FramePortion]) -> tuple[object, ...]:
        one = FrameJudge.of(path, portions[0])
        one.begin()
        for portion in portions:
            one.judge(portion)
        return one.found, one.book.facts, one.standing, one.count, one.last_ns

    def divided(portion: FramePortion) -> list[FramePortion]:
        portions, rest = [], portion
        while step is not None and len(rest.body) > step:
            first, rest = rest.cut(3)
            portions.append(first)
        return [*portions, rest]

    calls: Counter[Answering] = Counter()
    portions = [(path, one) for path in sorted(whole_world.iterdir()) for one in FrameReader.at(path).read(ended=True)]
    expected = [told(path, [one]) for path, one in portions]
    monkeypatch.setattr(frame_judge, "BATCH", 1000)
    monkeypatch.setattr(Answering, "to", unsure)
    assert [told(path, divided(one)) for path, one in portions] == expected
