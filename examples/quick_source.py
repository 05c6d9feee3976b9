"""Send three orders, one a second. Each order is on the store's disk before the next one is sent."""

import asyncio

from stablecast.client import Context


async def main() -> None:
    """Send three orders."""
    async with Context(resolver=["127.0.0.1:15380"], session_id=1) as context:
        source = await context.source("orders", stores=["127.0.0.1:14567"])
        for item in (b"apples", b"pears", b"plums"):
            sent = await source.send(item)
            await sent.stable()
            print(f"{item.decode()} is stable as message {sent.sequence_number}", flush=True)
            await asyncio.sleep(1)


asyncio.run(main())
