"""Documented behaviour whose trigger is silence, a start or an option, as programs see it in whole worlds."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stablecast.cli.resolution_daemons import serve_srs
from stablecast.client import Context, NotStable
from stablecast.config.options import Value
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Confirmed, Event, QuorumLost, Reclaimed, StoreUnresponsive
from stablecast.evidence.trace.frames import frames_from
from stablecast.lab.world.programs import SERVICE_PORT
from stablecast.lab.world.world import World
from stablecast.resolver.srs import SrsConfig
from stablecast.runtime.event_loop import run_service
from stablecast.testing import SimulatedWorld
from stablecast.testing.exploration import write_traces
from stablecast.testing.world_run import Outcome, WorldSetting, run_world

MESSAGES = 10
QUICK: dict[str, Value] = {"ume_activity_timeout": 4_000}
"""A store keeps a RegID for 30 s by default."""

Began = list[tuple[int, float]]
"""The numbers with which the lives of a source begin, and when they do."""


def played(
    body: Callable[[SimulatedWorld], Coroutine[Any, Any, None]], stores: int = 1, *options: str, traced: bool = False
) -> Outcome:
    """Play a story in a world without faults of its own, with options of the stores."""
    outcome = run_world(WorldSetting(stores=stores, options=options, traced=traced), body, 1, ())
    if outcome.failure is not None:
        raise outcome.failure.error
    return outcome


async def sell(
    addresses: Sequence[str], options: dict[str, Value], began: Began, told: list[Event], **context: Any
) -> None:
    """Say with which number the source begins, and when; send until all is stable, and stay."""
    async with Context(session_id=1, **context) as own:
        source = await own.source("orders", stores=addresses, options=options, on_event=told.append)
        began.append((source.next_number, asyncio.get_running_loop().time()))
        last = await source.send_many([b"x"] * MESSAGES)
        assert last is not None
        with suppress(NotStable):
            await source.wait_stable_through(last)
        await asyncio.Event().wait()


async def selling(
    world: SimulatedWorld,
    options: dict[str, Value],
    told: list[Event] | None = None,
    where: Sequence[str] | None = None,
) -> Began:
    """Start that program, and wait until it sends."""
    began: Began = []
    told = [] if told is None else told
    given = world.stores if where is None else where
    world.start(sell, given, options, began, told, host="shop", **world.context_of("shop"))
    await world.until(lambda: began)
    return began


async def book(session_id: int, got: list[int], start: Callable[[AskLow], int] | None = None, **context: Any) -> None:
    """Receive for ever, without a word about stores."""
    async with Context(session_id=session_id, **context) as own:
        async for message in own.receiver("orders", start_at=start):
            got.append(message.number)  # noqa: PERF401  # the test looks at it meanwhile


def booking(
    world: SimulatedWorld, host: str, session_id: int, start: Callable[[AskLow], int] | None = None
) -> list[int]:
    """Start that program, and return the numbers that it gets."""
    got: list[int] = []
    world.start(book, session_id, got, start, host=host, **world.context_of(host))
    return got


@pytest.mark.rows("P-232", "P-322", "P-328", "P-329")
def test_a_quorum_and_two_receivers_release_what_a_store_never_acknowledged() -> None:
    """One store is away; receivers know no store; the second receiver that confirms lets the copies go."""
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        world.crash("store2", down=None)
        await selling(world, {"ume_retention_unique_confirmations": 2, "ume_confirmed_delivery_notification": 1}, told)
        first = booking(world, "one", 2)
        await world.until(lambda: sum(isinstance(one, Confirmed) for one in told))
        await asyncio.sleep(30)
        assert not [one for one in told if isinstance(one, Reclaimed)]
        second = booking(world, "two", 3)
        await world.until(lambda: [one for one in told if isinstance(one, Reclaimed) and not one.forced])
        assert first == second == [*range(MESSAGES)]

    played(body, 3)


@pytest.mark.rows("P-530", "P-531", "P-532", "P-538")
@pytest.mark.parametrize(("options", "shortest", "longest"), [(QUICK, 2.5, 8), ({}, 29, 36)], ids=["own", "default"])
def test_a_reg_id_is_free_when_a_clients_time_of_silence_is_over(
    options: dict[str, Value], shortest: float, longest: float
) -> None:
    """An idle source keeps it by signs of life. After a power cut another host gets it, and the numbers go on."""
    told: list[Event] = []

    async def body(world: SimulatedWorld) -> None:
        began = await selling(world, options, told)
        await asyncio.sleep(60)
        assert not [one for one in told if isinstance(one, StoreUnresponsive)]
        world.partition("shop", "store0")
        cut = asyncio.get_running_loop().time()
        await asyncio.sleep(shortest / 2)
        world.start(sell, world.stores, options, began, [], host="other", **world.context_of("other"))
        await world.until(lambda: len(began) == 2)
        assert shortest < began[1][1] - cut < longest
        assert [number for number, _ in began] == [0, MESSAGES]

    played(body)


@pytest.mark.rows("P-533", "P-534", "P-535")
@pytest.mark.parametrize(
    ("store", "lifetime", "number"),
    [((), 0, MESSAGES), ((), 8_000, 0), (("source-state-lifetime=0",), 0, 0)],
    ids=["for-ever", "of-the-source", "none"],
)
def test_state_goes_after_the_shorter_lifetime(store: tuple[str, ...], lifetime: int, number: int) -> None:
    """By default it stays for ever, with the messages of a receiver that is away; without one it goes at once."""

    async def body(world: SimulatedWorld) -> None:
        began = await selling(world, {**QUICK, "ume_state_lifetime": lifetime})
        await asyncio.sleep(5)
        world.crash("shop", down=60.0, power=True)
        await world.until(lambda: len(began) == 2)
        assert [one for one, _ in began] == [0, number]
        got = booking(world, "desk", 2)
        await world.until(lambda: len(got) >= MESSAGES + number)

    played(body, 1, *store)


@pytest.mark.rows("P-540", "P-547", "P-548")
def test_a_store_stands_in_for_a_silent_source_and_another_one_for_that_store() -> None:
    """A receiver that never heard of the source gets all, from whichever store runs the proxy."""

    async def body(world: SimulatedWorld) -> None:
        await selling(world, {**QUICK, "ume_proxy_source": 1})
        await asyncio.sleep(2)
        world.crash("shop", down=None)
        await asyncio.sleep(30)
        got: dict[int, list[int]] = {}
        for number in range(3):
            world.crash(f"store{number}", down=None)
            got[number] = booking(world, f"desk{number}", 2 + number)
            await world.until(lambda: [len(one) for one in got.values()] == [MESSAGES] * len(got), limit=60)
            world.restart(f"store{number}")
            await asyncio.sleep(5)

    played(body, 3, "allow-proxy-source=1")


@pytest.mark.rows("P-419", "P-420")
def test_an_application_moves_the_start_of_a_new_receiver() -> None:
    """Forward, past what the stores have for it."""

    async def body(world: SimulatedWorld) -> None:
        await selling(world, {})
        await asyncio.sleep(2)
        got = booking(world, "desk", 2, lambda _: MESSAGES - 3)
        await world.until(lambda: len(got) == 3)
        assert got == [*range(MESSAGES - 3, MESSAGES)]

    played(body)


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

    async def body(world: SimulatedWorld) -> None:
        await selling(world, {})
        await asyncio.sleep(2)
        got = booking(world, "desk", 2)
        world.stop("store0")
        await world.until(lambda: len(got) == MESSAGES, limit=9)
        assert got == [*range(MESSAGES)]

    played(body, 3)


def effects_of_the_source(outcome: Outcome, directory: Path, kind: str) -> list[int]:
    """Return when the source said something of a kind, in ns, as its trace has it."""
    write_traces(outcome, directory)
    frames = [frame for path in directory.glob("shop-source-*") for frame, _ in frames_from(path)]
    records = [record for frame in frames for record in frame.records]
    return [record["t"] for record in records for effect in record["out"] if kind in str(effect)]


@pytest.mark.rows("P-324", "P-437", "P-438", "P-439")
@pytest.mark.parametrize(("timeout", "resent"), [(500, True), (0, False)], ids=["again", "never"])
def test_a_message_is_sent_again_until_its_lifetime_ends(timeout: int, resent: bool, tmp_path: Path) -> None:
    """The store is slower than that."""
    told: list[Event] = []
    options: dict[str, Value] = {"ume_message_stability_timeout": timeout, "ume_message_stability_lifetime": 3_000}

    async def body(world: SimulatedWorld) -> None:
        world.disk("store0").slow(5_000)
        [(_, began)] = await selling(world, options, told)
        await world.until(lambda: [one for one in told if isinstance(one, Reclaimed) and one.forced])
        assert 2.9 < asyncio.get_running_loop().time() - began < 4

    again = effects_of_the_source(played(body, traced=True), tmp_path, "Resend")
    assert len(again) > 3 if resent else not again


@pytest.mark.rows("P-221")
def test_a_source_repeats_its_stores_as_its_options_say(tmp_path: Path) -> None:
    options: dict[str, Value] = {"ume_sri_max_number_of_sri_per_update": 3, "ume_sri_inter_sri_interval": 200}

    async def body(world: SimulatedWorld) -> None:
        await selling(world, options)
        await asyncio.sleep(5)

    told = effects_of_the_source(played(body, traced=True), tmp_path, "SourceInfo")
    assert [(later - one) // MILLISECOND for one, later in pairwise(told)] == [200] * 2


async def sell_paced(stores: list[str], **context: Any) -> None:
    """Send what receivers must consume before a store lets go of it, when the first one of them has come."""
    async with Context(session_id=1, **context) as own:
        options: dict[str, Value] = {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 100_000}
        source = await own.source("orders", stores=stores, options=options)
        await asyncio.sleep(5)
        await source.send_many([b"x"] * MESSAGES)
        await asyncio.Event().wait()


async def book_paced(session_id: int, got: list[int], lifetime: int, **context: Any) -> None:
    """Receive for ever; the first life stays at a message, and acknowledges those before it."""
    again = bool(got)
    options: dict[str, Value] = {"ume_receiver_paced_persistence": 1, "ume_activity_timeout": 4_000}
    async with Context(session_id=session_id, **context) as own:
        async for message in own.receiver("orders", options={**options, "ume_state_lifetime": lifetime}):
            got.append(message.number)
            await asyncio.sleep(1 if again or len(got) < CONSUMED else LONG)


CONSUMED = 6
LONG = 3_600


@pytest.mark.rows("P-536", "P-537", "P-563", "P-564")
@pytest.mark.parametrize("lifetime", [0, 8_000], ids=["for-ever", "its-own"])
def test_a_paced_store_keeps_what_an_absent_receiver_lacks_for_its_lifetime(lifetime: int) -> None:
    """A receiver that comes later starts at the first message that somebody lacks."""

    async def body(world: SimulatedWorld) -> None:
        got: list[int] = []
        late: list[int] = []
        world.start(sell_paced, world.stores, host="shop", **world.context_of("shop"))
        world.start(book_paced, 2, got, lifetime, host="desk", **world.context_of("desk"))
        await world.until(lambda: len(got) == CONSUMED)
        world.crash("desk", down=60.0, power=True)
        await asyncio.sleep(30)
        world.start(book_paced, 3, late, lifetime, host="other", **world.context_of("other"))
        await asyncio.sleep(60)
        left = [] if lifetime else [*range(CONSUMED - 1, MESSAGES)]
        assert got == [*range(CONSUMED), *left]
        assert late == left

    played(body, 1, "repository-allow-receiver-paced-persistence=1")


@pytest.mark.rows("T-413", "T-415", "T-416")
def test_a_service_forgets_what_a_dead_context_wanted_sooner_than_what_it_offered() -> None:
    """Interest and sources have a lifetime each, which begin when the host is gone. The service prints both."""
    world = World(1)
    service = world.host("service").address
    settings = SrsConfig(
        interface=service, publishing_interval=1_000, source_state_lifetime=120, interest_state_lifetime=60
    )

    async def wish_and_offer() -> None:
        async with Context(resolver_service=[f"{service}:{SERVICE_PORT}"], interface=world.host("desk").address) as own:
            await own.source("offered", stores=[f"{service}:1"], wait=False)
            async for _ in own.receiver("wanted"):
                pass

    process = world.call(lambda: run_service(serve_srs(settings, as_json=False)), "service")
    desk = world.start(wish_and_offer, "desk")

    def known() -> tuple[int, int]:
        all_of_them: dict[str, int] = {}
        for line in process.output:
            all_of_them |= json.loads(line.partition("statistics ")[2] or "{}")
        return all_of_them.get("topics_wanted", 0), all_of_them.get("sources", 0)

    async def watch() -> list[tuple[int, int]]:
        await asyncio.sleep(20)
        seen = [known()]
        desk.kill()
        for _ in range(3):
            await asyncio.sleep(50)
            seen.append(known())
        return seen

    assert world.run(watch) == [(1, 1), (1, 1), (0, 1), (0, 0)]


async def sell_three(addresses: list[str], away: list[bool], **context: Any) -> None:
    """Send three messages until they are stable, and three more as soon as the store is away."""
    async with Context(session_id=1, **context) as own:
        source = await own.source("orders", stores=addresses)
        await source.send_many([b"x"] * 3)
        await source.wait_stable_through(source.next_number - 1)
        while not away:  # noqa: ASYNC110  # the test runs in another loop
            await asyncio.sleep(0.01)
        await source.send_many([b"x"] * 3)
        await asyncio.Event().wait()


async def note(got: list[tuple[str, int, str]], **context: Any) -> None:
    async with Context(session_id=2, **context) as own:
        async for message in own.receiver("orders"):
            got.append((message.source, message.number, message.key))  # noqa: PERF401  # the test looks at it meanwhile


def test_only_its_key_tells_a_message_from_one_that_never_became_stable() -> None:
    """A receiver gets messages that no store has, and the next life of their source uses their numbers again."""
    away: list[bool] = []
    got: list[tuple[str, int, str]] = []

    async def body(world: SimulatedWorld) -> None:
        world.start(note, got, host="desk", **world.context_of("desk"))
        world.start(sell_three, world.stores, away, host="shop", **world.context_of("shop"))
        await world.until(lambda: len(got) == 3)
        away.append(True)
        world.crash("store0", down=None)
        await world.until(lambda: len(got) == 6)
        world.crash("shop")
        away.clear()
        world.restart("store0")
        await world.until(lambda: len(got) == 9)

    played(body)
    assert [number for _, number, _ in got] == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert len({source for source, _, _ in got}) == 1
    assert len({key for _, _, key in got}) == 9
