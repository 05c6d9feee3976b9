"""Ordered bytes of one direction of a TCP connection, from segments in any order, repeated or missing."""

from bisect import insort

import attrs

from stablecast.core.machine.records import record

MAX_WAITING = 1 << 20
"""Bytes kept after a gap; beyond that the gap counts as not captured."""
MAX_SEGMENTS = 1024
"""Segments kept after a gap, at most."""
WRAP = 1 << 32
"""The number of sequence numbers."""
_HALF = WRAP // 2


@record
class StreamChunk:
    """Ordered bytes of a stream: their frame, and the bytes lost before them."""

    octets: bytes
    frame: int
    lost: int = 0


@attrs.frozen(order=True)
class _Waiting:
    start: int
    octets: bytes
    frame: int
    missing: int

    @property
    def end(self) -> int:
        return self.start + len(self.octets) + self.missing


class HalfStream:
    """The order of the segments of one direction; numbers are 32 bits outside and unbounded inside.

    Args:
        start: The first number, if it is known otherwise than by a SYN.
    """

    def __init__(self, start: int | None = None) -> None:
        self._start = start
        self._next = 0
        self._started = False
        self._opened: int | None = None
        self._lost = 0
        self._waiting: list[_Waiting] = []

    @property
    def whole(self) -> bool:
        """Return whether its first byte was captured, as far as its SYN shows."""
        return self._opened is not None

    def opens_anew(self, sequence: int) -> bool:
        """Return whether a SYN with this number opens another connection between the same endpoints.

        One that is captured behind the first bytes of its own connection does not.
        """
        late = self._opened is None and self._start == (sequence + 1) % WRAP
        return self._started and self._opened != sequence and not late

    def open(self, sequence: int) -> None:
        """Begin the direction; `sequence` is the number of its SYN."""
        if not self._started:
            self._started, self._next = True, sequence + 1
        if self._opened is None:
            self._opened = sequence

    @property
    def idle(self) -> bool:
        """Return whether nothing waits after a gap."""
        return not self._waiting

    @property
    def frames(self) -> set[int]:
        """Return the frames whose bytes wait after a gap."""
        return {waiting.frame for waiting in self._waiting}

    def feed(self, sequence: int, octets: bytes, frame: int, missing: int = 0) -> list[StreamChunk]:
        """Add a segment; return the bytes that are in order now. `missing` bytes at its end were not captured."""
        if not self._started:
            self._started = True
            near = self._start is not None and (sequence - self._start) % WRAP < MAX_WAITING
            self._next = self._start if near and self._start is not None else sequence
        if not self._waiting and not missing and octets and sequence == self._next % WRAP:  # as a rule
            lost, self._lost = self._lost, 0
            self._next += len(octets)
            return [StreamChunk(octets, frame, lost)]
        start = self._next + ((sequence - self._next + _HALF) % WRAP) - _HALF
        insort(self._waiting, _Waiting(start, octets, frame, missing))
        found = self._in_order()
        while len(self._waiting) > MAX_SEGMENTS or sum(len(one.octets) for one in self._waiting) > MAX_WAITING:
            found += self._pass_gap()
        return found

    def close(self) -> list[StreamChunk]:
        """Return the rest at the end, with all gaps counted as lost."""
        found = []
        while self._waiting:
            found += self._pass_gap()
        return found

    def _pass_gap(self) -> list[StreamChunk]:
        start = self._waiting[0].start
        self._lost += start - self._next
        self._next = start
        return self._in_order()

    def _in_order(self) -> list[StreamChunk]:
        found = []
        while self._waiting and self._waiting[0].start <= self._next:
            segment = self._waiting.pop(0)
            fresh = segment.octets[self._next - segment.start :]
            if fresh:
                found.append(StreamChunk(fresh, segment.frame, self._lost))
                self._next += len(fresh)
                self._lost = 0
            if segment.end > self._next:
                self._lost += segment.end - self._next
                self._next = segment.end
        return found
