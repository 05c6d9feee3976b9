"""Receiver pacing (RPP): the messages that must stay until receivers consumed them, and the room that a source needs.

* A message lives until every paced receiver that was registered at its arrival has consumed it (P-012, P-563). For
  non-blocking receivers messages are kept only while there is room (T18).
* An inactive receiver counts until its state lifetime ends, a deregistered one no more (P-536, P-585). Without any
  receiver every message counts as consumed and is released at once (C-33, P-572).
* A store acknowledges only while one more flight would find room, in messages and in bytes, because a source can have
  that much under way (T17, P-566). Withheld acknowledgements are reviewed whenever something is released, or, as
  documented, when new data comes (formal design, 7.8).
"""

from collections.abc import Iterable

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Pace
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms


@attrs.define
class ReceiverPacing:
    """`consumed`: the first number that some receiver still needs; `required`: the same for blocking receivers.

    None: there is no such receiver. `capacity` in messages.
    """

    consumed: int | None = None
    required: int | None = None
    capacity: int = MAX_NUMBERS

    def update(self, receivers: Iterable[Client]) -> None:
        """Recompute both numbers from the receivers' acknowledgements."""
        self.consumed = self.required = None
        for receiver in receivers:
            needs = receiver.acknowledged + 1
            self.consumed = needs if self.consumed is None else min(self.consumed, needs)
            if receiver.pace is not Pace.NON_BLOCKING:
                self.required = needs if self.required is None else min(self.required, needs)

    def floor(self, stop: int) -> int:
        """Return the number, up to `stop`, below which all receivers have consumed."""
        return stop if self.consumed is None else min(self.consumed, stop)

    def required_floor(self, stop: int) -> int:
        """Return the number, up to `stop`, below which all blocking receivers have consumed."""
        return stop if self.required is None else min(self.required, stop)

    def missing(self, terms: Terms, messages: int) -> int:
        """Return how many of this many messages had to go for one flight to fit."""
        return max(0, messages + terms.flight_messages - self.capacity)

    def has_room(self, terms: Terms, free_bytes: int | None, messages: int) -> bool:
        """Return whether one more flight fits, with `free_bytes` free (None: no limit) and `messages` kept."""
        return (free_bytes is None or free_bytes >= terms.flight_bytes) and not self.missing(terms, messages)
