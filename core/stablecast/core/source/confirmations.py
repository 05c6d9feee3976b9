"""Which receivers consumed what, and how far enough of them did (P-329, P-330).

A confirmation is cumulative: one number for each receiver. `unique` different receivers must have confirmed a message
before it counts as confirmed; 0 asks for none. A receiver is told by its session id, as a negative number: its RegID
differs from store to store, and which one it names may change when it returns. One without a session id is told by the
RegID that it names.
"""

from heapq import nlargest

import attrs

MAX_RECEIVERS = 10_000
"""Receivers whose confirmations a source keeps count of; later ones are not counted."""


@attrs.define
class Confirmations:
    """The newest number of each receiver; from `first` on, up to `reached`, enough of them confirmed everything.

    What is confirmed counts for the application whether its copy is still retained or not.
    """

    unique: int = 0
    confirmed: dict[int, int] = attrs.field(factory=dict)
    first: int = 0
    reached: int = 0

    def begin(self, number: int) -> None:
        """The first number that there is to confirm."""
        self.first = self.reached = number

    def stop(self, newest: int) -> int:
        """The first number that not enough receivers have confirmed; `newest` if none needs to."""
        return self.reached if self.unique else newest

    def on_confirmed(self, receiver: int, number: int) -> tuple[int, bool] | None:
        """A receiver consumed everything up to `number`.

        Returns the first number that is news and whether more messages are confirmed by enough receivers now; None if
        nothing is news.
        """
        before = self.confirmed.get(receiver, self.first - 1)
        if number <= before or (receiver not in self.confirmed and len(self.confirmed) >= MAX_RECEIVERS):
            return None
        self.confirmed[receiver] = number
        return (before + 1, number >= self.reached and self._reach())

    def _reach(self) -> bool:
        if not self.unique or len(self.confirmed) < self.unique:
            return False
        before, self.reached = self.reached, nlargest(self.unique, self.confirmed.values())[-1] + 1
        return self.reached > before
