"""`spark.read.format("stablecast")`: traces as a table, in batches and as a stream.

    register(spark)
    spark.read.format("stablecast").load("traces").where("role = 'store' and record >= 1000")
    spark.readStream.format("stablecast").load("traces")

A path is a file, a directory or a pattern; several are separated by commas in the option `paths`. There is one
partition for each run of frames. A schema of some of the columns (`.schema("record bigint, kind string")`) reads only
these. Comparisons with values are pushed down: those of a frame's own columns and of record numbers skip whole frames
before they become rows. The option `onError`: `fail` ends the query at a file that cannot be read to its end, `skip`
reads it as far as possible.

A stream reads frames as they are finished, of existing and of new files. Its offset has the read bytes of each file.

The columns of the data source: the contents of a record, without the knowledge of any rule.
"""

import json
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from stablecast.evidence.spark.piece_judge import PIECE_BYTES, TracePiece, plan, sound_offsets
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.file_names import find, part_of, traces_in
from stablecast.evidence.trace.frames import TraceFrame, unread_frames
from stablecast.runtime import garbage_collection
from stablecast.text import unread
from stablecast.text.spark_table import TableSource, known_options, named_paths, positive

BATCH: Final = 4096
"""Records that are decoded at a time."""

_BIGGEST: Final = 1 << 63


@attrs.frozen
class RowBounds:
    """Bounds of the wanted records: a column lies within `low`..`high`, or is one of `values`."""

    low: dict[str, int] = attrs.field(factory=dict)
    high: dict[str, int] = attrs.field(factory=dict)
    values: dict[str, list[Any]] = attrs.field(factory=dict)

    def allow(self, column: str, value: Any) -> bool:
        if column in self.values and value not in self.values[column]:
            return False
        return bool(self.low.get(column, value) <= value <= self.high.get(column, value))

    def allow_frame(self, frame: TraceFrame, same: dict[str, Any]) -> bool:
        """Return whether a frame, which has the `same` columns in all records, may have wanted records."""
        head, count = frame.head, frame.count
        first, last = self.low.get("record", head.first), self.high.get("record", head.first)
        return all(self.allow(*one) for one in same.items()) and first < head.first + count and last >= head.first


def batches(path: str, start: int, stop: int, names: list[str], bounds: RowBounds) -> Iterator[pa.RecordBatch]:
    """Yield the records of each frame that begins in [start, stop), with these columns, `BATCH` at a time.

    Raises:
        TraceError: If the file cannot be read that far.
    """
    schema = pa.schema([(name, COLUMNS[name]) for name in names])
    for frame, offset in unread_frames(Path(path), start):
        if offset >= stop:
            return
        same = dict(zip(CHEAP, (part_of(Path(path))[0], path, *frame.owner, frame.head.frame, offset), strict=True))
        if bounds.allow_frame(frame, same):
            for records in frame.portions(BATCH):
                columns = [pa.array(_column(name, records, same), COLUMNS[name]) for name in names]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(name: str, records: list[Json], same: dict[str, Any]) -> list[Any]:
    return [same[name]] * len(records) if name in same else [_RECORD[name][1](record) for record in records]


def _object(record: Json, key: str) -> Json:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _said(record: Json) -> Json:
    """Return the message that arrived, or the input itself."""
    event = _object(record, "in")
    return _object(event, "message") or event


def _number(value: object) -> int | None:
    return value if type(value) is int and -_BIGGEST <= value < _BIGGEST else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _first(record: Json) -> int | None:
    said = _said(record)
    found = (_number(said.get(key)) for key in ("first", "wire_first", "number"))
    return next((number for number in found if number is not None), None)


def _last(record: Json) -> int | None:
    said = _said(record)
    last, count, first = _number(said.get("last")), _number(said.get("count")), _first(record)
    if last is None and count is not None and first is not None:
        return _number(first + count - 1)
    return first if last is None else last


