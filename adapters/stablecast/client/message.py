"""A message as the application gets it, and the ways to acknowledge it."""

import logging
from collections.abc import Mapping
from typing import Final, Self

from stablecast.client.batch import AckHandle, Batch
from stablecast.client.message_ids import ID_PROPERTY
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime import machine
from stablecast.transports.wire.properties import Value

logger = logging.getLogger("stablecast")

SENT_PROPERTY: Final = "JMSTimestamp"
"""The property with the time at which a message was sent, in ms since the epoch; the documented name."""

SHOWN_BYTES: Final = 32
"""Bytes of a payload that `repr` shows."""


def timestamp() -> Mapping[str, Value]:
    """Return the property with the time of sending for a message that is sent now."""
    return {SENT_PROPERTY: machine.clock.wall_ns() // MILLISECOND}


class Message:
    """One message.

    A message that is larger than a datagram is cut into pieces. Each piece has a number of its own, so the numbers of
    messages may have gaps. `number` and `sequence_number` are those of the last piece, and `numbers` has the range.

    Attributes:
        payload: The bytes that the source sent.
    """

    __slots__ = ("_batch", "_index", "payload")

    def __init__(self, payload: bytes, batch: Batch, index: int) -> None:
        """Make the message with this index in a batch."""
        self.payload = payload
        self._batch = batch
        self._index = index

    @property
    def topic(self) -> str:
        """Return the topic of the message."""
        return self._batch.topic

    @property
    def source(self) -> str:
        """Return the name of the source: its RegID at its first store, `regid@ip:port`.

        A source with a session id keeps that name in all of its lives. A source without stores is named by its place.
        """
        return self._batch.source

    @property
    def life(self) -> int:
        """Return the life of the source that sent the message, 64 bits. Each start of a source is another life."""
        return self._batch.incarnation

    @property
    def number(self) -> int:
        """Return the extended number, which never wraps; of a message that was cut, that of the last piece.

        It does not identify a message: another life of the source may use it again. Use `key`.
        """
        return self._batch.numbers(self._index)[1]

    @property
    def key(self) -> str:
        """Return the text that identifies the message among all messages of all sources, for de-duplication.

        The same message has the same key whenever it comes again, also in a later run of the receiver. A source that
        starts again may use a number again whose message never became stable; the life in the key tells them apart.
        """
        return self._batch.key(self._index)

    @property
    def id(self) -> str | None:
        """Return the id that the application gave to the message (`id` of `Source.send`), None if it has none."""
        known = self.properties.get(ID_PROPERTY)
        return known if isinstance(known, str) else None

    @property
    def received_at(self) -> float:
        """Return when the receiver read the message from the network, in seconds since the epoch."""
        return self._batch.arrived_ns / SECOND

    @property
    def sent_at(self) -> float | None:
        """Return when the source sent the message, in seconds since the epoch; None if the message does not carry it.

        `Context.source(timestamps=True)` sends it, in the documented property `JMSTimestamp`.
        """
        sent = self.properties.get(SENT_PROPERTY)
        return sent / 1000 if isinstance(sent, int) else None

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit sequence number; of a message that was cut, that of the last piece.

        It does not identify a message: it wraps, and another life of the source may use it again. Use `key`.
        """
        return serial.wire(self._batch.numbers(self._index)[1])

    @property
    def numbers(self) -> tuple[int, int]:
        """Return the 32-bit numbers of the first and last piece. They differ only if the message was cut (P-334)."""
        first, last = self._batch.numbers(self._index)
        return serial.wire(first), serial.wire(last)

    @property
    def properties(self) -> dict[str, Value]:
        """Return the properties that the source sent with the payload."""
        return self._batch.properties(self._index)

    @property
    def hot_number(self) -> int | None:
        """Return the number of the message among those of all its sources, 32 bits; None if it has none."""
        return self._batch.hot_number(self._index)

    @property
    def incarnation(self) -> int:
        """Return the life of the source that sent it, as `life`. Only `key` identifies a message."""
        return self._batch.incarnation

    @property
    def recovered(self) -> bool:
        """Return True if the message was retransmitted instead of received on the live stream."""
        return self._batch.recovered

    @property
    def otr(self) -> bool:
        """Return True if the message was missing on the live stream while the receiver ran, then recovered (P-427)."""
        return self._batch.otr

    @property
    def attempt(self) -> int:
        """Return how often this run of the receiver has delivered the message, this time included: 1 at first."""
        return 1 + self._batch.refusals

    def ack(self) -> None:
        """Acknowledge the message. A second call does nothing.

        If it was taken (`async with message`, `auto_ack=False`), this message alone counts as consumed. Else all
        messages that the application got before it do, too, as they do without this call. The receiver acknowledges
        consumed messages soon. A receiver with `ume_explicit_ack_only` acknowledges this message and all before it at
        once (P-346, P-347).

        Raises like `AckHandle.ack`.
        """
        batch, redeliverer = self._batch, self._batch.owner.redeliverer
        if redeliverer.explicit:
            self.ack_handle().ack()
            return
        batch.owner.check_thread()
        if redeliverer.holds(batch):
            redeliverer.settle(redeliverer.take(batch, self._index))
        else:
            batch.settle(self._index + 1)

    def nack(self, delay: float | None = None, error: BaseException | None = None) -> None:
        """Do not acknowledge the message: it comes again.

        Later messages go on. Until it was processed, neither it nor any message after it is acknowledged to the
        stores, so a crash delivers it again. `Redelivery.attempts` bounds the deliveries.

        Args:
            delay: Seconds before it comes again; None takes `Redelivery.delay`.
            error: The reason, which the dead letter names after the last attempt.

        Raises:
            MisuseError: The message was consumed or settled before, the receiver acknowledges explicitly or by hot
                numbers, or this is not the thread of its event loop.
        """
        self._batch.owner.check_thread()
        self.take()
        self._batch.owner.redeliverer.refuse(self._batch, delay, error)

    async def __aenter__(self) -> Self:
        """Take the message: it is acknowledged when the block ends, and comes again if the block raises.

        Raises like `nack`.
        """
        self._batch.owner.check_thread()
        self.take()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Settle the message by the end of the block.

        With a `Redelivery`, an exception is logged and does not leave the block. Without one it does, and the message
        is delivered again when the application reads on. A cancelled block leaves the message as if it had not come.
        """
        redeliverer = self._batch.owner.redeliverer
        if not redeliverer.in_work(self._batch):
            return False  # ack or nack was called inside.
        if error is None:
            redeliverer.settle(self._batch)
            return False
        if redeliverer.policy is None or not isinstance(error, Exception):
            redeliverer.give_back(self._batch)
            return False
        self.refuse(error)
        return True

    def refuse(self, error: Exception) -> None:
        """Log that the application failed to process the message, and let the message come again or go away."""
        self.take()
        logger.warning("%r was not processed in attempt %d", self, self.attempt, exc_info=error)
        self._batch.owner.redeliverer.refuse(self._batch, None, error)

    def ack_handle(self) -> AckHandle:
        """Return a handle that can acknowledge the message later, when the message itself is gone (P-348).

        Raises MisuseError if the message was taken: keep the message then.
        """
        if self._batch.owner.redeliverer.holds(self._batch):
            raise MisuseError(f"{self!r} is settled by itself: keep the message, and call its ack")
        return self._batch.ack_handle(self._index)

    def consumed(self) -> None:
        """Report this message and all before it in its batch as consumed; the receiver acknowledges them soon.

        Raises MisuseError outside the thread of the receiver's event loop.
        """
        if self._batch.owner.redeliverer.holds(self._batch):
            self.ack()
        else:
            self._batch.consumed(self._index + 1)

    def take(self) -> None:
        """Take the message out of the order of consumption: the application settles it by `ack` or `nack`.

        `async with message` and `auto_ack=False` do this. Raises like `nack`.
        """
        taken = self._batch.owner.redeliverer.take(self._batch, self._index)
        if taken is not self._batch:
            self._batch, self._index = taken, 0

    def enter_span(self) -> None:
        """Make the span of the block the current one of this thread; a message without spans does nothing."""

    def leave_span(self) -> None:
        """Make the span before the block the current one again; a message without spans does nothing."""

    def __repr__(self) -> str:
        """Return topic, source, number, size and the beginning of the payload, for debugging."""
        shown = repr(self.payload[:SHOWN_BYTES]) + ("..." if len(self.payload) > SHOWN_BYTES else "")
        hints = ", recovered" if self.recovered else ""
        size = f"{len(self.payload)} bytes"
        return f"<Message '{self.topic}' {self.number} of {self.source}, {size}{hints}: {shown}>"
