"""The columns of the data source, without any Spark."""

from pathlib import Path

import pytest

from stablecast.evidence.spark.piece_judge import END
from stablecast.evidence.spark.trace_source import COLUMNS, RowBounds, batches
from stablecast.text.spark_table import sql_schema
from tests.adapters.evidence.trace.traced import first_trace, put_together, records, take_apart


def rows(path: Path, *names: str, bounds: RowBounds | None = None) -> list[dict[str, object]]:
    given = bounds or RowBounds()
    return [row for batch in batches(str(path), 0, END, list(names), given) for row in batch.to_pylist()]


def test_a_row_says_what_its_record_says(whole_world: Path) -> None:
    path = first_trace(whole_world, "store")
    found = rows(path, *COLUMNS)
    lines = list(records(take_apart(path)))
    assert [(row["record"], row["time"], row["kind"]) for row in found] == [
        (line["n"], line["t"], line["in"]["_"]) for line in lines
    ]
    data = next(row for row in found if row["kind"] == "Data")
    line = lines[int(str(data["record"]))]["in"]
    assert (data["first"], data["last"]) == (line["wire_first"], line["wire_first"] + line["count"] - 1)
    assert data["life"] == hex(line["incarnation"])
    assert data["effects"] == ["PersistMessages"]
    assert (data["role"], data["path"], data["trace"]) == ("store", str(path), str(path))
    arrived = next(row for row in found if row["message"] == "ConsumptionAck")
    assert arrived["kind"] == "Arrived"
    assert arrived["first"] == arrived["last"]
    start = found[0]
    assert (start["kind"], start["first"], start["last"], start["life"]) == ("Start", None, None, None)
    assert start["input"] == '{"_":"Start"}'
    assert len(sql_schema(COLUMNS).split(", ")) == len(COLUMNS)


def test_only_the_columns_that_are_asked_for(whole_world: Path) -> None:
    found = rows(first_trace(whole_world, "source"), "kind", "record")
    assert list(found[0]) == ["kind", "record"]


def test_frames_without_anything_asked_for_are_left_out(whole_world: Path) -> None:
    path = first_trace(whole_world, "source")
    every = rows(path, "record", "frame")
    some = rows(path, "record", "frame", bounds=RowBounds(low={"record": 30}, high={"record": 31}))
    assert 0 < len(some) < len(every)
    assert {30, 31} <= {row["record"] for row in some}
    assert rows(path, "record", bounds=RowBounds(values={"role": ["store"]})) == []
    assert rows(path, "record", bounds=RowBounds(low={"frame": 10_000})) == []
    assert rows(path, "record", bounds=RowBounds(values={"role": ["source"], "kind": []})) != [], "not of whole frames"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({}, (None, None, None, None, None, [])),
        ({"n": True, "t": 0.5, "in": 7, "out": 7}, (None, None, None, None, None, [])),
        (
            {"n": 1, "t": 2, "in": {"_": 5, "first": 1 << 70, "message": "m"}, "out": [7]},
            (1, 2, None, None, None, [None]),
        ),
        ({"n": 1, "t": 2, "in": {"_": "X", "count": 3}, "out": []}, (1, 2, "X", None, None, [])),
    ],
)
def test_lines_that_make_no_sense_have_empty_columns(
    whole_world: Path, tmp_path: Path, line: dict[str, object], expected: tuple[object, ...]
) -> None:
    frames = take_apart(first_trace(whole_world, "source"))[:2]
    frames[1].insert(1, line)
    path = put_together(tmp_path / "odd.sct", frames)
    names = ("record", "time", "kind", "first", "last", "effects")
    assert tuple(rows(path, *names)[0].values()) == expected
