"""A source's copies of what it sent, as the blocks that left, until the machine lets them go."""

from collections import deque

from stablecast.core.protocol.effects import Resend
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports import codec

MAX_RESEND = 4096
"""Messages sent again for one request; a peer that wants more asks again."""

MAX_RESEND_BYTES = 8 * 1024 * 1024
"""Bytes of the same, or one message: half of what may wait for a slow peer."""


class Retained:
    """The blocks of one life of a source, oldest first."""

    def __init__(self, incarnation: Incarnation) -> None:
        """Nothing was sent."""
        self._incarnation = incarnation
        self._blocks: deque[tuple[int, int, bytes, int]] = deque()

    def add(self, first: int, stop: int, block: bytes, payload_bytes: int) -> None:
        """The messages [first, stop) left; all are plain, or none."""
        self._blocks.append((first, stop, block, payload_bytes))

    def release(self, number: int) -> None:
        """Everything below `number` may go; a block goes as a whole."""
        while self._blocks and self._blocks[0][1] <= number:
            self._blocks.popleft()

    def payload_bytes_from(self, number: int) -> int:
        """Payload bytes of the blocks that end behind `number`."""
        size = 0
        for _, stop, _, payload_bytes in reversed(self._blocks):
            if stop <= number:
                break
            size += payload_bytes
        return size

    def again(self, effect: Resend) -> bytes:
        """What is left of the messages asked for, as retransmissions."""
        parts: list[bytes] = []
        room = MAX_RESEND_BYTES
        wanted = min(effect.last + 1, effect.first + MAX_RESEND)
        for first, stop, block, _ in self._blocks:
            low, high = max(first, effect.first), min(stop, wanted)
            if low < high and room > 0:
                count = min(high - low, 1 + room * (stop - first) // len(block))
                again = codec.encode_again(
                    effect.session, self._incarnation, block, low - first, count, effect.proactive
                )
                parts.append(again)
                room = room - len(again) if count == high - low else 0
        return b"".join(parts)
