"""Sell orders, and book each of them once, whatever crashes.

The chapter "Test that your application survives" of the guide leads here.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from stablecast.client import Context, NotRegistered

ORDERS = 20
BOOK = Path("book")


async def sell(stores: list[str], **context: Any) -> None:
    """Send all orders; after a crash, continue with the first one that was not stable."""
    async with Context(**context, session_id=1) as shop:
        source = await shop.source("orders", stores=stores, within=None)
        while source.next_number < ORDERS:
            try:
                await source.send(b"order %d" % source.next_number, wait=False)
                await asyncio.sleep(0.2)
            except NotRegistered:
                await source.registered()
        await asyncio.Event().wait()  # Receivers find an order as long as its source lives.


async def book(**context: Any) -> None:
    """Book orders as they come."""
    async with Context(**context, session_id=2) as office:
        async for message in office.receiver("orders"):
            enter(message.payload.decode())


def enter(order: str) -> None:
    """Book an order, unless it is booked."""
    booked = BOOK.read_text().splitlines() if BOOK.exists() else []
    if order not in booked:
        new = BOOK.with_suffix(".new")
        with new.open("w") as file:
            file.writelines(f"{one}\n" for one in [*booked, order])
            file.flush()
            os.fsync(file.fileno())
        new.rename(BOOK)
        directory = os.open(".", os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
