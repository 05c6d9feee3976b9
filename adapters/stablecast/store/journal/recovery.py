"""The scan of a directory of segments at open.

Every checksum is verified, unless blocks are verified when they are read. Full segments are entered from their
summaries; a segment that differs from its summary is scanned. A torn end is cut. Damage is copied aside and reported.
Recovered records count only after a sync, because a process that was killed leaves records in the page cache that no
disk has.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.runtime import machine
from stablecast.runtime.machine import Mapped
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.index import Erase, Index
from stablecast.store.journal.record_format import (
    ERASE_BODY,
    FILE_HEADER_BYTES,
    FILE_MAGIC,
    Entry,
    RecordKind,
    SegmentGap,
    entry_at,
    file_salt,
    file_version,
    intact,
    messages_head,
    scan,
    split_states,
)
from stablecast.store.journal.segments import (
    JournalSegment,
    RecordPlace,
    holds_records,
    last_written,
    leave_summary,
    list_segments,
)
from stablecast.store.journal.summary import SUMMARY_SUFFIX, SegmentSummary, decoded, summary_path

DAMAGED_SUFFIX = ".damaged"
FOREIGN_SUFFIX = ".foreign"
"""The suffix of files that have a segment's name and are not segments."""


@attrs.define
class RecoveredJournal:
    """The result of a scan.

    Attributes:
        root: The newest segment with a checkpoint, 0 if there is none.
        newest: The newest segment, whose end may be appended to.
        damaged: True if states may be missing, because damage follows the newest checkpoint.
    """

    segments: dict[int, JournalSegment] = attrs.field(factory=dict)
    index: Index = attrs.field(factory=Index)
    states: list[bytes] = attrs.field(factory=list)
    root: int = 0
    next_number: int = 1
    newest: JournalSegment | None = None
    reports: list[str] = attrs.field(factory=list)
    damaged: bool = False


def recover(directory: Path, disk: Disk) -> RecoveredJournal:
    """Scan and repair a directory whose lock is held.

    Raises:
        JournalError: A newer release wrote it.
        OSError: A file cannot be read, cut or synced.
    """
    found = RecoveredJournal()
    paths, highest = list_segments(directory)
    found.next_number = highest + 1
    _drop_orphans(directory, set(map(summary_path, paths.values())))
    last = last_written(paths) if paths else 0
    for number, path in paths.items():
        if number > last:
            _remove_begun(found, number, path)
        else:
            _read_segment(found, number, path, newest=number == last, blocks=disk.verify)
    disk.step("restart-scanned")
    if found.newest is not None:
        fd = machine.files.open(found.newest.path, os.O_RDWR)
        try:
            machine.files.truncate(fd, found.newest.end)
            disk.sync(fd)
        finally:
            machine.files.close(fd)
    disk.step("restart-cut")
    machine.files.sync_directory(directory)
    return found


def _drop_orphans(directory: Path, wanted: set[Path]) -> None:
    """Remove the summaries of deleted segments."""
    for name in machine.files.names(directory):
        path = directory / name
        if name.endswith(SUMMARY_SUFFIX) and path not in wanted:
            machine.files.remove(path)


def _read_segment(found: RecoveredJournal, number: int, path: Path, *, newest: bool, blocks: bool) -> None:
    """Enter one segment into `found`."""
    header = _header(path)
    salt = file_salt(header, number)
    if salt is None:
        _set_aside(found, path, header, created=not newest or holds_records(path))
        return
    segment = JournalSegment(number, salt, path, on_disk=True, version=file_version(header))
    found.segments[number] = segment
    with machine.files.map(path) as data:
        if newest or not _summarized(found, segment, data, blocks=blocks):
            _scan(found, segment, data, newest=newest, blocks=blocks)
    if newest:
        found.newest = segment


def _header(path: Path) -> bytes:
    with machine.files.file(path, "rb") as file:
        return file.read(FILE_HEADER_BYTES)


def _scan(found: RecoveredJournal, segment: JournalSegment, data: Mapped, *, newest: bool, blocks: bool) -> None:
    """Enter a segment record by record; write a summary for the next open if the segment is full and whole."""
    whole = True
    for item in scan(data, segment.salt, newest=newest, blocks=blocks):
        if isinstance(item, Entry):
            _apply(found, segment, item, data)
        elif not item.torn or data[item.offset : item.stop].strip(b"\0"):
            _report(found, segment.path, item)
            whole = False
        segment.end = item.offset if isinstance(item, SegmentGap) and item.torn else item.stop
    if not newest:
        if whole and not machine.files.exists(summary_path(segment.path)):
            leave_summary(segment)
        segment.summary = SegmentSummary()


