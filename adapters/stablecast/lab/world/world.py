"""A world: hosts, their network, and the run of a program that observes them."""

import asyncio
import gc
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from threading import get_ident
from typing import Any, TypeVar

from stablecast.core.machine.units import SECOND
from stablecast.lab.world import user_code
from stablecast.lab.world.filesystem import FileSystem
from stablecast.lab.world.host import SimulatedHost
from stablecast.lab.world.kernel import Kernel, WorldError
from stablecast.lab.world.network import SimulatedNetwork
from stablecast.lab.world.patched_files import PatchedFiles
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code import machine_calls

ResultT = TypeVar("ResultT")

COLLECTED_WORLDS = 64
"""Number of worlds after which one process collects all garbage. Young collections may leave some of it."""

OBSERVER = "observer"
"""The host of the program that observes a world."""

_opened = count(1)


@contextmanager
def prepared() -> Iterator[None]:
    """Let the worlds of this context share the replacement of functions: it takes a tenth of the time of a small world.

    All objects that live now are left out of the collections between worlds.
    """
    frozen = gc.get_freeze_count()
    if not frozen:
        gc.collect()
        gc.freeze()
    try:
        with user_code.kept(), PatchedFiles(lambda: None):
            yield
    finally:
        if not frozen:
            gc.unfreeze()


LIMIT_S = 3_600
"""Virtual time in s after which a world that has not ended is given up."""


class World:
    """Hosts in virtual time. The same seed and the same programs make the same run."""

    def __new__(cls, *_: object) -> "World":
        """Collect the last world of this process, which was still in use when it was disposed of.

        Nothing of the new world may exist then: a survivor would be old, and all young collections would spare it and
        the whole world around it.
        """
        if gc.isenabled():
            gc.collect(1)
        return super().__new__(cls)

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.kernel = Kernel(seed)
        self.network = SimulatedNetwork(self.kernel)
        self.hosts: dict[str, SimulatedHost] = {}
        self.failures: list[tuple[SimulatedProcess, BaseException]] = []
        self._thread = get_ident()

    @property
    def now(self) -> int:
        """Virtual time since the epoch of the world, in ns."""
        return self.kernel.now

    def host(self, name: str) -> SimulatedHost:
        """Return a host; the first call makes it."""
        host = self.hosts.get(name)
        if host is None:
            number = len(self.hosts) + 1
            host = SimulatedHost(self.kernel, self.network, name, f"10.0.{number // 250}.{number % 250}")
            host.failed = lambda process, error: self.failures.append((process, error))
            self.hosts[name] = host
        return host

    def start(self, main: Callable[[], Coroutine[Any, Any, Any]], host: str) -> SimulatedProcess:
        process = self.host(host).process()
        process.run(main)
        return process

    def call(self, main: Callable[[], Any], host: str) -> SimulatedProcess:
        process = self.host(host).process()
        process.call(main)
        return process

    def run(self, main: Callable[[], Coroutine[Any, Any, ResultT]], limit_s: float = LIMIT_S) -> ResultT:
        """Run a coroutine function on a host of its own, the world around it meanwhile, and return its result.

        Raises:
            WorldError: The world cannot go on, or did not end within `limit_s` seconds of its time.
        """
        with self.open():
            observer = self.start(main, OBSERVER)
            self.kernel.run(lambda: observer.gone, self.kernel.now + int(limit_s * SECOND))
            if observer.error is not None:
                raise observer.error
            result: ResultT = observer.status
            return result

    @contextmanager
    def open(self) -> Iterator[None]:
        """Install the machine of the world while the context lasts, and release its programs at the end."""
        collects, self._thread = gc.isenabled(), get_ident()
        if not next(_opened) % COLLECTED_WORLDS:
            gc.collect()
        gc.disable()  # A collection at another moment would close what is forgotten at another moment.
        try:
            with user_code.installed(self._program), PatchedFiles(self._files):
                try:
                    yield
                finally:
                    self._dispose()
        finally:
            if collects:
                gc.enable()

    def _program(self) -> SimulatedProcess | None:
        """Return the process of the running thread, None while the world itself acts.

        All programs run in the thread that opened the world. Another one is a library's that has nothing to do with it.
        """
        running = self.kernel.current
        if running is None or get_ident() != self._thread:
            return None
        process: Any = running.owner  # This is asked thousands of times, so nothing is called for the type.
        return process  # type: ignore[no-any-return]

    def _files(self) -> FileSystem | None:
        running = self.kernel.current
        if running is None or get_ident() != self._thread:
            return None
        process: Any = running.owner
        return process.files  # type: ignore[no-any-return]

    def _dispose(self) -> None:
        """Release the programs. What they do while they are released concerns nobody."""
        kept = _policy_loop()
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for host in self.hosts.values():
                    for process in host.processes:
                        process.dispose()
                        machine_calls.reclaim(process)
                    host.processes.clear()
                gc.collect(0)  # All objects of the world are young, because nothing was collected meanwhile.
                if (made := _policy_loop()) is not kept:
                    # A `finally` clause made it; the policy would keep it, and the world with it.
                    asyncio.set_event_loop(kept)
                    made.close()
        finally:
            sys.unraisablehook = hook


def _policy_loop() -> Any:
    """Return the loop that the policy keeps for this thread, None without one. To ask it would make one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Policies go away with Python 3.16.
        return getattr(getattr(asyncio.get_event_loop_policy(), "_local", None), "_loop", None)


__all__ = ["World", "WorldError"]
