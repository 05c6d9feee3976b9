"""Shared parts of the tests of simulated disks: a clock that a wait moves, and an empty file system."""

from collections.abc import Callable
from random import Random

from stablecast.lab.world.disk import DiskSpeed
from stablecast.lab.world.filesystem import FileSystem


class Clock:
    """The time of a test in ns. A wait moves it, and carries out what was due meanwhile."""

    def __init__(self) -> None:
        self.now = 1_000_000_000
        self.waits: list[int] = []
        self._due: list[tuple[int, Callable[[], object]]] = []

    def __call__(self) -> int:
        return self.now

    def at(self, when: int, act: Callable[[], object]) -> None:
        self._due.append((when, act))

    def wait(self, duration: int) -> None:
        self.waits.append(duration)
        until = self.now + duration
        due = [(when, act) for when, act in self._due if when <= until]
        self._due = [(when, act) for when, act in self._due if when > until]
        for when, act in due:
            self.now = max(self.now, when)
            act()
        self.now = until


def new_file_system(clock: Clock | None = None, seed: int = 0, speed: DiskSpeed | None = None) -> FileSystem:
    clock = clock or Clock()
    return FileSystem.fresh(clock, Random(seed), clock.wait, speed)
