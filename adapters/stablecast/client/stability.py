"""The stable messages of a source, and the callers that wait for a message to become stable.

Numbers are extended. A message that the source reclaimed before it was stable (P-323) never becomes stable. It lies
below the trail and outside the stable ranges.
"""

import asyncio

from stablecast.client.errors import Closed, NotStable
from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.settings import Notification, SourceConfig

MAX_RANGES = 1024
"""Stable ranges with lost messages between them. Beyond that, the oldest range counts as not stable."""


class Stability:
    """One source's stable messages and the futures of callers that wait.

    Attributes:
        through: The number up to which all messages of this life are stable.
    """

    def __init__(self) -> None:
        """Start before the first message."""
        self.through = -1
        self._trail = 0
        self._stable = RangeSet()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._reason = ""

    @classmethod
    def of(cls, config: SourceConfig) -> "Stability":
        """Make the record of a source. It is closed at once if the source never learns what is stable."""
        stability = cls()
        if not config.stores:
            stability.close(f"source '{config.topic}' has no stores: nothing that it sends becomes stable")
        elif config.stable_notification is Notification.NONE:
            stability.close(f"source '{config.topic}' is configured not to report what is stable")
        return stability

    def __len__(self) -> int:
        """Return the number of messages that callers wait for."""
        return len(self._waiting)

    def begin(self, number: int) -> None:
        """Set the number of the first message of this life."""
        self._trail = number
        self.through = number - 1

    def check_through(self, number: int) -> bool:
        """Return True if all messages up to `number` are stable. Raises NotStable or Closed if they never will be."""
        if self.through >= number:
            return True
        if self.through + 1 < self._trail:
            raise NotStable(_lost(self.through + 1))
        if self._reason:
            raise Closed(self._reason)
        return False

    async def wait(self, number: int) -> None:
        """Wait until a message is stable. Raises NotStable if it was reclaimed by force, Closed on closing."""
        if number <= self.through or number in self._stable:
            return
        if number < self._trail:
            raise NotStable(_lost(number))
        if self._reason:
            raise Closed(self._reason)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(number, []).append(future)
        try:
            await future
        finally:
            waiting = self._waiting.get(number)
            if waiting is not None and future in waiting:
                waiting.remove(future)
                if not waiting:
                    del self._waiting[number]

    def on_stable(self, first: int, last: int) -> None:
        """Note that messages `first` to `last` are stable, and wake their callers."""
        self._stable.add(first, last + 1)
        self.through = self._stable.contiguous_from(self.through + 1) - 1
        if len(self._stable.ranges) > MAX_RANGES:
            self._stable.forget(self._stable.ranges[1][0])
        if self._waiting:
            self._wake(first, last, None)

    def on_reclaimed(self, first: int, last: int) -> None:
        """Note that the source reclaimed messages `first` to `last`, and fail their callers."""
        self._trail = max(self._trail, last + 1)
        if self._waiting:
            self._wake(first, last, NotStable)

    def close(self, reason: str) -> None:
        """Fail all callers, now and later, with the reason `reason`."""
        self._reason = self._reason or reason
        for future in [future for futures in self._waiting.values() for future in futures]:
            if not future.done():
                future.set_exception(Closed(self._reason))
        self._waiting.clear()

    def _wake(self, first: int, last: int, failure: type[NotStable] | None) -> None:
        waiting = self._waiting
        numbers = range(first, last + 1) if last - first < len(waiting) else tuple(waiting)
        for number in numbers:
            if number in waiting and first <= number <= last:
                for future in waiting.pop(number):
                    if future.done():
                        continue
                    if failure is None:
                        future.set_result(None)
                    else:
                        future.set_exception(failure(_lost(number)))


def _lost(number: int) -> str:
    return f"message {serial.wire(number)} was reclaimed before it was stable"
