"""Write the messages of a directory as Parquet, or as JSON lines in a zstd file, for `stablecast store export`.

One row is one message: the source's RegID, topic and session id, the incarnation that sent it, its extended number, its
arrival time, its payload and its properties as JSON. The arrival time is in ns since 1970 and null if an older release
wrote the record. JSON lines hold the payload as base64.

A fragmented message has the number of its last fragment, and `first` is that of its first. It is a row only if all its
fragments are here and selected. The rows of a source are ordered by number. Messages that a store keeps only in memory
are in no file and cannot be exported.

Memory is bounded: a batch holds at most `BATCH_BYTES` of payload, or one message.
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
"""Most payload of one batch, in bytes."""
BATCH_ROWS = 20_000
"""Most rows of one batch, which is a row group of a Parquet file."""


@attrs.frozen
class MessageSelection:
    """Select messages by source, by number (both ends included) and by arrival in ns (the end excluded).

    A message without an arrival time matches no interval of time.
    """

    source: int | None = None
    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None

    def __attrs_post_init__(self) -> None:
        """Reject an empty selection, which would look like a store without messages. Raises OperationError."""
        if self.first is not None and self.last is not None and self.first > self.last:
            raise OperationError(f"--first {self.first} is above --last {self.last}: no number is in between")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise OperationError("--since is not before --until: no time is in between")

    def overlap(self, start: int, stop: int) -> tuple[int, int]:
        """Return the selected part of the numbers [start, stop)."""
        low = start if self.first is None else max(start, self.first)
        high = stop if self.last is None else min(stop, self.last + 1)
        return low, high

    def came_in_time(self, came_at: int | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if came_at is None:
            return False
        return (self.since is None or self.since <= came_at) and (self.until is None or came_at < self.until)


@attrs.frozen
class MessageRow:
    """Hold one message with its source, in the columns of the export."""

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
    def write(self, rows: list[MessageRow]) -> None: ...

    def close(self) -> None: ...


def instant(text: str) -> int:
    """Return an instant in ns since 1970, from digits or ISO 8601. A time without a zone is UTC.

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


def export(directory: Path, wanted: MessageSelection, sink: Sink) -> int:
    """Write the selected messages; return their number.

    Raises:
        OperationError: the source is not registered.
        JournalError: a record cannot be read, or fails its checksum.
        OSError: a file cannot be read or written.
    """
    with closing(sink):
        count = 0
        for batch in batches(rows(directory, wanted)):
            sink.write(batch)
            count += len(batch)
        return count


def rows(directory: Path, wanted: MessageSelection) -> Iterator[MessageRow]:
    """Yield the selected messages. Raises like `export`."""
    found = read(directory)
    sources = found.sources()
    if wanted.source is not None:
        sources = [client for client in sources if client.reg_id == wanted.source]
        if not sources:
            raise OperationError(f"no source {wanted.source} is registered in {directory}; `inspect` lists the sources")
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
    wanted: MessageSelection,
    reader: SegmentReader,
    incomplete: FragmentReassembly,
) -> Iterator[MessageRow]:
    """Yield the messages that are complete with this record.

    Yields nothing if a running store deleted the segment meanwhile.
    """
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
            yield MessageRow(*who, number, came_at, payload, number)
        return
    for whole in incomplete.add_run(block, low - record.first, high - low, low):
        yield MessageRow(*who, whole.last, came_at, whole.payload, whole.first, _json(whole.properties))
    incomplete.take_passed()


def _json(block: bytes) -> str:
    """Return properties as JSON, or an empty object if they cannot be decoded."""
    try:
        return json.dumps(properties.values(block) if block else {})
    except WireError:
        return "{}"


def batches(found: Iterable[MessageRow]) -> Iterator[list[MessageRow]]:
    """Yield lists of rows within `BATCH_ROWS` and `BATCH_BYTES`."""
    batch: list[MessageRow] = []
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
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = zstandard.ZstdCompressor().compressobj()

    def write(self, rows: list[MessageRow]) -> None:
        self._file.write(self._stream.compress("".join(map(_line, rows)).encode()))

    def close(self) -> None:
        self._file.write(self._stream.flush())


def _line(row: MessageRow) -> str:
    fields = attrs.asdict(row)
    fields["payload"] = base64.b64encode(row.payload).decode()
    fields["properties"] = json.loads(row.properties)
    return json.dumps(fields) + "\n"


class Parquet:
    """Write rows as a Parquet file, with a row group for each batch."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to a file, which stays open.

        Raises:
            OperationError: pyarrow is not installed.
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

    def write(self, rows: list[MessageRow]) -> None:
        columns = [[getattr(row, name) for row in rows] for name in self._schema.names]
        arrays = [self._arrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def sink(path: Path, file: BinaryIO) -> Sink:
    """Return the writer for a file name: `.parquet`, or JSON lines in `.jsonl.zst`. Raises OperationError."""
    if path.name.endswith(".parquet"):
        return Parquet(file)
    if path.name.endswith(".jsonl.zst"):
        return JsonLines(file)
    raise OperationError(f"'{path.name}' names no format: end it in .parquet or .jsonl.zst")
