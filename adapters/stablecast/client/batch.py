"""Batches: consecutive messages of one source, as sessions deliver them and applications read them."""

from bisect import bisect_left
from operator import attrgetter
from typing import Protocol, Self

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Deliver
from stablecast.core.subscription.succession import Succession
from stablecast.transports.codec.fragments import WholeMessage
from stablecast.transports.codec.lbttcp import Run, payloads
from stablecast.transports.wire import properties
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import DATA_HEADER
from stablecast.transports.wire.properties import Value


class ArrivalTime:
    """The time of the newest read from the network, in ns since the epoch. All batches of one read share it."""

    __slots__ = ("ns",)

    def __init__(self) -> None:
        self.ns = 0


class Settlements(Protocol):
    """The messages that the application settles one by one."""

    @property
    def policy(self) -> object:
        """Return what happens to messages that were not acknowledged; None if the application gave no policy."""

    @property
    def explicit(self) -> bool:
        """Return whether the receiver acknowledges as the application asks, and all messages before, too."""

    def holds(self, batch: "Batch") -> bool:
        """Return whether this message was taken and is not settled."""

    def in_work(self, batch: "Batch") -> bool:
        """Return whether the application has this message in work: it neither settled nor refused it."""

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

    @property
    def arrival(self) -> "ArrivalTime":
        """Return the time of the newest read from the network."""

    @property
    def redeliverer(self) -> "Settlements": ...

    @property
    def topic(self) -> str: ...

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
        incarnation: The life of the source that sent them. `key` identifies a message.
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
        numbers = f"{self.first}..{self.numbers(self.count - 1)[1]}" if self.count else "no"
        return f"<Batch '{self.topic}' {numbers}, {self.count} messages>"

    def __len__(self) -> int:
        return self.count

    @property
    def size(self) -> int:
        """Return the bytes that the batch keeps in memory: those of its whole run."""
        return len(self._block)

    @property
    def sequence_number(self) -> int:
        """Return the 32-bit sequence number of the first message. It does not identify a message: use `key`."""
        return serial.wire(self.first)

    def key(self, index: int) -> str:
        """Return the text that identifies a message by its index, as `Message.key`."""
        return f"{self.incarnation:016x}-{self.numbers(index)[1]}"

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
        part = self._copy()
        part.keep(begin, end)
        return part

    def _copy(self) -> Self:
        """Return a copy. `copy.copy` takes five times as long, and each message of `async with` is a part."""
        new = object.__new__(self.__class__)
        new._block, new._skip, new._alone = self._block, self._skip, self._alone
        new.owner, new.count, new.first, new.incarnation = self.owner, self.count, self.first, self.incarnation
        new.recovered, new.otr, new.arrived_ns = self.recovered, self.otr, self.arrived_ns
        new.reported, new.refusals = self.reported, self.refusals
        if self.__class__ is not Batch:
            for name in self.__slots__:
                setattr(new, name, getattr(self, name))
        return new

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
        """Acknowledge the batch.

        A receiver with `ume_explicit_ack_only` acknowledges it and all messages before it at once (P-346); others
        acknowledge it soon. Raises like `AckHandle.ack`.
        """
        if self.owner.redeliverer.explicit:
            self.ack_handle().ack()
        else:
            self.consumed()

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
        return [whole.payload for whole in self._wholes]

    def numbers(self, index: int) -> tuple[int, int]:
        whole = self._wholes[index]
        return whole.first, whole.last

    def properties(self, index: int) -> dict[str, Value]:
        octets = self._wholes[index].properties
        try:
            return properties.values(octets) if octets else {}
        except WireError:
            return {}

    def hot_numbers(self) -> list[int | None]:
        return [whole.hot_number for whole in self._wholes]

    def hot_number(self, index: int) -> int | None:
        return self._wholes[index].hot_number

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for whole in self._wholes[begin:end]:
            first = spans.pop()[0] if spans and spans[-1][1] == whole.first else whole.first
            spans.append((first, whole.last + 1))
        return spans

    def within(self, first: int, stop: int) -> tuple[int, int]:
        begin = bisect_left(self._wholes, first, key=attrgetter("last"))
        return begin, max(begin, bisect_left(self._wholes, stop, key=attrgetter("first")))

    def keep(self, begin: int, end: int) -> None:
        super().keep(begin, end)
        self._wholes = self._wholes[begin:end]

    def _report(self, begin: int, end: int) -> None:
        for first, stop in self.spans(begin, end):
            self.owner.consumed(first, stop - 1)
