"""Tests on a real machine: child processes, real crashes, and sentences about what needs root."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from stablecast.testing import crash, partition, regression, stop
from stablecast.testing.exploration import WorldPlan, WorldReport
from stablecast.testing.faults import FaultKind, FaultKinds, as_faults
from stablecast.testing.real_exploration import RealExploration
from stablecast.testing.real_world import RealWorldError
from stablecast.testing.run_options import OPTIONS, RunOptions
from stablecast.testing.schedule import Strike
from stablecast.testing.world_run import WorldSetting

LIVES = Path("lives")


def count_life() -> int:
    """Count this start in a file, and return the number of starts."""
    lives = len(LIVES.read_bytes()) + 1 if LIVES.exists() else 1
    LIVES.write_bytes(b"x" * lives)
    return lives


async def live(until: int) -> int:
    """Count the own starts, and return at one of them."""
    lives = count_life()
    print(f"life {lives}", flush=True)
    if lives < until:
        await asyncio.Event().wait()
    return lives


async def fail() -> None:
    raise ValueError("wrong book")


async def greet(world: Any) -> str:
    world.note("hello")
    return f"{world.context['interface']} {world.context_of('app') == world.context} {world.time() < 1000}"


def explore(
    body: Callable[[Any], Coroutine[Any, Any, None]], faults: FaultKind | FaultKinds | None = None
) -> WorldReport:
    plan = WorldPlan(WorldSetting(stores=0), faults=as_faults(faults))
    return RealExploration(plan, body, RunOptions(real=True)).run()


def test_a_killed_program_starts_again_in_its_directory() -> None:
    async def body(world: Any) -> None:
        program = world.start(live, 2)
        await world.until(lambda: program.output)
        world.crash("app", down=0.0)
        assert await program.wait() == 2
        assert world.read("app", "lives") == b"xx"
        assert world.read("app", "none") == b""
        await world.settled(quiet=0.2)

    report = explore(body)
    assert report.found is None
    assert report.worlds == 1


def test_a_stopped_program_continues() -> None:
    async def body(world: Any) -> None:
        program = world.start(live, 2)
        await world.until(lambda: program.output)
        world.stop("app")
        world.resume("app")
        world.crash("app", down=None)
        await world.until(lambda: not program.is_running)
        world.heal()
        assert await program.wait() == 2

    assert explore(body).found is None


def test_schedules_have_the_faults_that_are_possible() -> None:
    async def body(world: Any) -> None:
        world.start(live, 99)
        await world.settled(quiet=0.2)

    report = explore(body, crash("app") | crash("app", power=True) | partition() | stop("app"))
    assert report.found is None
    assert report.worlds == 2
    assert report.left_out == ["crash (power)", "partition"]


def test_a_program_that_fails_fails_the_test() -> None:
    async def body(world: Any) -> None:
        program = world.start(fail)
        await world.until(lambda: program.failure)

    found = explore(body).found
    assert found is not None
    assert found.failure is not None
    assert "fail on app failed:" in str(found.failure.error)
    assert "ValueError: wrong book" in str(found.failure.error)


def test_a_program_may_use_the_world() -> None:
    async def body(world: Any) -> None:
        program = world.start(greet, world)
        assert await program.wait() == "127.0.0.1 True True"
        assert program.output == ["hello"]

    assert explore(body).found is None


def test_what_a_real_machine_cannot_do_is_refused() -> None:
    async def local() -> None: ...

    async def body(world: Any) -> None:
        refused: list[Callable[[], object]] = [
            lambda: world.partition("app", "other"),
            lambda: world.reset("app", "other"),
            lambda: world.disk("app"),
            lambda: world.leap("app", 1),
            lambda: world.crash("app", power=True),
        ]
        for one in refused:
            with pytest.raises(RealWorldError, match="a real machine needs root for"):
                one()
        with pytest.raises(RealWorldError, match="cannot be imported"):
            world.start(local)
        with pytest.raises(RealWorldError, match="pass plain data or the world"):
            world.start(live, object())

    assert explore(body).found is None


def test_a_world_that_moves_for_ever_is_reported() -> None:
    async def body(world: Any) -> None:
        world.arm([Strike("crash", "app", at=10**12)])
        await world.settled(quiet=0.1, limit=0.3)

    found = explore(body).found
    assert found is not None
    assert found.failure is not None
    assert "did not settle within 0.3 s" in str(found.failure.error)


def test_the_option_chooses_the_real_machine() -> None:
    worlds: list[str] = []

    @regression(seed=1, stores=0)
    async def test_it(world: Any) -> None:
        worlds.append(type(world).__name__)

    token = OPTIONS.set(RunOptions(real=True))
    try:
        test_it()
    finally:
        OPTIONS.reset(token)
    assert worlds == ["RealWorld"]


@pytest.mark.no_cover
def test_stores_are_real_daemons() -> None:
    async def body(world: Any) -> None:
        assert len(world.stores) == 2
        world.crash("store1", down=0.0)
        await world.until(lambda: len([one for one in world.programs if one.starts == 2 and one.is_running]) == 1)

    plan = WorldPlan(WorldSetting(stores=2))
    assert RealExploration(plan, body, RunOptions(real=True)).run().found is None
