"""Sending: within the credit, in blocks, cut into pieces where a message is larger than a datagram.

The fast path holds no task and no record per message: `try_send` writes a header and the payload into a list and spends
local credit; the whole list leaves as one block. When it leaves is *batching*:

* by default the first few messages of a loop's turn at once, those behind them at its end or when they have grown to a
  block;
* with an interval, when it has grown to the minimum length, or the oldest message in it has waited for the interval;
* inside `with source.batch()` when it has grown to a block, and when that ends;
* in each case with `flush`, before anybody waits for credit or for stability, and before a joiner is greeted.

What is not plain, a message with properties or one that is cut, takes the slow path: it is collected beside the plain
ones, and never in one block with them (`stablecast.transports.codec.chained_messages`).
"""

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stablecast.client.errors import Closed, MessageTooLarge, NotRegistered
from stablecast.client.outgoing_messages import FLUSH_BYTES, PROMPT_MESSAGES, TURN_MESSAGES, Block, Outgoing
from stablecast.client.sent_message import Sent
from stablecast.core.errors import OversizeError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, Wakeup
from stablecast.core.protocol.inputs import Blocked, Held, SourceInput
from stablecast.core.protocol.inputs import Sent as SentInput
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import FlightBehavior, SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace import recorder
from stablecast.runtime.driven_machine import Driven
from stablecast.runtime.driver import Driver
from stablecast.runtime.reliable_stream import ReliableStream
from stablecast.runtime.stream import StreamServer
from stablecast.runtime.wakeup_latency import Courtesy
from stablecast.transports.codec import fragments
from stablecast.transports.wire import properties as wire_properties
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE
from stablecast.transports.wire.properties import Value

RESERVED = 64
"""Bytes of a datagram that no payload gets: headers of the transport, of the message, and of its retransmission."""

MAX_PAYLOAD = MAX_MESSAGE - RESERVED - DATA_HEADER.size
"""Bytes of a message over TCP that is not cut."""

MAX_CUT = 32 * 1024 * 1024
"""Bytes of a message over TCP: half of what may wait for a slow joiner."""

TELL_SECONDS = 0.01
"""What left at once is told to the machine before whatever else it hears, an acknowledgement as a rule, at the latest
after so long: a receiver that the kernel has woken on this core need not wait for that. What is recorded is told at the
end of the turn, so that nothing is delivered for long which the trace of its source does not have."""

NO_LIMIT = 1 << 62

_PLAIN = struct.Struct(">III").pack
"""`DATA_HEADER` of a plain message: kind and first header are 0, which leaves the length in the first word."""


