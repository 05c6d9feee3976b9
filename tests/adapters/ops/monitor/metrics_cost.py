"""Measure the answer of `/metrics`: `python -m tests.adapters.ops.monitor.metrics_cost [SOURCES]`.

A staged store has so many sources with a receiver each. The time is from the request to the last byte, as a scraper in
another process sees it, and beside it the processor time of making the text.
"""

import asyncio
import sys
import time

import aiohttp

from stablecast.ops.monitor import Monitor, MonitorSettings
from stablecast.ops.monitor.board import Board
from stablecast.ops.monitor.metrics import exposition
from tests.adapters.ops.monitor.staged_store import Staged

REQUESTS = 9


async def scrape(base: str) -> None:
    """Ask repeatedly, and print the times and the size."""
    took: list[float] = []
    size = 0
    async with aiohttp.ClientSession() as session:
        for _ in range(REQUESTS):
            began = time.perf_counter()
            async with session.get(f"{base}/metrics") as answer:
                size = len(await answer.read())
            took.append(time.perf_counter() - began)
    took.sort()
    print(f"{size:,} bytes, in {took[0] * 1e3:.0f} to {took[-1] * 1e3:.0f} ms, median {took[REQUESTS // 2] * 1e3:.0f}")


async def main(sources: int) -> None:
    """Measure a store with so many sources."""
    staged = Staged()
    for number in range(sources):
        life = staged.source(5000 + number, f"md/{number}")
        staged.data(life, 0, 5)
        staged.receiver(1_000_000 + number, 5000 + number, life, f"md/{number}")
    print(f"{sources:,} sources with a receiver each")
    board = Board([staged.watched()])
    await board.sweep()
    began = time.thread_time()
    size = sum(map(len, exposition(board.stores)))
    print(f"{size:,} characters in {(time.thread_time() - began) * 1e3:.0f} ms of processor time")
    monitor = Monitor(MonitorSettings(), [staged.watched()])
    monitor.start()
    asking = await asyncio.create_subprocess_exec(sys.executable, "-m", __spec__.name, f"http://{monitor.address}")
    await asking.wait()
    await monitor.stop()


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else "10000"
    asyncio.run(main(int(argument)) if argument.isdecimal() else scrape(argument))
