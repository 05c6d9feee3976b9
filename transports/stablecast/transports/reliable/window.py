"""The transmission window: the datagrams that a source can send again. Numbers are extended.

It is bounded by payload, by memory and by age, whichever is reached first. What has not left yet stays, and so does the
newest of what has.
"""

import attrs

OVERHEAD = 160
"""Bytes of memory that a datagram in the window costs beside its payload, about."""


@attrs.define
class Window:
    """Datagrams `trail` to `lead`.

    Attributes:
        limit: Bytes of payload.
        memory: Bytes with overhead; 0: no limit.
        age_ns: Age of the oldest; 0: any.
        lead: The newest number; -1 before the first.
        sent: The newest number that has left; the ones behind it wait for the rate limit.
        payload_bytes: What the window holds.
    """

    limit: int
    memory: int = 0
    age_ns: int = 0
    lead: int = -1
    sent: int = -1
    payload_bytes: int = 0
    datagrams: dict[int, bytes] = attrs.field(factory=dict)
    sent_at: dict[int, int] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self.datagrams)

    @property
    def trail(self) -> int:
        """The oldest number held; before the first datagram the number that it will have."""
        return self.lead + 1 - len(self.datagrams)

    def add(self, payload: bytes) -> int:
        """Takes the next datagram; returns its number."""
        self.lead += 1
        self.datagrams[self.lead] = payload
        self.payload_bytes += len(payload)
        return self.lead

    def leave(self, number: int, now: int) -> bytes:
        """The next datagram leaves for the first time."""
        self.sent = number
        if self.age_ns:
            self.sent_at[number] = now
        self.trim(now)
        return self.datagrams[number]

    def get(self, number: int) -> bytes | None:
        """The payload of a datagram that has left and is still there."""
        return self.datagrams.get(number) if number <= self.sent else None

    def trim(self, now: int) -> None:
        """Lets go of what is too much or too old."""
        if self.payload_bytes <= self.limit and not self.memory and not self.age_ns:
            return
        while self.trail < self.sent and (self._too_large or self._too_old(now)):
            oldest = self.trail
            self.payload_bytes -= len(self.datagrams.pop(oldest))
            self.sent_at.pop(oldest, None)

    @property
    def _too_large(self) -> bool:
        used = self.payload_bytes + len(self.datagrams) * OVERHEAD
        return self.payload_bytes > self.limit or 0 < self.memory < used

    def _too_old(self, now: int) -> bool:
        return self.age_ns > 0 and now - self.sent_at[self.trail] > self.age_ns
