"""A source: registers with its stores, sends within the credit, and reports what is stable.

The fast path holds no task and no record per message. `try_send` puts a header and the payload into a list and spends
local credit; the whole list leaves as one block. *Batching* decides when it leaves:

* By default the first few messages of a turn of the event loop leave at once. Later ones leave when the turn ends, or
  when they fill a block.
* With an interval, a block leaves at its minimum length, or when its oldest message has waited for the interval.
* Inside `with source.batch()`, a block leaves when it is full, and when the `with` ends.
* In each case a block leaves on `flush`, before a caller waits for credit or stability, and before a joiner is greeted.

Messages with properties and messages that are cut into pieces are collected beside the plain ones. They never share a
block with them (`stablecast.transports.codec.chained_messages`).
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import attrs

from stablecast.client.argument_checks import check_properties
from stablecast.client.callbacks import notify
from stablecast.client.errors import (
    Closed,
    EndpointFailed,
    MessageTooLarge,
    NoRoom,
    NotRegistered,
    NotStableYet,
    RegistrationFailed,
    RegistrationTroubles,
)
from stablecast.client.event_details import EventDetails, MessageTags, store_of
from stablecast.client.loop_ownership import check_loop, uninterrupted
from stablecast.client.message_ids import ID_PROPERTY, SentIds
from stablecast.client.outgoing_messages import (
    FLUSH_BYTES,
    PROMPT_MESSAGES,
    TURN_MESSAGES,
    Block,
    Outgoing,
    Payload,
    octets_of,
)
from stablecast.client.stability import Stability
from stablecast.core.errors import OversizeError
from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.messages import Role, SourceInfo
from stablecast.core.protocol.settings import FlightBehavior, SourceConfig
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.evidence.trace import recorder
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import Driven, Driver, describe, report
from stablecast.runtime.source_strings import source_string
from stablecast.runtime.stream import StreamServer
from stablecast.runtime.wakeup_latency import Courtesy
from stablecast.transports import codec
from stablecast.transports.codec import fragments
from stablecast.transports.wire import properties as wire_properties
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from stablecast.client.measured_times import TimedBlocks
    from stablecast.runtime.reliable_stream import ReliableStream
    from stablecast.transports.resolution.udp.settings import AdvertiseOptions

logger = logging.getLogger("stablecast")

RESERVED = 64
"""Bytes of a datagram kept for headers: of the transport, of the message, and of its retransmission."""

MAX_PAYLOAD = MAX_MESSAGE - RESERVED - DATA_HEADER.size
"""Bytes of the largest message over TCP that is not cut."""

MAX_CUT = 32 * 1024 * 1024
"""Bytes of the largest message over TCP: half of the queue that a slow joiner may have."""

REPORT_SECONDS = 0.01
"""Seconds after which the machine gets a report of messages that left at once, if no other input comes before.

