"""Several stores in one process, and what is seen of them from outside."""

import asyncio
import threading
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context
from stablecast.core.settings import PatternType, StoreConfig, TopicPattern
from stablecast.daemon.hosting import Hosts
from stablecast.daemon.observe import Observatory, Watched
from stablecast.daemon.settings import StoreSettings
from stablecast.daemon.store import Store
from stablecast.journal import Disk, JournalError
from tests.support.network import KEPT, LOCAL

TOPIC = "orders"
RULE = TopicPattern("^orders", attrs.evolve(KEPT, size_limit=1_000_000), PatternType.PCRE)


def settings(directory: Path, name: str, **more: object) -> StoreSettings:
    directory.mkdir()
    config = attrs.evolve(StoreConfig("", 1), topics=(RULE,))
    return StoreSettings(f"{LOCAL}:0", directory, config, name=name, state_directory=directory, new=True, **more)  # type: ignore[arg-type]


def two(directory: Path, **more: object) -> Hosts:
    return Hosts([settings(directory / name, name, **more) for name in ("a", "b")], asyncio.new_event_loop)


async def test_each_store_has_a_thread_and_serves(tmp_path: Path) -> None:
    """P-125, P-126: two stores on two directories, in parallel."""
    hosts = two(tmp_path)
    await hosts.start()
    names = {thread.name for thread in threading.enumerate()}
    assert {"store-a", "store-b"} <= names
    stores = [host.store.address for host in hosts.hosts]
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=stores)
        await source.send_many([b"x"] * 10)
        await source.wait_stable_through(9)
    observatory = Observatory(hosts.watched)
    assert len(observatory) == 2
    for index in range(2):
        assert [view.messages for view in await observatory.sources(index)] == [10]
    await hosts.stop()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


async def test_if_one_cannot_start_the_others_are_stopped(tmp_path: Path) -> None:
    hosts = two(tmp_path)
    (tmp_path / "b").rmdir()
    with pytest.raises(Exception, match="there is no state directory"):
        await hosts.start()
    assert not {"store-a", "store-b"} & {thread.name for thread in threading.enumerate()}


async def test_a_failing_disk_is_told_to_the_owner(tmp_path: Path) -> None:
    broken = threading.Event()

    def sync(_: int) -> None:
        if broken.is_set():
            raise OSError(5, "Input/output error")

    hosts = two(tmp_path, disk=Disk(sync=sync))
    await hosts.start()
    failure = asyncio.create_task(hosts.failure())
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[hosts.hosts[0].store.address])
        broken.set()
        await source.send(b"never stable")
        error = await failure
        assert source.stable_through == -1
    with pytest.raises(JournalError, match="Input/output error"):
        await hosts.stop()
    assert "Input/output error" in str(error)


async def test_without_stores_nothing_fails() -> None:
    hosts = Hosts([], asyncio.new_event_loop)
    await hosts.start()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await hosts.failure()
    await hosts.stop()


async def test_every_item_of_the_monitor_is_seen(tmp_path: Path) -> None:
    """P-902..P-923: index, stores, a store, its sources, and their receivers."""
    hosts = two(tmp_path)
    await hosts.start()
    observatory = Observatory(hosts.watched)
    address = hosts.hosts[0].store.address
    async with Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source(TOPIC, stores=[address])
        await source.send_many([b"x" * 100] * 10)
        await source.wait_stable_through(9)
        receiver = other.receiver(TOPIC, source=source.config.transport)
        for _ in range(4):
            (await anext(receiver)).consumed()
        view = await observatory.store(0)
        while view.receivers == 0:
            await asyncio.sleep(0.05)
            view = await observatory.store(0)
        ((topic, reg_id, session_id),) = view.topics
        seen = await observatory.source(0, reg_id)
        assert seen is not None
        (reading,) = seen.receivers
        assert await observatory.receiver(0, reading.reg_id) is not None
        assert await observatory.receiver(0, reg_id) is None
        assert await observatory.source(0, 0) is None
        await observatory.reset_rates(0)
        await observatory.drain(0, on=True)
        assert hosts.hosts[0].store.draining
        assert await observatory.evict(0, reading.reg_id)
        assert not await observatory.evict(0, 0)
        assert await observatory.receiver(0, reading.reg_id) is None
    await hosts.stop()
    assert (view.index, view.name, view.address, topic, session_id) == (0, "a", address, TOPIC, 1)
    assert view.cache_directory == view.state_directory == str(tmp_path / "a")
    assert view.patterns == (("^orders", "pcre", "disk"),)
    assert view.requests[0] == 262_144
    assert (view.sources, view.receivers, view.failure, view.draining, view.muted_for_ns) == (1, 1, "", False, 0)
    assert view.journal.disk_bytes > 1000
    assert view.journal.syncs > 0
    assert (seen.topic, seen.session_id, seen.repository, seen.paced, seen.active) == (TOPIC, 1, "disk", False, True)
    assert (seen.messages, seen.window) == (10, (0, 0, 9))
    assert seen.memory == (1120, RULE.repository.size_threshold, 1_000_000)
    assert (seen.sync, seen.in_progress, seen.holes, seen.lost) == ((9, 9, 9), (0, 0), 0, 0)
    assert seen.offsets == (0, 1120, RULE.repository.disk_limit)
    assert (seen.bursts, seen.drops, seen.replicas, seen.proxied) == ((0, 0, 0), (0, 0), 0, False)
    assert (seen.traffic.received, seen.traffic.payload_bytes) == (10, 1000)
    assert seen.transport == source.config.transport
    assert (reading.source_reg_id, reading.source_session_id, reading.session_id) == (reg_id, 1, 2)
    assert reading.lag == 9 - max(reading.acknowledged, -1)


async def test_what_is_seen_is_at_most_a_second_old_and_asked_for_once(tmp_path: Path) -> None:
    hosts = two(tmp_path)
    await hosts.start()
    observatory = Observatory(hosts.watched)
    first = await observatory.store(1)
    assert await observatory.store(1) is first
    observatory._kept["store", 1] = (0, first)
    assert await observatory.store(1) is not first
    await hosts.stop()


async def test_a_store_is_seen_from_its_own_loop(tmp_path: Path) -> None:
    store = Store(settings(tmp_path / "a", "a"))
    await store.start()
    view = await Observatory([Watched(store, asyncio.get_running_loop(), 0)]).store(0)
    await store.stop()
    assert view.connections == 0
    assert view.proxies == 0
