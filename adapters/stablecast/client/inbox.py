"""What was delivered to a receiver and not yet taken by its application."""

import asyncio
from collections import deque
from collections.abc import Callable

from stablecast.client.message import Batch
from stablecast.core.errors import MisuseError, StablecastError

MAX_QUEUED_BYTES = 32 * 1024 * 1024
"""Bytes delivered but not taken; beyond that streams are read no further until half of them are taken."""

BATCH_BYTES = 512
"""What a batch costs besides its messages."""


class Inbox:
    """A queue of batches for one task that takes them; `on_room` is called when it was full and is half empty."""

    def __init__(self, on_room: Callable[[], None]) -> None:
        """Nothing was delivered."""
        self.full = False
        self._on_room = on_room
        self._queue: deque[Batch] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._taking = False
        self._closed = False
        self._failure: tuple[StablecastError, Exception] | None = None

    def __len__(self) -> int:
        """How many batches wait."""
        return len(self._queue)

    def put(self, batch: Batch) -> None:
        """Deliver a batch."""
        self._queue.append(batch)
        self._bytes += batch.size + BATCH_BYTES
        self.full = self.full or self._bytes > MAX_QUEUED_BYTES
        self._changed.set()

    def fail(self, failure: StablecastError, cause: Exception) -> None:
        """Once everything is taken, `take` raises this; the first failure counts."""
        if self._failure is None:
            self._failure = (failure, cause)
            self._changed.set()

    def close(self) -> None:
        """Nothing more is taken."""
        self._closed = True
        self._queue.clear()
        self._changed.set()

    async def take(self) -> Batch | None:
        """The next batch, None once closed; cancelled meanwhile, it has taken none.

        Raises what `fail` was told, and MisuseError while another task waits here.
        """
        if self._taking:
            raise MisuseError("another task waits for this receiver's messages: read a receiver in one task only")
        self._taking = True
        try:
            while not self._queue:
                if self._closed:
                    return None
                if self._failure is not None:
                    failure, cause = self._failure
                    raise type(failure)(str(failure)) from cause
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._taking = False
        batch = self._queue.popleft()
        self._bytes -= batch.size + BATCH_BYTES
        if self.full and self._bytes <= MAX_QUEUED_BYTES // 2:
            self.full = False
            self._on_room()
        return batch
