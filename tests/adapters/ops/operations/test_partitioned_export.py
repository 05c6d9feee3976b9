"""Messages in a folder by day."""

import json
from pathlib import Path

import pytest
from pyarrow import dataset  # type: ignore[import-untyped]
from typer.testing import CliRunner

from stablecast.archive.day_files import MAX_OPEN_FILES
from stablecast.archive.message_columns import COLUMNS
from stablecast.cli.app import app
from stablecast.core.machine.units import SECOND
from stablecast.ops.operations.export import MessageRow
from stablecast.ops.operations.partitioned_export import MANIFEST, PartitionedParquet
from stablecast.ops.operations.target import OperationError
from tests.adapters.ops.operations.store_directory import kept

DAY = 86_400 * SECOND


def row(number: int, day: int | None, source: int = 1, properties: str = "{}") -> MessageRow:
    at = None if day is None else day * DAY + number
    return MessageRow(source, "orders", 7, 66, number, at, b"%d" % number, number, properties)


def rows_of(folder: Path) -> list[dict[str, object]]:
    found = dataset.dataset(folder, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return sorted(found.to_pylist(), key=lambda one: one["number"])


def test_rows_lie_in_folders_by_day(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    writer = PartitionedParquet(folder)
    writer.write([row(0, 0), row(1, 0), row(2, 1)])
    writer.write([row(3, None), row(4, 1, properties='{"a": 1}'), row(5, 0, source=2)])
    writer.close()
    assert not (folder / MANIFEST).exists()
    writer.finish()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))
    assert names == [
        "day=1970-01-01/1-0.parquet",
        "day=1970-01-01/2-5.parquet",
        "day=1970-01-02/1-2.parquet",
        "day=unknown/1-3.parquet",
    ]
    found = rows_of(folder)
    assert [one["number"] for one in found] == list(range(6))
    assert set(found[0]) == {*COLUMNS, "day"}
    assert [one["properties"] for one in found] == [None, None, None, None, '{"a": 1}', None]
    manifest = json.loads((folder / MANIFEST).read_text())["files"]
    assert [(one["path"], one["first"], one["last"], one["rows"]) for one in manifest] == [
        (names[0], 0, 1, 2),
        (names[1], 5, 5, 1),
        (names[2], 2, 4, 2),
        (names[3], 3, 3, 1),
    ]


def test_few_files_are_open_at_a_time(tmp_path: Path) -> None:
    writer = PartitionedParquet(tmp_path / "out")
    for number in range(3 * MAX_OPEN_FILES):
        writer.write([row(number, number)])
        assert len(writer._files._open) <= MAX_OPEN_FILES
    writer.close()
    assert len(rows_of(tmp_path / "out")) == 3 * MAX_OPEN_FILES


async def test_the_command_exports_a_store(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    out = tmp_path / "out"
    assert CliRunner().invoke(app, ["store", "export", str(directory), "--output", f"{out}/"]).exit_code == 0
    assert len(rows_of(out)) == 13
    assert sum(one["rows"] for one in json.loads((out / MANIFEST).read_text())["files"]) == 13


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="exists: name a new folder"):
        PartitionedParquet(tmp_path)
