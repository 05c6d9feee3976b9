"""A frame that is beyond doubt is replayed without being decoded; anything else is left to the judge."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.evidence.trace import frame_judge, frame_replay
from stablecast.evidence.trace.converter import decode_effects, decode_input, restore
from stablecast.evidence.trace.frame_judge import FrameJudge
from stablecast.evidence.trace.frame_replay import Step, replayed
from stablecast.evidence.trace.frames import Foot, TraceFrame
from tests.adapters.evidence.trace.traced import read_frames


def quick(frame: TraceFrame) -> list[Step] | None:
    steps: list[Step] = []
    for batch in replayed(frame, restore(frame.head.role, frame.head.snapshot)):
        if batch is None:
            return None
        steps += batch
    return steps


@pytest.fixture
def frame(traces: Path) -> TraceFrame:
    """Return the longest frame of a store."""
    frames = [frame for path in traces.glob("store-*") for frame in read_frames(path)]
    return max(frames, key=lambda frame: frame.count)


def test_steps_are_what_the_converter_decodes(traces: Path) -> None:
    for path in traces.iterdir():
        for frame in read_frames(path):
            role, steps = frame.head.role, quick(frame)
            assert steps == [
                (line["n"], line["t"], decode_input(role, line["in"]), decode_effects(role, line["out"]))
                for line in frame.records
            ]


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
def test_every_defect_of_a_frame_is_doubted(frame: TraceFrame, edit: Callable[[TraceFrame], TraceFrame]) -> None:
    assert quick(frame) is not None
    assert edit(frame) != frame
    assert quick(edit(frame)) is None


def test_doubt_finds_nothing_where_there_is_nothing(whole_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast and the slow way agree on the same records."""

    def told(frame: TraceFrame) -> tuple[object, ...]:
        one = FrameJudge(Path("a.sct"), frame)
        standing = one.run(None)
        return one.found, one.book.facts, standing

    frames = [frame for path in sorted(whole_world.iterdir()) for frame in read_frames(path)]
    monkeypatch.setattr(frame_replay, "BATCH", 1000)
    sure = [told(frame) for frame in frames]
    for batches in (0, 1, 2):
        monkeypatch.setattr(frame_judge, "replayed", lambda *of, most=batches: (*islice(replayed(*of), most), None))
        assert [told(frame) for frame in frames] == sure
