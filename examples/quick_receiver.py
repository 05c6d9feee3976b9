"""Prints orders until it is interrupted; started again, it goes on behind the last one it printed."""

import asyncio
import contextlib

from stablecast.client import Context


async def main() -> None:
    """Receive."""
    async with Context(resolver=["127.0.0.1:15380"], session_id=2) as context:
        async for message in context.receiver("orders"):
            print(f"message {message.sequence_number}: {message.payload.decode()}", flush=True)


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
