"""A web service that books orders, and publishes each one once: the outbox pattern, with SQLite.

    curl -d '{"item": "apples"}' http://127.0.0.1:8080/orders

An order and its message are written in one transaction. A task sends the messages, and removes each one when it is
stable. If the service crashes in between, it sends the message again under the same id.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from stablecast.client import Context, Source

DATABASE = Path("orders.db")
TABLES = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""
Written = web.AppKey("Written", asyncio.Event)


def book(text: str) -> int:
    """Write an order and its message in one transaction; return the number of the order."""
    with sqlite3.connect(DATABASE) as database:
        number = database.execute("INSERT INTO orders (text) VALUES (?)", (text,)).lastrowid
        database.execute("INSERT INTO outbox VALUES (?, ?)", (number, text))
    database.close()
    assert number is not None
    return number


def unsent() -> list[tuple[int, str]]:
    """Return the messages that are not known to be stable, oldest first."""
    database = sqlite3.connect(DATABASE)
    found = database.execute("SELECT number, text FROM outbox ORDER BY number LIMIT 100").fetchall()
    database.close()
    return found


def remove(number: int) -> None:
    """Remove a message that is stable."""
    with sqlite3.connect(DATABASE) as database:
        database.execute("DELETE FROM outbox WHERE number = ?", (number,))
    database.close()


async def publish(source: Source, written: asyncio.Event) -> None:
    """Send the messages of the outbox as they come."""
    while True:
        written.clear()
        for number, text in unsent():
            sent = await source.send(text.encode(), id=f"order-{number}")
            await sent.stable()
            remove(number)
        if not unsent():
            await written.wait()


async def publishing(app: web.Application) -> AsyncIterator[None]:
    """Publish while the service runs."""
    async with Context(resolver=["127.0.0.1:15380"], session_id=1) as context:
        source = await context.source("orders", stores=["127.0.0.1:14567"])
        task = asyncio.create_task(publish(source, app[Written]))
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def post_order(request: web.Request) -> web.Response:
    """Book an order."""
    number = book(await request.text())
    request.app[Written].set()
    return web.json_response({"number": number}, status=201)


def service() -> web.Application:
    """Return the web service."""
    database = sqlite3.connect(DATABASE)
    database.executescript(TABLES)
    database.close()
    app = web.Application()
    app[Written] = asyncio.Event()
    app.router.add_post("/orders", post_order)
    app.cleanup_ctx.append(publishing)
    return app


if __name__ == "__main__":
    web.run_app(service(), host="127.0.0.1", port=8080)
