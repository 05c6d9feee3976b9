"""The stable messages of a source, and the callers that wait for a message to become stable.

Numbers are extended. A message that was cut is stable when all its pieces are, in whatever order they become so. Two
kinds of messages never become stable:

* a message that the source reclaimed before it was stable (P-323). It lies below the trail and outside the stable
  ranges;
* a message that every store of the source lost for good (P-441). A store that lost a message can get it only from
  another store, so it may still become stable while one store holds it, or has not lost it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from stablecast.client.errors import Closed, NotStable
from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.settings import Notification, SourceConfig
from stablecast.core.source.large_messages import LargeMessages

MAX_RANGES = 1024
"""Stable ranges with lost messages between them. Beyond that, the oldest range counts as not stable."""


class StoreRecords(Protocol):
    """The numbers that each store of a source acknowledged or lost, as the status of the source has them."""

    @property
    def acked(self) -> Sequence[RangeSet]:
        """The numbers that a store acknowledged."""

    @property
    def lost(self) -> Sequence[RangeSet]:
        """The numbers that a store lost for good."""


class Stability:
    """One source's stable messages and the futures of callers that wait.

    Attributes:
        through: The number up to which all messages of this life are stable.
    """

    def __init__(self, records: StoreRecords) -> None:
        """Start before the first message. `records` are read again after each report of a loss."""
        self.through = -1
        self._records = records
        self._any_lost = False  # Reading the records copies them, so they are not read for each message.
        self._trail = 0
        self._stable = RangeSet()
        self._large = LargeMessages()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._reason = ""

    @classmethod
    def of(cls, config: SourceConfig, records: StoreRecords) -> "Stability":
        """Make the record of a source. It is closed at once if the source never learns what is stable."""
        stability = cls(records)
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
        for first, _ in self._given_up(self.through + 1, number + 1):
            raise NotStable(self._refused(first))
        return False

    def cut(self, first: int, last: int) -> None:
        """Note that a message, above all earlier ones, was cut into the pieces `first` to `last`."""
        if not self._reason:
            self._large.add(first, last)

    async def wait(self, number: int) -> None:
        """Wait until a message is stable, which has this number last.

        Raises NotStable if it was reclaimed by force, or lost at every store, and Closed on closing.
        """
        for piece in range(self._large.first_of(number), number + 1):
            await self._wait(piece)

    async def _wait(self, number: int) -> None:
        if number <= self.through or number in self._stable:
            return
        if number < self._trail:
            raise NotStable(_lost(number))
        if self._reason:
            raise Closed(self._reason)
        if self._given_up(number, number + 1):
            raise NotStable(self._refused(number))
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
        self._large.forget(self.through + 1)
        if self._waiting:
            self._wake(first, last)

    def on_reclaimed(self, first: int, last: int) -> None:
        """Note that the source reclaimed messages `first` to `last`, and fail their callers."""
        self._trail = max(self._trail, last + 1)
        # Nobody can tell its pieces from messages later, so none of them stays if one is missing.
        for low, stop in self._large.begun(self._trail):
            if self._stable.missing(low, stop):
                self._stable.remove(low, stop)
        self._large.forget(self._trail)
        if self._waiting:
            self._wake(first, last, _lost)

    def on_lost_at_store(self, first: int, last: int) -> None:
        """Note that one more store lost messages `first` to `last`, and fail the callers of those that all lost."""
        self._any_lost = True
        if self._waiting:
            for low, stop in self._given_up(first, last + 1):
                self._wake(low, stop - 1, self._refused)

    def close(self, reason: str) -> None:
        """Fail all callers, now and later, with the reason `reason`."""
        self._reason = self._reason or reason
        for future in [future for futures in self._waiting.values() for future in futures]:
            if not future.done():
                future.set_exception(Closed(self._reason))
        self._waiting.clear()

    def _given_up(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of [first, stop) that are not stable, that every store lost, and that none holds.

        They are computed anew each time, because a store that registers again may accept a message that it had lost.
        """
        if not self._any_lost:
            return []
        parts = self._stable.missing(first, stop)
        for lost, held in zip(self._records.lost, self._records.acked, strict=True):
            both = [part for low, high in parts for part in lost.within(low, high)]
            parts = [part for low, high in both for part in held.missing(low, high)]
        return parts

    def _refused(self, number: int) -> str:
        stores = len(self._records.lost)
        who = f"all {stores} stores" if stores > 1 else "the only store"
        return (
            f"{who} of the source gave up message {serial.wire(number)}, so no copy is left from which it could become "
            "stable: mend what the logs of the stores name (loss, messages-dropped), then send it again"
        )

    def _wake(self, first: int, last: int, failure: Callable[[int], str] | None = None) -> None:
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
                        future.set_exception(NotStable(failure(number)))


def _lost(number: int) -> str:
    return f"message {serial.wire(number)} was reclaimed before it was stable"
