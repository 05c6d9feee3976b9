"""The journal as its owner sees it."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.store.journal import Disk, Journal, JournalError, journal
from stablecast.store.journal.record_format import UNTIMED_HEAD, Block, RecordKind, file_header, seal
from stablecast.store.journal.segments import segment_path
from tests.adapters.store.journal.support import open_in, read, segments, start


class Gate:
    """A sync that waits until it is let go."""

    def __init__(self) -> None:
        self.passes = threading.Semaphore(0)
        self.calls = 0
        self.entered = threading.Event()

    def __call__(self, fd: int) -> None:
        self.calls += 1
        self.entered.set()
        self.passes.acquire()
        os.fdatasync(fd)

    def open(self) -> None:
        self.passes.release(1_000_000)


async def test_append_close_reopen(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_messages(1, 10, 3, 99, b"abc", 1)
    owner.journal.append_messages(2, -5, 1, 7, memoryview(b"xyz"), 2)
    owner.journal.append_messages(3, 0, 1, 7, b"", 3)
    owner.journal.append_state(b'{"a":1}', 4)
    await owner.journal.close()
    assert owner.last == 4
    again = Journal.open(tmp_path)
    assert again.recovered_states == [b'{"a":1}']
    found = [read(again, stream, number) for stream, number in ((1, 10), (2, -5), (3, 0))]
    assert found == [(10, 3, 99, b"abc"), (-5, 1, 7, b"xyz"), (0, 1, 7, b"")]
    assert again.reports == []
    again.abort()


async def test_times_are_those_of_the_append_and_now_for_what_is_not_synced(tmp_path: Path) -> None:
    syncing = threading.Event()
    syncing.set()

    def sync(fd: int) -> None:
        syncing.wait()
        os.fdatasync(fd)

    owner, began = start(tmp_path, sync=sync), time.time_ns()
    owner.journal.append_messages(1, 0, 2, 7, b"ab", 1)
    await owner.until(1)
    syncing.clear()
    ended = time.time_ns()
    owner.journal.append_messages(1, 2, 3, 7, b"cde", 2)
    search = owner.journal.times(1)
    found, reach = await search.times(0, 9, 5)
    since, none = await search.first_since(0, 5, ended), await owner.journal.times(9).times(0, 9, 5)
    syncing.set()
    ((zero, came), (two, waiting)) = found
    assert (zero, two, reach, since, none) == (0, 2, 9, 2, ([], 9))
    assert began <= came <= ended <= waiting <= time.time_ns()
    await owner.journal.close()
    assert await search.ends(0, 5) == (None, None)


@pytest.mark.parametrize("abort", [False, True])
async def test_a_journal_that_ended_looks_at_no_files(tmp_path: Path, abort: bool) -> None:
    owner = start(tmp_path)
    look = owner.journal._look_timer
    assert look is not None
    assert not look.cancelled()
    if abort:
        owner.journal.abort()
    else:
        await owner.journal.close()
    assert look.cancelled()


async def test_pending_data_can_be_read(tmp_path: Path) -> None:
    gate = Gate()
    owner = start(tmp_path, sync=gate)
    owner.journal.append_messages(1, 10, 3, 99, memoryview(b"abc"), 1)
    pending = read(owner.journal, 1, 11)
    assert owner.last == 0
    gate.open()
    await owner.until(1)
    assert pending == read(owner.journal, 1, 12) == (10, 3, 99, b"abc")
    assert read(owner.journal, 1, 13) is None
    assert read(owner.journal, 2, 11) is None
    await owner.journal.close()


async def test_newest_wins_and_read_stays_within_what_is_live(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_messages(1, 0, 10, 1, b"old", 1)
    owner.journal.append_messages(1, 4, 2, 2, b"new", 2)
    owner.journal.cut(1, 8, 3)
    owner.journal.trim(1, 2, 3)
    for again in (False, True):
        if again:
            await owner.journal.close()
            owner = start(tmp_path)
        assert owner.journal.extents(1) == [(2, 2, 1), (4, 2, 2), (6, 2, 1)]
        assert read(owner.journal, 1, 3) == (0, 4, 1, b"old")
        assert read(owner.journal, 1, 4) == (4, 2, 2, b"new")
        assert read(owner.journal, 1, 7) == (0, 8, 1, b"old")
        assert [read(owner.journal, 1, gone) for gone in (1, 8, 9)] == [None] * 3
    await owner.journal.close()


async def test_a_forgotten_stream_can_begin_again_lower(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_messages(1, 100, 5, 1, b"old", 1)
    owner.journal.trim(1, 103, 1)
    owner.journal.forget(1, 2)
    owner.journal.append_messages(1, 50, 5, 2, b"new", 3)
    await owner.journal.close()
    again = start(tmp_path)
    assert again.journal.extents(1) == [(50, 5, 2)]
    await again.journal.close()


@pytest.mark.rows("P-118")
async def test_a_trail_outlives_the_messages_and_the_segments(tmp_path: Path) -> None:
    """Messages that were given up stay gone, and so does the knowledge of where the stream begins."""
    owner = start(tmp_path, segment_bytes=200)
    owner.journal.append_messages(1, 0, 100, 1, b"", 1)
    owner.journal.trim(1, 100, 2)
    owner.journal.trim(2, 5, 2)
    owner.journal.cut(2, 3, 3)
    owner.journal.trim(3, 9, 4)
    owner.journal.forget(3, 5)
    for ticket in range(6, 20):
        owner.journal.append_state(b'{"filler":"%s"}' % (b"x" * 60), ticket)
    await owner.journal.close()
    assert segments(tmp_path)[0].name > "00000003.seg"
    again = start(tmp_path)
    assert [again.journal.trail(stream) for stream in (1, 2, 3, 4)] == [100, 3, None, None]
    await again.journal.close()


@pytest.mark.parametrize("again", [False, True])
async def test_a_stream_stays_forgotten_while_an_older_segment_has_its_trail(tmp_path: Path, again: bool) -> None:
    """Messages of another stream keep that segment. The one with the word that the stream is forgotten goes."""
    owner = start(tmp_path, segment_bytes=200)
    owner.journal.append_messages(2, 0, 1, 1, b"kept", 1)
    owner.journal.trim(1, 100, 2)
    if again:
        await owner.journal.close()
        owner = start(tmp_path, segment_bytes=200)
        assert owner.journal.trail(1) == 100
    for ticket in range(3, 30):
        owner.journal.append_state(b'{"filler":"%s"}' % (b"x" * 60), ticket)
        if ticket == 10:
            owner.journal.forget(1, ticket)
    await owner.journal.close()
    kept, second, *_ = segments(tmp_path)
    assert (kept.name, second.name > "00000008.seg") == ("00000001.seg", True)
    last = start(tmp_path)
    assert last.journal.trail(1) is None
    await last.journal.close()


async def test_sizes_of_runs(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_messages(1, 0, 10, 1, bytes(100), 1)
    owner.journal.append_messages(1, 10, 2, 1, bytes(30), 2)
    owner.journal.trim(1, 4, 3)
    for again in (False, True):
        if again:
            await owner.journal.close()
            owner = start(tmp_path)
        assert list(owner.journal.sizes(1)) == [(4, 6, 60), (10, 2, 30)]
        assert list(owner.journal.sizes(2)) == []
    await owner.journal.close()


@pytest.mark.parametrize("version", [1, 2])
async def test_a_journal_of_an_older_format_is_read_and_gets_a_segment_of_this_one(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stablecast.store.journal.record_format.VERSION", version)
    data = file_header(1, 7)
    for kind, body in ((RecordKind.CHECKPOINT, b"[]"), (RecordKind.MESSAGES, UNTIMED_HEAD.pack(1, 0, 1, 1) + b"old")):
        data += seal(kind, 1, len(data), (body,), 7) + body
    segment_path(tmp_path, 1).write_bytes(data)
    monkeypatch.undo()
    owner = start(tmp_path)
    owner.journal.append_messages(1, 1, 1, 1, b"new", 1)
    await owner.journal.close()
    assert [path.read_bytes()[9] for path in segments(tmp_path)] == [version, 4]
    owner = start(tmp_path)
    journal = owner.journal
    assert journal.extents(1) == [(0, 1, 1), (1, 1, 1)]
    assert [read(journal, 1, number) for number in (0, 1)] == [(0, 1, 1, b"old"), (1, 1, 1, b"new")]
    assert list(journal.sizes(1)) == [(0, 1, 3), (1, 1, 3)]
    assert (journal.came_at(1, 0), journal.came_at(1, 2)) == (None, None)
    assert abs((journal.came_at(1, 1) or 0) - time.time_ns()) < 60 * SECOND
    await journal.close()


async def test_a_journal_knows_if_states_may_be_missing(tmp_path: Path) -> None:
    """Formal design, 7.6: a store that may have lost its memory has to know."""
    owner = start(tmp_path)
    assert not owner.journal.whole
    for ticket in (1, 2):
        owner.journal.append_state(b'{"state":%d}' % ticket, ticket)
        await owner.until(ticket)
    await owner.journal.close()
    owner = start(tmp_path)
    assert owner.journal.whole
    await owner.journal.close()
    (segment,) = segments(tmp_path)
    segment.write_bytes(segment.read_bytes().replace(b'{"state":1}', b'{"state":9}'))
    owner = start(tmp_path, segment_bytes=1)
    assert not owner.journal.whole
    for ticket in (1, 2):
        owner.journal.append_messages(1, ticket, 1, 1, bytes(500), ticket)
    await owner.journal.close()
    again = Journal.open(tmp_path)
    assert again.whole  # a checkpoint tells every state anew
    again.abort()


async def test_group_commit(tmp_path: Path) -> None:
    gate = Gate()
    owner = start(tmp_path, sync=gate)
    owner.journal.append_state(b"{}", 1)
    await asyncio.to_thread(gate.entered.wait, 30)
    for ticket in range(2, 500):
        owner.journal.append_messages(1, ticket, 1, 1, b"block", ticket)
    gate.open()
    await owner.until(499)
    await owner.journal.close()
    assert owner.synced[-1] == 499
    assert gate.calls <= 4


async def test_a_shared_ticket_is_reported_once_it_is_complete(tmp_path: Path) -> None:
    gate = Gate()
    owner = start(tmp_path, sync=gate)
    owner.journal.append_state(b'{"n":1}', 1)
    await asyncio.to_thread(gate.entered.wait, 30)
    owner.journal.append_state(b'{"n":2}', 1)
    owner.journal.append_state(b'{"n":3}', 2)
    gate.open()
    await owner.journal.close()
    assert owner.synced == [2]


@pytest.mark.parametrize(("bound", "value"), [("MAX_QUEUED_BYTES", 1000), ("MAX_QUEUED_RECORDS", 1)])
async def test_pressure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int) -> None:
    monkeypatch.setattr(journal, bound, value)
    gate = Gate()
    owner = start(tmp_path, sync=gate)
    seen = [owner.journal.pressure]
    owner.journal.append_messages(1, 0, 1, 1, bytes(1000), 1)
    seen.append(owner.journal.pressure)
    gate.open()
    await owner.until(1)
    seen.append(owner.journal.pressure)
    assert seen == [False, True, False]
    await owner.journal.close()


@pytest.mark.parametrize("place", ["write", "sync"])
async def test_full_disk(tmp_path: Path, place: str) -> None:
    broken = threading.Event()

    def write(fd: int, buffers: Sequence[Block], offset: int) -> int:
        if broken.is_set() and place == "write":
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.pwritev(fd, buffers, offset)

    def sync(fd: int) -> None:
        if broken.is_set() and place == "sync":
            broken.clear()  # the next one would succeed: it must not be tried
            raise OSError(errno.EIO, "Input/output error")
        os.fdatasync(fd)

    owner = start(tmp_path, write=write, sync=sync)
    owner.journal.append_messages(1, 0, 1, 1, b"kept", 1)
    await owner.until(1)
    broken.set()
    owner.journal.append_messages(1, 1, 1, 1, b"lost", 2)
    await owner.until_failed()
    with pytest.raises(JournalError, match=r"cannot be written: .* make room .*then restart"):
        owner.journal.append_state(b"{}", 3)
    assert read(owner.journal, 1, 1) == (1, 1, 1, b"lost")
    with pytest.raises(JournalError, match="cannot be written"):
        await owner.journal.close()
    assert owner.synced == [1]
    assert len(owner.failures) == 1
    again = Journal.open(tmp_path)
    assert read(again, 1, 0) == (0, 1, 1, b"kept")
    again.abort()


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "make room (bytes, inodes or quota), then restart"),
        (OSError(errno.EIO, "Input/output error"), "check the disk"),
        (ValueError("a bug"), "check the disk"),
    ],
)
def test_a_failure_comes_with_what_an_operator_can_do(error: Exception, remedy: str) -> None:
    assert journal.remedy_of(error, "check the disk") == remedy


async def test_failure_nobody_listens_to_reaches_the_loop(tmp_path: Path) -> None:
    heard: list[BaseException] = []
    done = asyncio.Event()

    def handler(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context["exception"]
        assert isinstance(error, BaseException)
        heard.append(error)
        done.set()

    asyncio.get_running_loop().set_exception_handler(handler)
    unheard = Journal.open(tmp_path, Disk(write=lambda *_: 0))
    unheard.set_checkpoint(list)
    unheard.start(asyncio.get_running_loop())
    unheard.append_state(b"{}", 1)
    await done.wait()
    assert isinstance(heard[0], JournalError)
    with pytest.raises(JournalError, match="nothing was written"):
        await unheard.close()


async def test_a_journal_that_closes_takes_no_record_and_measures_those_before(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_state(b"{}", 1)
    await owner.until(1)
    owner.journal.append_messages(1, 0, 1, 5, b"x", 2)
    closing = asyncio.create_task(owner.journal.close())
    await asyncio.sleep(0)
    with pytest.raises(MisuseError, match="not running"):
        owner.journal.append_state(b"{}", 3)
    await closing
    assert owner.synced == [1, 2]
    assert sum(owner.journal.waits.view().counts) == 1


async def test_abort_reports_nothing_more(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_state(b"{}", 1)
    await owner.until(1)
    owner.journal.append_state(b"{}", 2)
    owner.journal.abort()
    assert open_in(tmp_path) == []
    # What a thread told before it ended is heard now.
    owner.journal._on_committed(1)
    owner.journal._on_failed(OSError(errno.EIO, "Input/output error"))
    assert (owner.synced, owner.failures) == ([1], [])
    with pytest.raises(MisuseError, match="not running"):
        owner.journal.append_state(b"{}", 3)
    await owner.journal.close()
    Journal.open(tmp_path).abort()


async def test_a_note_is_durable_and_no_ticket_reports_it(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_note(b'{"note":1}')
    owner.journal.append_state(b'{"state":1}', 7)
    await owner.until(7)
    owner.journal.append_note(b'{"note":2}')
    await owner.journal.close()
    assert owner.synced == [7]
    again = Journal.open(tmp_path)
    assert again.recovered_states == [b'{"note":1}', b'{"state":1}', b'{"note":2}']
    again.abort()


async def test_files_that_were_read_before_the_start_are_closed_then(tmp_path: Path) -> None:
    """The owner may have read the times of many segments while it recovered."""
    owner = start(tmp_path)
    owner.journal.append_messages(1, 0, 1, 7, b"a", 1)
    await owner.journal.close()
    again = Journal.open(tmp_path)
    again.set_checkpoint(list)
    assert again.came_at(1, 0) is not None
    assert "00000001.seg" in open_in(tmp_path)
    again.start(asyncio.get_running_loop())
    assert "00000001.seg" not in open_in(tmp_path)
    await again.close()


async def test_abort_during_close(tmp_path: Path) -> None:
    gate = Gate()
    owner = start(tmp_path, sync=gate)
    owner.journal.append_state(b"{}", 1)
    closing = asyncio.create_task(owner.journal.close())
    await asyncio.sleep(0)
    threading.Thread(target=gate.open).start()
    owner.journal.abort()
    await closing
    assert owner.synced == []


async def test_close_twice(tmp_path: Path) -> None:
    owner = start(tmp_path)
    owner.journal.append_state(b"{}", 1)
    await asyncio.gather(owner.journal.close(), owner.journal.close())
    await owner.journal.close()
    assert owner.synced == [1]


async def test_misuse(tmp_path: Path) -> None:
    fresh = Journal.open(tmp_path)
    with pytest.raises(MisuseError, match="set_checkpoint before"):
        fresh.start(asyncio.get_running_loop())
    with pytest.raises(MisuseError, match="not running"):
        fresh.append_state(b"{}", 1)
    with pytest.raises(MisuseError, match="not running"):
        fresh.trim(1, 1, 1)
    fresh.abort()
    owner = start(tmp_path)
    with pytest.raises(MisuseError, match="start a journal once"):
        owner.journal.start(asyncio.get_running_loop())
    with pytest.raises(MisuseError, match="at least one"):
        owner.journal.append_messages(1, 0, 0, 1, b"", 1)
    with pytest.raises(MisuseError, match="does not fit"):
        owner.journal.append_messages(-1, 0, 1, 1, b"", 1)
    with pytest.raises(MisuseError, match="never go down"):
        owner.journal.append_state(b"{}", 0)
    with pytest.raises(MisuseError, match="JSON object"):
        owner.journal.append_state(b"[]", 1)
    await owner.journal.close()


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=f"no journal directory {tmp_path}/none; create it"):
        Journal.open(tmp_path / "none")


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(JournalError, match=r"cannot write to the journal directory .* access"):
        Journal.open(tmp_path)


def test_second_journal(tmp_path: Path) -> None:
    first = Journal.open(tmp_path)
    with pytest.raises(JournalError, match=f"{tmp_path} is in use by process {os.getpid()}"):
        Journal.open(tmp_path)
    first.abort()


def test_unreadable_segment_and_newer_release_release_the_lock(tmp_path: Path) -> None:
    (tmp_path / "00000001.seg").mkdir()
    with pytest.raises(JournalError, match="cannot read the journal"):
        Journal.open(tmp_path)
    (tmp_path / "00000001.seg").rmdir()
    (tmp_path / "00000001.seg").write_bytes(b"scjrnl\r\n\0\5" + bytes(14))
    with pytest.raises(JournalError, match=f"journal in {tmp_path}: .* newer release"):
        Journal.open(tmp_path)
    (tmp_path / "00000001.seg").unlink()
    Journal.open(tmp_path).abort()
