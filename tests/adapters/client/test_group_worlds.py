"""A group in whole worlds: members and stores crash, and each message is processed, once while nobody fails.

    python -m tests.adapters.client.test_group_worlds 100

runs that many seeds, with two faults each.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import SECOND
from stablecast.testing.schedule import Strike
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

Story = Callable[[SimulatedWorld], Coroutine[Any, Any, None]]
MEMBERS = ("ada", "leo", "mia")
MESSAGES = 60
SHARES = 6
BOOK = Path("book")
HOSTS = (*MEMBERS, "store0", "store1", "shop")
CLERKS = ("ada", "leo")
SLOW_SECONDS = 0.12
"""Time for one message: longer than one takes to come, so that a clerk nearly always has one in hand."""


async def sell(stores: list[str], **context: Any) -> None:
    """Send messages, one every tenth of a second."""
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores)
        for number in range(source.next_number, MESSAGES):
            await source.send(b"%d" % number)
            await asyncio.sleep(0.1)
        await asyncio.Event().wait()


async def book(**context: Any) -> None:
    """Write each message of this member's shares to a file."""
    async with Context(**context) as office:
        async for message in office.receiver("orders", group="billing", shares=SHARES):
            enter(message.payload.decode())


async def book_slowly(leave_after: int, **context: Any) -> None:
    """Take time over each message, and leave in order after so many; 0 stays."""
    async with Context(**context) as office, office.receiver("orders", group="billing", shares=SHARES) as member:
        count = 0
        async for message in member:
            await asyncio.sleep(SLOW_SECONDS)
            enter(message.payload.decode())
            count += 1
            if count == leave_after:
                message.consumed()
                break


def enter(line: str) -> None:
    with BOOK.open("a", encoding="ascii") as file:
        file.write(line + "\n")


async def story(world: SimulatedWorld) -> None:
    """Run three members, and judge what they wrote."""
    world.start(sell, world.stores, host="shop", **world.context_of("shop"))
    for host in MEMBERS:
        world.start(book, host=host, **world.context_of(host))
    await world.settled()
    assert set(booked(world)) == {str(number) for number in range(MESSAGES)}


async def quiet_story(world: SimulatedWorld) -> None:
    """Run the story, and judge that each message was written once, because nothing failed."""
    await story(world)
    assert set(booked(world).values()) == {1}
    assert all(world.read(host, "book") for host in MEMBERS)


async def handover_story(world: SimulatedWorld) -> None:
    """Let a member leave while the other one has a message in hand, which then gets the shares of the first."""
    world.start(sell, world.stores, host="shop", **world.context_of("shop"))
    for host, leave_after in zip(CLERKS, (0, MESSAGES // 6), strict=True):
        world.start(book_slowly, leave_after, host=host, **world.context_of(host))
    await world.settled()
    assert booked(world) == {str(number): 1 for number in range(MESSAGES)}
    assert len(world.read("leo", "book").split()) == MESSAGES // 6


def booked(world: SimulatedWorld) -> Counter[str]:
    """Return how often each message was written."""
    return Counter(line for host in MEMBERS for line in world.read(host, "book").decode().split())


def survive(seed: int, strikes: tuple[Strike, ...], told: Story = quiet_story) -> None:
    """Run a world. Raises what its story raised."""
    outcome = run_world(WorldSetting(stores=3), story if strikes else told, seed, strikes)
    if outcome.failure is not None:
        raise outcome.failure.error


@pytest.mark.parametrize("host", [None, "ada"])
def test_each_message_is_processed(host: str | None) -> None:
    survive(1, () if host is None else (Strike("crash", host, at=3 * SECOND, span=2 * SECOND),))


@pytest.mark.parametrize("seed", range(3))
def test_a_member_with_a_message_in_hand_gets_a_share(seed: int) -> None:
    """Nobody fails. The new share took the other shares of the member for its own past, and skipped messages."""
    survive(seed, (), handover_story)


def main(seeds: int) -> None:
    for seed in range(seeds):
        drawn = Seeded(seed)
        strikes = tuple(
            Strike("crash", HOSTS[drawn.below(len(HOSTS))], at=drawn.below(8 * SECOND), span=drawn.below(4 * SECOND))
            for _ in range(2)
        )
        survive(seed, strikes)
        print(seed, [(strike.on, strike.at / SECOND, strike.span / SECOND) for strike in strikes], flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