A receiver that the kernel has woken on this core need not wait for that report. A recorded source reports at the end of
the turn, because a receiver's trace should not run ahead of its source's trace for long."""

NO_LIMIT = 1 << 62
"""Credit of a source that has no flight, in messages and in bytes."""

_PLAIN = struct.Struct(">III").pack
"""`DATA_HEADER` of a plain message: kind and first header are 0, which leaves the length in the first word."""

WARN_SECONDS = 30.0
"""Seconds after which a call that waits for the stores logs which ones are missing."""

OutgoingMessage = tuple[Payload, Mapping[str, Value] | None, int | None]
"""A payload, its properties and its hot number."""

_STABLE = int(events.StableFlag.STABLE)
"""The flag of stability by the group rule; events about one store or one group come without it."""


@attrs.frozen
class Sent:
    """A message that was sent.

    Attributes:
        number: Its extended number, which never wraps; of a message that was cut, that of the last piece.
        source: The source that sent it.
    """

    number: int
    source: "Source" = attrs.field(repr=lambda source: f"'{source.topic}'")

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit number, as on the wire."""
        return serial.wire(self.number)

    async def stable(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - its errors say what is missing
        """Wait until enough stores have synced the message, `timeout` seconds at most. Raises as `wait_stable`."""
        await self.source.wait_stable(self.number, timeout)


class Source:
    """A source of one topic, made by `Context.source`. Use it inside `async with`, or call `close`.

    async with await context.source("orders", stores=["127.0.0.1:14567"]) as source:
        sent = await source.send(b"one")
        await sent.stable()

    All methods belong to the event loop in which the source was made.
    """

    def __init__(
        self,
        config: SourceConfig,
        pool: ConnectionPool,
        on_event: Callable[[events.Event], None] | None,
        trace: Path | None,
    ) -> None:
        """Make a source that has not started. Raises TraceError, ConfigError."""
        self.config = config
        self.topic = config.topic
        self.place = config.transport
        self.advertise: AdvertiseOptions | None = None
        self.on_close: Callable[[], None] | None = None
        self.on_forced_reclaim: Callable[[events.Reclaimed], None] | None = None
        self.on_receiver_gone: Callable[[events.ReceiverGone], None] | None = None
        self.stream: StreamServer | ReliableStream | None = None
        self.courtesy: Courtesy | None = None
        self.max_payload = MAX_PAYLOAD
        self.max_message = MAX_CUT
        self._pool = pool
        self._on_event = on_event
        self._machine = SourceEndpoint.create(config)
        recording = recorder(Role.SOURCE, config.topic, self._machine, trace)
        driven: Driven[inputs.SourceInput, fx.SourceEffect] = Driven(self._machine, recording)
        self._driver = Driver(driven, self._perform, self.fail, self._report_rest)
        self._reports_late = recording is None
        self._report_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ident = machine.threads.ident
        self._thread = self._ident()
        self._blocking = bool(config.stores) and config.flight_behavior is FlightBehavior.BLOCK
        self._out = Outgoing(config.incarnation)
        self._credit = 0
        self._credit_bytes = NO_LIMIT
        self._least = FLUSH_BYTES
        self._span_ns = 0
        self._batches = 0
        self._prompt = self._emitted = self._turn_began = self._unreported = self._unreported_bytes = 0
        self._calm = True  # The last turn sent no more than leaves at once.
        self._timer: asyncio.TimerHandle | None = None
        self._flush_planned = False
        self._changed = asyncio.Event()
        self._begun = self._over = self._held = self._turned_away = self._closed = False
        self._whose = f"source '{config.topic}'"
        self._end_reason = f"{self._whose} was closed"
        self._stability = Stability.of(config, self._machine.status)
        self._ids = SentIds()
        self._tags = MessageTags(keeps_late=config.confirmations)
        self._troubles = RegistrationTroubles()
        self._written_info: tuple[SourceInfo, bytes] | None = None
        self._failure: EndpointFailed | None = None

    @property
    def life(self) -> int:
        """Return the number of this life of the source, 64 bits; messages have it as `Message.life`."""
        return self.config.incarnation

    @property
    def session_id(self) -> int:
        """Return the session id that names the source in all of its lives, 0: none."""
        return self.config.session_id

    def __repr__(self) -> str:
        """Return the topic, the place, the next number and the state, for debugging."""
        state = self._end_reason if self._over else "ready" if self._may_send() else "waits for its stores"
        return f"<Source '{self.topic}' at {source_string(self.place)}, next message {self._out.next}, {state}>"

    async def __aenter__(self) -> "Source":
        """Return the source itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the source."""
        await self.close()

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        self._thread = -1
        self._flush_planned, self._prompt = False, 0

    # ------------------------------------------------------------------------------------------------ life of a source

    async def start(self, stream: "StreamServer | ReliableStream") -> None:
        """Let joiners in, and register with the stores."""
        self.stream = stream
        await stream.start()
        self._driver.feed(inputs.Start())

    def move(self, reply_to: str, place: str) -> None:
        """Go on at other addresses: those of the request port and of the stream."""
        self.config, self.place = attrs.evolve(self.config, reply_to=reply_to, transport=place), place
        self.receive(inputs.Moved(reply_to, place))

    async def registered(self, within: float | None = None) -> None:
        """Wait until the source may send: enough stores have registered it, now or again after they were lost.

        Raises RegistrationFailed after `within` seconds (None: never), Closed when the source closes.
        """
        check_loop(self._loop, self._whose)
        try:
            async with asyncio.timeout(within):
                while not self._may_send():
                    if self._over:
                        raise Closed(self._end_reason)
                    await self._change()
        except TimeoutError:
            raise RegistrationFailed(self._missing_stores(within)) from None

    @property
    def over(self) -> bool:
        """Return True if the source can send no more: closed, failed, deregistered, or replaced by another life."""
        return self._over

    async def deregister(self) -> None:
        """Ask every store to forget this source and its messages, and wait until all have. The source sends no more.

        The source asks a store that is away again until it answers. Raises Closed.
        """
        check_loop(self._loop, self._whose)
        if self._over:
            raise Closed(self._end_reason)
        self.flush()
        self._driver.feed(inputs.Withdraw())
        self._renew_credit()
        await self._until_over()
        if self._closed:
            raise Closed(self._end_reason)

    async def until_failed(self) -> EndpointFailed:
        """Wait until an effect of the machine failed and ended the source; return the failure. May wait for ever."""
        while self._failure is None:
            await self._change()
        return self._failure

    async def _until_over(self) -> None:
        while not self._over:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def close(self) -> None:
        """Send what is buffered, then nothing more. Messages that are not stable yet stay at the stores that have them.

        Callers that wait for credit or stability get Closed.
        """
        if self._closed:
            return
        check_loop(self._loop, self._whose)
        self.flush()
        self._closed = True
        self._credit = 0
        if self._report_timer is not None:
            self._report_timer.cancel()
        self._driver.close()
        self._end(self._end_reason)
        try:
            if self.stream is not None:
                await uninterrupted(self.stream.close())
        finally:
            if self.on_close is not None:
                self.on_close()

    # --------------------------------------------------------------------------------------------------------- sending

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """Set when a block leaves: at `minimum_bytes`, or after `span_ns` nanoseconds (0: when the turn ends)."""
        self._out.floor = self._least = minimum_bytes
        self._span_ns = span_ns

    @property
    def next_number(self) -> int:
        """Return the extended number of the next message."""
        return self._out.next

    @property
    def credit(self) -> int:
        """Return how many messages `try_send` accepts now. A message that is cut counts once."""
        return max(0, self._granted()[0])

    def try_send(self, payload: Payload, properties: Mapping[str, Value] | None = None) -> int | None:
        """Send a message without waiting; return its extended number, or None while the flight is full.

        After None, try again when the event `Wakeup` comes (T13), or after `await room()`. The number of a message that
        is cut is that of its last piece. Stores and retransmissions keep the `properties` with the payload.

        Raises:
            NotRegistered: Too few stores have registered the source now.
            MessageTooLarge: The message can never be sent.
            Closed: The source ended.
            MisuseError: This is not the event loop of the source.
            TypeError, ValueError: A payload that is not bytes-like, or properties that cannot be encoded.
        """
        if payload.__class__ is not bytes:
            return self.try_send(octets_of(payload), properties)
        if not (self._prompt or self._flush_planned) and self._ident() != self._thread:
            check_loop(self._loop, self._whose)  # It costs a system call on Python 3.11.
        size = len(payload)
        if properties or self._credit < 1 or size > self._credit_bytes or size > self.max_payload:
            if properties or size > self.max_payload:
                return self._try_other(payload, properties or {})
            self._check(size)
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

    async def send(
        self,
        payload: Payload,
        properties: Mapping[str, Value] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - its errors say what the call waited for
        wait: bool = True,
        tag: object = None,
        number_info: bool = False,
        hot_number: int | None = None,
        id: str | None = None,  # noqa: A002 - the name that other clients have
    ) -> Sent:
        """Send a message; wait for the stores and for room in the flight. A call that is cancelled has not sent.

        A call that has waited for the stores for 30 s logs which stores are missing, and waits on.

        Args:
            payload: The message: bytes, or an object with the bytes of a buffer.
            properties: As for `try_send`.
            timeout: Seconds to wait in all; None waits for ever.
            wait: False raises NotRegistered at once while too few stores have registered the source.
            tag: As for `try_send_as`.
            number_info: As for `try_send_as`.
            hot_number: As for `try_send_as`.
            id: An id of the application, up to 256 bytes. A message with an id that is among the newest 10,000 of this
                source is not sent again: the call returns the first one. Receivers may drop later copies, too.

        Raises:
            NotRegistered: Too few stores registered the source in time. The text names them, and what to do.
            NoRoom: The flight stayed full for `timeout` seconds.
            MessageTooLarge, Closed, MisuseError, TypeError, ValueError: As `try_send`.
        """
        if id is not None:
            more = {"timeout": timeout, "wait": wait, "tag": tag, "number_info": number_info, "hot_number": hot_number}
            return await self._send_once(id, payload, properties or {}, more)
        if self._out.next % TURN_MESSAGES == 0:
            await asyncio.sleep(0)
        plain = tag is None and not number_info and hot_number is None
        try:
            if plain:
                number = self.try_send(payload, properties)
            else:
                number = self.try_send_as(payload, properties, tag=tag, number_info=number_info, hot_number=hot_number)
        except NotRegistered:
            if not wait:
                raise
            number = None
        if number is None:
            again = partial(self.try_send, payload, properties)
            if not plain:
                others: Any = {"tag": tag, "number_info": number_info, "hot_number": hot_number}
                again = partial(self.try_send_as, payload, properties, **others)
            number = await self._until_sent(again, (payload, properties, hot_number), timeout, wait)
        return Sent(number, self)

    def try_send_as(
        self,
        payload: Payload,
        properties: Mapping[str, Value] | None = None,
        *,
        tag: object = None,
        number_info: bool = False,
        hot_number: int | None = None,
    ) -> int | None:
        """Send like `try_send`, with what plain messages do not have.

        Args:
            payload: The message.
            properties: As for `try_send`.
            tag: An object of the application, which comes back with events: `details(event).tags` (P-333).
            number_info: Report `SequenceNumberInfo` for this message, even if it is not cut into pieces (P-334).
            hot_number: The number, 0 to 2^32 - 1, that all sources give to the same message. Receivers with
                `hot_failover` get each number once. It must ascend by one for each message; 0 follows the highest.
        """
        first = self._out.next
        if hot_number is not None and not 0 <= hot_number < serial.MODULUS:
            raise ValueError(f"a hot number is from 0 to {serial.MODULUS - 1}, not {hot_number}")
        if tag is not None:
            # Sending may report events at once, so the object must be there before.
            self._tags.begin(first, tag)
        number = None
        try:
            if hot_number is None:
                number = self.try_send(payload, properties)
            else:
                check_loop(self._loop, self._whose)
                number = self._try_other(octets_of(payload), properties or {}, hot_number)
        finally:
            if tag is not None:
                self._tags.end(number)
        if number_info and number == first:
            self._on_notify(events.SequenceNumberInfo(first, first))
        return number

    def details(self, event: events.Event) -> EventDetails:
        """Return more facts about an event: names, the session id, and the objects of its messages (P-333).

        The objects of a message are known until the source has released it; with `ume_confirmed_delivery_notification`
        the newest 10,000 of them are known longer.
        """
        store, name = store_of(event, self.config.stores, self._machine.status.registrations)
        tags: tuple[object, ...] = ()
        match event:
            case (
                events.Stable(first=first, last=last)
                | events.NotStable(first=first, last=last)
                | events.Confirmed(first=first, last=last)
                | events.Reclaimed(first=first, last=last)
                | events.SequenceNumberInfo(first=first, last=last)
            ):
                tags = self._tags.of(first, last)
        return EventDetails(store, name, self.config.session_id, source_string(self.place), tags)

    async def send_many(self, messages: Iterable[Payload]) -> int | None:
        """Send several messages; wait for credit as needed. Return the extended number of the last, None if none.

        A list or tuple of messages of one size is fastest, because whole blocks are built from it. Raises like `send`;
        the messages before the one that raised were sent.
        """
        check_loop(self._loop, self._whose)
        if isinstance(messages, bytes | bytearray | memoryview | str):
            raise TypeError(f"send_many needs several payloads, not one {type(messages).__name__}: use send")
        if isinstance(messages, list | tuple) and not self._batches and not self._span_ns:
            return await self._send_list(messages)
        number = None
        for payload in messages:
            number = self.try_send(payload) if self._may_send() else None
            if number is None:
                number = await self._send(payload)
            elif number % TURN_MESSAGES == 0:
                await asyncio.sleep(0)
        return number

    async def room(self, size: int = 0) -> None:
        """Wait until the flight has room for a message of `size` bytes. Another task may use that room first.

        Raises NotRegistered, MessageTooLarge, Closed or MisuseError.
        """
        check_loop(self._loop, self._whose)
        await self._room_for(size, fragments.count(size, 0, self._room))

    async def _room_for(self, size: int, count: int) -> None:
        while True:
            self._check(size, count=count)
            self.flush()
            self._changed.clear()
            if self._fits(size) or self._block(size):
                return
            await self._changed.wait()

    def flush(self) -> None:
        """Write all buffered messages to the stream now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._flush_planned = bool(self._batches)
        if self._out.parts or self._out.pieces:
            self._emit(self._out.collected())
        self._report_rest()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Send the messages of a `with` block together when it ends, or whenever a block is full. No timer sends them.

        A call inside that waits for credit or stability flushes first.
        """
        check_loop(self._loop, self._whose)
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
        """Stop or resume sending, because the transport is full or has room again (T13)."""
        self._held = held
        if not self._reports_late:
            self._driver.feed(inputs.Held(held))  # Only a trace needs it.
        self._renew_credit()
        self._changed.set()
        if self._turned_away and not held:
            self._turned_away = False
            self._on_notify(events.Wakeup())

    async def _send_once(
        self, message_id: str, payload: Payload, properties: Mapping[str, Value], more: Mapping[str, Any]
    ) -> Sent:
        """Send a message unless one with its id was sent, or another call is sending it."""
        seconds: float | None = more["timeout"]
        while (known := self._ids.find(message_id)) is not None:
            try:
                async with asyncio.timeout(seconds):
                    number = await asyncio.shield(known)
            except TimeoutError:
                raise self._too_late(len(payload), seconds) from None
            if number is not None:
                return Sent(number, self)
        self._ids.begin(message_id, self._loop.create_future())
        number = None
        try:
            sent = await self.send(payload, {**properties, ID_PROPERTY: message_id}, **more)
            number = sent.number
        finally:
            self._ids.end(message_id, number)
        return sent

    async def _send(self, payload: Payload) -> int:
        return (await self.send(payload)).number

    async def _until_sent(
        self, attempt: Callable[[], int | None], message: OutgoingMessage, seconds: float | None, wait: bool
    ) -> int:
        """Wait until the attempt to send a message succeeds."""
        extent = self._extent(*message)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        await self._room_for(*extent)
                        number = attempt()
                    except NotRegistered:
                        if not wait:
                            raise
                        await self._registered_or_warned()
                        continue
                    if number is not None:
                        return number
        except TimeoutError:
            raise self._too_late(extent[0], seconds) from None

    def _too_late(self, size: int, seconds: float | None) -> NotRegistered | NoRoom:
        """Return the error of a message of `size` bytes that was not sent in time."""
        if not self._may_send():
            return NotRegistered(self._missing_stores(seconds))
        return NoRoom(
            f"{self._whose} had no room for {size} bytes within {seconds:g} s, because {self._unsettled()}: "
            "wait longer, or raise ume_flight_size"
        )

    def _unsettled(self) -> str:
        """Return why the flight is full."""
        if self._held:
            return "the transport accepts no more messages now"
        first = self._stability.through + 1
        return f"messages {first}..{self._out.next - 1} are neither stable nor confirmed by their receivers"

    async def _registered_or_warned(self) -> None:
        """Wait until the source may send, and log the missing stores after a while."""
        try:
            await self.registered(WARN_SECONDS)
        except RegistrationFailed as error:
            logger.warning("%s; send waits for them", error)

    def _missing_stores(self, within: float | None) -> str:
        known = self._machine.status.registrations.items()
        silent = {index: one.address for index, one in known if one.failing}
        own = self.config.reply_to
        return self._troubles.explain(self.topic, within, own, self._pool.connected, self._pool.cause, silent)

    def _extent(
        self, payload: Payload, properties: Mapping[str, Value] | None, hot_number: int | None = None
    ) -> tuple[int, int]:
        """Return the bytes of a message with its properties, and its pieces."""
        block = wire_properties.block(properties) if properties else b""
        size = len(octets_of(payload)) + len(block)
        return size, fragments.count(size, len(block), self._room, hot_number)

    async def _send_list(self, messages: Sequence[Payload]) -> int | None:
        """Send blocks while there is credit for several messages. Other messages go alone, which waits or raises."""
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

    def _try_other(self, payload: bytes, properties: Mapping[str, Value], hot_number: int | None = None) -> int | None:
        """Send a message with properties or a hot number, or one that is cut."""
        check_properties(properties)
        block = wire_properties.block(properties) if properties else b""
        size = len(payload) + len(block)
        count = fragments.count(size, len(block), self._room, hot_number)
        self._check(size, count=count)
        if self._out.parts or not self._fits(size):
            self.flush()
            if not self._fits(size) and not self._block(size):
                return None
        number = self._out.cut(payload + block, len(block), self._room, hot_number)
        self._renew_credit()
        if self._out.pieces_bytes >= self._out.floor:
            self.flush()
        elif not self._flush_planned and self._at_once():
            self._leave(self._out.collected())
        return number

    def _leave(self, block: Block) -> None:
        """Send at once, and let a receiver that this wakes on our core run first."""
        self._emit(block)
        if self._calm and self.courtesy is not None:
            self.courtesy.give_way()

    def _emit(self, block: Block) -> None:
        """Write messages to the stream, and report them to the machine now or soon."""
        octets, first, count, payload_bytes, large = block
        if self.stream is not None:
            try:
                self.stream.write(octets)
            except Exception as error:  # noqa: BLE001 - the numbers are used: without the messages nothing may follow
                self.fail("to write messages", error)
        self._out.retained.add(first, first + count, octets, payload_bytes)
        self._emitted = first + count
        self._unreported += count
        self._unreported_bytes += payload_bytes
        if large or not self._prompt:
            self._report_sent(large)
        if not self._credit:
            self._renew_credit()

    def _report_sent(self, large: tuple[tuple[int, int], ...] = ()) -> None:
        count, size, self._unreported, self._unreported_bytes = self._unreported, self._unreported_bytes, 0, 0
        self._driver.feed(inputs.Sent(self._emitted - count, count, size, large))

    def _report_rest(self) -> None:
        if self._unreported:
            self._report_sent()

    def _at_once(self) -> bool:
        """Plan when the next message leaves; return True if that is now."""
        if self._span_ns:
            self._flush_planned = True
            self._timer = self._loop.call_later(self._span_ns / SECOND, self._planned_flush)
            return False
        if not self._prompt:
            try:
                self._loop.call_soon(self._planned_flush)
            except RuntimeError:  # The loop is closed.
                check_loop(self._loop, self._whose)
                raise
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
        if self._out.parts or self._out.pieces or not self._reports_late:
            self.flush()
        elif self._unreported and self._report_timer is None:
            self._report_timer = self._loop.call_later(REPORT_SECONDS, self._report_late)

    def _report_late(self) -> None:
        self._report_timer = None
        self._report_rest()

    # ---------------------------------------------------------------------------------------------------------- credit

    @property
    def _room(self) -> int:
        """Bytes of the largest piece with its headers."""
        return self.max_payload + DATA_HEADER.size

    def _may_send(self) -> bool:
        return self._begun and not self._over and self._machine.can_send

    def _block(self, size: int) -> bool:
        """Ask the machine for a `Wakeup` when there is room; return True if there is room already."""
        self._turned_away |= self._held
        if not self._held:
            self._driver.feed(inputs.Blocked(size))
        return self._fits(size)

    def _fits(self, size: int) -> bool:
        return self._renew_credit() >= 1 and size <= self._credit_bytes

    def _check(self, size: int, count: int = 1) -> None:
        """Raise if a message of `size` bytes in `count` pieces cannot be sent now, or ever."""
        if self._over:
            raise Closed(self._end_reason)
        if size > self.max_message:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {self.max_message} bytes")
        if count > fragments.MAX_PIECES:
            raise MessageTooLarge(
                f"a message of {count} pieces has more than {fragments.MAX_PIECES}: raise the datagram size"
            )
        if self._blocking:  # A streaming source has no flight.
            try:
                self._machine.check_size(size)
            except OversizeError as error:
                raise MessageTooLarge(str(error)) from None
        if not self._may_send():
            raise NotRegistered("not currently registered with enough stores")

    def _granted(self) -> tuple[int, int]:
        """Return the messages and payload bytes that the machine grants, less those not reported to it yet."""
        machine = self._machine
        if self._held or not self._may_send():
            return (0, self._credit_bytes)
        if not self._blocking:
            return (NO_LIMIT, NO_LIMIT)
        reported = machine.next_number  # Large messages are reported as they leave, so those that wait here are newer.
        room = machine.credit_bytes
        size = NO_LIMIT if room is None else room - self._out.bytes_from(reported)
        return (machine.credit_messages - (self._out.next - reported - self._out.joined), size)

    def _renew_credit(self) -> int:
        """Give the fast path the granted credit; return the granted messages.

        The fast path gets none while pieces wait, because a plain message must not join their block. Between renewals
        `_credit` may be too low, but never too high. `try_send` renews it when it is used up.
        """
        messages, self._credit_bytes = self._granted()
        self._credit = 0 if self._out.pieces else messages
        return messages

    # ------------------------------------------------------------------------------------------------------- stability

    async def publish(
        self,
        payload: Payload,
        properties: Mapping[str, Value] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - its errors say what the call waited for
        id: str | None = None,  # noqa: A002 - as for `send`
    ) -> Sent:
        """Send a message and wait until it is stable: for the stores, for room and for stability, all in `timeout`.

        Raises:
            NotRegistered, NoRoom: The message was not sent in time.
            NotStableYet: It was sent, and is not known to be stable in time.
            NotStable: It was sent, and cannot become stable any more.
            MessageTooLarge, Closed, MisuseError, TypeError, ValueError: As `try_send`.
        """
        until = None if timeout is None else self._loop.time() + timeout
        sent = await self.send(payload, properties, timeout=timeout, id=id)
        await sent.stable(None if until is None else max(0.0, until - self._loop.time()))
        return sent

    async def wait_stable(self, number: int, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as `send`
        """Wait until the message with this extended number is stable, with all pieces of a message that was cut.

        Raises NotStable if the source reclaimed it before (P-323) or every store lost it for good (P-441), Closed when
        the source closes, NotStableYet after `timeout` seconds. A source without stores always raises Closed.
        """
        check_loop(self._loop, self._whose)
        self.flush()
        pieces = range(self._machine.first_piece(number), number + 1)
        if timeout is None:
            for piece in pieces:
                await self._stability.wait(piece)
            return
        try:
            async with asyncio.timeout(timeout):
                for piece in pieces:
                    await self._stability.wait(piece)
        except TimeoutError:
            raise NotStableYet(self._unstable(number, timeout)) from None

    @property
    def stable_through(self) -> int:
        """Return the extended number up to which all messages of this life are stable."""
        return self._stability.through

    async def wait_stable_through(
        self,
        number: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as `send`
    ) -> None:
        """Wait until all messages of this life up to `number` are stable. Raises like `wait_stable`."""
        check_loop(self._loop, self._whose)
        self.flush()
        try:
            async with asyncio.timeout(timeout):
                while not self._stability.check_through(number):
                    await self._change()
        except TimeoutError:
            raise NotStableYet(self._unstable(number, timeout)) from None

    def _unstable(self, number: int, seconds: float | None) -> str:
        """Return why a message is not known to be stable after a while."""
        here = ", ".join(self.registered_names()) or "none"
        why = f"of its {len(self.config.stores)} stores these are registered and not silent: {here}"
        return (
            f"message {serial.wire(number)} of {self._whose} was sent, and is not known to be stable "
            f"after {seconds:g} s; {why}. It may still become stable: wait again, or send it again with its id"
        )

    # --------------------------------------------------------------------------------------------- inputs and effects

    def measure(self, blocks: "TimedBlocks") -> None:
        """Time each block from now on. A source that is not measured has the plain methods."""
        self._emit = partial(blocks.emit, self._emit)  # type: ignore[method-assign]
        stability = self._stability
        stability.on_stable = partial(blocks.settle, stability.on_stable)  # type: ignore[method-assign]
        stability.on_reclaimed = partial(blocks.settle, stability.on_reclaimed)  # type: ignore[method-assign]

    def receive(self, event: inputs.SourceInput) -> None:
        """Feed the machine; the context calls this."""
        self._report_rest()
        self._driver.feed(event)

    def stores_of(self, _: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of the source, or of the store with an index."""
        return self._machine.status.stores(index)

    def registered_names(self) -> list[str]:
        """Return the names of the stores that have registered the source and are not silent."""
        known, stores = self._machine.status.registrations, self.config.stores
        return [stores[index].name for index, one in known.items() if one.present]

    def greeting(self) -> bytes:
        """Return the bytes that a joiner gets first: the session, and the source information if there is some."""
        return codec.greeting(codec.split(self.config.incarnation)[0]) + self.info()

    def info(self) -> bytes:
        """Return the encoded source information, or no bytes before the source is active."""
        self.flush()
        return self._encoded(self._machine.info()) if self._machine.state is SourceState.ACTIVE else b""

    def _encoded(self, info: SourceInfo) -> bytes:
        """Encode source information. It seldom changes, so the last encoding is kept."""
        if self._written_info is None or self._written_info[0] != info:
            self._written_info = (info, codec.encode(info))
        return self._written_info[1]

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.Notify():
                self._on_notify(effect.event)
            case fx.Release():
                self._out.retained.release(effect.number)
                if self._tags:
                    self._tags.release(effect.number)
            case fx.Send():
                self._pool.send(effect.to, codec.encode(effect.message))
            case fx.Broadcast(message=message):
                if self.stream is not None:
                    known = self._encoded(message) if isinstance(message, SourceInfo) else codec.encode(message)
                    self.stream.write(known)
            case fx.Resend():
                # A peer that has not read what it got asks again; its other receivers share the connection.
                if self._pool.room(effect.to) and (again := self._out.retained.again(effect)):
                    self._pool.send(effect.to, again)
            case _:
                assert_never(effect)

    def fail(self, what: object, error: Exception) -> None:
        """End the source, because an effect failed; raise the reason for every caller that sends or waits.

        The machine counts on the effect. Going on would build promises on an act that did not happen. Messages that
        are stable stay stable at the stores.
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

    def _on_notify(self, event: events.Event) -> None:
        if self._closed:
            return
        event = self._pool.explained(event)
        match event:
            case events.Stable():
                if int(event.flags) & _STABLE:
                    self._stability.on_stable(event.first, event.last)
                    self._changed.set()
            case events.NotStable():
                self._stability.on_lost_at_store(event.first, event.last)
                self._changed.set()
            case events.Reclaimed():
                self._stability.on_reclaimed(event.first, event.last)
                self._changed.set()
                if event.forced and self.on_forced_reclaim is not None:
                    notify(self.on_forced_reclaim, event, self._whose)
            case events.ReceiverGone():
                notify(self.on_receiver_gone, event, self._whose)
            case events.Wakeup():
                self._changed.set()
            case events.StoreUnresponsive() | events.RegistrationError():
                self._troubles.add(event)
            case events.RegistrationComplete():
                self._begin(event.number)
            case events.QuorumLost():
                self.flush()
                self._renew_credit()
                self._changed.set()
            case events.Overtaken():
                self._end(f"another life of {self._whose} has taken its place: make a new source")
            case events.DeregistrationComplete():
                self._end(f"{self._whose} was deregistered")
        notify(self._on_event, event, self._whose)

    def _begin(self, number: int) -> None:
        """Enough stores have registered the source; its first registration fixes its first number."""
        if not self._begun:
            self._begun = True
            self._out.next = number
            self._stability.begin(number)
        self._troubles.clear()
        self._renew_credit()
        self._changed.set()

    def _end(self, reason: str) -> None:
        """Send no more, and wake every caller that waits."""
        self._over = True
        self._end_reason = reason
        self._stability.close(reason)
        self._renew_credit()
        self._changed.set()
