"""Messages as the application gets them: one by one, or in batches."""

import logging
from bisect import bisect_left
from copy import copy
from operator import attrgetter
from typing import Final, Protocol, Self

import attrs

from stablecast.client.succession import Succession
from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Deliver
from stablecast.transports.codec.fragments import WholeMessage
from stablecast.transports.codec.lbttcp import Run, payloads
from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import DATA_HEADER
from stablecast.transports.wire.properties import Value

logger = logging.getLogger("stablecast")

SENT_PROPERTY: Final = "JMSTimestamp"
"""The property with the time at which a message was sent, in ms since the epoch; the documented name."""

SHOWN_BYTES: Final = 32
"""Bytes of a payload that `repr` shows."""


class ArrivalTime:
    """The time of the newest read from the network, in ns since the epoch. All batches of one read share it."""

    __slots__ = ("ns",)

    def __init__(self) -> None:
        """Start before the first read."""
        self.ns = 0


class Settlements(Protocol):
    """The messages that the application settles one by one."""

    @property
    def policy(self) -> object:
        """Return what happens to messages that were not acknowledged; None if the application gave no policy."""

    def holds(self, batch: "Batch | None" = None) -> bool:
        """Return whether this message was taken and is not settled; without one, whether any was."""

    def take(self, batch: "Batch", index: int) -> "Batch":
        """Take a message in hand; return the batch that has it alone."""

    def settle(self, part: "Batch") -> None:
        """Consume a message that was taken."""

    def give_back(self, part: "Batch") -> None:
        """Deliver a message that was taken again soon."""

    def refuse(self, part: "Batch", delay: float | None, error: BaseException | None) -> None:
        """Deliver a message that was taken again later, or send it to the dead letters."""


class BatchOwner(Protocol):
    """The session that delivered a batch."""

    succession: Succession
    arrival: "ArrivalTime"

    @property
    def redeliverer(self) -> "Settlements":
        """Return the messages that the application settles one by one."""

    @property
    def topic(self) -> str:
        """Return the topic of the session."""

    @property
    def source_name(self) -> str:
        """Return the name of the source, the same in all of its lives."""

    def dropped(self, count: int) -> None:
        """Note that `count` delivered numbers will not be consumed."""

    def check_thread(self) -> None:
        """Raise MisuseError outside the thread of the session's event loop."""

    def consumed(self, first: int, last: int) -> None:
        """Note that the application consumed messages `first` to `last`."""

    def acknowledge(self, first: int, number: int) -> None:
        """Acknowledge all messages up to `number` for the application, which was handed `first` to `number`."""

    def acknowledge_now(self) -> None:
        """Acknowledge the consumed messages without waiting for the interval."""


@attrs.frozen
class AckHandle:
    """A handle that acknowledges a message after the message itself is gone (P-348).

    Attributes:
        first: The extended number of the first message of its batch, which the application got together with it.
        number: The extended number of the message.
    """

    first: int
    number: int
    _owner: BatchOwner

    def ack(self, number: int | None = None) -> None:
        """Acknowledge all messages of the source up to `number`, a 32-bit sequence number; None: up to this message.

        In arrival order, a lower message counts only if it was consumed, or came in one batch with this one.

        Raises:
            MisuseError: The number was not delivered yet, or is a piece of a message that was not, or this is not the
                thread of the receiver's event loop.
        """
        self._owner.check_thread()
        wanted = self.number if number is None else serial.extend(serial.wire(number), self.number)
        self._owner.acknowledge(self.first if self.first <= wanted <= self.number else wanted, wanted)
        if wanted > self.number:
            self._owner.acknowledge(self.first, self.number)


