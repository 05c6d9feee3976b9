"""The world of a test on a real machine: programs and stores are processes, hosts are directories.

All hosts share the address 127.0.0.1. A process can be killed, stopped and continued without root. Other faults would
need it, and are refused.
"""

import asyncio
import inspect
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, NoReturn

from stablecast.core.errors import StablecastError
from stablecast.testing.real_processes import RealProgram
from stablecast.testing.real_program import WORLD_ARGUMENT
from stablecast.testing.schedule import Activity, HostActivity, Strike
from stablecast.testing.timeline import FAULT, NOTE, WorldTimeline

HERE: Final = "127.0.0.1"
PORTS: Final = range(20_000, 30_000)
"""Ports of the relay and of stores. A connection gets none of them, or it could take that of a store that is down."""

READY_S: Final = 60.0
"""Seconds within which the stores are ready."""

QUIET_S: Final = 4.0
"""Seconds without a movement after which a world is settled."""

SETTLED_LIMIT_S: Final = 120.0
"""Seconds after which a world that does not settle fails its test."""

LOOK_S: Final = 0.1
"""Seconds between two looks."""

POSSIBLE: Final = frozenset({"crash", "stop"})
"""Faults that need no root."""


class RealWorldError(StablecastError):
    """A test that cannot run on a real machine, or that did not settle there."""


