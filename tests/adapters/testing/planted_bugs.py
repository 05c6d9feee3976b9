"""Small applications with one bug each, and the same applications without it.

Each one books orders: a source sends them, or a server takes them, and a program on the host `app` writes them to a file.
The bugs are those that people make. `python -m tests.adapters.testing.planted_bugs SEEDS` runs the mended ones for long.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import attrs

from stablecast.client import Context, Message, NotRegistered, RegistrationFailed
from stablecast.testing import (
    FaultKind,
    FaultKinds,
    clock,
    crash,
    delay,
    full_disk,
    partition,
    reset,
    stop,
)
from stablecast.testing.exploration import WorldExploration, WorldPlan, WorldReport
from stablecast.testing.faults import as_faults
from stablecast.testing.run_options import RunOptions
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting

ORDERS = 20
BOOK = Path("book")
PORT = 5_000
LONG = 700
"""Bytes of a line that is longer than a sector of a disk."""

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
    """Enter a scenario in the list of bugs."""

    def enter(scenario: Scenario) -> Scenario:
        BUGS.append(PlantedBug(scenario.__name__, scenario, as_faults(faults), stores))
        return scenario

    return enter


# --------------------------------------------------------------------------------------------------------------- files


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
    """The whole lines of a file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def sync_directory() -> None:
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def replace(path: Path, text: str, *, sync: bool = True) -> None:
    """Replace a file as a whole."""
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


# ------------------------------------------------------------------------------------------------------------- sources


async def forever() -> None:
    await asyncio.Event().wait()


async def shop(world: SimulatedWorld, count: int = ORDERS) -> None:
    """Send numbered orders, also after crashes."""
    async with Context(**world.context, session_id=1) as context:
        source = await context.source("orders", stores=world.stores, within=None)
        for number in range(source.next_number, count):
            while True:
                try:
                    await source.send(str(number).encode())
                    break
                except NotRegistered:
                    await source.registered()
            await asyncio.sleep(0.01)
        await forever()


async def orders(world: SimulatedWorld, handle: Callable[[Message], Coroutine[Any, Any, None]]) -> None:
    """Handle each order."""
    async with Context(**world.context, session_id=2) as context:
        async for message in context.receiver("orders"):
            await handle(message)


