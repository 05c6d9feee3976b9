"""A source: registers with its stores, sends within the credit, and reports what is stable.

The fast path holds no task and no record per message. `try_send` offers the payload to the outbox
(`stablecast.core.source.outbox`), which decides whether it may be sent and when its block leaves. Any other message is
a *parcel*: it has properties, a hot number or a tag, is too long for one piece, or finds no credit.

"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.client.argument_checks import Payload
from stablecast.client.errors import (
    Closed,
    MessageTooLarge,
    NoRoom,
    NotRegistered,
    NotStableYet,
    RegistrationFailed,
)
from stablecast.client.event_details import EventDetails, store_of
from stablecast.client.loop_ownership import check_loop, uninterrupted
from stablecast.client.loop_sender import LoopSender
from stablecast.client.message_ids import ID_PROPERTY
from stablecast.client.parcel import Parcel
from stablecast.core.errors import OversizeError
from stablecast.core.machine import serial
from stablecast.core.protocol import events, inputs
from stablecast.core.source.outbox import REFUSED, TURN_MESSAGES
from stablecast.runtime import machine
from stablecast.runtime.source_strings import source_string
from stablecast.transports.codec import fragments
from stablecast.transports.wire.properties import Value

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from stablecast.client.message_spans import MessageSpans

logger = logging.getLogger("stablecast")

WARN_SECONDS = 30.0
"""Seconds after which a call that waits for the stores logs which ones are missing."""


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


class Source(LoopSender):
    """A source of one topic, made by `Context.source`. Use it inside `async with`, or call `close`.

    async with await context.source("orders", stores=["127.0.0.1:14567"]) as source:
        sent = await source.send(b"one")
        await sent.stable()

    All methods belong to the event loop in which the source was made.
    """

    @property
    def session_id(self) -> int:
        """Return the session id that names the source in all of its lives, 0: none."""
        return self.config.session_id

    def __repr__(self) -> str:
        state = self._end_reason if self.over else "ready" if self._out.may_send else "waits for its stores"
        return f"<Source '{self.topic}' at {source_string(self.place)}, next message {self._out.next}, {state}>"

    async def __aenter__(self) -> "Source":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ------------------------------------------------------------------------------------------------ life of a source

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

    async def close(self) -> None:
        """Send what is buffered, then nothing more. Messages that are not stable yet stay at the stores that have them.

        Callers that wait for credit or stability get Closed.
        """
        if self._closed:
            return
        check_loop(self._loop, self._whose)
        self.flush()
        if not self.over:  # A source that failed may not have sent what its machine counts.
            self._take_leave()
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
            return self._try(self._packing.pack(payload, properties))
        out = self._out
        if not (out.collects or out.prompt) and self._ident() != self._thread:
            check_loop(self._loop, self._whose)  # It costs a system call on Python 3.11.
        number = out.next
        act = out.offer(payload)
        if act:
            if act == REFUSED:
                return self._try(self._packing.pack(payload))
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
        plain = not (properties or number_info or self._packing.adds) and tag is None and hot_number is None
        number = None
        if plain:
            try:
                number = self.try_send(payload)
            except NotRegistered:
                if not wait:
                    raise
            if number is not None:
                return Sent(number, self)
        parcel = self._packing.pack(payload, properties, tag, number_info, hot_number)
        try:
            if not plain:
                try:
                    number = self._put(parcel)
                except NotRegistered:
                    if not wait:
                        raise
            if number is None:
                number = await self._until_sent(parcel, timeout, wait)
        except BaseException as error:
            self._packing.end(parcel.span, error)
            raise
        return self._sent(parcel, number)

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
        return self._try(self._packing.pack(payload, properties, tag, number_info, hot_number))

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
        if isinstance(messages, list | tuple) and not (self._out.batches or self._out.span_ns or self._packing.adds):
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
            self.flush()  # What left before is a run of its own.
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
        await self._room_for(size, fragments.count(size, 0, self._packing.room))

    async def _room_for(self, size: int, pieces: int) -> None:
        while True:
            self._check(size, pieces)
            self.flush()
            self._changed.clear()
            if self._out.fits(size) or self._block(size):
                return
            await self._changed.wait()

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

    async def _send_once(
        self, message_id: str, payload: Payload, properties: Mapping[str, Value], more: Mapping[str, Any]
    ) -> Sent:
        """Send a message unless one with its id was sent, or another call is sending it."""
        seconds: float | None = more["timeout"]
        until, left = None if seconds is None else self._loop.time() + seconds, seconds
        while (known := self._ids.find(message_id)) is not None:
            try:
                async with asyncio.timeout_at(until):
                    number = await asyncio.shield(known)
            except TimeoutError:
                raise self._too_late(len(payload), seconds) from None
            if number is not None:
                return Sent(number, self)
            left = None if until is None else max(0.0, until - self._loop.time())
        sending: asyncio.Future[int | None] = self._loop.create_future()
        self._ids.begin(message_id, sending)
        number = None
        try:
            sent = await self.send(payload, {**properties, ID_PROPERTY: message_id}, **{**more, "timeout": left})
            number = sent.number
        finally:
            self._ids.end(message_id, sending, number)
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

    def _try(self, parcel: Parcel) -> int | None:
        """Send a message if there is room. Without room nothing was sent; a span that does not end is not exported."""
        try:
            number = self._put(parcel)
        except BaseException as error:
            self._packing.end(parcel.span, error)
            raise
        if number is not None:
            self._sent(parcel, number)
        return number

    def _sent(self, parcel: Parcel, number: int) -> Sent:
        span, spans = parcel.span, self._packing.spans
        if span is None or spans is None:
            return Sent(number, self)
        key = f"{self.life:016x}-{number}"
        spans.sent(span, key)
        return TracedSent(number, self, spans, key, span.get_span_context(), machine.clock.wall_ns())

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
        if first < last:
            self._stability.cut(first, last)  # Sending may report events at once.
        if parcel.tag is not None:
            self._tags.add(first, last, parcel.tag)
        if act:
            self._act(act)
        if parcel.number_info and first == last:
            self._on_notify(events.SequenceNumberInfo(first, first))
        return last

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
        try:
            async with asyncio.timeout(timeout):
                await self._stability.wait(number)
        except TimeoutError:
            raise NotStableYet(self._unstable(number, timeout)) from None

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
