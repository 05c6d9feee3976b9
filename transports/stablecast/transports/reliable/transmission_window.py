"""The transmission window: the datagrams that a source can retransmit. Numbers are extended.

Payload, memory and age bound it, whichever is reached first. Datagrams that have not left yet stay, and so does the
newest one that has left. Datagrams that leave together state the same trail, which is not above any of them.
"""

from collections.abc import Sequence

import attrs

OVERHEAD = 160
"""Bytes of memory that a datagram in the window takes besides its payload, approximately."""


@attrs.define
class TransmissionWindow:
    """Datagrams `trail` to `lead`.

    Attributes:
        limit: Bytes of payload.
        memory: Bytes with overhead; 0: no limit.
        age_ns: Age of the oldest; 0: any.
        lead: The newest number; -1 before the first.
        sent: The newest number that has left; later ones wait for the rate limit.
        payload_bytes: Bytes of payload in the window.
    """

    limit: int
    memory: int = 0
    age_ns: int = 0
    lead: int = -1
    sent: int = -1
    payload_bytes: int = 0
    datagrams: dict[int, bytes | memoryview] = attrs.field(factory=dict)
    sent_at: dict[int, int] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.datagrams)

    @property
    def trail(self) -> int:
        """The oldest number in the window; before the first datagram the number that it will have."""
        return self.lead + 1 - len(self.datagrams)

    def add(self, payloads: Sequence[bytes | memoryview]) -> int:
        """Add the next datagrams, and return the number of the first. A part of a block keeps the whole block alive."""
        first = self.lead + 1
        self.lead += len(payloads)
        self.datagrams.update(zip(range(first, self.lead + 1), payloads, strict=True))
        self.payload_bytes += sum(map(len, payloads))
        return first

    def leave(self, count: int, now: int) -> int:
        """Note that the next datagrams leave for the first time, and return the trail that they state."""
        self.sent += 1
        if self.age_ns:
            self.sent_at.update(dict.fromkeys(range(self.sent, self.sent + count), now))
        # The first of them counts as the newest here, so that the common trail is not above it.
        self.trim(now)
        self.sent += count - 1
        return self.trail

    def get(self, number: int) -> bytes | memoryview | None:
        """Return the payload of a datagram that has left and is still in the window; otherwise None."""
        return self.datagrams.get(number) if number <= self.sent else None

    def trim(self, now: int) -> None:
        """Remove datagrams beyond the bounds."""
        if self.payload_bytes <= self.limit and not self.memory and not self.age_ns:
            return
        trail, datagrams = self.trail, self.datagrams
        while trail < self.sent and (self.payload_bytes > self.limit or self._too_large or self._too_old(now, trail)):
            self.payload_bytes -= len(datagrams.pop(trail))
            self.sent_at.pop(trail, None)
            trail += 1

    @property
    def _too_large(self) -> bool:
        return 0 < self.memory < self.payload_bytes + len(self.datagrams) * OVERHEAD

    def _too_old(self, now: int, number: int) -> bool:
        return self.age_ns > 0 and now - self.sent_at[number] > self.age_ns
