"""The life of a program: its event loop, and the signals that end it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from stablecast.runtime import garbage_collection, machine
from stablecast.text.scarcity import is_scarce

ResultT = TypeVar("ResultT")

logger = logging.getLogger("stablecast")

REPORT_SECONDS = 10.0
"""Time between two reports of one kind about scarcity."""


def run_loop(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, on uvloop if it is installed, and return its result.

    Raises KeyboardInterrupt if the coroutine was cancelled: commands cancel themselves at a signal, and a second signal
    finds them while they close.
    """
    try:
        return machine.process.run(main)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def run_service(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run the coroutine of a daemon, with garbage collection set up for daemons."""
    garbage_collection.keep_loaded()
    return run_loop(_with_scarcity_reports(main))


async def _with_scarcity_reports(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    limit_scarcity_reports(asyncio.get_running_loop())
    return await main


class ScarcityReports:
    """An exception handler for loops without descriptors, memory or threads: one line now and then for each kind.

    asyncio accepts up to a hundred times in a turn, and reports each failure with a traceback. All other errors go to
    the handler that the loop had before.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._before = loop.get_exception_handler()
        self._next_reports: dict[str, float] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if is_scarce(error):
            accepting = "accept" in context.get("message", "")
            kind = "connections wait, because they cannot be accepted" if accepting else "a task waits or was given up"
            if loop.time() >= self._next_reports.get(kind, 0.0):
                self._next_reports[kind] = loop.time() + REPORT_SECONDS
                logger.warning("%s: %s. Raise the limits of the process", kind, error)
        elif self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)


def limit_scarcity_reports(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop without descriptors, memory or threads report that in one line, now and then."""
    if not isinstance(loop.get_exception_handler(), ScarcityReports):
        loop.set_exception_handler(ScarcityReports(loop))


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
