"""Messages, and the reading side of every receiver, with calls that block."""

import asyncio
import weakref
from typing import Any, Self, TypeVar

from stablecast import client
from stablecast.runtime import machine
from stablecast.sync.facade import Facade, Shown, called
from stablecast.sync.loop_thread import LoopThread
from stablecast.transports.wire.properties import Value

ReaderT = TypeVar("ReaderT", bound=client.Receiver | client.WildcardReceiver | client.GroupReceiver)


class Message(Facade[client.Message]):
    """One message.

    Attributes:
        payload: The bytes that the source sent.
    """

    __slots__ = ("_inner", "_thread", "payload")

    ack = called(client.Message.ack)
    nack = called(client.Message.nack)
    consumed = called(client.Message.consumed)
    attempt = Shown[int](client.Message.attempt)
    topic = Shown[str](client.Message.topic)
    sequence_number = Shown[int](client.Message.sequence_number)
    source = Shown[str](client.Message.source)
    life = Shown[int](client.Message.life)
    number = Shown[int](client.Message.number)
    numbers = Shown[tuple[int, int]](client.Message.numbers)
    key = Shown[str](client.Message.key)
    id = Shown[str | None](client.Message.id)
    received_at = Shown[float](client.Message.received_at)
    sent_at = Shown[float | None](client.Message.sent_at)
    properties = Shown[dict[str, Value]](client.Message.properties)
    incarnation = Shown[int](client.Message.incarnation)
    recovered = Shown[bool](client.Message.recovered)
    hot_number = Shown[int | None](client.Message.hot_number)

    def __init__(self, inner: client.Message, thread: LoopThread) -> None:
        """Stand for `inner`."""
        super().__init__(inner, thread)
        self.payload = inner.payload

    def __enter__(self) -> Self:
        """Take the message: it is acknowledged when the block ends, and comes again if the block raises."""
        self._thread.run(self._inner.__aenter__())
        self._inner.enter_span()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Settle the message by the end of the block, as that of the client."""
        self._inner.leave_span()
        if self._thread.forked:
            return False
        return self._thread.run(self._inner.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        """Return the number and the size, for debugging."""
        return repr(self._inner)


class MessageLoop:
    """One `for` over a receiver, in `thread`. Dropping it is what leaving the loop is to Python."""

    def __init__(self, reader: "Reader[Any]") -> None:
        """Begin a loop where the previous one ended."""
        self._reader = reader
        self.thread = machine.threads.ident()

    def __iter__(self) -> "MessageLoop":
        """Begin a loop where this one ended."""
        return MessageLoop(self._reader)

    def __next__(self) -> Message:
        """Return the next message. Raises like `Reader.next`."""
        return self._reader.next_of(self)


class Reader(Facade[ReaderT]):
    """The reading side of a receiver. Iterate it, or call `next`.

    A message is consumed when its loop asks for the next one, or after `next` when anybody asks. A loop that was left
    in the middle of a message did not consume it, so that message comes again. One task of the event loop reads for all
    threads. Two threads that read share the messages, and a message then counts as consumed when either thread asks for
    the next one: use `with message:` there.
    """

    def __init__(self, inner: ReaderT, thread: LoopThread) -> None:
        """Stand for `inner`; the task that reads it starts at the first wish."""
        super().__init__(inner, thread)
        self._wishes: asyncio.Queue[tuple[asyncio.Future[client.Message | None], MessageLoop | None]] = asyncio.Queue()
        self._holder: tuple[weakref.ref[MessageLoop], int] | None = None
        self._kept: client.Message | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ended = False

    def next(self, timeout: float | None = None) -> Message:
        """Wait for the next message, and return it.

        Args:
            timeout: Seconds to wait; None waits for ever.

        Raises:
            TimeoutError: No message came in time.
            StopIteration: The receiver is closed.
            RegistrationFailed, EndpointFailed, MisuseError: As a loop over the client's receiver.
        """
        return self.next_of(None, timeout)

    def next_of(self, loop: MessageLoop | None, timeout: float | None = None) -> Message:
        """Wait for the next message of a loop, None for one that `next` asks for. Raises like `next`."""
        message = None
        if not self._ended:
            try:
                message = self._thread.run(self._next(timeout, loop))
            except client.Closed:
                if not self._ended:  # The context was never open.
                    raise
        if message is None:
            raise StopIteration
        return Message(message, self._thread)

    def __iter__(self) -> MessageLoop:
        """Begin a loop. It begins with the message in whose middle a loop before it was left."""
        return MessageLoop(self)

    def __next__(self) -> Message:
        """Return the next message. Raises like `next`."""
        return self.next()

    def close(self) -> None:
        """Acknowledge the consumed messages and leave all sources. Iteration ends."""
        self._thread.run(self.end())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the receiver, unless this process was forked from its own."""
        if not self._thread.forked:
            self.close()

    async def _next(self, seconds: float | None, loop: MessageLoop | None) -> client.Message | None:
        """Return the next message, or None at the end. One that comes too late is kept for the next call."""
        if self._ended:
            return None
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        wish: asyncio.Future[client.Message | None] = asyncio.get_running_loop().create_future()
        self._wishes.put_nowait((wish, loop))
        try:
            async with asyncio.timeout(seconds):
                return await wish
        except BaseException:
            if wish.done() and not wish.cancelled() and wish.exception() is None:
                self._kept = wish.result()
            raise

    async def _read(self) -> None:
        """Fulfil wishes, one by one. A receiver is read by one task only."""
        messages = aiter(self._inner)
        while True:
            wish, loop = await self._wishes.get()
            if wish.cancelled():
                continue
            try:
                if self._kept is None and self._left(loop):
                    messages = aiter(self._inner)
                self._holder = None if loop is None else (weakref.ref(loop), loop.thread)
                loop = None  # Only its `for` may keep it.
                message = self._kept or await anext(messages, None)
            except Exception as error:  # noqa: BLE001 - it is raised in the thread that waits
                if not wish.cancelled():
                    wish.set_exception(error)
                continue
            self._kept = message if wish.cancelled() else None
            if not wish.cancelled():
                wish.set_result(message)

    def _left(self, loop: MessageLoop | None) -> bool:
        """Return whether the loop that has the message in hand was left, now that `loop` asks for the next one."""
        if self._holder is None:
            return False
        holder, thread = self._holder[0](), self._holder[1]
        return holder is None or (loop is not None and holder is not loop and thread == loop.thread)

    async def end(self) -> None:
        """Close the receiver, in the thread of the loop."""
        self._ended = True
        await self._inner.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        while not self._wishes.empty():
            wish, _ = self._wishes.get_nowait()
            if not wish.done():
                wish.set_result(None)