class Batch:
    """Consecutive messages of one source.

    async for batch in receiver.batches():
        for payload in batch.payloads():
            ...

    Attributes:
        count: The number of messages.
        first: The extended number of the first message.
        incarnation: The life of the source that sent them. With the number it identifies a message.
        recovered: True if they were retransmitted. This is a hint only; detect duplicates by your own data (P-427).
        otr: True if they were missing on the live stream while the receiver ran, and then recovered.
        refusals: How often the application did not acknowledge it; only batches of one message have refusals.
        arrived_ns: The time at which the receiver read them from the network, in ns since the epoch.
    """

    __slots__ = (
        "_alone",
        "_block",
        "_skip",
        "arrived_ns",
        "count",
        "first",
        "incarnation",
        "otr",
        "owner",
        "recovered",
        "refusals",
        "reported",
    )

    def __init__(
        self,
        run: Run,
        skip: int,
        count: int,
        first: int,
        incarnation: int,
        owner: BatchOwner,
        recovered: bool = False,
        otr: bool = False,
    ) -> None:
        """Make a batch of `count` messages of `run` from index `skip` on; `first` is the number of the first one."""
        self._block = run.block
        self._skip = skip
        self._alone = run.count == 1
        self.owner = owner
        self.count = count
        self.first = first
        self.incarnation = incarnation
        self.recovered = recovered
        self.otr = otr
        self.arrived_ns = owner.arrival.ns
        self.reported = self.refusals = 0

    @property
    def topic(self) -> str:
        """Return the topic of the messages."""
        return self.owner.topic

    @property
    def source(self) -> str:
        """Return the name of the source, as `Message.source`."""
        return self.owner.source_name

    def __repr__(self) -> str:
        """Return the topic, the numbers, and the count."""
        numbers = f"{self.first}..{self.numbers(self.count - 1)[1]}" if self.count else "no"
        return f"<Batch '{self.topic}' {numbers}, {self.count} messages>"

    def __len__(self) -> int:
        """Return the number of messages."""
        return self.count

    @property
    def size(self) -> int:
        """Return the bytes that the batch keeps in memory: those of its whole run."""
        return len(self._block)

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit sequence number of the first message."""
        return serial.wire(self.first)

    def payloads(self) -> list[bytes]:
        """Return the payloads in order, `count` of them."""
        if self._alone:
            return [bytes(self._block[DATA_HEADER.size :])]
        return payloads(self._block, self._skip, self.count)

    def consumed(self, count: int | None = None) -> None:
        """Report the first `count` messages (None: all) as consumed; the receiver acknowledges them soon.

        Raises MisuseError outside the thread of the receiver's event loop.
        """
        self.owner.check_thread()
        self.settle(self.count if count is None else count)

    def settle(self, count: int) -> None:
        """Report the first `count` messages as consumed, unless they were reported before."""
        upto = min(count, self.count)
        if upto > self.reported:
            begin, self.reported = self.reported, upto
            self._report(begin, upto)

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the numbers of messages [begin, end) as ranges [first, stop), ascending."""
        return [(self.first + begin, self.first + end)] if begin < end else []

    def within(self, first: int, stop: int) -> tuple[int, int]:
        """Return [begin, end), the messages that have a number in [first, stop); empty if there is none."""
        begin = min(max(first - self.first, 0), self.count)
        return begin, max(begin, min(stop - self.first, self.count))

    def take_out(self, index: int) -> Self:
        """Return a batch of one message that the application was handed last. The messages before it are consumed."""
        self.settle(index)
        part = self.part(index, index + 1)
        self.reported = index + 1
        return part

    def part(self, begin: int, end: int) -> Self:
        """Return a batch of messages [begin, end)."""
        part = copy(self)
        part.keep(begin, end)
        return part

    def cut(self, count: int) -> None:
        """Keep the first `count` messages only."""
        self.keep(0, count)

    def keep(self, begin: int, end: int) -> None:
        """Keep messages [begin, end) only."""
        self.reported = max(0, min(self.reported, end) - begin)
        self.first = self.numbers(begin)[0] if begin else self.first
        self._skip, self.count = self._skip + begin, end - begin

    def numbers(self, index: int) -> tuple[int, int]:
        """Return the first and last extended number of a message. They differ if it was cut into pieces."""
        return self.first + index, self.first + index

    def properties(self, index: int) -> dict[str, Value]:  # plain messages have none
        """Return the properties of a message by its index; empty if it has none, or they cannot be decoded."""
        return {}

    def hot_numbers(self) -> list[int | None]:
        """Return the hot-failover number of each message, 32 bits; None for a message without one."""
        return [None] * self.count

    def hot_number(self, index: int) -> int | None:
        """Return the hot-failover number of a message by its index; None if it has none."""
        return None

    def ack_handle(self, index: int | None = None) -> AckHandle:
        """Return a handle that acknowledges a message and all before it, now or later; None means the last message."""
        return AckHandle(self.first, self.numbers(self.count - 1 if index is None else index)[1], self.owner)

    def ack(self) -> None:
        """Acknowledge the batch and all messages before it, for receivers that acknowledge explicitly (P-346).

        While messages before it were taken and are not settled, it only counts as consumed. Raises like
        `AckHandle.ack`.
        """
        if self.owner.redeliverer.holds():
            self.consumed()
        else:
            self.ack_handle().ack()

    def _report(self, begin: int, end: int) -> None:
        self.owner.consumed(self.first + begin, self.first + end - 1)


