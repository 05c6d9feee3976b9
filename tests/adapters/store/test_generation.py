"""Copies of a directory that were restored from a backup: by the state directory, and by a declaration."""

import asyncio
import shutil
from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.core.protocol.generations import NONE, following, outdated
from stablecast.core.protocol.messages import StoreMemory
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.ops.operations import declarations, directory_changes
from stablecast.ops.operations.directory_contents import read
from stablecast.ops.operations.target import OperationError
from stablecast.store import directory_identity
from stablecast.store import store as store_module
from stablecast.store.client_records import generation_of
from stablecast.store.directory_identity import StoreGeneration
from stablecast.store.store import Store
from tests.adapters.store.test_refill import held
from tests.adapters.store.test_store import TOPIC, started, until
from tests.support.network import Events

BRIEF = RepositoryConfig(source_activity_ns=SECOND, receiver_activity_ns=SECOND)
"""Timeouts for which a store waits that may have forgotten its grants."""


async def served(cache: Path, state: Path | None = None) -> Store:
    return await started(cache, new=False, name="a", state_directory=state)


async def sent(store: Store, count: int) -> int:
    """Lets one life of a source send messages; its RegID."""
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        first = source.next_number
        for _ in range(count):
            await source.send(b"message")
        await source.wait_stable_through(first + count - 1)
    (reg_id,) = store.machine.status.repositories
    return reg_id


def memory(store: Store, reg_id: int) -> StoreMemory:
    return store.machine.status.clients[reg_id].client.memory


def made(*directories: Path) -> None:
    for directory in directories:
        directory.mkdir()


async def test_a_restored_copy_is_noticed_by_the_state_directory(tmp_path: Path) -> None:
    """Taken while the store ran, or while it did not: it has no vote, and grants nothing at first."""
    cache, state, running, ended = (tmp_path / name for name in ("cache", "state", "running", "ended"))
    made(cache, state)
    store = await started(cache, new=True, name="a", state_directory=state)
    reg_id = await sent(store, 3)
    shutil.copytree(cache, running)
    await store.stop()
    shutil.copytree(cache, ended)
    store = await served(cache, state)
    assert (memory(store, reg_id), store.waiting_ns, store.reports) == (StoreMemory.KEPT, 0, [])
    await until(lambda: not store.journal_view().queued_bytes)
    await store.stop()
    for copy in (running, ended):
        shutil.rmtree(cache)
        shutil.copytree(copy, cache)
        store = await served(cache, state)
        assert memory(store, reg_id) is StoreMemory.LOST
        assert store.waiting_ns > 0
        assert "is an older copy" in store.reports[-2]
        assert store.events["OlderCopy"] == 1
        await store.stop()


async def test_a_store_that_was_killed_is_no_copy(tmp_path: Path) -> None:
    cache, state, killed = (tmp_path / name for name in ("cache", "state", "killed"))
    made(cache, state)
    store = await started(cache, new=True, name="a", state_directory=state)
    reg_id = await sent(store, 3)
    for directory in (cache, state):
        shutil.copytree(directory, killed / directory.name)
    await store.stop()
    store = await served(killed / "cache", killed / "state")
    assert (memory(store, reg_id), store.waiting_ns) == (StoreMemory.KEPT, 0)
    await store.stop()


async def test_a_declared_copy_has_no_vote_and_what_it_holds_stays(tmp_path: Path) -> None:
    store = await started(tmp_path, new=True, name="a")
    reg_id = await sent(store, 3)
    await store.stop()
    assert declarations.recovery(tmp_path)["next_start"]["votes"] is True
    report = await declarations.restore(tmp_path)
    assert report["sources"] == 1
    expected = declarations.recovery(tmp_path)
    assert (expected["memory"], expected["next_start"]["votes"]) == ("lost", False)
    assert any("no vote" in line for line in declarations.sentences(expected))
    store = await started(tmp_path, new=True, name="a")
    assert (memory(store, reg_id), store.waiting_ns > 0) == (StoreMemory.LOST, True)
    assert list(store.machine.status.repositories[reg_id].held) == [(0, 3)]
    await store.stop()
    assert "was declared a copy or a new disk" in store.reports[0]
    assert "--new" not in store.reports[0], "it may have forgotten grants"


