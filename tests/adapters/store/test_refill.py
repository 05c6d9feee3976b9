"""Stores that get back from each other what they lack, through running stores and a client."""

import asyncio
from pathlib import Path

from stablecast.client import Context
from stablecast.core.protocol.events import LackCause
from stablecast.core.protocol.messages import StoreMemory
from stablecast.store.observatory import WatchedStore
from stablecast.store.store import Store
from tests.adapters.store.test_store import TOPIC, started, until
from tests.adapters.store.test_wiped_disk import parts


def held(store: Store) -> list[tuple[int, int]]:
    """Return the numbers that the store has synced of its only source."""
    (status,) = store.machine.status.repositories.values()
    return list(status.synced)


async def sent(where: list[str], first: int, count: int) -> None:
    """Let one life of a source send messages, and end it without deregistration."""
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=where)
        for number in range(first, first + count):
            await source.send(b"%d" % number)
        await source.wait_stable_through(first + count - 1)


async def test_a_store_that_was_away_gets_the_missed_lives_from_its_peers(tmp_path: Path) -> None:
    directories = parts(tmp_path, "first", "second", "third")
    stores = [await started(directory, new=True) for directory in directories]
    where = [store.address for store in stores]
    await sent(where, 0, 5)
    await until(lambda: held(stores[2]) == [(0, 5)])
    await stores[2].stop()
    await sent(where, 5, 300)
    stores[2] = await started(directories[2], where[2], new=False)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=where)
        await source.send(b"305")
        await until(lambda: held(stores[2]) == [(0, 306)])
        await until(lambda: stores[2].events["Refilled"])
        assert stores[2].events["RefillStarted"] == 1
    for store in stores:
        await store.stop()


async def test_an_empty_disk_is_filled_again_and_stays_so(tmp_path: Path) -> None:
    directories = parts(tmp_path, "first", "second", "third", "replaced")
    stores = [await started(directory, new=True) for directory in directories[:3]]
    where = [store.address for store in stores]
    await sent(where, 0, 5)
    await sent(where, 5, 200)
    await until(lambda: held(stores[1]) == [(0, 205)])
    await stores[1].stop()
    stores[1] = await started(directories[3], where[1], new=True)
    assert stores[1].machine.status.memory is StoreMemory.NEW
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=where)
        await until(lambda: stores[1].events["Refilled"])
        assert held(stores[1]) == [(0, 205)]
    await stores[1].stop()
    stores[1] = await started(directories[3], where[1], new=False)
    assert held(stores[1]) == [(0, 205)]
    for store in stores:
        await store.stop()


async def filled(tmp_path: Path) -> list[Store]:
    """Return three stores with the messages of a life that is over."""
    stores = [await started(directory, new=True) for directory in parts(tmp_path, "first", "second", "third")]
    await sent([store.address for store in stores], 0, 20)
    return stores


async def test_a_damaged_message_of_an_older_life_is_fetched_again(tmp_path: Path) -> None:
    stores = await filled(tmp_path)
    where = [store.address for store in stores]
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=where)
        await until(lambda: all(held(store) == [(0, 20)] for store in stores))
        (reg_id,) = stores[0].machine.status.repositories
        stores[0].lacking(reg_id, [(7, 9)], LackCause.DAMAGED)
        assert held(stores[0]) == [(0, 7), (9, 20)]
        await until(lambda: held(stores[0]) == [(0, 20)])
        await until(lambda: stores[0].events["Refilled"])
    for store in stores:
        await store.stop()


async def test_monitors_show_which_messages_no_store_has(tmp_path: Path) -> None:
    """A roll compares the ranges: what all of them lack comes from none."""
    stores = await filled(tmp_path)
    where = [store.address for store in stores]
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=where)
        await until(lambda: all(announced(store) for store in stores))
        for store in stores:
            (reg_id,) = store.machine.status.repositories
            store.lacking(reg_id, [(7, 9)], LackCause.DAMAGED)
        for store in stores:
            (reg_id,) = store.machine.status.repositories
            view = await WatchedStore(store, asyncio.get_running_loop(), 0).source(reg_id)
            assert view is not None
            assert (sum(view.lacking), view.lacks) == (2, ((7, 8),))
    for store in stores:
        await store.stop()


def announced(store: Store) -> bool:
    """Return whether the source has announced where it resumes: what is lacking before that is not known."""
    return any(one.resume_point is not None for one in store.machine.status.repositories.values())
