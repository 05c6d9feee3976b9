"""Batches: messages of all topics of a session that share a datagram.

* **Implicit.** A message is added first; then a batch that has reached the floor leaves. A batch that would exceed the
  datagram leaves before the message is added (runner-up of the traps: 2000 + 500 bytes leave as one datagram of 2500).
  The remaining batch leaves when its oldest message has waited for the interval.
* **Explicit.** Between begin and end, floor and interval do not apply; a full datagram still leaves. An explicit batch
  that is never ended stays, because no timer sends it.
"""

from enum import IntEnum

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.wire import uniform_runs
from stablecast.transports.wire.lbmc import DATA_HEADER, PREFIX


class BatchMark(IntEnum):
    """The effect of a submission on an explicit batch."""

    NONE = 0
    BEGIN = 1
    END = 2


@attrs.define
class Batcher:
    """The batch of one session.

    Attributes:
        room: Bytes of messages in a datagram.
        floor: Bytes at which a batch leaves.
        span_ns: Time that a message may wait.
        since: Arrival of the oldest message in it (ns).
        explicit: True if an explicit batch is open.
        last_at: Start of the last message in the last block.
    """

    room: int
    floor: int
    span_ns: int
    pending: list[bytes] = attrs.field(factory=list)
    size: int = 0
    since: int = 0
    explicit: bool = False
    last_at: int = 0

    def add(self, block: bytes, now: int, mark: BatchMark = BatchMark.NONE) -> list[bytes | memoryview]:
        """Add whole messages, back to back, and return the datagrams that they complete, as parts of the block.

        Raises:
            MisuseError: If a message exceeds a datagram, or the block does not end with a message. Nothing is added
                then.
        """
        if mark is BatchMark.BEGIN:
            self.explicit = True
        # After the mark, because an explicit batch has no floor.
        cuts = self._cuts(block)
        full: list[bytes | memoryview] = []
        start, view = 0, memoryview(block)
        if cuts:
            if self.pending:
                # The first datagram starts with the pending messages: only this one must be copied.
                start = cuts.pop(0)
                full.append(b"".join((*self.pending, view[:start])))
                self.pending, self.size = [], 0
            for cut in cuts:
                full.append(view[start:cut])
                start = cut
        if start < len(block):
            if not self.pending:
                self.since = now
            self.pending.append(block[start:])
            self.size += len(block) - start
        if mark is BatchMark.END:
            self.explicit = False
            full += self.flush()
        return full

    def flush(self) -> list[bytes | memoryview]:
        """Return the pending messages as one datagram or none. An explicit batch stays open."""
        if not self.pending:
            return []
        datagram, self.pending, self.size = b"".join(self.pending), [], 0
        return [datagram]

    def due(self) -> int | None:
        """Return when the batch must leave, in nanoseconds; None if it need not."""
        return self.since + self.span_ns if self.pending and not self.explicit else None

    def _cuts(self, block: bytes) -> list[int]:
        """Return the ends of datagrams in the block; an end at 0 is that of the messages pending before."""
        floor = self.room if self.explicit else self.floor
        length = int.from_bytes(block[2:4])
        # Streams of uniform messages are the rule: a step for each datagram replaces a walk over all messages.
        even = DATA_HEADER.size <= length <= self.room and not len(block) % length
        if even and uniform_runs.size(block, len(block) // length):
            self.last_at = len(block) - length
            return self._even_cuts(len(block), length, floor)
        cuts: list[int] = []
        room, unpack, at, size = self.room, PREFIX.unpack_from, 0, self.size
        end = len(block)
        while at < end:
            length = unpack(block, at)[2] if at + PREFIX.size <= end else 0
            if not (DATA_HEADER.size if block[at] == 0 else PREFIX.size) <= length <= min(room, end - at):
                raise MisuseError(f"a message of {length} bytes does not fit {min(room, end - at)}: fragment it")
            if size + length > room:
                cuts.append(at)
                size = 0
            self.last_at = at
            at += length
            size += length
            if size >= floor:
                cuts.append(at)
                size = 0
        return cuts

    def _even_cuts(self, end: int, length: int, floor: int) -> list[int]:
        """Return the same for messages of one length, with one step for each datagram instead of each message."""
        first = each = self._taken(0, length, floor)
        if self.size:
            first = self._taken(self.size, length, floor)
        cuts = list(range(first, end, each))
        left = end - cuts[-1] if cuts else self.size + end
        if left >= floor:
            cuts.append(end)
        return cuts

    def _taken(self, size: int, length: int, floor: int) -> int:
        """Return the bytes of messages of this length that fit a datagram after `size` bytes, up to the floor."""
        return min((self.room - size) // length, max(1, -(-(floor - size) // length))) * length