class AssembledBatch(Batch):
    """Messages that were cut into pieces or have properties; each has numbers of its own."""

    __slots__ = ("_wholes",)

    def __init__(
        self, wholes: list[WholeMessage], run: Run, delivered: Deliver, incarnation: int, owner: BatchOwner
    ) -> None:
        """Make a batch of the messages, at least one, that `run` completed."""
        recovered = any(whole.recovered for whole in wholes)
        super().__init__(run, 0, len(wholes), wholes[0].first, incarnation, owner, recovered, delivered.otr)
        self._block = b""
        self._wholes = wholes

    @property
    def size(self) -> int:
        """Return the bytes that the batch keeps in memory."""
        return sum(len(whole.payload) + len(whole.properties) for whole in self._wholes)

    def payloads(self) -> list[bytes]:
        """Return the payloads in order, `count` of them."""
        return [whole.payload for whole in self._wholes]

    def numbers(self, index: int) -> tuple[int, int]:
        """Return the first and last extended number of a message."""
        whole = self._wholes[index]
        return whole.first, whole.last

    def properties(self, index: int) -> dict[str, Value]:
        """Return the properties of a message by its index; empty if it has none, or they cannot be decoded."""
        octets = self._wholes[index].properties
        try:
            return properties.values(octets) if octets else {}
        except WireError:
            return {}

    def hot_numbers(self) -> list[int | None]:
        """Return the hot-failover number of each message, 32 bits; None for a message without one."""
        return [whole.hot_number for whole in self._wholes]

    def hot_number(self, index: int) -> int | None:
        """Return the hot-failover number of a message by its index; None if it has none."""
        return self._wholes[index].hot_number

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the numbers of messages [begin, end) as ranges [first, stop), ascending."""
        spans: list[tuple[int, int]] = []
        for whole in self._wholes[begin:end]:
            first = spans.pop()[0] if spans and spans[-1][1] == whole.first else whole.first
            spans.append((first, whole.last + 1))
        return spans

    def within(self, first: int, stop: int) -> tuple[int, int]:
        """Return [begin, end), the messages that have a number in [first, stop); empty if there is none."""
        begin = bisect_left(self._wholes, first, key=attrgetter("last"))
        return begin, max(begin, bisect_left(self._wholes, stop, key=attrgetter("first")))

    def keep(self, begin: int, end: int) -> None:
        """Keep messages [begin, end) only."""
        super().keep(begin, end)
        self._wholes = self._wholes[begin:end]

    def _report(self, begin: int, end: int) -> None:
        for first, stop in self.spans(begin, end):
            self.owner.consumed(first, stop - 1)


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
        """Return the extended number, which never wraps; of a message that was cut, that of the last piece."""
        return self._batch.numbers(self._index)[1]

    @property
    def key(self) -> str:
        """Return the text that identifies the message among all messages of all sources, for de-duplication.

        The same message has the same key whenever it comes again, also in a later run of the receiver. A source that
        starts again may use a number again whose message never became stable; the life in the key tells them apart.
        """
        return f"{self._batch.incarnation:016x}-{self.number}"

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
        """Return the 32-bit sequence number; of a message that was cut, that of the last piece."""
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
        """Return the life of the source that sent it. With the sequence number it identifies the message."""
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
        """Acknowledge the message.

        If it was taken (`async with message`, `auto_ack=False`), this message alone counts as consumed, and the
        receiver acknowledges it with those before it. Else it is acknowledged at once with all messages before it, for
        receivers that acknowledge explicitly (P-346, P-347); but while others were taken, it only counts as consumed.

        Raises like `AckHandle.ack`.
        """
        owner = self._batch.owner
        if not owner.redeliverer.holds():
            self.ack_handle().ack()
            return
        owner.check_thread()
        if self._batch.reported <= self._index:
            self.take()
            owner.redeliverer.settle(self._batch)

    def nack(self, delay: float | None = None) -> None:
        """Do not acknowledge the message: it comes again.

        Later messages go on. Until it was processed, neither it nor any message after it is acknowledged to the
        stores, so a crash delivers it again. `Redelivery.attempts` bounds the deliveries.

        Args:
            delay: Seconds before it comes again; None takes `Redelivery.delay`.

        Raises:
            MisuseError: The message was consumed or settled before, the receiver acknowledges explicitly or by hot
                numbers, or this is not the thread of its event loop.
        """
        self._batch.owner.check_thread()
        self.take()
        self._batch.owner.redeliverer.refuse(self._batch, delay, None)

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
        if not redeliverer.holds(self._batch):
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

    def __repr__(self) -> str:
        """Return topic, source, number, size and the beginning of the payload, for debugging."""
        shown = repr(self.payload[:SHOWN_BYTES]) + ("..." if len(self.payload) > SHOWN_BYTES else "")
        hints = ", recovered" if self.recovered else ""
        size = f"{len(self.payload)} bytes"
        return f"<Message '{self.topic}' {self.number} of {self.source}, {size}{hints}: {shown}>"
