"""The lines of a daemon's log: an instant, a severity, the speaker, a stable code and a text.

    2026-11-21 15:40:12.123 [WARNING] test-store: source-refused: RegID 1000 of topic "a" ...

A log file rolls (`stablecast.runtime.logs`). The daemon never deletes rolled files.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TextIO

from stablecast.config.plan import LogConfig
from stablecast.runtime.logs import RollingFile, RollingPolicy, Severity, utc_now

__all__ = ["MIB", "FileLog", "Log", "Severity", "StreamLog", "Write", "line", "open_log", "unheard"]

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


class StreamLog:
    """A log on a stream, flushed after each line."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime] = utc_now) -> None:
        """Write to `stream`, which the caller closes."""
        self._stream = stream
        self._clock = clock

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """Write a line, and flush the stream."""
        self._stream.write(line(self._clock(), severity, who, code, text) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Do nothing, because the stream belongs to the caller."""


class FileLog:
    """A log in a file that rolls."""

    def __init__(self, path: Path, config: LogConfig, clock: Callable[[], datetime] = utc_now) -> None:
        """Append to `path`. Raises OSError if that is not possible."""
        self._file = RollingFile(path, _policy(config), _complaint, clock)

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """Write one line; the system has it when this returns."""
        self._file.write(lambda now: line(now, severity, who, code, text))

    def reopen(self, config: LogConfig) -> None:
        """Write the file anew at its path if it was moved away, and roll as `config` says from now on."""
        self._file.reopen(_policy(config))

    def close(self) -> None:
        """Close the file; write no more after it."""
        self._file.close()


def _policy(config: LogConfig) -> RollingPolicy:
    return RollingPolicy(config.frequency, config.size * MIB)


def _complaint(now: datetime, text: str) -> str:
    return line(now, Severity.WARNING, "", "log", text)


Log = StreamLog | FileLog


def open_log(config: LogConfig, console: TextIO) -> Log:
    """Open the configured log; without a path it is the `console`. Raises OSError if the file cannot be opened."""
    return StreamLog(console) if config.path is None else FileLog(config.path, config)


def unheard(_severity: Severity, _who: str, _code: str, _text: str) -> None:
    """Drop a line, for stores without a log."""
