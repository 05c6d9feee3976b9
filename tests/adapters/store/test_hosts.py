"""Several stores in one process, and what is seen of them from outside."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context
from stablecast.config.plan import StoreLimits
from stablecast.core.protocol.settings import PatternType, StoreConfig, TopicPattern
from stablecast.runtime import machine
from stablecast.store import failed_stores
from stablecast.store import hosts as hosting
from stablecast.store.hosts import Hosts
from stablecast.store.journal import Disk, JournalError
from stablecast.store.journal import journal as journals
from stablecast.store.observatory import WatchedStore
from stablecast.store.settings import StoreSettings
from stablecast.store.store import Store
from tests.support.machine import replace
from tests.support.network import KEPT, LOCAL, until

TOPIC = "orders"
RULE = TopicPattern("^orders", attrs.evolve(KEPT, size_limit=1_000_000), PatternType.PCRE)


def settings(directory: Path, name: str, **more: object) -> StoreSettings:
    directory.mkdir(parents=True)
    config = attrs.evolve(StoreConfig("", 1), topics=(RULE,))
    return StoreSettings(f"{LOCAL}:0", directory, config, name=name, state_directory=directory, new=True, **more)  # type: ignore[arg-type]


def two(directory: Path, **more: object) -> Hosts:
    return Hosts([settings(directory / name, name, **more) for name in ("a", "b")], asyncio.new_event_loop)


@pytest.mark.rows("P-030", "P-031", "P-125", "P-126")
async def test_each_store_has_a_thread_and_serves(tmp_path: Path) -> None:
    """Two stores on two directories, in parallel."""
    hosts = two(tmp_path)
    await hosts.start()
    names = {thread.name for thread in threading.enumerate()}
    assert {"store-a", "store-b"} <= names
    stores = [host.store.address for host in hosts.hosts]
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=stores)
        await source.send_many([b"x"] * 10)
        await source.wait_stable_through(9)
    assert len(hosts.watched) == 2
    for index in range(2):
        assert [view.messages for view in await hosts.watched[index].sources()] == [10]
    await hosts.stop()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


@pytest.mark.rows("P-035")
@pytest.mark.parametrize("together", [True, False])
async def test_stores_in_one_daemon_or_in_two_have_the_same_outcome(together: bool, tmp_path: Path) -> None:
    daemons = [two(tmp_path)] if together else [two(tmp_path / "1"), two(tmp_path / "2")]
    for daemon in daemons:
        await daemon.start()
    stores = [daemon.hosts[0 if together else index].store for index, daemon in enumerate(daemons)]
    if together:
        stores.append(daemons[0].hosts[1].store)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address for store in stores])
        await source.send_many([b"x"] * 10)
        await source.wait_stable_through(9)
        receiver = context.receiver(TOPIC, source=source.config.transport)
        assert [(await anext(receiver)).sequence_number for _ in range(10)] == list(range(10))
    assert [[one.messages for one in store.machine.status.repositories.values()] for store in stores] == [[10], [10]]
    for daemon in daemons:
        await daemon.stop()


async def test_if_one_cannot_start_the_others_are_stopped(tmp_path: Path) -> None:
    hosts = two(tmp_path)
    (tmp_path / "b").rmdir()
    with pytest.raises(Exception, match="there is no state directory"):
        await hosts.start()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


class Breaking:
    """A disk whose writes and syncs fail with `number` while that is set."""

    def __init__(self) -> None:
        self.number = 0

    def sync(self, descriptor: int) -> None:
        if self.number:
            raise OSError(self.number, os.strerror(self.number))
        os.fdatasync(descriptor)


@asynccontextmanager
async def tended(directory: Path, **more: object) -> AsyncIterator[tuple[Hosts, list[Breaking], list[str]]]:
    """Two stores of a daemon, their disks, and what was logged. Whoever fails is parked."""
    said: list[str] = []
    disks = [Breaking(), Breaking()]
    log = lambda severity, who, code, text: said.append(f"{severity.value} {who} {code} {text}")  # noqa: E731
    found = [
        settings(directory / name, name, log=log, disk=Disk(sync=disk.sync), **more)
        for name, disk in zip("ab", disks, strict=True)
    ]
    hosts = Hosts(found, asyncio.new_event_loop)
    await hosts.start()
    tending = asyncio.create_task(hosts.tend())
    try:
        yield hosts, disks, said
    finally:
        tending.cancel()
        with suppress(asyncio.CancelledError):
            await tending


async def stable(hosts: Hosts, index: int, session_id: int) -> int:
    """Send a message to one store; returns its number once it is stable there."""
    async with Context(session_id=session_id) as context:
        source = await context.source(f"{TOPIC}{index}", stores=[hosts.hosts[index].store.address])
        sent = await source.send(b"x")
        await sent.stable()
        return sent.number


async def break_down(hosts: Hosts, disk: Breaking, number: int) -> None:
    """Have the first store meet with an error of its disk."""
    async with Context(session_id=9) as context:
        source = await context.source(f"{TOPIC}0", stores=[hosts.hosts[0].store.address])
        disk.number = number
        await source.send(b"never stable")
        await until(hosts.hosts[0].store.failed.done)
        assert source.stable_through == -1


async def test_a_store_whose_disk_fails_is_parked_alone_until_an_operator_resumes_it(tmp_path: Path) -> None:
    async with tended(tmp_path) as (hosts, disks, said):
        address = hosts.hosts[0].store.address
        await break_down(hosts, disks[0], errno.EIO)
        await until(lambda: any("a parked" in line for line in said))
        view = await hosts.watched[0].view()
        assert "Input/output error" in view.failure
        assert (view.name, view.address, view.sources) == ("a", address, 1)
        assert await stable(hosts, 1, 1) == 0
        assert not await hosts.watched[1].resume(), "it is not parked"
        assert await hosts.watched[0].resume()
        await until(lambda: any("could not be started again" in line or "returned" in line for line in said))
        assert "could not be started again" in said[-1], "its disk is as bad as before"
        disks[0].number = 0
        assert await hosts.watched[0].resume()
        await until(lambda: any("a returned" in line for line in said))
        assert hosts.hosts[0].store.address == address
        assert await stable(hosts, 0, 9) >= 0
        assert (await hosts.watched[0].view()).failure == ""
    await hosts.stop()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


async def test_a_store_that_found_no_room_returns_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [1 << 30]
    replace(monkeypatch, "files", free_bytes=lambda _: free[0])
    monkeypatch.setattr(hosting, "ROOM_SECONDS", 0.01)
    monkeypatch.setattr(failed_stores, "FIRST_WAIT_SECONDS", 0.01)
    async with tended(tmp_path, limits=StoreLimits(room_bytes=1 << 20)) as (hosts, disks, said):
        await until(lambda: hosts.hosts[0].store.room.free > 0)
        free[0] = 1 << 19
        await until(lambda: any("WARNING a room-low" in line for line in said))
        await break_down(hosts, disks[0], errno.ENOSPC)
        await until(lambda: any("ERROR a parked" in line for line in said))
        [line] = [line for line in said if "a parked" in line]
        assert "it returns when 1,048,576 bytes are free (limit room-bytes) and an inode is" in line
        disks[0].number = 0
        free[0] = 1 << 20
        await until(lambda: any("a returned" in line for line in said))
        assert any("INFO a room-back" in line for line in said)
        assert await stable(hosts, 0, 9) >= 0
    await hosts.stop()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
async def test_a_store_without_descriptors_or_memory_blames_no_disk_and_returns_by_itself(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "ROOM_SECONDS", 0.01)
    monkeypatch.setattr(failed_stores, "FIRST_WAIT_SECONDS", 0.01)
    async with tended(tmp_path) as (hosts, disks, said):
        await break_down(hosts, disks[0], number)
        disks[0].number = 0
        await until(lambda: any("a returned" in line for line in said))
        assert any("ERROR a resources-failed" in line and "the disk is not the cause" in line for line in said)
        assert not any("disk-failed" in line or "replace the disk" in line for line in said)
        assert await stable(hosts, 0, 9) >= 0
    await hosts.stop()


async def test_a_store_whose_files_were_removed_is_parked_and_returns_as_one_with_an_empty_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LOOK_SECONDS", 0.01)
    async with tended(tmp_path) as (hosts, _, said):
        assert await stable(hosts, 0, 1) == 0
        for path in (tmp_path / "a").iterdir():
            path.unlink()
        await until(lambda: any("a parked" in line for line in said))
        assert any("ERROR a disk-failed" in line and "was removed" in line for line in said)
        assert "was removed" in (await hosts.watched[0].view()).failure
        assert await stable(hosts, 1, 1) == 0
        assert await hosts.watched[0].resume()
        await until(lambda: any("a returned" in line for line in said))
        assert hosts.hosts[0].store.waiting_ns, "clients may count on registrations that are gone"
    await hosts.stop()


@pytest.mark.parametrize(("files", "inodes", "room"), [(100, 50, 4096), (100, 0, 0), (0, 0, 4096)])
def test_room_is_bytes_and_inodes(files: int, inodes: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems count no inodes: their count is 0."""
    found = os.statvfs_result((4096, 4096, 10, 1, 1, files, inodes, inodes, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    assert machine.files.free_bytes("/") == room


async def test_a_store_that_is_parked_at_the_end_is_told(tmp_path: Path) -> None:
    async with tended(tmp_path) as (hosts, disks, said):
        await break_down(hosts, disks[0], errno.EIO)
        await until(lambda: any("a parked" in line for line in said))
    with pytest.raises(JournalError, match="Input/output error"):
        await hosts.stop()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


async def test_without_stores_there_is_nothing_to_tend() -> None:
    hosts = Hosts([], asyncio.new_event_loop)
    await hosts.start()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await hosts.tend()
    await hosts.stop()


def test_patience_grows_while_a_store_does_not_last() -> None:
    backoff = failed_stores.RestartBackoff()
    assert [backoff.after(1) for _ in range(3)] == [2.0, 4.0, 8.0]
    assert max(backoff.after(1) for _ in range(50)) == 2.0 * (1 << (failed_stores.MAX_DOUBLINGS - 1))
    assert backoff.after(failed_stores.STEADY_SECONDS + 1) == 2.0


@pytest.mark.rows("P-902", "P-903", "P-907", "P-909", "P-910", "P-914", "P-916", "P-919", "P-923")
async def test_every_item_of_the_monitor_is_seen(tmp_path: Path) -> None:
    """P-902..P-923: index, stores, a store, its sources, and their receivers."""
    hosts = two(tmp_path)
    await hosts.start()
    address = hosts.hosts[0].store.address
    async with Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source(TOPIC, stores=[address])
        await source.send_many([b"x" * 100] * 10)
        await source.wait_stable_through(9)
        receiver = other.receiver(TOPIC, source=source.config.transport)
        for _ in range(4):
            (await anext(receiver)).consumed()
        view = await hosts.watched[0].view()
        while view.receivers == 0:
            view = await hosts.watched[0].view()
        ((topic, reg_id, session_id),) = view.topics
        seen = await hosts.watched[0].source(reg_id)
        assert seen is not None
        (reading,) = seen.receivers
        assert await hosts.watched[0].receiver(reading.reg_id) is not None
        assert await hosts.watched[0].receiver(reg_id) is None
        assert await hosts.watched[0].source(0) is None
        await hosts.watched[0].reset_rates()
        await hosts.watched[0].drain(on=True)
        assert hosts.hosts[0].store.draining
        assert await hosts.watched[0].evict(reading.reg_id)
        assert not await hosts.watched[0].evict(0)
        assert await hosts.watched[0].receiver(reading.reg_id) is None
    await hosts.stop()
    assert (view.index, view.name, view.address, topic, session_id) == (0, "a", address, TOPIC, 1)
    assert view.cache_directory == view.state_directory == str(tmp_path / "a")
    assert view.patterns == (("^orders", "pcre", "disk"),)
    assert view.requests[0] == 262_144
    assert (view.sources, view.receivers, view.failure, view.draining, view.muted_for_ns) == (1, 1, "", False, 0)
    assert view.connections == 4, "one from each client, and one to it"
    assert view.journal.disk_bytes > 1000
    assert view.journal.syncs > 0
    assert (seen.topic, seen.session_id, seen.repository, seen.paced, seen.active) == (TOPIC, 1, "disk", False, True)
    assert (seen.messages, seen.window) == (10, (0, 0, 9))
    assert seen.memory == (1120, RULE.repository.size_threshold, 1_000_000)
    assert (seen.sync, seen.in_progress, seen.holes, seen.lost) == ((9, 9, 9), (0, 0), 0, 0)
    assert seen.offsets == (0, 1120, RULE.repository.disk_limit)
    assert (seen.bursts, seen.drops, seen.replicas, seen.proxied) == ((0, 0, 0), (0, 0), 1, False)
    assert (seen.traffic.received, seen.traffic.payload_bytes) == (10, 1000)
    assert seen.transport == source.config.transport
    assert (reading.source_reg_id, reading.source_session_id, reading.session_id) == (reg_id, 1, 2)
    assert reading.lag == 9 - max(reading.acknowledged, -1)


async def test_a_receiver_that_read_everything_lags_by_nothing_and_rates_begin_anew(tmp_path: Path) -> None:
    hosts, began = two(tmp_path), machine.clock.wall_ns()
    await hosts.start()
    watched = hosts.watched[0]
    async with Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source(TOPIC, stores=[watched.store.address])
        await source.send_many([b"x"] * 10)
        await source.wait_stable_through(9)
        receiver = other.receiver(TOPIC, source=source.config.transport)
        for _ in range(10):
            (await anext(receiver)).consumed()
        (seen,) = await watched.sources()
        while not seen.receivers or seen.receivers[0].acknowledged < 9:
            watched._kept.clear()
            (seen,) = await watched.sources()
        await watched.reset_rates()
        view = await watched.view()
    await hosts.stop()
    assert seen.receivers[0].lag == 0
    assert view.asked == (0, 0)
    assert began <= seen.receivers[0].last_activity_ns <= view.taken_ns <= machine.clock.wall_ns()


async def test_views_are_at_most_a_second_old_and_made_once(tmp_path: Path) -> None:
    hosts = two(tmp_path)
    await hosts.start()
    watched = hosts.watched[1]
    first = await watched.view()
    assert await watched.view() is first
    watched._kept["store"] = (watched.store, 0, first)
    assert await watched.view() is not first
    await hosts.stop()


async def test_another_loop_asks_on_the_loop_of_the_store(tmp_path: Path) -> None:
    """Elsewhere its state would change while it is read."""
    hosts = two(tmp_path)
    await hosts.start()
    on = [await watched.call(threading.get_ident) for watched in hosts.watched]
    assert len({*on, threading.get_ident()}) == 3
    await hosts.stop()


async def test_a_store_is_seen_from_its_own_loop(tmp_path: Path) -> None:
    store = Store(settings(tmp_path / "a", "a"))
    await store.start()
    view = await WatchedStore(store, asyncio.get_running_loop(), 0).view()
    await store.stop()
    assert view.connections == 0
    assert view.proxies == 0
