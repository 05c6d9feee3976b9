"""The worker of the handbook, which books into a database in a file, in worlds that crash."""

import asyncio
import sqlite3
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.testing import SimulatedWorld
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.timeline import PLACE
from stablecast.testing.world_run import EAGER, WorldSetting, run_world

ORDERS = 8


async def sell(stores: list[str], **context: Any) -> None:
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores)
        for number in range(ORDERS):
            await source.send(b"order %d" % number)
            await asyncio.sleep(0.2)
        await asyncio.Event().wait()


async def book(early: float | None, **context: Any) -> None:
    """Book orders as they come; with `early`, acknowledge each so many seconds before it is committed."""
    ledger = sqlite3.connect("ledger.db")
    ledger.execute("CREATE TABLE IF NOT EXISTS booked (key TEXT PRIMARY KEY, text TEXT)")
    async with Context(**context, session_id=2) as office:
        async for message in office.receiver("orders"):
            if early is not None:
                message.ack()
                await asyncio.sleep(early)
            with ledger:
                ledger.execute("INSERT OR IGNORE INTO booked VALUES (?, ?)", (message.key, message.payload.decode()))


async def look() -> list[str]:
    """Return what is booked, as another program finds it."""
    with sqlite3.connect("ledger.db") as ledger:
        return [text for (text,) in ledger.execute("SELECT text FROM booked ORDER BY rowid")]


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("early", [None, 0.2], ids=["right", "early"])
def test_a_ledger_in_a_file_survives_what_its_program_does_not(early: float | None, power: bool) -> None:
    """What was committed is there; what was acknowledged before is missed, which is the fault of that program."""

    found: list[str] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, host="shop", **world.context_of("shop"))
        world.start(book, early, host="office", **world.context_of("office"))
        await world.until(lambda: world.time() > 0.75)
        world.crash("office", power=power)
        await world.settled()
        found.extend(await world.start(look, host="office").wait())

    outcome = run_world(WorldSetting(stores=3), body, 1, ())
    assert outcome.failure is None
    assert (found == [f"order {number}" for number in range(ORDERS)]) is (early is None)


@pytest.mark.parametrize("seed", [4 * EAGER, EAGER + 1])
def test_an_acknowledgement_before_the_commit_is_found_without_a_delay(seed: int) -> None:
    """In the worlds that acknowledge at once. The report names the struck line, and the message that was lost."""

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, host="shop", **world.context_of("shop"))
        world.start(book, 0.0, host="office", **world.context_of("office"))
        await world.settled()
        assert len(await world.start(look, host="office").wait()) == ORDERS

    lost = []
    for turn in range(16, 48):
        strikes = [Strike("crash", on="office", turn=turn, span=MILLISECOND)]
        outcome = run_world(WorldSetting(stores=1), body, seed, strikes)
        if outcome.failure is not None:
            lost.append(([one.text for one in outcome.timeline.happenings if one.kind == PLACE], outcome.fates))
    assert bool(lost) is (seed == 4 * EAGER)
    for (line,), (fate, *_) in lost:
        assert "it struck test_databases.py:" in line
        assert " in book" in line
        assert "was acknowledged by test_databases.py:" in fate
        assert "and was never handed out again" in fate
