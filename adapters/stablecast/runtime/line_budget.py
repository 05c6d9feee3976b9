"""A budget for the log lines about clients: any host may come and leave as often as it likes."""

from collections.abc import Callable

from stablecast.runtime import machine

LINES = 1000
"""Lines of a period, at most."""

PERIOD_SECONDS = 60.0


class LineBudget:
    """Write lines within the budget. The first line of a period tells how many the one before left out."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """Begin a period; `write` gets the line about those that were left out."""
        self._write = write
        self._began = -PERIOD_SECONDS
        self._lines = 0

    def take(self) -> bool:
        """Return whether a line may be written."""
        now = machine.clock.monotonic()
        if now - self._began >= PERIOD_SECONDS:
            if self._lines > LINES:
                self._write(f"{self._lines - LINES} lines about clients were left out: {LINES} a minute are written")
            self._began, self._lines = now, 0
        self._lines += 1
        return self._lines <= LINES

    def __call__(self, line: str) -> None:
        """Write a line, or leave it out."""
        if self.take():
            self._write(line)
