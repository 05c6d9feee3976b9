"""`writeStream.format("stablecast-messages")` and `DataFrame.write`: rows as messages of a topic, each once.

Each partition of a query is a source of its own. Its session id derives from the query and the partition, so the task
that repeats a batch is the next life of the same source. Each message carries its batch and row in a property. A life
begins after the last message that a store has, reads that message, and leaves out the rows up to it. So a batch that is
written again adds nothing that is there already. A task ends when a quorum has synced its messages.

Two tasks never write one partition at the same time: stores refuse a source while another context holds its session.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from stablecast.client import Context, Source
from stablecast.core.errors import StablecastError
from stablecast.runtime import garbage_collection, machine
from stablecast.spark.message_options import MessageOptionError, WriteTerms, interface_to

ROW: Final = "stablecast-row"
"""The property of a message that names its batch and row: `batch:row`."""

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
"""The local properties of a task of a stream, as Spark sets them."""

WRITTEN: Final = {"payload": (pa.binary(), pa.string()), "properties": (pa.string(),)}
"""The columns of a sink and the types that each may have."""

REGISTRATION_SECONDS: Final = 60.0
"""Time to wait for the stores. They may hold the session of a task that was killed until its port refuses them."""


class SinkError(StablecastError):
    """The messages cannot be written. The text names the reason."""


@attrs.frozen
class Committed(WriterCommitMessage):
    """The count of messages that a task sent, and of those that were there already."""

    sent: int
    repeated: int


@attrs.frozen
class SinkPlace:
    """The name of a query over its restarts, the number of a batch, and a partition."""

    query: str
    batch: int
    partition: int

    def session_id(self, topic: str) -> int:
        """Return the session id of the source that writes this partition of the query, 63 bits and not 0."""
        name = f"{topic}\0{self.query}\0{self.partition}".encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) >> 1 | 1


def check_columns(schema: StructType) -> None:
    """Refuse a schema without a payload, and columns that a message has no place for. Raises MessageOptionError."""
    kinds = {field.name: field.dataType.typeName() for field in schema.fields}
    wrong = [name for name in kinds if name not in WRITTEN]
    if wrong or "payload" not in kinds:
        what = f"has a column {wrong[0]!r}" if wrong else "has no column 'payload'"
        raise MessageOptionError(f"a table that {what} cannot be written: select payload, and properties as JSON")
    if kinds["payload"] not in ("binary", "string") or kinds.get("properties", "string") != "string":
        raise MessageOptionError("payload must be binary or string, and properties a string of JSON")


@attrs.define(slots=False)
class MessageWriter(DataSourceArrowWriter):
    """Writer of a table; the option `sink` names it, so that the same table is not written twice."""

    terms: WriteTerms

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        """Write the rows of one partition."""
        task = _task()
        return written(self.terms, SinkPlace(self.terms.sink, self.terms.batch, task.partitionId()), iterator)


@attrs.define(slots=False)
class MessageStreamWriter(DataSourceStreamArrowWriter):
    """Writer of a stream. The query's id names it, which its checkpoint keeps, or the option `sink`."""

    terms: WriteTerms

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        """Write the rows of one partition of a batch."""
        task = _task()
        batch, query = task.getLocalProperty(BATCH_ID), self.terms.sink or task.getLocalProperty(QUERY_ID)
        if batch is None or not query:
            raise SinkError("Spark does not tell the id of the query and the batch: use Spark 4.2 or newer")
        return written(self.terms, SinkPlace(query, int(batch), task.partitionId()), iterator)


def _task() -> TaskContext:
    found = TaskContext.get()
    if found is None:
        raise SinkError("the rows are written outside a task of Spark")
    return found


def written(terms: WriteTerms, place: SinkPlace, batches: Iterator[pa.RecordBatch]) -> Committed:
    """Write rows, and return when a quorum has synced them. Raises SinkError, RegistrationFailed."""
    garbage_collection.keep_worker()
    return machine.process.run(_written(terms, place, batches))


async def _written(terms: WriteTerms, place: SinkPlace, batches: Iterator[pa.RecordBatch]) -> Committed:
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        context.prompt = False
        source = await _registered(context, terms, place)
        done = await _rows_there(context, terms, place, source)
        sent = row = 0
        number = source.next_number
        for batch in batches:
            for payload, given in _messages(batch):
                if row >= done:
                    properties = {**given, ROW: f"{place.batch}:{row}"}
                    found = source.try_send(payload, properties)
                    number = found if found is not None else (await source.send(payload, properties)).number
                    sent += 1
                row += 1
            await asyncio.sleep(0)
        if sent:
            await source.wait_stable_through(number)
        return Committed(sent, row - sent)


async def _registered(context: Context, terms: WriteTerms, place: SinkPlace) -> Source:
    """Return the source of this partition. A task that was killed may hold its session for a while."""
    session = place.session_id(terms.topic)
    return await context.source(terms.topic, stores=terms.stores, session_id=session, within=REGISTRATION_SECONDS)


async def _rows_there(context: Context, terms: WriteTerms, place: SinkPlace, source: Source) -> int:
    """Return how many rows of this batch the stores have already; all that may be, if they have later batches."""
    if not source.next_number:
        return 0
    reader = context.reader(
        terms.topic,
        stores=terms.stores,
        sources=[place.session_id(terms.topic)],
        since=max(0, source.next_number - 1),
        until=source.next_number,
        patience=terms.patience,
        stable=False,
        new=True,
    )
    newest = ""
    async with reader:
        async for message in reader:
            newest = str(message.properties.get(ROW, ""))
    if not newest:
        return 0
    batch, _, row = newest.partition(":")
    if not (batch.isdecimal() and row.isdecimal()):
        raise SinkError(f"session {place.session_id(terms.topic)} of '{terms.topic}' has messages of another sender")
    if int(batch) == place.batch:
        return int(row) + 1
    return 0 if int(batch) < place.batch else 1 << 62


def _messages(batch: pa.RecordBatch) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
    """Yield payload and properties of each row. Raises SinkError for a row that no message can hold."""
    payloads = batch.column("payload").to_pylist()
    texts = batch.column("properties").to_pylist() if "properties" in batch.schema.names else [None] * len(payloads)
    for payload, text in zip(payloads, texts, strict=True):
        if payload is None:
            raise SinkError("a row without a payload cannot be written: leave such rows out")
        found = json.loads(text) if text else {}
        if not isinstance(found, dict):
            raise SinkError(f"the properties of a message are a JSON object, not {text!r}")
        yield payload.encode() if isinstance(payload, str) else payload, found
