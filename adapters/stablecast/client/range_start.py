"""The place where a receiver that no store knows begins: a number, a time, the last messages, earliest or latest.

A store that knows the receiver by its session id remembers how far it is, and then the bound does not count. It counts
once for each source: a later life of the source goes on where the receiver is.
"""

import asyncio
from typing import Protocol

import attrs

from stablecast.client.range_bounds import ReadBounds
from stablecast.client.range_inquiry import RangeRoutes, StoreAway
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.messages import SourceInfo, StoreEntry

PATIENCE_SECONDS = 5.0
"""Time to wait for the stores' answers about a time; without any, the receiver begins at the earliest message."""


class StartingSession(Protocol):
    """A session of a receiver, as it chooses its first number."""

    @property
    def info(self) -> SourceInfo | None:
        """Return the newest announcement of the source."""

    @property
    def returning(self) -> bool:
        """Return whether a store knows how far the receiver is."""

    def choose(self, question: AskLow, low: int) -> None:
        """Begin to deliver at the number `low`."""


@attrs.define(eq=False)
class ReceiverStart:
    """Answers where the sessions of one receiver begin.

    Attributes:
        bounds: The bound, as a reader has it.
        routes: The way to ask stores.
    """

    _bounds: ReadBounds
    _routes: RangeRoutes
    _tasks: dict[asyncio.Task[None], None] = attrs.field(factory=dict)

    def number(self, question: AskLow, session: StartingSession) -> int | None:
        """Return the first number to deliver; None if the session is told later, when the stores have answered."""
        bounds, info = self._bounds, session.info
        if session.returning or info is None:
            return question.low
        if bounds.number is not None:
            return bounds.number
        if bounds.count is not None:
            return max(question.low, question.high + 1 - bounds.count)
        if bounds.latest:
            return question.high + 1
        if bounds.time is None or not info.stores:
            return question.low
        task = asyncio.get_running_loop().create_task(self._find(question, session, info, bounds.time))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return None

    def close(self) -> None:
        """End the questions to stores that are under way."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _find(self, question: AskLow, session: StartingSession, info: SourceInfo, time: int) -> None:
        """Ask the stores of the source for the first number since a time, and begin at the lowest.

        A store may lack messages, so fewer stores than a majority do not tell where the first one is.
        """

        async def ask(entry: StoreEntry) -> list[int | None]:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    found = await self._routes.ask(
                        entry.address, topic=info.topic, reg_id=entry.source_reg_id, since=time, first=1
                    )
            except (StoreAway, TimeoutError):
                return []
            # A store that does not know this life yet may name a number that the life uses again.
            return [one.since for one in found if one.readable and one.incarnation == info.incarnation]

        found = await asyncio.gather(*map(ask, info.stores))
        enough = sum(map(bool, found)) > sum(info.group_sizes) // 2
        numbers = [number for its in found for number in its if number is not None] if enough else []
        session.choose(question, max(question.low, min(numbers, default=question.low)))
