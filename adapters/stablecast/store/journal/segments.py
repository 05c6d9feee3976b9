"""Segment files, and the places of records in them."""

import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs

from stablecast.runtime import machine
from stablecast.store.journal.lock import DirectoryLock, Identity, identity
from stablecast.store.journal.record_format import (
    FILE_HEADER_BYTES,
    MESSAGES_HEAD,
    RECORD_HEADER_BYTES,
    TIMED,
    VERSION,
    Block,
    JournalError,
    RecordKind,
    body_crc,
    entry_at,
    file_header,
    header_at,
    messages_head,
)
from stablecast.store.journal.summary import SegmentSummary, summary_path
from stablecast.text import refusal
from stablecast.text.scarcity import REMEDY, is_scarce

PIECE_BYTES = 1 << 20
"""Bytes read at a time when a file is searched."""

MAX_OPEN_FILES = 64
"""Segments that a journal keeps open for reading at most."""

FEW_OPEN_FILES = 2
"""Segments likewise where descriptors are short. With the lock, the written segment and a directory they are five."""

_NAME = re.compile(r"(\d{8,10})\.seg(\.damaged|\.foreign)?")

Position = tuple[int, int]
"""Segment number and offset."""


@attrs.define(eq=False)
class JournalSegment:
    """One file of records.

    Attributes:
        on_disk: True once the file exists with its header.
        end: Offset after the last record.
        limit: Offset at which the segment is full.
        live: The count of pieces of the index in it.
        streams: Every stream that has records in it.
        version: The version of its format. A segment of an older version gets no new records.
        summary: The records in it, until it is full.
        identity: Device and inode of the file that was opened for writing, None before.
    """

    number: int
    salt: int
    path: Path
    on_disk: bool = False
    end: int = FILE_HEADER_BYTES
    limit: int = 0
    live: int = 0
    streams: set[int] = attrs.field(factory=set)
    version: int = VERSION
    summary: SegmentSummary = attrs.field(factory=SegmentSummary)
    identity: Identity | None = None

    @property
    def block_at(self) -> int:
        """Return the offset of the block in a MESSAGES record, in bytes."""
        return RECORD_HEADER_BYTES + messages_head(self.version).size


@attrs.define(eq=False)
class JournalRecord:
    """A record that is not synced: its place and its body in parts."""

    segment: JournalSegment
    offset: int
    size: int
    kind: RecordKind
    ticket: int
    parts: tuple[Block, ...]


@attrs.define
class RecordPlace:
    """The place of a MESSAGES record, the numbers it was written with, and the life that sent them."""

    segment: JournalSegment
    offset: int
    size: int
    first: int
    tag: int
    count: int

    @property
    def block_bytes(self) -> int:
        return self.size - self.segment.block_at

    @property
    def position(self) -> Position:
        """Return the position in the order in which records were written."""
        return self.segment.number, self.offset


@attrs.frozen
class StoredRun:
    """A run of messages in the journal.

    The block's first message is `first`. The run is live from the wanted number to before `first` + `count`, even if
    the block is longer. Other runs may hold earlier numbers by now (see `Journal.extents`).

    Attributes:
        first: The number of the first message.
        count: Numbers from `first` to the end of the live part.
        tag: The incarnation of the source.
        record: The place of the record on the disk.
        block: The messages, or None if `Journal.fetch` must read them.
    """

    first: int
    count: int
    tag: int
    record: RecordPlace
    block: Block | None


def segment_path(directory: Path, number: int) -> Path:
    """Return the path of a segment.

    >>> segment_path(Path("d"), 7).name
    '00000007.seg'
    """
    return directory / f"{number:08}.seg"


def list_segments(directory: Path) -> tuple[dict[int, Path], int]:
    """Return the segments by ascending number, and the highest number of any file, also of one set aside."""
    found: dict[int, Path] = {}
    highest = 0
    for name in machine.files.names(directory):
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        number = int(match[1])
        highest = max(highest, number)
        if match[2] is None:
            found[number] = directory / name
    return dict(sorted(found.items())), highest


def last_written(paths: dict[int, Path]) -> int:
    """Return the newest segment that holds a record, or the oldest one; `paths` are ascending and not empty.

    Only its end may be torn. The writer opens the next segment while it flushes this one, but writes to it later.

    Raises:
        OSError: A file cannot be read.
    """
    oldest, *others = paths
    return next((number for number in reversed(others) if holds_records(paths[number])), oldest)


def holds_records(path: Path) -> bool:
    """Return True if the file has more than a header and zeros of reserved room; False if there is no file."""
    with suppress(FileNotFoundError), machine.files.file(path, "rb") as file:
        file.seek(FILE_HEADER_BYTES)
        return any(piece.strip(b"\0") for piece in iter(partial(file.read, PIECE_BYTES), b""))
    return False


