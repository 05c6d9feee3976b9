"""The common parts of the planted bugs: a table of them, files that survive a power cut, a shop, and a receiver."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import takewhile
from pathlib import Path
from typing import Any

import attrs

from stablecast.client import Context, Message, NotRegistered
from stablecast.testing import FaultKind, FaultKinds
from stablecast.testing.exploration import WorldExploration, WorldPlan, WorldReport
from stablecast.testing.faults import as_faults
from stablecast.testing.run_options import RunOptions
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting

ORDERS = 20
BOOK = Path("book")

Scenario = Callable[[SimulatedWorld, bool], Coroutine[Any, Any, None]]


@attrs.frozen
class PlantedBug:
    """An application with a bug, in a scenario that takes a world and whether the bug is mended."""

    name: str
    scenario: Scenario
    faults: FaultKinds
    stores: int

    def explore(self, seeds: int, *, mended: bool, jobs: int = 1) -> WorldReport:
        """Run the scenario in the worlds of seeds."""
        plan = WorldPlan(WorldSetting(self.stores), seeds, self.faults)
        return WorldExploration(plan, lambda world: self.scenario(world, mended), RunOptions(jobs=jobs)).run()


BUGS: list[PlantedBug] = []


def bug(faults: FaultKind | FaultKinds, stores: int = 3) -> Callable[[Scenario], Scenario]:
    def enter(scenario: Scenario) -> Scenario:
        BUGS.append(PlantedBug(scenario.__name__, scenario, as_faults(faults), stores))
        return scenario

    return enter


def append(line: str, path: Path = BOOK, *, sync: bool = True) -> None:
    """Append a line to a file, and sync it; the last line may be torn by a power cut, and is then replaced."""
    whole = lines(path)
    is_new = not path.exists()
    with path.open("r+" if not is_new else "w") as file:
        file.truncate(sum(len(one) + 1 for one in whole))
        file.seek(0, os.SEEK_END)
        file.write(line + "\n")
        file.flush()
        if sync:
            os.fsync(file.fileno())
    if is_new and sync:
        sync_directory()


def lines(path: Path = BOOK) -> list[str]:
    """The whole lines of a file. A power cut may leave a hole in the last one, whose bytes are zero."""
    found = path.read_text().split("\n")[:-1] if path.exists() else []
    return list(takewhile(lambda line: "\0" not in line, found))


def sync_directory() -> None:
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def replace(path: Path, text: str, *, sync: bool = True) -> None:
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    new.rename(path)
    if sync:
        sync_directory()


def booked(world: SimulatedWorld, path: Path = BOOK) -> list[str]:
    """The whole lines of a file of the application."""
    return world.read("app", str(path)).decode().split("\n")[:-1]


def expect_each_once(world: SimulatedWorld, count: int = ORDERS) -> None:
    """Expect that each order is booked once, in any order."""
    found = Counter(booked(world))
    assert found == Counter(str(number) for number in range(count))


def expect_each(world: SimulatedWorld, count: int = ORDERS) -> None:
    """Expect that each order is booked at least once."""
    assert sorted({int(one) for one in booked(world)}) == list(range(count))


async def forever() -> None:
    await asyncio.Event().wait()


async def shop(world: SimulatedWorld, count: int = ORDERS) -> None:
    """Send numbered orders, also after crashes."""
    async with Context(**world.context, session_id=1) as context:
        source = await context.source("orders", stores=world.stores, within=None)
        for number in range(source.next_number, count):
            while True:
                try:
                    await source.send(str(number).encode(), wait=False)
                    break
                except NotRegistered:
                    await source.registered()
            await asyncio.sleep(0.01)
        await forever()


async def orders(world: SimulatedWorld, handle: Callable[[Message], Coroutine[Any, Any, None]]) -> None:
    async with Context(**world.context, session_id=2) as context:
        async for message in context.receiver("orders"):
            await handle(message)


async def run(
    world: SimulatedWorld,
    application: Callable[..., Coroutine[Any, Any, Any]],
    *arguments: Any,
    count: int = ORDERS,
) -> None:
    """Run the shop and an application until all is settled."""
    world.start(shop, world, count, host="shop")
    world.start(application, world, *arguments, host="app")
    await world.settled()