class Sender(ABC):
    """What a `Source` is to those who send."""

    def __init__(self, config: SourceConfig, on_event: Callable[[Event], None] | None, trace: Path | None) -> None:
        """Nothing was sent."""
        self.config = config
        self.topic = config.topic
        self.stream: StreamServer | ReliableStream | None = None
        self.courtesy: Courtesy | None = None
        self.max_payload = MAX_PAYLOAD
        self.max_message = MAX_CUT
        self._on_event = on_event
        self._machine = SourceEndpoint.create(config)
        recording = recorder(Role.SOURCE, config.topic, self._machine, trace)
        driven: Driven[SourceInput, fx.SourceEffect] = Driven(self._machine, recording)
        self._driver = Driver(driven, self._perform, self.fail, self._tell_rest)
        self._tells_late = recording is None
        self._telling: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._blocking = bool(config.stores) and config.flight_behavior is FlightBehavior.BLOCK
        self._out = Outgoing(config.incarnation)
        self._credit = 0
        self._credit_bytes = NO_LIMIT
        self._least = FLUSH_BYTES
        self._span_ns = 0
        self._batches = 0
        self._prompt = self._emitted = self._turn_began = self._untold = self._untold_bytes = 0
        self._calm = True  # The last turn said no more than leaves at once.
        self._timer: asyncio.TimerHandle | None = None
        self._flush_planned = False
        self._changed = asyncio.Event()
        self._begun = self._over = self._held = self._turned_away = False
        self._farewell = f"source '{config.topic}' was closed"

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """What is sent leaves when it has grown to so much, or after so long; 0 ns: at the end of the loop's turn."""
        self._out.floor = self._least = minimum_bytes
        self._span_ns = span_ns

    @property
    def next_number(self) -> int:
        """The extended number that the next message gets."""
        return self._out.next

    @property
    def credit(self) -> int:
        """Messages that `try_send` takes now; of one that is cut each piece counts."""
        return max(0, self._granted()[0])

    def try_send(self, payload: bytes, properties: Mapping[str, Value] | None = None) -> int | None:
        """Send without waiting; returns the message's extended number, or None while the flight is full.

        Then the event `Wakeup` tells when it may be tried again (T13); `room` waits for that. A message that is cut has
        the number of its last piece. `properties` go with the message, whoever keeps it or sends it again. Raises
        NotRegistered, MessageTooLarge or Closed; TypeError and ValueError for properties that cannot be written.
        """
        size = len(payload)
        if (
            properties
            or self._credit < 1
            or size > self._credit_bytes
            or size > self.max_payload
            or payload.__class__ is not bytes
        ):
            if properties or size > self.max_payload:
                return self._try_other(payload, properties or {})
            self._check(size, payload)
            if self._out.pieces or not self._fits(size):
                self.flush()
                if not self._fits(size) and not self._block(size):
                    return None
        out = self._out
        number = out.next
        out.next = number + 1
        self._credit -= 1
        self._credit_bytes -= size
        length = size + 12
        header = _PLAIN(length, out.topic_index, number & 0xFFFF_FFFF)
        if not self._flush_planned and self._at_once():
            self._leave((header + payload, number, 1, size, ()))
            return number
        out.parts += (header, payload)
        out.parts_bytes += length
        if out.parts_bytes >= out.floor:
            self.flush()
        return number

    async def send(self, payload: bytes, properties: Mapping[str, Value] | None = None) -> Sent:
        """Send, waiting for credit while the flight is full; cancelled meanwhile, it has not sent.

        Raises as `try_send` does.
        """
        return Sent(await self._send(payload, properties), self)

    async def send_many(self, messages: Iterable[bytes]) -> int | None:
        """Send several, waiting for credit as needed; returns the number of the last. Raises like `send`.

        A list, or a tuple, of messages of one size costs least: whole blocks are made of it at once.
        """
        if isinstance(messages, list | tuple) and not self._batches and not self._span_ns:
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
        await self._room_for(size, fragments.count(size, 0, self._room))

    async def _room_for(self, size: int, count: int) -> None:
        while True:
            self._check(size, count=count)
            self.flush()
            self._changed.clear()
            if self._fits(size, count) or self._block(size, count):
                return
            await self._changed.wait()

    def flush(self) -> None:
        """Put what is buffered on the stream now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._flush_planned = bool(self._batches)
        if self._out.parts or self._out.pieces:
            self._emit(self._out.collected())
        self._tell_rest()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """What is sent inside leaves together when it ends, or when a block is full: no timer sends it.

        Whoever has to wait inside, for credit or for stability, sends what there is.
        """
        self._batches += 1
        self._flush_planned, self._out.floor = True, max(FLUSH_BYTES, self._least)
        try:
            yield
        finally:
            self._batches -= 1
            if not self._batches:
                self._flush_planned, self._out.floor = False, self._least
                self.flush()

    def hold(self, held: bool) -> None:
        """The transport takes no more for now, or again; who was turned away meanwhile is told (T13)."""
        self._held = held
        if not self._tells_late:
            self._driver.feed(Held(held))  # Only a trace needs it.
        self._renew_credit()
        self._changed.set()
        if self._turned_away and not held:
            self._turned_away = False
            self._on_notify(Wakeup())

    async def _send(self, payload: bytes, properties: Mapping[str, Value] | None = None) -> int:
        if self._out.next % TURN_MESSAGES == 0:
            await asyncio.sleep(0)
        while (number := self.try_send(payload, properties)) is None:
            block = wire_properties.block(properties) if properties else b""
            size = len(payload) + len(block)
            await self._room_for(size, fragments.count(size, len(block), self._room))
        return number

    async def _send_list(self, messages: Sequence[bytes]) -> int | None:
        """Blocks as long as there is room for several; what does not fit one goes alone, and waits or raises."""
        number, at, turn = None, 0, TURN_MESSAGES
        while at < len(messages):
            self.flush()
            self._renew_credit()
            block = self._out.portion(messages, at, (self._credit, self._credit_bytes), self.max_payload)
            if block is None:
                number, at = await self._send(messages[at]), at + 1
                continue
            _, first, count, size, _ = block
            number, at = first + count - 1, at + count
            self._credit -= count
            self._credit_bytes -= size
            self._emit(block)
            if at >= turn:
                turn = at + TURN_MESSAGES
                await asyncio.sleep(0)
        return number

    def _try_other(self, payload: bytes, properties: Mapping[str, Value]) -> int | None:
        """Send what is not plain."""
        block = wire_properties.block(properties) if properties else b""
        size = len(payload) + len(block)
        count = fragments.count(size, len(block), self._room)
        self._check(size, payload, count)
        if self._out.parts or not self._fits(size, count):
            self.flush()
            if not self._fits(size, count) and not self._block(size, count):
                return None
        number = self._out.cut(payload + block, len(block), self._room)
        self._renew_credit()
        if self._out.pieces_bytes >= self._out.floor:
            self.flush()
        elif not self._flush_planned and self._at_once():
            self._leave(self._out.collected())
        return number

    def _leave(self, block: Block) -> None:
        """Send at once, and let whom that wakes run."""
        self._emit(block)
        if self._calm and self.courtesy is not None:
            self.courtesy.give_way()

    def _emit(self, block: Block) -> None:
        """Put messages on the stream."""
        octets, first, count, payload_bytes, large = block
        if self.stream is not None:
            try:
                self.stream.write(octets)
            except Exception as error:  # noqa: BLE001 - the numbers are used: without the messages nothing may follow
                self.fail("to write messages", error)
        self._out.retained.add(first, first + count, octets, payload_bytes)
        self._emitted = first + count
        self._untold += count
        self._untold_bytes += payload_bytes
        if large or not self._prompt:
            self._tell(large)
        if not self._credit:
            self._renew_credit()

    def _tell(self, large: tuple[tuple[int, int], ...] = ()) -> None:
        """The machine hears what is on the stream."""
        count, size, self._untold, self._untold_bytes = self._untold, self._untold_bytes, 0, 0
        self._driver.feed(SentInput(self._emitted - count, count, size, large))

    @property
    def _room(self) -> int:
        """Bytes of a message with its headers."""
        return self.max_payload + DATA_HEADER.size

    def _may_send(self) -> bool:
        return self._begun and not self._over and self._machine.can_send

    def _block(self, size: int, count: int = 1) -> bool:
        """Tell the machine that there is no room, so that it says when there is; returns whether there is already."""
        self._turned_away |= self._held
        if not self._held:
            self._driver.feed(Blocked(size, count))
        return self._fits(size, count)

    def _fits(self, size: int, count: int = 1) -> bool:
        return self._renew_credit() >= count and size <= self._credit_bytes

    def _check(self, size: int, payload: bytes = b"", count: int = 1) -> None:
        """Raise if a message can not be sent now, or ever."""
        if not isinstance(payload, bytes):
            raise TypeError(f"a payload must be bytes, not {type(payload).__name__}")
        if self._over:
            raise Closed(self._farewell)
        if size > self.max_message:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {self.max_message} bytes")
        if count > fragments.MAX_PIECES:
            raise MessageTooLarge(
                f"a message of {count} pieces has more than {fragments.MAX_PIECES}: raise the datagram size"
            )
        if self._blocking:  # A streaming source has no flight.
            try:
                self._machine.check_size(size, count)
            except OversizeError as error:
                raise MessageTooLarge(str(error)) from None
        if not self._may_send():
            raise NotRegistered("not currently registered with enough stores")

    def _at_once(self) -> bool:
        """Plan when what is said leaves; returns whether that is now."""
        if self._span_ns:
            self._flush_planned = True
            self._timer = self._loop.call_later(self._span_ns / SECOND, self._planned_flush)
            return False
        if not self._prompt:
            self._loop.call_soon(self._planned_flush)
            self._turn_began = self._emitted
        self._prompt += 1
        self._flush_planned = self._prompt == PROMPT_MESSAGES
        return True

    def _planned_flush(self) -> None:
        self._calm = self._out.next - self._turn_began <= PROMPT_MESSAGES
        self._prompt = 0
        if self._batches:
            return
        self._flush_planned = False
        if self._out.parts or self._out.pieces or not self._tells_late:
            self.flush()
        elif self._untold and self._telling is None:
            self._telling = self._loop.call_later(TELL_SECONDS, self._told_late)

    def _told_late(self) -> None:
        self._telling = None
        self._tell_rest()

    def _tell_rest(self) -> None:
        if self._untold:
            self._tell()

    def _granted(self) -> tuple[int, int]:
        """Messages and payload bytes that the machine grants, less what it has not been told of yet."""
        machine = self._machine
        if self._held or not self._may_send():
            return (0, self._credit_bytes)
        if not self._blocking:
            return (NO_LIMIT, NO_LIMIT)
        told = machine.next_number
        room = machine.credit_bytes
        size = NO_LIMIT if room is None else room - self._out.bytes_from(told)
        return (machine.credit_messages - (self._out.next - told), size)

    def _renew_credit(self) -> int:
        """The fast path gets what is granted, but while something waits that it must not be put together with.

        So `_credit` is never more than that, and less where the machine granted more since: who has used it up asks.
        Returns the messages granted.
        """
        messages, self._credit_bytes = self._granted()
        self._credit = 0 if self._out.pieces else messages
        return messages

    @abstractmethod
    async def wait_stable(self, number: int) -> None:
        """Wait until message `number` is stable."""

    @abstractmethod
    def _perform(self, effect: fx.SourceEffect) -> None:
        """Do what the machine wants done."""

    @abstractmethod
    def fail(self, what: object, error: Exception) -> None:
        """End the source: something that its machine counts on, an effect as a rule, did not happen."""

    @abstractmethod
    def _on_notify(self, event: Event) -> None:
        """Something that the application is told of."""
