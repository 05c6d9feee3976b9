"""Lines of text: as they are on the console, with their instant in a file."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol, TextIO

from stablecast.runtime.logs.rolling import Rolling, RollingFile, utc_now


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


class PlainLog:
    """Lines in a file that rolls."""

    def __init__(self, path: Path, rolling: Rolling, clock: Callable[[], datetime] = utc_now) -> None:
        """Appends to `path`. Raises OSError if that is not possible."""
        self._file = RollingFile(path, rolling, _stamped, clock)

    def write(self, line: str) -> None:
        """One line, without its end."""
        self._file.write(lambda now: _stamped(now, line))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _stamped(now: datetime, line: str) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S} {line}"
