"""Contexts, sources, receivers and messages with calls that block.

Each class stands for the one of the same name in `stablecast.client`, and has its methods with their arguments. A
method of the other class is made to block here, so that both always agree.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import attrs

from stablecast import client
from stablecast.sync.loop_thread import LoopThread
from stablecast.transports.wire.properties import Value

P = ParamSpec("P")
T = TypeVar("T")
InnerT = TypeVar("InnerT")
FacadeT = TypeVar("FacadeT")
ReaderT = TypeVar("ReaderT", bound=client.Receiver | client.WildcardReceiver | client.GroupReceiver)


class Facade(Generic[InnerT]):
    """An object of the asyncio client, and the thread of its event loop."""

    def __init__(self, inner: InnerT, thread: LoopThread) -> None:
        """Stand for `inner`, which lives in `thread`."""
        self._inner = inner
        self._thread = thread


def awaited(
    method: Callable[Concatenate[InnerT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Facade[InnerT], P], T]:
    """Return a method that runs a coroutine method to its end."""

    @wraps(method)
    def blocking(self: Facade[InnerT], /, *arguments: P.args, **more: P.kwargs) -> T:
        return self._thread.run(method(self._inner, *arguments, **more))

    return blocking


def called(method: Callable[Concatenate[InnerT, P], T]) -> Callable[Concatenate[Facade[InnerT], P], T]:
    """Return a method that calls a plain method in the thread of the loop."""

    @wraps(method)
    def blocking(self: Facade[InnerT], /, *arguments: P.args, **more: P.kwargs) -> T:
        return self._thread.call(method, self._inner, *arguments, **more)

    return blocking


def like(
    model: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[Concatenate[FacadeT, ...], T]], Callable[Concatenate[FacadeT, P], T]]:
    """Return a decorator that gives a method the arguments of another one."""

    def given(method: Callable[Concatenate[FacadeT, ...], T]) -> Callable[Concatenate[FacadeT, P], T]:
        method.__signature__ = signature(model)  # type: ignore[attr-defined] # for `help`
        return method

    return given


@attrs.frozen
class Sent:
    """A message that was sent.

    Attributes:
        number: Its extended number, which never wraps; of a message that was cut, that of the last piece.
        source: The source that sent it.
    """

    number: int
    source: "Source"

    def stable(self) -> None:
        """Wait until enough stores have synced the message. Raises NotStable or Closed."""
        self.source.wait_stable(self.number)


class Source(Facade[client.Source]):
    """A source of one topic, made by `Context.source`. Use it inside `with`, or call `close`."""

    @property
    def inner(self) -> client.Source:
        """Return the source of the client, which belongs to the event loop of the context."""
        return self._inner

    try_send = called(client.Source.try_send)
    try_send_as = called(client.Source.try_send_as)
    room = awaited(client.Source.room)
    send_many = awaited(client.Source.send_many)
    registered = awaited(client.Source.registered)
    wait_stable = awaited(client.Source.wait_stable)
    wait_stable_through = awaited(client.Source.wait_stable_through)
    details = called(client.Source.details)
    flush = called(client.Source.flush)
    deregister = awaited(client.Source.deregister)
    close = awaited(client.Source.close)

    @property
    def topic(self) -> str:
        """Return the name under which sources and receivers find each other."""
        return self._inner.topic

    @property
    def life(self) -> int:
        """Return the number of this life of the source, 64 bits."""
        return self._inner.life

    @property
    def session_id(self) -> int:
        """Return the session id that names the source in all of its lives, 0: none."""
        return self._inner.session_id

    @property
    def next_number(self) -> int:
        """Return the extended number that the next message gets."""
        return self._thread.call(lambda: self._inner.next_number)

    @property
    def stable_through(self) -> int:
        """Return the extended number through which all messages are stable."""
        return self._thread.call(lambda: self._inner.stable_through)

    @like(client.Source.send)
    def send(self, *arguments: Any, **more: Any) -> Sent:
        """Send a message; wait for the stores and for room."""
        return Sent(self._thread.run(self._inner.send(*arguments, **more)).number, self)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Send the messages of a `with` block together when it ends, or whenever a block is full."""
        batch = self._inner.batch()
        self._thread.call(batch.__enter__)
        try:
            yield
        finally:
            if not self._thread.forked:
                self._thread.call(batch.__exit__, None, None, None)

    def __enter__(self) -> Self:
        """Return the source itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the source, unless this process was forked from its own."""
        if not self._thread.forked:
            self.close()


