"""The event loop of a program: uvloop if it is installed, and the signals that end the program."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from stablecast.runtime import garbage_collection

NEW_LOOP: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
try:
    import uvloop
except ImportError:
    pass  # Optional at run time: asyncio's own loop does the same work, slower.
else:
    NEW_LOOP = uvloop.new_event_loop

ResultT = TypeVar("ResultT")


def run_loop(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, on uvloop if it is installed, and return its result."""
    with asyncio.Runner(loop_factory=NEW_LOOP) as runner:
        return runner.run(main)


def run_service(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run the coroutine of a daemon, with garbage collection set up for daemons."""
    garbage_collection.keep_loaded()
    return run_loop(main)


def on_ending(callback: Callable[[], object]) -> None:
    """Call back on each signal that asks the program to end: Ctrl-C, SIGTERM, or the end of its terminal.

    SIGHUP stays ignored if it is ignored already (under nohup, in a detached daemon).
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, callback)


async def until_interrupted() -> None:
    """Wait until a signal asks the program to end."""
    ended = asyncio.Event()
    on_ending(ended.set)
    await ended.wait()
