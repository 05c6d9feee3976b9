"""Acts that go on to their end although the task that waits for them is cancelled.

Half a close leaves connections open. A store would answer the next context at the same address over the old one.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def uninterrupted(act: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine to its end. A cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(act)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # The cancellation hides it.
        raise cancelled
    task.result()
