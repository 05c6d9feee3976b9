"""Summaries of ended segments: what an open makes of them is what it makes of the segments."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from stablecast.store.journal import Disk, Journal
from stablecast.store.journal.record_format import RecordKind
from stablecast.store.journal.segments import JournalRecord
from stablecast.store.journal.summary import SegmentSummary, decoded
from stablecast.store.journal.writer import JournalWriter
from tests.adapters.store.journal.support import Owner, done_by_fetcher, numbers, read, segments, start
from tests.support.machine import replace
from tests.support.processes import HANG_S

UNVERIFIED = Disk(verify=False)
HEADER_BYTES = 40


def example() -> SegmentSummary:
    summary = SegmentSummary()
    for offset in (24, 90):
        summary.note(offset)
    summary.add(7, -5, 3, 99, 130, 60)
    summary.add(8, 0, 1, 1 << 63, 190, 50)
    summary.add(7, -2, 1, 99, 240, 50)
    return summary


def test_a_summary_survives_encoding() -> None:
    found = decoded(example().encoded(3, 5, 1000), 3, 5, 1000)
    assert found is not None
    assert list(found.others) == [24, 90]
    told = {key: list(runs.records()) for key, runs in found.runs.items()}
    assert told == {(7, 99): [(130, 60, -5, 99, 3), (240, 50, -2, 99, 1)], (8, 1 << 63): [(190, 50, 0, 1 << 63, 1)]}


def test_any_flipped_bit_and_any_missing_byte_is_noticed() -> None:
    data = example().encoded(3, 5, 1000)
    for at in range(len(data)):
        assert decoded(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :], 3, 5, 1000) is None
        assert decoded(data[:at], 3, 5, 1000) is None


@pytest.mark.parametrize(("number", "salt", "end"), [(4, 5, 1000), (3, 6, 1000), (3, 5, 1001)])
def test_a_summary_of_another_segment_is_none(number: int, salt: int, end: int) -> None:
    assert decoded(example().encoded(3, 5, 1000), number, salt, end) is None


async def written(directory: Path, in_the_way: str | None = None) -> None:
    """Segments with two streams, two lives of one of them, a late run, states and erasures."""
    owner = start(directory, segment_bytes=500, states=lambda: [b'{"kept":1}'])
    if in_the_way is not None:
        (directory / in_the_way).mkdir()
    ticket = 0
    for number in range(0, 40, 2):
        for first in (number + 2, number):
            ticket += 1
            owner.journal.append_messages(1, first, 2, 5 if number < 20 else 6, b"%02d" % first, ticket)
        owner.journal.append_messages(2, number, 2, 9, b"x" * 30, ticket)
    owner.journal.append_state(b'{"last":2}', ticket)
    owner.journal.trim(1, 3, ticket)
    owner.journal.cut(2, 31, ticket)
    for number in range(3):
        owner.journal.append_messages(1, 50 + number, 1, 6, b"y" * 400, ticket)
    await owner.journal.close()


def summaries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.sum"))


def ended(directory: Path) -> list[str]:
    """All segments, for a journal that is closed ends its newest one cleanly."""
    return [path.stem for path in segments(directory)]


def shown(directory: Path, disk: Disk) -> tuple[Any, ...]:
    journal = Journal.open(directory, disk)
    blocks = {(stream, n): read(journal, stream, n) for stream in (1, 2) for n in numbers(journal, stream)}
    found = (blocks, journal.trail(1), journal.trail(2), journal.recovered_states, journal.reports, journal.whole)
    journal.abort()
    return found


async def test_an_open_from_summaries_finds_what_a_scan_finds(tmp_path: Path) -> None:
    await written(tmp_path)
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)
    assert len(ended(tmp_path)) > 2
    by_summaries = shown(tmp_path, UNVERIFIED), shown(tmp_path, Disk())
    for path in summaries(tmp_path):
        path.unlink()
    assert by_summaries == (shown(tmp_path, Disk()),) * 2


async def test_a_summary_waits_until_its_records_are_synced(tmp_path: Path) -> None:
    """Else a power cut leaves the summary without the records, and the torn end looks like damage."""
    disk = threading.Event()

    def sync(descriptor: int) -> None:
        disk.wait()
        os.fdatasync(descriptor)

    owner = start(tmp_path, segment_bytes=500, sync=sync)
    for number in range(10):
        owner.journal.append_messages(1, number, 1, 5, b"x" * 200, number + 1)
    assert len(owner.journal._segments) > 2
    await done_by_fetcher(owner)
    assert summaries(tmp_path) == []
    disk.set()
    await owner.journal.close()
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)


async def test_the_sync_of_other_records_is_not_enough_for_a_summary(tmp_path: Path) -> None:
    """The segment ended while the batch before its last records was on its way to the disk."""
    passes, entered = threading.Semaphore(0), threading.Event()

    def sync(descriptor: int) -> None:
        entered.set()
        passes.acquire()
        os.fdatasync(descriptor)

    owner = start(tmp_path, segment_bytes=500, sync=sync)
    owner.journal.append_messages(1, 0, 1, 5, b"x" * 200, 1)
    await asyncio.to_thread(entered.wait, HANG_S)
    for number in range(1, 10):
        owner.journal.append_messages(1, number, 1, 5, b"x" * 200, number + 1)
    passes.release(2)  # The new file, and the first record.
    await owner.until(1)
    await done_by_fetcher(owner)
    assert summaries(tmp_path) == []
    passes.release(1_000)
    await owner.journal.close()
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)


@pytest.mark.rows("P-830")
@pytest.mark.parametrize("at", [30, 60, -1, -200])
async def test_an_open_that_verifies_finds_every_damage_that_a_scan_finds(tmp_path: Path, at: int) -> None:
    """T12: a summary tells where to look, never that all is well. It also names the numbers that are lost."""
    await written(tmp_path)
    damaged = segments(tmp_path)[1]
    data = bytearray(damaged.read_bytes())
    data[at] ^= 1
    damaged.write_bytes(data)
    blocks, *rest, reports, whole = shown(tmp_path, Disk())
    lost = lost_numbers(tmp_path)
    for path in summaries(tmp_path):
        path.unlink()
    by_scan, *others, (gap,), still_whole = shown(tmp_path, Disk())
    # An older record of a number whose newer one is bad must not stand in for it.
    assert blocks == {key: block for key, block in by_scan.items() if key not in lost}
    assert (rest, whole) == (others, still_whole)
    assert all(text.startswith(f"{damaged} is damaged") for text in (*reports, gap))
    assert (reports == []) is (at == -200)  # Later records hold all numbers of this one.


async def test_a_gap_is_told_of_until_a_newer_checkpoint_is_on_the_disk(tmp_path: Path) -> None:
    """Then its segment gets a summary, which leaves the gap out."""
    await written(tmp_path)
    damaged = segments(tmp_path)[1]
    data = bytearray(damaged.read_bytes())
    data[30] ^= 1
    damaged.write_bytes(data)
    (tmp_path / f"{damaged.stem}.sum").unlink()
    told = []
    for number in (60, 61):
        owner = start(tmp_path, states=lambda: [b'{"kept":1}'])
        told.append(len(owner.journal.reports))
        owner.journal.append_messages(1, number, 1, 6, b"z", 1)
        await owner.journal.close()
    assert told == [1, 0]
    assert damaged.stem in [path.stem for path in summaries(tmp_path)]


def lost_numbers(directory: Path) -> set[tuple[int, int]]:
    journal = Journal.open(directory, Disk())
    journal.abort()
    return {(stream, first + at) for stream, first, count, _ in journal.lost for at in range(count)}


@pytest.mark.parametrize("verify", [True, False])
async def test_every_record_of_a_closed_journal_that_is_damaged_is_named(tmp_path: Path, verify: bool) -> None:
    """Exactly its live numbers are lost. Any byte of it may be wrong, and it may lie in the newest segment."""
    await written(tmp_path)
    whole = shown(tmp_path, Disk(verify=verify))
    journal = Journal.open(tmp_path, Disk(verify=verify))
    places = {
        (place.segment.path, place.offset, place.size)
        for stream in (1, 2)
        for _, _, place in journal._index.pieces(stream)
    }
    shows = {
        place: {
            (stream, number)
            for stream in (1, 2)
            for start, stop, record in journal._index.pieces(stream)
            for number in range(start, stop)
            if (record.segment.path, record.offset, record.size) == place
        }
        for place in places
    }
    journal.abort()
    newest = segments(tmp_path)[-1]
    for path, offset, size in sorted(places):
        for at in (0, 5, 30, 33, 50, size - 1):
            data = path.read_bytes()
            path.write_bytes(data[: offset + at] + bytes([data[offset + at] ^ 4]) + data[offset + at + 1 :])
            if verify or path == newest:
                blocks, *rest, reports, kept = shown(tmp_path, Disk(verify=verify))
                lost = shows[path, offset, size]
                assert lost_numbers(tmp_path) == lost
                assert blocks == {key: block for key, block in whole[0].items() if key not in lost}
                assert (rest, len(reports), kept) == ([*whole[1:-2]], 1, True)
            path.write_bytes(data)
    assert shown(tmp_path, Disk(verify=verify)) == whole


async def test_a_missing_or_bad_summary_is_written_anew(tmp_path: Path) -> None:
    """By a scan, which the open then has to do."""
    await written(tmp_path)
    expected = shown(tmp_path, Disk())
    first, second, *_ = summaries(tmp_path)
    kept = first.read_bytes(), second.read_bytes()
    first.unlink()
    second.write_bytes(kept[1][:-1])
    assert shown(tmp_path, UNVERIFIED) == expected
    assert (first.read_bytes(), second.read_bytes()) == kept


async def test_records_that_are_no_messages_are_always_verified(tmp_path: Path) -> None:
    """A whole newer checkpoint stands for them; in the newest segment nothing does."""
    await written(tmp_path)
    for path in (segments(tmp_path)[0], segments(tmp_path)[-1]):
        kept = path.read_bytes()
        data = bytearray(kept)
        data[60] ^= 1
        path.write_bytes(data)
        journal = Journal.open(tmp_path, UNVERIFIED)
        journal.abort()
        (report,) = journal.reports
        assert report.startswith(f"{path} is damaged: 1 record without messages fails its checksum")
        assert journal.whole is (path == segments(tmp_path)[0])
        path.write_bytes(kept)


async def test_no_summary_hides_damage_before_a_newer_checkpoint_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash in between would else leave a journal that looks whole and lacks states. An erasure is synced before."""
    await written(tmp_path)
    damaged = segments(tmp_path)[-1]
    data = bytearray(damaged.read_bytes())
    data[24 + 34] ^= 1
    damaged.write_bytes(data)
    summary = damaged.with_suffix(".sum")
    before = summary.read_bytes()
    erased, reached, passes = threading.Event(), threading.Event(), threading.Event()
    put = JournalWriter.put

    def put_and_wait(writer: JournalWriter, record: JournalRecord) -> None:
        put(writer, record)
        if record.kind is RecordKind.ERASE:
            assert erased.wait(HANG_S)

    def step(name: str) -> None:
        if name == "synced":
            erased.set()
        elif name == "checkpoint":
            reached.set()
            assert passes.wait(HANG_S)

    monkeypatch.setattr(JournalWriter, "put", put_and_wait)
    owner = Owner(Journal.open(tmp_path, Disk(step=step, short_ns=-1)), lambda: [b'{"kept":2}'])
    assert not owner.journal.whole
    owner.journal.append_state(b'{"n":1}', 1)
    await asyncio.to_thread(reached.wait, HANG_S)
    await done_by_fetcher(owner)
    assert summary.read_bytes() == before
    passes.set()
    await owner.until(1)
    await done_by_fetcher(owner)
    assert summary.read_bytes() != before
    await owner.journal.close()


async def test_a_summary_goes_with_its_segment(tmp_path: Path) -> None:
    await written(tmp_path)
    (tmp_path / "00000099.sum").write_bytes(b"left over")
    segments(tmp_path)[0].unlink()
    journal = Journal.open(tmp_path, UNVERIFIED)
    journal.abort()
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)


async def test_a_summary_in_whose_place_the_disk_does_nothing_is_done_without(tmp_path: Path) -> None:
    """It can be neither written, read nor removed: what was stored is there, and who reads goes on."""
    await written(tmp_path, in_the_way="00000002.sum")
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)  # those behind it, too
    found = shown(tmp_path, UNVERIFIED)
    (tmp_path / "00000002.sum").rmdir()
    for path in summaries(tmp_path):
        path.unlink()
    assert found == shown(tmp_path, Disk())


async def test_half_a_summary_on_a_full_disk_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        replace(patched, "files", write_bytes=full_disk)
        await written(tmp_path)
        assert summaries(tmp_path) == []
    shown(tmp_path, UNVERIFIED)
    assert [path.stem for path in summaries(tmp_path)] == ended(tmp_path)[:-1]  # The newest one goes on.
