"""The thread: what it writes in one go, and that a failure is the end."""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.store.journal.disk import Disk, Sync, Write
from stablecast.store.journal.lock import DirectoryLock
from stablecast.store.journal.record_format import (
    FILE_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Block,
    Entry,
    RecordKind,
    scan,
)
from stablecast.store.journal.segments import JournalRecord, JournalSegment
from stablecast.store.journal.writer import IOV_MAX, JournalWriter, _unwritten
from tests.adapters.store.journal.support import open_in
from tests.support.processes import HANG_S


def call(callback: Callable[..., None], *args: object) -> None:
    """A loop that does at once what it is told."""
    callback(*args)


class Bench:
    """A writer whose syncs can be held, and what it reported. Nothing is done by the loop's thread."""

    def __init__(self, directory: Path, write: Write = os.pwritev, sync: Sync = os.fdatasync) -> None:
        self.directory = directory
        self.reports: list[int] = []
        self.errors: list[Exception] = []
        self.syncs = self.writes = 0
        self.entered, self.go, self.ended = threading.Semaphore(0), threading.Semaphore(0), threading.Event()
        self._inner_write, self._inner_sync = write, sync
        disk = Disk(self._write, self._sync, short_ns=-1)
        self.lock = DirectoryLock(directory)
        self.writer = JournalWriter(disk, call, self.reports.append, self.errors.append, self.ended.set, self.lock)
        self.writer.start(call)

    def segment(self, number: int) -> JournalSegment:
        return JournalSegment(number, 5, self.directory / f"{number:08}.seg")

    def put(self, segment: JournalSegment, *bodies: bytes) -> None:
        for body in bodies:
            size = RECORD_HEADER_BYTES + len(body)
            self.writer.put(JournalRecord(segment, segment.end, size, RecordKind.STATE, 1, (body,)))
            segment.end += size

    def roll(self) -> tuple[JournalSegment, JournalSegment]:
        """The header of a segment is being synced, behind it wait {0} and {1}, and {2}, which is the next segment's."""
        old, new = self.segment(1), self.segment(2)
        self.put(old, b"{0}")
        self.entered.acquire()
        self.put(old, b"{1}")
        self.put(new, b"{2}")
        return old, new

    def finish(self) -> None:
        self.writer.close()
        assert self.ended.wait(HANG_S)

    def _write(self, fd: int, buffers: Sequence[Block], offset: int) -> int:
        self.writes += 1
        return self._inner_write(fd, buffers, offset)

    def _sync(self, fd: int) -> None:
        self.syncs += 1
        self.entered.release()
        self.go.acquire()
        self._inner_sync(fd)


def bodies(segment: JournalSegment) -> list[bytes]:
    data = segment.path.read_bytes()
    found = list(scan(data, segment.salt, newest=True))
    return [data[item.body] for item in found if isinstance(item, Entry)]


def open_gate(bench: Bench) -> None:
    bench.go.release(1000)


def abort(bench: Bench) -> None:
    """While syncs are held, which go on then."""
    stopper = threading.Thread(target=bench.writer.abort)
    bench.writer._aborted = True  # what abort() does first; the thread only waits
    stopper.start()
    open_gate(bench)
    stopper.join()
    assert bench.ended.is_set()


def test_records_that_arrive_during_a_sync_share_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    segment = bench.segment(1)
    bench.put(segment, b"{0}")
    bench.entered.acquire()  # the header of the file
    many = [b"{%d}" % number for number in range(1, 100)]
    bench.go.release()
    bench.entered.acquire()  # the first record
    bench.put(segment, *many)
    open_gate(bench)
    bench.finish()
    assert bench.reports == [1, 99]
    assert (bench.writes, bench.syncs) == (2, 3)
    assert bodies(segment) == [b"{0}", *many]


def test_a_segment_is_opened_while_the_one_before_it_is_flushed_and_gets_nothing_before_that_is_done(
    tmp_path: Path,
) -> None:
    flushes: list[Path] = []
    opened, flushed = threading.Event(), threading.Event()

    def sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        flushes.append(path)
        if path == old.path and flushes.count(path) == 3:  # its header, {0}, and this is {1}
            assert flushed.wait(HANG_S)
        os.fdatasync(fd)
        if path == new.path:
            opened.set()

    bench = Bench(tmp_path, sync=sync)
    old, new = bench.roll()
    open_gate(bench)
    assert opened.wait(HANG_S)
    assert new.path.stat().st_size == FILE_HEADER_BYTES
    assert bench.reports == [1]
    flushed.set()
    bench.finish()
    assert bench.reports == [1, 2]
    assert bodies(old) == [b"{0}", b"{1}"]
    assert bodies(new) == [b"{2}"]


