"""A world for a test: programs on hosts, and a log of what they did."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.host import SimulatedHost
from stablecast.lab.world.network import Path
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.world import World

LIMIT_S = 100_000


class Scene(World):
    """A world whose programs note what they do in `log`."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.log: list[Any] = []

    @property
    def seconds(self) -> float:
        """Virtual time since the beginning in whole milliseconds."""
        return round((self.now - SECOND) / 1e9, 3)

    def note(self, *what: Any) -> None:
        self.log.append((self.seconds, *what))

    def finish(self, *processes: SimulatedProcess) -> None:
        """Run the world until the processes have ended, and raise their errors."""
        self.kernel.run(lambda: all(one.gone for one in processes), self.now + LIMIT_S * SECOND)
        for one in processes:
            if one.error is not None:
                raise one.error

    def pass_time(self, seconds: float) -> None:
        """Run the world for some time."""
        until = self.now + int(seconds * SECOND)
        self.kernel.at(until, lambda: None)
        self.kernel.run(lambda: self.now >= until, until)

    def run_programs(self, **mains: Callable[[], Any]) -> list[SimulatedProcess]:
        """Start functions as programs on hosts of these names, and run the world until they have ended."""
        for name in mains:
            self.host(name)
        processes = [self.call(main, name) for name, main in mains.items()]
        self.finish(*processes)
        return processes

    def cut(self, one: SimulatedHost, other: SimulatedHost) -> None:
        self.network.cut(one.address, other.address)
        self.network.cut(other.address, one.address)

    def heal(self, one: SimulatedHost, other: SimulatedHost) -> None:
        self.network.heal(one.address, other.address)
        self.network.heal(other.address, one.address)

    def path(self, one: SimulatedHost, other: SimulatedHost) -> Path:
        return self.network.path(one.address, other.address)

    def running(self) -> SimulatedProcess | None:
        thread = self.kernel.current
        return None if thread is None else cast("SimulatedProcess", thread.owner)


@contextmanager
def scene(seed: int = 1) -> Iterator[Scene]:
    """Open a world whose programs use the functions of Python."""
    world = Scene(seed)
    with world.open():
        yield world


def in_turn(*calls: Callable[[], object]) -> Callable[[], None]:
    """Return a function that makes several calls."""

    def run() -> None:
        for call in calls:
            call()

    return run


def later(seconds: float, call: Callable[[], Any]) -> Any:
    time.sleep(seconds)
    return call()


def error_of(call: Callable[[], object]) -> int | None:
    """Return the number of the system error that a call raises, None without one."""
    try:
        call()
    except OSError as error:
        return error.errno
    return None
