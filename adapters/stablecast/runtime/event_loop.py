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
"""Time between two reports that connections cannot be accepted."""


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
    return run_loop(_with_accept_reports(main))


async def _with_accept_reports(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    limit_accept_reports(asyncio.get_running_loop())
    return await main


class AcceptReports:
    """An exception handler for loops without descriptors: one line now and then says that connections wait.

    asyncio accepts up to a hundred times in a turn, and reports each failure with a traceback. All other errors go to
    the handler that the loop had before.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare a handler."""
        self._before = loop.get_exception_handler()
        self._next_report = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error."""
        error = context.get("exception")
        if is_scarce(error) and "accept" in context.get("message", ""):
            if loop.time() >= self._next_report:
                self._next_report = loop.time() + REPORT_SECONDS
                text = "connections wait, because they cannot be accepted: %s. Raise the limits of the process"
                logger.warning(text, error)
        elif self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)


def limit_accept_reports(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop without descriptors report in one line, now and then, that it accepts no connection."""
    if not isinstance(loop.get_exception_handler(), AcceptReports):
        loop.set_exception_handler(AcceptReports(loop))


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
