"""Contexts, sources and receivers with calls that block.

Each class stands for the one of the same name in `stablecast.client`, and has its methods with their arguments. A
method of the other class is made to block here, so that both always agree.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, overload

import attrs

from stablecast import client
from stablecast.core.machine import serial
from stablecast.sync.facade import Facade, Shown, awaited, called, like
from stablecast.sync.loop_thread import LoopThread
from stablecast.sync.reader import Reader


@attrs.frozen
class Sent:
    """A message that was sent.

    Attributes:
        number: Its extended number, which never wraps; of a message that was cut, that of the last piece.
        source: The source that sent it.
    """

    number: int
    source: "Source"

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit number, as on the wire."""
        return serial.wire(self.number)

    def stable(self, timeout: float | None = None) -> None:
        """Wait until enough stores have synced the message, `timeout` seconds at most.

        Raises NotStable, NotStableYet, Closed.
        """
        self.source.wait_stable(self.number, timeout)


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
    life = Shown[int](client.Source.life)
    session_id = Shown[int](client.Source.session_id)
    next_number = Shown[int](client.Source.next_number, in_loop=True)
    stable_through = Shown[int](client.Source.stable_through, in_loop=True)

    @property
    def topic(self) -> str:
        """Return the name under which sources and receivers find each other."""
        return self._inner.topic

    @like(client.Source.send)
    def send(self, *arguments: Any, **more: Any) -> Sent:
        """Send a message; wait for the stores and for room."""
        return Sent(self._thread.run(self._inner.send(*arguments, **more)).number, self)

    @like(client.Source.publish)
    def publish(self, *arguments: Any, **more: Any) -> Sent:
        """Send a message and wait until it is stable, all in `timeout` seconds."""
        return Sent(self._thread.run(self._inner.publish(*arguments, **more)).number, self)

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
        return self

    def __exit__(self, *_: object) -> None:
        """Close the source, unless this process was forked from its own."""
        if not self._thread.forked:
            self.close()


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
    topics = Shown[tuple[str, ...]](client.WildcardReceiver.topics, in_loop=True)


class GroupReceiver(Reader[client.GroupReceiver]):
    """A member of a group that shares a topic, made by `Context.receiver(topic, group=...)`."""

    deregister = awaited(client.GroupReceiver.deregister)
    shares = Shown[tuple[int, ...]](client.GroupReceiver.shares, in_loop=True)
    members = Shown[int](client.GroupReceiver.members, in_loop=True)


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
