"""How an application reads a receiver: `async for` over messages or batches, in one task of the receiver's event loop.

An application that never waits would keep the event loop for as long as messages wait: no acknowledgement would leave,
no keepalive, and after a crash everything would come again. Therefore the loop makes a turn before the next message
when the application had it for `TURN_SECONDS`, or was handed `TURN_MESSAGES`. What the application consumed is reported
at that turn, and acknowledged an interval of acknowledgements later. If it kept the loop for longer than that interval,
all that it consumed is acknowledged before the next message is handed over.
"""

import asyncio
import weakref
from time import monotonic

from stablecast.client.inbox import Inbox
from stablecast.client.message import Batch, Message
from stablecast.core.errors import MisuseError, StablecastError

TURN_SECONDS = 0.01
"""The application is handed messages for no longer than this before the event loop makes a turn."""

TURN_MESSAGES = 4096
"""The application is handed no more messages before the event loop makes a turn; a batch is not cut for that."""

FIRST_BATCH = 1
"""Messages of a loop's first batch; each next one may have twice as many, until nothing is to be cut any more.

An application that crashes again and again after some messages advances by half of them, or more.
"""


class Reader:
    """The side of a receiver's inbox that waits and hands over.

    Attributes:
        payloads: Those of the batch of which single messages are read.
        left: Messages that may be handed over before the loop makes a turn; above zero there is a batch in hand.
        until: When it makes a turn, on the monotonic clock.
    """

    def __init__(self, inbox: Inbox[Batch], patience: float, topic: str, refusal: str = "") -> None:
        """Read an inbox.

        Args:
            inbox: What is read.
            patience: The interval of acknowledgements, in seconds.
            topic: What the receiver is called in errors.
            refusal: Why nobody may read; empty if that is allowed.
        """
        self.inbox = inbox
        self.payloads: list[bytes] = []
        self.left = 0
        self.until = 0.0
        self._patience = patience
        self._topic = topic
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._busy = self._closed = False
        self._failure: tuple[StablecastError, Exception] | None = None
        self._turned_at = 0.0
        self._in_hand = 0
        self._reading: weakref.ref[Reading] | None = None

    def claim(self) -> "Reading":
        """Begin a loop. Raises MisuseError while a loop of another task goes on, and in another event loop."""
        self.check()
        reading = Reading(self)
        self._reading = weakref.ref(reading)
        return reading

    def check(self) -> None:
        """Raise MisuseError if nobody may read, or somebody else reads."""
        if self._refusal:
            raise MisuseError(self._refusal)
        if asyncio.get_running_loop() is not self._loop:
            raise MisuseError(
                f"receiver '{self._topic}' belongs to another event loop: read it there, and hand messages over from it"
            )
        reading = None if self._reading is None else self._reading()
        task = None if reading is None else reading.task
        if self._busy or (task is not None and task is not asyncio.current_task() and not task.done()):
            raise MisuseError(
                f"another task reads receiver '{self._topic}': read a receiver in one task only, and hand messages over"
            )

    def fail(self, failure: StablecastError, cause: Exception) -> None:
        """Once everything is handed over, raise this for the application; the first failure counts."""
        if self._failure is None:
            self._failure = (failure, cause)
            self._wake()

    def close(self) -> None:
        """Hand nothing more over, and report what was consumed: all but the last message, or batch, handed over."""
        self._closed = True
        inbox = self.inbox
        if inbox.current is not None:
            inbox.current.settle(inbox.handed - self._in_hand)
        inbox.clear()
        self._wake()

    async def next_message(self) -> Batch:
        """Return the batch whose next message is to be handed over. Raises StopAsyncIteration when closed."""
        inbox = self.inbox
        self._enter()
        try:
            if inbox.rest and self._due():
                await self._turn()
            while not inbox.rest:  # what was left may have been dropped in that turn
                batch = await self._next()
                if batch is None:
                    raise StopAsyncIteration
                inbox.handed, self.payloads = 0, batch.payloads()
        finally:
            self._busy = False
        self.left -= 1
        self._in_hand = 1
        assert inbox.current is not None
        return inbox.current

    async def next_batch(self, most: int) -> Batch | None:
        """Return the next batch, None when closed; it has `most` messages at most, unless that is many."""
        self._enter()
        try:
            self.inbox.return_rest()
            batch = await self._next(most if most <= TURN_MESSAGES else None)
        finally:
            self._busy = False
        if batch is not None:
            self.left -= batch.count
            self._in_hand = batch.count
        return batch

    def _enter(self) -> None:
        """Consume the message in hand, because the application asks for more; acknowledge it now if that took long."""
        if self._busy:
            self.check()
        self._busy = True
        current = self.inbox.current
        if current is not None:
            current.settle(self.inbox.handed)
            if monotonic() - self._turned_at > self._patience:
                current.owner.acknowledge_now()

    async def _next(self, most: int | None = None) -> Batch | None:
        inbox = self.inbox
        while not self._closed:
            if not inbox:
                if self._failure is not None:
                    failure, cause = self._failure
                    raise type(failure)(str(failure)) from cause
                await self._wait()
                continue
            if self._due():
                await self._turn()
            if inbox and not self._closed:  # what waited may have been dropped in that turn
                return inbox.take(most)
        return None

    def _due(self) -> bool:
        return self.left <= 0 or monotonic() >= self.until

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        self._begin_turn()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        self.inbox.wake = self._wake
        try:
            await self._waiter
        finally:
            self.inbox.wake = self._waiter = None
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._turned_at = monotonic()
        self.until = self._turned_at + TURN_SECONDS
        self.left = TURN_MESSAGES

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Reading:
    """One loop over a receiver's messages; `task` is whose it is."""

    __slots__ = ("__weakref__", "_reader", "task")

    def __init__(self, reader: Reader) -> None:
        """Begin; the messages go on where the loop before left them."""
        self._reader = reader
        self.task = asyncio.current_task()

    def __aiter__(self) -> "Reading":
        """Return itself."""
        return self

    async def __anext__(self) -> Message:
        """Return the next message; the one before it is consumed."""
        reader = self._reader
        inbox = reader.inbox
        at, batch = inbox.handed, inbox.current
        if batch is not None and at < batch.count and reader.left > 0 and monotonic() < reader.until:
            reader.left -= 1
        else:
            batch = await reader.next_message()
            at = inbox.handed
        inbox.handed = at + 1
        return Message(reader.payloads[at], batch, at)

    async def batch(self, most: int) -> Batch | None:
        """Return the next batch; the one before it is consumed."""
        return await self._reader.next_batch(most)
