"""`spark.read.format("stablecast-messages")`: the messages of a topic as a table and as a stream.

    register(spark)
    spark.readStream.format("stablecast-messages").option("stores", "a:14567,b:14567,c:14567").load("orders")

The driver asks the stores what they hold, and divides the stable numbers of each source into pieces. Each task reads
its piece from any store that has it. A stream's offsets are numbers that are never used again, so a batch that is
repeated after a crash has the same rows.

For a query with a session, stores keep what Spark has not processed. The driver registers a consumer with them, as a
receiver with this session id, and keeps it alive in a thread. Spark reports each batch that is committed, and the
consumer acknowledges its messages. Tasks read as they always do.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
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
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from stablecast.archive.message_columns import COLUMNS
from stablecast.client import Context
from stablecast.client.range_bounds import EARLIEST
from stablecast.client.stored_consumer import StoredConsumer
from stablecast.runtime import garbage_collection
from stablecast.spark.archived_topic import archive_of, divided, with_archive
from stablecast.spark.message_options import (
    REGISTRATION_SECONDS,
    MessageOptionError,
    ReadTerms,
    WriteTerms,
    interface_to,
)
from stablecast.spark.message_ranges import (
    Offset,
    SourceSpan,
    Wanted,
    limited,
    named,
    number_of,
    pieces,
    planned,
    ranges,
    spans,
)
from stablecast.spark.message_rows import rows
from stablecast.spark.message_sink import MessageStreamWriter, MessageWriter, check_columns, sources_seen
from stablecast.sync.loop_thread import LoopThread
from stablecast.text.spark_table import TableSource


class ConsumptionAcks:
    """The consumer of one query, at its driver."""

    def __init__(self, terms: ReadTerms) -> None:
        """Start the thread, and open the context. Raises InterfaceError, PortError."""
        self._terms = terms
        self._thread = LoopThread()
        self._thread.start()
        self._context, self._consumer = self._thread.run(self._open())

    async def _open(self) -> tuple[Context, StoredConsumer]:
        terms = self._terms
        context = Context(interface=interface_to(terms.stores, terms.interface))
        context.prompt = False
        await context.__aenter__()
        config = attrs.evolve(context.template(terms.session), topic=terms.topic, pace=terms.pace)
        return context, StoredConsumer(context.reads, config, terms.stores)

    def spans(self, terms: ReadTerms) -> list[SourceSpan]:
        """Return the range of each source between the bounds of the terms, after the registration for all of them.

        A source begins where the session is, if a store knows the session. Raises ReadFailed, BoundError,
        ConsumerRefused.
        """
        return self._thread.run(self._spans(terms))

    async def _spans(self, terms: ReadTerms) -> list[SourceSpan]:
        sources = {named(terms, source): source for source, _ in await planned(self._context, terms)}
        known = await self._consumer.register(sources, REGISTRATION_SECONDS)
        # The messages are kept from the registration on, so the plan before it may be too old.
        found = await spans(self._context, terms)
        return [
            attrs.evolve(one, first=known[one.name], remembered=True) if one.name in known else one for one in found
        ]

    def acknowledge(self, end: Offset) -> None:
        """Acknowledge everything below an offset."""
        for name in end:
            stop = number_of(end, name)
            if stop:
                self._thread.call(self._consumer.acknowledge, name, stop)

    def close(self) -> None:
        """Close the context and end the thread; the stores remember the session."""
        if self._thread.running:
            self._thread.run(self._context.close())
            self._thread.stop()


FORMAT = "stablecast-messages"


class MessageSource(TableSource):
    """Data source of the messages of a topic."""

    FORMAT, COLUMNS, KIND, ERROR = FORMAT, COLUMNS, "messages", MessageOptionError

    def reader(self, schema: StructType) -> "TopicTableReader":
        """Return the reader of a query that ends. Raises MessageOptionError, BoundError."""
        return TopicTableReader(ReadTerms.of(self.options), self.names(schema))

    def streamReader(self, schema: StructType) -> "TopicStreamReader":  # noqa: N802 - Spark's name
        """Return the reader of a query that continues. Raises MessageOptionError, BoundError."""
        return TopicStreamReader(ReadTerms.of(self.options, new=True), self.names(schema))

    def writer(self, schema: StructType, overwrite: bool) -> MessageWriter:
        """Return the writer of a table. Raises MessageOptionError, ReadFailed."""
        terms = WriteTerms.of(self.options)
        check_columns(schema, terms.key)
        if overwrite:
            raise MessageOptionError("a topic cannot be overwritten: use mode('append')")
        if not terms.sink:
            raise MessageOptionError('name the write, so that nobody gets it twice: .option("sink", "orders-2026-01")')
        return MessageWriter(terms, sources_seen(terms))

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamWriter:  # noqa: N802 - Spark's
        """Return the writer of a batch of a stream. Raises MessageOptionError, ReadFailed."""
        terms = WriteTerms.of(self.options)
        check_columns(schema, terms.key)
        return MessageStreamWriter(terms, sources_seen(terms))


@attrs.define(slots=False)
class _PieceReader:
    """The common part of both readers: the options, the columns, and the work of a task."""

    terms: ReadTerms
    names: list[str]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a piece as Arrow batches; none of the piece that Spark puts in the place of no piece."""
        garbage_collection.keep_worker()
        return iter(()) if partition.value is None else rows(self.terms, partition.value, self.names)


