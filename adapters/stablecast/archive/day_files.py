"""Writes messages into a folder of Parquet files, each into the file of its source and day."""

from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from stablecast.archive.manifest import ArchivedFile, sync
from stablecast.archive.message_columns import COLUMNS, schema_of

UNKNOWN = "unknown"
"""The day of messages whose time is not known."""

MAX_OPEN_FILES = 8
"""Files that are written at a time: messages that were recovered late belong to other days than their neighbours."""

DAY_US = 86_400_000_000

SCHEMA = schema_of(list(COLUMNS))


@attrs.define
class OpenFile:
    """A file that is written, with the extent of its messages."""

    path: Path
    writer: Any
    first: int
    stop: int = 0
    rows: int = 0
    payload_bytes: int = 0
    oldest: int | None = None
    newest: int | None = None


class DayFiles:
    """Writes messages with the columns `COLUMNS`, until `finish` returns the files."""

    def __init__(self, folder: Path) -> None:
        """Prepare to write below a folder that exists."""
        self._folder = folder
        self._open: dict[tuple[str, str], OpenFile] = {}
        self._done: list[ArchivedFile] = []
        self._days: set[Path] = set()
        self.rows = 0

    def write_rows(self, source: str, rows: list[dict[str, Any]]) -> None:
        """Write messages of a source, each a value for each column. Raises OSError."""
        self.write(source, pa.RecordBatch.from_pylist(rows, schema=SCHEMA))

    def write(self, source: str, batch: pa.RecordBatch) -> None:
        """Write a batch of a source. Raises OSError."""
        received = batch.column("received").cast(pa.int64()).to_pylist()
        start = 0
        for day, some in groupby(received, key=lambda time: None if time is None else time // DAY_US):
            times = list(some)
            self._write(source, day, batch.slice(start, len(times)), times)
            start += len(times)

    def close(self) -> None:
        """Put all files on the disk. Raises OSError."""
        for key in list(self._open):
            self._end(key)
        for folder in self._days:
            sync(folder)
        sync(self._folder)

    def finish(self) -> list[ArchivedFile]:
        """Close, and return the files since the last time. Raises OSError."""
        self.close()
        done, self._done = sorted(self._done, key=lambda file: file.path), []
        self.rows = 0
        return done

    def _write(self, source: str, day: int | None, part: pa.RecordBatch, times: list[int | None]) -> None:
        file = self._file((source, name_of_day(day)), part.column("number")[0].as_py())
        file.writer.write_batch(part)
        file.stop = part.column("number")[part.num_rows - 1].as_py() + 1
        file.rows += part.num_rows
        file.payload_bytes += pc.sum(pc.binary_length(part.column("payload"))).as_py() or 0
        self.rows += part.num_rows
        known = [time * 1000 for time in times if time is not None]
        if known:
            file.oldest = min([*known, *([] if file.oldest is None else [file.oldest])])
            file.newest = max([*known, *([] if file.newest is None else [file.newest])])

    def _file(self, key: tuple[str, str], number: int) -> OpenFile:
        found = self._open.pop(key, None)
        if found is None:
            while len(self._open) >= MAX_OPEN_FILES:
                self._end(next(iter(self._open)))
            source, day = key
            folder = self._folder / f"day={day}"
            folder.mkdir(exist_ok=True)
            self._days.add(folder)
            path = folder / f"{source}-{number}.parquet"
            found = OpenFile(path, pq.ParquetWriter(path, SCHEMA, compression="zstd"), number)
        self._open[key] = found
        return found

    def _end(self, key: tuple[str, str]) -> None:
        file = self._open.pop(key)
        file.writer.close()
        sync(file.path)
        path = str(file.path.relative_to(self._folder))
        extent = (file.first, file.stop, file.rows, file.payload_bytes, file.oldest, file.newest)
        self._done.append(ArchivedFile(path, key[0], *extent))


def name_of_day(day: int | None) -> str:
    """Return the name of a day, counted from 1970 in UTC.

    >>> name_of_day(20455), name_of_day(None)
    ('2026-01-02', 'unknown')
    """
    return UNKNOWN if day is None else datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()
