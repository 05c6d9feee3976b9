"""Programs in a world, users' and the shipped ones: what Python takes from the machine is the host's while one runs.

`installed` replaces functions and classes of the standard library. In a program they act on its host; in all other
code they act as before. Modules that hold a replaced function under any name get the replacement, too, as those of
`stablecast.runtime.machine` do. `machine_calls` replaces the few functions there that need more.

These are simulated:

- sockets (`socket`, `select`, `selectors`, names of hosts), event loops (`asyncio`, `uvloop.run`), and everything above
  them: streams, TLS of asyncio, `http.client`, `socketserver`, aiohttp, httpx, websockets, anyio;
- clocks (`time`, `datetime`), `time.sleep`, timestamps of `logging`;
- entropy (`random`, `secrets`, `uuid`, `os.urandom`);
- threads (`threading`, `queue`, `concurrent.futures.ThreadPoolExecutor`, `asyncio.to_thread`);
- the process (`os.environ`, `os.getpid`, `os.getuid`, `os.kill`, `os._exit`, `signal`, `atexit`, standard output).

These are refused by a sentence: subprocesses, `os.fork`, `multiprocessing`, process pools, Unix sockets, sockets of a
descriptor, `select.epoll`, TLS on blocking sockets, timers of `signal`, standard input. IPv6 fails with EAFNOSUPPORT.

These cannot be reached, and act on the real machine or differ between runs:

- a function that was stored before the world began in a default argument, an attribute of a class, a closure or a
  `functools.partial` (`def f(now=time.monotonic)`); the class `datetime` is changed itself, and reached everywhere;
- locks, and classes derived from `threading.local`, that were made before the world began: a lock that is held while
  its thread blocks stops the whole run;
- code in C that asks the system itself: entropy and clock of OpenSSL (so the bytes of TLS differ between runs, and
  certificates are judged at the real time), generators of numpy, databases, c-ares (aiohttp with aiodns);
- the order of sets whose elements have no hash of their own; tasks have one. Hashes of text need PYTHONHASHSEED;
- objects of modules: all programs of a world share them, and a program that starts again finds them as they were.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code import clocks, entropy, machine_calls, process_calls, sockets, threads
from stablecast.lab.world.user_code.replacement import Replacements, installation

__all__ = ["installed", "kept"]

_REPLACEMENTS: list[Replacements] = []
"""The replacements of this interpreter; the first installation makes them."""


def _replacements() -> Replacements:
    if not _REPLACEMENTS:
        table = [*clocks.table(), *entropy.table(), *threads.table(), *process_calls.table(), *sockets.table()]
        table += machine_calls.table()
        _REPLACEMENTS.append(Replacements(table))
    return _REPLACEMENTS[0]


@contextmanager
def kept() -> Iterator[None]:
    """Leave the replacements in place between the worlds of this context. Outside of programs they do nothing."""
    everything = _replacements()
    everything.install()
    try:
        yield
    finally:
        everything.remove()


@contextmanager
def installed(current: Callable[[], SimulatedProcess | None], *, echo: bool = False) -> Iterator[None]:
    """Replace what programs take from the machine while the context lasts.

    Args:
        current: Returns the process of the running simulated thread, None outside of programs.
        echo: Write the output of programs to the real streams, too.
    """
    previous = installation.programs, installation.echoes
    installation.programs, installation.echoes = current, echo
    installation.thread_hook = threading.excepthook
    streams = Replacements(process_calls.streams())
    everything = _replacements()
    streams.install()
    everything.install()
    try:
        yield
    finally:
        everything.remove()
        streams.remove()
        threads.release()
        installation.programs, installation.echoes = previous
