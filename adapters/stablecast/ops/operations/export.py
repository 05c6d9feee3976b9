"""`stablecast store export`: the messages of a directory as Parquet, or as JSON lines in a zstd file.

One row is one message: the source's RegID, topic and session id, the life that sent it, its extended number, when it
came (ns of the epoch; nothing where an older release wrote it), its payload, in JSON as base64, and its properties as
JSON. One that was sent in pieces has the number of its last piece, and `first` that of its first; it is a row only if
all its pieces are there and wanted. Rows of a source are in the order of their numbers. What a store keeps in memory
only is in no file, so it cannot be exported.

Memory is bounded: rows are written in batches of `BATCH_BYTES` at most, or one message.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import attrs
import zstandard

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client
from stablecast.ops.operations.directory_contents import read
from stablecast.ops.operations.target import OperationError
from stablecast.store.journal import JournalError
from stablecast.store.journal.segments import RecordPlace, SegmentReader
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import payloads
from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError

BATCH_BYTES = 16 << 20
"""Payload that is held at one time, in bytes."""
BATCH_ROWS = 20_000
"""Rows of one batch; a row group of a Parquet file."""


@attrs.frozen
class Wanted:
    """What is to be exported: of one source or all, by number, both ends included, and by time in ns, the end excluded.

    What has no time is in no span of time.
    """

    source: int | None = None
    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse what nothing is in: it would look as if the store had no messages. Raises OperationError."""
        if self.first is not None and self.last is not None and self.first > self.last:
            raise OperationError(f"--first {self.first} is above --last {self.last}: no number is in between")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise OperationError("--since is not before --until: no time is in between")

    def overlap(self, start: int, stop: int) -> tuple[int, int]:
        """The wanted part of the numbers [start, stop)."""
        low = start if self.first is None else max(start, self.first)
        high = stop if self.last is None else min(stop, self.last + 1)
        return low, high

    def came_in_time(self, came_at: int | None) -> bool:
        """Whether what came then is wanted."""
        if self.since is None and self.until is None:
            return True
        if came_at is None:
            return False
        return (self.since is None or self.since <= came_at) and (self.until is None or came_at < self.until)


@attrs.frozen
class Row:
    """One message."""

    source: int
    topic: str
    session_id: int
    incarnation: int
    number: int
    came_at: int | None
    payload: bytes
    first: int
    properties: str = "{}"


class Sink(Protocol):
    """Where rows go."""

    def write(self, rows: list[Row]) -> None:
        """Take a batch."""

    def close(self) -> None:
        """There are no more."""


