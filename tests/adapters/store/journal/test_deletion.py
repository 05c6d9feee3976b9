"""Segments: when a new one begins, and when an old one may go."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from stablecast.store.journal import Journal, JournalError
from stablecast.store.journal.fetcher import Fetcher
from stablecast.store.journal.segments import JournalSegment
from tests.adapters.store.journal.support import numbers, open_in, segments, start
from tests.support.machine import replace
from tests.support.processes import HANG_S


async def test_rolling_deletes_dead_segments_and_keeps_states(tmp_path: Path) -> None:
    owner = start(tmp_path, segment_bytes=300, states=lambda: [b'{"whole":1}'])
    for number in range(50):
        owner.journal.append_messages(1, number, 1, 1, b"%d" % number * 30, number + 1)
        owner.journal.trim(1, number - 1, number + 1)
        if number % 3 == 0:
            await owner.until(number + 1)
    await owner.journal.close()
    assert len(segments(tmp_path)) <= 3
    again = Journal.open(tmp_path)
    assert again.recovered_states == [b'{"whole":1}']
    assert numbers(again, 1) == {48: 1, 49: 1}
    again.abort()


async def test_a_slow_stream_pins_only_its_own_segment(tmp_path: Path) -> None:
    """Erasures survive the segment that held them for as long as what they killed is still on the disk."""
    owner = start(tmp_path, segment_bytes=400)
    owner.journal.append_messages(9, 0, 1, 1, b"slow", 1)
    owner.journal.append_messages(1, 0, 4, 1, b"doomed", 2)
    owner.journal.append_messages(2, 0, 4, 1, b"doomed", 3)
    owner.journal.forget(1, 4)
    owner.journal.cut(2, 1, 5)
    for number in range(40):
        owner.journal.append_messages(3, number, 1, 1, bytes(100), 6 + number)
        owner.journal.trim(3, number, 6 + number)
    await owner.journal.close()
    assert segments(tmp_path)[0].name == "00000001.seg"
    assert len(segments(tmp_path)) <= 4
    again = Journal.open(tmp_path)
    assert [again.extents(stream) for stream in (1, 2, 3, 9)] == [[], [(0, 1, 1)], [(39, 1, 1)], [(0, 1, 1)]]
    again.abort()


async def test_nothing_is_deleted_before_what_killed_it_is_synced(tmp_path: Path) -> None:
    passes = threading.Event()
    passes.set()

    def sync(fd: int) -> None:
        assert passes.wait(HANG_S)
        os.fdatasync(fd)

    owner = start(tmp_path, segment_bytes=100, sync=sync)
    owner.journal.append_messages(1, 0, 1, 1, bytes(100), 1)
    owner.journal.append_messages(2, 0, 1, 1, bytes(100), 2)
    await owner.until(2)
    passes.clear()
    owner.journal.append_messages(1, 0, 1, 2, bytes(10), 3)
    owner.journal.trim(2, 1, 3)
    held = [path.name for path in segments(tmp_path)]
    passes.set()
    await owner.journal.close()
    assert held[:2] == ["00000001.seg", "00000002.seg"]
    assert [path.name for path in segments(tmp_path)] == ["00000003.seg", "00000004.seg"]


async def test_a_segment_that_was_read_leaves_the_disk_when_it_is_deleted(tmp_path: Path) -> None:
    """A file that is still open keeps its room, though it has no name any more."""
    owner = start(tmp_path, segment_bytes=100)

    async def fetch(number: int) -> None:
        """The fetcher does its jobs in order, so the earlier ones are done."""
        found = owner.journal.find(1, number)
        assert found is not None
        fetched: asyncio.Future[list[bytes | JournalError]] = asyncio.get_running_loop().create_future()
        owner.journal.fetch([found.record], fetched.set_result)
        assert await fetched == [bytes(100)]

    for number in range(2):
        owner.journal.append_messages(1, number, 1, 1, bytes(100), number + 1)
    await owner.until(2)
    await fetch(0)
    owner.journal.trim(1, 1, 3)
    await owner.until(3)
    await fetch(1)
    assert segments(tmp_path)[0].name == "00000002.seg"
    assert not [name for name in open_in(tmp_path) if name.startswith("00000001")]
    await owner.journal.close()


class Removals:
    """The segments whose removal the journal asked for, at once; the disk is left alone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.numbers: list[int] = []
        patch.setattr(Fetcher, "remove", self)

    def __call__(self, segment: JournalSegment, failed: object) -> None:
        self.numbers.append(segment.number)


