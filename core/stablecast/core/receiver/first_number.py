"""Where a receiver of a persistent source starts: what its stores say, and what the application wishes.

The application is told three numbers (P-421): the newest one; the lowest that the request maximum allows; and where the
stores would have it start. It may choose any other; leaving the last as it is counts as no wish, and then the request
maximum decides (T9, P-424). Nothing starts beyond the end (T10). A receiver without late join starts there whatever is
wished (P-411), and one that the pace depends on gets nothing from below what the stores say (P-582).
"""

import attrs

from stablecast.core.protocol.effects import AskLow, Effect, Notify
from stablecast.core.protocol.events import Oddity, RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.resume_point import start_number
from stablecast.core.protocol.settings import ReceiverConfig


@attrs.define
class Starting:
    """One start. Numbers are extended; `low` is what the application was told, `free` whether it may go below."""

    config: ReceiverConfig
    low: int = 0
    free: bool = True

    def ask(self, said: int, high: int, recovers: bool, out: list[Effect]) -> None:
        """The stores said where; ask the application."""
        self.low = min(said, high + 1) if recovers else high + 1
        self.free = recovers and self.config.pace is Pace.SOURCE
        maximum = self.config.request_maximum
        out.append(AskLow(high, max(self.low, high - maximum) if maximum else self.low, self.low))

    def choose(self, wish: int, high: int, everyone: bool, out: list[Effect]) -> int:
        """The application wishes to start there; returns where to start. `everyone`: every store granted."""
        start = start_number(self.low, high, self.config.request_maximum, wish)
        if wish > high + 1:
            out.append(Notify(Oddity("low-beyond-high", f"asked to start at {wish}, the newest number is {high}")))
        if not self.free:
            start = max(start, self.low)
        flags = RegistrationFlag.SESSION if self.config.session_id else RegistrationFlag.NONE
        if not everyone:
            flags |= RegistrationFlag.QUORUM
        if wish == self.low < start:
            flags |= RegistrationFlag.REQUEST_MAXIMUM
        out.append(Notify(RegistrationComplete(start, flags)))
        return start