class Message(Facade[client.Message]):
    """One message.

    Attributes:
        payload: The bytes that the source sent.
    """

    __slots__ = ("_inner", "_thread", "payload")

    ack = called(client.Message.ack)
    nack = called(client.Message.nack)
    consumed = called(client.Message.consumed)

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

    @property
    def attempt(self) -> int:
        """Return how often this run of the receiver has delivered the message, this time included: 1 at first."""
        return self._inner.attempt

    @property
    def topic(self) -> str:
        """Return the name under which its source is found."""
        return self._inner.topic

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit sequence number; of a message that was cut, that of the last piece."""
        return self._inner.sequence_number

    @property
    def source(self) -> str:
        """Return the name of the source: its RegID at its first store, `regid@ip:port`."""
        return self._inner.source

    @property
    def life(self) -> int:
        """Return the life of the source that sent the message, 64 bits."""
        return self._inner.life

    @property
    def number(self) -> int:
        """Return the extended number, which never wraps; of a message that was cut, that of the last piece."""
        return self._inner.number

    @property
    def numbers(self) -> tuple[int, int]:
        """Return the 32-bit numbers of the first and last piece. They differ only if the message was cut."""
        return self._inner.numbers

    @property
    def key(self) -> str:
        """Return the text that identifies the message among all messages of all sources, for de-duplication."""
        return self._inner.key

    @property
    def id(self) -> str | None:
        """Return the id that the application gave to the message, None if it has none."""
        return self._inner.id

    @property
    def received_at(self) -> float:
        """Return when the receiver read the message from the network, in seconds since the epoch."""
        return self._inner.received_at

    @property
    def sent_at(self) -> float | None:
        """Return when the source sent the message, in seconds since the epoch; None if it does not carry that."""
        return self._inner.sent_at

    @property
    def properties(self) -> dict[str, Value]:
        """Return the properties that the source sent with the payload."""
        return self._inner.properties

    @property
    def incarnation(self) -> int:
        """Return the life of the source that sent it. With the sequence number it identifies the message."""
        return self._inner.incarnation

    @property
    def recovered(self) -> bool:
        """Return True if the message was retransmitted instead of received on the live stream."""
        return self._inner.recovered

    @property
    def hot_number(self) -> int | None:
        """Return the number of the message among those of all its sources; None if it has none."""
        return self._inner.hot_number

    def __repr__(self) -> str:
        """Return the number and the size, for debugging."""
        return repr(self._inner)


class Reader(Facade[ReaderT]):
    """The reading side of a receiver. Iterate it, or call `next`.

    A message is consumed when the next one is asked for. One task of the loop reads for all threads. Two threads that
    read share the messages, and a message then counts as consumed when either thread asks for the next one.
    """

    def __init__(self, inner: ReaderT, thread: LoopThread) -> None:
        """Stand for `inner`; the task that reads it starts at the first wish."""
        super().__init__(inner, thread)
        self._wishes: asyncio.Queue[asyncio.Future[client.Message | None]] = asyncio.Queue()
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
        message = None
        if not self._ended:
            try:
                message = self._thread.run(self._next(timeout))
            except client.Closed:
                if not self._ended:  # The context was never open.
                    raise
        if message is None:
            raise StopIteration
        return Message(message, self._thread)

    def __iter__(self) -> Self:
        """Return the receiver itself."""
        return self

    def __next__(self) -> Message:
        """Return the next message. Raises like `next`."""
        return self.next()

    def close(self) -> None:
        """Acknowledge the consumed messages and leave all sources. Iteration ends."""
        self._thread.run(self.end())

    def __enter__(self) -> Self:
        """Return the receiver itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the receiver, unless this process was forked from its own."""
        if not self._thread.forked:
            self.close()

    async def _next(self, seconds: float | None) -> client.Message | None:
        """Return the next message, or None at the end. One that comes too late is kept for the next call."""
        if self._ended:
            return None
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        wish: asyncio.Future[client.Message | None] = asyncio.get_running_loop().create_future()
        self._wishes.put_nowait(wish)
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
            wish = await self._wishes.get()
            if wish.cancelled():
                continue
            try:
                message = self._kept or await anext(messages, None)
            except Exception as error:  # noqa: BLE001 - it is raised in the thread that waits
                if not wish.cancelled():
                    wish.set_exception(error)
                continue
            self._kept = message if wish.cancelled() else None
            if not wish.cancelled():
                wish.set_result(message)

    async def end(self) -> None:
        """Close the receiver, in the thread of the loop."""
        self._ended = True
        await self._inner.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        while not self._wishes.empty():
            wish = self._wishes.get_nowait()
            if not wish.done():
                wish.set_result(None)


class Receiver(Reader[client.Receiver]):
    """A receiver of a topic, made by `Context.receiver`."""

    deregister = awaited(client.Receiver.deregister)
    details = called(client.Receiver.details)

    @property
    def topic(self) -> str:
        """Return the name under which sources are found."""
        return self._inner.topic


class WildcardReceiver(Reader[client.WildcardReceiver]):
    """A receiver of all topics that match a pattern, made by `Context.receiver`."""

    deregister = awaited(client.WildcardReceiver.deregister)

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that it receives now."""
        return self._thread.call(lambda: self._inner.topics)