class RealWorld:
    """Programs on this machine, with the methods of `SimulatedWorld` that a real machine permits."""

    def __init__(self, seed: int, directory: Path) -> None:
        """Make a world whose hosts are directories below `directory`."""
        self.seed = seed
        self.stores: list[str] = []
        self.programs: list[RealProgram] = []
        self.timeline = WorldTimeline()
        self.struck: list[Strike] = []
        self._directory = directory
        self._relay = ""
        self._kinds: dict[str, str] = {}
        self._began = time.monotonic()
        self._end = 0.0
        self._coming: set[asyncio.TimerHandle] = set()
        self._stopped: list[RealProgram] = []

    # --------------------------------------------------------------------------------------------------------- programs

    def start(
        self,
        main: Callable[..., Coroutine[Any, Any, Any]],
        *arguments: Any,
        host: str = "app",
        may_fail: bool = False,
        **keywords: Any,
    ) -> RealProgram:
        """Start a coroutine function in a child process, which imports it by its name.

        Raises:
            RealWorldError: The function cannot be imported, or an argument is neither plain data nor the world.
        """
        number = len(self.programs)
        job = {
            **_import_path(main),
            "arguments": [self._plain(value) for value in arguments],
            "keywords": {name: self._plain(value) for name, value in keywords.items()},
            "result": str(self._directory / f"{number}.result"),
            "begun": str(self._directory / f"{number}.begun"),
            "world": {"stores": self.stores, "context": self.context, "begun": time.time() - self.time()},
        }
        command = [sys.executable, "-m", "stablecast.testing.real_program"]
        return self.add(main.__name__, host, "app", lambda: command, job=job, may_fail=may_fail)

    def add(self, name: str, host: str, kind: str, command: Callable[[], Sequence[str]], **how: Any) -> RealProgram:
        self._kinds.setdefault(host, kind)
        program = RealProgram(name, host, self._directory / host, command, self._report, **how)
        self.programs.append(program)
        program.start()
        return program

    async def start_stores(self, count: int) -> None:
        """Start a relay and stores, and wait until all are ready."""
        if count:
            self._relay = f"{HERE}:{_free_port(socket.SOCK_DGRAM)}"
            stablecast = [sys.executable, "-m", "stablecast.cli.main"]
            self.add("lbmrd", "relay", "relay", lambda: [*stablecast, "lbmrd", "--listen", self._relay])
            for number in range(count):
                self.stores.append(f"{HERE}:{_free_port(socket.SOCK_STREAM)}")
                command = partial(self._store, stablecast, f"store{number}", self.stores[-1])
                self.add("store", f"store{number}", "store", command)
            await asyncio.wait_for(asyncio.gather(*(one.ready.wait() for one in self.programs)), READY_S)
        self._began = time.monotonic()
        self.timeline.clear()

    def _store(self, stablecast: list[str], host: str, address: str) -> list[str]:
        """Return the command of a store; one without a journal is new."""
        data = self._directory / host / "data"
        data.mkdir(parents=True, exist_ok=True)
        new = [] if list(data.glob("*.seg")) else ["--new"]
        return [*stablecast, "store", str(data), "--listen", address, "--resolver", self._relay, *new]

    @property
    def context(self) -> dict[str, Any]:
        """The keyword arguments for `stablecast.client.Context`."""
        return {"resolver": [self._relay] if self._relay else [], "interface": HERE}

    def context_of(self, host: str) -> dict[str, Any]:
        """Return the same: all hosts are this machine."""
        del host
        return self.context

    def address(self, host: str) -> str:
        """Return the address of all hosts, this machine."""
        del host
        return HERE

    def read(self, host: str, path: str) -> bytes:
        """Return the content of a file in the directory of a host; b"" if there is none."""
        try:
            return (self._directory / host / path.lstrip("/")).read_bytes()
        except FileNotFoundError:
            return b""

    # ------------------------------------------------------------------------------------------------------------- time

    def time(self) -> float:
        """Return the seconds since the stores were ready."""
        return time.monotonic() - self._began

    def note(self, text: str) -> None:
        self._report("test", NOTE, text)

    async def settled(self, quiet: float = QUIET_S, limit: float = SETTLED_LIMIT_S) -> None:
        """Wait until all faults are over, killed programs run again, and nothing moved for at most 4 seconds."""
        began = since = self.time()
        seen = self._movements()
        self._end = began
        while self._coming or self.time() - since < min(quiet, QUIET_S):
            await asyncio.sleep(LOOK_S)
            moved = self._movements()
            if moved != seen:
                self._end = self.time()
            if moved != seen or self._coming or any(one.down or one.is_starting for one in self.programs):
                seen, since = moved, self.time()
            if self.time() - began > limit:
                last = "" if self.timeline.last is None else f": the last entry is {self.timeline.last.text!r}"
                raise RealWorldError(f"the world did not settle within {limit:g} s{last}")

    async def until(self, condition: Callable[[], object], limit: float = SETTLED_LIMIT_S) -> None:
        """Wait until a condition holds. Raises RealWorldError after `limit` seconds."""
        began = self.time()
        while not condition():
            if self.time() - began > limit:
                raise RealWorldError(f"the condition did not hold within {limit:g} s")
            await asyncio.sleep(LOOK_S)

    def _movements(self) -> tuple[object, ...]:
        files = [path.stat() for path in sorted(self._directory.rglob("*")) if path.is_file()]
        return (self.timeline.moves, *((one.st_size, one.st_mtime_ns) for one in files))

    # ----------------------------------------------------------------------------------------------------------- faults

    def arm(self, strikes: Sequence[Strike]) -> None:
        """Let the strikes of a schedule happen that a real machine permits."""
        for strike in strikes:
            if strike.fault in POSSIBLE and not strike.power:
                self._later(strike.at / 1e9, partial(self._strike, strike))

    def crash(self, host: str, *, down: float | None = 0.1, power: bool = False) -> None:
        """Kill the programs of a host, and start them again after `down` seconds; None: at `restart` or `heal`."""
        if power:
            _refuse("a loss of power")
        self._kill(host, down)

    def restart(self, host: str) -> None:
        """Start the programs of a host again that are down."""
        for one in self._of(host):
            if one.down:
                one.start()

    def stop(self, host: str, span: float | None = None) -> None:
        """Suspend the programs of a host for a time in s, or until `resume` or `heal`."""
        victims = self._of(host)
        for one in victims:
            one.stop()
        self._stopped += victims
        self._report(host, FAULT, "stop (SIGSTOP)")
        if span is not None:
            self._later(span, partial(self.resume, host))

    def resume(self, host: str) -> None:
        """Let the programs of a host continue that were stopped."""
        for one in self._of(host):
            one.resume()
        self._report(host, FAULT, "stop (SIGSTOP): healed")

    def heal(self) -> None:
        for one in self.programs:
            one.resume()
            if one.down:
                one.start()

    def partition(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse this fault, which needs root."""
        _refuse("a partition")

    def reset(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse this fault, which needs root."""
        _refuse("a reset of connections")

    def disk(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse this fault, which needs root."""
        _refuse("a fault of a disk")

    def leap(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse this fault, which needs root."""
        _refuse("a leap of the clock")

    def _strike(self, strike: Strike) -> None:
        span = strike.span / 1e9
        if any(one.is_running for one in self._of(strike.on)):
            self.struck.append(strike)
            if strike.fault == "crash":
                self._kill(strike.on, span)
            else:
                self.stop(strike.on, span)

    def _kill(self, host: str, down: float | None) -> None:
        victims = [one for one in self._of(host) if one.is_running]
        for one in victims:
            one.kill()
        self._report(host, FAULT, "crash (kill -9)")
        if down is not None:
            self._later(down, partial(self.restart, host))

    def _of(self, host: str) -> list[RealProgram]:
        return [one for one in self.programs if one.host == host]

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        def call() -> None:
            self._coming.discard(handle)
            act()

        handle = asyncio.get_running_loop().call_later(seconds, call)
        self._coming.add(handle)

    # --------------------------------------------------------------------------------------------------- for the runner

    async def close(self) -> None:
        """End all programs and all faults to come."""
        for handle in self._coming:
            handle.cancel()
        await asyncio.gather(*(one.close() for one in self.programs))

    def activity(self) -> Activity:
        """Return the time of the last movement; a real machine has no turns."""
        hosts = {name: HostActivity(kind, 0) for name, kind in self._kinds.items()}
        return Activity(hosts, round((self._end or self.time()) * 1e9))

    def _plain(self, value: Any) -> Any:
        if value is self:
            return WORLD_ARGUMENT
        if isinstance(value, list | tuple):
            return [self._plain(one) for one in value]
        if value is None or isinstance(value, str | int | float | bool | dict):
            return value
        raise RealWorldError(f"an argument of a program is {value!r}: on a real machine, pass plain data or the world")

    def _report(self, host: str, kind: str, text: str) -> None:
        self.timeline.add(round(self.time() * 1e9), host, kind, text)


def _import_path(main: Callable[..., Any]) -> dict[str, str]:
    module, name = inspect.getmodule(main), getattr(main, "__qualname__", "")
    if module is None or getattr(module, name, None) is not main:
        raise RealWorldError(
            f"{name or main!r} cannot be imported: on a real machine, a program is a function of a module"
        )
    return {"module": module.__name__, "name": name}


def _free_port(kind: socket.SocketKind) -> int:
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket(socket.AF_INET, kind) as one, suppress(OSError):
            one.bind((HERE, port))
            return port
    raise RealWorldError(f"no port from {PORTS[0]} to {PORTS[-1]} is free: stop programs that hold them")


def _refuse(what: str) -> NoReturn:
    raise RealWorldError(f"a real machine needs root for {what}: run this test without --stablecast-real")
