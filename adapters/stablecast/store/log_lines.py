"""What a daemon tells people: lines with an instant, a severity, who speaks, a stable code and a text.

    2026-11-21 15:40:12.123 [WARNING] test-store: source-refused: RegID 1000 of topic "a" ...

A file rolls (`stablecast.runtime.logs`); rolled files are never deleted here.
"""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TextIO

from stablecast.config.plan import LogConfig
from stablecast.runtime.logs import RollingFile, RollingPolicy, utc_now

MIB = 1 << 20
"""The unit of a log's size, in bytes (U5)."""


class Severity(Enum):
    """How much a line matters: look at everything from WARNING on."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


Write = Callable[[Severity, str, str, str], None]
"""Severity, who speaks, code, text."""


def line(now: datetime, severity: Severity, who: str, code: str, text: str) -> str:
    """One line. What is in a text stays on it, whatever a peer put there."""
    shown = "".join(character if character.isprintable() else "?" for character in text)
    speaker = f"{who}: " if who else ""
    return f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03} [{severity.value}] {speaker}{code}: {shown}"


class StreamLog:
    """Lines on a stream, at once."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime] = utc_now) -> None:
        """The stream belongs to somebody else."""
        self._stream = stream
        self._clock = clock

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """One line."""
        self._stream.write(line(self._clock(), severity, who, code, text) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """No more lines."""


class FileLog:
    """Lines in a file that rolls."""

    def __init__(self, path: Path, config: LogConfig, clock: Callable[[], datetime] = utc_now) -> None:
        """Appends to `path`. Raises OSError if that is not possible."""
        self._file = RollingFile(path, RollingPolicy(config.frequency, config.size * MIB), _complaint, clock)

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """One line, on disk or on its way there when this returns."""
        self._file.write(lambda now: line(now, severity, who, code, text))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _complaint(now: datetime, text: str) -> str:
    return line(now, Severity.WARNING, "", "log", text)


Log = StreamLog | FileLog


def open_log(config: LogConfig, console: TextIO) -> Log:
    """The log that is asked for. Raises OSError if its file cannot be opened."""
    return StreamLog(console) if config.path is None else FileLog(config.path, config)


def unheard(_severity: Severity, _who: str, _code: str, _text: str) -> None:
    """Nobody reads the log."""
