"""The scan of a directory of segments at open.

Every checksum is verified, unless blocks are verified when they are read. Full segments are entered from their
summaries, and so is the newest one after a clean stop. Segments without a summary are scanned. A torn end is cut.
Recovered records count only after a sync, because a process that was killed leaves records in the page cache that no
disk has.

Damage is reported, and the rest stays:

* With a summary, a bad MESSAGES record still has a name. The index shows its numbers, and `lost` lists those that no
  other record holds.
* Without one, a gap is copied aside, and `unnamed` is set. Nobody here knows which numbers it held.
* A bad record of another kind may cost states and erasures (`damaged`), unless a whole newer segment repeats them.
"""

import os
from array import array
from collections import Counter
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
    header_at,
    intact,
    messages_head,
    scan,
    split_states,
)
from stablecast.store.journal.segments import (
    JournalSegment,
    Position,
    RecordPlace,
    holds_records,
    last_written,
    leave_summary,
    list_segments,
)
from stablecast.store.journal.summary import SUMMARY_SUFFIX, SegmentSummary, decoded, summary_path
from stablecast.text import plural

DAMAGED_SUFFIX = ".damaged"
FOREIGN_SUFFIX = ".foreign"
"""The suffix of files that have a segment's name and are not segments."""


LostRun = tuple[int, int, int, RecordPlace]
"""Stream, first, stop, and the record that cannot be read."""


@attrs.define
class RecoveredJournal:
    """The result of a scan.

    Attributes:
        root: The newest segment with a checkpoint, 0 if there is none.
        newest: The newest segment, whose end may be appended to.
        damaged: True if states or erasures may be missing, because damage follows the newest checkpoint, or lies in
            the erasures before it in its segment.
        damaged_here: True if that damage lies in the segment that is being read.
        unnamed: True if messages may be missing whose numbers are not known.
        bad: The MESSAGES records that fail their checksum, with their streams. The index shows them all the same.
        lost: Stream, first, stop and record of all numbers that the index shows in bad records.
        gapped: Segments with gaps. A newer checkpoint must be on the disk before a summary may hide the gaps.
    """

    segments: dict[int, JournalSegment] = attrs.field(factory=dict)
    index: Index = attrs.field(factory=Index)
    states: list[bytes] = attrs.field(factory=list)
    root: int = 0
    next_number: int = 1
    newest: JournalSegment | None = None
    reports: list[str] = attrs.field(factory=list)
    damaged: bool = False
    damaged_here: bool = False
    unnamed: bool = False
    bad: list[tuple[int, RecordPlace]] = attrs.field(factory=list)
    lost: list[LostRun] = attrs.field(factory=list)
    gapped: list[JournalSegment] = attrs.field(factory=list)


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
    found.lost = lost_runs(found.index, found.bad)
    # Bad records without live messages are no news: the messages were released, or were fetched again.
    bad = Counter(segment for segment, _ in {(place.segment, place.offset) for _, _, _, place in found.lost})
    found.reports += [_bad_records(segment, count, "with messages") for segment, count in bad.items()]
    return found


def _bad_records(segment: JournalSegment, count: int, kind: str) -> str:
    fails = "fails its" if count == 1 else "fail their"
    return f"{segment.path} is damaged: {plural(count, 'record')} {kind} {fails} checksum; check the disk"


def lost_runs(index: Index, bad: list[tuple[int, RecordPlace]]) -> list[LostRun]:
    """Return the numbers that the index shows in bad records."""
    places: dict[int, set[Position]] = {}
    for stream, place in bad:
        places.setdefault(stream, set()).add(place.position)
    return [
        (stream, start, stop, place)
        for stream, positions in places.items()
        for start, stop, place in index.pieces(stream)
        if place.position in positions
    ]


def _drop_orphans(directory: Path, wanted: set[Path]) -> None:
    """Remove the summaries of deleted segments."""
    for name in machine.files.names(directory):
        path = directory / name
        if name.endswith(SUMMARY_SUFFIX) and path not in wanted:
            machine.files.remove(path)


def _read_segment(found: RecoveredJournal, number: int, path: Path, *, newest: bool, blocks: bool) -> None:
    header = _header(path)
    salt = file_salt(header, number)
    if salt is None:
        _set_aside(found, path, header, created=not newest or holds_records(path))
        return
    segment = JournalSegment(number, salt, path, on_disk=True, version=file_version(header))
    found.segments[number] = segment
    found.damaged_here = False
    with machine.files.map(path) as data:
        if not _summarized(found, segment, data, newest=newest, blocks=blocks or newest):
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
            if item.kind is not RecordKind.MESSAGES:
                segment.summary.note(item.offset)
            _apply(found, segment, item, data)
        elif not item.torn:
            _report_gap(found, segment, item, data)
            whole = False
        elif data[item.offset : item.stop].strip(b"\0"):
            _report_torn(found, segment.path, item)
        segment.end = item.offset if isinstance(item, SegmentGap) and item.torn else item.stop
    if not whole:
        found.gapped.append(segment)
    elif not newest:
        if not machine.files.exists(summary_path(segment.path)):
            leave_summary(segment)
        segment.summary = SegmentSummary()


