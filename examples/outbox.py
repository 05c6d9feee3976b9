"""A web service of FastAPI that books orders, and publishes each one once: the outbox pattern, with SQLite.

    curl -d '{"item": "apples"}' http://127.0.0.1:8080/orders

An order and its message are written in one transaction. A task sends the messages, and removes each one when it is
stable. If the service crashes in between, it sends the message again under the same id.

It needs the packages `fastapi` and `uvicorn`.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request

from stablecast.client import Context, Source

DATABASE = Path("orders.db")
TABLES = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""


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


@asynccontextmanager
async def publishing(app: FastAPI) -> AsyncGenerator[None, None]:
    """Publish while the service runs."""
    app.state.written = written = asyncio.Event()
    async with Context(resolver=["127.0.0.1:15380"], session_id=1) as context:
        source = await context.source("orders", stores=["127.0.0.1:14567"])
        task = asyncio.create_task(publish(source, written))
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


app = FastAPI(lifespan=publishing)


@app.post("/orders", status_code=201)
async def post_order(request: Request) -> dict[str, int]:
    """Book an order."""
    number = book((await request.body()).decode())
    app.state.written.set()
    return {"number": number}


if __name__ == "__main__":
    with sqlite3.connect(DATABASE) as tables:
        tables.executescript(TABLES)
    tables.close()
    uvicorn.run(app, host="127.0.0.1", port=8080)
