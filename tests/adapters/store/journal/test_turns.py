"""The loop's thread flushes few bytes where flushes are short; else the writer's thread does."""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stablecast.store.journal.disk import SHORT_NS, Disk
from stablecast.store.journal.lock import DirectoryLock
from stablecast.store.journal.record_format import RECORD_HEADER_BYTES, Entry, RecordKind, scan
from stablecast.store.journal.segments import JournalRecord, JournalSegment
from stablecast.store.journal.writer import SMALL_BYTES, STEADY, JournalWriter
from tests.support.machine import replace
from tests.support.processes import HANG_S

LOOP, THREAD = "loop", "thread"


class Turns:
    """A writer on a loop whose turns end when the test says so, and a disk whose flushes take as long as it says."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.took_ns = SHORT_NS
        self.fails = False
        self.gate = threading.Event()
        self.gate.set()
        self.flushed: list[str] = []
        self.segment = JournalSegment(1, 5, directory / "00000001.seg")
        self._now = 0
        self._due: list[Callable[[], None]] = []
        self._told: queue.Queue[tuple[Callable[..., None], tuple[object, ...]]] = queue.Queue()
        self.reports: list[int] = []
        self.errors: list[Exception] = []
        self.ended = False
        replace(monkeypatch, "clock", monotonic_ns=lambda: self._now)
        self.writer = JournalWriter(
            Disk(sync=self._sync),
            lambda *told: self._told.put((told[0], told[1:])),
            self.reports.append,
            self.errors.append,
            self._stopped,
            DirectoryLock(directory),
        )
        self.writer.start(self._due.append)

    def put(self, *sizes: int, segment: JournalSegment | None = None) -> None:
        """Records with bodies of these sizes."""
        segment = segment or self.segment
        for size in sizes:
            record = JournalRecord(
                segment, segment.end, RECORD_HEADER_BYTES + size, RecordKind.STATE, 1, (bytes(size),)
            )
            segment.end += record.size
            self.writer.put(record)

    def end_turn(self) -> None:
        due, self._due[:] = self._due[:], []
        for callback in due:
            callback()

    def hear(self) -> None:
        """One thing that the thread tells."""
        callback, arguments = self._told.get()
        callback(*arguments)

    def flush(self) -> str:
        """Put one record, see it synced, and say by whom."""
        before = len(self.reports)
        self.put(1)
        self.end_turn()
        if len(self.reports) == before:
            self.hear()
        assert self.reports[before:] == [1]
        return self.flushed[-1]

    def warm(self) -> None:
        """As many short flushes as it takes."""
        while self.flush() != LOOP:
            pass

    def finish(self) -> list[int]:
        """Ends, and returns the sizes of the records on the disk."""
        self.writer.close()
        while not self.ended:
            self.hear()
        data = self.segment.path.read_bytes()
        found = [item for item in scan(data, self.segment.salt, newest=True) if isinstance(item, Entry)]
        return [len(data[item.body]) for item in found]

    def _stopped(self) -> None:
        self.ended = True

    def _sync(self, fd: int) -> None:
        self.flushed.append(LOOP if threading.current_thread() is threading.main_thread() else THREAD)
        if self.flushed[-1] == THREAD:
            self.gate.wait(HANG_S)
        if self.fails:
            raise OSError(5, "Input/output error")
        os.fdatasync(fd)
        self._now += self.took_ns


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Turns]:
    made = Turns(tmp_path, monkeypatch)
    yield made
    made.writer.abort()


def test_after_short_flushes_the_loop_does_them(turns: Turns) -> None:
    assert [turns.flush() for _ in range(STEADY + 3)] == [THREAD] * STEADY + [LOOP] * 3
    assert turns.finish() == [1] * (STEADY + 3)


def test_the_loop_flushes_nothing_while_the_thread_has_older_records(turns: Turns) -> None:
    turns.warm()
    count, records = len(turns.flushed), sum(turns.reports)
    turns.gate.clear()
    turns.put(SMALL_BYTES + 1)
    turns.put(1)
    turns.end_turn()
    turns.gate.set()
    while sum(turns.reports) < records + 2:
        turns.hear()
    assert set(turns.flushed[count:]) == {THREAD}


def test_after_a_long_flush_the_thread_does_them_until_they_are_short_again(turns: Turns) -> None:
    turns.warm()
    turns.took_ns = SHORT_NS + 1
    assert [turns.flush() for _ in range(2 * STEADY)] == [LOOP] + [THREAD] * (2 * STEADY - 1)
    turns.took_ns = SHORT_NS
    assert [turns.flush() for _ in range(STEADY + 1)] == [THREAD] * STEADY + [LOOP]


def test_records_of_one_turn_share_its_flush(turns: Turns) -> None:
    turns.warm()
    before = len(turns.flushed)
    turns.put(1, 2, 3)
    assert len(turns.flushed) == before
    turns.end_turn()
    assert turns.flushed[before:] == [LOOP]
    assert turns.reports[-1] == 3
    assert turns.finish()[-3:] == [1, 2, 3]


def test_more_than_a_little_is_the_threads_at_once_and_what_follows_too(turns: Turns) -> None:
    turns.warm()
    turns.put(1, 2, SMALL_BYTES, 3)
    turns.end_turn()
    assert turns.finish()[-4:] == [1, 2, SMALL_BYTES, 3]
    assert turns.flushed[-1] == THREAD
    assert sum(turns.reports) == STEADY + 5


def test_a_new_segment_is_opened_by_the_thread(turns: Turns, tmp_path: Path) -> None:
    turns.warm()
    before = len(turns.flushed)
    new = JournalSegment(2, 5, tmp_path / "00000002.seg")
    turns.put(1)
    turns.put(2, segment=new)
    turns.end_turn()
    turns.finish()
    assert turns.flushed[before:].count(LOOP) == 0
    assert turns.reports[-1] == 2
    assert new.path.stat().st_size == new.end


def test_an_error_on_the_loop_ends_the_thread_as_its_own_does(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop has another turn before the thread wakes."""
    turns.warm()
    turns.fails = True
    ring, rung = turns.writer._ring, list[str]()
    monkeypatch.setattr(turns.writer, "_ring", lambda: rung.append("the thread has something to tell"))
    turns.put(1)
    turns.end_turn()
    assert len(rung) == 1
    turns.fails = False  # A flush that succeeds now would tell nothing of what the kernel dropped.
    flushed = len(turns.flushed)
    turns.put(2)
    turns.end_turn()
    ring()
    while not turns.ended:
        turns.hear()
    assert turns.flushed[-1] == LOOP
    assert [str(error) for error in turns.errors] == ["[Errno 5] Input/output error"]
    assert sum(turns.reports) == STEADY + 1
    assert len(turns.flushed) == flushed


def test_closing_in_the_middle_of_a_turn_syncs_what_it_had(turns: Turns) -> None:
    turns.warm()
    turns.put(7)
    assert turns.finish()[-1] == 7
    assert sum(turns.reports) == STEADY + 2
    turns.end_turn()
    assert turns.flushed[-1] == THREAD


def test_stopping_in_the_middle_of_a_turn_writes_nothing(turns: Turns) -> None:
    turns.warm()
    size = turns.segment.path.stat().st_size
    turns.put(7)
    turns.writer.abort()
    turns.end_turn()
    assert sum(turns.reports) == STEADY + 1
    assert turns.segment.path.stat().st_size == size
