"""Threads of programs: `threading`, its users `queue` and `concurrent.futures`, and `_thread`.

The classes of the standard library run unmodified on simulated threads and locks.
"""

import _thread
import _threading_local
import concurrent.futures
import concurrent.futures.thread
import functools
import itertools
import queue
import threading
from collections.abc import Callable
from typing import Any

from stablecast.lab.world.kernel import ProcessGone, SimulatedThread
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import (
    Replacement,
    Table,
    in_programs,
    installation,
    method_in_programs,
)
from stablecast.lab.world.user_code.thread_locks import ThreadLock, ThreadRLock

_THREADS = "threads"
"""Key in the memory of a process: its threads of `threading` by number."""


def table() -> Table:
    pure_queue = queue._PySimpleQueue  # type: ignore[attr-defined]
    return [
        in_programs(threading, "Lock", lambda _: ThreadLock()),
        *_if_other(threading, "_allocate_lock", lambda _: ThreadLock()),
        in_programs(threading, "RLock", lambda _: ThreadRLock()),
        Replacement(threading, "local", _threading_local.local, everywhere=True),
        in_programs(queue, "SimpleQueue", lambda _: pure_queue()),
        in_programs(threading, "get_ident", _number),
        in_programs(threading, "get_native_id", _number),
        in_programs(threading, "current_thread", lambda process: _thread_of(process, process.kernel.running())),
        in_programs(threading, "main_thread", _main_thread),
        in_programs(threading, "enumerate", _enumerate),
        in_programs(threading, "active_count", lambda process: len(_enumerate(process))),
        in_programs(threading, "_counter", _count),
        in_programs(_thread, "start_new_thread", _start_new),
        method_in_programs(threading.Thread, "start", _start),
        _method_of_simulated("join", _join),
        _method_of_simulated("is_alive", lambda thread: not _simulated(thread).ended),
        _pool_counter(),
        Replacement(threading.Thread, "__hash__", _hash),
        Replacement(concurrent.futures.Future, "__hash__", _hash),
    ]


def release() -> None:
    """Let the interpreter not wait for threads of pools in programs that were killed."""
    queues: Any = concurrent.futures.thread._threads_queues
    for thread in [one for one in queues if "_simulated" in vars(one)]:
        queues.pop(thread, None)


def _if_other(owner: Any, name: str, new: Callable[..., Any]) -> Table:
    """Replace a second name of `threading.Lock`, unless it is the same object."""
    return [] if getattr(owner, name) is owner.Lock else [in_programs(owner, name, new)]


def _pool_counter() -> Replacement:
    pool: Any = concurrent.futures.thread.ThreadPoolExecutor
    real = pool._counter
    memory = "pools"

    def count() -> int:
        process = installation.programs()
        if process is None:
            return int(real())
        return int(next(process.memory.setdefault(memory, itertools.count())))

    return Replacement(pool, "_counter", staticmethod(count))


def _hash(self: Any) -> int:
    """Order threads and futures in sets by their first use in one, not by their addresses."""
    number: int | None = vars(self).get("_simulated_hash")
    if number is None:
        process = installation.programs()
        if process is None:
            return object.__hash__(self)
        number = self._simulated_hash = next(process.memory.setdefault("hashes", itertools.count(1)))
    return number


def _count(process: SimulatedProcess) -> int:
    return int(next(process.memory.setdefault("thread names", itertools.count(1))))


def _number(process: SimulatedProcess) -> int:
    return process.kernel.running().number


def _threads(process: SimulatedProcess) -> dict[int, threading.Thread]:
    found: dict[int, threading.Thread] = process.memory.setdefault(_THREADS, {})
    return found


def _thread_of(process: SimulatedProcess, simulated: SimulatedThread) -> threading.Thread:
    """Return the thread of `threading`; the first call makes one for a thread that the world has started."""
    known = _threads(process)
    thread = known.get(simulated.number)
    if thread is None:
        is_main = simulated is process.main
        thread = threading.Thread(name="MainThread" if is_main else simulated.name, daemon=not is_main)
        _mark_started(thread, simulated)
        known[simulated.number] = thread
    return thread


def _mark_started(thread: Any, simulated: SimulatedThread) -> None:
    thread._simulated = simulated
    thread._ident = thread._native_id = simulated.number
    thread._started.set()


def _main_thread(process: SimulatedProcess) -> threading.Thread:
    return _thread_of(process, process.main or process.kernel.running())


def _enumerate(process: SimulatedProcess) -> list[threading.Thread]:
    _main_thread(process)
    return [thread for thread in _threads(process).values() if not _simulated(thread).ended]


def _simulated(thread: Any) -> SimulatedThread:
    found: SimulatedThread = thread._simulated
    return found


def _start(process: SimulatedProcess, _: Any, thread: Any) -> None:
    if not thread._initialized:
        raise RuntimeError("thread.__init__() not called")
    if thread._started.is_set():
        raise RuntimeError("threads can only be started once")
    simulated = process.start_thread(lambda: _run(process, thread), thread.name)
    _mark_started(thread, simulated)
    _threads(process)[simulated.number] = thread
    if not thread.daemon:
        process.foreground.append(functools.partial(_await_end, thread))


def _await_end(thread: Any) -> None:
    """Wait for a thread at the end of a program; the threads of a pool end with the pool."""
    if getattr(thread, "_target", None) is concurrent.futures.thread._worker:
        pool = thread._args[0]()
        if pool is not None:
            pool.shutdown()
    _simulated(thread).join()


def _run(process: SimulatedProcess, thread: Any) -> None:
    try:
        thread.run()
    except (ProcessGone, SystemExit) as end:
        if isinstance(end, ProcessGone):
            raise
    except BaseException as error:  # noqa: BLE001 - the hook of threads reports it
        hook = threading.excepthook
        if hook is installation.thread_hook:  # that of a test runner, for threads outside of programs
            hook = threading.__excepthook__
        hook(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))
    finally:
        _threads(process).pop(_simulated(thread).number, None)


def _start_new(process: SimulatedProcess, function: Callable[..., Any], args: Any, kwargs: Any = None, /) -> int:
    return process.start_thread(functools.partial(function, *args, **(kwargs or {})), function.__name__).number


def _method_of_simulated(name: str, new: Callable[..., Any]) -> Replacement:
    """Replace a method of the threads that programs have started."""
    real = getattr(threading.Thread, name)

    def call(self: Any, *args: Any, **options: Any) -> Any:
        return (new if "_simulated" in self.__dict__ else real)(self, *args, **options)

    call.__name__ = name
    return Replacement(threading.Thread, name, call)


def _join(thread: threading.Thread, timeout: float | None = None) -> None:
    simulated, process = _simulated(thread), installation.programs()
    if process is None or simulated.ended:
        return
    if simulated is process.kernel.running():
        raise RuntimeError("cannot join current thread")
    simulated.join(timeout)
