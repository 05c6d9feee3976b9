"""A source: registers with its stores, tells of stability, performs what its machine wants; sending is in `sender`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from stablecast.client.callbacks import tell
from stablecast.client.errors import Closed, EndpointFailed, RegistrationFailed
from stablecast.client.registration_troubles import Troubles
from stablecast.client.sender import Sender
from stablecast.client.stability import Stability
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    DeregistrationComplete,
    Event,
    Overtaken,
    QuorumLost,
    Reclaimed,
    RegistrationComplete,
    RegistrationError,
    Stable,
    StableFlag,
    StoreUnresponsive,
    Wakeup,
)
from stablecast.core.protocol.inputs import SourceInput, Start, Withdraw
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceState
from stablecast.runtime.connection_pool import Pool
from stablecast.runtime.effect_execution import describe, report
from stablecast.runtime.reliable_stream import ReliableStream
from stablecast.runtime.stream import StreamServer
from stablecast.transports import codec

_STABLE = int(StableFlag.STABLE)
"""What is waited for; events about one store or one group only come without it."""


class Source(Sender):
    """Made by `Context.source`; use it inside `async with`, or call `close`."""

    def __init__(
        self, config: SourceConfig, pool: Pool, on_event: Callable[[Event], None] | None, trace: Path | None
    ) -> None:
        """A source that has not started."""
        super().__init__(config, on_event, trace)
        self.place = config.transport
        self.on_close: Callable[[], None] | None = None
        self._pool = pool
        self._stability = Stability.of(config)
        self._troubles = Troubles()
        self._whose = f"source '{self.topic}'"
        self._told: tuple[SourceInfo, bytes] | None = None
        self._closed = False
        self._failure: EndpointFailed | None = None

    async def __aenter__(self) -> "Source":
        """The source itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def start(self, stream: StreamServer | ReliableStream) -> None:
        """Let joiners in, and register."""
        self.stream = stream
        await stream.start()
        self._driver.feed(Start())

    async def registered(self, within: float | None = None) -> None:
        """Wait until enough stores have granted, now or again after they were lost.

        Raises RegistrationFailed after `within` seconds (None: never), Closed on closing.
        """
        try:
            async with asyncio.timeout(within):
                while not self._may_send():
                    if self._over:
                        raise Closed(self._farewell)
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise RegistrationFailed(self._troubles.missing(self.topic, within)) from None

    @property
    def over(self) -> bool:
        """Whether nothing is sent any more: closed, deregistered, or overtaken by another life."""
        return self._over

    async def deregister(self) -> None:
        """Ask every store to forget this source and what it sent, and wait until all have; then nothing is sent.

        A store that is away is asked again until it answers. Raises Closed.
        """
        if self._over:
            raise Closed(self._farewell)
        self.flush()
        self._driver.feed(Withdraw())
        self._renew_credit()
        await self._until_over()
        if self._closed:
            raise Closed(self._farewell)

    async def until_failed(self) -> EndpointFailed:
        """Wait until the source ended because an effect of its machine could not be performed; return why.

        Waits for ever if that never happens.
        """
        while self._failure is None:
            self._changed.clear()
            await self._changed.wait()
        return self._failure

    async def _until_over(self) -> None:
        while not self._over:
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        """Send what is buffered, say nothing more. What is not stable yet stays at the stores that have it."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        self._credit = 0
        if self._telling is not None:
            self._telling.cancel()
        self._driver.close()
        self._end(self._farewell)
        self._changed.set()
        try:
            if self.stream is not None:
                await self.stream.close()
        finally:
            if self.on_close is not None:
                self.on_close()

    async def wait_stable(self, number: int) -> None:
        """Wait until message `number` is stable: all of its pieces, where it was cut.

        Raises NotStable if it was reclaimed by force (P-323), Closed on closing, and always without stores.
        """
        self.flush()
        for piece in range(self._machine.first_piece(number), number + 1):
            await self._stability.wait(piece)

    @property
    def stable_through(self) -> int:
        """The last extended number up to which everything sent in this life is stable."""
        return self._stability.through

    async def wait_stable_through(self, number: int) -> None:
        """Wait until everything of this life up to `number` is stable. Raises like `wait_stable`."""
        self.flush()
        while not self._stability.check_through(number):
            self._changed.clear()
            await self._changed.wait()

    # The driver's side.

    def receive(self, event: SourceInput) -> None:
        """Feed the machine (called by the context)."""
        self._tell_rest()
        self._driver.feed(event)

    def greeting(self) -> bytes:
        """What a joiner hears first: the session, and the SRI as soon as there is one."""
        return codec.greeting(codec.split(self.config.incarnation)[0]) + self.info()

    def info(self) -> bytes:
        """The SRI, as soon as there is one."""
        self.flush()
        return self._written(self._machine.info()) if self._machine.state is SourceState.ACTIVE else b""

    def _written(self, info: SourceInfo) -> bytes:
        """An SRI; mostly the one that was told before."""
        if self._told is None or self._told[0] != info:
            self._told = (info, codec.encode(info))
        return self._told[1]

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.Notify():
                self._on_notify(effect.event)
            case fx.Release():
                self._out.retained.release(effect.number)
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.Broadcast():
                if self.stream is not None:
                    message = effect.message
                    self.stream.write(
                        self._written(message) if isinstance(message, SourceInfo) else codec.encode(message)
                    )
            case fx.Resend():
                again = self._out.retained.again(effect)
                if again:
                    self._pool.send(effect.to, again)
            case _:
                assert_never(effect)

    def fail(self, what: object, error: Exception) -> None:
        """End, and let everybody who sends or waits know why.

        The machine believes that the effect happened; to go on would make promises on top of that belief. What is
        stable stays so at the stores.
        """
        if self._closed or self._failure is not None:
            return
        cause = f"{describe(what)} failed: {type(error).__name__}: {error}"
        text = f"{self._whose} ended: {cause}; make a new source"
        self._failure = EndpointFailed(text)
        self._failure.__cause__ = error
        report(text, error)
        self._driver.close()
        self._end(text)
        self._renew_credit()
        self._changed.set()

    def _on_notify(self, event: Event) -> None:
        if self._closed:
            return
        match event:
            case Stable():
                if int(event.flags) & _STABLE:
                    self._stability.on_stable(event.first, event.last)
                    self._changed.set()
            case Reclaimed():
                self._stability.on_reclaimed(event.first, event.last)
                self._changed.set()
            case Wakeup():
                self._changed.set()
            case StoreUnresponsive() | RegistrationError():
                self._troubles.add(event)
            case RegistrationComplete() | QuorumLost() | Overtaken() | DeregistrationComplete():
                self._on_right(event)
        tell(self._on_event, event, self._whose)

    def _on_right(self, event: RegistrationComplete | QuorumLost | Overtaken | DeregistrationComplete) -> None:
        """Whether it may send has changed."""
        match event:
            case RegistrationComplete():
                if not self._begun:
                    self._begun = True
                    self._out.next = event.number
                    self._stability.begin(event.number)
                self._troubles.clear()
            case QuorumLost():
                self.flush()
            case Overtaken():
                self._end(f"another life of {self._whose} has taken its place: make a new source")
            case DeregistrationComplete():
                self._end(f"{self._whose} was deregistered")
        self._renew_credit()
        self._changed.set()

    def _end(self, farewell: str) -> None:
        """Nothing is sent any more."""
        self._over = True
        self._farewell = farewell
        self._stability.close(farewell)