async def run(world: SimulatedWorld, application: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
    """Run the shop and an application until all is settled."""
    world.start(shop, world, host="shop")
    world.start(application, world, *arguments, host="app")
    await world.settled()


# ------------------------------------------------------------------------------------- consumers of persistent messages


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


# ------------------------------------------------------------------------------------------------------------- sources


async def receive_all(world: SimulatedWorld) -> None:
    """Book each order once."""

    async def handle(message: Message) -> None:
        order = message.payload.decode()
        if order not in lines():
            append(order)

    await orders(world, handle)


def fill_outbox() -> list[str]:
    """The orders that are to be sent."""
    outbox = Path("outbox")
    if not outbox.exists():
        replace(outbox, "".join(f"{number}\n" for number in range(ORDERS)))
    return lines(outbox)


async def send(source: Any, order: str) -> Any:
    """Send one order, and wait for the stores if there are too few."""
    while True:
        try:
            return await source.send(order.encode())
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
                        await source.send(str(number).encode())
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


# --------------------------------------------------------------------------------------------------- requests over TCP


async def serve(world: SimulatedWorld, handle: Callable[[str], str]) -> None:
    """Answer one line for each line."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(handle(line.decode().strip()).encode() + b"\n")
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, world.address("app"), PORT)
    async with server:
        await server.serve_forever()


def book_once(line: str) -> str:
    """Book an order unless it is booked."""
    if line not in lines():
        append(line)
    return "ok"


def book_always(line: str) -> str:
    """Book an order."""
    append(line)
    return "ok"


async def ask(world: SimulatedWorld, line: str, wait: float | None) -> str:
    """Send a line to the application, and return its answer. Raises OSError and TimeoutError."""

    async def exchange() -> str:
        reader, writer = await asyncio.open_connection(world.address("app"), PORT)
        try:
            writer.write(line.encode() + b"\n")
            answer = (await reader.readline()).decode().strip()
            if not answer:
                raise ConnectionResetError("no answer")
            return answer
        finally:
            writer.close()

    return await asyncio.wait_for(exchange(), wait)


async def buy(world: SimulatedWorld, wait: float | None, *, again: bool = True, caught: Any = OSError) -> None:
    """Order everything, one after the other."""
    for number in range(ORDERS):
        while True:
            try:
                await ask(world, str(number), wait)
                break
            except (caught, TimeoutError) as error:
                print(f"order {number}: {error!r}")
                if not again:
                    break
                await asyncio.sleep(0.5)
        await asyncio.sleep(0.05)


async def trade(world: SimulatedWorld, server: Coroutine[Any, Any, None] | Any, client: Any) -> None:
    """Run a server and a client until the client has ended and all is settled."""
    world.start(server, host="app")
    buyer = world.start(client, host="shop")
    await world.settled()
    assert buyer.ended


@bug(delay(3_000, "app", "shop") | stop("app"), stores=0)
async def retry_of_what_is_not_idempotent(world: SimulatedWorld, mended: bool) -> None:
    """A client that waits no longer orders again, although its first request was carried out."""

    async def server() -> None:
        await serve(world, book_once if mended else book_always)

    async def client() -> None:
        await buy(world, 2)

    await trade(world, server, client)
    expect_each_once(world)


@bug(crash("app", power=True) | partition("app", "shop"), stores=0)
async def missing_time_limit(world: SimulatedWorld, mended: bool) -> None:
    """A client waits for ever for an answer of a host that lost its power."""

    async def server() -> None:
        await serve(world, book_once)

    async def client() -> None:
        await buy(world, 5 if mended else None)

    await trade(world, server, client)
    expect_each_once(world)


@bug(crash("app") | reset("app", "shop"), stores=0)
async def unhandled_reset(world: SimulatedWorld, mended: bool) -> None:
    """A client expects a refused connection, but not one that is reset."""

    async def server() -> None:
        await serve(world, book_once)

    async def client() -> None:
        await buy(world, 5, caught=OSError if mended else ConnectionRefusedError)

    await trade(world, server, client)
    expect_each_once(world)


@bug(crash("app"), stores=0)
async def no_second_try(world: SimulatedWorld, mended: bool) -> None:
    """A client logs a failed request and orders the next item."""

    async def server() -> None:
        await serve(world, book_once)

    async def client() -> None:
        await buy(world, 5, again=mended)

    await trade(world, server, client)
    expect_each(world)


@bug(crash("app"), stores=0)
async def one_connection_for_ever(world: SimulatedWorld, mended: bool) -> None:
    """A client never connects again after its connection ended."""

    async def server() -> None:
        await serve(world, book_once)

    async def client() -> None:
        if mended:
            await buy(world, 5)
            return
        while True:
            try:
                reader, writer = await asyncio.open_connection(world.address("app"), PORT)
                break
            except OSError:
                await asyncio.sleep(0.1)
        for number in range(ORDERS):
            writer.write(f"{number}\n".encode())
            await reader.readline()
            await asyncio.sleep(0.05)

    await trade(world, server, client)
    expect_each(world)


@bug(crash("app", power=True), stores=0)
async def torn_last_line(world: SimulatedWorld, mended: bool) -> None:
    """A power cut tears the last line of the book, and the server cannot read it when it starts again."""

    async def server() -> None:
        if not mended and BOOK.exists():
            for line in BOOK.read_text().removesuffix("\n").split("\n"):
                int(line)
            assert BOOK.read_text().endswith("\n")
        await serve(world, lambda line: book_once(line.zfill(LONG)))

    async def client() -> None:
        await buy(world, 5)

    await trade(world, server, client)
    assert Counter(int(one) for one in booked(world)) == Counter(range(ORDERS))


@bug(delay(100, "app", "shop"), stores=0)
async def read_is_no_message(world: SimulatedWorld, mended: bool) -> None:
    """A server takes what one read returns for one request."""

    async def server() -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await (reader.readline() if mended else reader.read(100)):
                append(data.decode().strip())
                writer.write(b"ok\n")
            writer.close()

        async with await asyncio.start_server(connected, world.address("app"), PORT) as listening:
            await listening.serve_forever()

    async def client() -> None:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection(world.address("app"), PORT)
        for number in range(ORDERS):
            writer.write(f"{number}\n".encode())
            await asyncio.sleep(0.01)
        for _ in range(ORDERS):
            await reader.readline()
        writer.close()

    world.start(server, host="app")
    world.start(client, host="shop")
    await world.settled(limit=100)
    expect_each_once(world)


def main(seeds: int) -> None:
    """Run all mended applications, and print what is found."""
    for one in BUGS:
        report = one.explore(seeds, mended=True, jobs=os.cpu_count() or 1)
        found = "" if report.found is None or report.found.failure is None else repr(report.found.failure.error)
        print(f"{one.name:35} {report.worlds:6,} worlds {report.seconds:7.1f} s {found}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
