"""Read a store's directory without changing it. The store may be running.

Beside a running store the contents are those of the moment when each file was read. A segment may disappear: the store
deletes segments that hold no live message. The end of the newest segment may be torn, because the store is writing it.
"""

import struct
from collections import Counter
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.ops.operations.target import OperationError
from stablecast.store.client_records import clients_of
from stablecast.store.journal import record_format
from stablecast.store.journal.index import Erase, Index
from stablecast.store.journal.lock import LOCK_NAME
from stablecast.store.journal.recovery import lost_runs
from stablecast.store.journal.segments import JournalSegment, RecordPlace, last_written, list_segments
from stablecast.store.journal.summary import SegmentSummary, decoded, summary_path
from stablecast.transports.codec.lbttcp import span


@attrs.frozen
class Damage:
    """Describe the bytes [start, stop) of a file that hold no valid record."""

    file: str
    start: int
    stop: int
    text: str


@attrs.define
class Contents:
    """Hold the contents of a directory.

    Attributes:
        records: Number of valid records by kind.
        checked: Bytes whose checksums were verified.
        torn: Unfinished bytes at the end of the newest segment. No endpoint was told that they are stable.
        bad: Stream and place of each damaged record with messages that the summary of its segment names.
        lost: Source, first and last number of messages in those records that no other record holds.
    """

    directory: Path
    segments: dict[int, JournalSegment] = attrs.field(factory=dict)
    index: Index = attrs.field(factory=Index)
    states: list[bytes] = attrs.field(factory=list)
    records: Counter[str] = attrs.field(factory=Counter)
    messages: int = 0
    checked: int = 0
    torn: int = 0
    damages: list[Damage] = attrs.field(factory=list)
    set_aside: list[str] = attrs.field(factory=list)
    bad: list[tuple[int, RecordPlace]] = attrs.field(factory=list)
    lost: list[tuple[int, int, int]] = attrs.field(factory=list)

    @property
    def clients(self) -> dict[int, Client]:
        """The registered clients by RegID. Raises RecordError."""
        return clients_of(self.states)

    def sources(self) -> list[Client]:
        """Return the registered sources, ordered by RegID. Raises RecordError."""
        return [client for _, client in sorted(self.clients.items()) if client.role is Role.SOURCE]


def read(directory: Path, *, thorough: bool = False) -> Contents:
    """Scan a directory and verify every checksum.

    Args:
        directory: Directory of a store.
        thorough: Also decode each block, to verify that it holds the messages it should.

    Raises:
        OperationError: the directory has no journal.
        JournalError: a newer release wrote it.
        OSError: a file cannot be read.
    """
    found = Contents(directory)
    paths, _ = list_segments(directory)
    found.set_aside = sorted(path.name for path in directory.iterdir() if path.suffix in (".damaged", ".foreign"))
    if not (paths or found.set_aside or (directory / LOCK_NAME).exists()):
        raise OperationError(f"there is no journal in {directory}: name the directory disk-cache-directory of a store")
    last = last_written(paths) if paths else 0
    for number, path in paths.items():
        try:
            _read_segment(found, number, path, newest=number >= last, thorough=thorough)
        except FileNotFoundError:
            continue  # The running store deleted this segment because it holds no live message.
    found.lost = [(stream, first, stop - 1) for stream, first, stop, _ in lost_runs(found.index, found.bad)]
    return found


def _read_segment(found: Contents, number: int, path: Path, *, newest: bool, thorough: bool) -> None:
    with path.open("rb") as file:
        header = file.read(record_format.FILE_HEADER_BYTES)
        salt = record_format.file_salt(header, number)
        size = path.stat().st_size
        if salt is None:
            if newest and size <= record_format.FILE_HEADER_BYTES:
                found.torn += size
            else:
                found.damages.append(
                    Damage(path.name, 0, size, "the file header is damaged; nothing in it can be read")
                )
            return
        segment = JournalSegment(number, salt, path, on_disk=True, version=record_format.file_version(header))
        found.segments[number] = segment
        summary = _summary(segment, size)
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            # A segment with a summary was ended cleanly, so it has no torn end.
            for item in record_format.scan(data, salt, newest=newest and summary is None):
                if isinstance(item, record_format.Entry):
                    found.checked += item.stop - item.offset
                    found.records[item.kind.name] += 1
                    _apply(found, segment, item, data, thorough=thorough)
                    segment.end = item.stop
                else:
                    _note_gap(found, path, item, data)
                    _name(found, segment, item, summary)


def _note_gap(found: Contents, path: Path, gap: record_format.SegmentGap, data: mmap) -> None:
    if not gap.torn:
        found.damages.append(Damage(path.name, gap.offset, gap.stop, "no record here passes its checksum"))
    elif data[gap.offset : gap.stop].strip(b"\0"):
        found.torn += gap.stop - gap.offset


def _summary(segment: JournalSegment, size: int) -> SegmentSummary | None:
    """Return the summary of a segment that was ended cleanly."""
    try:
        return decoded(summary_path(segment.path).read_bytes(), segment.number, segment.salt, size)
    except OSError:
        return None


def _name(
    found: Contents, segment: JournalSegment, gap: record_format.SegmentGap, summary: SegmentSummary | None
) -> None:
    """Enter the messages that the summary of the segment names in a gap."""
    for runs in () if summary is None else summary.runs.values():
        for offset, length, first, tag, count in runs.records():
            if gap.offset <= offset < gap.stop:
                found.bad.append((runs.stream, RecordPlace(segment, offset, length, first, tag, count)))
                found.index.add(*found.bad[-1])


def _apply(found: Contents, segment: JournalSegment, entry: record_format.Entry, data: mmap, *, thorough: bool) -> None:
    match entry.kind:
        case record_format.RecordKind.MESSAGES:
            head = record_format.messages_head(segment.version)
            stream, first, count, tag = head.unpack_from(data, entry.body.start)[:4]
            size = entry.stop - entry.offset
            found.index.add(stream, RecordPlace(segment, entry.offset, size, first, tag, count))
            found.messages += count
            if thorough and not _whole(data[entry.body.start + head.size : entry.stop], count):
                text = f"the block of source {stream} does not hold its {count} messages from {first} on"
                found.damages.append(Damage(segment.path.name, entry.offset, entry.stop, text))
        case record_format.RecordKind.STATE:
            found.states.append(data[entry.body])
        case record_format.RecordKind.CHECKPOINT:
            found.states = record_format.split_states(data[entry.body])
        case record_format.RecordKind.ERASE:
            stream, start, stop, number, offset = record_format.ERASE_BODY.unpack_from(data, entry.body.start)
            found.index.erase(Erase(stream, start, stop, (number, offset)))
        case _:
            assert_never(entry.kind)


def _whole(block: bytes, count: int) -> bool:
    try:
        _, stop = span(block, 0, count)
    except struct.error:
        return False
    return stop <= len(block)
