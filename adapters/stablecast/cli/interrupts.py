"""End a command that goes on until somebody interrupts it, and let it say what it did."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stablecast.runtime.event_loop import on_ending


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Leave the block at the first signal that asks for the end; what follows the block is still done."""
    task = asyncio.current_task()
    assert task is not None
    on_ending(task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        task.uncancel()
