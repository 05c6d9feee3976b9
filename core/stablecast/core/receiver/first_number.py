"""The first number of a receiver of a persistent source: the stores' proposal and the application's wish.

The application gets three numbers (P-421): the newest; the lowest that the request maximum allows; and the stores'
proposal. It may choose any other. The proposal unchanged counts as no wish, and then the request maximum decides (T9,
P-424). Nothing starts beyond the end (T10). A receiver without late join starts at the end whatever is wished (P-411).
A receiver that the pace depends on gets nothing below the stores' proposal (P-582).
"""

import attrs

from stablecast.core.protocol.effects import AskLow, Effect, Notify
from stablecast.core.protocol.events import Oddity, RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.resume_point import start_number
from stablecast.core.protocol.settings import ReceiverConfig


@attrs.define
class FirstNumberChoice:
    """One choice. Numbers are extended; `low` is the proposal, `free` permits a wish below it."""

    config: ReceiverConfig
    low: int = 0
    free: bool = True

    def ask(self, proposal: int, high: int, recovers: bool, out: list[Effect]) -> None:
        """Ask the application, with the stores' proposal."""
        self.low = min(proposal, high + 1) if recovers else high + 1
        self.free = recovers and self.config.pace is Pace.SOURCE
        maximum = self.config.request_maximum
        out.append(AskLow(high, max(self.low, high - maximum) if maximum else self.low, self.low))

    def choose(self, wish: int, high: int, everyone: bool, out: list[Effect]) -> int:
        """Return where to start after the application's wish, and report it. `everyone`: every store granted."""
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
