"""Changes to a directory whose store does not run."""

import asyncio
from pathlib import Path

import attrs
import pytest

from stablecast.core.protocol.effects import Client
from stablecast.ops.operations.directory_changes import change, drain, evict, evict_messages
from stablecast.ops.operations.directory_contents import read
from stablecast.ops.operations.target import OperationError
from stablecast.store.client_records import clients_of
from stablecast.store.journal import Journal, JournalError
from tests.adapters.ops.operations.store_directory import OTHER, READER, SOURCE, fill, kept, usual


def held(directory: Path, reg_id: int) -> list[tuple[int, int]]:
    return [(start, stop) for start, stop, _ in read(directory).index.pieces(reg_id)]


@pytest.mark.rows("P-584", "P-587")
async def test_a_source_goes_with_its_messages_and_receivers(tmp_path: Path) -> None:
    """As if it had deregistered."""
    directory = await kept(tmp_path)
    assert await change(directory, evict(1001)) == {"forgotten": [1001, 2001, 2002]}
    assert sorted(read(directory).clients) == [1002]
    assert held(directory, 1001) == []
    assert held(directory, 1002) == [(100, 103)]


async def test_a_receiver_goes_alone(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    assert await change(directory, evict(2002)) == {"forgotten": [2002]}
    assert sorted(read(directory).clients) == [1001, 1002, 2001]


async def test_messages_go_and_never_come_back(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    assert await change(directory, evict_messages(1001, 9)) == {"let_go": 7}
    assert held(directory, 1001) == [(9, 12)]
    assert await change(directory, evict_messages(1001, 4)) == {"let_go": 0}
    assert read(directory).index.trails[1001].stop == 9


async def test_only_who_is_there_can_go(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    for what in (evict(5), evict_messages(5, 1)):
        with pytest.raises(OperationError, match="no client is registered as 5"):
            await change(directory, what)
    with pytest.raises(OperationError, match="name its source"):
        await change(directory, evict_messages(2001, 1))
    assert len(read(directory).clients) == 4


async def test_what_all_have_acknowledged_is_drained(tmp_path: Path) -> None:
    """The slower receiver needs 2 and on; nobody reads the quotes, so they stay."""
    directory = await kept(tmp_path)
    assert await change(directory, drain()) == {"let_go": 2, "remaining": {1001: 8}}
    assert held(directory, 1001) == [(2, 6), (8, 12)]
    assert held(directory, 1002) == [(100, 103)]
    assert await change(directory, evict(2002)) == {"forgotten": [2002]}
    assert await change(directory, drain()) == {"let_go": 3, "remaining": {1001: 5}}


async def test_a_source_that_all_have_read_is_empty(tmp_path: Path) -> None:
    directory = await fill(tmp_path, SOURCE, attrs.evolve(READER, acknowledged=11), then=usual)
    assert await change(directory, drain()) == {"let_go": 10, "remaining": {}}


async def test_a_source_without_receivers_keeps_everything(tmp_path: Path) -> None:
    directory = await fill(tmp_path, SOURCE, OTHER, then=usual)
    assert await change(directory, drain()) == {"let_go": 0, "remaining": {}}


async def test_a_running_store_is_left_alone(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    try:
        with pytest.raises(JournalError, match="in use by process"):
            await change(tmp_path, drain())
    finally:
        journal.abort()


async def test_nothing_is_half_done(tmp_path: Path) -> None:
    directory = await kept(tmp_path)

    def fail(_: Journal, clients: dict[int, Client]) -> dict[str, object]:
        raise OperationError(f"{len(clients)} clients, and no idea")

    with pytest.raises(OperationError, match="4 clients"):
        await change(directory, fail)
    reopened = Journal.open(directory)
    assert len(clients_of(reopened.recovered_states)) == 4
    reopened.abort()
    assert asyncio.get_running_loop().is_running()


async def test_a_damaged_directory_is_left_to_its_store(tmp_path: Path) -> None:
    """A change would hide the damage from the store, which would take part in decisions as if it had lost nothing."""
    directory = await kept(tmp_path)
    [path] = directory.glob("*.seg")
    path.write_bytes(path.read_bytes().replace(b"message 2", b"massage 2", 1))
    damaged = path.read_bytes()
    with pytest.raises(OperationError, match="start the store on it first"):
        await change(directory, drain())
    assert path.read_bytes() == damaged
