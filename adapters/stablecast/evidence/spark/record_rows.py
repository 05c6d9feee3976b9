"""The columns of the data source: the contents of a record, without the knowledge of any rule."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.evidence.spark.table_format import sql_schema
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.file_names import part_of
from stablecast.evidence.trace.frames import TraceFrame, unread_frames

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
        """Return whether a row with this value may be wanted."""
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

SCHEMA: Final = sql_schema(COLUMNS)
