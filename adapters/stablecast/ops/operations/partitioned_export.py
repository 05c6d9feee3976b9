"""An export as a folder of Parquet files by day, with the columns of Spark's format `stablecast-messages`.

    orders/day=2026-01-31/7-0.parquet          RegID of the source and its first number in the file
    orders/day=unknown/7-4711.parquet          messages whose time is not known
    orders/manifest.json                       the files, their sources, first and last numbers, and rows

Spark reads such a folder as a table with the column `day`. The manifest is written last, so a folder without one is the
rest of an export that did not end. The rows of a file have one source and ascending numbers.
"""

import json
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from stablecast.ops.operations.export import MessageRow
from stablecast.ops.operations.target import OperationError

MANIFEST = "manifest.json"


class PartitionedParquet:
    """Writes rows into a new folder."""

    def __init__(self, folder: Path) -> None:
        """Make the folder.

        Raises:
            OperationError: pyarrow is not installed, or the folder exists.
        """
        try:
            from stablecast.archive.day_files import DayFiles  # noqa: PLC0415 - pyarrow is an extra
        except ModuleNotFoundError:
            raise OperationError("Parquet needs pyarrow: pip install pyarrow, or write to a .jsonl.zst file") from None
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise OperationError(f"{folder} exists: name a new folder for the export") from None
        self._folder = folder
        self._files = DayFiles(folder)
        self._sources: dict[str, dict[str, Any]] = {}

    def write(self, rows: list[MessageRow]) -> None:
        """Write a batch of rows, each to the file of its source and day."""
        for source, some in groupby(rows, key=attrgetter("source")):
            part = list(some)
            about = {"topic": part[0].topic, "source": source, "session_id": part[0].session_id}
            self._sources[str(source)] = about
            self._files.write_rows(str(source), [_columns(row) for row in part])

    def close(self) -> None:
        """Put all files on the disk."""
        self._files.close()

    def finish(self) -> None:
        """Write the manifest, after the last row and `close`."""
        files = [
            {
                "path": file.path,
                "day": Path(file.path).parent.name.removeprefix("day="),
                **self._sources[file.source],
                "first": file.first,
                "last": file.stop - 1,
                "rows": file.rows,
            }
            for file in self._files.finish()
        ]
        (self._folder / MANIFEST).write_text(json.dumps({"files": files}, indent=1) + "\n")


def _columns(row: MessageRow) -> dict[str, Any]:
    return {
        "topic": row.topic,
        "source": str(row.session_id) if row.session_id else f"life-{row.incarnation:016x}",
        "life": f"{row.incarnation:016x}",
        "number": row.number,
        "received": None if row.came_at is None else row.came_at // 1000,
        "payload": row.payload,
        "properties": None if row.properties == "{}" else row.properties,
        "recovered": False,
    }