def _only_messages(data: Mapped, gap: SegmentGap, salt: int) -> bool:
    """Return True if the headers of all records in a gap are good, and name MESSAGES."""
    at = gap.offset
    while at < gap.stop:
        header = header_at(data, at, salt)
        if header is None or header.kind is not RecordKind.MESSAGES:
            return False
        at = header.stop
    return at == gap.stop


def _summarized(found: RecoveredJournal, segment: JournalSegment, data: Mapped, *, newest: bool, blocks: bool) -> bool:
    """Enter a segment from its summary; return False and do nothing if there is none that matches the segment."""
    path = summary_path(segment.path)
    summary = None
    with suppress(OSError):  # A disk that cannot read the summary may still read the segment.
        summary = decoded(machine.files.read_bytes(path), segment.number, segment.salt, len(data))
    if summary is None:
        with suppress(OSError):
            machine.files.remove(path)
        return False
    segment.end = len(data)
    # The order of messages and erasures in the segment does not matter: an erasure names the place it looks back from.
    found.index.extend(segment, summary)
    bad = [] if not blocks or intact(data, segment.salt, summary.offsets()) else _bad(segment, summary, data)
    # Checkpoints and erasures decide what is live, so they are always verified, even if blocks are not.
    others = _enter_others(found, segment, summary, data)
    found.bad += bad
    if others:
        found.gapped.append(segment)
        found.reports.append(_bad_records(segment, others, "without messages"))
    if newest or others:
        # It gets further records, or is summarized without the gaps.
        segment.summary = summary
    return True


def _bad(segment: JournalSegment, summary: SegmentSummary, data: Mapped) -> list[tuple[int, RecordPlace]]:
    """Return stream and place of each MESSAGES record that fails its checksum."""
    return [
        (runs.stream, RecordPlace(segment, offset, size, first, tag, count))
        for runs in summary.runs.values()
        for offset, size, first, tag, count in runs.records()
        if (entry := entry_at(data, offset, segment.salt)) is None or entry.stop - offset != size
    ]


def _enter_others(found: RecoveredJournal, segment: JournalSegment, summary: SegmentSummary, data: Mapped) -> int:
    """Apply the records that are no MESSAGES; return how many are bad, and drop those from the summary."""
    entries = [entry_at(data, offset, segment.salt) for offset in summary.others]
    good = [entry for entry in entries if entry is not None]
    bad = len(entries) - len(good)
    for entry in entries:
        if entry is None:
            found.damaged = found.damaged_here = True
        else:
            _apply(found, segment, entry, data)
    if bad:
        summary.others = array("Q", (entry.offset for entry in good))
    return bad


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
        found.damaged = found.unnamed = True
        machine.files.rename(path, f"{path}{suffix}")
        found.reports.append(f"{path} {what} and was renamed to {path.name}{suffix}; check the disk")
    else:
        machine.files.remove(path)
        found.reports.append(f"{path} was never completed and was removed; nothing in it was reported stable")


def _report_torn(found: RecoveredJournal, path: Path, gap: SegmentGap) -> None:
    found.reports.append(
        f"{path} ended in {gap.stop - gap.offset} bytes of an unfinished write at {gap.offset}, which were cut; "
        "unless others shortened the file, nothing in them was reported stable"
    )


def _report_gap(found: RecoveredJournal, segment: JournalSegment, gap: SegmentGap, data: Mapped) -> None:
    found.unnamed = True
    if not _only_messages(data, gap, segment.salt):
        found.damaged = found.damaged_here = True
    path = segment.path
    copy = Path(f"{path}{DAMAGED_SUFFIX}")
    if not machine.files.exists(copy):
        machine.files.copy(path, copy)
    found.reports.append(
        f"{path} is damaged from {gap.offset} to {gap.stop} ({gap.stop - gap.offset} bytes) and those records are "
        f"lost; check the disk, a copy is in {copy.name}"
    )


def _apply(found: RecoveredJournal, segment: JournalSegment, entry: Entry, data: Mapped) -> None:
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
            # A checkpoint holds the whole state, and the erasures that still matter precede it in its segment. So
            # damage in earlier segments costs neither any more.
            found.damaged = found.damaged_here
        case RecordKind.ERASE:
            stream, start, stop, number, offset = ERASE_BODY.unpack_from(data, entry.body.start)
            segment.streams.add(stream)
            found.index.erase(Erase(stream, start, stop, (number, offset)))
        case _:
            assert_never(entry.kind)
