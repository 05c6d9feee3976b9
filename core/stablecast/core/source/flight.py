"""The flight: how much may be sent before some of it is settled.

* A message is in flight until it is stable and confirmed (`stability`). Both limits count, whichever is exceeded first
  (P-306, P-308): messages, however many pieces they have (P-313), and payload bytes (P-314).
* Behaviour *block*: a send beyond the limit waits. The driver reports it as `Blocked` and gets one `Wakeup` when there
  is enough credit. That may be at once, because the acknowledgement that made room may come between the refusal and the
  report (T13). Several waiting sends wake together, as soon as one of them fits.
* Behaviour *notify*: sends succeed. The send that exceeds a limit reports OVER once. When the flight has fallen below
  both limits, UNDER follows once (P-310). A flight that is exactly full is neither, so it reports nothing.
* A message of more bytes than the whole flight could never be sent: that is misuse, not a reason to wait (T14).
"""

import attrs

from stablecast.core.errors import OversizeError
from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import FlightSize, Wakeup
from stablecast.core.source.stability import StabilityWindow

UNLIMITED = 1 << 62
"""Credit in messages where the flight has no limit (P-024)."""


@attrs.define
class Flight:
    """Limits in messages and bytes, 0: none.

    `waiting` has the messages and bytes that blocked sends need, without those that need no less than another.
    """

    messages: int
    payload_bytes: int
    notify: bool
    over: bool = False
    waiting: list[tuple[int, int]] = attrs.field(factory=list)

    def credit_messages(self, window: StabilityWindow) -> int:
        """Return the messages that may be sent before the flight is full."""
        return max(0, self.messages - window.unsettled_messages) if self.messages else UNLIMITED

    def credit_bytes(self, window: StabilityWindow) -> int | None:
        """Return the payload bytes that may be sent before the flight is full; None without such a limit."""
        return max(0, self.payload_bytes - window.unsettled_bytes) if self.payload_bytes else None

    def check_size(self, payload_bytes: int) -> None:
        """Raise OversizeError for a message that does not fit an empty flight."""
        if self.notify:
            return
        if 0 < self.payload_bytes < payload_bytes:
            text = f"a message of {payload_bytes} bytes exceeds the flight of {self.payload_bytes} bytes"
            raise OversizeError(f"{text}: raise ume_flight_size_bytes, and retransmit_retention_size_limit above it")

    def on_blocked(self, count: int, payload_bytes: int, window: StabilityWindow, out: list[Effect]) -> None:
        """Remember a send of this size that found no credit."""
        if not any(least <= count and fewest <= payload_bytes for least, fewest in self.waiting):
            # Needs that include another are redundant, which bounds the list.
            smaller = [need for need in self.waiting if need[0] < count or need[1] < payload_bytes]
            self.waiting = [*smaller, (count, payload_bytes)]
        self.review(window, out)

    def review(self, window: StabilityWindow, out: list[Effect]) -> None:
        """Report what changed after something was sent or settled."""
        if self.notify and self._crossed(window):
            self.over = not self.over
            out.append(Notify(FlightSize(self.over)))
        if self.waiting and (self.notify or any(self._fits(*need, window) for need in self.waiting)):
            self.waiting.clear()
            out.append(Notify(Wakeup()))

    def _crossed(self, window: StabilityWindow) -> bool:
        """Return whether the flight exceeds a limit since the last report, or has fallen below both."""
        if self.over:
            return self.credit_messages(window) > 0 and self.credit_bytes(window) != 0
        return 0 < self.messages < window.unsettled_messages or 0 < self.payload_bytes < window.unsettled_bytes

    def _fits(self, count: int, payload_bytes: int, window: StabilityWindow) -> bool:
        room = self.credit_bytes(window)
        return self.credit_messages(window) >= count and (room is None or room >= payload_bytes)