def open_for_writing(
    segment: JournalSegment, sync: Callable[[int], None], lock: DirectoryLock, reserve: int = 0
) -> int:
    """Open a segment, create it if it is new, and return the descriptor. A new file gets `reserve` bytes of the disk.

    The header is durable before the first record is written. Therefore a bad header in a file with records is damage,
    never the trace of a crash.
    """
    if segment.on_disk:
        fd = machine.files.open(segment.path, os.O_WRONLY)
        segment.identity = identity(fd)
        return fd
    fd = machine.files.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        machine.files.write(fd, file_header(segment.number, segment.salt))
        if reserve:
            machine.files.allocate(fd, 0, max(reserve, FILE_HEADER_BYTES))
        sync(fd)
        lock.sync_names()
    except OSError:
        machine.files.close(fd)
        raise
    segment.identity = identity(fd)
    segment.on_disk = True
    return fd


def leave_summary(segment: JournalSegment) -> None:
    """Write the summary of a full segment, and drop it from memory. Without the file, the next open scans."""
    path = summary_path(segment.path)
    try:
        machine.files.write_bytes(path, segment.summary.encoded(segment.number, segment.salt, segment.end))
    except OSError:
        with suppress(OSError):  # The checksum rejects the rest of a file that cannot be removed.
            machine.files.remove(path)
    segment.summary = SegmentSummary()


class SegmentReader:
    """Reads records back, with a bounded number of open files."""

    def __init__(self, most: int = MAX_OPEN_FILES) -> None:
        """Make a reader that keeps at most `most` files open."""
        self._most = most
        self._open: OrderedDict[int, int] = OrderedDict()

    def block(self, record: RecordPlace) -> bytes:
        """Return the block of a synced MESSAGES record.

        Raises:
            JournalError: The file cannot be read, or the record fails its checksum.
        """
        segment = record.segment
        data = self._read(segment, record.size, record.offset)
        if len(data) != record.size or entry_at(data, 0, segment.salt) is None:
            raise JournalError(
                f"the record at {record.offset} of {segment.path} fails its checksum; check the disk and let "
                "the receivers recover from another store"
            )
        return data[segment.block_at :]

    def verify(self, segment: JournalSegment, offset: int, stop: int) -> int:
        """Verify the records from `offset` on, about `PIECE_BYTES` of them.

        Args:
            segment: The file.
            offset: The offset of a record.
            stop: An offset up to which the records are synced.

        Returns:
            The offset after the last good record; `offset` if the first one is bad.

        Raises:
            JournalError: The file cannot be read, or a newer release wrote it.
        """
        data = self._read(segment, min(PIECE_BYTES, stop - offset), offset)
        at = 0
        while (entry := entry_at(data, at, segment.salt)) is not None:
            at = entry.stop
        return offset + at if at else self._verify_long(segment, offset, stop)

    def _verify_long(self, segment: JournalSegment, offset: int, stop: int) -> int:
        """Verify one record that is longer than a piece. Return like `verify`."""
        head = self._read(segment, RECORD_HEADER_BYTES, offset)
        entry = header_at(head, 0, segment.salt)
        if entry is None or offset + entry.stop > stop:
            return offset
        crc = 0
        for at in range(offset + RECORD_HEADER_BYTES, offset + entry.stop, PIECE_BYTES):
            crc = zlib.crc32(self._read(segment, min(PIECE_BYTES, offset + entry.stop - at), at), crc)
        return offset + entry.stop if crc == body_crc(head) else offset

    def came_at(self, record: RecordPlace) -> int | None:
        """Return when a synced MESSAGES record was appended, in ns of the epoch; None if its segment has no times.

        Raises:
            JournalError: The file cannot be read.
        """
        segment = record.segment
        if segment.version < TIMED:
            return None
        at = record.offset + RECORD_HEADER_BYTES
        return int(MESSAGES_HEAD.unpack(self._read(segment, MESSAGES_HEAD.size, at))[-1])

    def close(self, segment: JournalSegment) -> None:
        """Close a file, so that it can be removed."""
        fd = self._open.pop(segment.number, None)
        if fd is not None:
            machine.files.close(fd)

    def close_all(self) -> None:
        while self._open:
            machine.files.close(self._open.popitem()[1])

    def _read(self, segment: JournalSegment, size: int, offset: int) -> bytes:
        try:
            return machine.files.pread(self._fd(segment), size, offset)
        except OSError as error:
            if is_scarce(error) and self._open:
                self.close_all()  # The files that it keeps open may be what is missing.
                return self._read(segment, size, offset)
            remedy = REMEDY if is_scarce(error) else "check the disk"
            raise JournalError(f"cannot read {segment.path}: {refusal(error)}; {remedy}") from error

    def _fd(self, segment: JournalSegment) -> int:
        fd = self._open.get(segment.number)
        if fd is None:
            if len(self._open) >= self._most:
                machine.files.close(self._open.popitem(last=False)[1])
            fd = self._open[segment.number] = machine.files.open(segment.path, os.O_RDONLY)
        self._open.move_to_end(segment.number)
        return fd
