"""Virtual time: what happens, in order. Instants are ns since the world began."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

import attrs

from stablecast.core.errors import InvariantError

MILLION = 1_000_000

MAX_EVENTS = 2_000_000
"""Things that happen in one world, a hundred times the usual; more means that somebody does not come to rest."""


@attrs.define
class World:
    """The queue of what will happen, and all randomness of it.

    Attributes:
        rng: Decides delays and accidents; seeded, so the same world happens again.
        transcript: What every machine was told and answered, line by line, if anybody wants to know.
    """

    rng: Random
    now: int = 0
    transcript: list[str] | None = None
    _queue: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    _serial: int = 0

    def at(self, instant: int, action: Callable[[], None]) -> None:
        """Do something at an instant, or at once if that has passed; at the same instant in the order of the calls."""
        self._serial += 1
        heappush(self._queue, (max(instant, self.now), self._serial, action))

    def after(self, delay: int, action: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._serial += 1
        heappush(self._queue, (self.now + delay, self._serial, action))

    def run(self, until: int) -> None:
        """Let time pass. Raises InvariantError when far too much happens, and whatever the processes raise."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, serial, action = heappop(queue)
            if serial > MAX_EVENTS:
                raise InvariantError(f"the world does not come to rest: {serial} things have happened")
            action()
        self.now = until


@attrs.define
class Clock:
    """A process's clock: `ppm` millionths too fast, and somewhere else."""

    offset: int
    ppm: int

    def read(self, instant: int) -> int:
        """What it shows at an instant of the world."""
        return self.offset + instant + instant * self.ppm // MILLION

    def when(self, shown: int) -> int:
        """The first instant of the world at which it shows at least that."""
        instant = (shown - self.offset) * MILLION // (MILLION + self.ppm) - 1
        while self.read(instant) < shown:
            instant += 1
        return instant
