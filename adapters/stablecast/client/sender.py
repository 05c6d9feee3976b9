"""What drives a source (`stablecast.core.source`): its machine and its outbox, for the client and for simulators.

The outbox decides which messages may be sent and when a block leaves. This driver writes the blocks, keeps copies of
them, reports them to the machine, and performs what the machine asks for.
"""

import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import assert_never

from stablecast.client.observer import Observer
from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.effects import Resend
from stablecast.core.protocol.messages import Incarnation, Message, SourceInfo
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.source.outbox import Block, Outbox
from stablecast.transports import codec
from stablecast.transports.codec import fragments
from stablecast.transports.codec.domains import outbound
from stablecast.transports.codec.lbttcp import build
from stablecast.transports.reliable import high_water_marks

MAX_RESEND_BYTES = 8 * 1024 * 1024
"""Bytes sent again for one request, or one message: half of the queue that a slow peer may have."""


class Retained:
    """Copies of the blocks of one life of a source until its machine releases them, oldest first."""

    def __init__(self, incarnation: Incarnation) -> None:
        self._incarnation = incarnation
        self._blocks: deque[tuple[int, int, bytes]] = deque()

    def add(self, first: int, stop: int, block: bytes) -> None:
        """Keep the block of messages [first, stop); all of them are plain, or none."""
        self._blocks.append((first, stop, block))

    def release(self, number: int) -> None:
        """Drop the blocks whose messages all have numbers below `number`."""
        while self._blocks and self._blocks[0][1] <= number:
            self._blocks.popleft()

    def again(self, effect: Resend) -> bytes:
        """Return the requested messages that are still here, encoded as retransmissions."""
        parts: list[bytes] = []
        room = MAX_RESEND_BYTES
        wanted = min(effect.last + 1, effect.first + MAX_REQUEST_MESSAGES)
        for first, stop, block in self._blocks:
            low, high = max(first, effect.first), min(stop, wanted)
            if low < high and room > 0:
                count = min(high - low, 1 + room * (stop - first) // len(block))
                again = codec.encode_again(
                    effect.session, self._incarnation, block, low - first, count, effect.proactive
                )
                parts.append(again)
                room = room - len(again) if count == high - low else 0
        return b"".join(parts)


_PLAIN = struct.Struct(">III").pack
"""`DATA_HEADER` of a plain message: kind and first header are 0, which leaves the length in the first word."""

_STABLE = int(events.StableFlag.STABLE)
"""The flag of stability by the group rule; events about one store or one group come without it."""


class Sender(ABC):
    """One life of a source: what leaves, what is kept, and what the machine learns of it.

    Attributes:
        config: The settings of the source.
    """

    config: SourceConfig
    _room: int
    _feed: Callable[[inputs.SourceInput], None]

    def _prepare(self, config: SourceConfig) -> SourceEndpoint:
        """Make the machine, which the caller drives by `_feed`. Raises ConfigError."""
        self.config = config
        self._machine = SourceEndpoint.create(config)
        self._out = Outbox(self._machine)
        self._retained = Retained(config.incarnation)
        self._session, self._topic_index = codec.split(config.incarnation)
        self._observers: tuple[Observer, ...] = ()
        self._written_info: tuple[SourceInfo, int, bytes] | None = None
        return self._machine

    # ---------------------------------------------------------------------------------------------- what a source adds

    @abstractmethod
    def _write(self, octets: bytes) -> None:
        """Write to everybody who joined the stream."""

    @abstractmethod
    def _send_to(self, address: str, octets: bytes) -> None:
        """Send to a request port."""

    @abstractmethod
    def fail(self, what: object, error: Exception) -> None:
        """End the source, because an act failed on which the machine counts."""

    @property
    def _domain(self) -> int:
        """The domain of the source, which its announcements name; 0 if it is not known."""
        return 0

    def _has_room(self, _: str) -> bool:
        """Return whether a peer reads what it gets."""
        return True

    @abstractmethod
    def _released(self, number: int) -> None:
        """Note that no copy below a number is needed."""

    # --------------------------------------------------------------------------------------------------------- sending

    def observe(self, observer: Observer) -> None:
        """Let an observer watch from now on."""
        self._observers += (observer,)

    def flush(self) -> None:
        """Write all buffered messages to the stream now."""
        while self._out.waiting:
            self._emit(self._out.take())
        self._report()

    def _emit(self, block: Block) -> None:
        """Write messages to the stream, and report them to the machine now or soon."""
        if self._observers:
            for one in self._observers:
                one.sent(block)
        self._stream(block.first, block.count, self._encode_block(block))
        if block.large or not self._out.prompt:
            self._report(block.large)

    def _emit_prompt(self) -> None:
        """Write what waits, which is reported soon."""
        one = None if self._observers else self._out.take_one()
        if one is None:
            self._emit(self._out.take())
        else:
            number, payload = one
            self._stream(number, 1, _PLAIN(12 + len(payload), self._topic_index, number & 0xFFFF_FFFF) + payload)

    def _stream(self, number: int, count: int, octets: bytes) -> None:
        """Write consecutive messages to the stream, and keep them."""
        try:
            self._write(octets)
        except Exception as error:  # noqa: BLE001 - the numbers are used: without the messages nothing may follow
            self.fail("to write messages", error)
        self._retained.add(number, number + count, octets)

    def _report(self, large: tuple[tuple[int, int], ...] = ()) -> None:
        """Report what left to the machine."""
        report = self._out.report(large)
        if report is not None:
            self._feed(report)

    def _encode_block(self, block: Block) -> bytes:
        """Return the bytes of a block."""
        number, payloads, index = block.first, block.payloads, self._topic_index
        if block.extras:
            parts: list[bytes] = []
            for payload, extra in zip(payloads, block.extras, strict=True):
                more = extra.properties, extra.hot_number
                parts += fragments.encode_pieces(index, number, payload, self._room, *more)
                number += extra.pieces
            return b"".join(parts)
        return build(index, number, payloads)

    # --------------------------------------------------------------------------------------------- inputs and effects

    def greeting(self) -> bytes:
        """Return the bytes that a joiner gets first: the session, and the source information if there is some."""
        return codec.greeting(self._session) + self.info()

    def standing(self) -> bytes:
        """Return what is repeated where nobody is greeted: the newest number and the source information."""
        info = self.info()
        mark = (self._topic_index, serial.wire(self._out.next - 1))
        return info and high_water_marks.message([mark]) + info

    def info(self) -> bytes:
        """Return the encoded source information, or no bytes before the source is active."""
        self.flush()
        return self._encode(self._machine.info()) if self._machine.state is SourceState.ACTIVE else b""

    def _take_leave(self) -> None:
        """Tell each store itself where this life stands, because a stream that ends may not have reached it yet.

        A store serves no message before it knows where its newest life resumed.
        """
        if info := self.info():
            for registration in self._machine.status.registrations.values():
                if registration.present:
                    self._send_to(registration.address, info)

    def _encode(self, message: Message) -> bytes:
        """Encode a message. Source information seldom changes, so the last encoding of it is kept."""
        if not isinstance(message, SourceInfo):
            return codec.encode(message)
        domain = self._domain
        if self._written_info is None or self._written_info[:2] != (message, domain):
            self._written_info = (message, domain, codec.encode(outbound(message, domain)))
        return self._written_info[2]

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.Notify():
                self._on_notify(effect.event)
            case fx.Release():
                self._retained.release(effect.number)
                self._released(effect.number)
            case fx.Send():
                self._send_to(effect.to, self._encode(effect.message))
            case fx.Broadcast():
                self._write(self._encode(effect.message))
            case fx.Resend():
                # A peer that has not read what it got asks again; its other receivers share the connection.
                if self._has_room(effect.to) and (again := self._retained.again(effect)):
                    self._send_to(effect.to, again)
            case _:
                assert_never(effect)

    def _on_notify(self, event: events.Event) -> None:
        """Draw from an event what concerns sending, and tell the observers."""
        match event:
            case events.Stable():
                if int(event.flags) & _STABLE:
                    self._on_stable(event.first, event.last)
            case events.Reclaimed():
                for one in self._observers:
                    one.reclaimed(event.first, event.last, forced=event.forced)
            case events.RegistrationComplete():
                self._out.begin(event.number)
            case events.QuorumLost():
                self.flush()
                self._out.renew()

    def _on_stable(self, first: int, last: int) -> None:
        for one in self._observers:
            one.stable(first, last)
