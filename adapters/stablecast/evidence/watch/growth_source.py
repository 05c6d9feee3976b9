"""`spark.readStream.format("stablecast-growth")`: the traces that grew since the batch before, as a stream.

A row names a trace, not its records: the task that judges the trace reads them itself. Each batch has a row without a
name, too, so that time passes where nothing is written. The offset has the time of the batch and the size of each trace
that is there, so a batch that is repeated has the same rows.
"""

import time
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.watch.trace_watch import parts_by_trace
from stablecast.text.spark_table import TableSource, known_options, named_paths

FORMAT: Final = "stablecast-growth"

COLUMNS: Final = {"trace": pa.string(), "time": pa.int64(), "initial": pa.bool_()}
"""Name and type of each column: the trace's first part, or an empty text; the time of the batch, ns since 1970; whether
it is the first batch, whose traces were there before the watch."""

Growth = dict[str, Any]
"""The offset: `time` in ns, and for each of `traces` the bytes and the newest change (ns) of its parts."""


class GrowthSource(TableSource):
    FORMAT, COLUMNS, KIND, ERROR = FORMAT, COLUMNS, "traces", TraceError

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        known_options(options, ("path", "paths"), TraceError)
        self.paths = named_paths(options, "traces", TraceError)

    def streamReader(self, schema: StructType) -> "GrowthReader":  # noqa: N802 - Spark's name
        return GrowthReader(self.paths)


@attrs.define(slots=False)
class GrowthReader(DataSourceStreamReader):
    paths: list[Path]

    def initialOffset(self) -> Growth:  # noqa: N802 - Spark's name
        return {"time": 0, "traces": {}}

    def latestOffset(self, start: Growth | None = None, limit: ReadLimit | None = None) -> Growth:  # noqa: N802 - Spark's
        """Return the present sizes, and a time after that of the offset before, whatever the host's clock does."""
        before = 0 if start is None else start["time"]
        parts = parts_by_trace(self.paths)
        found = {trace: size for trace, files in sorted(parts.items()) if (size := _size(files)) is not None}
        return {"time": max(time.time_ns(), before + 1), "traces": found}

    def partitions(self, start: Growth, end: Growth) -> Sequence[InputPartition]:
        """Return one partition: its rows are few, and they are divided by trace afterwards."""
        before, after = start["traces"], end["traces"]
        changed = [one for one in sorted(before.keys() | after.keys()) if before.get(one) != after.get(one)]
        return [InputPartition(([*changed, ""], end["time"], start["time"] == 0))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, int, bool]]:
        traces, now_ns, initial = partition.value
        for trace in traces:
            yield trace, now_ns, initial


def _size(files: list[Path]) -> list[int] | None:
    """Return the bytes and the newest change (ns) of files; None if one was deleted meanwhile.

    The head of a frame is written last and makes a file no longer, so the size alone does not show it.
    """
    try:
        found = [path.stat() for path in files]
    except OSError:
        return None
    return [sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)]
