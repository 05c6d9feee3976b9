"""`writeStream.format("stablecast-messages")` and `DataFrame.write`: rows as messages of a topic, each once.

Each partition of a query is a source of its own, a *lane*. Its session id derives from the query and the partition, so
the task that repeats a partition is the next life of the same source: stores refuse it while another context holds the
session. Each message carries the identity of its row and the attempt that sent it (`row_identity`).

An *attempt* is one run of a query, or one write of a table. The first task of an attempt on a lane reads what the topic
has of the batch, in all lanes of the sink. Before, it takes each lane that nobody registered since the attempt was
planned: then no task of an earlier attempt writes any more. When all tasks have ended, the driver compares once more.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
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

from stablecast.client import Context, Source, last
from stablecast.client.errors import RegistrationFailed
from stablecast.client.range_batch import StoredMessage
from stablecast.client.range_reader import RangeReader
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.quorum import quorum_of
from stablecast.core.receiver.range_progress import HoleReason
from stablecast.runtime import garbage_collection, machine
from stablecast.runtime.event_loop import run_loop
from stablecast.spark.message_options import REGISTRATION_SECONDS, MessageOptionError, WriteTerms, interface_to
from stablecast.spark.row_identity import (
    MAX_KNOWN,
    ROW,
    RowChoice,
    RowMark,
    Seen,
    SinkError,
    content_of,
    epoch_of,
    key_of,
    lanes_to_take,
    missing_rows,
)

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
RUN_ID: Final = "spark.jobGroup.id"
"""The local properties of a task of a stream, as Spark sets them. A stream's group of jobs is its run."""

WRITTEN: Final = {"payload": ("binary", "string"), "properties": ("string",)}
"""The columns of a sink and the types that each may have."""

LOOK_SECONDS: Final = 2.0
"""Time between two looks at who holds a lane that another attempt had."""

CONFIRM_SECONDS: Final = 0.2
"""Time between two looks whether a quorum has what an ended task sent."""

MAX_PARTITIONS: Final = 16_384
"""Partitions of a table or batch, at most."""

DRIVER: Final = MAX_PARTITIONS
"""The lane of the driver, which sends what no task could send."""

FIRST_LOOK: Final = 1024
"""Numbers to read at least when a batch is looked for in a lane; then twice as many."""


@attrs.frozen
class SinkPlace:
    """The name of a query over its restarts, the number of a batch, the attempt, and a partition."""

    query: str
    batch: int
    epoch: str
    partition: int

    def session_id(self, topic: str) -> int:
        """Return the session id of the source that writes this partition of the query, 63 bits and not 0."""
        return lane_session(topic, self.query, self.partition)

    def __str__(self) -> str:
        """Return the name of the batch, for sentences."""
        return f"batch {self.batch} of the sink {self.query!r}"


@attrs.frozen
class Committed(WriterCommitMessage):
    """The result of a task: where it wrote, and the counts of messages.

    Attributes:
        place: The query, batch, attempt and partition.
        sent: Messages that it sent.
        repeated: Messages that an earlier task of this attempt sent.
        withheld: The rows that it left out because the topic has such rows from other attempts.
        looked: Whether it looked at the other lanes; if nobody did, there is nothing to compare.
        others: Whether it saw rows of other attempts.
    """

    place: SinkPlace
    sent: int
    repeated: int
    withheld: Counter[str] = attrs.field(factory=Counter)
    looked: bool = False
    others: bool = False


def lane_session(topic: str, query: str, partition: int) -> int:
    name = f"{topic}\0{query}\0{partition}".encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 1 | 1


@lru_cache(maxsize=8)
def lanes_of(topic: str, query: str) -> Mapping[int, int]:
    """Return the partition of each session id that a query may have."""
    return {lane_session(topic, query, partition): partition for partition in range(MAX_PARTITIONS + 1)}


