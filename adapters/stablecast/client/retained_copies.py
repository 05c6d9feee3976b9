"""A source's copies of the blocks that it sent, until its machine releases them."""

from collections import deque

from stablecast.core.protocol.effects import Resend
from stablecast.core.protocol.messages import Incarnation
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from stablecast.transports import codec

MAX_RESEND_BYTES = 8 * 1024 * 1024
"""Bytes sent again for one request, or one message: half of the queue that a slow peer may have."""


class Retained:
    """The blocks of one life of a source, oldest first."""

    def __init__(self, incarnation: Incarnation) -> None:
        """Start before the first message."""
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
