"""A source: sends with credit, tells of stability.

The fast path holds no task and no record per message: `try_send` writes a header and the payload into a list, spends local
credit, and the whole list leaves as one block: when it is large enough, or at the end of the loop's turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import assert_never

import attrs

from stablecast.client.errors import Closed, MessageTooLarge, NotRegistered, NotStable, RegistrationFailed
from stablecast.core import effects as fx
from stablecast.core import serial
from stablecast.core.events import (
    Event,
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
from stablecast.core.ranges import RangeSet
from stablecast.core.settings import FlightBehavior, SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.net.driver import Driver
from stablecast.net.pool import Pool
from stablecast.net.runs import payloads
from stablecast.net.stream import StreamServer
from stablecast.trace import Driven, recorder
from stablecast.transports import codec
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE

FLUSH_BYTES = 32 * 1024
"""A block leaves when it has grown to this."""

MAX_PAYLOAD = MAX_MESSAGE - DATA_HEADER.size
"""Bytes that one unfragmented message can carry."""

TURN_MESSAGES = 256
"""Messages after which `send` lets other tasks run."""

NO_LIMIT = 1 << 62


@attrs.frozen
class Sent:
    """A message on its way; `sequence_number` as on the wire."""

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
        self,
        config: SourceConfig,
        pool: Pool,
        on_event: Callable[[Event], None] | None,
        trace: Path | None,
    ) -> None:
        """A source that has not started."""
        self.config = config
        self.topic = config.topic
        self._pool = pool
        self._on_event = on_event
        self._machine = SourceEndpoint.create(config)
        driven: Driven[SourceInput] = Driven(self._machine, recorder(Role.SOURCE, config.topic, self._machine, trace))
        self._driver = Driver(driven, self._perform)
        self._loop = asyncio.get_running_loop()
        self._session_id, self._topic_index = codec.split(config.incarnation)
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._pending_payload = 0
        self._next = 0
        self._credit = 0
        self._credit_bytes = NO_LIMIT
        self._turn = 0
        self._flush_planned = False
        self._retained: deque[tuple[int, int, bytes]] = deque()
        self._waiters: dict[int, list[asyncio.Future[None]]] = {}
        self._forced = RangeSet()
        self._changed = asyncio.Event()
        self._complete = asyncio.Event()
        self._troubles: list[str] = []
        self._closed = False
        self.stream: StreamServer | None = None
        self.on_close: Callable[[], None] | None = None

    async def __aenter__(self) -> "Source":
        """The source itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    # Life.

    def start(self, stream: StreamServer) -> None:
        """Register."""
        self.stream = stream
        self._driver.feed(Start())

    async def registered(self, within: float | None = None) -> None:
        """Wait until enough stores granted. Raises RegistrationFailed after `within` seconds."""
        try:
            async with asyncio.timeout(within):
                await self._complete.wait()
        except TimeoutError:
            why = "; ".join(dict.fromkeys(self._troubles)) or "no store answered"
            raise RegistrationFailed(
                f"source '{self.topic}' is not registered with enough stores after {within:g} s: {why}"
            ) from None

    async def close(self) -> None:
        """Send what is buffered, say nothing more. What is not stable yet stays at the stores that have it."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        self._driver.close()
        self._changed.set()
        for future in (future for futures in self._waiters.values() for future in futures):
            if not future.done():
                future.set_exception(Closed(f"source '{self.topic}' was closed"))
        self._waiters.clear()
        if self.stream is not None:
            await self.stream.close()
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
        """Send without waiting; returns the message's extended number, or None while the flight is full.

        Raises NotRegistered, MessageTooLarge or Closed.
        """
        size = len(payload)
        if self._credit < 1 or size > self._credit_bytes or size > MAX_PAYLOAD:
            self._refuse(size)
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
        """Send, waiting for credit when the flight is full. Raises NotRegistered, MessageTooLarge or Closed."""
        number = self.try_send(payload)
        while number is None:
            self._changed.clear()
            await self._changed.wait()
            number = self.try_send(payload)
        self._turn += 1
        if self._turn % TURN_MESSAGES == 0:
            await asyncio.sleep(0)
        return Sent(number, self)

    async def send_many(self, messages: Iterable[bytes]) -> int | None:
        """Send several, waiting for credit as needed; returns the number of the last. Raises like `send`."""
        number = None
        for payload in messages:
            number = self.try_send(payload)
            while number is None:
                self._changed.clear()
                await self._changed.wait()
                number = self.try_send(payload)
        return number

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
        """Wait until message `number` is stable. Raises NotStable if it was reclaimed by force, Closed on closing."""
        if number in self._forced:
            raise NotStable(f"message {serial.wire(number)} was reclaimed before it was stable")
        window = self._machine.window
        if number < window.trail or number in window.stable:
            return
        if self._closed:
            raise Closed(f"source '{self.topic}' was closed")
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiters.setdefault(number, []).append(future)
        try:
            await future
        finally:
            waiting = self._waiters.get(number)
            if waiting is not None and future in waiting:
                waiting.remove(future)
                if not waiting:
                    del self._waiters[number]

    @property
    def stable_through(self) -> int:
        """The last extended number up to which everything sent in this life is stable."""
        window = self._machine.window
        return window.stable.contiguous_from(window.trail) - 1

    async def wait_stable_through(self, number: int) -> None:
        """Wait until everything up to `number` is stable. Raises Closed on closing."""
        while self.stable_through < number:
            if self._closed:
                raise Closed(f"source '{self.topic}' was closed")
            self._changed.clear()
            await self._changed.wait()

    # The driver's side.

    def receive(self, event: SourceInput) -> None:
        """Feed the machine (called by the context)."""
        self._driver.feed(event)

    def greeting(self) -> bytes:
        """What a joiner hears first: the session, and the SRI as soon as there is one."""
        self.flush()
        hello = codec.greeting(self._session_id)
        return hello + codec.encode(self._machine.info()) if self._machine.can_send else hello

    def _refuse(self, size: int) -> None:
        if self._closed:
            raise Closed(f"source '{self.topic}' was closed")
        if not self._machine.can_send:
            raise NotRegistered("not currently registered with enough stores")
        limit = min(MAX_PAYLOAD, self.config.flight_bytes or MAX_PAYLOAD)
        if size > limit:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {limit} bytes")
        self.flush()

    def _planned_flush(self) -> None:
        self._flush_planned = False
        if not self._closed:
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
        match event:
            case RegistrationComplete():
                if not self._complete.is_set():
                    self._next = event.number
                self._complete.set()
                self._troubles.clear()
            case Stable() if event.flags & StableFlag.STABLE:
                self._resolve(event.first, event.last, None)
            case Reclaimed() if event.forced:
                self._forced.add(event.first, event.last + 1)
                self._resolve(event.first, event.last, "reclaimed before it was stable")
            case StoreUnresponsive() | RegistrationError():
                self._troubles.append(event.text)
            case QuorumLost():
                self.flush()
            case _:
                pass
        self._renew_credit()
        if self._on_event is not None:
            self._on_event(event)

    def _renew_credit(self) -> None:
        """What the machine grants, less what is buffered here."""
        machine = self._machine
        if not machine.can_send:
            self._credit = 0
        elif self.config.flight_behavior is FlightBehavior.NOTIFY or not self.config.stores:
            self._credit, self._credit_bytes = NO_LIMIT, NO_LIMIT
        else:
            buffered = len(self._parts) // 2
            self._credit = machine.credit_messages - buffered
            room = machine.credit_bytes
            self._credit_bytes = (
                NO_LIMIT if room is None else room - (self._pending_bytes - buffered * DATA_HEADER.size)
            )
        self._changed.set()

    def _resolve(self, first: int, last: int, failure: str | None) -> None:
        """Wake whoever waits for these numbers."""
        if not self._waiters:
            return
        for number in [number for number in self._waiters if first <= number <= last]:
            for future in self._waiters.pop(number):
                if future.done():
                    continue
                if failure is None:
                    future.set_result(None)
                else:
                    future.set_exception(NotStable(f"message {serial.wire(number)} was {failure}"))

    def _resend(self, effect: fx.Resend) -> None:
        parts = []
        for first, stop, block in self._retained:
            low, high = max(first, effect.first), min(stop, effect.last + 1)
            if low < high:
                for number, payload in enumerate(payloads(block, low - first, high - low), low):
                    recovered = codec.Recovered(effect.session, self.config.incarnation, serial.wire(number), payload)
                    parts.append(codec.encode_recovered(recovered))
        if parts:
            self._pool.send(effect.to, b"".join(parts))
