"""Files of a journal."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from stablecast.runtime import machine
from stablecast.store.journal import JournalError
from stablecast.store.journal.lock import DirectoryLock
from stablecast.store.journal.record_format import MESSAGES_HEAD, RecordKind, file_salt, seal
from stablecast.store.journal.segments import (
    JournalSegment,
    RecordPlace,
    SegmentReader,
    list_segments,
    open_for_writing,
    segment_path,
)
from stablecast.text.scarcity import is_scarce
from tests.adapters.store.journal.support import open_in
from tests.support.machine import replace


def segment(directory: Path, number: int) -> JournalSegment:
    return JournalSegment(number, 5, segment_path(directory, number))


def written(directory: Path, number: int, block: bytes) -> RecordPlace:
    place = segment(directory, number)
    parts = (MESSAGES_HEAD.pack(1, 2, 3, 4, 5), block)
    data = seal(RecordKind.MESSAGES, 1, 0, parts, place.salt) + b"".join(parts)
    place.path.write_bytes(b"abc" + data)
    return RecordPlace(place, 3, len(data), 2, 4, 3)


def test_listing_sorts_and_ignores_strangers(tmp_path: Path) -> None:
    for name in ("00000010.seg", "00000002.seg", "00000012.seg.damaged", "lock", "1.seg", "00000099.seg.bak"):
        (tmp_path / name).touch()
    found, highest = list_segments(tmp_path)
    assert list(found) == [2, 10]
    assert highest == 12


def test_new_segment_is_durable_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(DirectoryLock, "sync_names", lambda _: steps.append("directory"))
    lock = DirectoryLock(tmp_path)
    place = segment(tmp_path, 1)
    os.close(open_for_writing(place, lambda _: steps.append("file"), lock))
    assert steps == ["file", "directory"]
    assert file_salt(place.path.read_bytes(), 1) == 5
    os.close(open_for_writing(place, lambda _: steps.append("again"), lock))
    assert steps == ["file", "directory"]


def test_directory_is_synced_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()))
    before = len(list(Path("/proc/self/fd").iterdir()))
    machine.files.sync_directory(tmp_path)
    assert synced == [tmp_path]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_failed_creation_closes_the_file(tmp_path: Path) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    place, lock = segment(tmp_path, 1), DirectoryLock(tmp_path)
    with pytest.raises(OSError, match="Input/output"):
        open_for_writing(place, broken, lock)
    assert not place.on_disk
    lock.release()
    assert open_in(tmp_path) == []


def test_open_files_are_bounded(tmp_path: Path) -> None:
    reader = SegmentReader(2)
    records = [written(tmp_path, number, bytes([number]) * number) for number in range(5)]
    for _ in range(2):
        for number, record in enumerate(records):
            assert reader.block(record) == bytes([number]) * number
            assert len(reader._open) <= 2
    reader.close(records[4].segment)
    reader.close(records[0].segment)  # it is not open any more
    assert list(reader._open) == [3]
    reader.close_all()
    assert not reader._open


@pytest.mark.parametrize("size", [3, 20, 66])
def test_damage_since_the_open(tmp_path: Path, size: int) -> None:
    record = written(tmp_path, 1, b"hello")
    os.truncate(record.segment.path, size)
    reader = SegmentReader()
    with pytest.raises(JournalError, match=r"record at 3 of .*00000001.seg fails its checksum"):
        reader.block(record)
    reader.close_all()


def test_a_file_is_read_with_the_descriptor_of_another_where_none_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any, the disk is not called bad."""
    reader = SegmentReader()
    records = [written(tmp_path, number, b"hello") for number in range(2)]
    reader.block(records[0])
    real = machine.files.open

    def scarce(*asked: Any) -> int:
        if reader._open or reader._most == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(*asked)

    replace(monkeypatch, "files", open=scarce)
    assert reader.block(records[1]) == b"hello"
    reader.close_all()
    reader._most = 1
    with pytest.raises(JournalError, match="the disk is not the cause: raise the limits") as raised:
        reader.block(records[0])
    assert is_scarce(raised.value.__cause__)


def test_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot read .*00000001.seg"):
        SegmentReader().block(RecordPlace(segment(tmp_path, 1), 0, 9, 2, 4, 3))