class GroupReceiver(Reader[client.GroupReceiver]):
    """A member of a group that shares a topic, made by `Context.receiver(topic, group=...)`."""

    deregister = awaited(client.GroupReceiver.deregister)

    @property
    def shares(self) -> tuple[int, ...]:
        """Return the shares whose messages this member gets now."""
        return self._thread.call(lambda: self._inner.shares)

    @property
    def members(self) -> int:
        """Return the number of members known, this one included."""
        return self._thread.call(lambda: self._inner.members)


class Context(Facade[client.Context]):
    """The shared part of sources and receivers. Use it inside `with`; leaving closes them all.

    Attributes:
        on_event: Called in the thread of the loop, as that of `stablecast.client.Context`.
    """

    @like(client.Context.__init__)
    def __init__(self, *arguments: Any, **more: Any) -> None:
        """Configure a context, with the arguments of `stablecast.client.Context`; `with` opens it."""
        super().__init__(client.Context(*arguments, **more), LoopThread())
        self._receivers: list[Receiver | WildcardReceiver | GroupReceiver] = []

    def __enter__(self) -> Self:
        """Start the thread and open the context. Raises like that of the client."""
        self._thread.start()
        try:
            self._thread.run(self._inner.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the context."""
        self.close()

    def close(self) -> None:
        """Close receivers, sources and connections, and end the thread. Sent messages are written first."""
        if self._thread.running:
            try:
                self._thread.run(self._closed())
            finally:
                self._thread.stop()

    def metrics(self) -> str:
        """Return the figures as those of `stablecast.client.Context`; Raises MisuseError without `metrics=True`."""
        return self._thread.call(self._inner.metrics)

    @like(client.Context.source)
    def source(self, *arguments: Any, **more: Any) -> Source:
        """Make a source and wait until it may send."""
        return Source(self._thread.run(self._inner.source(*arguments, **more)), self._thread)

    @overload
    def receiver(self, topic: str, *, group: str, **more: Any) -> GroupReceiver: ...

    @overload
    def receiver(self, topic: str, **more: Any) -> Receiver: ...

    @overload
    def receiver(self, *, pattern: str, **more: Any) -> WildcardReceiver: ...

    def receiver(
        self, topic: str = "", *, pattern: str | None = None, group: str | None = None, **arguments: Any
    ) -> Receiver | WildcardReceiver | GroupReceiver:
        """Make a receiver of a topic, a member of a group, or a receiver of all topics that match a pattern.

        Takes the arguments of `stablecast.client.Context.receiver`, and raises as it does.
        """
        kinds = {"pattern": pattern, "group": group}
        wanted: dict[str, Any] = arguments | {name: given for name, given in kinds.items() if given is not None}
        wanted["redelivery"] = _inner_redelivery(arguments.get("redelivery"))
        inner: Any = self._thread.call(self._inner.receiver, topic, **wanted)
        if isinstance(inner, client.Receiver):
            receiver: Receiver | WildcardReceiver | GroupReceiver = Receiver(inner, self._thread)
        elif isinstance(inner, client.GroupReceiver):
            receiver = GroupReceiver(inner, self._thread)
        else:
            receiver = WildcardReceiver(inner, self._thread)
        self._receivers.append(receiver)
        return receiver

    async def _closed(self) -> None:
        for receiver in self._receivers:
            await receiver.end()
        await self._inner.close()


def _inner_redelivery(redelivery: client.Redelivery | None) -> client.Redelivery | None:
    """Return the policy with the source of the client, because a facade cannot be awaited."""
    letters: object = None if redelivery is None else redelivery.dead_letters
    if redelivery is None or not isinstance(letters, Source):
        return redelivery
    return attrs.evolve(redelivery, dead_letters=letters.inner)