@pytest.mark.parametrize("killed", [False, True])
async def test_a_restart_within_the_waiting_time_waits_again(tmp_path: Path, killed: bool) -> None:
    """Clients may count on grants of which the copy knows nothing, however often the store starts."""
    store = await started(tmp_path, new=True, name="a")
    reg_id = await sent(store, 3)
    await store.stop()
    await declarations.restore(tmp_path)
    store = await served(tmp_path)
    await until(lambda: not store.journal_view().queued_bytes)
    place = tmp_path
    if killed:
        place = tmp_path / "killed"
        shutil.copytree(tmp_path, place)
    await store.stop()
    config = StoreConfig("127.0.0.1:0", 1, repository=BRIEF)
    store = await started(place, config=config, new=True, name="a")
    assert 0 < store.waiting_ns <= SECOND
    await until(lambda: not store.waiting_ns)
    await store.stop()
    store = await served(place)  # The time has passed. The marks stay.
    assert (memory(store, reg_id), store.waiting_ns) == (StoreMemory.LOST, 0)
    await store.stop()


async def test_a_store_that_is_killed_in_its_first_start_waits_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is killed again and again serves some day, but not earlier if its journal lacks something anew."""
    monkeypatch.setattr(store_module, "WAIT_NOTE_SECONDS", 0.01)
    first, killed = tmp_path / "first", tmp_path / "killed"
    first.mkdir()
    store = await started(first, new=False, name="a")
    whole, left = store.waiting_ns, None
    while left is None or left >= whole:
        shutil.rmtree(killed, ignore_errors=True)
        shutil.copytree(first, killed)
        await asyncio.sleep(0)
        left = generation_of(read(killed).states)[2]
    await store.stop()
    store = await started(killed, new=False, name="a")
    assert 0 < store.waiting_ns <= left
    await store.stop()
    segment = max(killed.glob("*.seg"), key=lambda path: path.stat().st_size)
    octets = bytearray(segment.read_bytes())
    octets[len(octets) // 2] ^= 1
    segment.write_bytes(octets)
    store = await started(killed, new=False, name="a")
    assert store.waiting_ns > left
    await store.stop()


async def test_a_first_start_without_new_is_mended_by_a_start_with_it(tmp_path: Path) -> None:
    store = await started(tmp_path, new=False, name="a")
    assert "start it with --new" in store.reports[0]
    await store.stop()
    store = await started(tmp_path, new=False, name="a")
    assert store.waiting_ns > 0
    await store.stop()
    store = await started(tmp_path, new=True, name="a")
    assert (store.waiting_ns, store.machine.status.memory, store.reports) == (0, StoreMemory.NEW, [])
    await store.stop()


async def test_a_change_of_the_directory_keeps_the_declaration(tmp_path: Path) -> None:
    store = await started(tmp_path, new=True, name="a")
    reg_id = await sent(store, 3)
    await store.stop()
    await declarations.restore(tmp_path)
    before = declarations.recovery(tmp_path)
    await directory_changes.change(tmp_path, directory_changes.evict(reg_id))
    after = declarations.recovery(tmp_path)
    assert (after["starts"], after["next_start"]["waits"]) == (before["starts"], True)


async def test_a_replaced_disk_is_declared_once_and_only_when_it_is_empty(tmp_path: Path) -> None:
    directory = tmp_path / "disk"
    with pytest.raises(OperationError, match=r"^there is no directory .*: mount the new disk and make it"):
        await declarations.replace(directory)
    assert not directory.exists()
    directory.mkdir()
    await declarations.replace(directory)
    store = await started(directory, new=True, name="a")
    assert store.machine.status.memory is StoreMemory.LOST
    assert store.waiting_ns > 0
    await store.stop()
    with pytest.raises(OperationError, match="holds a journal"):
        await declarations.replace(directory)
    with pytest.raises(OperationError, match="there is no journal"):
        await declarations.restore(tmp_path)


def test_a_generation_is_outdated_if_another_one_is_as_new() -> None:
    first = following(NONE, 1)
    second = following(first, 1)
    assert (outdated(first, second), outdated(second, first), outdated(first, NONE)) == (True, False, False)
    assert outdated(second, following(first, 2))


@pytest.mark.parametrize("copied", [0, 1, 4])
def test_a_restored_copy_goes_on_after_the_generation_that_the_state_directory_knows(
    tmp_path: Path, copied: int
) -> None:
    """Whoever knows that one would otherwise take the store for an older copy once more."""
    reached = [0]
    here = StoreGeneration(tmp_path, "a")
    for _ in range(4):
        here.begin(reached[-1])
        here.note()
        reached.append(here.current)
    again = StoreGeneration(tmp_path, "a")
    assert again.begin(reached[copied]) == (copied == 1)
    assert not outdated(again.current, reached[-1])
    assert outdated(reached[-1], again.current)


def test_a_state_directory_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    here = StoreGeneration(tmp_path / "none", "a")
    assert not here.begin(NONE)
    here.note()
    assert directory_identity.generation(tmp_path / "none") == 0


async def test_a_copy_of_both_directories_is_noticed_by_what_another_store_knows(tmp_path: Path) -> None:
    """The first store holds messages 0..4 and is late. The copy and the store that was away decide nothing alone."""
    caches, states = ([tmp_path / f"{kind}{index}" for index in range(3)] for kind in ("cache", "state"))
    made(*caches, *states)

    async def serve(index: int, where: str = "127.0.0.1:0", new: bool = False) -> Store:
        config = StoreConfig(where, 1, repository=BRIEF)
        return await started(
            caches[index], where, config=config, new=new, name=str(index), state_directory=states[index]
        )

    stores = [await serve(index, new=True) for index in range(3)]
    where = [store.address for store in stores]
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=where)
        await source.send(b"0")
        await source.wait_stable_through(0)
        await until(lambda: all(store.machine.status.memory is StoreMemory.KEPT for store in stores))
    await stores[1].stop()
    for directory in (caches[1], states[1]):
        shutil.copytree(directory, tmp_path / "backup" / directory.name)
    stores[1] = await serve(1, where[1])
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=where)
        await until(lambda: known(stores[2], 1) == stores[1].generation.current)
        await stores[2].stop()
        for number in range(1, 5):
            await source.send(b"%d" % number)
        await source.wait_stable_through(4)
    for index in (0, 1):
        await stores[index].stop()
    for directory in (caches[1], states[1]):
        shutil.rmtree(directory)
        shutil.copytree(tmp_path / "backup" / directory.name, directory)
    stores[1:] = [await serve(1, where[1]), await serve(2, where[2])]
    assert (stores[1].reports, stores[1].machine.status.memory) == ([], StoreMemory.KEPT)
    async with Context(session_id=1) as context:
        events = Events()
        await context.source(TOPIC, stores=where, on_event=events, wait=False)
        await until(lambda: stores[1].events["OlderCopy"])
        assert stores[1].machine.status.memory is StoreMemory.LOST
        assert stores[1].waiting_ns > 0
        stores[0] = await serve(0, where[0])
        await until(lambda: events.of(RegistrationComplete))
        assert events.of(RegistrationComplete)[0].number == 5
        await until(lambda: all(held(store) == [(0, 5)] for store in stores))
    for store in stores:
        await store.stop()


def known(store: Store, index: int) -> int:
    (record,) = store.machine.status.clients.values()
    return next(entry.generation for entry in record.client.stores if entry.index == index)


def test_a_running_store_is_whole_only_when_its_sources_have_announced_themselves() -> None:
    """Before, it cannot know what it lacks."""
    store = {"name": "a", "address": "", "muted_for_ns": 0}
    whole, lacking = ({"reg_id": 7, "lacking": [0, count, 0], "refilled": 3} for count in (0, 2))
    found = [
        declarations.progress({**store, "muted_for_ns": SECOND}, [whole]),
        declarations.progress(store, []),
        declarations.progress(store, [lacking]),
        declarations.progress(store, [whole]),
    ]
    assert [one["whole"] for one in found] == [False, False, False, True]
    said = [declarations.progress_sentences(one)[-1] for one in found]
    assert [text.endswith(", nothing is lacking") for text in said] == [False, False, False, True]
    assert ["when its sources register again" in text for text in said] == [True, True, False, False]
