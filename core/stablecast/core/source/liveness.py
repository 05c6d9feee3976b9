"""Receivers that keep in touch with a source, and the detection of their end (P-338..P-341).

A receiver's confirmations, and its `ReceiverAlive` while it has nothing to confirm, are its signs of life. It is gone
when it was silent for the timeout, or when its process's connection ended. Neither is exact. A process that lives on
without the receiver keeps the connection, and a path that fails for a while looks like a death (P-341).
"""

import attrs

from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import LivenessFlag, ReceiverGone

MAX_RECEIVERS = 10_000
"""Receivers that are watched; later ones are not."""


@attrs.frozen
class WatchedReceiver:
    """A receiver's context as far as known, and its newest sign of life (ns)."""

    context: int
    heard_at: int


@attrs.define
class Liveness:
    """Watched receivers by RegID and session id, the one silent for longest first. A `timeout_ns` of 0 watches nobody.

    Users may give several receivers one number (`ume_user_receiver_registration_id`); their sessions tell them apart.
    """

    timeout_ns: int
    watched: dict[tuple[int, int], WatchedReceiver] = attrs.field(factory=dict)

    def on_alive(self, receiver: int, session_id: int, context: int, now: int) -> None:
        """Record a receiver's sign of life."""
        who = receiver, session_id
        if not self.timeout_ns or (who not in self.watched and len(self.watched) >= MAX_RECEIVERS):
            return
        self.watched.pop(who, None)  # The order of the dict is that of the signs of life.
        self.watched[who] = WatchedReceiver(context, now)

    def on_confirmed(self, receiver: int, session_id: int, now: int) -> None:
        """Record a confirmation as a sign of life."""
        known = self.watched.get((receiver, session_id))
        self.on_alive(receiver, session_id, known.context if known else 0, now)

    def on_departed(self, context: int, out: list[Effect]) -> None:
        """Report the receivers of a context whose connection ended."""
        for who in [who for who, known in self.watched.items() if known.context == context]:
            self._gone(who, LivenessFlag.END, out)

    def handle_timeout(self, now: int, out: list[Effect]) -> None:
        """Report the receivers that were silent for too long."""
        while (due := self.next()) is not None and due <= now:
            self._gone(next(iter(self.watched)), LivenessFlag.TIMEOUT, out)

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        oldest = next(iter(self.watched.values()), None)
        return oldest.heard_at + self.timeout_ns if oldest else None

    def _gone(self, who: tuple[int, int], flag: LivenessFlag, out: list[Effect]) -> None:
        del self.watched[who]
        out.append(Notify(ReceiverGone(*who, flag)))
