"""A store whose disk was replaced, through running stores and a client (formal design, 7.11)."""

from pathlib import Path

from stablecast.client import Context
from stablecast.core.protocol.events import RegistrationComplete, RegistrationError
from stablecast.core.protocol.messages import StoreMemory
from stablecast.store.store import Store
from tests.adapters.store.test_store import TOPIC, started, until
from tests.support.network import Events


def parts(tmp_path: Path, *names: str) -> list[Path]:
    directories = [tmp_path / name for name in names]
    for directory in directories:
        directory.mkdir()
    return directories


async def test_a_new_disk_does_not_decide_where_a_source_begins(tmp_path: Path) -> None:
    """Even with `--new`: the other store that answers kept its disk, and it was away while the messages were sent."""
    first, second, third, replaced = parts(tmp_path, "first", "second", "third", "replaced")
    stores: list[Store] = [await started(directory, new=True) for directory in (first, second, third)]
    where = [store.address for store in stores]
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=where)
        await until(lambda: all(store.machine.status.memory is StoreMemory.KEPT for store in stores))
        await stores[2].stop()
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=where)
        for number in range(5):
            await source.send(b"%d" % number)
        await source.wait_stable_through(4)
    for store in stores[:2]:
        await store.stop()
    stores = [await started(replaced, where[1], new=True), await started(third, where[2])]
    assert [store.machine.status.memory for store in stores] == [StoreMemory.NEW, StoreMemory.KEPT]
    async with Context(session_id=1) as context:
        events = Events()
        await context.source(TOPIC, stores=where, on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
        (error,) = events.of(RegistrationError)
        assert error.text.endswith(f"waiting for store 0 [{where[0]}]")
        assert not events.of(RegistrationComplete)
        stores.append(await started(first, where[0]))
        await until(lambda: events.of(RegistrationComplete))
        assert events.of(RegistrationComplete)[0].number == 5
    for store in stores:
        await store.stop()
