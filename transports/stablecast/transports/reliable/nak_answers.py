"""Which NAKs a source has answered lately, of everybody (LBT-RM) or of one client (LBT-RU).

A datagram that was sent again is not sent again for the ignore interval, which counts from the last retransmission: not
from an NCF, not from the first sending. Only the first NAK that is ignored in it gets an NCF; further ones get nothing
(T29; 6.14 as observed).
"""

from enum import IntEnum

import attrs


class RecentAnswer(IntEnum):
    """What was done about a datagram lately."""

    NOTHING = 0
    SENT = 1
    """Sent again; nobody was told to wait."""
    REFUSED = 2
    """Sent again, and the next one to ask was told to wait."""
    QUEUED = 3
    """It waits for the rate limit."""


@attrs.define
class NakAnswers:
    """Retransmissions of the last ignore interval.

    Attributes:
        sent: When each datagram was sent again (ns), earliest first.
        refused: Those of them of which an NCF told.
        queued: Those that wait.
    """

    ignore_ns: int
    sent: dict[int, int] = attrs.field(factory=dict)
    refused: dict[int, None] = attrs.field(factory=dict)
    queued: dict[int, None] = attrs.field(factory=dict)

    def lately(self, number: int, now: int) -> RecentAnswer:
        """What was done about it; being asked counts."""
        self._forget(now)
        if number in self.queued:
            return RecentAnswer.QUEUED
        if number not in self.sent:
            return RecentAnswer.NOTHING
        if number in self.refused:
            return RecentAnswer.REFUSED
        self.refused[number] = None
        return RecentAnswer.SENT

    def queue(self, number: int) -> None:
        """It waits for the rate limit."""
        self.queued[number] = None

    def on_sent(self, number: int, now: int) -> None:
        """It was sent again."""
        self.sent.pop(number, None)
        self.sent[number] = now

    def _forget(self, now: int) -> None:
        while self.sent:
            number = next(iter(self.sent))
            if now < self.sent[number] + self.ignore_ns:
                return
            del self.sent[number]
            self.refused.pop(number, None)
