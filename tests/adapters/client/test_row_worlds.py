"""Documented behaviour whose trigger is silence, a start or an option, as programs see it in whole worlds."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.config.options import Value
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Confirmed, Event, QuorumLost, Reclaimed, StoreUnresponsive
from stablecast.testing import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

MESSAGES = 10
QUICK: dict[str, Value] = {"ume_activity_timeout": 4_000}
"""A store keeps a RegID for 30 s by default."""


def played(body: Callable[[SimulatedWorld], Coroutine[Any, Any, None]], stores: int = 1) -> None:
    """Play a story in a world without faults of its own."""
    outcome = run_world(WorldSetting(stores=stores), body, 1, ())
    if outcome.failure is not None:
        raise outcome.failure.error


async def sell(
    addresses: list[str], options: dict[str, Value], began: list[tuple[int, float]], told: list[Event], **context: Any
) -> None:
    """Say with which number the source begins, and when; send until all is stable, and stay."""
    async with Context(session_id=1, **context) as own:
        source = await own.source("orders", stores=addresses, options=options, on_event=told.append)
        began.append((source.next_number, asyncio.get_running_loop().time()))
        last = await source.send_many([b"x"] * MESSAGES)
        assert last is not None
        await source.wait_stable_through(last)
        await asyncio.Event().wait()


async def book(session_id: int, got: list[int], start: Callable[[AskLow], int] | None = None, **context: Any) -> None:
    """Receive for ever, without a word about stores."""
    async with Context(session_id=session_id, **context) as own:
        async for message in own.receiver("orders", start_at=start):
            got.append(message.number)  # noqa: PERF401  # the test looks at it meanwhile


@pytest.mark.rows("P-232", "P-322", "P-328", "P-329")
def test_a_quorum_and_two_receivers_release_what_a_store_never_acknowledged() -> None:
    """One store is away; receivers know no store; the second receiver that confirms lets the copies go."""
    began: list[tuple[int, float]] = []
    told: list[Event] = []
    first: list[int] = []
    second: list[int] = []
    options: dict[str, Value] = {"ume_retention_unique_confirmations": 2, "ume_confirmed_delivery_notification": 1}

    async def body(world: SimulatedWorld) -> None:
        world.crash("store2", down=None)
        world.start(sell, world.stores, options, began, told, host="shop", **world.context_of("shop"))
        world.start(book, 2, first, host="one", **world.context_of("one"))
        await world.until(lambda: sum(isinstance(one, Confirmed) for one in told))
        await asyncio.sleep(30)
        assert not [one for one in told if isinstance(one, Reclaimed)]
        world.start(book, 3, second, host="two", **world.context_of("two"))
        await world.until(lambda: [one for one in told if isinstance(one, Reclaimed) and not one.forced])

    played(body, 3)
    assert first == second == [*range(MESSAGES)]


@pytest.mark.rows("P-530", "P-531", "P-538")
def test_a_reg_id_is_free_when_the_clients_own_time_of_silence_is_over() -> None:
    """An idle source keeps it by signs of life. After a power cut another host gets it, and the numbers go on."""
    began: list[tuple[int, float]] = []
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, QUICK, began, told, host="shop", **world.context_of("shop"))
        await world.until(lambda: began)
        await asyncio.sleep(60)
        assert not [one for one in told if isinstance(one, StoreUnresponsive)]
        world.partition("shop", "store0")
        cut = asyncio.get_running_loop().time()
        world.start(sell, world.stores, QUICK, began, [], host="other", **world.context_of("other"))
        await world.until(lambda: len(began) == 2)
        waited = began[1][1] - cut
        assert QUICK["ume_activity_timeout"] == 4_000
        assert 2.5 < waited < 8

    played(body)
    assert [number for number, _ in began] == [0, MESSAGES]


@pytest.mark.rows("P-533", "P-534")
@pytest.mark.parametrize(("lifetime", "number"), [(0, MESSAGES), (8_000, 0)], ids=["for-ever", "of-the-source"])
def test_state_goes_after_the_shorter_lifetime(lifetime: int, number: int) -> None:
    """By default it stays for ever, with the messages of a receiver that is away."""
    began: list[tuple[int, float]] = []
    got: list[int] = []
    options = {**QUICK, **({"ume_state_lifetime": lifetime} if lifetime else {})}

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, options, began, [], host="shop", **world.context_of("shop"))
        await world.until(lambda: began)
        await asyncio.sleep(5)
        world.crash("shop", down=60.0, power=True)
        await world.until(lambda: len(began) == 2)
        world.start(book, 2, got, host="desk", **world.context_of("desk"))
        await world.until(lambda: len(got) >= MESSAGES + number)

    played(body)
    assert [one for one, _ in began] == [0, number]


@pytest.mark.rows("P-419", "P-420")
def test_an_application_moves_the_start_of_a_new_receiver() -> None:
    """Forward, past what the stores have for it."""
    began: list[tuple[int, float]] = []
    got: list[int] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, {}, began, [], host="shop", **world.context_of("shop"))
        await world.until(lambda: began)
        await asyncio.sleep(2)
        world.start(book, 2, got, lambda _: MESSAGES - 3, host="desk", **world.context_of("desk"))
        await world.until(lambda: len(got) == 3)

    played(body)
    assert got == [*range(MESSAGES - 3, MESSAGES)]


async def sell_slowly(
    addresses: list[str], options: dict[str, Value], waited: list[float], told: list[Event], **context: Any
) -> None:
    """Send for ever, one message after the other; note how long each waits until it is stable."""
    async with Context(session_id=1, **context) as own:
        loop = asyncio.get_running_loop()
        source = await own.source("orders", stores=addresses, options=options, on_event=told.append)
        while True:
            begun = loop.time()
            await (await source.send(b"x")).stable()
            waited.append(loop.time() - begun)
            await asyncio.sleep(0.1)


@pytest.mark.rows("P-521", "P-524", "P-528", "P-602")
def test_a_frozen_store_is_reported_and_delays_all_active_shorter_than_its_silence() -> None:
    """It is told when it was silent for three seconds; messages become stable without it before."""
    waited: list[float] = []
    told: list[Event] = []
    options: dict[str, Value] = {"ume_retention_intragroup_stability_behavior": "all-active"}

    async def body(world: SimulatedWorld) -> None:
        world.start(sell_slowly, world.stores, options, waited, told, host="shop", **world.context_of("shop"))
        await world.until(lambda: len(waited) > 20)
        assert max(waited) < 0.5
        world.stop("store2")
        before = len(waited)
        await world.until(lambda: len(waited) > before + 3, limit=2.9)
        assert not [one for one in told if isinstance(one, StoreUnresponsive)]
        await world.until(lambda: [one for one in told if isinstance(one, StoreUnresponsive)], limit=3)

    played(body, 3)


@pytest.mark.rows("P-528", "P-336")
def test_with_a_single_store_its_silence_stops_sending_until_it_returns() -> None:
    waited: list[float] = []
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell_slowly, world.stores, {}, waited, told, host="shop", **world.context_of("shop"))
        await world.until(lambda: len(waited) > 3)
        world.stop("store0")
        await world.until(lambda: [one for one in told if isinstance(one, QuorumLost)], limit=10)
        before = len(waited)
        world.resume("store0")
        await world.until(lambda: len(waited) > before + 3, limit=10)

    played(body)


@pytest.mark.rows("P-429", "P-433")
def test_what_a_frozen_store_does_not_answer_another_one_does() -> None:
    """A receiver that comes late gets all, before the time for its recovery is over."""
    began: list[tuple[int, float]] = []
    got: list[int] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores, {}, began, [], host="shop", **world.context_of("shop"))
        await world.until(lambda: began)
        await asyncio.sleep(2)
        world.start(book, 2, got, host="desk", **world.context_of("desk"))
        world.stop("store0")
        await world.until(lambda: len(got) == MESSAGES, limit=9)

    played(body, 3)
    assert got == [*range(MESSAGES)]
