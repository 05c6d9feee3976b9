"""What a receiver hands to the application: single messages, or runs of them."""

from collections.abc import Callable

from stablecast.core import serial
from stablecast.transports.lbttcp import Run, payloads


class Batch:
    """Consecutive messages of one source, as they came.

    `incarnation` and `first` identify them; `recovered` tells that they came from a store (a hint: duplicates are told
    by the application's own data, P-427).
    """

    __slots__ = ("_block", "_consume", "_skip", "count", "first", "incarnation", "recovered", "reported")

    def __init__(
        self,
        run: Run,
        skip: int,
        count: int,
        first: int,
        incarnation: int,
        recovered: bool,
        consume: Callable[[int, int], None],
    ) -> None:
        """`count` messages of `run` from its `skip`th on, the first being number `first` (extended)."""
        self._block = run.block
        self._skip = skip
        self._consume = consume
        self.count = count
        self.first = first
        self.incarnation = incarnation
        self.recovered = recovered
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
        return payloads(self._block, self._skip, self.count)

    def consumed(self, count: int | None = None) -> None:
        """The application is done with the first `count` messages (default all): they may be acknowledged."""
        upto = self.count if count is None else min(count, self.count)
        if upto > self.reported:
            start, self.reported = self.first + self.reported, upto
            self._consume(start, self.first + upto - 1)


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
        """Its 32-bit sequence number."""
        return serial.wire(self._batch.first + self._index)

    @property
    def incarnation(self) -> int:
        """The life of the source that sent it; with the sequence number it identifies the message."""
        return self._batch.incarnation

    @property
    def recovered(self) -> bool:
        """Whether it came from a store rather than from the live stream."""
        return self._batch.recovered

    def consumed(self) -> None:
        """The application is done with this message and all before it in its batch."""
        self._batch.consumed(self._index + 1)

    def __repr__(self) -> str:
        """Number and size."""
        return f"<Message {self.sequence_number}, {len(self.payload)} bytes>"
