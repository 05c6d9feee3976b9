"""Bugs of applications that send orders. Each is a scenario that takes a world and whether the bug is mended."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from stablecast.client import Context, Message, NotRegistered, RegistrationFailed
from stablecast.testing import crash, stop
from stablecast.testing.simulated_world import SimulatedWorld
from tests.adapters.testing.planted_support import (
    ORDERS,
    append,
    booked,
    bug,
    expect_each,
    forever,
    lines,
    orders,
    replace,
)


async def receive_all(world: SimulatedWorld) -> None:
    """Book each order once."""

    async def handle(message: Message) -> None:
        order = message.payload.decode()
        if order not in lines():
            append(order)

    await orders(world, handle)


def fill_outbox() -> list[str]:
    outbox = Path("outbox")
    if not outbox.exists():
        replace(outbox, "".join(f"{number}\n" for number in range(ORDERS)))
    return lines(outbox)


async def send(source: Any, order: str) -> Any:
    """Send one order, and wait for the stores if there are too few."""
    while True:
        try:
            return await source.send(order.encode(), wait=False)
        except NotRegistered:
            await source.registered()


@bug(crash("app") | crash("store"))
async def removed_before_stable(world: SimulatedWorld, mended: bool) -> None:
    """The source removes an order from its outbox when it was sent, not when it is stable."""

    async def source_program(world: SimulatedWorld) -> None:
        left = fill_outbox()
        async with Context(**world.context, session_id=1) as context:
            source = await context.source("orders", stores=world.stores, within=None)
            for order in left:
                sent = await send(source, order)
                if mended:
                    await sent.stable()
                replace(Path("outbox"), "".join(f"{one}\n" for one in left[left.index(order) + 1 :]))
            await source.wait_stable_through(source.next_number - 1)
            await forever()

    world.start(receive_all, world, host="books")
    world.start(source_program, world, host="app")
    await world.settled()
    assert {int(one) for one in world.read("books", "book").split()} == set(range(ORDERS))


@bug(crash("shop"))
async def source_begins_anew(world: SimulatedWorld, mended: bool) -> None:
    """After a crash the source sends all orders again, and the application counts on each coming once."""

    async def source_program(world: SimulatedWorld) -> None:
        async with Context(**world.context, session_id=1) as context:
            source = await context.source("orders", stores=world.stores, within=None)
            for number in range(source.next_number if mended else 0, ORDERS):
                await send(source, str(number))
                await asyncio.sleep(0.01)
            await forever()

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            if not any(one.startswith(f"{message.sequence_number} ") for one in lines()):
                append(f"{message.sequence_number} {message.payload.decode()}")

        await orders(world, handle)

    world.start(source_program, world, host="shop")
    world.start(application, world, host="app")
    await world.settled()
    assert Counter(one.split()[1] for one in booked(world)) == Counter(str(number) for number in range(ORDERS))


@bug(crash("store"))
async def missing_retry(world: SimulatedWorld, mended: bool) -> None:
    """An order that is refused while too few stores are registered is dropped."""

    async def source_program(world: SimulatedWorld) -> None:
        async with Context(**world.context, session_id=1) as context:
            source = await context.source("orders", stores=world.stores, within=None)
            for number in range(ORDERS):
                if mended:
                    await send(source, str(number))
                else:
                    try:
                        await source.send(str(number).encode(), wait=False)
                    except NotRegistered as error:
                        print(f"order {number}: {error}")
                await asyncio.sleep(0.5)
            await forever()

    world.start(receive_all, world, host="app")
    world.start(source_program, world, host="shop")
    await world.settled()
    expect_each(world)


@bug(crash("store") | stop("store"))
async def impatient_start(world: SimulatedWorld, mended: bool) -> None:
    """The source gives up if the stores are not there within a second."""

    async def source_program(world: SimulatedWorld) -> None:
        async with Context(**world.context, session_id=1) as context:
            try:
                source = await context.source("orders", stores=world.stores, within=None if mended else 1.0)
            except RegistrationFailed as error:
                print(error)
                return
            for number in range(source.next_number, ORDERS):
                await send(source, str(number))
            await forever()

    world.start(receive_all, world, host="app")
    world.start(source_program, world, host="shop")
    await world.settled()
    expect_each(world)
