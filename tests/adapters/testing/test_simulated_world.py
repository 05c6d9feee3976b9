"""The world of a test: programs, faults, notes, and the wait until all is settled."""

import asyncio
import gc
import os
import time
import warnings
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.lab.world.kernel import WorldError
from stablecast.lab.world.world import prepared
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.simulated_world import NotSettledError, SimulatedWorld
from stablecast.testing.timeline import ERROR, FAULT, NOTE, OUTPUT, PROGRAM
from stablecast.testing.world_run import Outcome, WorldSetting, run_world

BARE = WorldSetting(stores=0)


def run(
    body: Callable[[SimulatedWorld], Coroutine[Any, Any, Any]],
    *strikes: Strike,
    seed: int = 1,
    setting: WorldSetting = BARE,
) -> Outcome:
    outcome = run_world(setting, body, seed, strikes)
    if outcome.failure is not None:
        raise outcome.failure.error
    return outcome


def texts(outcome: Outcome, kind: str) -> list[str]:
    return [one.text for one in outcome.timeline.happenings if one.kind == kind]


ORDERS = [b"order %d" % number for number in range(20)]


async def sell(stores: list[str], context: dict[str, Any]) -> None:
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores, within=None)
        for order in ORDERS[source.next_number :]:
            await source.send(order)
            await asyncio.sleep(0.5)
        await forever()


async def book(context: dict[str, Any]) -> None:
    async with Context(**context, session_id=2) as office:
        async for message in office.receiver("orders"):
            print(message.payload.decode())


@pytest.mark.parametrize("store", ["store0", "office"])
def test_two_domains_meet_at_a_router_which_may_crash(store: str) -> None:
    """The store is near the shop or with the office, and hosts of two domains never reach each other."""

    async def body(world: SimulatedWorld) -> None:
        world.start(sell, world.stores_of("shop"), world.context_of("shop"), host="shop")
        office = world.start(book, world.context_of("office"), host="office")
        await world.settled()
        assert {line.encode() for line in office.output} >= {*ORDERS}
        assert world.stores == world.stores_of("shop") != world.stores_of("office")
        assert not world.injector._network.passes(world.address("shop"), world.address("office"))

    far = ("office", "store0") if store == "office" else ("office",)
    setting = WorldSetting(stores=1, far=far)
    outcome = run(body, Strike("crash", "router", at=3_000 * MILLISECOND, span=2_000 * MILLISECOND), setting=setting)
    assert any("router starts again" in text for text in texts(outcome, PROGRAM))


async def forever() -> None:
    await asyncio.Event().wait()


def test_a_program_returns_its_result() -> None:
    async def add(one: int, other: int) -> int:
        await asyncio.sleep(1)
        return one + other

    async def body(world: SimulatedWorld) -> None:
        program = world.start(add, 1, other=2)
        assert await program.wait() == 3
        assert program.ended
        assert 1 <= world.time() < 1.01

    assert texts(run(body), PROGRAM) == ["add starts", "add returns 3"]


def test_a_crash_runs_no_finally_clause_and_starts_the_program_again() -> None:
    seen: list[str] = []

    async def main() -> None:
        seen.append("begin")
        try:
            await forever()
        finally:
            seen.append("finally")

    async def body(world: SimulatedWorld) -> None:
        program = world.start(main)
        await asyncio.sleep(1)
        world.crash("app", down=0.5)
        assert [one.is_running for one in world.programs] == [False]
        await asyncio.sleep(1)
        assert [one.is_running for one in world.programs] == [True]
        assert program.starts == 2
        assert seen == ["begin", "begin"]

    outcome = run(body)
    assert texts(outcome, FAULT) == ["crash (kill -9) for 500.000 ms"]
    assert texts(outcome, PROGRAM) == ["main starts", "main starts again (start 2)"]


def test_a_crash_without_end_lasts_until_restart() -> None:
    async def body(world: SimulatedWorld) -> None:
        program = world.start(forever)
        await asyncio.sleep(1)
        world.crash("app", down=None)
        await asyncio.sleep(100)
        assert program.starts == 1
        world.restart("app")
        assert program.starts == 2

    run(body)


def test_a_stopped_program_continues() -> None:
    ticks: list[float] = []

    async def main(world: SimulatedWorld) -> None:
        while True:
            await asyncio.sleep(0.1)
            ticks.append(world.time())

    async def body(world: SimulatedWorld) -> None:
        world.start(main, world)
        await asyncio.sleep(1)
        world.stop("app")
        await asyncio.sleep(5)
        world.resume("app")
        await asyncio.sleep(1)
        assert not [tick for tick in ticks if 1.1 < tick < 5.9]
        assert [tick for tick in ticks if tick > 6]

    run(body)