def _summarized(found: RecoveredJournal, segment: JournalSegment, data: Mapped, *, blocks: bool) -> bool:
    """Enter a segment from its summary; return False and do nothing if there is none that matches the segment."""
    path = summary_path(segment.path)
    summary = None
    with suppress(OSError):  # A disk that cannot read the summary may still read the segment.
        summary = decoded(machine.files.read_bytes(path), segment.number, segment.salt, len(data))
    if summary is None:
        with suppress(OSError):
            machine.files.remove(path)
        return False
    if blocks and not intact(data, segment.salt, summary.offsets()):
        return False
    # Checkpoints and erasures decide what is live, so they are always verified, even if blocks are not.
    others = [entry_at(data, offset, segment.salt) for offset in summary.others]
    entries = [entry for entry in others if entry is not None]
    if len(entries) < len(others):
        return False
    segment.end = len(data)
    # The order of messages and erasures in the segment does not matter: an erasure names the place it looks back from.
    found.index.extend(segment, summary)
    for entry in entries:
        _apply(found, segment, entry, data)
    return True


def _remove_begun(found: RecoveredJournal, number: int, path: Path) -> None:
    """Remove a segment that the writer opened in advance and that got no record."""
    header = _header(path)
    if file_salt(header, number) is None:
        _set_aside(found, path, header, created=False)
    else:
        machine.files.remove(path)


def _set_aside(found: RecoveredJournal, path: Path, header: bytes, *, created: bool) -> None:
    """Rename or remove a file without a good header.

    A file that was `created` completely had a durable header once, so its header is damage. Any other file is the trace
    of a crash.
    """
    if created:
        foreign = not header.startswith(FILE_MAGIC)
        suffix, what = (FOREIGN_SUFFIX, "is no segment") if foreign else (DAMAGED_SUFFIX, "has a damaged header")
        found.damaged = True
        machine.files.rename(path, f"{path}{suffix}")
        found.reports.append(f"{path} {what} and was renamed to {path.name}{suffix}; check the disk")
    else:
        machine.files.remove(path)
        found.reports.append(f"{path} was never completed and was removed; nothing in it was reported stable")


def _report(found: RecoveredJournal, path: Path, gap: SegmentGap) -> None:
    """Report a gap, and keep a copy of a damaged file."""
    length = gap.stop - gap.offset
    if gap.torn:
        found.reports.append(
            f"{path} ended in {length} bytes of an unfinished write at {gap.offset}, which were cut; "
            "unless others shortened the file, nothing in them was reported stable"
        )
        return
    found.damaged = True
    copy = Path(f"{path}{DAMAGED_SUFFIX}")
    if not machine.files.exists(copy):
        machine.files.copy(path, copy)
    found.reports.append(
        f"{path} is damaged from {gap.offset} to {gap.stop} ({length} bytes) and those records are lost; "
        f"check the disk, a copy is in {copy.name}"
    )


def _apply(found: RecoveredJournal, segment: JournalSegment, entry: Entry, data: Mapped) -> None:
    """Apply one record."""
    if entry.kind is not RecordKind.MESSAGES:
        segment.summary.note(entry.offset)
    match entry.kind:
        case RecordKind.MESSAGES:
            stream, first, count, tag, *_ = messages_head(segment.version).unpack_from(data, entry.body.start)
            size = entry.stop - entry.offset
            segment.summary.add(stream, first, count, tag, entry.offset, size)
            found.index.add(stream, RecordPlace(segment, entry.offset, size, first, tag, count))
        case RecordKind.STATE:
            found.states.append(data[entry.body])
        case RecordKind.CHECKPOINT:
            found.states = split_states(data[entry.body])
            found.root = segment.number
            # A checkpoint holds the whole state, so earlier damage costs no state any more.
            found.damaged = False
        case RecordKind.ERASE:
            stream, start, stop, number, offset = ERASE_BODY.unpack_from(data, entry.body.start)
            segment.streams.add(stream)
            found.index.erase(Erase(stream, start, stop, (number, offset)))
        case _:
            assert_never(entry.kind)