def _life(record: Json) -> str | None:
    life = _said(record).get("incarnation")
    return f"{life:#x}" if type(life) is int else None


def _effects(record: Json) -> list[str | None]:
    out = record.get("out")
    return [_text(one.get("_")) if isinstance(one, dict) else None for one in out] if isinstance(out, list) else []


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


CHEAP: Final = {
    "trace": pa.string(),
    "path": pa.string(),
    "role": pa.string(),
    "endpoint": pa.string(),
    "frame": pa.int64(),
    "offset": pa.int64(),
}
"""Columns that are constant in a whole frame."""

_RECORD: Final[dict[str, tuple[Any, Callable[[Json], Any]]]] = {
    "record": (pa.int64(), lambda record: _number(record.get("n"))),
    "time": (pa.int64(), lambda record: _number(record.get("t"))),
    "kind": (pa.string(), lambda record: _text(_object(record, "in").get("_"))),
    "message": (pa.string(), lambda record: _text(_object(_object(record, "in"), "message").get("_"))),
    "life": (pa.string(), _life),
    "first": (pa.int64(), _first),
    "last": (pa.int64(), _last),
    "effects": (pa.list_(pa.string()), _effects),
    "input": (pa.string(), lambda record: _dump(record.get("in"))),
    "output": (pa.string(), lambda record: _dump(record.get("out"))),
}

COLUMNS: Final = {**CHEAP, **{name: kind for name, (kind, _) in _RECORD.items()}}
"""Name and type of each column, in order.

`trace` is the first part's path, `path` the file's; `offset` is where the frame begins in it, in bytes. `record` and
`time` (the machine's clock, ns) are the record's; `kind` names the input, `message` the message that arrived with it.
`life` is an incarnation in hexadecimal digits, `first` and `last` the numbers in the input, as they stand there.
`effects` names the effects; `input` and `output` are the record's own JSON.
"""

FORMAT: Final = "stablecast"
FAIL: Final = "fail"
SKIP: Final = "skip"

Ends = dict[str, int]
"""The end of the read bytes of each file."""


class TraceSource(TableSource):
    FORMAT, COLUMNS, KIND, ERROR = FORMAT, COLUMNS, "traces", TraceError

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        known_options(options, ("path", "paths", "pieceBytes", "onError", "maxBytesPerBatch"), TraceError)
        self.paths = named_paths(options, "traces", TraceError)
        self.size = positive(options, "pieceBytes", TraceError) or PIECE_BYTES
        self.batch_bytes = positive(options, "maxBytesPerBatch", TraceError)
        self.on_error = options.get("onError", FAIL)
        if self.on_error not in (FAIL, SKIP):
            raise TraceError(f"the option onError is {FAIL} or {SKIP}, not {self.on_error!r}")

    def reader(self, schema: StructType) -> "TraceReader":
        return TraceReader(find(self.paths), self.names(schema), self.size, self.on_error)

    def streamReader(self, schema: StructType) -> "TraceStreamReader":  # noqa: N802 - Spark's name
        return TraceStreamReader(self.paths, self.names(schema), self.size, self.on_error, batch_bytes=self.batch_bytes)


