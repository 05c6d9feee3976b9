"""Messages that a source sends again: because a peer asks for them, or before a store would (*proactive*).

Stores that catch up and late receivers ask for the retained range, then for parts of it. Without late join receivers
get nothing; stores are served all the same (P-411).

Messages that a store has not acknowledged in time go to it again unasked (P-436..P-441). Runs wait in a queue in the
order in which they are due. Each check sends the unstable parts of due runs to every store that is present and neither
acknowledged nor lost them (T16), and such a run waits for its time anew. Stable runs leave the queue at each check, so
a healthy window costs one comparison for each run, and the queue is no longer than the window.
"""

from collections import deque
from collections.abc import Collection

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Resend, Send
from stablecast.core.protocol.messages import Address, LateJoinInfo, LateJoinRequest, RetransmitRequest, Role
from stablecast.core.source.stability import StabilityWindow


def resend(request: RetransmitRequest, window: StabilityWindow, late_join: bool, out: list[Effect]) -> None:
    """Send the retained part of the requested range; name what is retained if its beginning is not any more."""
    if request.by is Role.RECEIVER and not late_join:
        return
    # Requests carry 32-bit numbers of a peer: whatever they extend to, only retained numbers are sent.
    first = serial.extend(request.first, window.next)
    last = serial.extend(request.last, window.next)
    low, stop = window.retained(first, last + 1)
    if low < stop:
        out.append(Resend(request.reply_to, request.incarnation, low, stop - 1))
    if first < window.trail:
        _tell(request, window.trail, window, out)


def send_range(
    request: LateJoinRequest, window: StabilityWindow, stores: Collection[Address], late_join: bool, out: list[Effect]
) -> None:
    """Answer with the retained range; it is empty for a peer that is not served."""
    low = window.trail if late_join or request.reply_to in stores else window.next
    _tell(request, low, window, out)


def _tell(request: LateJoinRequest | RetransmitRequest, low: int, window: StabilityWindow, out: list[Effect]) -> None:
    answer = LateJoinInfo(request.incarnation, request.request, serial.wire(low), serial.wire(window.next - 1))
    out.append(Send(request.reply_to, answer))


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
