"""What a directory of segments holds: the scan at open.

Every checksum is verified, unless blocks are left to be verified when they are read. Full segments are taken from their
summaries, which say where to look; one that is not what its summary says is scanned. A torn end is cut, damage copied
aside and reported, and nothing counts as recovered before it is synced: a process that was killed leaves records in the
page cache that no disk has seen.
"""

import os
import shutil
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.store.journal.disk import Disk, Sync
from stablecast.store.journal.index import Erase, Index
from stablecast.store.journal.record_format import (
    ERASE_BODY,
    FILE_HEADER_BYTES,
    FILE_MAGIC,
    Entry,
    Gap,
    Kind,
    entry_at,
    file_salt,
    file_version,
    intact,
    messages_head,
    scan,
    split_states,
)
from stablecast.store.journal.segments import (
    Place,
    Segment,
    holds_records,
    last_written,
    leave_summary,
    list_segments,
    sync_directory,
)
from stablecast.store.journal.summary import SUMMARY_SUFFIX, Summary, decoded, summary_path

DAMAGED_SUFFIX = ".damaged"
FOREIGN_SUFFIX = ".foreign"
"""Of files that have a segment's name and are none."""


@attrs.define
class Recovered:
    """The outcome of a scan. `root` is the newest segment with a checkpoint, 0 if there is none.

    `damaged`: states may be missing, for there is damage behind the newest checkpoint.
    """

    segments: dict[int, Segment] = attrs.field(factory=dict)
    index: Index = attrs.field(factory=Index)
    states: list[bytes] = attrs.field(factory=list)
    root: int = 0
    next_number: int = 1
    newest: Segment | None = None
    reports: list[str] = attrs.field(factory=list)
    damaged: bool = False


def recover(directory: Path, disk: Disk) -> Recovered:
    """Scans and repairs a directory whose lock is held.

    Raises:
        JournalError: If a newer release wrote it.
        OSError: If a file cannot be read, cut or synced.
    """
    found = Recovered()
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
        _make_durable(found.newest, disk.sync)
    disk.step("restart-cut")
    sync_directory(directory)
    return found


def _drop_orphans(directory: Path, wanted: set[Path]) -> None:
    """Removes the summaries of segments that are gone."""
    for path in directory.glob(f"*{SUMMARY_SUFFIX}"):
        if path not in wanted:
            path.unlink()


def _read_segment(found: Recovered, number: int, path: Path, *, newest: bool, blocks: bool) -> None:
    """Enters one segment into `found`."""
    with path.open("rb") as file:
        header = file.read(FILE_HEADER_BYTES)
        salt = file_salt(header, number)
        if salt is None:
            _set_aside(found, path, header, created=not newest or holds_records(path))
            return
        segment = Segment(number, salt, path, on_disk=True, version=file_version(header))
        found.segments[number] = segment
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            if newest or not _summarized(found, segment, data, blocks=blocks):
                _scan(found, segment, data, newest=newest, blocks=blocks)
    if newest:
        found.newest = segment


def _scan(found: Recovered, segment: Segment, data: mmap, *, newest: bool, blocks: bool) -> None:
    """Walks through a segment; of one that is full and whole a summary is left for the next open."""
    whole = True
    for item in scan(data, segment.salt, newest=newest, blocks=blocks):
        if isinstance(item, Entry):
            _apply(found, segment, item, data)
        elif not item.torn or data[item.offset : item.stop].strip(b"\0"):
            _report(found, segment.path, item)
            whole = False
        segment.end = item.offset if isinstance(item, Gap) and item.torn else item.stop
    if not newest:
        if whole and not summary_path(segment.path).exists():
            leave_summary(segment)
        segment.summary = Summary()


def _summarized(found: Recovered, segment: Segment, data: mmap, *, blocks: bool) -> bool:
    """Takes a segment from its summary, if there is a good one and all is as it says; returns whether that was so."""
    path = summary_path(segment.path)
    summary = None
    with suppress(OSError):  # a disk that does not give it back has the segment all the same
        summary = decoded(path.read_bytes(), segment.number, segment.salt, len(data))
    if summary is None:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return False
    if blocks and not intact(data, segment.salt, summary.offsets()):
        return False
    others = [entry_at(data, offset, segment.salt) for offset in summary.others]
    entries = [entry for entry in others if entry is not None]
    if len(entries) < len(others):
        return False
    segment.end = len(data)
    found.index.extend(segment, summary)
    for entry in entries:
        _apply(found, segment, entry, data)
    return True


def _remove_begun(found: Recovered, number: int, path: Path) -> None:
    """Removes a segment that was opened while the one before it was being flushed, and got nothing."""
    with path.open("rb") as file:
        complete = file_salt(file.read(FILE_HEADER_BYTES), number) is not None
    if complete:
        path.unlink()
    else:
        _remove_incomplete(found, path)


def _remove_incomplete(found: Recovered, path: Path) -> None:
    path.unlink()
    found.reports.append(f"{path} was never completed and was removed; nothing in it was reported stable")


def _set_aside(found: Recovered, path: Path, header: bytes, *, created: bool) -> None:
    """Takes a file without a good header out of the journal."""
    if created:
        foreign = not header.startswith(FILE_MAGIC)
        suffix, what = (FOREIGN_SUFFIX, "is no segment") if foreign else (DAMAGED_SUFFIX, "has a damaged header")
        found.damaged = True
        path.rename(f"{path}{suffix}")
        found.reports.append(f"{path} {what} and was renamed to {path.name}{suffix}; check the disk")
    else:
        _remove_incomplete(found, path)


def _report(found: Recovered, path: Path, gap: Gap) -> None:
    """Tells about a gap; of a damaged file a copy is kept."""
    length = gap.stop - gap.offset
    if gap.torn:
        found.reports.append(
            f"{path} ended in {length} bytes of an unfinished write at {gap.offset}, which were cut; "
            "unless others shortened the file, nothing in them was reported stable"
        )
        return
    found.damaged = True
    copy = Path(f"{path}{DAMAGED_SUFFIX}")
    if not copy.exists():
        shutil.copy2(path, copy)
    found.reports.append(
        f"{path} is damaged from {gap.offset} to {gap.stop} ({length} bytes) and those records are lost; "
        f"check the disk, a copy is in {copy.name}"
    )


def _apply(found: Recovered, segment: Segment, entry: Entry, data: mmap) -> None:
    """Applies one record."""
    if entry.kind is not Kind.MESSAGES:
        segment.summary.note(entry.offset)
    match entry.kind:
        case Kind.MESSAGES:
            stream, first, count, tag, *_ = messages_head(segment.version).unpack_from(data, entry.body.start)
            size = entry.stop - entry.offset
            segment.summary.add(stream, first, count, tag, entry.offset, size)
            found.index.add(stream, Place(segment, entry.offset, size, first, tag, count))
        case Kind.STATE:
            found.states.append(data[entry.body])
        case Kind.CHECKPOINT:
            found.states = split_states(data[entry.body])
            found.root = segment.number
            found.damaged = False
        case Kind.ERASE:
            stream, start, stop, number, offset = ERASE_BODY.unpack_from(data, entry.body.start)
            segment.streams.add(stream)
            found.index.erase(Erase(stream, start, stop, (number, offset)))
        case _:
            assert_never(entry.kind)


def _make_durable(segment: Segment, sync: Sync) -> None:
    """Cuts the newest segment behind its last good record and syncs it."""
    fd = os.open(segment.path, os.O_RDWR)
    try:
        os.ftruncate(fd, segment.end)
        sync(fd)
    finally:
        os.close(fd)
