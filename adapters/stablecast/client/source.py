"""A source: registers with its stores, sends within the credit, and reports what is stable.

The fast path holds no task and no record per message. `try_send` offers the payload to the outbox
(`stablecast.core.source.outbox`), which decides whether it may be sent and when its block leaves. Any other message is
a *parcel*: it has properties, a hot number or a tag, is too long for one piece, or finds no credit.

Beside the times of batching, a block leaves on `flush`, before a caller waits for credit or stability, and before a
joiner is greeted.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.client.argument_checks import Payload, check_properties, octets_of
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
from stablecast.client.sender import Sender
from stablecast.client.stability import Stability
from stablecast.core.errors import OversizeError
from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source.outbox import FULL, PLAN, PROMPT, REFUSED, TURN_MESSAGES, Extra
from stablecast.evidence.trace import recorder
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import Driven, Driver, describe, report
from stablecast.runtime.source_strings import source_string
from stablecast.runtime.stream import StreamServer
from stablecast.runtime.wakeup_latency import Courtesy
from stablecast.transports.codec import fragments
from stablecast.transports.wire import properties as wire_properties
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

    from stablecast.client.message_spans import MessageSpans
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

WARN_SECONDS = 30.0
"""Seconds after which a call that waits for the stores logs which ones are missing."""

Annotation = Callable[[], Mapping[str, Value]]
"""Returns properties to add to the message that is sent now."""


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


@attrs.define
class Parcel:
    """A message that is not sent by the fast path.

    Attributes:
        payload: Its payload, with its properties behind it.
        extra: What a plain message has not, None for a plain one.
        tag: An object of the application.
        number_info: Report its number, even if it is not cut into pieces.
        span: The span of its sending, None without tracing.
    """

    payload: bytes
    extra: Extra | None
    tag: object
    number_info: bool
    span: "Span | None"


@attrs.frozen
class TracedSent(Sent):
    """A message that was sent in a span."""

    _spans: "MessageSpans" = attrs.field(repr=False)
    _key: str = attrs.field(repr=False)
    _context: "SpanContext" = attrs.field(repr=False)
    _since_ns: int = attrs.field(repr=False)

    async def stable(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as `Sent.stable`
        """Wait as `Sent.stable`, in a span that begins when the message was sent."""
        span = self._spans.stable(self.source.topic, self._key, self._context, self._since_ns)
        try:
            await super().stable(timeout)
        except BaseException as error:
            self._spans.end(span, error)
            raise
        self._spans.end(span)


class Source(Sender):
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
        annotations: Sequence[Annotation] = (),
        spans: "MessageSpans | None" = None,
    ) -> None:
        """Make a source that has not started. Raises TraceError, ConfigError.

        Each message gets the properties of `annotations`, and a span of `spans` if there are some.
        """
        self.topic = config.topic
        self.place = config.transport
        self.advertise: AdvertiseOptions | None = None
        self.on_close: Callable[[], None] | None = None
        self.on_forced_reclaim: Callable[[events.Reclaimed], None] | None = None
        self.on_receiver_gone: Callable[[events.ReceiverGone], None] | None = None
        self.stream: StreamServer | ReliableStream | None = None
        self.courtesy: Courtesy | None = None
        self._pool = pool
        self._on_event = on_event
        self._prepare(config)
        self._annotations = annotations
        self._spans = spans
        self._adds = bool(annotations) or spans is not None
        self.fit(MAX_PAYLOAD, MAX_CUT)
        recording = recorder(Role.SOURCE, config.topic, self._machine, trace)
        driven: Driven[inputs.SourceInput, fx.SourceEffect] = Driven(self._machine, recording)
        self._driver = Driver(driven, self._perform, self.fail, self._report)
        self._feed = self._driver.feed
        self._reports_late = recording is None
        self._report_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ident = machine.threads.ident
        self._thread = self._ident()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._closed = False
        self._whose = f"source '{config.topic}'"
        self._end_reason = f"{self._whose} was closed"
        self._stability = Stability.of(config, self._machine.status)
        self._ids = SentIds()
        self._tags = MessageTags(keeps_late=config.confirmations)
        self._troubles = RegistrationTroubles()
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
        state = self._end_reason if self.over else "ready" if self._out.may_send else "waits for its stores"
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
        self._out.collects, self._out.prompt = False, 0

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
                while not self._out.may_send:
                    if self.over:
                        raise Closed(self._end_reason)
                    await self._change()
        except TimeoutError:
            raise RegistrationFailed(self._missing_stores(within)) from None

    @property
    def over(self) -> bool:
        """Return True if the source can send no more: closed, failed, deregistered, or replaced by another life."""
        return self._out.ended

    async def deregister(self) -> None:
        """Ask every store to forget this source and its messages, and wait until all have. The source sends no more.

        The source asks a store that is away again until it answers. Raises Closed.
        """
        check_loop(self._loop, self._whose)
        if self._out.ended:
            raise Closed(self._end_reason)
        self.flush()
        self._feed(inputs.Withdraw())
        self._out.renew()
        while not self.over:
            await self._change()
        if self._closed:
            raise Closed(self._end_reason)

    async def until_failed(self) -> EndpointFailed:
        """Wait until an effect of the machine failed and ended the source; return the failure. May wait for ever."""
        while self._failure is None:
            await self._change()
        return self._failure

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

    def fit(self, plain: int, largest: int) -> None:
        """Set the bytes of the largest message that is not cut, and of the largest one."""
        self.max_payload, self.max_message = plain, largest
        self._room = plain + DATA_HEADER.size
        self._out.limit(-1 if self._adds else plain)

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """Set when a block leaves: at `minimum_bytes`, or after `span_ns` nanoseconds (0: when the turn ends)."""
        self._out.collect(minimum_bytes, span_ns)

    @property
    def next_number(self) -> int:
        """Return the extended number of the next message."""
        return self._out.next

    @property
    def credit(self) -> int:
        """Return how many messages `try_send` accepts now. A message that is cut counts once."""
        return self._out.credit

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
        if properties or payload.__class__ is not bytes:
            return self._try(self._parcel(payload, properties))
        out = self._out
        if not (out.collects or out.prompt) and self._ident() != self._thread:
            check_loop(self._loop, self._whose)  # It costs a system call on Python 3.11.
        number = out.next
        act = out.offer(payload)
        if act:
            if act == REFUSED:
                return self._try(self._parcel(payload))
            self._act(act)
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
        if not (properties or number_info or self._adds) and tag is None and hot_number is None:
            try:
                number = self.try_send(payload)
            except NotRegistered:
                if not wait:
                    raise
            else:
                if number is not None:
                    return Sent(number, self)
        parcel = self._parcel(payload, properties, tag, number_info, hot_number)
        try:
            try:
                number = self._put(parcel)
            except NotRegistered:
                if not wait:
                    raise
                number = None
            if number is None:
                number = await self._until_sent(parcel, timeout, wait)
        except BaseException as error:
            self._end_span(parcel, error=error)
            raise
        return self._end_span(parcel, number) or Sent(number, self)

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
        return self._try(self._parcel(payload, properties, tag, number_info, hot_number))

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
        if isinstance(messages, list | tuple) and not (self._out.batches or self._out.span_ns or self._adds):
            return await self._send_list(messages)
        number = None
        for payload in messages:
            number = self.try_send(payload) if self._out.may_send else None
            if number is None:
                number = (await self.send(payload)).number
            elif number % TURN_MESSAGES == 0:
                await asyncio.sleep(0)
        return number

    async def _send_list(self, messages: Sequence[Payload]) -> int | None:
        """Send blocks while there is credit for several messages. Other messages go alone, which waits or raises."""
        number, at, turn = None, 0, TURN_MESSAGES
        while at < len(messages):
            self.flush()
            block = self._out.block_of(messages, at)
            if block is None:
                number, at = (await self.send(messages[at])).number, at + 1
                continue
            self._emit(block)
            number, at = block.first + block.count - 1, at + block.count
            if at >= turn:
                turn = at + TURN_MESSAGES
                await asyncio.sleep(0)
        return number

    async def room(self, size: int = 0) -> None:
        """Wait until the flight has room for a message of `size` bytes. Another task may use that room first.

        Raises NotRegistered, MessageTooLarge, Closed or MisuseError.
        """
        check_loop(self._loop, self._whose)
        await self._room_for(size, fragments.count(size, 0, self._room))

    async def _room_for(self, size: int, pieces: int) -> None:
        while True:
            self._check(size, pieces)
            self.flush()
            self._changed.clear()
            if self._out.fits(size) or self._block(size):
                return
            await self._changed.wait()

    def flush(self) -> None:
        """Write all buffered messages to the stream now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._out.end_interval()
        super().flush()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Send the messages of a `with` block together when it ends, or whenever a block is full. No timer sends them.

        A call inside that waits for credit or stability flushes first.
        """
        check_loop(self._loop, self._whose)
        self._out.open_batch()
        try:
            yield
        finally:
            if self._out.close_batch():
                self.flush()

    def hold(self, held: bool) -> None:
        """Stop or resume sending, because the transport is full or has room again (T13)."""
        if not self._reports_late:
            self._feed(inputs.Held(held))  # Only a trace needs it.
        waits = self._out.hold(held)
        self._changed.set()
        if waits:
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

    async def _until_sent(self, parcel: Parcel, seconds: float | None, wait: bool) -> int:
        """Wait until there is room for a message, and send it."""
        size, pieces = len(parcel.payload), 1 if parcel.extra is None else parcel.extra.pieces
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        await self._room_for(size, pieces)
                        number = self._put(parcel)
                    except NotRegistered:
                        if not wait:
                            raise
                        await self._registered_or_warned()
                        continue
                    if number is not None:
                        return number
        except TimeoutError:
            raise self._too_late(size, seconds) from None

    def _too_late(self, size: int, seconds: float | None) -> NotRegistered | NoRoom:
        """Return the error of a message of `size` bytes that was not sent in time."""
        if not self._out.may_send:
            return NotRegistered(self._missing_stores(seconds))
        return NoRoom(
            f"{self._whose} had no room for {size} bytes within {seconds:g} s, because {self._unsettled()}: "
            "wait longer, or raise ume_flight_size"
        )

    def _unsettled(self) -> str:
        """Return why the flight is full."""
        if self._out.held:
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

    def _parcel(
        self,
        payload: Payload,
        properties: Mapping[str, Value] | None = None,
        tag: object = None,
        number_info: bool = False,
        hot_number: int | None = None,
    ) -> Parcel:
        """Prepare a message: with the properties that each message gets, and with its span."""
        if hot_number is not None and not 0 <= hot_number < serial.MODULUS:
            raise ValueError(f"a hot number is from 0 to {serial.MODULUS - 1}, not {hot_number}")
        octets, block, span = octets_of(payload), b"", None
        if properties:
            check_properties(properties)
        if self._adds:
            named: dict[str, Value] = {}
            for annotation in self._annotations:
                named |= annotation()
            properties = named | dict(properties or {})
            span = None if self._spans is None else self._spans.send(self.topic, properties)
        if properties:
            block = wire_properties.block(properties)
            octets += block
        pieces = fragments.count(len(octets), len(block), self._room, hot_number)
        plain = pieces == 1 and not block and hot_number is None
        return Parcel(octets, None if plain else Extra(len(block), hot_number, pieces), tag, number_info, span)

    def _try(self, parcel: Parcel) -> int | None:
        """Send a message if there is room. Without room nothing was sent; a span that does not end is not exported."""
        try:
            number = self._put(parcel)
        except BaseException as error:
            self._end_span(parcel, error=error)
            raise
        if number is not None:
            self._end_span(parcel, number)
        return number

    def _put(self, parcel: Parcel) -> int | None:
        """Put a message into its block; return its number, or None while the flight is full."""
        out, extra, size = self._out, parcel.extra, len(parcel.payload)
        if not (out.collects or out.prompt):
            check_loop(self._loop, self._whose)
        if size > self.max_payload or out.mixes(extra) or not out.fits(size):
            self._check(size, 1 if extra is None else extra.pieces)
            if out.mixes(extra) or not out.fits(size):
                self.flush()
                if not out.fits(size) and not self._block(size):
                    return None
        first = out.next
        act = out.add(parcel.payload, extra)
        last = out.next - 1
        if parcel.tag is not None:
            self._tags.add(first, last, parcel.tag)  # Sending may report events at once.
        if act:
            self._act(act)
        if parcel.number_info and first == last:
            self._on_notify(events.SequenceNumberInfo(first, first))
        return last

    def _end_span(self, parcel: Parcel, number: int = 0, error: BaseException | None = None) -> Sent | None:
        """End the span of a message that was sent or not; return the message, None if it has no span."""
        span, spans = parcel.span, self._spans
        if span is None or spans is None:
            return None
        if error is not None:
            spans.end(span, error)
            return None
        key = f"{self.life:016x}-{number}"
        span.set_attribute("messaging.message.id", key)
        spans.end(span)
        return TracedSent(number, self, spans, key, span.get_span_context(), machine.clock.wall_ns())

    def _act(self, act: int) -> None:
        """Plan the end of the turn or of the interval, and let messages leave, as the outbox decided."""
        out = self._out
        if act & PLAN:
            if out.span_ns:
                self._timer = self._loop.call_later(out.span_ns / SECOND, self._planned_flush)
            else:
                try:
                    self._loop.call_soon(self._planned_flush)
                except RuntimeError:  # The loop is closed.
                    out.end_turn()
                    check_loop(self._loop, self._whose)
                    raise
        if act & PROMPT:
            self._emit(out.take())
            if out.calm and self.courtesy is not None:
                self.courtesy.give_way()  # A receiver that this wakes on our core runs first.
        elif act & FULL:
            self.flush()

    def _planned_flush(self) -> None:
        act = self._out.end_turn()
        if act == FULL or (act and not self._reports_late):
            self.flush()
        elif act and self._report_timer is None:
            self._report_timer = self._loop.call_later(REPORT_SECONDS, self._report_late)

    def _report_late(self) -> None:
        self._report_timer = None
        self._report()

    def _block(self, size: int) -> bool:
        """Ask the machine for a `Wakeup` when there is room; return True if there is room already."""
        question = self._out.refuse(size)
        if question is not None:
            self._feed(question)
        return self._out.fits(size)

    def _check(self, size: int, pieces: int) -> None:
        """Raise if a message of `size` bytes in `pieces` pieces cannot be sent now, or ever."""
        if self.over:
            raise Closed(self._end_reason)
        if size > self.max_message:
            raise MessageTooLarge(f"a message of {size} bytes is larger than the limit of {self.max_message} bytes")
        if pieces > fragments.MAX_PIECES:
            raise MessageTooLarge(
                f"a message of {pieces} pieces has more than {fragments.MAX_PIECES}: raise the datagram size"
            )
        try:
            self._out.check_size(size)
        except OversizeError as error:
            raise MessageTooLarge(str(error)) from None
        if not self._out.may_send:
            raise NotRegistered("not currently registered with enough stores")

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

    def receive(self, event: inputs.SourceInput) -> None:
        """Feed the machine; the context calls this."""
        self._report()
        self._feed(event)

    def stores_of(self, _: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of the source, or of the store with an index."""
        return self._machine.status.stores(index)

    def registered_names(self) -> list[str]:
        """Return the names of the stores that have registered the source and are not silent."""
        known, stores = self._machine.status.registrations, self.config.stores
        return [stores[index].name for index, one in known.items() if one.present]

    def _write(self, octets: bytes) -> None:
        if self.stream is not None:
            self.stream.write(octets)

    def _send_to(self, address: str, octets: bytes) -> None:
        self._pool.send(address, octets)

    def _has_room(self, address: str) -> bool:
        return self._pool.room(address)

    def _released(self, number: int) -> None:
        if self._tags:
            self._tags.release(number)

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

    def _on_stable(self, first: int, last: int) -> None:
        self._stability.on_stable(first, last)
        self._changed.set()
        super()._on_stable(first, last)

    def _on_notify(self, event: events.Event) -> None:
        if self._closed:
            return
        event = self._pool.explained(event)
        match event:
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
                if not self._out.begun:  # The first registration fixes the first number.
                    self._stability.begin(event.number)
                self._troubles.clear()
                self._changed.set()
            case events.QuorumLost():
                self._changed.set()
            case events.Overtaken():
                self._end(f"another life of {self._whose} has taken its place: make a new source")
            case events.DeregistrationComplete():
                self._end(f"{self._whose} was deregistered")
        super()._on_notify(event)
        notify(self._on_event, event, self._whose)

    def _end(self, reason: str) -> None:
        """Send no more, and wake every caller that waits."""
        self._end_reason = reason
        self._stability.close(reason)
        self._out.ended = True
        self._out.renew()
        self._changed.set()
