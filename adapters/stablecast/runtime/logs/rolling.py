"""A log file that is appended to, never overwritten (T-502), and rolls.

When it has reached its size, or its hour or day is over, the next line renames it to NAME_PID.DATE.SEQ first (T-503 to
T-505). Then it is compressed, if that is wanted, in a thread of its own: daemons serve on. Then the oldest rolled files
go until count and size are kept (T-507).

A line that the disk does not take is lost, not the daemon: the next line that it takes is preceded by the number of
those that are missing.
"""

import gzip
import os
import re
import shutil
import zipfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

import attrs

GZIP_LEVEL = 6


class Frequency(Enum):
    """When a log file rolls by the clock."""

    DISABLE = "disable"
    DAILY = "daily"
    HOURLY = "hourly"


class Compression(Enum):
    """What becomes of a rolled file; the value is the documented word, and the suffix of the file."""

    NONE = "none"
    ZIP = "zip"
    GZIP = "gzip"


_PERIODS = {Frequency.DISABLE: "", Frequency.HOURLY: "%Y-%m-%d %H", Frequency.DAILY: "%Y-%m-%d"}
"""What of an instant must change for a file to roll."""

_SUFFIXES = {Compression.NONE: "", Compression.ZIP: ".zip", Compression.GZIP: ".gz"}
_PART = ".part"
"""Ends the name of a file that is being compressed."""


@attrs.frozen
class Rolling:
    """When a file rolls, and what becomes of it.

    Attributes:
        size: Bytes after which it rolls; 0: not by size.
        max_history: Rolled files that are kept; 0: any number.
        total_size: Bytes of rolled files that are kept; 0: any.
    """

    frequency: Frequency = Frequency.DISABLE
    size: int = 0
    max_history: int = 0
    total_size: int = 0
    compression: Compression = Compression.NONE


def utc_now() -> datetime:
    """The clock of logs."""
    return datetime.now(UTC)


class RollingFile:
    """Lines in a file."""

    def __init__(
        self,
        path: Path,
        rolling: Rolling,
        complaint: Callable[[datetime, str], str],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Appends to `path`; a `complaint` of ours is made a line. Raises OSError if the file cannot be opened."""
        self._path = path
        self._rolling = rolling
        self._complaint = complaint
        self._clock = clock
        self._file = path.open("ab", buffering=0)
        self._began = clock()
        self._missing = 0
        self._news: deque[str] = deque()
        self._told: set[str] = set()
        self._tidying = ThreadPoolExecutor(1, "log")

    def write(self, line: Callable[[datetime], str]) -> None:
        """One line, made of its instant, without its end; on disk or on its way there when this returns."""
        now = self._clock()
        if self._file.tell() and self._is_due(now):
            self._roll(now)
        texts = [self._news.popleft() for _ in range(len(self._news))]
        if self._missing:
            texts.append(f"{self._missing} lines are missing here: the disk did not take them")
        lines = [*(self._complaint(now, text) for text in texts), line(now)]
        try:
            self._file.write("".join(f"{text}\n" for text in lines).encode())
        except OSError:
            self._missing += 1
        else:
            self._missing = 0

    def close(self) -> None:
        """Close the file, once what rolled is compressed."""
        self._tidying.shutdown()
        self._file.close()

    def rolled(self) -> list[Path]:
        """The rolled files, oldest first; what a process that was killed left half compressed is one of them."""
        model = re.compile(re.escape(self._path.name) + r"_\d+\.\d{4}-\d\d-\d\d\.\d+(\.part|\.gz|\.zip)?")
        found = [path for path in self._path.parent.iterdir() if model.fullmatch(path.name)]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def _is_due(self, now: datetime) -> bool:
        period = _PERIODS[self._rolling.frequency]
        grown = 0 < self._rolling.size <= self._file.tell()
        return grown or now.strftime(period) != self._began.strftime(period)

    def _roll(self, now: datetime) -> None:
        """Without a new file, lines go on into the old one."""
        model = f"{self._path.name}_{os.getpid()}.{self._began:%Y-%m-%d}."
        sequence = 1
        while any(self._path.with_name(f"{model}{sequence}{suffix}").exists() for suffix in _SUFFIXES.values()):
            sequence += 1
        target = self._path.with_name(f"{model}{sequence}")
        try:
            self._path.rename(target)
            file = self._path.open("ab", buffering=0)
        except OSError as error:
            self._tell(f"the log does not roll: {error.strerror}")
            return
        self._file.close()
        self._file, self._began = file, now
        if self._rolling.compression is Compression.NONE:
            self._tidy(target)
        else:
            self._tidying.submit(self._tidy, target)

    def _tidy(self, target: Path) -> None:
        try:
            if self._rolling.compression is not Compression.NONE:
                _compress(target, self._rolling.compression)
            self._delete_oldest()
        except OSError as error:
            self._tell(f"rolled logs are not tidied up: {error.strerror}")

    def _tell(self, trouble: str) -> None:
        """With the next line; the same is told once."""
        if trouble not in self._told:
            self._told.add(trouble)
            self._news.append(trouble)

    def _delete_oldest(self) -> None:
        rolled = self.rolled()
        sizes = [path.stat().st_size for path in rolled]
        count, total = len(rolled), sum(sizes)
        for path, size in zip(rolled, sizes, strict=True):
            too_many = 0 < self._rolling.max_history < count
            if not too_many and not 0 < self._rolling.total_size < total:
                return
            path.unlink()
            count, total = count - 1, total - size


def _compress(path: Path, compression: Compression) -> None:
    """The file in its compressed form; it is there in one of both forms at each instant."""
    part, stat = path.with_name(path.name + _PART), path.stat()
    if compression is Compression.ZIP:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, path.name)
    else:
        with path.open("rb") as plain, gzip.open(part, "wb", GZIP_LEVEL) as packed:
            shutil.copyfileobj(plain, packed)
    os.utime(part, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    part.replace(path.with_name(path.name + _SUFFIXES[compression]))
    path.unlink()
