"""The rows of a task about a piece, without any Spark."""

import pickle
from itertools import pairwise
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from stablecast.evidence.spark.piece_judge import END, TYPES, TracePiece, judge_piece, judge_with, pieces_of
from stablecast.evidence.trace.errors import TruncatedError
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import FrameVerdict
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart


def verdicts(piece: TracePiece) -> list[FrameVerdict | TruncatedError]:
    return [pickle.loads(row["outcome"]) for rows in judge_piece(piece) for row in rows]


def test_each_frame_is_one_row(whole_world: Path) -> None:
    path = first_trace(whole_world, "source")
    pieces = pieces_of(path, 1)
    batches = list(judge_with(pieces)(iter([pa.record_batch([pa.array(range(len(pieces)))], ["id"])])))
    assert [batch.schema.names for batch in batches] == [list(TYPES)] * len(pieces)
    frames = [pickle.loads(row["outcome"]) for batch in batches for row in batch.to_pylist()]
    assert [frame.begin.frame for frame in frames] == list(range(len(pieces)))
    assert sum(frame.count for frame in frames) == sum(len(lines) - 2 for lines in take_apart(path))
    kinds = {fact.kind for frame in frames for fact in frame.facts}
    assert kinds >= {"asks", "member", "sent", "stable", "acked"}
    assert all(before.behind.digest == after.begin.digest for before, after in pairwise(frames))


def test_a_piece_ends_where_the_next_begins(whole_world: Path) -> None:
    path = first_trace(whole_world, "store")
    pieces = pieces_of(path, 1)
    assert [len(list(judge_piece(piece))) for piece in pieces] == [1] * len(pieces)


def test_violations_and_errors_are_told(whole_world: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(whole_world, "source"))
    frames[2][0]["snapshot"] = {}
    path = put_together(tmp_path / "a.1.sct", frames)
    path.write_bytes(path.read_bytes()[:-1])
    *judged, error = verdicts(TracePiece(str(path), 0, END))
    assert [one.rule for frame in judged if isinstance(frame, FrameVerdict) for one in frame.found] == ["schema"]
    assert isinstance(error, TruncatedError)
    assert str(path) in str(error)


@pytest.mark.parametrize("seed", [12, 27])
def test_any_frame_can_be_judged_alone(tmp_path: Path, seed: int) -> None:
    """Stores write late and release messages: a frame begins with everything that its rules need."""
    assert run(draw(seed), tmp_path).violations == ()
    found = [one for path in find([tmp_path]) for one in verdicts(TracePiece(str(path), 0, END))]
    assert [one for one in found if not isinstance(one, FrameVerdict) or one.found] == []


def test_no_files_no_pieces(tmp_path: Path) -> None:
    assert find([]) == []
    assert list(judge_with([])(iter([]))) == []


def test_a_worker_that_does_not_see_a_file_says_so(tmp_path: Path) -> None:
    [error] = verdicts(TracePiece(str(tmp_path / "gone.sct"), 0, END))
    assert "this worker does not see it, and the driver does" in str(error)
    [piece] = pieces_of(tmp_path / "gone.sct")
    [error] = verdicts(piece)
    assert "this worker" not in str(error)
