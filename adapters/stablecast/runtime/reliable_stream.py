"""A source's data over LBT-RM or LBT-RU, on a session that it may share with others.

Where the rate limit is reached the source is held until there is room: what it wrote before waits here. What a joiner
of a TCP stream is greeted with is told here now and then, with the number up to which there is nothing to be missed.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from stablecast.runtime.reliable_sources import ReliableSources
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.wire.lbmc import MessageKind

STANDING_SECONDS = 0.5
"""How often the source says where it stands: so long a receiver that joins may wait."""

STANDINGS_PER_SECOND = 1000
"""Of all sources of a context: where there are more, each says it less often."""

MAX_WAITING = 64
"""Blocks that wait for the rate limit; beyond that control messages are dropped, because the source repeats them.

Data is never dropped: a source that is held sends none, so no more of it waits than one turn of the source's loop has.
"""


CLOSE_SECONDS = 2.0
"""How long closing waits for the rate limit to let out what was written."""


LOOK_SECONDS = 0.01
"""How often closing looks whether it has."""


class ReliableStream:
    """What `StreamServer` is to a source.

    `standing` gives what is told now and then; `hold` is told whether the source must wait; `on_close` says that the
    session has one source less.
    """

    def __init__(
        self,
        sources: ReliableSources,
        session: int,
        standing: Callable[[], bytes],
        hold: Callable[[bool], None],
        on_close: Callable[[], None],
        on_failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """A session that is open. `on_failed` gets what is raised when nobody who writes is there to catch it."""
        self._sources = sources
        self._session = session
        self._standing = standing
        self._hold = hold
        self._on_failed = on_failed
        self._on_close: Callable[[], None] | None = on_close
        self._waiting: deque[bytes] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._held = self._wants = False

    async def start(self) -> None:
        """Say where the source stands from now on."""
        self._sources.streams += 1
        self._say_standing()

    def write(self, block: bytes) -> None:
        """Send to everybody. Raises MisuseError for messages that can never be sent."""
        if len(self._waiting) >= MAX_WAITING and block[0] == MessageKind.CONTROL:
            return
        self._waiting.append(block)
        self._push()

    async def close(self) -> None:
        """Leave the session, once what waits for the rate limit has left, or after `CLOSE_SECONDS`.

        What is lost is sent again for a while, until the context is closed.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._sources.streams -= 1
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._on_close is not None and (self._waiting or self._sources.waits(self._session)):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)  # Nothing reports that the last datagram has left.
        except TimeoutError:
            pass  # The rate limit is too low for what was sent at the end: what is not stable stays so.
        finally:
            left, self._on_close = self._on_close, None
            if left is not None:
                left()

    def _push(self) -> None:
        sources = self._sources
        while self._waiting and not sources.blocked:
            block = self._waiting.popleft()
            if block[0] == MessageKind.CONTROL:
                sources.say(self._session, block)
            elif not sources.offer(self._session, block, BatchMark.END):
                self._waiting.appendleft(block)
                break
        held = sources.blocked
        if held and not self._wants:
            self._wants = True
            sources.when_room(self._go_on)
        if held != self._held:
            self._held = held
            self._hold(held)

    def _go_on(self) -> None:
        """There is room."""
        self._wants = False
        if self._on_close is None:
            return
        try:
            self._push()
        except Exception as error:
            if self._on_failed is None:
                raise
            self._on_failed(error)

    def _say_standing(self) -> None:
        wait = max(STANDING_SECONDS, self._sources.streams / STANDINGS_PER_SECOND)
        self._timer = asyncio.get_running_loop().call_later(wait, self._say_standing)
        block = b"" if self._waiting else self._standing()
        if block:
            self.write(block)
