"""Measure the cost of a monitor for a store's event loop: `python -m tests.adapters.ops.monitor.cost [SOURCES]`.

The loop of a staged store does nothing but turn. How long a turn takes says how long data would have to wait: without a
monitor, with one at which nobody looks, and with five live pages open in another process. Run it on a quiet machine.
"""

import asyncio
import sys
import time

import aiohttp

from stablecast.ops.monitor import Monitor, MonitorSettings
from tests.adapters.ops.monitor.staged_store import Staged

SECONDS = 8
PAGES = ("/", "/stores", "/stores/0", "/stores/0?page=3", "/stores/0/5000")


async def turns(what: str) -> None:
    """Turns the loop for some seconds and prints how it went."""
    gaps: list[float] = []
    last = time.perf_counter()
    end = last + SECONDS
    while last < end:
        await asyncio.sleep(0)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    gaps.sort()
    worst, rare = gaps[-1] * 1e3, gaps[len(gaps) * 999 // 1000] * 1e3
    print(f"{what:18} {len(gaps) / SECONDS:10,.0f} turns/s   99.9 % below {rare:.2f} ms   worst {worst:.1f} ms")


async def view(base: str) -> None:
    """Looks at five pages until it is ended."""
    async with aiohttp.ClientSession() as session:

        async def one(page: str) -> None:
            async with session.get(f"{base}/live", params={"page": page}) as answer:
                while await answer.content.read(65_536):
                    pass

        await asyncio.gather(*map(one, PAGES))


async def main(sources: int) -> None:
    staged = Staged()
    for number in range(sources):
        life = staged.source(5000 + number, f"md/{number}")
        staged.data(life, 0, 50)
        staged.receiver(1_000_000 + number, 5000 + number, life, f"md/{number}")
    print(f"{sources:,} sources with a receiver each")
    await turns("no monitor")
    monitor = Monitor(MonitorSettings(), [staged.watched()])
    monitor.start()
    await turns("nobody looks")
    looking = await asyncio.create_subprocess_exec(sys.executable, "-m", __spec__.name, f"http://{monitor.address}")
    await turns("five look")
    looking.kill()
    await looking.wait()
    await monitor.stop()


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else "1000"
    asyncio.run(main(int(argument)) if argument.isdecimal() else view(argument))
