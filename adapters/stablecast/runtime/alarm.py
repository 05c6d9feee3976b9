"""The timer of a machine that an event loop drives."""

import asyncio
from collections.abc import Callable

from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime import machine


class Alarm:
    """Call a function when a deadline has come.

    A timer that is set for an earlier time than the new deadline stays, because most deadlines move back before they
    come. So the function may be called before the newest deadline.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        """Prepare to call `ring` on the running loop; no deadline is set yet."""
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0

    def set(self, due: int | None) -> None:
        """Set the next deadline in ns of the monotonic clock; None removes it."""
        if self._timer is not None:
            if due is not None and self._due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._due = due
            wait = max(0, due - machine.clock.monotonic_ns())
            # Whole milliseconds, rounded up: uvloop's timers round down and would wake us too early, again and again.
            self._timer = self._loop.call_later(-(-wait // MILLISECOND) / 1_000, self._over)

    def _over(self) -> None:
        self._timer = None
        self._ring()
