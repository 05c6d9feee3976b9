"""Whatever `send` accepts by default becomes stable and is recovered: limits of one size fit each other."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from stablecast.client import Context, MessageTooLarge
from stablecast.client.loop_sender import MAX_PAYLOAD
from stablecast.config.options import Value
from stablecast.core.protocol.events import Event, Reclaimed, UnrecoverableLoss
from stablecast.core.protocol.settings import FLIGHT_BYTES, RETAINED_BYTES
from stablecast.runtime.connection_pool import MAX_QUEUED_BYTES
from stablecast.testing import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world
from stablecast.transports.reliable.settings import MAX_SUBMITTED

Content = tuple[bytes, dict[str, str]]

DATAGRAM = 8116
"""Payload of the largest message over LBT-RM and LBT-RU that is not cut, by default."""
FAST = 1_000_000_000
OPTIONS: dict[str, dict[str, Value]] = {
    kind: {"transport": kind, **({} if kind == "tcp" else {f"transport_{kind}_data_rate_limit": FAST})}
    for kind in ("tcp", "lbtrm", "lbtru")
}
LARGEST = {"tcp": (MAX_PAYLOAD, FLIGHT_BYTES), "lbtrm": (DATAGRAM, MAX_SUBMITTED // 2)}
LARGEST["lbtru"] = LARGEST["lbtrm"]
"""By transport: payload that is not cut, and the largest message."""


async def sell(
    addresses: list[str],
    options: Mapping[str, Value],
    largest: int,
    parts: tuple[Sequence[Content], Sequence[Content]],
    told: list[Event],
    **context: Any,
) -> None:
    """Send messages one by one, and then a batch, until all are stable."""
    async with Context(session_id=1, **context) as own:
        source = await own.source("orders", stores=addresses, options=options, on_event=told.append)
        with pytest.raises(MessageTooLarge):
            await source.send(bytes(largest + 1))
        for content in parts[0]:
            await (await source.send(*content)).stable()
        with source.batch():
            numbers = [(await source.send(*content)).number for content in parts[1]]
        await source.wait_stable_through(numbers[-1])
        await asyncio.Event().wait()


async def book(got: list[Content], **context: Any) -> None:
    async with Context(session_id=2, **context) as own:
        async for message in own.receiver("orders"):
            told = {name: str(value) for name, value in message.properties.items()}
            got.append((message.payload, told))  # the test looks at it meanwhile


def carry(kind: str, stores: int, single: Sequence[Content], batch: Sequence[Content]) -> None:
    """Send, lose the power of a store, and receive late."""
    got: list[Content] = []
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(
            sell,
            world.stores,
            OPTIONS[kind],
            LARGEST[kind][1],
            (single, batch),
            told,
            host="shop",
            **world.context_of("shop"),
        )
        await world.settled()
        world.crash("store0", power=True)
        world.start(book, got, host="desk", **world.context_of("desk"))
        await world.until(lambda: len(got) == len(single) + len(batch))

    outcome = run_world(WorldSetting(stores=stores), body, 1, ())
    assert outcome.failure is None
    assert got == [*single, *batch]
    assert not [one for one in told if isinstance(one, Reclaimed) and one.forced]


@pytest.mark.parametrize("stores", [1, 3])
@pytest.mark.parametrize("kind", OPTIONS)
def test_sizes_beside_each_limit_of_a_datagram(kind: str, stores: int) -> None:
    """Plain and with properties, which a piece carries beside its payload."""
    chance, whole = Random(1), LARGEST[kind][0]
    sizes = [0, 1, *(whole * pieces + more for pieces in (1, 2) for more in range(-80, 81, 20)), whole - 1, whole + 1]
    contents = [chance.randbytes(size) for size in sizes]
    sent: list[Content] = [(one, told) for one in contents for told in ({}, {"customer": "n" * 40})]
    carry(kind, stores, sent, sent)


@pytest.mark.rows("P-327")
@pytest.mark.parametrize("kind", OPTIONS)
def test_a_flight_of_the_largest_messages_is_retained_until_it_is_stable(kind: str) -> None:
    """More than the source retains is on its way to a store: sends wait, and nothing is reclaimed by force."""
    whole, largest = LARGEST[kind]
    together: list[Content] = [(bytes([place % 256]) * whole, {}) for place in range(RETAINED_BYTES // whole + 10)]
    carry(kind, 1, [], [(bytes(largest), {}), *together, (bytes(largest), {})])


TOPICS = ("asia", "europe", "africa")


async def sell_widely(addresses: list[str], count: int, **context: Any) -> None:
    """Send messages of the size of a datagram on several topics, until all are stable."""
    async with Context(session_id=1, **context) as own:
        for topic in TOPICS:
            source = await own.source(topic, stores=addresses)
            await source.send_many([bytes(MAX_PAYLOAD)] * count)
            await source.wait_stable_through(count - 1)
        await asyncio.Event().wait()


async def book_widely(got: Counter[str], told: list[Event], **context: Any) -> None:
    """Receive all topics for ever."""

    async def book_one(own: Context, topic: str) -> None:
        async for _ in own.receiver(topic, on_event=told.append):
            got[topic] += 1

    async with Context(session_id=2, **context) as own:
        await asyncio.gather(*(book_one(own, topic) for topic in TOPICS))


def test_large_messages_of_several_topics_are_recovered_over_one_connection() -> None:
    """What all receivers of a context ask for exceeds the queue of their connection to the store."""
    count = 2 * MAX_QUEUED_BYTES // MAX_PAYLOAD // len(TOPICS) + 100
    got: Counter[str] = Counter()
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell_widely, world.stores, count, host="shop", **world.context_of("shop"))
        await world.settled()
        world.crash("store0", power=True)
        world.start(book_widely, got, told, host="desk", **world.context_of("desk"))
        await world.until(lambda: got.total() == count * len(TOPICS))

    outcome = run_world(WorldSetting(stores=1), body, 1, ())
    assert outcome.failure is None
    assert not [one for one in told if isinstance(one, UnrecoverableLoss)]