def instant(text: str) -> int:
    """A point in time in ns since 1970: digits as they are, or ISO 8601, without a zone taken as UTC.

    >>> instant("2026-01-02T03:04:05Z"), instant("17")
    (1767323045000000000, 17)
    """
    if re.fullmatch(r"\d{1,19}", text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise OperationError(f"'{text}' is no time: write it as 2026-01-31T12:00:00Z or in ns since 1970") from None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    elapsed = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * SECOND + elapsed.microseconds * 1000


def export(directory: Path, wanted: Wanted, sink: Sink) -> int:
    """Write what is wanted; returns the number of messages.

    Raises:
        OperationError: no such source.
        JournalError: a record cannot be read, or fails its checksum.
        OSError: a file cannot be read or written.
    """
    with closing(sink):
        count = 0
        for batch in batches(rows(directory, wanted)):
            sink.write(batch)
            count += len(batch)
        return count


def rows(directory: Path, wanted: Wanted) -> Iterator[Row]:
    """The wanted messages. Raises like `export`."""
    found = read(directory)
    sources = found.sources()
    if wanted.source is not None:
        sources = [client for client in sources if client.reg_id == wanted.source]
        if not sources:
            raise OperationError(f"no source {wanted.source} is registered in {directory}; `inspect` shows who is")
    reader = SegmentReader()
    try:
        for client in sources:
            incomplete = FragmentReassembly()
            for start, stop, record in found.index.pieces(client.reg_id):
                yield from _run(client, wanted.overlap(start, stop), record, wanted, reader, incomplete)
    finally:
        reader.close_all()


def _run(
    client: Client,
    numbers: tuple[int, int],
    record: RecordPlace,
    wanted: Wanted,
    reader: SegmentReader,
    incomplete: FragmentReassembly,
) -> Iterator[Row]:
    """One run of messages, as far as they are whole with it; nothing if a running store let go of it meanwhile."""
    low, high = numbers
    if low >= high:
        return
    try:
        came_at = reader.came_at(record)
        if not wanted.came_in_time(came_at):
            return
        block = reader.block(record)
    except JournalError:
        if record.segment.path.exists():
            raise
        return
    who = (client.reg_id, client.topic, client.session_id, record.tag)
    if not block[1]:
        for number, payload in enumerate(payloads(block, low - record.first, high - low), low):
            yield Row(*who, number, came_at, payload, number)
        return
    for whole in incomplete.add_run(block, low - record.first, high - low, low):
        yield Row(*who, whole.last, came_at, whole.payload, whole.first, _json(whole.properties))
    incomplete.take_passed()


def _json(block: bytes) -> str:
    """Properties as JSON; none where they cannot be read."""
    try:
        return json.dumps(properties.values(block) if block else {})
    except WireError:
        return "{}"


def batches(found: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows, many at a time, never too many."""
    batch: list[Row] = []
    size = 0
    for row in found:
        if batch and (len(batch) >= BATCH_ROWS or size + len(row.payload) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row.payload)
    if batch:
        yield batch


class JsonLines:
    """Rows as JSON lines, compressed."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to a file, which stays open."""
        self._file = file
        self._stream = zstandard.ZstdCompressor().compressobj()

    def write(self, rows: list[Row]) -> None:
        """Take a batch."""
        self._file.write(self._stream.compress("".join(map(_line, rows)).encode()))

    def close(self) -> None:
        """End the compressed stream."""
        self._file.write(self._stream.flush())


def _line(row: Row) -> str:
    fields = attrs.asdict(row)
    fields["payload"] = base64.b64encode(row.payload).decode()
    fields["properties"] = json.loads(row.properties)
    return json.dumps(fields) + "\n"


class Parquet:
    """Rows as a Parquet file, a row group for each batch."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to a file, which stays open.

        Raises:
            OperationError: the library for it is not installed.
        """
        try:
            arrow: Any = import_module("pyarrow")  # large, and needed for this alone
            parquet: Any = import_module("pyarrow.parquet")
        except ModuleNotFoundError:
            raise OperationError("Parquet needs pyarrow: pip install pyarrow, or write to a .jsonl.zst file") from None
        self._arrow = arrow
        self._schema = arrow.schema(
            [
                ("source", arrow.uint32()),
                ("topic", arrow.string()),
                ("session_id", arrow.uint64()),
                ("incarnation", arrow.uint64()),
                ("number", arrow.int64()),
                ("came_at", arrow.timestamp("ns", tz="UTC")),
                ("payload", arrow.binary()),
                ("first", arrow.int64()),
                ("properties", arrow.string()),
            ]
        )
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: list[Row]) -> None:
        """Take a batch."""
        columns = [[getattr(row, name) for row in rows] for name in self._schema.names]
        arrays = [self._arrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


def sink(path: Path, file: BinaryIO) -> Sink:
    """What a file of this name is to hold: `.parquet`, or JSON lines in `.jsonl.zst`. Raises OperationError."""
    if path.name.endswith(".parquet"):
        return Parquet(file)
    if path.name.endswith(".jsonl.zst"):
        return JsonLines(file)
    raise OperationError(f"'{path.name}' says no format: end it in .parquet or .jsonl.zst")
