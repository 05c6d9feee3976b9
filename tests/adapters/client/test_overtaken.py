"""A receiver that returns after limits of its stores let go of what it missed, in whole worlds."""

import asyncio
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.core.protocol.events import Event, UnrecoverableLoss
from stablecast.testing import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

LIMITS = {"ume_repository_disk_file_size_limit": 200_000, "retransmit_retention_size_limit": 100_000}
"""Bytes: the stores keep the newest two seconds, and the source half of that."""
SIZE = 1_000
PAUSE_S = 0.01
AWAY_S = 10.0
SLACK = 50
"""Messages that may be on their way to a receiver that is live."""


async def sell(addresses: list[str], sent: list[int], **context: Any) -> None:
    async with Context(session_id=1, **context) as own:
        source = await own.source("orders", stores=addresses, options=LIMITS)
        while True:
            sent.append((await source.send(bytes(SIZE))).sequence_number)
            await asyncio.sleep(PAUSE_S)


async def book(got: list[int], told: list[Event], **context: Any) -> None:
    async with Context(session_id=2, **context) as own:
        async for message in own.receiver("orders", on_event=told.append):
            got.append(message.sequence_number)  # noqa: PERF401  # the test looks at it meanwhile


@pytest.mark.parametrize(("away", "patience"), [("", 1.0), ("store2", 15.0)], ids=["all", "one-is-away"])
def test_an_overtaken_receiver_is_soon_live_again(away: str, patience: float) -> None:
    """Without the denials of stores it gives up less in each give-up time than the source sends meanwhile."""
    got: list[int] = []
    sent: list[int] = []
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, sent, host="shop", **world.context_of("shop"))
        world.start(book, got, told, host="desk", **world.context_of("desk"))
        await world.until(lambda: len(got) > SLACK)
        if away:
            world.crash(away, down=None)
        world.crash("desk", down=AWAY_S)
        await asyncio.sleep(AWAY_S)
        await world.until(lambda: got[-1] > sent[-1] - SLACK, limit=patience)

    outcome = run_world(WorldSetting(stores=3), body, 1, ())
    assert outcome.failure is None
    missed = [one for one in told if isinstance(one, UnrecoverableLoss)]
    assert 1 <= len(missed) <= 3  # Some of what was there may be gone when it is asked for.
    lost = {number for one in missed for number in range(one.first, one.last + 1)}
    assert {*range(sent[-1] - SLACK)} <= lost.union(got)
    assert len(lost) > SLACK
