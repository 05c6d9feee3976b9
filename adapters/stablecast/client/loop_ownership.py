"""The event loop to which an object of the client belongs: who may use it, and acts that end in it whatever happens.

Nothing in the client is safe for two threads or loops.
"""

import asyncio
from collections.abc import Coroutine
from functools import cache
from typing import Any, Protocol
from weakref import WeakSet

from stablecast.core.errors import MisuseError
from stablecast.runtime import machine


def check_loop(loop: asyncio.AbstractEventLoop, whose: str) -> None:
    """Raise MisuseError unless `loop` is the event loop that runs here.

    In another thread no loop runs, or another one does. In a forked process none does.
    """
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is not loop:
        raise MisuseError(
            f"{whose} belongs to the event loop that made it: call it there (loop.call_soon_threadsafe), use "
            "stablecast.sync from threads, and make another context in another loop or process"
        )


class Disowned(Protocol):
    """An object that a forked process must not use, because both processes share its sockets."""

    def disown(self) -> None:
        """Refuse every later call in this process."""


OPEN: "WeakSet[Disowned]" = WeakSet()
"""The open contexts of this process."""


def _after_fork() -> None:
    for one in tuple(OPEN):
        one.disown()
    OPEN.clear()


@cache
def watch_forks() -> None:
    """Disown the open contexts in every process that is forked from this one."""
    machine.process.on_fork(_after_fork)


async def uninterrupted(act: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine to its end. A cancellation is raised afterwards.

    Half a close leaves connections open. A store would answer the next context at the same address over the old one.
    """
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
