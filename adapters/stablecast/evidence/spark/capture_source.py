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
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from stablecast.evidence.capture.decoder import CapturePacket, packets
from stablecast.evidence.capture.files import CaptureError, FrameMark, files_of, marks
from stablecast.evidence.capture.ip import endpoint_text
from stablecast.evidence.capture.packet_text import record
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.runtime import garbage_collection
from stablecast.text.spark_table import TableSource, known_options, named_paths, positive

FORMAT: Final = "stablecast-capture"

PART_BYTES: Final = 64 << 20
"""Bytes of a file in one partition."""

BATCH: Final = 4096
"""Packets in one Arrow batch."""

_READ: Final[dict[str, tuple[Any, Callable[[str, CapturePacket], Any]]]] = {
    "path": (pa.string(), lambda path, _: path),
    "frame": (pa.int64(), lambda _, packet: packet.number),
    "offset": (pa.int64(), lambda _, packet: packet.offset),
    "time": (pa.int64(), lambda _, packet: packet.time_ns),
    "source": (pa.string(), lambda _, packet: packet.source and endpoint_text(packet.source)),
    "target": (pa.string(), lambda _, packet: packet.target and endpoint_text(packet.target)),
    "kind": (pa.string(), lambda _, packet: packet.kind and packet.kind.value),
    "session": (pa.string(), lambda _, packet: packet.session),
    "verdict": (pa.string(), lambda _, packet: packet.verdict.value),
    "types": (pa.list_(pa.string()), lambda _, packet: [layer.type for layer in packet.layers]),
    "problems": (pa.list_(pa.string()), lambda _, packet: [problem.text for problem in packet.problems]),
    "packet": (pa.string(), lambda _, packet: json.dumps(record(packet))),
}

COLUMNS: Final = {name: kind for name, (kind, _) in _READ.items()}
"""Name and type of each column, in order.

`frame` counts from 1, and 0 is the rest at the end of a stream; `offset` is in bytes, `time` in ns since 1970. `types`
are the layers completed by the frame; `packet` is all of it as JSON (`stablecast capture decode --json`).
"""


@attrs.frozen
class Part:
    """A part of a file: from a frame to the frame that begins at `stop`, or to the end, with its port plan."""

    path: str
    start: FrameMark
    stop: int | None
    plan: PortPlan


class CaptureSource(TableSource):
    FORMAT, COLUMNS, KIND, ERROR = FORMAT, COLUMNS, "captures", CaptureError

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        known_options(options, ("path", "paths", "pieceBytes", "ports"), CaptureError)
        self.paths = named_paths(options, "captures", CaptureError)
        self.size = positive(options, "pieceBytes", CaptureError) or PART_BYTES
        self.told = [one for one in options.get("ports", "").split(",") if one]

    def reader(self, schema: StructType) -> "CaptureReader":
        names = self.names(schema)
        return CaptureReader(files_of(self.paths), names, self.size, self.told)


@attrs.define(slots=False)
class CaptureReader(DataSourceReader):
    paths: list[Path]
    names: list[str]
    size: int
    told: list[str]

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
        return [InputPartition(part) for path in self.paths for part in parts_of(path, self.size, self.told)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the packets of a part as Arrow batches; none of the part that Spark puts in the place of no part."""
        part: Part | None = partition.value
        if part is None:
            return
        garbage_collection.keep_worker()
        schema = pa.schema([(name, COLUMNS[name]) for name in self.names])
        found = packets(Path(part.path), part.plan, part.start, part.stop)
        while some := list(islice(found, BATCH)):
            rows = [{name: _READ[name][1](part.path, packet) for name in self.names} for packet in some]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def parts_of(path: Path, size: int, told: Iterable[str] = ()) -> list[Part]:
    """Return the parts of a file, of `size` bytes or slightly more. Raise CaptureError if it is cut or damaged."""
    plan, begins = survey(path, told), marks(path, size)
    ends = [*(mark.offset for mark in begins[1:]), None]
    return [Part(str(path), begin, end, plan) for begin, end in zip(begins, ends, strict=False)]