def test_a_writer_that_is_ended_closes_what_it_had_begun_to_open(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    _, new = bench.roll()
    bench.go.release(2)
    for _ in range(3):
        bench.entered.acquire()  # {0}, {1} and the header of the new one
    abort(bench)
    bench.lock.release()
    assert open_in(tmp_path) == []
    assert bodies(new) == []


def test_what_is_put_while_the_writer_begins_its_turn_is_written_before_it_ends(tmp_path: Path) -> None:
    """The thread has counted its batch when the last record comes, and with it the end."""
    bench, late = Bench(tmp_path), list[bytes]()
    segment = bench.segment(1)

    class Queue(deque[JournalRecord]):
        def __len__(self) -> int:
            count = super().__len__()
            if not late:
                late.append(b"{1}")
                bench.put(segment, *late)
                bench.writer.close()
            return count

    bench.writer._queue = Queue()
    open_gate(bench)
    bench.put(segment, b"{0}")
    assert bench.ended.wait(HANG_S)
    assert bodies(segment) == [b"{0}", b"{1}"]
    assert (sum(bench.reports), bench.errors) == (2, [])


def test_the_thread_that_is_woken_for_the_end_knows_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for another call, and closing would never end."""
    bench, known = Bench(tmp_path), list[bool]()
    ring = bench.writer._ring

    def ringing() -> None:
        known.append(bench.writer._closing)
        ring()

    monkeypatch.setattr(bench.writer, "_ring", ringing)
    bench.writer.close()
    assert known == [True]
    assert bench.ended.wait(HANG_S)


def test_a_full_segment_is_closed(tmp_path: Path) -> None:
    """A store would run out of descriptors."""
    bench = Bench(tmp_path)
    bench.roll()
    open_gate(bench)
    bench.finish()
    bench.lock.release()
    assert open_in(tmp_path) == []


def test_more_buffers_than_one_call_takes(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    segment = bench.segment(1)
    bench.put(segment, b"{}")
    bench.entered.acquire()
    bench.put(segment, *[b"{}"] * IOV_MAX)
    open_gate(bench)
    bench.finish()
    assert bench.reports == [1, IOV_MAX]
    assert bench.writes == 3
    assert bodies(segment) == [b"{}"] * (IOV_MAX + 1)


def test_short_writes_are_continued(tmp_path: Path) -> None:
    def short(fd: int, buffers: Sequence[Block], offset: int) -> int:
        return os.pwrite(fd, b"".join(buffers)[:7], offset)

    bench = Bench(tmp_path, write=short)
    open_gate(bench)
    segment = bench.segment(1)
    bench.put(segment, b"{1}", b"{22222222222222}", b"{}")
    bench.finish()
    assert bodies(segment) == [b"{1}", b"{22222222222222}", b"{}"]
    assert segment.path.stat().st_size == segment.end


def test_the_thread_sleeps_while_it_has_no_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes a turn for each ring of the bell. Without the bell it would take a whole processor."""
    turns: list[None] = []
    turn = JournalWriter._turn

    def counted(writer: JournalWriter) -> bool:
        turns.append(None)
        return turn(writer)

    monkeypatch.setattr(JournalWriter, "_turn", counted)
    bench = Bench(tmp_path)
    open_gate(bench)
    segment = bench.segment(1)
    for _ in range(3):
        bench.put(segment, b"{}")
        bench.entered.acquire()
    bench.finish()
    assert len(turns) <= 5  # three rings, that of the end, and the turn that waits for it


def test_write_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, write=lambda *_: 0)
    open_gate(bench)
    bench.put(bench.segment(1), b"{}")
    assert bench.ended.wait(HANG_S)
    assert [str(error) for error in bench.errors] == ["[Errno 5] nothing was written"]
    assert bench.reports == []


def test_after_a_failed_sync_nothing_is_tried(tmp_path: Path) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    bench = Bench(tmp_path, sync=broken)
    open_gate(bench)
    segment = bench.segment(1)
    bench.put(segment, b"{}")
    assert bench.ended.wait(HANG_S)
    bench.put(segment, b"{}")
    bench.finish()
    assert bench.syncs == len(bench.errors) == 1
    assert bench.reports == []


def test_abort_ends_after_the_call_under_way(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    old, new = bench.roll()
    abort(bench)
    assert bench.reports == []
    assert bench.syncs == 1
    assert old.path.stat().st_size == FILE_HEADER_BYTES
    assert not new.path.exists()


@given(st.lists(st.binary(max_size=6), max_size=6), st.data())
def test_behind_is_the_rest(buffers: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(buffers)
    written = data.draw(st.integers(0, len(whole)))
    assert b"".join(_unwritten(list(buffers), written)) == whole[written:]
