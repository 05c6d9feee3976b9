"""`spark.read.format("stablecast-capture")`: packets of captures as a table.

    register(spark)
    spark.read.format("stablecast-capture").load("traffic.pcapng").where("verdict = 'malformed'")

A path is a file, a directory (of `*.pcap`, `*.pcapng` and `*.cap`, compressed or not) or a pattern. The driver surveys
each file once for protocols and topics. It cuts the file into parts, one partition each, and workers decode them. A
part that begins in the middle of a TCP stream misses the message that begins before it, so `pieceBytes` is large by
default. Only one part shows a stream of many packets whole. The option `ports` names ports, as `kind=port`, separated
by commas.
"""

import json
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from stablecast.evidence.capture.capture_paths import files_of
from stablecast.evidence.capture.decoder import CapturePacket, packets
from stablecast.evidence.capture.errors import CaptureError
from stablecast.evidence.capture.files import FrameMark, marks
from stablecast.evidence.capture.ip import endpoint_text
from stablecast.evidence.capture.packet_text import record
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.evidence.spark.table_format import column_names, named_paths, piece_bytes, sql_schema
from stablecast.runtime import garbage_collection

FORMAT: Final = "stablecast-capture"

PART_BYTES: Final = 64 << 20
"""Bytes of a file in one partition."""

BATCH: Final = 4096
"""Packets in one Arrow batch."""

COLUMNS: Final = {
    "path": pa.string(),
    "frame": pa.int64(),
    "offset": pa.int64(),
    "time": pa.int64(),
    "source": pa.string(),
    "target": pa.string(),
    "kind": pa.string(),
    "session": pa.string(),
    "verdict": pa.string(),
    "types": pa.list_(pa.string()),
    "problems": pa.list_(pa.string()),
    "packet": pa.string(),
}
"""Name and type of each column, in order.

`frame` counts from 1, and 0 is the rest at the end of a stream; `offset` is in bytes, `time` in ns since 1970. `types`
are the layers completed by the frame; `packet` is all of it as JSON (`stablecast capture decode --json`).
"""


SCHEMA: Final = sql_schema(COLUMNS)


@attrs.frozen
class Part:
    """A part of a file: from a frame to the frame that begins at `stop`, or to the end, with its port plan."""

    path: str
    start: FrameMark
    stop: int | None
    plan: PortPlan


class PartPartition(InputPartition):
    """A part, in the form that Spark passes to a task."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.part = part


class CaptureSource(DataSource):
    """Data source of captured traffic."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.paths = named_paths(options, "captures", CaptureError)
        self.size = piece_bytes(options, PART_BYTES, CaptureError)
        self.told = [one for one in options.get("ports", "").split(",") if one]

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of all columns."""
        return SCHEMA

    def reader(self, schema: StructType) -> "CaptureReader":
        """Return the reader of a query that ends."""
        names = column_names(schema, COLUMNS, "captures", CaptureError)
        return CaptureReader(files_of(self.paths), names, self.size, self.told)


class CaptureReader(DataSourceReader):
    """Batch reader of captures."""

    def __init__(self, paths: list[Path], names: list[str], size: int, told: list[str]) -> None:
        self.paths = paths
        self.names = names
        self.size = size
        self.told = told

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Drop files that no filter asks for, and leave the filters on rows to Spark."""
        for one in filters:
            match one:
                case EqualTo(attribute=("path",), value=value):
                    self.paths = [path for path in self.paths if str(path) == value]
                case In(attribute=("path",), value=values):
                    self.paths = [path for path in self.paths if str(path) in values]
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each part of each file."""
        return [PartPartition(part) for path in self.paths for part in parts_of(path, self.size, self.told)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the packets of a part as Arrow batches."""
        assert isinstance(partition, PartPartition)
        part = partition.part
        garbage_collection.keep_worker()
        schema = pa.schema([(name, COLUMNS[name]) for name in self.names])
        found = packets(Path(part.path), part.plan, part.start, part.stop)
        while some := [_row(part.path, packet) for packet in islice(found, BATCH)]:
            yield pa.RecordBatch.from_pylist([{name: row[name] for name in self.names} for row in some], schema=schema)


def parts_of(path: Path, size: int, told: Iterable[str] = ()) -> list[Part]:
    """Return the parts of a file, of `size` bytes or slightly more. Raise CaptureError if it is cut or damaged."""
    plan, begins = survey(path, told), marks(path, size)
    ends = [*(mark.offset for mark in begins[1:]), None]
    return [Part(str(path), begin, end, plan) for begin, end in zip(begins, ends, strict=False)]


def _row(path: str, packet: CapturePacket) -> dict[str, Any]:
    return {
        "path": path,
        "frame": packet.number,
        "offset": packet.offset,
        "time": packet.time_ns,
        "source": packet.source and endpoint_text(packet.source),
        "target": packet.target and endpoint_text(packet.target),
        "kind": None if packet.kind is None else packet.kind.value,
        "session": packet.session,
        "verdict": packet.verdict.value,
        "types": [layer.type for layer in packet.layers],
        "problems": [problem.text for problem in packet.problems],
        "packet": json.dumps(record(packet)),
    }
