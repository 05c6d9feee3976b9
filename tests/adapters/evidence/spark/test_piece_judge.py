"""The rows of a task about a piece, without any Spark."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from stablecast.evidence.spark.piece_judge import (
    END,
    SCHEMA,
    TYPES,
    TracePiece,
    judge_piece,
    judge_with,
    loads,
    pieces_of,
)
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import TraceViolation, row_of
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart


def test_each_frame_is_one_batch_of_rows(whole_world: Path) -> None:
    path = first_trace(whole_world, "source")
    pieces = pieces_of(path, 1)
    batches = list(judge_with(pieces)(iter([pa.record_batch([pa.array(range(len(pieces)))], ["id"])])))
    assert [batch.schema.names for batch in batches] == [list(TYPES)] * len(pieces)
    rows = [row for batch in batches for row in batch.to_pylist()]
    frames = [row for row in rows if row["what"] == "frame"]
    assert [row["frame"] for row in frames] == list(range(len(pieces)))
    assert sum(row["count"] for row in frames) == sum(len(lines) - 2 for lines in take_apart(path))
    assert {row["kind"] for row in rows if row["what"] == "fact"} >= {"asks", "member", "sent", "stable", "acked"}
    assert {row["what"] for row in rows} == {"frame", "fact"}
    assert all(before["ended_as"] == after["started_as"] for before, after in pairwise(frames))
    assert len(SCHEMA.split(", ")) == len(TYPES)


def test_a_piece_ends_where_the_next_begins(whole_world: Path) -> None:
    path = first_trace(whole_world, "store")
    pieces = pieces_of(path, 1)
    assert [len(list(judge_piece(piece))) for piece in pieces] == [1] * len(pieces)


def test_violations_and_errors_are_rows(whole_world: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(whole_world, "source"))
    frames[2][0]["snapshot"] = {}
    path = put_together(tmp_path / "a.1.sct", frames)
    path.write_bytes(path.read_bytes()[:-1])
    rows = [row for some in judge_piece(TracePiece(str(path), 0, END)) for row in some]
    (found,) = [row for row in rows if row["what"] == "violation"]
    assert (found["rule"], found["part"], found["trace"]) == ("schema", 1, str(tmp_path / "a.sct"))
    (error,) = [row for row in rows if row["what"] == "error"]
    assert error["truncated"]
    assert str(path) in error["text"]


@pytest.mark.parametrize("seed", [12, 27])
def test_any_frame_can_be_judged_alone(tmp_path: Path, seed: int) -> None:
    """Stores write late and release messages: a frame begins with everything that its rules need."""
    assert run(draw(seed), tmp_path).violations == ()
    rows = [row for path in find([tmp_path]) for some in judge_piece(TracePiece(str(path), 0, END)) for row in some]
    assert [row["text"] for row in rows if row["what"] not in ("frame", "fact")] == []


def test_expected_values_survive_as_text() -> None:
    for value in (None, [1, 2], {"_": "Send"}, "x"):
        assert loads(row_of(TraceViolation(Path("a.sct"), 1, "S1", "", value))["expected"]) == value


def test_no_files_no_pieces(tmp_path: Path) -> None:
    assert find([]) == []
    assert list(judge_with([])(iter([]))) == []
