"""A store on real sockets and a real journal: what it answers when, what it keeps, how it fails."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.client import Context, Receiver
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Client, SendStored
from stablecast.core.protocol.events import Oddity, RegistrationComplete, RequestsDropped
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import Role, StoreMemory
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace import TraceError
from stablecast.runtime.ports import PortError
from stablecast.runtime.stream import StreamJoiner
from stablecast.store.client_records import RecordError, client_record, clients_of
from stablecast.store.journal import Disk, Journal, JournalError
from stablecast.store.store import Store, StoreSettings
from stablecast.transports import codec
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import UnknownHeader
from stablecast.transports.wire.lbmc import DATA_HEADER, MessageKind
from tests.support.network import KEPT, LOCAL, Events, others
from tests.support.retransmissions import encode_recovered

TOPIC = "orders"
TURNS = 100
"""Turns of the event loop in which what was sent arrives and is answered."""


async def started(directory: Path, listen: str = f"{LOCAL}:0", **settings: Any) -> Store:
    config = settings.pop("config", None) or StoreConfig(listen, 1, repository=KEPT)
    store = Store(StoreSettings(listen, directory, config, **{"new": True, **settings}))
    await store.start()
    return store


@asynccontextmanager
async def serving(directory: Path, listen: str = f"{LOCAL}:0", **settings: Any) -> AsyncIterator[Store]:
    """A store until the end of the body."""
    store = await started(directory, listen, **settings)
    try:
        yield store
    finally:
        await store.stop()


async def until(condition: Callable[[], object]) -> None:
    """Turns the event loop until something holds that nothing tells of."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


class Gate:
    """A sync that waits until the test lets it through."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()

    def __call__(self, descriptor: int) -> None:
        self.asked.set()
        self.open.wait()
        os.fdatasync(descriptor)


async def take(receiver: Receiver, count: int) -> list[tuple[int, bytes, bool]]:
    """The next messages, each acknowledged."""
    taken = []
    for _ in range(count):
        message = await anext(receiver)
        message.consumed()
        taken.append((message.sequence_number, message.payload, message.recovered))
    return taken


async def _settle() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def _in_thread(event: threading.Event) -> None:
    await asyncio.get_running_loop().run_in_executor(None, event.wait)


async def test_a_registration_is_answered_once_it_is_synced(tmp_path: Path) -> None:
    gate = Gate()
    gate.open.set()
    async with serving(tmp_path, disk=Disk(sync=gate, short_ns=-1)) as store, Context(session_id=1) as context:
        gate.open.clear()
        gate.asked.clear()
        source = await context.source(TOPIC, stores=[store.address], wait=False)
        registered = asyncio.create_task(source.registered())
        await _in_thread(gate.asked)  # the registration is written, and not synced
        await _settle()
        assert not registered.done()
        gate.open.set()
        await registered


async def test_a_message_is_stable_once_it_is_synced(tmp_path: Path) -> None:
    gate = Gate()
    gate.open.set()
    async with serving(tmp_path, disk=Disk(sync=gate, short_ns=-1)) as store, Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        gate.open.clear()
        gate.asked.clear()
        sent = await source.send(b"one")
        stable = asyncio.create_task(sent.stable())
        await _in_thread(gate.asked)
        await _settle()
        assert not stable.done()
        gate.open.set()
        await stable


async def test_a_restart_keeps_clients_acknowledgements_and_messages(tmp_path: Path) -> None:
    async with serving(tmp_path) as store:
        where = store.address
        async with Context(session_id=1) as context, Context(session_id=2) as other:
            source = await context.source(TOPIC, stores=[where])
            receiver = other.receiver(TOPIC, source=source.config.transport)
            await source.send_many(b"%d" % number for number in range(10))
            assert [number for number, _, _ in await take(receiver, 6)] == [0, 1, 2, 3, 4, 5]
            await source.wait_stable_through(9)
        before = store.statistics()["clients"]
    async with serving(tmp_path, where) as store:
        assert store.statistics()["clients"] == before == 2
        async with Context(session_id=1) as context, Context(session_id=2) as other:
            source = await context.source(TOPIC, stores=[where])
            assert source.next_number == 10
            receiver = other.receiver(TOPIC, source=source.config.transport)
            assert await take(receiver, 4) == [(number, b"%d" % number, True) for number in range(6, 10)]
        async with Context(session_id=1) as context, Context(session_id=3) as other:
            source = await context.source(TOPIC, stores=[where])
            newcomer = other.receiver(TOPIC, source=source.config.transport)
            assert await take(newcomer, 10) == [(number, b"%d" % number, True) for number in range(10)]


async def test_only_a_new_store_remembers_without_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients may count on registrations that a store without its journal does not know."""
    found: list[tuple[bool, StoreMemory]] = []
    recover: Any = StoreEndpoint.recover

    def observed(self: StoreEndpoint, *args: Any, memory: bool, standing: StoreMemory, **more: Any) -> None:
        found.append((memory, standing))
        recover(self, *args, memory=memory, standing=standing, **more)

    monkeypatch.setattr(StoreEndpoint, "recover", observed)
    for number, starts in enumerate(((False, False, True), (True, False))):
        directory = tmp_path / str(number)
        directory.mkdir()
        for new in starts:
            async with serving(directory, new=new):
                pass
    lost, new_one = StoreMemory.LOST, StoreMemory.NEW
    # A start with `--new` ends the wait: whoever starts the store says that nobody counts on it.
    assert found == [(False, lost), (False, lost), (True, new_one), (True, new_one), (True, new_one)]


