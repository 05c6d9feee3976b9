"""Hot failover in whole worlds: two programs send the same quotes, hosts crash, and each quote is read once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import stablecast.testing
from stablecast.client import Context, NotRegistered
from stablecast.testing import SimulatedWorld, crash, partition, stop

QUOTES = 12
TAPE = Path("tape")
FAULTS = crash("one") | crash("other") | stop("one") | stop("other") | partition("one", "desk") | crash("store")


async def quote(stores: list[str], session_id: int, **context: Any) -> None:
    """Send all quotes under hot numbers; after a crash, continue with the first one that was not stable."""
    async with Context(**context, session_id=session_id) as program:
        source = await program.source("quotes", stores=stores, within=None)
        while (number := source.next_number) < QUOTES:
            try:
                await source.send(b"quote %d" % number, hot_number=number)
                await asyncio.sleep(0.2)
            except NotRegistered:
                await source.registered()
        await asyncio.Event().wait()


async def tape(**context: Any) -> None:
    """Write down the hot number of each quote that comes."""
    async with Context(**context, session_id=3) as desk:
        async for message in desk.receiver("quotes", hot_failover=True):
            assert message.payload == b"quote %d" % (message.hot_number or 0)
            write(f"{message.hot_number}\n")


def write(line: str) -> None:
    with TAPE.open("a", encoding="utf-8") as file:
        file.write(line)


@pytest.mark.rows("M-004")
@stablecast.testing.world(stores=2, seeds=15, faults=FAULTS)
async def test_each_quote_is_read_once(world: SimulatedWorld) -> None:
    """Each program has a store of its own. Whatever crashes, no quote is missing, and none comes twice."""
    for host, store, session_id in (("one", world.stores[0], 1), ("other", world.stores[1], 2)):
        world.start(quote, [store], session_id, host=host, **world.context_of(host))
    world.start(tape, host="desk", **world.context_of("desk"))
    await world.settled()
    numbers = [int(line) for line in world.read("desk", "tape").decode().split()]
    assert sorted(numbers) == list(range(QUOTES))
