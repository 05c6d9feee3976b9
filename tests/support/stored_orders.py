"""The topic `orders` at one store: a source whose payloads are its numbers, and what the store holds."""

import asyncio
from typing import Final

from stablecast.client import Context

PACED: Final = {
    "ume_receiver_paced_persistence": 1,
    "ume_flight_size_bytes": 100_000,
    "ume_repository_size_limit": 10_000_000,
}
"""Options of a source whose stores wait for the acknowledgements of receivers."""


def send_orders(address: str, first: int, stop: int, *, paced: bool = True) -> None:
    """Register a source, send the numbers from `first` to `stop`, and wait until they are stable."""

    async def send() -> None:
        async with Context(session_id=7) as context:
            source = await context.source("orders", stores=[address], options=PACED if paced else None)
            if first < stop:
                await source.send_many([b"%d" % number for number in range(first, stop)])
                await source.wait_stable_through(stop - 1)

    asyncio.run(send())


def held_orders(address: str) -> list[tuple[int, int]]:
    """Return the ranges that the store holds."""

    async def ask() -> list[tuple[int, int]]:
        async with Context() as context:
            found, _ = await context.stored("orders", stores=[address])
            return [one for source in found.sources for one in source.ranges]

    return asyncio.run(ask())