async def test_a_store_learns_of_broken_connections(tmp_path: Path) -> None:
    async with serving(tmp_path) as store:
        found: list[object] = []
        store._feed = found.append  # type: ignore[method-assign, assignment]
        store._pool._on_reset(f"{LOCAL}:8")
        store._pool._on_gone(f"{LOCAL}:9")
    assert found == [Reset(f"{LOCAL}:8"), Gone(f"{LOCAL}:9")]


async def test_a_stop_under_load_leaves_no_torn_record(tmp_path: Path) -> None:
    async with Context(session_id=1) as context:
        async with serving(tmp_path) as store:
            source = await context.source(TOPIC, stores=[store.address], options={"ume_flight_size": 100_000})
            for _ in range(20_000):
                source.try_send(b"." * 500)
            await source.wait_stable_through(1_000)
        stable = source.stable_through
    journal = Journal.open(tmp_path)
    assert journal.reports == []
    (reg_id,) = clients_of(journal.recovered_states)
    runs = journal.extents(reg_id)
    await journal.close()
    assert runs[0][0] == 0
    assert all(before[0] + before[1] == after[0] for before, after in pairwise(runs))
    assert sum(runs[-1][:2]) > stable >= 1_000


class Full:
    """A disk that is full from some instant on."""

    def __init__(self) -> None:
        self.full = False

    def __call__(self, descriptor: int, buffers: Any, offset: int) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.pwritev(descriptor, buffers, offset)


async def test_a_full_disk_ends_the_store_and_nothing_is_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full, events = Full(), Events()
    store = await started(tmp_path, disk=Disk(write=full))
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address], on_event=events)
        await (await source.send(b"on disk")).stable()
        full.full = True
        await source.send_many([b"nowhere"] * 3)
        failure = await store.failed
        await source.send(b"when it has failed already")
        await context.source("another", stores=[store.address], on_event=events, wait=False)
        await _settle()
        with pytest.raises(JournalError) as told:
            await store.stop()
        assert told.value is failure
        assert source.stable_through == 0
        assert len(events.of(RegistrationComplete)) == 1
    assert caplog.records == []
    assert str(failure) == (
        f"the journal in {tmp_path} cannot be written: No space left on device; "
        "make room (bytes, inodes or quota), then restart"
    )
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        assert (await context.source(TOPIC, stores=[store.address])).next_number == 1


async def test_a_store_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    before = others()
    directory = tmp_path / "store"
    with pytest.raises(JournalError, match="there is no journal directory"):
        await Store(StoreSettings(f"{LOCAL}:0", directory)).start()
    directory.mkdir()
    async with serving(directory) as store:
        with pytest.raises(JournalError, match=f"in use by process {os.getpid()}"):
            await Store(StoreSettings(f"{LOCAL}:0", directory)).start()
        (tmp_path / "other").mkdir()
        with pytest.raises(PortError, match="is in use: stop the program that holds it or choose another --listen"):
            await Store(StoreSettings(store.address, tmp_path / "other")).start()
        async with serving(tmp_path / "other"):
            pass
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    with pytest.raises(TraceError, match="no trace can be written"):
        await Store(StoreSettings(store.address, directory, trace=blocked)).start()
    async with serving(directory, store.address):
        pass
    assert others() == before


async def test_a_state_that_is_not_ours_is_told_and_the_directory_is_free(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.set_checkpoint(list)
    journal.start(asyncio.get_running_loop())
    journal.append_state(b'{"customer": 1}', 1)
    await journal.close()
    with pytest.raises(RecordError):
        await Store(StoreSettings(f"{LOCAL}:0", tmp_path)).start()
    await Journal.open(tmp_path).close()


async def test_nonsense_is_counted_and_hurts_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        host, _, port = store.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        await writer.drain()
        source = await context.source(TOPIC, stores=[store.address])
        await (await source.send(b"one")).stable()
        writer.close()
        assert store._port.malformed == 1


async def test_wrong_messages_on_the_request_port_are_counted_and_hurt_nobody(tmp_path: Path) -> None:
    data = DATA_HEADER.pack(MessageKind.DATA, 0, DATA_HEADER.size + 1, 7, 0) + b"x"
    empty = lbmc.encode(lbmc.Message(MessageKind.CONTROL, headers=(UnknownHeader(200, b"xx"),)))
    unasked = encode_recovered(codec.Recovered(codec.join(1, 2), codec.join(1, 2), 0, b"x"))
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        host, _, port = store.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(data + empty + unasked)
        await writer.drain()
        await until(lambda: len(store.oddities) >= 2)
        source = await context.source(TOPIC, stores=[store.address])
        await (await source.send(b"one")).stable()
        writer.close()
        store._arrivals.on_stream(1, [lbmc.Message(MessageKind.CONTROL, headers=(UnknownHeader(200, b"xx"),))])
        assert store.statistics()["oddities"] == store.oddities
        assert store.oddities["data-on-request-port"] == store.oddities["malformed-on-request-port"] == 1
        assert store.oddities["malformed-on-stream"] == 1


async def test_a_store_whose_disk_is_slow_reads_no_more_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stablecast.store.journal.journal.MAX_QUEUED_BYTES", 100_000)
    gate = Gate()
    gate.open.set()
    async with serving(tmp_path, disk=Disk(sync=gate, short_ns=-1)) as store, Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address], options={"ume_flight_size": 10_000})
        (joiner,) = store._arrivals.joiners.values()
        assert isinstance(joiner, StreamJoiner)
        gate.open.clear()
        for _ in range(1_000):
            source.try_send(b"." * 1_000)
        await until(lambda: joiner._paused)
        assert store._journal.pressure
        gate.open.set()
        await source.wait_stable_through(999)
        assert not joiner._paused


