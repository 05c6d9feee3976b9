"""Order events in virtual time. Instants are ns since the start of the world."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

import attrs

from stablecast.core.errors import InvariantError

MILLION = 1_000_000

WATCH_NS = 20_000_000
"""Interval of the looks of `watch`, in ns of virtual time."""

MAX_EVENTS = 2_000_000
"""Most events of one world, a hundred times the usual number. More mean that some process never becomes idle."""


@attrs.define
class VirtualWorld:
    """Queue future events and own all randomness.

    Attributes:
        rng: Seeded, so that a seed repeats the same world.
        transcript: Receives a line for each input of a machine; None: no transcript.
        watch: Called every `WATCH_NS` of virtual time; it must not act on the world. None: nobody watches.
    """

    rng: Random
    now: int = 0
    transcript: list[str] | None = None
    watch: Callable[[], None] | None = None
    _queue: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    _serial: int = 0

    def at(self, instant: int, action: Callable[[], None]) -> None:
        """Run an action at an instant, or now if it has passed. Actions at one instant run in call order."""
        self._serial += 1
        heappush(self._queue, (max(instant, self.now), self._serial, action))

    def after(self, delay: int, action: Callable[[], None]) -> None:
        """Run an action after a delay in ns."""
        self._serial += 1
        heappush(self._queue, (self.now + delay, self._serial, action))

    def run(self, until: int) -> None:
        """Run all events up to `until`.

        Raises InvariantError when there are too many events, and whatever the processes raise.
        """
        while self.watch is not None and self.now < until:
            self._advance(min(until, (self.now // WATCH_NS + 1) * WATCH_NS))
            self.watch()
        self._advance(until)

    def _advance(self, until: int) -> None:
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, serial, action = heappop(queue)
            if serial > MAX_EVENTS:
                raise InvariantError(f"the world does not become idle: {serial} events have happened")
            action()
        self.now = until


@attrs.define
class VirtualClock:
    """Map world time to a process's clock: an offset in ns and a rate error in millionths."""

    offset: int
    ppm: int

    def read(self, instant: int) -> int:
        return self.offset + instant + instant * self.ppm // MILLION

    def when(self, shown: int) -> int:
        """Return the first instant of the world at which the clock shows at least `shown`."""
        instant = (shown - self.offset) * MILLION // (MILLION + self.ppm) - 1
        while self.read(instant) < shown:
            instant += 1
        return instant
