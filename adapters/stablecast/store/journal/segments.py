"""Segment files, and where a record lies in them."""

import os
import re
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs

from stablecast.store.journal.errors import JournalError
from stablecast.store.journal.record_format import (
    FILE_HEADER_BYTES,
    MESSAGES_HEAD,
    RECORD_HEADER_BYTES,
    TIMED,
    VERSION,
    Block,
    Kind,
    entry_at,
    file_header,
    messages_head,
)
from stablecast.store.journal.summary import Summary, summary_path
from stablecast.text import refusal

PIECE_BYTES = 1 << 20
"""Of a file that is looked through, in bytes."""

MAX_OPEN_FILES = 64
"""Bound on the segments that a journal keeps open for reading."""

FEW_OPEN_FILES = 2
"""The same where descriptors are short: with the lock, the segment that is written and a directory there are five."""

_NAME = re.compile(r"(\d{8,10})\.seg(\.damaged|\.foreign)?")

Position = tuple[int, int]
"""Segment number and offset."""


@attrs.define(eq=False)
class Segment:
    """One file. `live` counts the pieces of the index in it; `streams` names every stream it has records of.

    `version` is the format it is written in: an older one is read, and never written to again. `summary` tells what is
    in it until it is full.
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
    summary: Summary = attrs.field(factory=Summary)

    @property
    def block_at(self) -> int:
        """Offset of the block in a MESSAGES record, in bytes."""
        return RECORD_HEADER_BYTES + messages_head(self.version).size


@attrs.define(eq=False)
class Record:
    """One record: its place and, until it is synced, its body."""

    segment: Segment
    offset: int
    size: int
    kind: Kind
    ticket: int
    parts: tuple[Block, ...]


@attrs.define
class Place:
    """A MESSAGES record: where it lies, the numbers that it was written with, and the life that sent them."""

    segment: Segment
    offset: int
    size: int
    first: int
    tag: int
    count: int

    @property
    def block_bytes(self) -> int:
        """Bytes of its block."""
        return self.size - self.segment.block_at

    @property
    def position(self) -> Position:
        """Place in the order in which records were written."""
        return self.segment.number, self.offset


def segment_path(directory: Path, number: int) -> Path:
    """Returns the name of a segment.

    >>> segment_path(Path("d"), 7).name
    '00000007.seg'
    """
    return directory / f"{number:08}.seg"


def list_segments(directory: Path) -> tuple[dict[int, Path], int]:
    """Returns the segments by ascending number, and the highest number that any file, also one set aside, carries."""
    found: dict[int, Path] = {}
    highest = 0
    for path in directory.iterdir():
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        number = int(match[1])
        highest = max(highest, number)
        if match[2] is None:
            found[number] = path
    return dict(sorted(found.items())), highest


def last_written(paths: dict[int, Path]) -> int:
    """Returns the newest segment that holds a record, or the oldest there is, of at least one in ascending order.

    Its end may be torn: the next is opened while it is flushed, and gets no record before that is done.

    Raises:
        OSError: If a file cannot be read.
    """
    oldest, *others = paths
    return next((number for number in reversed(others) if holds_records(paths[number])), oldest)


def holds_records(path: Path) -> bool:
    """Whether there is more than a header, and zeros where room was reserved; a file that is gone holds nothing."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(FILE_HEADER_BYTES)
        return any(piece.strip(b"\0") for piece in iter(partial(file.read, PIECE_BYTES), b""))
    return False


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable: what was created is there, what was removed stays away."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_for_writing(segment: Segment, sync: Callable[[int], None], reserve: int = 0) -> int:
    """Opens a segment, creating it if it is new, and returns the descriptor.

    The header is durable before the first record is written. So a bad header in a file that holds more than a header
    is damage, never the trace of a crash. A new file gets `reserve` bytes of the disk at once, if that is not 0.
    """
    if segment.on_disk:
        return os.open(segment.path, os.O_WRONLY)
    fd = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(fd, file_header(segment.number, segment.salt))
        if reserve:
            os.posix_fallocate(fd, 0, max(reserve, FILE_HEADER_BYTES))
        sync(fd)
        sync_directory(segment.path.parent)
    except OSError:
        os.close(fd)
        raise
    segment.on_disk = True
    return fd


def leave_summary(segment: Segment) -> None:
    """Writes the summary of a segment that is full and forgets it; where it cannot be written, the next open scans."""
    path = summary_path(segment.path)
    try:
        path.write_bytes(segment.summary.encoded(segment.number, segment.salt, segment.end))
    except OSError:
        with suppress(OSError):  # what is left of it is not believed
            path.unlink(missing_ok=True)
    segment.summary = Summary()


class SegmentReader:
    """Reads records back, with a bounded number of open files."""

    def __init__(self, most: int = MAX_OPEN_FILES) -> None:
        """At most so many files are open at one time."""
        self._most = most
        self._open: OrderedDict[int, int] = OrderedDict()

    def block(self, record: Place) -> bytes:
        """Returns the block of a synced MESSAGES record.

        Raises:
            JournalError: If the file cannot be read or the record fails its checksum.
        """
        segment = record.segment
        data = self._read(segment, record.size, record.offset)
        if len(data) != record.size or entry_at(data, 0, segment.salt) is None:
            raise JournalError(
                f"the record at {record.offset} of {segment.path} fails its checksum; check the disk and let "
                "the receivers recover from another store"
            )
        return data[segment.block_at :]

    def came_at(self, record: Place) -> int | None:
        """Returns when a synced MESSAGES record was appended, in ns of the epoch; None: its segment has no times.

        Raises:
            JournalError: If the file cannot be read.
        """
        segment = record.segment
        if segment.version < TIMED:
            return None
        at = record.offset + RECORD_HEADER_BYTES
        return int(MESSAGES_HEAD.unpack(self._read(segment, MESSAGES_HEAD.size, at))[-1])

    def close(self, segment: Segment) -> None:
        """Closes one file, for it is going to be removed."""
        fd = self._open.pop(segment.number, None)
        if fd is not None:
            os.close(fd)

    def close_all(self) -> None:
        """Closes every file."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _read(self, segment: Segment, size: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd(segment), size, offset)
        except OSError as error:
            raise JournalError(f"cannot read {segment.path}: {refusal(error)}; check the disk") from error

    def _fd(self, segment: Segment) -> int:
        fd = self._open.get(segment.number)
        if fd is None:
            if len(self._open) >= self._most:
                os.close(self._open.popitem(last=False)[1])
            fd = self._open[segment.number] = os.open(segment.path, os.O_RDONLY)
        self._open.move_to_end(segment.number)
        return fd