async def test_a_client_that_stays_away_too_long_is_forgotten(tmp_path: Path) -> None:
    short = StoreConfig(
        "", 1, repository=RepositoryConfig(source_activity_ns=1, source_lifetime_ns=1), check_ns=MILLISECOND
    )
    store = Store(StoreSettings(f"{LOCAL}:0", tmp_path, short, new=True))
    await store.start()
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address], wait=False)
        await until(lambda: store.statistics()["clients"])
        await source.close()
    await until(lambda: not store.statistics()["clients"])
    await store.stop()
    async with serving(tmp_path) as store:
        assert store.statistics()["clients"] == 0


async def test_numbers_go_round_on_the_wire_only(tmp_path: Path) -> None:
    first, count, life = 2**32 - 2, 4, codec.join(1, 7)
    client = Client(
        Role.SOURCE, 5, 0, TOPIC, 1, life, 0, f"{LOCAL}:1", f"{LOCAL}:2", 1_000, 3_600_000, 0, ((life, first),)
    )
    journal = Journal.open(tmp_path)
    journal.set_checkpoint(list)
    journal.start(asyncio.get_running_loop())
    journal.append_state(client_record(client), 1)
    head = [DATA_HEADER.pack(0, 0, DATA_HEADER.size + 1, 7, (first + at) % 2**32) for at in range(count)]
    journal.append_messages(5, first, count, life, b"".join(h + b"%d" % at for at, h in enumerate(head)), 2)
    await journal.close()
    async with serving(tmp_path) as store, Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source(TOPIC, stores=[store.address])
        assert source.next_number == 2
        await source.send(b"4")
        taken = await take(other.receiver(TOPIC, source=source.config.transport), 5)
        assert [number for number, _, _ in taken] == [2**32 - 2, 2**32 - 1, 0, 1, 2]
        assert [text for _, text, _ in taken] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.rows("P-917")
async def test_losses_of_a_stream_are_requested_from_its_source(tmp_path: Path) -> None:
    """A stream that was broken goes on with a gap, which the store asks its source for."""
    async with serving(tmp_path) as store, Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        await source.send_many([b"x"] * 3)
        await source.wait_stable_through(2)
        sent = source.stream
        assert sent is not None
        held, sent.write = sent.write, lambda block: None  # type: ignore[method-assign]
        await source.send_many([b"y"] * 2)
        source.flush()
        sent.write = held  # type: ignore[method-assign]
        await source.send(b"z")
        await source.wait_stable_through(5)


async def test_events_are_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as store:
        store._on_notify(RequestsDropped(7))
        store._on_notify(Oddity("late-ack", "text"))
        assert store.statistics()["events"] == {"RequestsDropped": 1}
        assert store.statistics()["oddities"] == {"late-ack": 1}


@pytest.mark.rows("P-102")
async def test_messages_in_memory_only_are_served_from_there(tmp_path: Path) -> None:
    """Nothing of it is on disk."""
    config = StoreConfig(f"{LOCAL}:0", 1, repository=attrs.evolve(KEPT, kind=RepositoryType.MEMORY))
    async with serving(tmp_path, config=config) as store, Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        await source.send_many([b"x"] * 3)
        await source.wait_stable_through(2)
        reg_id = next(iter(store._machine.repositories))
        assert list(store._journal.sizes(reg_id)) == []
        receiver = context.receiver(TOPIC, source=source.config.transport)
        assert [number for number, _, _ in await take(receiver, 3)] == [0, 1, 2]


async def test_messages_that_go_while_they_wait_are_not_sent(tmp_path: Path) -> None:
    async with serving(tmp_path) as store:
        store._perform(SendStored(f"{LOCAL}:1", 1, 50, 0, 9))
        assert not len(store._pool)


async def test_a_disk_fails_once(tmp_path: Path) -> None:
    store = await started(tmp_path)
    first = JournalError("first")
    store._on_failed(first)
    store._on_failed(JournalError("second"))
    with pytest.raises(JournalError, match="first"):
        await store.stop()
