"""Handlers of orders with bugs, in brokers with the bug or mended. A stub of a test broker finds none of them.

`python -m tests.adapters.faststream.planted_handlers 200` runs many more worlds of the mended ones.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs
from faststream import AckPolicy, Context

from stablecast.faststream import StablecastBroker, StablecastMessage, TestStablecastBroker
from stablecast.testing import FaultKind, crash, full_disk
from stablecast.testing.exploration import WorldExploration, WorldPlan, WorldReport
from stablecast.testing.faults import as_faults
from stablecast.testing.run_options import RunOptions
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting
from tests.adapters.testing.planted_support import BOOK, append, lines, replace

ORDERS: Final = 6
"""Orders of one world; order N is N apples."""

Check = Callable[[list[str]], None]


@attrs.frozen
class PlantedHandler:
    """An application with a bug, and what its book must have in the end."""

    name: str
    make: Callable[[bool], StablecastBroker]
    faults: FaultKind
    check: Check

    def explore(self, seeds: int, *, mended: bool) -> WorldReport:
        """Run it in the worlds of seeds, in each of which other faults happen."""
        plan = WorldPlan(WorldSetting(stores=1), seeds, as_faults(self.faults))
        return WorldExploration(plan, lambda world: self._scenario(world, mended), RunOptions()).run()

    async def _scenario(self, world: SimulatedWorld, mended: bool) -> None:
        async with TestStablecastBroker(partial(self.make, mended), world=world) as shop:
            for number in range(ORDERS):
                await shop.publish(number, "orders")
                await asyncio.sleep(0.2)  # Virtual time: earlier orders are acknowledged meanwhile.
            await world.settled()
        self.check(world.read("app", str(BOOK)).decode().split("\n")[:-1])


HANDLERS: list[PlantedHandler] = []


def planted(faults: FaultKind, check: Check) -> Callable[[Callable[[bool], StablecastBroker]], Callable[..., object]]:
    """Enter an application in the list."""

    def enter(make: Callable[[bool], StablecastBroker]) -> Callable[..., object]:
        HANDLERS.append(PlantedHandler(make.__name__, make, faults, check))
        return make

    return enter


def each_once(book: list[str]) -> None:
    """Expect each order once."""
    assert sorted(book) == [str(number) for number in range(ORDERS)], f"booked: {' '.join(book)}"


def each(book: list[str]) -> None:
    """Expect each order at least once."""
    missing = {str(number) for number in range(ORDERS)} - set(book)
    assert not missing, f"lost: {' '.join(sorted(missing))}"


def right_total(book: list[str]) -> None:
    """Expect the number of all apples."""
    assert book[:1] == [str(sum(range(ORDERS)))], f"total: {' '.join(book)}"


@planted(crash("app"), each_once)
def booked_twice(mended: bool) -> StablecastBroker:
    """An order that comes again after a crash is booked again."""
    broker = StablecastBroker(logger=None)

    @broker.subscriber("orders")
    async def book(order: int) -> None:
        if not (mended and str(order) in lines()):
            append(str(order))

    return broker


@planted(crash("app"), each)
def acknowledged_first(mended: bool) -> StablecastBroker:
    """The order is acknowledged before it is booked."""
    broker = StablecastBroker(logger=None)

    @broker.subscriber("orders", ack_policy=AckPolicy.NACK_ON_ERROR if mended else AckPolicy.ACK_FIRST)
    async def book(order: int) -> None:
        await asyncio.sleep(0.3)
        append(str(order))

    return broker


@planted(full_disk("app"), each)
def dropped_on_error(mended: bool) -> StablecastBroker:
    """An order whose booking fails is dropped, though the disk has room again soon."""
    broker = StablecastBroker(logger=None)

    @broker.subscriber("orders", ack_policy=AckPolicy.NACK_ON_ERROR if mended else AckPolicy.REJECT_ON_ERROR)
    async def book(order: int) -> None:
        append(str(order))

    return broker


@planted(crash("app"), each)
def left_to_a_task(mended: bool) -> StablecastBroker:
    """The handler returns while a task still books."""
    broker = StablecastBroker(logger=None)
    tasks = set[asyncio.Task[None]]()

    async def enter(order: int) -> None:
        await asyncio.sleep(0.3)
        append(str(order))

    @broker.subscriber("orders")
    async def book(order: int) -> None:
        task = asyncio.create_task(enter(order))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if mended:
            await task

    return broker


@planted(crash("app"), right_total)
def total_in_memory(mended: bool) -> StablecastBroker:
    """The total is in memory, and the next run of the program begins at zero."""
    broker = StablecastBroker(logger=None)
    total = 0

    @broker.subscriber("orders")
    async def add(order: int, message: StablecastMessage = Context()) -> None:
        nonlocal total
        known, *keys = lines() or ["0"]
        key = message.raw_message.key
        if mended and key in keys:
            return
        total = (int(known) if mended else total) + order
        replace(BOOK, "\n".join([str(total), *keys, key, ""]))

    return broker


def main(seeds: int) -> None:
    """Run the mended applications, and print what fails."""
    for handler in HANDLERS:
        report = handler.explore(seeds, mended=True)
        found = report.found.failure if report.found is not None else None
        print(f"{handler.name}: {report.worlds} worlds, {sum(report.faults.values())} faults, {found or 'all right'}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
