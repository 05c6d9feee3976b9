"""Recent answers of a source to NAKs, of everybody (LBT-RM) or of one client (LBT-RU).

A retransmitted datagram is not sent again for the ignore interval, which starts with the last retransmission and not
with an NCF or the first transmission. Only the first ignored NAK in the interval gets an NCF; later ones get no answer
(T29; 6.14 as observed).
"""

from enum import IntEnum

import attrs


class RecentAnswer(IntEnum):
    """The recent answer to NAKs for a datagram."""

    NOTHING = 0
    SENT = 1
    """Retransmitted; no NCF was sent yet."""
    REFUSED = 2
    """Retransmitted, and a later NAK got an NCF."""
    QUEUED = 3
    """The retransmission waits for the rate limit."""


@attrs.define
class NakAnswers:
    """Retransmissions of the last ignore interval.

    Attributes:
        sent: Time of each datagram's last retransmission (ns), earliest first.
        refused: Retransmitted datagrams with an NCF since.
        queued: Datagrams that wait for the rate limit.
    """

    ignore_ns: int
    sent: dict[int, int] = attrs.field(factory=dict)
    refused: dict[int, None] = attrs.field(factory=dict)
    queued: dict[int, None] = attrs.field(factory=dict)

    def lately(self, number: int, now: int) -> RecentAnswer:
        """Return the recent answer for a datagram. This call counts as a NAK."""
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
        """Note that the retransmission waits for the rate limit."""
        self.queued[number] = None

    def on_sent(self, number: int, now: int) -> None:
        """Note a retransmission, which starts the ignore interval."""
        self.sent.pop(number, None)
        self.sent[number] = now

    def _forget(self, now: int) -> None:
        while self.sent:
            number = next(iter(self.sent))
            # The earliest is first, so the first recent one ends the search.
            if now < self.sent[number] + self.ignore_ns:
                return
            del self.sent[number]
            self.refused.pop(number, None)
