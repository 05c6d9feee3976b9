"""Messages as columns of Arrow: the same in archives and on Spark."""

import json
from collections.abc import Sequence
from typing import Any, Final, cast

import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.client.batch import Batch
from stablecast.client.range_batch import RangeOwner
from stablecast.client.range_contents import SourceContents

COLUMNS: Final = {
    "topic": pa.string(),
    "source": pa.string(),
    "life": pa.string(),
    "number": pa.int64(),
    "received": pa.timestamp("us", "UTC"),
    "payload": pa.binary(),
    "properties": pa.string(),
    "recovered": pa.bool_(),
}
"""Name and type of each column, in order.

`source` is the session id of the source, or a name made of its first life. `life` is the incarnation in hexadecimal
digits. `number` is the extended number, of a message in pieces that of the last. `received` is when a store received
the message, null if that is not known. `properties` is JSON, null if there are none.
"""

WITHOUT_SESSION: Final = "life-"
"""The begin of the name of a source without a session id."""


def name_of(source: SourceContents) -> str:
    if source.session_id:
        return str(source.session_id)
    lives = source.lives
    return f"{WITHOUT_SESSION}{(lives[0][0] if lives else source.incarnation):016x}"


def chosen_by(name: str) -> int:
    """Return the session id or the life by which a reader chooses the source with a name.

    >>> chosen_by("7"), chosen_by("life-00000000000000ff")
    (7, 255)
    """
    return int(name.removeprefix(WITHOUT_SESSION), 16) if name.startswith(WITHOUT_SESSION) else int(name)


def schema_of(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, COLUMNS[name]) for name in names])


def arrow_batch(batch: Batch, source: str, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of a reader as Arrow, with the columns of a schema."""
    return pa.RecordBatch.from_arrays([_column(batch, source, name) for name in schema.names], schema=schema)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _column(batch: Batch, source: str, name: str) -> pa.Array:
    count = batch.count
    match name:
        case "topic":
            return pa.repeat(batch.topic, count)
        case "source":
            return pa.repeat(source, count)
        case "life":
            return pa.repeat(f"{batch.incarnation:016x}", count)
        case "number":
            return pa.array(_numbers(batch), pa.int64())
        case "received":
            owner = cast("RangeOwner", batch.owner)
            return pa.array(_micros(owner, _numbers(batch)), COLUMNS["received"])
        case "payload":
            return pa.array(batch.payloads(), pa.binary())
        case "properties":
            return pa.array([_json(batch.properties(index)) for index in range(count)], pa.string())
        case _:
            return pa.repeat(batch.recovered, count)


def _numbers(batch: Batch) -> Sequence[int]:
    first, last = batch.first, batch.numbers(batch.count - 1)[1]
    if last - first + 1 == batch.count and batch.numbers(0) == (first, first):
        return range(first, last + 1)
    return [batch.numbers(index)[1] for index in range(batch.count)]


def _micros(owner: RangeOwner, numbers: Sequence[int]) -> list[int | None]:
    """Return when each number came, in µs. Neighbours mostly came together, so few questions are enough."""
    if not numbers:
        return []
    first, last = owner.came_at(numbers[0]), owner.came_at(numbers[-1])
    if first == last:
        return [None if first is None else first // 1000] * len(numbers)
    if len(numbers) == 2:
        return [None if one is None else one // 1000 for one in (first, last)]
    half = len(numbers) // 2
    return _micros(owner, numbers[:half]) + _micros(owner, numbers[half:])


def _json(properties: dict[str, Any]) -> str | None:
    return json.dumps(properties, default=str) if properties else None