def check_columns(schema: StructType, key: Sequence[str] = ()) -> None:
    """Refuse a schema without a payload, and columns that a message has no place for. Raises MessageOptionError."""
    kinds = {field.name: field.dataType.typeName() for field in schema.fields}
    for name in key:
        if name not in kinds:
            raise MessageOptionError(f"the option key names a column {name!r}, and the table has {', '.join(kinds)}")
    wrong = [name for name in kinds if name not in WRITTEN and name not in key]
    if wrong or "payload" not in kinds:
        what = f"has a column {wrong[0]!r}" if wrong else "has no column 'payload'"
        raise MessageOptionError(
            f"a table that {what} cannot be written: select payload, properties as JSON, and columns of the option key"
        )
    if kinds["payload"] not in WRITTEN["payload"] or kinds.get("properties", "string") not in WRITTEN["properties"]:
        raise MessageOptionError("payload must be binary or string, and properties a string of JSON")


@attrs.define(slots=False)
class MessageWriter(DataSourceArrowWriter):
    """Writer of a table; the option `sink` names it, so that the same table is not written twice."""

    terms: WriteTerms
    seen: Mapping[int, Seen]
    epoch: str = attrs.field(factory=lambda: epoch_of(machine.entropy.octets(16).hex()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        place = SinkPlace(self.terms.sink, self.terms.batch, self.epoch, _task().partitionId())
        return written(self.terms, place, self.seen, iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Compare what the tasks did with the topic. Raises SinkError."""
        settle(self.terms, messages)


@attrs.define(slots=False)
class MessageStreamWriter(DataSourceStreamArrowWriter):
    """Writer of a stream. The query's id names it, which its checkpoint keeps, or the option `sink`."""

    terms: WriteTerms
    seen: Mapping[int, Seen]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        task = _task()
        batch, query = task.getLocalProperty(BATCH_ID), self.terms.sink or task.getLocalProperty(QUERY_ID)
        run = task.getLocalProperty(RUN_ID)
        if batch is None or not query or not run:
            raise SinkError("Spark does not tell the id of the query, its run and the batch: use Spark 4.2 or newer")
        place = SinkPlace(query, int(batch), epoch_of(run), task.partitionId())
        return written(self.terms, place, self.seen, iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Compare what the tasks did with the topic. Raises SinkError."""
        settle(self.terms, messages)


def _task() -> TaskContext:
    found = TaskContext.get()
    if found is None:
        raise SinkError("the rows are written outside a task of Spark")
    return found


def sources_seen(terms: WriteTerms) -> dict[int, Seen]:
    """Return the sources of the topic as stores know them now, by session id. Raises ReadFailed."""
    return run_loop(_sources_seen(terms))


async def _sources_seen(terms: WriteTerms) -> dict[int, Seen]:
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        return await _lives(context, terms)


async def _lives(context: Context, terms: WriteTerms) -> dict[int, Seen]:
    found = await _reader(context, terms, None, 1).plan()
    return {source.session_id: Seen(source.incarnation, span.stop) for source, span in found}


def written(
    terms: WriteTerms, place: SinkPlace, seen: Mapping[int, Seen], batches: Iterator[pa.RecordBatch]
) -> Committed:
    """Write rows, and return when a quorum has synced them. Raises SinkError, RegistrationFailed, ReadFailed.

    `seen` has the sources of the topic as they were before any task of the attempt began.
    """
    garbage_collection.keep_worker()
    return machine.process.run(_written(terms, place, seen, batches))


def settle(terms: WriteTerms, messages: "Sequence[WriterCommitMessage | None]") -> None:
    """Compare at the driver what tasks left out with what the topic has, and send what is missing.

    Raises SinkError if the topic has rows of the batch that its tasks do not account for.
    """
    done = [one for one in messages if isinstance(one, Committed)]
    if any(one.looked for one in done):
        machine.process.run(_settled(terms, done))


async def _written(
    terms: WriteTerms, place: SinkPlace, seen: Mapping[int, Seen], batches: Iterator[pa.RecordBatch]
) -> Committed:
    if place.partition >= MAX_PARTITIONS:
        raise SinkError(f"a batch has {MAX_PARTITIONS:,} partitions at most: coalesce the table")
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        context.prompt = False
        lanes = SinkLanes(context, terms, place)
        source, choice, looked = await lanes.entered(seen)
        place_in_lane, number = lanes.count, source.next_number
        for batch in batches:
            for payload, given, key in _messages(batch, terms.key):
                digest = content_of(payload, given) if key is None else key_of(key)
                if choice.sends(digest):
                    properties = {**given, ROW: str(RowMark(place.batch, place_in_lane, place.epoch, digest))}
                    found = source.try_send(payload, properties)
                    number = found if found is not None else (await source.send(payload, properties)).number
                    place_in_lane += 1
            await asyncio.sleep(0)
        choice.end()
        if choice.sent:
            await source.wait_stable_through(number)
        await lanes.confirm()
        return Committed(place, choice.sent, choice.repeated, choice.withheld, looked, bool(choice.others))


async def _settled(terms: WriteTerms, done: Sequence[Committed]) -> None:
    place = attrs.evolve(done[0].place, partition=DRIVER)
    async with Context(interface=interface_to(terms.stores, terms.interface)) as context:
        context.prompt = False
        lanes = SinkLanes(context, terms, place)
        newest = await lanes.newest()
        if not any(one.others for one in done) and not lanes.of_others(newest):
            return
        others, rows = Counter[str](), dict[str, StoredMessage]()
        async for _, mark, message in lanes.of_batch(newest):
            if mark.epoch != place.epoch:
                others[mark.digest] += 1
                rows[mark.digest] = message
        missing = missing_rows(str(place), (one.withheld for one in done), others, keyed=bool(terms.key))
        if not missing:
            return
        source = await lanes.registered(DRIVER)
        number = source.next_number
        for count, digest in enumerate(missing.elements()):
            message = rows[digest]
            properties = {**message.properties, ROW: str(RowMark(place.batch, count, place.epoch, digest))}
            number = (await source.send(message.payload, properties)).number
        await source.wait_stable_through(number)


class SinkLanes:
    """The lanes of a sink, as one task sees them.

    Attributes:
        count: The messages of the batch that its own lane has.
    """

    def __init__(self, context: Context, terms: WriteTerms, place: SinkPlace) -> None:
        self._context, self._terms, self._place = context, terms, place
        self._names = lanes_of(terms.topic, place.query)
        self._stops: dict[int, int] = {}
        self._counted: dict[int, dict[int, RowMark]] = {}
        self.count = 0

    async def entered(self, seen: Mapping[int, Seen]) -> tuple[Source, RowChoice, bool]:
        """Return the source of the lane, what the task is to send, and whether it looked at the other lanes.

        Raises SinkError, RegistrationFailed, ReadFailed.
        """
        own = self._place.partition
        source = await self.registered(own)
        newest = await self.newest([own]) if source.next_number else {}
        if own in newest and newest[own].epoch == self._place.epoch and newest[own].batch < self._place.batch:
            # This attempt has looked before, and its batches come one after the other.
            return source, RowChoice(str(self._place)), False
        before = {self._names[session]: one for session, one in seen.items() if session in self._names}
        if before.keys() - {own}:
            lives = await _lives(self._context, self._terms)
            now = {self._names[session]: one.life for session, one in lives.items() if session in self._names}
            # Peers hold lanes that were registered since the plan, so nobody waits for a peer.
            for partition in sorted(lanes_to_take(now, before, own)):
                await self._take(partition, before[partition])
        return source, await self._look(before), True

    async def _look(self, before: Mapping[int, Seen]) -> RowChoice:
        """Read what the topic has of the batch. Raises SinkError, ReadFailed."""
        newest, choice = await self.newest(), RowChoice(str(self._place))
        choice.later = max((one.batch for one in newest.values() if one.batch > self._place.batch), default=None)
        nobody = Seen(0, 0)
        async for partition, mark, message in self.of_batch(newest):
            here, peer = partition == self._place.partition, mark.epoch == self._place.epoch
            self.count += here
            if here or not peer:
                known = before.get(partition, nobody).has(message.life, message.number)
                choice.add(mark, own=here and peer, before=known)
                self._counted.setdefault(partition, {})[message.number] = mark
        return choice

    async def confirm(self) -> None:
        """Wait until a quorum has what was found, and not only the store that an ended task reached last.

        Raises SinkError: a row that is not sent again must not vanish. ReadFailed.
        """
        ends = machine.clock.monotonic_ns() + round(REGISTRATION_SECONDS * SECOND)
        for partition, marks in self._counted.items():
            while missing := marks.items() - (await self._stable(partition, min(marks))).items():
                if machine.clock.monotonic_ns() >= ends:
                    raise SinkError(
                        f"{len(missing)} rows that an earlier task of {self._place} sent are not on a quorum of stores:"
                        " repeat the batch when all stores run"
                    )
                await asyncio.sleep(CONFIRM_SECONDS)

    async def _stable(self, partition: int, first: int) -> dict[int, RowMark]:
        """Return the marks of the stable messages of a lane from a number on. Raises SinkError, ReadFailed."""
        lane = [lane_session(self._terms.topic, self._place.query, partition)]
        reader = self._context.reader(
            self._terms.topic,
            stores=self._terms.stores,
            sources=lane,
            since=first,
            patience=self._terms.patience,
            new=True,
        )
        async with reader:
            return {message.number: self._mark(message) async for message in reader}

    async def registered(self, partition: int, within: float = REGISTRATION_SECONDS) -> Source:
        """Return the source of a lane. A task that was killed may hold its session for a while."""
        session = lane_session(self._terms.topic, self._place.query, partition)
        source = await self._context.source(
            self._terms.topic, stores=self._terms.stores, session_id=session, within=within
        )
        self._stops[partition] = source.next_number
        return source

    def of_others(self, newest: Mapping[int, RowMark]) -> set[int]:
        """Return the lanes whose newest message another attempt sent for this batch."""
        return {
            partition
            for partition, mark in newest.items()
            if mark.batch == self._place.batch and mark.epoch != self._place.epoch
        }

    async def _take(self, partition: int, before: Seen) -> None:
        """Take a lane for a moment: then no task of an earlier attempt writes there any more.

        A peer that has the lane meanwhile took it itself. Raises SinkError.
        """
        ends = machine.clock.monotonic_ns() + round(REGISTRATION_SECONDS * SECOND)
        session = lane_session(self._terms.topic, self._place.query, partition)
        while (await _lives(self._context, self._terms))[session].life == before.life:
            try:
                source = await self.registered(partition, LOOK_SECONDS)
            except RegistrationFailed as error:
                if machine.clock.monotonic_ns() >= ends:
                    raise SinkError(
                        f"a task of an earlier attempt still writes {self._place}: end it, or wait; {error}"
                    ) from error
            else:
                await source.close()
                return

    async def newest(self, partitions: Sequence[int] | None = None) -> dict[int, RowMark]:
        """Return the mark of the newest message of each lane, by default of all. Raises SinkError, ReadFailed."""
        found, unread = dict[int, RowMark](), set(partitions or ())
        if partitions is None:
            async with _reader(self._context, self._terms, self._names, 1) as reader:
                unread = {self._names[one.session_id] for one in reader.sources if one.stop}
                async for message in reader:
                    found[self._names[message.session_id]] = self._mark(message)
        # The newest number of a lane may never have been stored. Where a registration told the end, all is to be known.
        for partition in unread - found.keys() | unread & self._stops.keys():
            found.pop(partition, None)
            count = 1
            while partition not in found:
                read, whole = await self._last(partition, count)
                if read:
                    found[partition] = read[-1][0]
                elif whole:
                    break
                count *= 2
        return found

    async def of_batch(self, newest: Mapping[int, RowMark]) -> AsyncIterator[tuple[int, RowMark, StoredMessage]]:
        """Yield the messages of this batch, with their lanes. Raises SinkError, ReadFailed."""
        for partition, mark in newest.items():
            if mark.batch >= self._place.batch:
                for one in await self._of_lane(partition, mark):
                    yield partition, *one

    async def _of_lane(self, partition: int, newest: RowMark) -> list[tuple[RowMark, StoredMessage]]:
        """Return the messages of this batch in a lane: its last ones, but for those of later batches."""
        count = max(FIRST_LOOK, newest.place + 2)
        while True:
            read, whole = await self._last(partition, count)
            found = [one for one in read if one[0].batch == self._place.batch]
            if read and (read[0][0].batch < self._place.batch or (found and not found[0][0].place)):
                return found
            if whole and found:
                raise SinkError(
                    f"limits let rows of {self._place} go, so they cannot be compared: name the sink otherwise"
                )
            if whole:
                return []
            if count > MAX_KNOWN:
                raise SinkError(f"{self._place} lies more than {MAX_KNOWN:,} messages back: name the sink otherwise")
            count *= 2

    async def _last(self, partition: int, count: int) -> tuple[list[tuple[RowMark, StoredMessage]], bool]:
        """Return messages among the last numbers of a lane, and whether these are all that stores keep of it.

        Raises SinkError if a message exists that no store has that answers: a row would be sent twice.
        """
        stop = self._stops.get(partition)
        if stop == 0:
            return [], True
        lane = [lane_session(self._terms.topic, self._place.query, partition)]
        async with _reader(self._context, self._terms, lane, count, stop) as reader:
            found = [(self._mark(message), message) async for message in reader]
            whole = all(one.stop - one.first < count for one in reader.sources)
        if away := [hole for hole in reader.holes if hole.reason is HoleReason.AWAY]:
            raise SinkError(f"what the topic has of {self._place} is not known: {away[0]}")
        return found, whole

    def _mark(self, message: StoredMessage) -> RowMark:
        return RowMark.of(message.properties.get(ROW, ""), f"session {message.session_id} of '{self._terms.topic}'")


def _reader(
    context: Context, terms: WriteTerms, sessions: Collection[int] | None, count: int, stop: int | None = None
) -> RangeReader:
    """Return a reader of the last numbers of each source. A quorum must answer: it has all that is stable."""
    return context.reader(
        terms.topic,
        stores=terms.stores,
        sources=sessions,
        since=last(count),
        until=stop,
        patience=terms.patience,
        quorum=quorum_of(len(terms.stores)),
        stable=False,
        new=True,
    )


def _messages(
    batch: pa.RecordBatch, key: Sequence[str]
) -> Iterator[tuple[bytes, Mapping[str, Any], Sequence[Any] | None]]:
    """Yield payload, properties and key of each row. Raises SinkError for a row that no message can hold."""
    payloads = batch.column("payload").to_pylist()
    texts = batch.column("properties").to_pylist() if "properties" in batch.schema.names else [None] * len(payloads)
    keys = zip(*(batch.column(name).to_pylist() for name in key), strict=True) if key else [None] * len(payloads)
    for payload, text, values in zip(payloads, texts, keys, strict=True):
        if payload is None:
            raise SinkError("a row without a payload cannot be written: leave such rows out")
        found = json.loads(text) if text else {}
        if not isinstance(found, dict):
            raise SinkError(f"the properties of a message are a JSON object, not {text!r}")
        yield payload.encode() if isinstance(payload, str) else payload, found, values
