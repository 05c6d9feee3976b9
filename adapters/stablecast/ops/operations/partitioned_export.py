"""An export as a folder of Parquet files by day, with the columns of Spark's format `stablecast-messages`.

    orders/day=2026-01-31/7-0.parquet          RegID of the source and its first number in the file
    orders/day=unknown/7-4711.parquet          messages whose time is not known
    orders/manifest.json                       the files, their sources, first and last numbers, and rows

Spark reads such a folder as a table with the column `day`. The manifest is written last, so a folder without one is the
rest of an export that did not end. The rows of a file have one source and ascending numbers.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.operations.export import MessageRow
from stablecast.ops.operations.target import OperationError

MANIFEST = "manifest.json"
UNKNOWN = "unknown"
"""The day of messages whose time is not known."""

MAX_OPEN_FILES = 8
"""Files that are written at a time: messages that were recovered late belong to other days than their neighbours."""


@attrs.define
class DayFile:
    """A file of one source and day. `last` is the newest number in it."""

    path: Path
    writer: Any
    source: int
    session_id: int
    topic: str
    day: str
    first: int
    last: int = 0
    rows: int = 0


class PartitionedParquet:
    """Writes rows into a new folder."""

    def __init__(self, folder: Path) -> None:
        """Make the folder.

        Raises:
            OperationError: pyarrow is not installed, or the folder exists.
        """
        try:
            self._arrow: Any = import_module("pyarrow")
            self._parquet: Any = import_module("pyarrow.parquet")
        except ModuleNotFoundError:
            raise OperationError("Parquet needs pyarrow: pip install pyarrow, or write to a .jsonl.zst file") from None
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise OperationError(f"{folder} exists: name a new folder for the export") from None
        self._folder = folder
        self._open: dict[tuple[int, str], DayFile] = {}
        self._done: list[DayFile] = []
        arrow = self._arrow
        self._schema = arrow.schema(
            [
                ("topic", arrow.string()),
                ("source", arrow.string()),
                ("life", arrow.string()),
                ("number", arrow.int64()),
                ("received", arrow.timestamp("us", tz="UTC")),
                ("payload", arrow.binary()),
                ("properties", arrow.string()),
                ("recovered", arrow.bool_()),
            ]
        )

    def write(self, rows: list[MessageRow]) -> None:
        """Write a batch of rows, each to the file of its source and day."""
        for (source, day), some in groupby(rows, key=lambda row: (row.source, day_of(row.came_at))):
            part = list(some)
            file = self._file(source, day, part[0])
            columns = list(zip(*(_values(row) for row in part), strict=True))
            arrays = [
                self._arrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)
            ]
            file.writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
            file.rows += len(part)
            file.last = part[-1].number

    def close(self) -> None:
        """Write the footers of all files that are open."""
        for key in list(self._open):
            self._end(key)

    def finish(self) -> None:
        """Write the manifest, after the last row and `close`."""
        files = [
            {
                "path": str(file.path.relative_to(self._folder)),
                "day": file.day,
                "topic": file.topic,
                "source": file.source,
                "session_id": file.session_id,
                "first": file.first,
                "last": file.last,
                "rows": file.rows,
            }
            for file in sorted(self._done, key=lambda file: file.path)
        ]
        (self._folder / MANIFEST).write_text(json.dumps({"files": files}, indent=1) + "\n")

    def _file(self, source: int, day: str, row: MessageRow) -> DayFile:
        found = self._open.pop((source, day), None)
        if found is None:
            while len(self._open) >= MAX_OPEN_FILES:
                self._end(next(iter(self._open)))
            folder = self._folder / f"day={day}"
            folder.mkdir(exist_ok=True)
            path = folder / f"{source}-{row.number}.parquet"
            writer = self._parquet.ParquetWriter(path, self._schema, compression="zstd")
            found = DayFile(path, writer, source, row.session_id, row.topic, day, row.number)
        self._open[source, day] = found
        return found

    def _end(self, key: tuple[int, str]) -> None:
        file = self._open.pop(key)
        file.writer.close()
        self._done.append(file)


def _values(row: MessageRow) -> Iterator[Any]:
    yield row.topic
    yield str(row.session_id) if row.session_id else f"life-{row.incarnation:016x}"
    yield f"{row.incarnation:016x}"
    yield row.number
    yield None if row.came_at is None else row.came_at // 1000
    yield row.payload
    yield None if row.properties == "{}" else row.properties
    yield False


def day_of(came_at: int | None) -> str:
    """Return the day of a time in ns, in UTC.

    >>> day_of(1767323045 * 10**9), day_of(None)
    ('2026-01-02', 'unknown')
    """
    return UNKNOWN if came_at is None else datetime.fromtimestamp(came_at // SECOND, UTC).date().isoformat()
