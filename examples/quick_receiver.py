"""Print orders until interrupted. A later run continues after the last printed order."""

import asyncio
import contextlib

from stablecast.client import Context


async def main() -> None:
    """Print every order."""
    async with Context(resolver=["127.0.0.1:15380"], session_id=2) as context:
        async for message in context.receiver("orders"):
            print(f"message {message.sequence_number}: {message.payload.decode()}", flush=True)


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
