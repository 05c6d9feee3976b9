"""What of a source's messages is stable, and who waits for it.

Numbers are extended. What the source let go of before it was stable (P-323) never becomes so: it lies below the trail
and outside the stable ranges.
"""

import asyncio

from stablecast.client.errors import Closed, NotStable
from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.settings import Notification, SourceConfig

MAX_RANGES = 1024
"""Stable ranges between which something was lost; of one more the oldest counts as not stable."""


class Stability:
    """One source's stable messages and the futures of those who wait for one."""

    def __init__(self) -> None:
        """Nothing was sent."""
        self.through = -1
        self._trail = 0
        self._stable = RangeSet()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._farewell = ""

    @classmethod
    def of(cls, config: SourceConfig) -> "Stability":
        """A source that sent nothing; of some nothing ever becomes known to be stable."""
        stability = cls()
        if not config.stores:
            stability.close(f"source '{config.topic}' has no stores: nothing that it sends becomes stable")
        elif config.stable_notification is Notification.NONE:
            stability.close(f"source '{config.topic}' is configured not to tell what is stable")
        return stability

    def __len__(self) -> int:
        """How many messages are waited for."""
        return len(self._waiting)

    def begin(self, number: int) -> None:
        """The first message of this life gets this number."""
        self._trail = number
        self.through = number - 1

    def check_through(self, number: int) -> bool:
        """Whether everything of this life up to `number` is stable. Raises NotStable or Closed if that can never be."""
        if self.through >= number:
            return True
        if self.through + 1 < self._trail:
            raise NotStable(_lost(self.through + 1))
        if self._farewell:
            raise Closed(self._farewell)
        return False

    async def wait(self, number: int) -> None:
        """Wait until a message is stable. Raises NotStable if it was reclaimed by force, Closed on closing."""
        if number <= self.through or number in self._stable:
            return
        if number < self._trail:
            raise NotStable(_lost(number))
        if self._farewell:
            raise Closed(self._farewell)
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
        """These messages are stable."""
        self._stable.add(first, last + 1)
        self.through = self._stable.contiguous_from(self.through + 1) - 1
        if len(self._stable.ranges) > MAX_RANGES:
            self._stable.forget(self._stable.ranges[1][0])
        if self._waiting:
            self._wake(first, last, None)

    def on_reclaimed(self, first: int, last: int) -> None:
        """The source keeps these messages no longer."""
        self._trail = max(self._trail, last + 1)
        if self._waiting:
            self._wake(first, last, NotStable)

    def close(self, farewell: str) -> None:
        """Nobody waits any more; `farewell` says why."""
        self._farewell = self._farewell or farewell
        for future in [future for futures in self._waiting.values() for future in futures]:
            if not future.done():
                future.set_exception(Closed(self._farewell))
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