async def test_a_segment_stays_until_the_very_record_that_killed_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That record is the only one that is not synced: one too few would let the segment go."""
    passes = threading.Event()
    passes.set()

    def sync(fd: int) -> None:
        assert passes.wait(HANG_S)
        os.fdatasync(fd)

    owner = start(tmp_path, segment_bytes=300, sync=sync)
    removals = Removals(monkeypatch)
    owner.journal.append_messages(1, 0, 1, 1, bytes(300), 1)
    owner.journal.append_messages(2, 0, 1, 1, b"pin", 2)
    await owner.until(2)
    passes.clear()
    owner.journal.trim(1, 1, 3)
    assert [path.name for path in segments(tmp_path)] == ["00000001.seg", "00000002.seg"]
    assert removals.numbers == []
    passes.set()
    await owner.until(3)
    assert removals.numbers == [1]
    await owner.journal.close()


async def test_a_segment_stays_until_the_checkpoint_of_its_successor_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The segment has the newest checkpoint that is on the disk: without it the states would be lost."""
    owner = start(tmp_path, segment_bytes=1000)
    removals = Removals(monkeypatch)
    owner.journal.append_messages(1, 0, 1, 1, b"gone", 1)
    owner.journal.trim(1, 1, 2)
    await owner.until(2)
    assert removals.numbers == []
    owner.journal.append_messages(1, 1, 1, 1, bytes(2000), 3)
    assert removals.numbers == []
    await owner.until(3)
    assert removals.numbers == [1]
    await owner.journal.close()


async def test_an_old_incarnation_stays_hidden_when_the_one_that_hid_it_is_deleted(tmp_path: Path) -> None:
    """Segment 2 may go only after the trim that emptied it is synced, or segment 1 would show through."""
    owner = start(tmp_path, segment_bytes=300)
    owner.journal.append_messages(9, 0, 1, 1, b"pin", 1)
    owner.journal.append_messages(1, 0, 1, 1, bytes(100), 2)
    owner.journal.append_messages(1, 0, 1, 2, bytes(300), 3)
    owner.journal.append_messages(3, 0, 1, 1, bytes(300), 4)
    await owner.until(4)
    owner.journal.trim(1, 1, 5)
    owner.journal.abort()
    again = Journal.open(tmp_path)
    assert again.extents(1) in ([], [(0, 1, 2)])
    again.abort()


async def test_erasure_right_after_a_segment_was_lost(tmp_path: Path) -> None:
    """No segment is active then: the erasure must look back on all that is left."""
    owner = start(tmp_path)
    owner.journal.append_messages(1, 0, 9, 1, b"", 1)
    await owner.journal.close()
    (tmp_path / "00000002.seg").touch()
    owner = start(tmp_path)
    owner.journal.cut(1, 5, 1)
    assert owner.journal.extents(1) == [(0, 5, 1)]
    await owner.journal.close()
    again = Journal.open(tmp_path)
    assert again.extents(1) == [(0, 5, 1)]
    again.abort()


async def test_an_emptied_active_segment_can_fill_again(tmp_path: Path) -> None:
    owner = start(tmp_path, segment_bytes=300)
    owner.journal.append_messages(1, 0, 1, 1, b"gone", 1)
    owner.journal.trim(1, 1, 1)
    owner.journal.append_messages(1, 1, 1, 1, b"here", 2)
    for number in range(10):
        owner.journal.append_state(b'{"filler":"%s"}' % (b"x" * 100), 3 + number)
    await owner.journal.close()
    again = Journal.open(tmp_path)
    assert numbers(again, 1) == {1: 1}
    again.abort()


async def test_segments_without_messages_go_at_start(tmp_path: Path) -> None:
    owner = start(tmp_path, segment_bytes=100)
    for ticket in range(1, 5):
        owner.journal.append_state(b'{"filler":"%s"}' % (b"x" * 60), ticket)
    owner.journal.abort()
    left = len(segments(tmp_path))
    owner = start(tmp_path, segment_bytes=100)
    await owner.journal.close()
    assert len(segments(tmp_path)) == min(left, 1)


async def test_record_larger_than_a_segment(tmp_path: Path) -> None:
    owner = start(tmp_path, segment_bytes=100, states=lambda: [b'{"long":"%s"}' % (b"x" * 500)])
    for number in range(3):
        owner.journal.append_messages(1, number, 1, 1, bytes(1000), number + 1)
    await owner.journal.close()
    assert len(segments(tmp_path)) == 3
    again = Journal.open(tmp_path)
    assert numbers(again, 1) == {0: 1, 1: 1, 2: 1}
    again.abort()


async def test_segment_that_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    owner = start(tmp_path, segment_bytes=100)
    replace(monkeypatch, "files", remove=refuse)
    for number in range(3):
        owner.journal.append_messages(1, 0, 1, number, bytes(100), number + 1)
    await owner.until_failed()
    monkeypatch.undo()
    with pytest.raises(JournalError, match="Read-only"):
        await owner.journal.close()
    assert len(owner.failures) == 1