def test_files_survive_a_crash_and_lose_unsynced_bytes_without_power() -> None:
    def keep(sync: bool) -> bytes:
        book = Path("/book")
        if book.exists():
            return book.read_bytes()
        with book.open("wb", buffering=0) as file:
            file.write(b"x" * 100_000)
            if sync:
                os.fsync(file.fileno())
                os.fsync(os.open("/", os.O_RDONLY))
        return b""

    async def main(sync: bool) -> bytes:
        found = keep(sync)
        if not found:
            await forever()
        return found

    def left(*, sync: bool, power: bool, seed: int) -> int:
        found: list[int] = []

        async def body(world: SimulatedWorld) -> None:
            program = world.start(main, sync)
            await asyncio.sleep(1)
            world.crash("app", power=power)
            await asyncio.sleep(5)
            found.append(len(program.result or b""))

        run(body, seed=seed)
        return found[0]

    assert left(sync=False, power=False, seed=1) == 100_000
    assert left(sync=True, power=True, seed=1) == 100_000
    assert min(left(sync=False, power=True, seed=seed) for seed in range(10)) < 100_000


def test_an_uncaught_exception_fails_the_test_with_its_program() -> None:
    async def main() -> None:
        raise ValueError("wrong")

    async def body(world: SimulatedWorld) -> None:
        world.start(main)
        await world.settled()

    outcome = run_world(BARE, body, 1, ())
    assert outcome.failure is not None
    assert outcome.failure.program == "main on app"
    assert isinstance(outcome.failure.error, ValueError)
    assert texts(outcome, ERROR) == ["main fails: ValueError: wrong"]


def test_a_program_that_may_fail_starts_again() -> None:
    lives: list[int] = []

    async def main() -> None:
        lives.append(1)
        if len(lives) < 3:
            raise ValueError("wrong")

    async def body(world: SimulatedWorld) -> None:
        await world.start(main, may_fail=True).wait()
        assert len(lives) == 3

    run(body)


def test_an_error_that_nobody_handles_is_shown() -> None:
    async def lost() -> None:
        raise ValueError("lost")

    async def main() -> None:
        task = asyncio.create_task(lost())
        await asyncio.sleep(1)
        del task

    async def body(world: SimulatedWorld) -> None:
        await world.start(main).wait()

    assert texts(run(body), ERROR) == ["Task exception was never retrieved: ValueError: lost"]


def test_settled_carries_out_the_schedule() -> None:
    async def body(world: SimulatedWorld) -> None:
        program = world.start(forever)
        await world.settled()
        assert program.starts == 3
        assert world.time() > 30

    strikes = (
        Strike("crash", "app", at=100 * MILLISECOND, span=MILLISECOND),
        Strike("crash", "app", at=20_000 * MILLISECOND, span=MILLISECOND),
    )
    assert list(run(body, *strikes).struck) == list(strikes)


def test_settled_waits_while_files_change() -> None:
    def write() -> None:
        Path("/book").write_text("x", encoding="utf-8")

    async def main() -> None:
        for _ in range(30):
            await asyncio.sleep(3)
            write()

    async def body(world: SimulatedWorld) -> None:
        world.start(main)
        await world.settled(quiet=5)
        assert world.time() > 90

    run(body)


def test_a_world_that_never_settles_is_reported() -> None:
    async def main(world: SimulatedWorld) -> None:
        while True:
            await asyncio.sleep(1)
            world.note("tick")

    async def body(world: SimulatedWorld) -> None:
        world.start(main, world)
        await world.settled(limit=60)

    with pytest.raises(
        NotSettledError, match=r"did not settle within 60 s .*last entry of the timeline is 'tick' of app"
    ):
        run(body)


def test_a_fault_without_end_is_reported() -> None:
    async def body(world: SimulatedWorld) -> None:
        world.start(forever)
        world.start(forever, host="other")
        world.partition("app", "other")
        await world.settled(limit=60)

    with pytest.raises(NotSettledError, match="partition of app - other at 0 ms lasts"):
        run(body)


def test_until_waits_for_a_condition() -> None:
    found: list[int] = []

    async def main() -> None:
        await asyncio.sleep(20)
        found.append(1)

    async def body(world: SimulatedWorld) -> None:
        world.start(main)
        await world.until(lambda: found)
        with pytest.raises(NotSettledError, match=r"test_simulated_world.py:\d+ did not hold within 3 s"):
            await world.until(lambda: len(found) > 1, limit=3)

    run(body)


def test_a_restored_disk_is_as_it_was() -> None:
    keep = Path("/book").write_text

    async def main(world: SimulatedWorld) -> None:
        while True:
            keep(f"{world.time():.0f}")
            await asyncio.sleep(1)

    async def body(world: SimulatedWorld) -> None:
        program = world.start(main, world)
        await asyncio.sleep(2.5)
        world.disk("app").restore(5)
        await asyncio.sleep(4.9)
        assert world.read("app", "/book") == b"7"
        before = program.starts
        world.heal()
        assert (world.read("app", "/book"), before, program.starts) == (b"2", 1, 2)

    outcome = run(body)
    assert texts(outcome, FAULT) == [
        "a backup of the disk, put back after 5,000.000 ms",
        "crash, and the disk is a restored backup",
    ]


