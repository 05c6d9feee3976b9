"""Where a daemon writes its log: the console, or a file that rolls.

A file is appended to, never overwritten (T-502). When it has reached its size, or its hour or day is over, the next
line renames it to NAME_PID.DATE.SEQ first (T-503..T-505); then the oldest rolled files go until count and size are kept
(T-507).
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TextIO

from stablecast.srs.config import Frequency, LogConfig

MILLION = 1_000_000

_PERIODS = {Frequency.DISABLE: "", Frequency.HOURLY: "%Y-%m-%d %H", Frequency.DAILY: "%Y-%m-%d"}
"""What of an instant must change for a file to roll."""


class Log(Protocol):
    """Takes lines."""

    def write(self, line: str) -> None:
        """One line, without its end."""

    def close(self) -> None:
        """No more lines."""


class ConsoleLog:
    """Lines on a stream."""

    def __init__(self, stream: TextIO) -> None:
        """Lines go to `stream`, at once."""
        self._stream = stream

    def write(self, line: str) -> None:
        """One line, without its end."""
        self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """The stream belongs to somebody else."""


def utc_now() -> datetime:
    """The clock of logs."""
    return datetime.now(UTC)


class RollingLog:
    """Lines in a file."""

    def __init__(self, path: Path, config: LogConfig, clock: Callable[[], datetime] = utc_now) -> None:
        """Appends to `path`. Raises OSError if that is not possible."""
        self._path = path
        self._config = config
        self._clock = clock
        self._file = path.open("a", encoding="utf-8")
        self._began = clock()

    def write(self, line: str) -> None:
        """One line, without its end."""
        now = self._clock()
        if self._file.tell() and self._is_due(now):
            self._roll(now)
        self._file.write(f"{now:%Y-%m-%d %H:%M:%S} {line}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def rolled(self) -> list[Path]:
        """The rolled files, oldest first."""
        pattern = f"{self._path.name}_*.*.*"
        return sorted(self._path.parent.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name))

    def _is_due(self, now: datetime) -> bool:
        period = _PERIODS[self._config.frequency]
        grown = 0 < self._config.size * MILLION <= self._file.tell()
        return grown or now.strftime(period) != self._began.strftime(period)

    def _roll(self, now: datetime) -> None:
        self._file.close()
        model = f"{self._path.name}_{os.getpid()}.{self._began:%Y-%m-%d}."
        sequence = 1
        while (target := self._path.with_name(f"{model}{sequence}")).exists():
            sequence += 1
        self._path.rename(target)
        self._delete_oldest()
        self._file = self._path.open("a", encoding="utf-8")
        self._began = now

    def _delete_oldest(self) -> None:
        rolled = self.rolled()
        sizes = [path.stat().st_size for path in rolled]
        count, total = len(rolled), sum(sizes)
        for path, size in zip(rolled, sizes, strict=True):
            too_many = 0 < self._config.max_history < count
            if not too_many and not 0 < self._config.total_size_cap * MILLION < total:
                return
            path.unlink()
            count, total = count - 1, total - size
