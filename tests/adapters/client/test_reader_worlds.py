"""A reader that follows in whole worlds: stores and the source crash, and it returns what stays under each number."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context, NotRegistered
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.testing.schedule import Strike
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

MESSAGES = 30


async def sell(stores: list[str], **context: Any) -> None:
    """Send messages that name the first number of this life, whether or not earlier ones are stable."""
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores)
        begin = source.next_number
        while source.next_number < MESSAGES:
            with suppress(NotRegistered):
                source.try_send(b"life from %d" % begin)
            await asyncio.sleep(0.05)
        await source.wait_stable_through(MESSAGES - 1)
        await asyncio.Event().wait()


async def read(stores: list[str], book: str, *, follow: bool, **context: Any) -> None:
    """Write number and payload of each message to a file."""
    until = MESSAGES if follow else None
    async with (
        Context(**context) as office,
        office.reader("orders", stores=stores, follow=follow, until=until, new=True) as reader,
    ):
        async for message in reader:
            enter(book, f"{message.number} {message.payload.decode()}\n")
    assert not reader.holes


def enter(book: str, line: str) -> None:
    with Path(book).open("a", encoding="utf-8") as file:
        file.write(line)


async def story(world: SimulatedWorld) -> None:
    """Run both programs until all is settled, and compare what the reader returned with what the stores hold."""
    world.start(sell, world.stores, host="shop", **world.context_of("shop"))
    world.start(read, world.stores, "book", host="office", follow=True, **world.context_of("office"))
    await world.settled()
    world.start(read, world.stores, "held", host="judge", follow=False, **world.context_of("judge"))
    await world.settled()
    held = world.read("judge", "held").decode().splitlines()
    assert len(held) == MESSAGES
    assert world.read("office", "book").decode().splitlines() == held


@pytest.mark.parametrize(
    ("seed", "strikes"),
    [
        (1, ()),
        # Found by a search: one store knew the first messages when the reader began, and the source died.
        (52, (Strike("crash", "shop", turn=21, span=MILLISECOND),)),
        # Two stores die, the source goes on for a while and dies, and they return without the third one.
        (
            1,
            (
                Strike("crash", "store1", at=500 * MILLISECOND, span=1500 * MILLISECOND),
                Strike("crash", "store2", at=500 * MILLISECOND, span=1500 * MILLISECOND),
                Strike("crash", "shop", at=900 * MILLISECOND, span=1200 * MILLISECOND),
                Strike("crash", "store0", at=1900 * MILLISECOND, span=6 * SECOND),
            ),
        ),
    ],
)
def test_a_reader_returns_what_stays_under_each_number(seed: int, strikes: tuple[Strike, ...]) -> None:
    outcome = run_world(WorldSetting(stores=3), story, seed, strikes)
    if outcome.failure is not None:
        raise outcome.failure.error
