"""What a source is about to say, and its copies of what it has said.

Messages sent one by one are collected until they make a block; of a list whole blocks are made at once, and what that
takes for a message is a part of what one message takes alone.
"""

from collections.abc import Sequence

from stablecast.client.retained_copies import Retained
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports import codec
from stablecast.transports.codec import fragments
from stablecast.transports.codec.lbttcp import build
from stablecast.transports.wire.lbmc import DATA_HEADER

FLUSH_BYTES = 32 * 1024
"""A block leaves when it has grown to this."""

MAX_BLOCK_BYTES = 4 * FLUSH_BYTES
"""Messages that are much longer than the first of them are not put together beyond this."""

PROMPT_MESSAGES = 4
"""Messages that leave at once in a turn of the loop: a source that has more to say gains more by blocks."""

TURN_MESSAGES = 1024
"""Messages after which a source that sends on and on lets other tasks run; a block has no more."""

Block = tuple[bytes, int, int, int, tuple[tuple[int, int], ...]]
"""Messages on their way: their bytes, the number of the first, how many, the bytes of their payloads, and the first and
last numbers of those that are pieces."""


class Outgoing:
    """The messages of one life of a source. `next` is the number of the next one.

    `try_send`, which is the hottest, puts headers and payloads into `parts` and counts their bytes itself. What is not
    plain is collected in `pieces`, with its payload's bytes, while there are no `parts`; `large` are the first and last
    numbers of what was cut. `floor`: the bytes of a block.
    """

    __slots__ = ("floor", "large", "next", "parts", "parts_bytes", "pieces", "pieces_bytes", "retained", "topic_index")

    def __init__(self, incarnation: Incarnation) -> None:
        """Nothing was said."""
        self.topic_index = codec.split(incarnation)[1]
        self.floor = FLUSH_BYTES
        self.next = 0
        self.parts: list[bytes] = []
        self.parts_bytes = 0
        self.pieces: list[bytes] = []
        self.pieces_bytes = 0
        self.large: list[tuple[int, int]] = []
        self.retained = Retained(incarnation)

    def cut(self, payload: bytes, properties: int, room: int) -> int:
        """Collect a message that is not plain, in pieces of up to `room` bytes; returns the number of its last."""
        pieces = fragments.encode_pieces(self.topic_index, self.next, payload, room, properties)
        if len(pieces) > 1:
            self.large.append((self.next, self.next + len(pieces) - 1))
        self.next += len(pieces)
        self.pieces += pieces
        self.pieces_bytes += len(payload)
        return self.next - 1

    def collected(self) -> Block:
        """The block of what was collected, which is not collected any more."""
        if self.pieces:
            return self._collected_pieces()
        count, size = len(self.parts) // 2, self._collected_bytes
        block = b"".join(self.parts)
        self.parts.clear()
        self.parts_bytes = 0
        return block, self.next - count, count, size, ()

    def _collected_pieces(self) -> Block:
        count, size, large = len(self.pieces), self.pieces_bytes, tuple(self.large)
        block = b"".join(self.pieces)
        self.pieces.clear()
        self.large.clear()
        self.pieces_bytes = 0
        return block, self.next - count, count, size, large

    def portion(self, messages: Sequence[bytes], at: int, credit: tuple[int, int], longest: int) -> Block | None:
        """The block of the next messages from `at` on for which there is credit, in messages and payload bytes.

        None if the next one has to be looked at alone: nothing fits, or one of them is no message or is longer than
        `longest` bytes.
        """
        first = messages[at]
        if first.__class__ is not bytes:
            return None
        room = min(credit[0], TURN_MESSAGES, FLUSH_BYTES // (DATA_HEADER.size + len(first)) + 1)
        several = messages[at : at + room]
        if set(map(type, several)) != {bytes}:
            return None
        sizes = list(map(len, several))
        total = sum(sizes)
        if total > min(credit[1], MAX_BLOCK_BYTES) or max(sizes) > longest:
            return None
        number, self.next = self.next, self.next + len(several)
        return build(self.topic_index, number, several), number, len(several), total, ()

    def bytes_from(self, number: int) -> int:
        """Payload bytes from a number on, collected or said."""
        return self._collected_bytes + self.pieces_bytes + self.retained.payload_bytes_from(number)

    @property
    def _collected_bytes(self) -> int:
        return self.parts_bytes - len(self.parts) // 2 * DATA_HEADER.size
