"""Bugs of servers and clients over TCP. Each is a scenario that takes a world and whether the bug is mended."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from stablecast.testing import crash, delay, partition, reset, stop
from stablecast.testing.simulated_world import SimulatedWorld
from tests.adapters.testing.planted_support import (
    BOOK,
    ORDERS,
    append,
    booked,
    bug,
    expect_each,
    expect_each_once,
    lines,
)

PORT = 5_000
LONG = 700
"""Bytes of a line that is longer than a sector of a disk."""


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
    if line not in lines():
        append(line)
    return "ok"


def book_always(line: str) -> str:
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


async def trade(world: SimulatedWorld, server: Callable[[], Coroutine[Any, Any, None]], client: Any) -> None:
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
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection(world.address("app"), PORT)
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
