"""What a receiver hands to the application: single messages, or runs of them."""

from copy import copy
from typing import Protocol, Self

import attrs

from stablecast.client.succession import Succession
from stablecast.core.machine import serial
from stablecast.transports.codec.lbttcp import Run, payloads
from stablecast.transports.wire.lbmc import DATA_HEADER
from stablecast.transports.wire.properties import Value


class Owner(Protocol):
    """The session that delivered a batch."""

    succession: Succession

    def dropped(self, count: int) -> None:
        """Note that so many numbers that it delivered will not be consumed."""

    def own_thread(self) -> None:
        """Raise MisuseError in any thread but that of the session's event loop."""

    def consumed(self, first: int, last: int) -> None:
        """The application is done with these."""

    def acknowledge(self, first: int, number: int) -> None:
        """The application acknowledges everything up to a number, and was handed `first` to `number`."""

    def acknowledge_now(self) -> None:
        """Acknowledge what is consumed, without waiting for the interval."""


@attrs.frozen
class AckHandle:
    """What is left of a message when all that is wanted of it is to acknowledge it, or others, later (P-348).

    `first` is where its batch begins: what came before it in that was handed over with it.
    """

    first: int
    number: int
    _owner: Owner

    def ack(self, number: int | None = None) -> None:
        """Acknowledge everything up to `number`, a sequence number of the same source; None: up to this message.

        In arrival order what is below counts only if the application is done with it, or it came in one batch with this
        message. Raises MisuseError for a number that was not delivered yet, or is a piece of a message that was not.
        """
        self._owner.own_thread()
        wanted = self.number if number is None else serial.extend(serial.wire(number), self.number)
        self._owner.acknowledge(self.first if self.first <= wanted <= self.number else wanted, wanted)
        if wanted > self.number:
            self._owner.acknowledge(self.first, self.number)


class Batch:
    """Consecutive messages of one source, as they came; `Assembled` are those that did not come plain.

    `incarnation` and `first` identify them; `recovered` tells that they were retransmitted (a hint: duplicates are told
    by the application's own data, P-427), `otr` that they were missing on the stream of a receiver that was running.
    """

    __slots__ = ("_alone", "_block", "_skip", "count", "first", "incarnation", "otr", "owner", "recovered", "reported")

    def __init__(
        self,
        run: Run,
        skip: int,
        count: int,
        first: int,
        incarnation: int,
        owner: Owner,
        recovered: bool = False,
        otr: bool = False,
    ) -> None:
        """`count` messages of `run` from the `skip`th on, with numbers from `first` on; `incarnation` sent them."""
        self._block = run.block
        self._skip = skip
        self._alone = run.count == 1
        self.owner = owner
        self.count = count
        self.first = first
        self.incarnation = incarnation
        self.recovered = recovered
        self.otr = otr
        self.reported = 0

    def __len__(self) -> int:
        """How many messages."""
        return self.count

    @property
    def size(self) -> int:
        """Bytes that the batch keeps in memory: those of its whole run."""
        return len(self._block)

    @property
    def sequence_number(self) -> int:
        """The 32-bit number of the first message."""
        return serial.wire(self.first)

    def payloads(self) -> list[bytes]:
        """The payloads in order."""
        if self._alone:
            return [bytes(self._block[DATA_HEADER.size :])]
        return payloads(self._block, self._skip, self.count)

    def consumed(self, count: int | None = None) -> None:
        """The application is done with the first `count` messages (default all): they may be acknowledged.

        Raises MisuseError in another thread than that of the receiver.
        """
        self.owner.own_thread()
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
        """First and last extended number of the `index`th message; they differ where it was cut into pieces."""
        return self.first + index, self.first + index

    def properties(self, index: int) -> dict[str, Value]:  # plain messages have none
        """The properties of the `index`th message."""
        return {}

    def ack_handle(self, index: int | None = None) -> AckHandle:
        """What can acknowledge the `index`th message and all before it, now or later; None: the last of the batch."""
        return AckHandle(self.first, self.numbers(self.count - 1 if index is None else index)[1], self.owner)

    def ack(self) -> None:
        """Acknowledge the batch and everything before it: for receivers that acknowledge explicitly (P-346)."""
        self.ack_handle().ack()

    def _report(self, begin: int, end: int) -> None:
        """Messages [begin, end) of the batch are consumed."""
        self.owner.consumed(self.first + begin, self.first + end - 1)


class Message:
    """One message."""

    __slots__ = ("_batch", "_index", "payload")

    def __init__(self, payload: bytes, batch: Batch, index: int) -> None:
        """The `index`th message of a batch."""
        self.payload = payload
        self._batch = batch
        self._index = index

    @property
    def sequence_number(self) -> int:
        """Its 32-bit sequence number: that of its last piece, where it was cut."""
        return serial.wire(self._batch.numbers(self._index)[1])

    @property
    def numbers(self) -> tuple[int, int]:
        """The 32-bit numbers of its first and last piece; they differ only where it was cut (P-334)."""
        first, last = self._batch.numbers(self._index)
        return serial.wire(first), serial.wire(last)

    @property
    def properties(self) -> dict[str, Value]:
        """What the source said of it beside the payload."""
        return self._batch.properties(self._index)

    @property
    def incarnation(self) -> int:
        """The life of the source that sent it; with the sequence number it identifies the message."""
        return self._batch.incarnation

    @property
    def recovered(self) -> bool:
        """Whether it was retransmitted rather than sent on the live stream."""
        return self._batch.recovered

    @property
    def otr(self) -> bool:
        """Whether it was missing on the live stream while the receiver ran, and recovered outside of it (P-427)."""
        return self._batch.otr

    def ack(self) -> None:
        """Acknowledge it and everything before it: for receivers that acknowledge explicitly (P-346, P-347)."""
        self.ack_handle().ack()

    def ack_handle(self) -> AckHandle:
        """What can acknowledge it later, when the message itself is gone (P-348)."""
        return self._batch.ack_handle(self._index)

    def consumed(self) -> None:
        """The application is done with this message and all before it in its batch."""
        self._batch.consumed(self._index + 1)

    def __repr__(self) -> str:
        """Number and size."""
        return f"<Message {self.sequence_number}, {len(self.payload)} bytes>"
