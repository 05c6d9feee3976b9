"""The event loop of a program: uvloop where it is installed, and the signals that end the program."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from stablecast.runtime import garbage_collection

NEW_LOOP: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
try:
    import uvloop
except ImportError:
    pass  # optional at run time
else:
    NEW_LOOP = uvloop.new_event_loop

ResultT = TypeVar("ResultT")


def run_loop(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine, on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=NEW_LOOP) as runner:
        return runner.run(main)


def run_service(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run the coroutine of a daemon. Garbage collection is set as daemons need it."""
    garbage_collection.keep_loaded()
    return run_loop(main)


def on_ending(callback: Callable[[], object]) -> None:
    """Call back whenever a signal asks the program to end: Ctrl-C, SIGTERM, or the end of its terminal.

    Where a hang-up is ignored (under nohup, in a daemon that is detached) it stays ignored.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, callback)


async def until_interrupted() -> None:
    """Wait until a signal asks for the end."""
    ended = asyncio.Event()
    on_ending(ended.set)
    await ended.wait()