@attrs.define(slots=False)
class _PieceReader:
    """The common part of both readers: columns, piece size, and the reading of a piece."""

    paths: list[Path]
    names: list[str]
    size: int
    on_error: str
    bounds: RowBounds = attrs.field(factory=RowBounds)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a piece as Arrow batches; none of the piece that Spark puts in the place of no piece."""
        garbage_collection.keep_worker()
        if partition.value is None:
            return iter(())
        return read_piece(partition.value, self.names, self.bounds, self.on_error)


class TraceReader(_PieceReader, DataSourceReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep the filters that skip frames, and leave the filters on rows to Spark."""
        for one in filters:
            narrow(self.bounds, one)
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each piece of the files that may have wanted rows.

        Raises:
            TraceError: If a file cannot be read and `onError` is `fail`: here it is a sentence, in a task a page of
                Java.
        """
        paths = [path for path in self.paths if self.bounds.allow("path", str(path))]
        return [InputPartition(piece) for piece in plan(paths, self.size, whole=self.on_error == FAIL)]


@attrs.define(slots=False)
class TraceStreamReader(_PieceReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader of existing and new traces.

    Attributes:
        batch_bytes: Compressed bytes of one batch, at least one frame; None: no limit.
        target: The end of a query that reads what is available now.
    """

    batch_bytes: int | None = None
    target: Ends | None = None

    def initialOffset(self) -> Ends:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable() if self.batch_bytes is None else ReadMaxBytes(self.batch_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note which frames are finished now: the query ends there."""
        self.target = {str(path): self._offsets(path, 0)[-1] for root in self.paths for path in _now(root)}

    def latestOffset(self, start: Ends | None = None, limit: ReadLimit | None = None) -> Ends:  # noqa: N802 - Spark's
        """Return the end of finished frames of each file, within the limit; a directory may still be empty."""
        ends, read = _absolute(start or {}), 0
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        for path in (one for root in self.paths for one in _now(root)):
            name = str(path)
            for stop in self._offsets(path, ends.setdefault(name, 0))[1:]:
                size = stop - ends[name]
                beyond = self.target is not None and stop > self.target.get(name, 0)
                # A frame that is larger than the whole limit is a batch of its own.
                if beyond or (most is not None and read and read + size > most):
                    break
                ends[name], read = stop, read + size
        return ends

    def _offsets(self, path: Path, start: int) -> list[int]:
        """Return where finished frames begin from `start` on, and where the last one ends."""
        with suppress(OSError):  # `sound_offsets` reports it below
            if not path.stat().st_size:
                return [start]  # its writer is about to begin
        try:
            return sound_offsets(path, start)
        except TraceError:
            if self.on_error == FAIL:
                raise
            return [start]

    def partitions(self, start: Ends, end: Ends) -> Sequence[InputPartition]:
        start, end = _absolute(start), _absolute(end)
        return [
            InputPartition(TracePiece(path, start.get(path, 0), stop))
            for path, stop in sorted(end.items())
            if start.get(path, 0) < stop
        ]


def _absolute(ends: Ends) -> Ends:
    """Return an offset as it is written now; that of an earlier release may have relative paths."""
    return {str(Path(path).absolute()): stop for path, stop in ends.items()}


def _now(path: Path) -> list[Path]:
    """Return the present files of a path; a directory may still be empty. Raise TraceError."""
    try:
        return traces_in(path) if path.is_dir() else find([path])
    except OSError as error:
        raise TraceError(unread(path, error)) from error


def narrow(bounds: RowBounds, one: Filter) -> None:
    """Use a filter to skip frames; filters on columns that differ from record to record are ignored."""
    column = getattr(one, "attribute", ("",))
    name = column[0] if len(column) == 1 else ""
    if name not in (*CHEAP, "record"):
        return
    match one:
        case EqualTo(value=value) if name != "record":
            bounds.values[name] = [value]
        case EqualTo(value=value):
            bounds.low[name] = bounds.high[name] = value
        case In(value=values) if name != "record":
            bounds.values[name] = list(values)
        case GreaterThan(value=value) | GreaterThanOrEqual(value=value):
            bounds.low[name] = max(value, bounds.low.get(name, value))
        case LessThan(value=value) | LessThanOrEqual(value=value):
            bounds.high[name] = min(value, bounds.high.get(name, value))


def read_piece(piece: TracePiece, names: list[str], bounds: RowBounds, on_error: str) -> Iterator[Any]:
    """Yield the rows of a piece, and ignore damage unless `on_error` is `fail`."""
    try:
        piece.check()
        yield from batches(piece.path, piece.start, piece.stop, names, bounds)
    except TraceError:
        if on_error == FAIL:
            raise
