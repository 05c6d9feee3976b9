"""Session messages: they say where a session stands while there is no data.

The first comes the shortest interval after the last data, each next one twice as long after the one before, up to the
longest. Only new data starts them again, retransmissions do not; before the first data there are none (6.14 as
observed).
"""

import attrs


@attrs.define
class Heartbeat:
    """When the next session message is due; `number` is its own."""

    shortest: int
    longest: int
    number: int = 0
    interval: int = 0
    due: int | None = None

    def on_data(self, now: int) -> None:
        """Data left."""
        self.interval = self.shortest
        self.due = now + self.shortest

    def is_due(self, now: int) -> bool:
        """Whether a session message is to be sent."""
        return self.due is not None and self.due <= now

    def advance(self, now: int) -> None:
        """It is sent: the next one waits twice as long."""
        self.interval = min(2 * self.interval, self.longest)
        self.due = now + self.interval

    def next_number(self) -> int:
        """The number of a session message, in turn or out of turn."""
        number = self.number
        self.number += 1
        return number
