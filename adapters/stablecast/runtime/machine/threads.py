"""The threads of a process, what they wait for, and requests to the scheduler."""

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from queue import Queue

T = TypeVar("T")

_OBJECTS = "_stablecast_objects"
"""The attribute of a thread with its objects, by the function that made them."""


class ReplacedThreadsError(RuntimeError):
    """The interpreter was patched: what starts as a thread runs in the thread that started it."""

    def __init__(self) -> None:
        super().__init__(
            "a library such as gevent or eventlet has replaced the threads of this process, which would stop it: leave"
            " threads out, as in gevent.monkey.patch_all(thread=False), or use stablecast in another process"
        )


Thread = threading.Thread
lock = threading.Lock
semaphore = threading.Semaphore
ident = threading.get_ident
give_way = os.sched_yield


def start(name: str, target: Callable[..., object], /, *arguments: Any) -> threading.Thread:
    """Start a thread that does not keep the process alive. Raises ReplacedThreadsError."""
    starter = threading.get_native_id()

    def run() -> None:
        # A replaced thread would run here, and not return to its starter before it waits.
        if threading.get_native_id() != starter:
            target(*arguments)

    # A daemon thread, because a disk that never answers must not keep the process from ending (P-708).
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    if thread.native_id == starter:
        raise ReplacedThreadsError
    return thread


async def call(function: Callable[..., T], /, *arguments: Any) -> T:
    """Call a function that blocks in a thread of the loop's executor, and return its result."""
    import asyncio  # noqa: PLC0415 - the caller has it; commands without a loop need not load it

    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def executor(name: str, workers: int = 1) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - see `call`

    return ThreadPoolExecutor(workers, name)


def queue(limit: int) -> "Queue[Any]":
    from queue import Queue  # noqa: PLC0415 - see `call`

    return Queue(limit)


def future() -> "Future[Any]":
    from concurrent.futures import Future  # noqa: PLC0415 - see `call`

    return Future()


def local(factory: Callable[[], T]) -> T:
    """Return the object that `factory` made for the calling thread; the first call makes it."""
    made = vars(threading.current_thread()).setdefault(_OBJECTS, {})
    if factory not in made:
        made[factory] = factory()
    found: T = made[factory]
    return found


def ask_short_slices(slice_ns: int) -> bool:
    """Ask for short slices (ns) of this thread; return whether they were granted. Policy and nice value stay."""
    from stablecast.runtime.machine import scheduler  # noqa: PLC0415 - `ctypes` is slow to import

    return scheduler.ask_short_slices(slice_ns)


def yields_help() -> bool:
    """Return whether the reaction of this system to a yield is measured."""
    return sys.platform == "linux"
