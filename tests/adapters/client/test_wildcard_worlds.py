"""A wildcard receiver in whole worlds: programs and stores crash, and each message of each topic is consumed once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.core.machine.units import SECOND
from stablecast.testing.schedule import Strike
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

TOPICS = 3
MESSAGES = 10
BOOK = Path("book")


async def sell(stores: list[str], **context: Any) -> None:
    """Send messages of several topics, and start some topics late."""
    async with Context(**context, session_id=1) as shop:
        sources = []
        for topic in range(TOPICS):
            source = await shop.source(f"orders.{topic}", stores=stores)
            await source.send_many([b"%d" % number for number in range(source.next_number, MESSAGES)])
            sources.append(source)
            await asyncio.sleep(1)
        await asyncio.Event().wait()


async def book(**context: Any) -> None:
    """Write topic and payload of each message to a file."""
    async with Context(**context, session_id=2) as office:
        async for message in office.receiver(pattern="^orders[.]"):
            enter(f"{message.topic} {message.payload.decode()}")


def enter(line: str) -> None:
    """Append a line to the book, unless it is there."""
    BOOK.touch()
    if line not in BOOK.read_text(encoding="utf-8").splitlines():
        with BOOK.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


async def story(world: SimulatedWorld) -> None:
    """Run both programs until all is settled, and judge the book."""
    world.start(sell, world.stores, host="shop", **world.context_of("shop"))
    world.start(book, host="office", **world.context_of("office"))
    await world.settled()
    booked = world.read("office", "book").decode().splitlines()
    for topic in range(TOPICS):
        ours = [line for line in booked if line.startswith(f"orders.{topic} ")]
        assert ours == [f"orders.{topic} {number}" for number in range(MESSAGES)]


@pytest.mark.rows("M-005", "P-958")
@pytest.mark.parametrize("host", [None, "shop", "office", "store0"])
def test_each_message_of_each_topic_is_booked_once_and_in_order(host: str | None) -> None:
    strikes = () if host is None else (Strike("crash", host, at=2 * SECOND, span=SECOND),)
    outcome = run_world(WorldSetting(stores=3), story, 1, strikes)
    if outcome.failure is not None:
        raise outcome.failure.error