@attrs.define(slots=False)
class TopicTableReader(_PieceReader, DataSourceReader):
    """Batch reader of a topic, as it is stable when the query is planned.

    Attributes:
        wanted: What filters leave of it.
    """

    wanted: Wanted = attrs.field(factory=Wanted)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep the filters on topics, sources and numbers, and leave those on rows to Spark.

        No filter on `received` is kept: a store that recovered a message later than others has another time.
        """
        for one in filters:
            match one:
                case EqualTo(attribute=("topic" | "source" as column,), value=value):
                    self.wanted.only(column, [value])
                case In(attribute=("topic" | "source" as column,), value=values):
                    self.wanted.only(column, values)
                case EqualTo(attribute=("number",), value=value):
                    self.wanted.numbers(value, value + 1)
                case GreaterThan(attribute=("number",), value=value):
                    self.wanted.numbers(value + 1, self.wanted.stop)
                case GreaterThanOrEqual(attribute=("number",), value=value):
                    self.wanted.numbers(value, self.wanted.stop)
                case LessThan(attribute=("number",), value=value):
                    self.wanted.numbers(0, value)
                case LessThanOrEqual(attribute=("number",), value=value):
                    self.wanted.numbers(0, value + 1)
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each piece. Raises ReadFailed if too few stores answer."""
        states = with_archive(self.terms, ranges(self.terms))
        found = pieces(_offset((one, one.first) for one in states), _offset((one, one.stop) for one in states),
                       self.terms.partition_messages)  # fmt: skip
        left = [part for piece in found for part in self.wanted.of(self.terms, piece)]
        return [InputPartition(piece) for piece in divided(archive_of(self.terms), left)]


@attrs.define(slots=False)
class TopicStreamReader(_PieceReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader of a topic.

    Attributes:
        target: The end of a query that reads what is available now.
        acks: The acknowledgements of a query with a session, at the driver.
        newest: What was stable when the stores were asked last.
    """

    target: Offset | None = None
    acks: ConsumptionAcks | None = None
    newest: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset at which the query begins, for the sources that there are now."""
        terms = attrs.evolve(self.terms, end="", ends={})
        return _offset((one, one.first) for one in self._spans(terms))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self.terms.max_rows is not None:
            return ReadMaxRows(self.terms.max_rows)
        if self.terms.max_bytes is not None:
            return ReadMaxBytes(self.terms.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note what is stable now: the query ends there."""
        self.target = _offset((one, one.stop) for one in self._states())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next batch: all that is stable, within the limit."""
        states = self._states()
        self.newest = {**start, **_offset((one, one.stop) for one in states)}
        most = size = None
        if not isinstance(limit, ReadAllAvailable):
            # Spark knows one limit of a batch; both options hold.
            most, size = self.terms.max_rows, self.terms.max_bytes
        if isinstance(limit, ReadMaxRows):
            most = min(limit.max_rows, most or limit.max_rows)
        if isinstance(limit, ReadMaxBytes):
            size = min(limit.max_bytes, size or limit.max_bytes)
        found = {name: dict(lives) for name, lives in start.items()}
        for state, first, stop in limited(start, self._reachable(states), most, size):
            if stop > first or state.name not in found:
                found[state.name] = {state.life: stop}
        return found

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """Return what was stable when the last batch was planned: to ask once more would cost as much as a batch."""
        return self.newest

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a partition for each piece between two offsets."""
        found = pieces(start, end, self.terms.partition_messages)
        return [InputPartition(piece) for piece in divided(archive_of(self.terms), found)]

    def commit(self, end: Offset) -> None:
        """Acknowledge what Spark has processed, if the query has a session."""
        if self.acks is not None:
            self.acks.acknowledge(end)

    def stop(self) -> None:
        """End the session of the driver; the stores remember it."""
        if self.acks is not None:
            self.acks.close()

    def _states(self) -> list[SourceSpan]:
        """Return all sources. Those that begin later are read from their first message on."""
        return self._spans(attrs.evolve(self.terms, start=EARLIEST, starts={}))

    def _spans(self, terms: ReadTerms) -> list[SourceSpan]:
        if terms.session is None:
            found = ranges(terms)
        else:
            self.acks = self.acks or ConsumptionAcks(terms)
            found = self.acks.spans(terms)
        return with_archive(terms, found)

    def _reachable(self, states: list[SourceSpan]) -> list[SourceSpan]:
        """Return the sources, up to the target if there is one."""
        if self.target is None:
            return states
        ends = {name: max(lives.values()) for name, lives in self.target.items()}
        return [attrs.evolve(state, stop=min(state.stop, ends[state.name])) for state in states if state.name in ends]


def _offset(found: Iterator[tuple[SourceSpan, int]]) -> Offset:
    return {state.name: {state.life: number} for state, number in found}
