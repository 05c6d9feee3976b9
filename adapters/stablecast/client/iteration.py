"""Iteration over a receiver: `async for` over messages or batches, in one task of the receiver's event loop.

An application that never waits would keep the event loop while messages wait. No acknowledgement and no keepalive would
leave, and after a crash all messages would come again. Therefore the event loop makes a turn before the next message
once the application had the loop for `TURN_SECONDS`, or was handed `TURN_MESSAGES`. Consumed messages are reported at
that turn, and acknowledged one acknowledgement interval later. If the application kept the loop for longer than that
interval, they are acknowledged before the next message is handed over.

A message in hand belongs to the loop that got it. It is consumed when that loop asks for the next one, or when the
application says so. If anything else asks first, the loop was left in the middle: its body raised, was cancelled or
broke off. Then the message goes back and is handed over again, before all later ones. Python gives each `async for` a
loop of its own, so no way of leaving looks like going on.
"""

import asyncio
import weakref
from collections.abc import Callable

from stablecast.client.batch import Batch
from stablecast.client.inbox import Inbox
from stablecast.client.message import Message
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.runtime import machine

TURN_SECONDS = 0.01
"""Seconds in which the application is handed messages before the event loop makes a turn."""

TURN_MESSAGES = 4096
"""Messages that the application is handed before the event loop makes a turn; a batch is not cut for that."""

FIRST_BATCH = 1
"""Messages of a loop's first batch. Each next batch may have twice as many.

An application that crashes again and again after N messages then advances by N / 2 or more each time.
"""


