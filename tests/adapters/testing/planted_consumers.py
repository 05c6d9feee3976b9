"""Bugs of applications that receive orders. Each is a scenario that takes a world and whether the bug is mended."""

# ruff: noqa: ASYNC230, ASYNC240 - a write to the disk of a world blocks nobody

import asyncio
import json
import os
import time
from pathlib import Path

from stablecast.client import Context, Message
from stablecast.testing import clock, crash, delay, full_disk, stop
from stablecast.testing.simulated_world import SimulatedWorld
from tests.adapters.testing.planted_support import (
    ORDERS,
    append,
    bug,
    expect_each,
    expect_each_once,
    lines,
    orders,
    replace,
    run,
)


@bug(crash("app"))
async def acknowledge_before_commit(world: SimulatedWorld, mended: bool) -> None:
    """The application collects orders, and writes them together, but each is acknowledged when the next one comes."""

    async def application(world: SimulatedWorld) -> None:
        collected: list[str] = []

        async def handle(message: Message) -> None:
            collected.append(message.payload.decode())
            if mended or len(collected) >= 5 or message.payload == str(ORDERS - 1).encode():
                for one in collected:
                    if one not in lines():
                        append(one)
                collected.clear()

        await orders(world, handle)

    await run(world, application)
    expect_each(world)


@bug(crash("app"))
async def handler_not_idempotent(world: SimulatedWorld, mended: bool) -> None:
    """An order that comes again after a crash is booked again."""

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            order = message.payload.decode()
            if not (mended and order in lines()):
                append(order)

        await orders(world, handle)

    await run(world, application)
    expect_each_once(world)


@bug(crash("app"))
async def lost_task(world: SimulatedWorld, mended: bool) -> None:
    """The handler leaves its work to a task that nobody waits for."""

    async def book(order: str) -> None:
        await asyncio.sleep(0.3)
        if order not in lines():
            append(order)

    async def application(world: SimulatedWorld) -> None:
        tasks = set()

        async def handle(message: Message) -> None:
            task = asyncio.create_task(book(message.payload.decode()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            if mended:
                await task

        await orders(world, handle)

    await run(world, application)
    expect_each(world)


@bug(full_disk("app"))
async def swallowed_error(world: SimulatedWorld, mended: bool) -> None:
    """A full disk is logged, and the order is forgotten."""

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            order = message.payload.decode()
            while order not in lines():
                try:
                    append(order)
                except OSError as error:
                    print(f"order {order}: {error}")
                    if not mended:
                        return
                    await asyncio.sleep(1)

        await orders(world, handle)

    await run(world, application)
    expect_each(world)


@bug(crash("app", power=True))
async def missing_sync(world: SimulatedWorld, mended: bool) -> None:
    """The book is written, but not synced, before the order is acknowledged."""

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            order = message.payload.decode()
            if order not in lines():
                append(order, sync=mended)

        await orders(world, handle)

    await run(world, application)
    expect_each(world)


@bug(crash("app", power=True))
async def file_rewritten_in_place(world: SimulatedWorld, mended: bool) -> None:
    """The balance is written over the old one, so a power cut leaves neither."""
    balance = Path("balance")

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            before = json.loads(balance.read_text()) if balance.exists() else {"last": -1, "sum": 0}
            number = int(message.payload)
            if number <= before["last"]:
                return
            text = json.dumps({"last": number, "sum": before["sum"] + number})
            if mended:
                replace(balance, text)
                return
            with balance.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

        await orders(world, handle)

    await run(world, application)
    assert json.loads(world.read("app", "balance"))["sum"] == sum(range(ORDERS))


@bug(crash("app", power=True))
async def renamed_without_sync(world: SimulatedWorld, mended: bool) -> None:
    """The new balance replaces the old one before its bytes are on the disk."""
    balance = Path("balance")

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            last = int(balance.read_text() or -1) if balance.exists() else -1
            number = int(message.payload)
            if number > last:
                replace(balance, str(number), sync=mended)

        await orders(world, handle)

    await run(world, application)
    assert world.read("app", "balance") == str(ORDERS - 1).encode()


@bug(crash("app"))
async def duplicates_remembered_in_memory(world: SimulatedWorld, mended: bool) -> None:
    """A set of booked orders ends with the process."""

    async def application(world: SimulatedWorld) -> None:
        seen: set[str] = set(lines()) if mended else set()

        async def handle(message: Message) -> None:
            order = message.payload.decode()
            if order not in seen:
                append(order)
                seen.add(order)

        await orders(world, handle)

    await run(world, application)
    expect_each_once(world)


@bug(crash("app"))
async def marked_before_booked(world: SimulatedWorld, mended: bool) -> None:
    """An order is marked as done in one file before it is booked in another one."""
    done = Path("done")

    async def application(world: SimulatedWorld) -> None:
        async def handle(message: Message) -> None:
            order = message.payload.decode()
            if order in lines(done):
                return
            if not mended:
                append(order, done)
            if order not in lines():
                append(order)
            if mended:
                append(order, done)

        await orders(world, handle)

    await run(world, application)
    expect_each_once(world)


@bug(crash("app") | stop("app"))
async def wrong_shutdown_order(world: SimulatedWorld, mended: bool) -> None:
    """At its end the application cancels the task that books before that has booked everything."""

    async def booking(queue: "asyncio.Queue[str]") -> None:
        while True:
            order = await queue.get()
            await asyncio.sleep(0.02)
            if order not in lines():
                append(order)
            queue.task_done()

    async def application(world: SimulatedWorld) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue(1)
        writer = asyncio.create_task(booking(queue))
        async with Context(**world.context, session_id=2) as context:
            async for message in context.receiver("orders"):
                await queue.put(message.payload.decode())
                if mended:
                    await queue.join()
                if message.payload == str(ORDERS - 1).encode():
                    break
        await asyncio.sleep(0.1)
        writer.cancel()

    await run(world, application)
    expect_each(world)


@bug(clock("app", leap=1_000))
async def wall_clock_decides(world: SimulatedWorld, mended: bool) -> None:
    """Orders are numbered by the time of day, and one that seems older than the last is dropped."""

    async def application(world: SimulatedWorld) -> None:
        last = 0.0

        async def handle(message: Message) -> None:
            nonlocal last
            now = time.monotonic() if mended else time.time()
            if now >= last:
                last = now
                append(message.payload.decode())

        await orders(world, handle)

    await run(world, application)
    expect_each(world)


@bug(delay(50, "app") | stop("app"))
async def lost_update(world: SimulatedWorld, mended: bool) -> None:
    """Two tasks read the balance, wait, and write it."""
    balance = Path("balance")

    async def application(world: SimulatedWorld) -> None:
        lock = asyncio.Lock()
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def add(amount: int) -> None:
            before = int(balance.read_text()) if balance.exists() else 0
            await asyncio.sleep(0.005)
            balance.write_text(str(before + amount))

        async def work() -> None:
            while True:
                amount = await queue.get()
                if mended:
                    async with lock:
                        await add(amount)
                else:
                    await add(amount)

        workers = [asyncio.create_task(work()) for _ in range(2)]

        async def handle(message: Message) -> None:
            queue.put_nowait(int(message.payload))

        await orders(world, handle)
        await asyncio.gather(*workers)

    await run(world, application)
    assert int(world.read("app", "balance")) == sum(range(ORDERS))
