"""A worker that books each order once, whatever crashes: the order and its key are written in one transaction.

An order may come again after a crash, because it was booked and not acknowledged yet. Its key is in the table then. An
order that cannot be booked is tried five times, then it goes to the topic `orders.dead`.
"""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

from stablecast.client import Context, Message, Redelivery

DATABASE = Path("book.db")


def book(database: sqlite3.Connection, message: Message) -> bool:
    """Book an order; return False if it was booked before."""
    order = json.loads(message.payload)
    with database:
        key = message.id or message.key
        cursor = database.execute("INSERT OR IGNORE INTO book VALUES (?, ?)", (key, order["item"]))
    return cursor.rowcount > 0


async def main() -> None:
    """Book orders until interrupted."""
    database = sqlite3.connect(DATABASE)
    database.execute("CREATE TABLE IF NOT EXISTS book (key TEXT PRIMARY KEY, item TEXT NOT NULL)")
    with contextlib.closing(database):
        async with Context(resolver=["127.0.0.1:15380"], session_id=2) as context:
            dead = await context.source("orders.dead", stores=["127.0.0.1:14567"])
            policy = Redelivery(delay=0.1, attempts=5, dead_letters=dead)
            async for message in context.receiver("orders", redelivery=policy):
                async with message:
                    if book(database, message):
                        print(f"booked {message.payload.decode()}", flush=True)


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