@pytest.mark.parametrize("declared", [True, False])
def test_a_store_with_a_restored_disk_waits_or_notices_it(declared: bool) -> None:
    """Two starts after the backup the source knows a later generation than that of the copy."""

    async def send(stores: list[str], **context: Any) -> None:
        async with Context(**context, session_id=1) as sender:
            source = await sender.source("orders", stores=stores, within=None)
            while True:
                await source.send(b"order")
                await asyncio.sleep(0.1)

    async def body(world: SimulatedWorld) -> None:
        world.start(send, world.stores, **world.context_of("app"))
        await asyncio.sleep(1)
        world.disk("store1").restore(4, declared=declared)
        for _ in range(2):
            await asyncio.sleep(1)
            world.crash("store1")
        await asyncio.sleep(5)

    outcome = run(body, setting=WorldSetting(3))
    found = [one.text for one in outcome.timeline.happenings if (one.host, one.kind) == ("store1", OUTPUT)]
    assert any("was declared a copy" in text for text in found) is declared
    assert any("is an older copy" in text for text in found) is not declared


def test_a_strike_at_a_turn_happens_there() -> None:
    async def main(world: SimulatedWorld) -> None:
        for number in range(10):
            await asyncio.sleep(1)
            world.note(str(number))

    async def body(world: SimulatedWorld) -> None:
        await world.start(main, world).wait()

    outcome = run(body, Strike("crash", "app", turn=5, span=MILLISECOND))
    notes = texts(outcome, NOTE)
    again = notes.index("0", 1)
    assert 2 <= again <= 5
    assert notes[again:] == [str(number) for number in range(10)]


def test_a_world_that_is_stuck_names_what_waits() -> None:
    async def body(_: SimulatedWorld) -> None:
        await forever()

    outcome = run_world(BARE, body, 1, ())
    assert outcome.failure is not None
    assert isinstance(outcome.failure.error, WorldError)
    assert "in forever" in outcome.failure.waiting[0]


def test_printed_lines_are_in_the_timeline() -> None:
    async def main() -> None:
        print("hello")

    async def body(world: SimulatedWorld) -> None:
        program = world.start(main)
        await program.wait()
        assert program.output == ["hello"]

    assert texts(run(body), OUTPUT) == ["hello"]


def test_the_clock_on_the_wall_leaps() -> None:
    async def body(world: SimulatedWorld) -> None:
        async def main() -> None:
            before = time.time()
            await asyncio.sleep(1)
            assert 101 <= time.time() - before < 101.1

        program = world.start(main)
        await asyncio.sleep(0.5)
        world.leap("app", 100)
        await program.wait()

    run(body)


def test_a_coroutine_is_no_function() -> None:
    async def body(world: SimulatedWorld) -> None:
        with pytest.raises(WorldError, match=r"forever\(\) was called: pass the function"):
            world.start(forever())  # type: ignore[arg-type]

    run(body)


def test_the_host_of_the_test_is_not_for_programs_and_faults() -> None:
    async def body(world: SimulatedWorld) -> None:
        with pytest.raises(WorldError, match="belongs to the test"):
            world.start(forever, host="test")
        with pytest.raises(WorldError, match="the test itself cannot fail"):
            world.crash("test")
        with pytest.raises(WorldError, match="the world has no host 'nobody': its hosts are test"):
            world.crash("nobody")

    run(body)


def test_an_interrupt_is_no_finding() -> None:
    async def body(_: SimulatedWorld) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(body)


def test_a_skip_is_no_finding() -> None:
    async def body(_: SimulatedWorld) -> None:
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception):
        run(body)


def test_pytest_fail_is_a_finding() -> None:
    async def body(_: SimulatedWorld) -> None:
        pytest.fail("found")

    failure = run_world(BARE, body, 1, ()).failure
    assert failure is not None
    assert str(failure.error) == "found"


def test_a_finished_world_is_freed() -> None:
    """Also if a program keeps the exception that ended it, and a `finally` clause that runs late asks for a loop."""
    freed: list[weakref.ref[SimulatedWorld]] = []

    async def sleeper() -> None:
        loop: Any = asyncio.get_running_loop()
        try:
            time.sleep(60)  # noqa: ASYNC251 - the thread itself blocks
        except BaseException as error:
            loop.kept = error
            raise

    async def waiter() -> None:
        try:
            await forever()
        finally:
            await asyncio.gather()

    async def body(world: SimulatedWorld) -> None:
        freed.append(weakref.ref(world))
        world.start(sleeper, host="one")
        world.start(waiter, host="two")
        await asyncio.sleep(5)
        world.crash("one", down=None)
        world.crash("two", down=None)

    before = policy_loop()
    with prepared():
        run(body)
        gc.collect()
    assert freed[0]() is None
    assert policy_loop() is before


def policy_loop() -> object:
    """The loop that the policy of this thread would return."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(getattr(asyncio.get_event_loop_policy(), "_local", None), "_loop", None)
