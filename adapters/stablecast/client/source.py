"""A source: sends with credit, tells of stability.

The fast path holds no task and no record per message: `try_send` writes a header and the payload into a list and spends
local credit; the whole list leaves as one block, when it is large enough or at the end of the loop's turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import assert_never

from stablecast.client.callbacks import tell
from stablecast.client.errors import Closed, MessageTooLarge, NotRegistered, RegistrationFailed
from stablecast.client.outgoing import FLUSH_BYTES, TURN_MESSAGES, Block, Outgoing
from stablecast.client.sent import Sent
from stablecast.client.stability import Stability
from stablecast.client.troubles import Troubles
from stablecast.core import effects as fx
from stablecast.core.errors import OversizeError
from stablecast.core.events import (
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
from stablecast.core.inputs import Blocked, SourceInput, Start, Withdraw
from stablecast.core.inputs import Sent as SentInput
from stablecast.core.messages import Role
from stablecast.core.settings import FlightBehavior, SourceConfig
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.net.driver import Driver
from stablecast.net.pool import Pool
from stablecast.net.reliable_stream import ReliableStream
from stablecast.net.stream import StreamServer
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE

MAX_PAYLOAD = MAX_MESSAGE - DATA_HEADER.size
"""Bytes that one unfragmented message can carry."""

NO_LIMIT = 1 << 62


class Source:
    """Made by `Context.source`; use it inside `async with`, or call `close`."""

    def __init__(
        self, config: SourceConfig, pool: Pool, on_event: Callable[[Event], None] | None, trace: Path | None
    ) -> None:
        """A source that has not started."""
        self.config = config
        self.topic = config.topic
        self.stream: StreamServer | ReliableStream | None = None
        self.place = config.transport
        self.max_payload = MAX_PAYLOAD
        self.on_close: Callable[[], None] | None = None
        self._pool = pool
        self._on_event = on_event
        self._machine = SourceEndpoint.create(config)
        recording = recorder(Role.SOURCE, config.topic, self._machine, trace)
        self._driver = Driver[SourceInput, fx.SourceEffect](Driven(self._machine, recording), self._perform)
        self._loop = asyncio.get_running_loop()
        self._blocking = bool(config.stores) and config.flight_behavior is FlightBehavior.BLOCK
        self._out = Outgoing(config.incarnation)
        self._credit = 0
        self._credit_bytes = NO_LIMIT
        self._flush_planned = False
        self._stability = Stability.of(config)
        self._changed = asyncio.Event()
        self._troubles = Troubles()
        self._begun = False
        self._closed = self._over = self._held = self._turned_away = False
        self._farewell = f"source '{config.topic}' was closed"

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

    async def deregister(self) -> None:
        """Ask every store to forget this source and what it sent, and wait until all have; then nothing is sent.

        A store that is away is asked again until it answers. Raises Closed.
        """
        if self._over:
            raise Closed(self._farewell)
        self.flush()
        self._driver.feed(Withdraw())
        await self._until_over()
        if self._closed:
            raise Closed(self._farewell)

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
        self._driver.close()
        self._end(self._farewell)
        self._changed.set()
        try:
            if self.stream is not None:
                await self.stream.close()
        finally:
            if self.on_close is not None:
                self.on_close()

    # Sending.

    @property
    def next_number(self) -> int:
        """The extended number that the next message gets."""
        return self._out.next

    @property
    def credit(self) -> int:
        """Messages that `try_send` takes now."""
        return self._credit

    def try_send(self, payload: bytes) -> int | None:
        """Send without waiting; returns the message's extended number, or None while the flight is full.

        Then the event `Wakeup` tells when it may be tried again (T13); `room` waits for that. Raises NotRegistered,
        MessageTooLarge or Closed.
        """
        size = len(payload)
        if self._credit < 1 or size > self._credit_bytes or size > self.max_payload or payload.__class__ is not bytes:
            self._check(size, payload)
            if not self._fits(size) and not self._block(size):
                return None
        out = self._out
        number = out.next
        out.next = number + 1
        self._credit -= 1
        self._credit_bytes -= size
        parts = out.parts
        length = size + 12
        parts.append(DATA_HEADER.pack(0, 0, length, out.topic_index, number & 0xFFFF_FFFF))
        parts.append(payload)
        out.parts_bytes += length
        if out.parts_bytes >= FLUSH_BYTES:
            self.flush()
        elif not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._planned_flush)
            self.flush()
        return number

    async def send(self, payload: bytes) -> Sent:
        """Send, waiting for credit while the flight is full; cancelled meanwhile, it has not sent.

        Raises NotRegistered, MessageTooLarge or Closed.
        """
        return Sent(await self._send(payload), self)

    async def send_many(self, messages: Iterable[bytes]) -> int | None:
        """Send several, waiting for credit as needed; returns the number of the last. Raises like `send`.

        A list, or a tuple, of messages of one size costs least: whole blocks are made of it at once.
        """
        if isinstance(messages, list | tuple):
            return await self._send_list(messages)
        number = None
        for payload in messages:
            number = self.try_send(payload)
            if number is None:
                number = await self._send(payload)
            elif number % TURN_MESSAGES == 0:
                await asyncio.sleep(0)
        return number

    async def room(self, size: int = 0) -> None:
        """Wait until a message of `size` bytes fits the flight: then `try_send` takes it, unless another is quicker.

        Raises NotRegistered, MessageTooLarge or Closed.
        """
        while True:
            self._check(size)
            self._changed.clear()
            if self._fits(size) or self._block(size):
                return
            await self._changed.wait()

    def flush(self) -> None:
        """Put what is buffered on the stream now."""
        if self._out.parts:
            self._emit(self._out.collected())

    async def wait_stable(self, number: int) -> None:
        """Wait until message `number` is stable.

        Raises NotStable if it was reclaimed by force (P-323), Closed on closing, and always without stores.
        """
        self.flush()
        await self._stability.wait(number)

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
        self._driver.feed(event)

    def greeting(self) -> bytes:
        """What a joiner hears first: the session, and the SRI as soon as there is one."""
        return codec.greeting(codec.split(self.config.incarnation)[0]) + self.info()

    def info(self) -> bytes:
        """The SRI, as soon as there is one."""
        self.flush()
        return codec.encode(self._machine.info()) if self._machine.state is SourceState.ACTIVE else b""

    def hold(self, held: bool) -> None:
        """The transport takes no more for now, or again; who was turned away meanwhile is told (T13)."""
        self._held = held
        self._renew_credit()
        if self._turned_away and not held:
            self._turned_away = False
            self._on_notify(Wakeup())

    async def _send(self, payload: bytes) -> int:
        if self._out.next % TURN_MESSAGES == 0:
            await asyncio.sleep(0)
        while (number := self.try_send(payload)) is None:
            await self.room(len(payload))
        return number

    async def _send_list(self, messages: Sequence[bytes]) -> int | None:
        """Blocks as long as there is room for several; what does not fit one goes alone, and waits or raises."""
        number, at, turn = None, 0, TURN_MESSAGES
        while at < len(messages):
            self.flush()
            block = self._out.portion(messages, at, (self._credit, self._credit_bytes), self.max_payload)
            if block is None:
                number, at = await self._send(messages[at]), at + 1
                continue
            _, first, count, size = block
            number, at = first + count - 1, at + count
            self._credit -= count
            self._credit_bytes -= size
            self._emit(block)
            if at >= turn:
                turn = at + TURN_MESSAGES
                await asyncio.sleep(0)
        return number

    def _emit(self, block: Block) -> None:
        """Put messages on the stream."""
        octets, first, count, payload_bytes = block
        if self.stream is not None:
            self.stream.write(octets)
        self._out.retained.add(first, first + count, octets)
        self._driver.feed(SentInput(first, count, payload_bytes))

    def _may_send(self) -> bool:
        return self._begun and not self._over and self._machine.can_send

    def _block(self, size: int) -> bool:
        """Tell the machine that there is no room, so that it says when there is; returns whether there is already."""
        self._turned_away |= self._held
        if not self._held:
            self._driver.feed(Blocked(size))
        return self._fits(size)

    def _fits(self, size: int) -> bool:
        return self._credit >= 1 and size <= self._credit_bytes

    def _check(self, size: int, payload: bytes = b"") -> None:
        """Raise if a message can not be sent now, or ever; otherwise help to make room for it."""
        if not isinstance(payload, bytes):
            raise TypeError(f"a payload must be bytes, not {type(payload).__name__}")
        if self._over:
            raise Closed(self._farewell)
        if size > self.max_payload:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {self.max_payload} bytes")
        try:
            self._machine.check_size(size)
        except OversizeError as error:
            raise MessageTooLarge(str(error)) from None
        if not self._may_send():
            raise NotRegistered("not currently registered with enough stores")
        self.flush()

    def _planned_flush(self) -> None:
        self._flush_planned = False
        self.flush()

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.Broadcast():
                if self.stream is not None:
                    self.stream.write(codec.encode(effect.message))
            case fx.Release():
                self._out.retained.release(effect.number)
            case fx.Resend():
                again = self._out.retained.again(effect)
                if again:
                    self._pool.send(effect.to, again)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _on_notify(self, event: Event) -> None:
        if self._closed:
            return
        match event:
            case RegistrationComplete():
                if not self._begun:
                    self._begun = True
                    self._out.next = event.number
                    self._stability.begin(event.number)
                self._troubles.clear()
            case Stable() if event.flags & StableFlag.STABLE:
                self._stability.on_stable(event.first, event.last)
            case Reclaimed():
                self._stability.on_reclaimed(event.first, event.last)
            case StoreUnresponsive() | RegistrationError():
                self._troubles.add(event.text)
            case QuorumLost():
                self.flush()
            case Overtaken():
                self._end(f"another life of source '{self.topic}' has taken its place: make a new source")
            case DeregistrationComplete():
                self._end(f"source '{self.topic}' was deregistered")
        self._renew_credit()
        tell(self._on_event, event, f"source '{self.topic}'")

    def _end(self, farewell: str) -> None:
        """Nothing is sent any more."""
        self._over = True
        self._farewell = farewell
        self._stability.close(farewell)

    def _renew_credit(self) -> None:
        """What the machine grants, less what it has not been told of yet."""
        machine = self._machine
        if self._held or not self._may_send():
            self._credit = 0
        elif not self._blocking:
            self._credit, self._credit_bytes = NO_LIMIT, NO_LIMIT
        else:
            told = machine.window.next
            self._credit = machine.credit_messages - (self._out.next - told)
            room = machine.credit_bytes
            self._credit_bytes = NO_LIMIT if room is None else room - self._out.bytes_from(told)
        self._changed.set()
