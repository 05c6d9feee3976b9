"""The timer of a machine that is driven on an event loop."""

import asyncio
import time
from collections.abc import Callable

from stablecast.core.machine.units import MILLISECOND


class Alarm:
    """Rings once a deadline has come; one that is early enough stays, for most deadlines move back before they come.

    So it may ring before the deadline that was set last.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        """Calls `ring` on the running loop; nothing is set yet."""
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0

    def set(self, due: int | None) -> None:
        """The next deadline, on the monotonic clock in ns; None: there is none."""
        if self._timer is not None:
            if due is not None and self._due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._due = due
            wait = max(0, due - time.monotonic_ns())
            # Whole milliseconds, rounded up: uvloop's timers round down and would wake us too early, again and again.
            self._timer = self._loop.call_later(-(-wait // MILLISECOND) / 1_000, self._over)

    def _over(self) -> None:
        self._timer = None
        self._ring()
