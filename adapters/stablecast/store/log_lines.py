"""The lines of a daemon's log: an instant, a severity, the speaker, a stable code and a text.

    2026-11-21 15:40:12.123 [WARNING] test-store: source-refused: RegID 1000 of topic "a" ...

A log file rolls (`stablecast.runtime.logs`). The daemon never deletes rolled files.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TextIO

from stablecast.config.plan import LogConfig
from stablecast.runtime.logs import RollingPolicy, Severity, opened, utc_now

__all__ = ["MIB", "Log", "Severity", "Write", "line", "unheard"]

MIB = 1 << 20
"""The unit of a log's size, in bytes (U5)."""


Write = Callable[[Severity, str, str, str], None]
"""A function that writes a line: severity, speaker, code, text."""


def line(now: datetime, severity: Severity, who: str, code: str, text: str) -> str:
    """Format a line without its line end."""
    # A topic or address of a hostile peer must not begin a line of its own, or control a terminal.
    shown = "".join(character if character.isprintable() else "?" for character in text)
    speaker = f"{who}: " if who else ""
    return f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03} [{severity.value}] {speaker}{code}: {shown}"


class Log:
    """The log of a store daemon: a file that rolls, or the console."""

    def __init__(self, config: LogConfig, console: TextIO, clock: Callable[[], datetime] = utc_now) -> None:
        """Open the configured log; without a path it is the console. Raises OSError if the file cannot be opened."""
        self._lines = opened(config.path, _policy(config), console, _complaint, clock)

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """Write one line; the system has it when this returns."""
        self._lines.write(lambda now: line(now, severity, who, code, text))

    def reopen(self, config: LogConfig) -> None:
        """Write a file anew at its path if it was moved away, and roll as `config` says from now on."""
        self._lines.reopen(_policy(config))

    def close(self) -> None:
        """Close a file; write no more after it."""
        self._lines.close()


def _policy(config: LogConfig) -> RollingPolicy:
    return RollingPolicy(config.frequency, config.size * MIB)


def _complaint(now: datetime, text: str) -> str:
    return line(now, Severity.WARNING, "", "log", text)


def unheard(_severity: Severity, _who: str, _code: str, _text: str) -> None:
    """Drop a line, for stores without a log."""
