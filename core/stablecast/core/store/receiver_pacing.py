"""Receiver pacing (RPP): what must stay until receivers have consumed it, and how much room a source needs.

* A message lives until every paced receiver that was registered when it came has consumed it (P-012, P-563). Of those
  that do not block, messages are kept while there is room, and then let go (T18).
* An inactive receiver counts until its state lifetime ends, a deregistered one no more (P-536, P-585). Without any
  receiver everything is consumed, vacuously: it is gone at once (C-33, P-572).
* A store acknowledges only while one flight more would find room, in messages and in bytes: a source can have so much
  under way (T17, P-566). What is withheld is looked at again whenever something goes, or, as documented, when new data
  comes (formal design, 7.8).

The numbers here follow from the receivers' acknowledgements, which the store's clients hold.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Pace
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms


@attrs.define
class Paced:
    """`consumed`: the first number that some receiver still needs; `required`: the same of the blocking ones.

    None: there is no such receiver. `capacity` in messages.
    """

    consumed: int | None = None
    required: int | None = None
    capacity: int = MAX_NUMBERS

    def update(self, receivers: Iterable[Client]) -> None:
        """These are the receivers now."""
        self.consumed = self.required = None
        for receiver in receivers:
            needs = receiver.acknowledged + 1
            self.consumed = needs if self.consumed is None else min(self.consumed, needs)
            if receiver.pace is not Pace.NON_BLOCKING:
                self.required = needs if self.required is None else min(self.required, needs)

    def floor(self, stop: int) -> int:
        """Below this all have consumed what comes before `stop`."""
        return stop if self.consumed is None else min(self.consumed, stop)

    def required_floor(self, stop: int) -> int:
        """Below this those who block have."""
        return stop if self.required is None else min(self.required, stop)

    def missing(self, terms: Terms, messages: int) -> int:
        """How many of so many messages had to go for one flight to fit."""
        return max(0, messages + terms.flight_messages - self.capacity)

    def has_room(self, terms: Terms, free_bytes: int | None, messages: int) -> bool:
        """Whether one flight more fits, with so many bytes free (None: no limit) and so many messages kept."""
        return (free_bytes is None or free_bytes >= terms.flight_bytes) and not self.missing(terms, messages)
