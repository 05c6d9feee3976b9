"""The rows of a piece, read by a task straight from the stores, as Arrow batches."""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, cast

import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.client import Context, RangeReader
from stablecast.client.batch import Batch
from stablecast.client.range_batch import RangeOwner
from stablecast.runtime import machine
from stablecast.spark.message_options import ReadTerms, interface_to
from stablecast.spark.message_ranges import TopicError, TopicPiece

log = logging.getLogger("stablecast")

BATCH_ROWS = 8192
"""Rows of an Arrow batch at most, unless one run of messages has more."""

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

SCHEMA: Final = (
    "topic string, source string, life string, number bigint, received timestamp, payload binary, properties string, "
    "recovered boolean"
)


def rows(terms: ReadTerms, piece: TopicPiece, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece with these columns. Raises TopicError if messages are missing, unless they may be."""
    loop = machine.process.new_loop()
    batches = _batches(terms, piece, names)
    try:
        while (found := loop.run_until_complete(anext(batches, None))) is not None:
            yield found
    finally:
        try:
            loop.run_until_complete(cast("Any", batches).aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def _batches(terms: ReadTerms, piece: TopicPiece, names: Sequence[str]) -> AsyncIterator[pa.RecordBatch]:
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        context.prompt = False
        reader = context.reader(
            terms.topic,
            stores=terms.stores,
            sources=[piece.chosen],
            since=piece.first,
            until=piece.stop,
            patience=terms.patience,
            stable=False,
            times="received" in names,
        )
        schema = pa.schema([(name, COLUMNS[name]) for name in names])
        async with reader:
            if not reader.sources:
                raise TopicError(
                    f"messages {piece.first} to {piece.stop - 1} of source {piece.source} of '{terms.topic}' are "
                    "missing: no store that answers knows the source"
                )
            pending: list[pa.RecordBatch] = []
            async for batch in reader.batches():
                _check(reader, terms)
                pending.append(_arrow(batch, piece.source, names, schema))
                if sum(one.num_rows for one in pending) >= BATCH_ROWS:
                    yield _joined(pending)
                    pending = []
            _check(reader, terms)
            if pending:
                yield _joined(pending)


def _check(reader: RangeReader, terms: ReadTerms) -> None:
    """Report missing messages. Raises TopicError if the query must fail."""
    if not reader.holes:
        return
    if terms.fail_on_missing:
        raise TopicError(f"{reader.holes[0]}; set the option missing to skip to go on without them")
    for hole in reader.holes:
        log.warning("%s", hole)
    reader.holes.clear()


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _arrow(batch: Batch, source: str, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column(batch, source, name) for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
