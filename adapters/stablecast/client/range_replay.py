"""Replay: the messages of a reader at the pace at which they came, or faster.

The pace is that of the first store that has each message. Messages without a time follow the one before at once. A
pause is never longer than `MAX_PAUSE_SECONDS` of the replay, so that a quiet night need not be waited for.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

import attrs

from stablecast.client.range_batch import StoredMessage
from stablecast.core.errors import MisuseError

MAX_PAUSE_SECONDS = 60.0
"""Longest pause between two messages, after the speed is applied."""

LEAST_PAUSE_SECONDS = 0.001
"""Shorter pauses are saved up: a timer of the event loop is no more exact."""


@attrs.frozen
class ReplayPace:
    """The pace of a replay: `speed` times as fast as the messages came; None: as fast as possible. Raises MisuseError.

    `max_pause` bounds the pause between two messages, in seconds.
    """

    speed: float | None = 1.0
    max_pause: float = MAX_PAUSE_SECONDS

    def __attrs_post_init__(self) -> None:
        """Refuse a pace that would never end."""
        if self.speed is not None and not 0 < self.speed < float("inf"):
            raise MisuseError(f"a replay cannot run at {self.speed:g} times the pace: give a number above 0")
        if not 0 <= self.max_pause < float("inf"):
            raise MisuseError(f"a pause of {self.max_pause:g} s at most makes no sense: give 0 or more")


async def paced(messages: AsyncIterable[StoredMessage], pace: ReplayPace) -> AsyncIterator[StoredMessage]:
    """Yield messages that have times at this pace.

    The pace is kept over the whole replay: a message that was yielded late makes the next pause shorter.
    """
    loop = asyncio.get_running_loop()
    due, before = loop.time(), None
    async for message in messages:
        came = message.came_at
        if pace.speed is not None and came is not None:
            if before is not None and came > before:
                due += min((came - before).total_seconds() / pace.speed, pace.max_pause)
            before = came if before is None else max(before, came)
            wait = due - loop.time()
            if wait >= LEAST_PAUSE_SECONDS:
                await asyncio.sleep(wait)
        yield message
