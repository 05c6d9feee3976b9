"""The life of a program: its event loop, and the signals that end it."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from stablecast.runtime import garbage_collection, machine

ResultT = TypeVar("ResultT")

SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a process or system without descriptors or memory for another connection."""

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


def limit_accept_reports(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop without descriptors report in one line, now and then, that it accepts no connection.

    asyncio accepts up to a hundred times in a turn, and reports each failure with a traceback.
    """
    next_report = 0.0

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal next_report
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in SCARCE and "accept" in context.get("message", "")):
            loop.default_exception_handler(context)
        elif loop.time() >= next_report:
            next_report = loop.time() + REPORT_SECONDS
            text = f"connections wait, because they cannot be accepted: {error}. Raise the limits of the process"
            loop.default_exception_handler({"message": text})

    loop.set_exception_handler(handle)


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
