"""The life of a program: its event loop, and the signals that end it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from stablecast.runtime import garbage_collection, machine

ResultT = TypeVar("ResultT")


def run_loop(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, on uvloop if it is installed, and return its result."""
    return machine.process.run(main)


def run_service(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run the coroutine of a daemon, with garbage collection set up for daemons."""
    garbage_collection.keep_loaded()
    return run_loop(main)


def on_ending(callback: Callable[[], object]) -> None:
    """Call back on each signal that asks the program to end: Ctrl-C, SIGTERM, or the end of its terminal.

    SIGHUP stays ignored if it is ignored already (under nohup, in a detached daemon).
    """
    machine.process.on_ending(callback)


async def until_interrupted() -> None:
    """Wait until a signal asks the program to end."""
    ended = asyncio.Event()
    on_ending(ended.set)
    await ended.wait()
