"""A source: sends with credit, tells of stability.

The fast path holds no task and no record per message: `try_send` writes a header and the payload into a list and spends
local credit; the whole list leaves as one block, when it is large enough or at the end of the loop's turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.client.callbacks import tell
from stablecast.client.errors import Closed, MessageTooLarge, NotRegistered, RegistrationFailed
from stablecast.client.stability import Stability
from stablecast.core import effects as fx
from stablecast.core import serial
from stablecast.core.events import (
    Event,
    Overtaken,
    QuorumLost,
    Reclaimed,
    RegistrationComplete,
    RegistrationError,
    Stable,
    StableFlag,
    StoreUnresponsive,
)
from stablecast.core.inputs import Sent as SentInput
from stablecast.core.inputs import SourceInput, Start
from stablecast.core.messages import Role
from stablecast.core.settings import FlightBehavior, SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.net.driver import Driver
from stablecast.net.pool import Pool
from stablecast.net.stream import StreamServer
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.lbttcp import payloads
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE

FLUSH_BYTES = 32 * 1024
"""A block leaves when it has grown to this."""

MAX_PAYLOAD = MAX_MESSAGE - DATA_HEADER.size
"""Bytes that one unfragmented message can carry."""

TURN_MESSAGES = 1024
"""Messages after which `send` and `send_many` let other tasks run."""

MAX_RESEND = 4096
"""Messages sent again for one request; a peer that wants more asks again."""

MAX_TROUBLES = 16
"""Sentences about stores that a failed registration shows."""

NO_LIMIT = 1 << 62


@attrs.frozen
class Sent:
    """A message on its way; `number` is extended, `sequence_number` as on the wire."""

    number: int
    source: "Source"

    @property
    def sequence_number(self) -> int:
        """The 32-bit number."""
        return serial.wire(self.number)

    async def stable(self) -> None:
        """Wait until it is synced at the stores the group rule asks for. Raises NotStable or Closed."""
        await self.source.wait_stable(self.number)


class Source:
    """Made by `Context.source`; use it inside `async with`, or call `close`."""

    def __init__(
        self, config: SourceConfig, pool: Pool, on_event: Callable[[Event], None] | None, trace: Path | None
    ) -> None:
        """A source that has not started."""
        self.config = config
        self.topic = config.topic
        self.stream: StreamServer | None = None
        self.on_close: Callable[[], None] | None = None
        self._pool = pool
        self._on_event = on_event
        self._machine = SourceEndpoint.create(config)
        driven: Driven[SourceInput] = Driven(self._machine, recorder(Role.SOURCE, config.topic, self._machine, trace))
        self._driver = Driver(driven, self._perform)
        self._loop = asyncio.get_running_loop()
        self._session_id, self._topic_index = codec.split(config.incarnation)
        self._blocking = bool(config.stores) and config.flight_behavior is FlightBehavior.BLOCK
        self._largest = min(MAX_PAYLOAD, (self._blocking and config.flight_bytes) or MAX_PAYLOAD)
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._next = 0
        self._credit = 0
        self._credit_bytes = NO_LIMIT
        self._flush_planned = False
        self._retained: deque[tuple[int, int, bytes]] = deque()
        self._stability = Stability()
        if not config.stores:
            self._stability.close(f"source '{config.topic}' has no stores: nothing that it sends becomes stable")
        self._changed = asyncio.Event()
        self._troubles: deque[str] = deque(maxlen=MAX_TROUBLES)
        self._begun = False
        self._closed = self._over = False
        self._farewell = f"source '{config.topic}' was closed"

    async def __aenter__(self) -> "Source":
        """The source itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def start(self, stream: StreamServer) -> None:
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
            why = "; ".join(trouble.rstrip(".") for trouble in dict.fromkeys(self._troubles)) or "no store answered"
            missing = f"source '{self.topic}' is not registered with enough stores after {within:g} s"
            raise RegistrationFailed(f"{missing}: {why}; start the stores or correct their addresses") from None

    async def close(self) -> None:
        """Send what is buffered, say nothing more. What is not stable yet stays at the stores that have it."""
        if self._closed:
            return
        self.flush()
        self._closed = self._over = True
        self._credit = 0
        self._driver.close()
        self._changed.set()
        self._stability.close(self._farewell)
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
        return self._next

    @property
    def credit(self) -> int:
        """Messages that `try_send` takes now."""
        return self._credit

    def try_send(self, payload: bytes) -> int | None:
        """Send without waiting; returns the message's extended number, or None while the flight is full (see `room`).

        Raises NotRegistered, MessageTooLarge or Closed.
        """
        size = len(payload)
        if self._credit < 1 or size > self._credit_bytes or size > MAX_PAYLOAD or payload.__class__ is not bytes:
            self._check(size, payload)
            if not self._fits(size):
                return None
        number = self._next
        self._next = number + 1
        self._credit -= 1
        self._credit_bytes -= size
        parts = self._parts
        length = size + 12
        parts.append(DATA_HEADER.pack(0, 0, length, self._topic_index, number & 0xFFFF_FFFF))
        parts.append(payload)
        self._pending_bytes += length
        if self._pending_bytes >= FLUSH_BYTES:
            self.flush()
        elif not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._planned_flush)
        return number

    async def send(self, payload: bytes) -> Sent:
        """Send, waiting for credit while the flight is full; cancelled meanwhile, it has not sent.

        Raises NotRegistered, MessageTooLarge or Closed.
        """
        return Sent(await self._send(payload), self)

    async def send_many(self, messages: Iterable[bytes]) -> int | None:
        """Send several, waiting for credit as needed; returns the number of the last. Raises like `send`."""
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
            self._changed.clear()
            self._check(size)
            if self._fits(size):
                return
            await self._changed.wait()

    def flush(self) -> None:
        """Put what is buffered on the stream now."""
        parts = self._parts
        if not parts or self.stream is None:
            return
        count = len(parts) // 2
        block = b"".join(parts)
        parts.clear()
        first = self._next - count
        payload_bytes = self._pending_bytes - count * DATA_HEADER.size
        self._pending_bytes = 0
        self.stream.write(block)
        if self.config.stores:
            self._retained.append((first, self._next, block))
        self._driver.feed(SentInput(first, count, payload_bytes))

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
        self.flush()
        info = codec.encode(self._machine.info()) if self._machine.can_send else b""
        return codec.greeting(self._session_id) + info

    async def _send(self, payload: bytes) -> int:
        if self._next % TURN_MESSAGES == 0:
            await asyncio.sleep(0)
        while (number := self.try_send(payload)) is None:
            await self.room(len(payload))
        return number

    def _may_send(self) -> bool:
        return self._begun and not self._over and self._machine.can_send

    def _fits(self, size: int) -> bool:
        return self._credit >= 1 and size <= self._credit_bytes

    def _check(self, size: int, payload: bytes = b"") -> None:
        """Raise if a message can not be sent now, or ever; otherwise help to make room for it."""
        if not isinstance(payload, bytes):
            raise TypeError(f"a payload must be bytes, not {type(payload).__name__}")
        if self._over:
            raise Closed(self._farewell)
        if size > self._largest:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {self._largest} bytes")
        if not self._may_send():
            raise NotRegistered("not currently registered with enough stores")
        self.flush()

    def _planned_flush(self) -> None:
        self._flush_planned = False
        self.flush()

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.Broadcast():
                if self.stream is not None:
                    self.stream.write(codec.encode(effect.message))
            case fx.Release():
                while self._retained and self._retained[0][1] <= effect.number:
                    self._retained.popleft()
            case fx.Resend():
                self._resend(effect)
            case fx.Notify():
                self._on_notify(effect.event)
            case (
                fx.Deliver()
                | fx.Discard()
                | fx.AskRegId()
                | fx.AskLow()
                | fx.PersistClient()
                | fx.PersistMessages()
                | fx.Cut()
                | fx.Forget()
                | fx.SendStored()
                | fx.Join()
                | fx.Leave()
            ):
                raise AssertionError(f"a source does not {type(effect).__name__}")
            case _:
                assert_never(effect)

    def _on_notify(self, event: Event) -> None:
        if self._closed:
            return
        match event:
            case RegistrationComplete():
                if not self._begun:
                    self._begun = True
                    self._next = event.number
                    self._stability.begin(event.number)
                self._troubles.clear()
            case Stable() if event.flags & StableFlag.STABLE:
                self._stability.on_stable(event.first, event.last)
            case Reclaimed():
                self._stability.on_reclaimed(event.first, event.last)
            case StoreUnresponsive() | RegistrationError():
                self._troubles.append(event.text)
            case QuorumLost():
                self.flush()
            case Overtaken():
                self._over = True
                self._farewell = f"another life of source '{self.topic}' has taken its place: make a new source"
                self._stability.close(self._farewell)
        self._renew_credit()
        tell(self._on_event, event, f"source '{self.topic}'")

    def _renew_credit(self) -> None:
        """What the machine grants, less what it has not been told of yet."""
        machine = self._machine
        if not self._may_send():
            self._credit = 0
        elif not self._blocking:
            self._credit, self._credit_bytes = NO_LIMIT, NO_LIMIT
        else:
            told = machine.window.next
            self._credit = machine.credit_messages - (self._next - told)
            room = machine.credit_bytes
            self._credit_bytes = NO_LIMIT if room is None else room - self._untold_bytes(told)
        self._changed.set()

    def _untold_bytes(self, told: int) -> int:
        """Payload bytes from number `told` on: buffered, or in a block of which the machine hears only next."""
        untold = self._pending_bytes - len(self._parts) // 2 * DATA_HEADER.size
        for first, stop, block in reversed(self._retained):
            if stop <= told:
                break
            untold += len(block) - (stop - first) * DATA_HEADER.size
        return untold

    def _resend(self, effect: fx.Resend) -> None:
        parts = []
        wanted = min(effect.last + 1, effect.first + MAX_RESEND)
        for first, stop, block in self._retained:
            low, high = max(first, effect.first), min(stop, wanted)
            if low < high:
                for number, payload in enumerate(payloads(block, low - first, high - low), low):
                    recovered = codec.Recovered(effect.session, self.config.incarnation, serial.wire(number), payload)
                    parts.append(codec.encode_recovered(recovered))
        if parts:
            self._pool.send(effect.to, b"".join(parts))
