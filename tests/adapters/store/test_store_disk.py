"""A store whose disk fails, is slow, or has to be read: what it says, and what it does no more."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import SendStored
from stablecast.core.protocol.inputs import Ended
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.runtime.stream import StreamJoiner
from stablecast.store.journal import Disk, Journal, JournalError
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.log_lines import Severity
from stablecast.store.message_cache import MessageCache
from stablecast.store.message_storage import MessagePiece
from tests.adapters.store.journal.support import read
from tests.adapters.store.test_store import TOPIC, serving, started, take, until

Line = tuple[Severity, str, str, str]


class Failing:
    """A sync that fails from some instant on."""

    def __init__(self) -> None:
        self.broken = threading.Event()
        self.calls = 0

    def __call__(self, descriptor: int) -> None:
        if self.broken.is_set():
            self.calls += 1
            raise OSError(errno.EIO, "Input/output error")
        os.fdatasync(descriptor)


async def test_a_failing_sync_ends_acknowledging_and_says_so(tmp_path: Path) -> None:
    """EIO: nothing is pretended, and nothing is tried again."""
    sync, said = Failing(), list[Line]()
    store = await started(tmp_path, disk=Disk(sync=sync), name="a", log=lambda *line: said.append(line))
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        await (await source.send(b"on disk")).stable()
        sync.broken.set()
        await source.send_many([b"nowhere"] * 5)
        failure = await store.failed
        await source.send(b"afterwards")
        store._send_stored("127.0.0.1:1", b"nothing is sent any more")
        with pytest.raises(JournalError):
            await store.stop()
        assert source.stable_through == 0
        assert sync.calls == 1
    (told,) = [line for line in said if line[0] is Severity.ERROR]
    assert told[1:3] == ("a", "disk-failed")
    assert told[3] == f"{failure}; nothing is acknowledged any more"
    assert "stopped" not in {line[2] for line in said}
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        assert (await context.source(TOPIC, stores=[store.address])).next_number in (1, 6)


@pytest.mark.rows("P-119", "P-406")
async def test_messages_that_left_the_memory_are_read_by_another_thread(tmp_path: Path) -> None:
    readers: set[str] = set()
    async with serving(tmp_path) as store, Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source(TOPIC, stores=[store.address])
        await source.send_many(b"%d" % number for number in range(50))
        await source.wait_stable_through(49)
        store._messages._cache = MessageCache()
        reader = store._journal._fetcher._reader
        block = reader.block

        def watched(record: RecordPlace) -> bytes:
            readers.add(threading.current_thread().name)
            return block(record)

        reader.block = watched  # type: ignore[method-assign]
        receiver = other.receiver(TOPIC, source=source.config.transport)
        for number in range(50):
            message = await anext(receiver)
            assert (message.payload, message.recovered) == (b"%d" % number, True)
            message.consumed()
        assert readers == {"fetcher"}
        assert store.reads_of(next(iter(store.machine.status.repositories))) == 0


async def test_streams_stay_paused_while_too_much_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        await context.source(TOPIC, stores=[store.address])
        await until(lambda: store._arrivals.joiners)
        (joiner,) = store._arrivals.joiners.values()
        assert isinstance(joiner, StreamJoiner)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "pressure", property(lambda _: True))
            store._feed(Ended(0))
            store._on_synced(0)
            assert joiner._paused
        store._on_synced(0)
        assert not joiner._paused


async def test_damage_found_while_reading_is_never_sent_and_another_store_is_asked(tmp_path: Path) -> None:
    """The store goes on with the rest; what the source cannot send again counts as lost here."""
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    async with (
        serving(first) as store,
        serving(second) as other_store,
        Context(session_id=1) as context,
        Context(session_id=2) as other,
    ):
        source = await context.source(TOPIC, stores=[store.address, other_store.address])
        await (await source.send(b"precious")).stable()
        await (await source.send(b"common")).stable()
        await until(lambda: len(list(first.glob("*.seg"))) == 1 and store.journal_view().queued_bytes == 0)
        _spoil(first)
        store._messages._cache = MessageCache()  # as if it were long ago
        receiver = other.receiver(TOPIC, source=source.config.transport)
        assert await take(receiver, 2) == [(0, b"precious", True), (1, b"common", True)]
        (reg_id,) = store.machine.status.repositories
        store._retrieval.serve(SendStored("127.0.0.1:1", 1, reg_id, 0, 1))
        await until(lambda: store.events["LostAtStore"])
        assert store.oddities["damaged"] >= 1
        assert not store.failed.done()
        assert list(store.machine.status.repositories[reg_id].held) == [(1, 2)]
        assert [(first, count) for first, count, _ in store._journal.extents(reg_id)] == [(1, 1)]
    async with serving(first) as store:
        assert store.reports == []  # Nothing that lives is in the bad record any more, and the log has named it.


async def test_messages_that_were_written_again_are_not_damaged(tmp_path: Path) -> None:
    """A read that takes long meets the old record when the source has long sent its message again."""
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        await (await source.send(b"precious")).stable()
        await (await source.send(b"common")).stable()
        (reg_id,) = store.machine.status.repositories
        (old, other) = [store._journal.find(reg_id, number) for number in (0, 1)]
        assert old is not None
        assert other is not None
        _, _, tag, block = read(store._journal, reg_id, 0) or (0, 0, 0, b"")
        store._journal.append_messages(reg_id, 0, 1, tag, block, store._machine.tickets.draw())
        for number, found in enumerate((old, other)):
            piece = MessagePiece(number, number + 1, number, tag, b"", found.record)
            store._on_damaged(reg_id, piece, JournalError("check the disk"))
        assert list(store.machine.status.repositories[reg_id].held) == [(0, 1)]
        assert [(first, count) for first, count, _ in store._journal.extents(reg_id)] == [(0, 1)]
        assert store.oddities["damaged"] == 2


def _spoil(directory: Path) -> None:
    (segment,) = directory.glob("*.seg")
    segment.write_bytes(segment.read_bytes().replace(b"precious", b"specious"))


async def test_a_store_that_ends_under_load_ends_quietly(tmp_path: Path) -> None:
    """Its timers go on while the disk takes the last messages. State that ends then is there afterwards."""
    gate, complaints = threading.Event(), list[dict[str, Any]]()
    gate.set()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def sync(descriptor: int) -> None:
        gate.wait()
        os.fdatasync(descriptor)

    kept = RepositoryConfig(source_activity_ns=50 * MILLISECOND, source_lifetime_ns=1)
    config = StoreConfig("", 1, repository=kept, check_ns=MILLISECOND, keepalive_ns=10 * MILLISECOND)
    store = await started(tmp_path, disk=Disk(sync=sync, short_ns=-1), config=config)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        gate.clear()
        await source.send_many([b"under way"] * 5)
        await until(lambda: store.journal_view().queued_bytes > 0)
        ending = asyncio.create_task(store.stop())
        await until(lambda: not store.machine.status.repositories)
        gate.set()
        await ending
    assert complaints == []
    async with serving(tmp_path) as store:
        assert [repository.held.total() for repository in store.machine.status.repositories.values()] == [5]
