"""What a daemon tells people: lines with an instant, a severity, who speaks, a stable code and a text.

    2026-11-21 15:40:12.123 [WARNING] test-store: source-refused: RegID 1000 of topic "a" ...

A file is appended to, never overwritten. When it has reached its size, or its hour or day is over, the next line
renames it to NAME_PID.DATE.N first. Rolled files are never deleted here.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TextIO

from stablecast.config.plan import Frequency, LogConfig

MIB = 1 << 20
"""The unit of a log's size, in bytes (U5)."""


class Severity(Enum):
    """How much a line matters: look at everything from WARNING on."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


_PERIODS = {Frequency.DISABLE: "", Frequency.HOURLY: "%Y-%m-%d %H", Frequency.DAILY: "%Y-%m-%d"}
"""What of an instant must change for a file to roll."""

Write = Callable[[Severity, str, str, str], None]
"""Severity, who speaks, code, text."""


def utc_now() -> datetime:
    """The clock of logs."""
    return datetime.now(UTC)


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
        self._path = path
        self._config = config
        self._clock = clock
        self._file = path.open("a", encoding="utf-8")
        self._began = clock()

    def write(self, severity: Severity, who: str, code: str, text: str) -> None:
        """One line, on disk or on its way there when this returns."""
        now = self._clock()
        if self._file.tell() and self._is_due(now):
            self._roll(now)
        self._file.write(line(now, severity, who, code, text) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _is_due(self, now: datetime) -> bool:
        period = _PERIODS[self._config.frequency]
        grown = 0 < self._config.size * MIB <= self._file.tell()
        return grown or now.strftime(period) != self._began.strftime(period)

    def _roll(self, now: datetime) -> None:
        self._file.close()
        model = f"{self._path.name}_{os.getpid()}.{self._began:%Y-%m-%d}."
        number = 1
        while (target := self._path.with_name(f"{model}{number}")).exists():
            number += 1
        self._path.rename(target)
        self._file = self._path.open("a", encoding="utf-8")
        self._began = now


Log = StreamLog | FileLog


def open_log(config: LogConfig, console: TextIO) -> Log:
    """The log that is asked for. Raises OSError if its file cannot be opened."""
    return StreamLog(console) if config.path is None else FileLog(config.path, config)


def unheard(_severity: Severity, _who: str, _code: str, _text: str) -> None:
    """Nobody reads the log."""
