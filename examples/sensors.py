"""Sensors that stream to whoever listens: one source for each sensor, one receiver of all of them.

No store keeps the readings. `late_join` lets a source send its retained ones to a receiver that comes late.
"""

import asyncio
import json

from stablecast.client import Context, Source

SENSORS = ("sensors.cellar", "sensors.roof")
READINGS = 3


async def measure(source: Source) -> None:
    """Send a reading now and then."""
    for reading in range(READINGS):
        await source.send(json.dumps({"celsius": 20 + reading}).encode())
        await asyncio.sleep(0.05)


async def watch(context: Context, joined: asyncio.Event) -> None:
    """Print all readings of all sensors."""
    seen = 0
    async with context.receiver(pattern="^sensors[.]") as receiver:
        joined.set()
        async for message in receiver:
            print(message.topic, json.loads(message.payload)["celsius"], flush=True)
            seen += 1
            if seen == READINGS * len(SENSORS):
                return


async def main() -> None:
    """Measure and watch in one program; each part may be a program of its own."""
    async with Context(resolver=["127.0.0.1:15380"]) as context:
        sources = [await context.source(topic, options={"late_join": 1}) for topic in SENSORS]
        joined = asyncio.Event()
        watching = asyncio.create_task(watch(context, joined))
        await joined.wait()
        await asyncio.gather(*(measure(source) for source in sources))
        await watching


asyncio.run(main())
