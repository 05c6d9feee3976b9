"""Proactive retransmission: messages that a store has not acknowledged in time go to it again (P-436..P-441).

Runs wait in a queue in the order in which they are due. Each check sends the unstable parts of due runs to every store
that is present and neither acknowledged nor lost them (T16), and such a run waits for its time anew. Stable runs leave
the queue at each check, so a healthy window costs one comparison for each run, and the queue is no longer than the
window.
"""

from collections import deque

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.source.stability import StabilityWindow

MESSAGES_PER_CHECK = 4096
"""Messages that are sent again at one check, counted for each store; the rest is due at the next."""


@attrs.define
class ProactiveRetransmission:
    """Runs as (first, stop, when due in ns). A `timeout_ns` of 0 turns it off, and then nothing waits (P-439)."""

    timeout_ns: int
    queue: deque[tuple[int, int, int]] = attrs.field(factory=deque)

    def __bool__(self) -> bool:
        return bool(self.queue)

    def sent(self, first: int, stop: int, now: int) -> None:
        """Queue a run that was sent."""
        if self.timeout_ns:
            self.queue.append((first, stop, now + self.timeout_ns))

    def check(self, window: StabilityWindow, now: int) -> list[tuple[int, int, int]]:
        """Return what to send again, as (store, first, stop), in the order of the stores."""
        wanted: dict[int, RangeSet] = {}
        left = MESSAGES_PER_CHECK
        stable = window.stable.contiguous_from(window.trail)
        while self.queue and left > 0:
            first, stop, due = self.queue[0]
            if stop > stable and due > now:
                break
            self.queue.popleft()
            gaps = window.stable.missing(max(first, stable), stop)
            for low, high in gaps:
                for store, start, end in window.unacknowledged(low, high):
                    wanted.setdefault(store, RangeSet()).add(start, end)
                    left -= end - start
            if gaps:
                self.queue.append((first, stop, now + self.timeout_ns))
        return [(store, start, end) for store, ranges in sorted(wanted.items()) for start, end in ranges]
