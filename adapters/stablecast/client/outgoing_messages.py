"""The messages that a source is about to send, and its copies of those it has sent.

Single messages are collected until they fill a block. A list is built into whole blocks at once, which costs a fraction
for each message.
"""

from collections.abc import Sequence
from typing import Any

from stablecast.client.retained_copies import Retained
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports import codec
from stablecast.transports.codec import fragments
from stablecast.transports.codec.lbttcp import build
from stablecast.transports.wire.lbmc import DATA_HEADER

FLUSH_BYTES = 32 * 1024
"""Bytes at which a block leaves."""

MAX_BLOCK_BYTES = 4 * FLUSH_BYTES
"""Payload bytes of a block from a list, whose messages may be much longer than its first one."""

PROMPT_MESSAGES = 4
"""Messages that leave at once in a turn of the event loop. A source that sends more gains by blocks."""

TURN_MESSAGES = 1024
"""Messages of a block, and messages after which a sending task lets other tasks run."""

Payload = bytes | bytearray | memoryview
"""The payload of a message as applications give it. A buffer is copied, so that it may change after the call."""

Block = tuple[bytes, int, int, int, tuple[tuple[int, int], ...]]
"""Messages to write: their bytes, the number of the first, their count, their payload bytes, and the first and last
numbers of each message that was cut."""


def octets_of(payload: Payload) -> bytes:
    """Return the bytes of a payload. Raises TypeError if it is not bytes-like."""
    if payload.__class__ is bytes:
        return payload
    try:
        return memoryview(payload).tobytes()
    except TypeError:
        raise TypeError(
            f"a payload must be bytes-like, not {type(payload).__name__}: encode it, or use stablecast.typed"
        ) from None


class Outgoing:
    """The messages of one life of a source.

    Attributes:
        next: The number of the next message.
        floor: Bytes at which a block leaves.
        parts: Headers and payloads of plain messages. `try_send` is the hottest path, so it appends to them itself.
        parts_bytes: Their bytes.
        pieces: Messages with properties, and pieces. They are collected only while there are no `parts`.
        pieces_bytes: Payload bytes of the pieces.
        large: The first and last number of each message that was cut.
        joined: The numbers by which `large` exceeds its messages, since a message counts once in the flight (P-313).
        retained: Copies of the blocks that left.
    """

    __slots__ = (
        "floor",
        "joined",
        "large",
        "next",
        "parts",
        "parts_bytes",
        "pieces",
        "pieces_bytes",
        "retained",
        "topic_index",
    )

    def __init__(self, incarnation: Incarnation) -> None:
        """Start before the first message."""
        self.topic_index = codec.split(incarnation)[1]
        self.floor = FLUSH_BYTES
        self.next = 0
        self.parts: list[bytes] = []
        self.parts_bytes = 0
        self.pieces: list[bytes] = []
        self.pieces_bytes = 0
        self.large: list[tuple[int, int]] = []
        self.joined = 0
        self.retained = Retained(incarnation)

    def cut(self, payload: bytes, properties: int, room: int, hot_number: int | None = None) -> int:
        """Collect a message in pieces of up to `room` bytes; return the number of the last. `properties` are bytes."""
        pieces = fragments.encode_pieces(self.topic_index, self.next, payload, room, properties, hot_number)
        if len(pieces) > 1:
            self.large.append((self.next, self.next + len(pieces) - 1))
            self.joined += len(pieces) - 1
        self.next += len(pieces)
        self.pieces += pieces
        self.pieces_bytes += len(payload)
        return self.next - 1

    def collected(self) -> Block:
        """Remove the collected messages and return them as a block."""
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
        self.pieces_bytes = self.joined = 0
        return block, self.next - count, count, size, large

    def portion(self, messages: Sequence[Payload], at: int, credit: tuple[int, int], longest: int) -> Block | None:
        """Build a block of messages from index `at` on, within the `credit` in messages and payload bytes.

        Return None if the next message must be sent alone: none fits, one is not bytes, or one is longer than `longest`
        bytes.
        """
        first = messages[at]
        if first.__class__ is not bytes:
            return None
        room = min(credit[0], TURN_MESSAGES, FLUSH_BYTES // (DATA_HEADER.size + len(first)) + 1)
        several: Sequence[Any] = messages[at : at + room]
        if set(map(type, several)) != {bytes}:
            return None
        sizes = list(map(len, several))
        total = sum(sizes)
        if total > min(credit[1], MAX_BLOCK_BYTES) or max(sizes) > longest:
            return None
        number, self.next = self.next, self.next + len(several)
        return build(self.topic_index, number, several), number, len(several), total, ()

    def bytes_from(self, number: int) -> int:
        """Return the payload bytes of messages from a number on, collected or sent."""
        return self._collected_bytes + self.pieces_bytes + self.retained.payload_bytes_from(number)

    @property
    def _collected_bytes(self) -> int:
        return self.parts_bytes - len(self.parts) // 2 * DATA_HEADER.size