class InboxReader:
    """The reading side of a receiver's inbox, which waits for batches.

    Attributes:
        payloads: The payloads of the batch in hand, while single messages are read.
        left: Messages that may be handed over before the loop makes a turn, as of the last batch.
        until: The time of that turn, in seconds of the monotonic clock.
        now: The monotonic clock in seconds. It is kept here because it is read for each message.
        on_turn: Called before messages are handed over after a turn of the loop; it may drop messages of the inbox.
        on_left: Called when a loop was left in the middle of a message, which is in hand and not handed over now.
    """

    def __init__(
        self,
        inbox: Inbox[Batch],
        patience: float,
        whose: str,
        refusal: str = "",
        kind: "Callable[[InboxReader], MessageIterator] | None" = None,
    ) -> None:
        """Read an inbox.

        Args:
            inbox: The queue to read.
            patience: The interval of acknowledgements, in seconds.
            whose: The receiver in errors, for example `receiver 'orders'`.
            refusal: The reason why nobody may read; empty if reading is allowed.
            kind: Makes its loops; None for `MessageIterator`.
        """
        self.inbox = inbox
        self.payloads: list[bytes] = []
        self.left = 0
        self.until = 0.0
        self._patience = patience
        self._whose = whose
        self._refusal = refusal
        self._kind = kind or MessageIterator
        self.now = machine.clock.monotonic
        self.on_turn: Callable[[], None] | None = None
        self.on_left: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._busy = self._closed = False
        self._failure: tuple[StablecastError, Exception] | None = None
        self._turned_at = 0.0
        self._in_hand = 0
        self._iterator: weakref.ref[MessageIterator] | None = None
        self._holder: weakref.ref[MessageIterator] | None = None

    def claim(self) -> "MessageIterator":
        """Begin a loop. Raises MisuseError as `check` does."""
        self.check()
        iterator = self._kind(self)
        self._iterator = weakref.ref(iterator)
        return iterator

    def leave(self, iterator: "MessageIterator") -> None:
        """Note that a loop was left, if it has the message in hand: that message is handed over again."""
        if self._holder is not None and self._holder() is iterator:
            self._holder, iterator.left = None, 0

    def check(self) -> None:
        """Raise MisuseError if nobody may read, another task reads, or another event loop runs."""
        if self._refusal:
            raise MisuseError(self._refusal)
        if asyncio.get_running_loop() is not self._loop:
            raise MisuseError(
                f"{self._whose} belongs to another event loop: read it there, and hand messages over from it"
            )
        iterator = None if self._iterator is None else self._iterator()
        task = None if iterator is None else iterator.task
        if self._busy or (task is not None and task is not asyncio.current_task() and not task.done()):
            raise MisuseError(
                f"another task reads {self._whose}: read a receiver in one task only, and hand messages over"
            )

    def fail(self, failure: StablecastError, cause: Exception) -> None:
        """Raise `failure` for the application after the last message. Later failures are ignored."""
        if self._failure is None:
            self._failure = (failure, cause)
            self._wake()

    def close(self) -> None:
        """End the iteration, and report all messages as consumed but the last message or batch handed over."""
        self._closed = True
        inbox = self.inbox
        if inbox.current is not None:
            inbox.current.settle(inbox.handed - self._in_hand)
        inbox.clear()
        self._wake()

    async def next_message(self, iterator: "MessageIterator") -> Batch:
        """Return the batch that has the next message of a loop. Raises StopAsyncIteration when closed."""
        inbox = self.inbox
        self._enter(iterator)
        try:
            if inbox.rest and self._due():
                await self._turn()
            while not inbox.rest:  # A session may have dropped the rest in that turn.
                batch = await self._next()
                if batch is None:
                    raise StopAsyncIteration
                inbox.handed, self.payloads = 0, batch.payloads()
        finally:
            self._busy = False
        iterator.left = self.left - 1
        self._in_hand = 1
        assert inbox.current is not None
        return inbox.current

    async def next_batch(self, iterator: "MessageIterator", most: int) -> Batch | None:
        """Return the next batch of a loop, of at most `most` messages, None when closed.

        Beyond `TURN_MESSAGES` there is no limit, because cutting costs and the loop has grown its batches by then.
        """
        self._enter(iterator)
        try:
            self.inbox.return_rest()
            batch = await self._next(most if most <= TURN_MESSAGES else None)
        finally:
            self._busy = False
        if batch is not None:
            iterator.left = self.left - batch.count
            self._in_hand = batch.count
        return batch

    def _enter(self, iterator: "MessageIterator") -> None:
        """Report the message in hand as consumed, because its loop asks for the next one; else take it back.

        Acknowledge it now if the application kept the event loop for longer than the interval.
        """
        if self._busy:
            self.check()
        self._busy = True
        holder = None if self._holder is None else self._holder()
        self.left = iterator.left if holder is iterator else 0
        if holder is not None and holder is not iterator:
            holder.left = 0  # It asks here before it goes on.
        self._holder = weakref.ref(iterator)
        current = self.inbox.current
        if current is not None:
            done = holder is not None and (holder is iterator or not holder.is_loop)
            current.settle(self.inbox.handed - (0 if done else self._in_hand))
            if current.reported < self.inbox.handed:
                self.inbox.handed = current.reported
                if self._in_hand == 1 and self.on_left is not None:
                    self.on_left()
                self.payloads = [] if self.inbox.current is None else self.inbox.current.payloads()
            if self.now() - self._turned_at > self._patience:
                current.owner.acknowledge_now()
        self._in_hand = 0

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
            # A session may have dropped what waited in that turn, and a hot-failover inbox drops later copies.
            batch = inbox.next_batch(most) if inbox and not self._closed else None
            if batch is not None:
                return batch
        return None

    def _due(self) -> bool:
        return self.left <= 0 or self.now() >= self.until

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
        if self.on_turn is not None:
            self.on_turn()
        self._turned_at = self.now()
        self.until = self._turned_at + TURN_SECONDS
        self.left = TURN_MESSAGES

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class MessageIterator:
    """One loop over a receiver's messages, in `task`.

    Attributes:
        task: The task that began it.
        left: Messages that it may hand over before the event loop makes a turn; 0 if another loop read meanwhile. If
            positive, there is a batch in hand.
        is_loop: Whether another loop that asks next shows that this one was left. After `anext`, whose caller asks for
            each message by itself, it shows nothing.
    """

    __slots__ = ("__weakref__", "_reader", "is_loop", "left", "task")

    def __init__(self, reader: InboxReader) -> None:
        """Begin a loop where the previous one ended."""
        self._reader = reader
        self.task = asyncio.current_task()
        self.left, self.is_loop = 0, True

    def __aiter__(self) -> "MessageIterator":
        """Return itself, because a loop begins; a loop before it that had a message in hand was left."""
        self._reader.leave(self)
        return self

    async def __anext__(self) -> Message:
        """Return the next message, and report the previous one as consumed."""
        reader = self._reader
        inbox = reader.inbox
        at, batch, now = inbox.handed, inbox.current, reader.now
        if batch is not None and at < batch.count and self.left > 0 and now() < reader.until:
            self.left -= 1
        else:
            batch = await reader.next_message(self)
            at = inbox.handed
        inbox.handed = at + 1
        return Message(reader.payloads[at], batch, at)

    async def batch(self, most: int) -> Batch | None:
        """Return the next batch of at most `most` messages, and report the previous one as consumed."""
        return await self._reader.next_batch(self, most)


class SettledIterator(MessageIterator):
    """A loop whose messages the application settles one by one."""

    __slots__ = ()

    async def __anext__(self) -> Message:
        """Return the next message, which the application must settle."""
        message = await super().__anext__()
        message.take()
        return message


class BatchIterator:
    """The runs of messages of a receiver. Each `async for` over it is a loop of its own, as over a receiver."""

    def __init__(self, reader: InboxReader) -> None:
        """Begin where the previous loop ended, at the first wish."""
        self._reader = reader
        self._iterator: MessageIterator | None = None
        self._most = FIRST_BATCH
        self._ended = False

    def __aiter__(self) -> "BatchIterator":
        """Return itself, because a loop begins; a loop before it that had a batch in hand was left."""
        if self._iterator is not None:
            self._reader.leave(self._iterator)
        return self

    async def __anext__(self) -> Batch:
        """Return the next batch, and report the previous one as consumed."""
        if self._iterator is None and not self._ended:
            self._iterator = self._reader.claim()
        batch = None if self._iterator is None else await self._iterator.batch(self._most)
        if batch is None:
            await self.aclose()
            raise StopAsyncIteration
        self._most = min(2 * self._most, 2 * TURN_MESSAGES)
        return batch

    async def aclose(self) -> None:
        """End it. A batch in hand that was not reported as consumed is handed over again."""
        self._iterator, self._ended = None, True
