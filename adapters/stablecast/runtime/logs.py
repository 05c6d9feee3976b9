"""Logs of daemons: lines on the console, or in a file that is never overwritten (T-502) and rolls.

A file that has reached its size, or whose hour or day is over, rolls before the next line. It is renamed to
NAME_PID.DATE.SEQ (T-503 to T-505). A file of an earlier process belongs to the hour or day of its last line. A thread
compresses the renamed file, if that is configured, while the daemon serves. Then the oldest rolled files are deleted
until count and total size are within their limits (T-507).

A file that was moved away or removed is written anew at its path with the next line, and `reopen` does so at once.

A write that the disk refuses loses the line and does not stop the daemon. The next line that is written is preceded by
the number of missing lines.
"""

import gzip
import re
import time
import zipfile
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, TextIO
from zipfile import ZipInfo

import attrs

from stablecast.runtime import machine
from stablecast.text import refusal
from stablecast.text.release import build, release

GZIP_LEVEL = 6


class Severity(Enum):
    """The weight of a line. An operator should read all lines from WARNING on."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class Frequency(Enum):
    """The interval at which a log file rolls by the clock."""

    DISABLE = "disable"
    DAILY = "daily"
    HOURLY = "hourly"


class Compression(Enum):
    """The format of rolled files; the value is the documented word."""

    NONE = "none"
    ZIP = "zip"
    GZIP = "gzip"


_PERIODS = {Frequency.DISABLE: "", Frequency.HOURLY: "%Y-%m-%d %H", Frequency.DAILY: "%Y-%m-%d"}
"""Format of the part of the time that must change for a file to roll."""

_SUFFIXES = {Compression.NONE: "", Compression.ZIP: ".zip", Compression.GZIP: ".gz"}
_PART = ".part"
"""Suffix of a file that is being compressed."""

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a ZIP file can hold. A host without a clock of its own starts in 1970."""


@attrs.frozen
class RollingPolicy:
    """The policy of a rolling file: when it rolls, and which rolled files are kept.

    Attributes:
        frequency: Interval at which it rolls by the clock.
        size: Bytes after which it rolls; 0: not by size.
        max_history: Number of rolled files that are kept; 0: any number.
        total_size: Bytes of rolled files that are kept; 0: any size.
        compression: Format of rolled files.
    """

    frequency: Frequency = Frequency.DISABLE
    size: int = 0
    max_history: int = 0
    total_size: int = 0
    compression: Compression = Compression.NONE


def utc_now() -> datetime:
    return machine.clock.utc_now()


class RollingFile:
    def __init__(
        self,
        path: Path,
        rolling: RollingPolicy,
        complaint: Callable[[datetime, str], str],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Append to `path`; `complaint` makes a line of a problem of the log itself. Raises OSError."""
        self._path = path
        self._rolling = rolling
        self._complaint = complaint
        self._clock = clock
        self._file, self._identity, self._began = self._opened(clock())
        self._lock = machine.threads.lock()
        self._missing = 0
        self._news: deque[str] = deque()
        self._reported: set[str] = set()
        self._tidying = machine.threads.executor("log")

    def write(self, line: Callable[[datetime], str]) -> None:
        """Write the line that `line` makes of the time, without its end; the kernel has it when this returns."""
        with self._lock:
            self._write(line, self._clock())

    def reopen(self, rolling: RollingPolicy | None = None) -> None:
        """Open the path again, for a file that another program moved away; follow `rolling` from now on."""
        with self._lock:
            self._rolling = self._rolling if rolling is None else rolling
            self._reopen(self._clock())

    def _write(self, line: Callable[[datetime], str], now: datetime) -> None:
        if self._is_moved():
            self._reopen(now)
        if self._file.tell() and self._is_due(now):
            self._roll(now)
        texts = [self._news.popleft() for _ in range(len(self._news))]
        if self._missing:
            texts.append(f"{self._missing} lines are missing here: the disk refused them")
        lines = [*(self._complaint(now, text) for text in texts), line(now)]
        try:
            self._file.write("".join(f"{text}\n" for text in lines).encode())
        except OSError:
            self._missing += 1
        else:
            self._missing = 0

    def close(self) -> None:
        """Close the file after rolled files are compressed."""
        self._tidying.shutdown()
        self._file.close()

    def rolled(self) -> list[Path]:
        """Return the rolled files, oldest first, with the half compressed file of a process that was killed."""
        model = re.compile(re.escape(self._path.name) + r"_\d+\.\d{4}-\d\d-\d\d\.\d+(\.part|\.gz|\.zip)?")
        parent = self._path.parent
        found = [parent / name for name in machine.files.names(parent) if model.fullmatch(name)]
        return sorted(found, key=lambda path: (machine.files.stat(path).st_mtime_ns, path.name))

    def _opened(self, now: datetime) -> tuple[BinaryIO, tuple[int, int], datetime]:
        """Open the path; return the file, its identity, and the time to which its lines belong: now if it is empty."""
        file = machine.files.file(self._path, "ab", 0)
        try:
            found = machine.files.stat(self._path)
        except OSError:
            file.close()
            raise
        written = datetime.fromtimestamp(found.st_mtime_ns // 1_000_000_000, UTC)
        return file, (found.st_dev, found.st_ino), written if found.st_size else now

    def _is_moved(self) -> bool:
        """Return whether the path names another file, or none, so that nobody would find the lines there."""
        try:
            found = machine.files.stat(self._path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return (found.st_dev, found.st_ino) != self._identity

    def _reopen(self, now: datetime) -> None:
        """Use the file at the path from now on; without one, lines are appended to the old one."""
        try:
            file, identity, began = self._opened(now)
        except OSError as error:
            self._report(f"the log is not written anew: {refusal(error)}")
            return
        self._file.close()
        self._file, self._identity, self._began = file, identity, began

    def _is_due(self, now: datetime) -> bool:
        period = _PERIODS[self._rolling.frequency]
        grown = 0 < self._rolling.size <= self._file.tell()
        return grown or now.strftime(period) != self._began.strftime(period)

    def _roll(self, now: datetime) -> None:
        model = f"{self._path.name}_{machine.process.pid()}.{self._began:%Y-%m-%d}."
        sequence = 1
        while self._is_taken(f"{model}{sequence}"):
            sequence += 1
        target = self._path.with_name(f"{model}{sequence}")
        try:
            machine.files.rename(self._path, target)
            file, identity, _ = self._opened(now)
        except OSError as error:
            self._report(f"the log does not roll: {refusal(error)}")
            return  # Without a new file, lines are appended to the old one.
        self._file.close()
        self._file, self._identity, self._began = file, identity, now
        if self._rolling.compression is Compression.NONE:
            self._tidy(target)
        else:
            self._tidying.submit(self._tidy, target)

    def _is_taken(self, name: str) -> bool:
        return any(machine.files.exists(self._path.with_name(name + suffix)) for suffix in _SUFFIXES.values())

    def _tidy(self, target: Path) -> None:
        try:
            if self._rolling.compression is not Compression.NONE:
                _compress(target, self._rolling.compression)
            self._delete_oldest()
        except OSError as error:
            self._report(f"rolled logs are not tidied up: {refusal(error)}")

    def _report(self, trouble: str) -> None:
        """Write a problem with the next line, each problem once."""
        if trouble not in self._reported:
            self._reported.add(trouble)
            self._news.append(trouble)

    def _delete_oldest(self) -> None:
        rolled = self.rolled()
        sizes = [machine.files.stat(path).st_size for path in rolled]
        count, total = len(rolled), sum(sizes)
        for path, size in zip(rolled, sizes, strict=True):
            too_many = 0 < self._rolling.max_history < count
            if not too_many and not 0 < self._rolling.total_size < total:
                return
            machine.files.remove(path)
            count, total = count - 1, total - size


def _compress(path: Path, compression: Compression) -> None:
    """Replace a file by its compressed form, such that one of both exists at each instant."""
    part, stat = path.with_name(path.name + _PART), machine.files.stat(path)
    with machine.files.file(path, "rb") as plain, machine.files.file(part, "wb") as file:
        if compression is Compression.ZIP:
            written = ZipInfo(path.name, max(time.localtime(stat.st_mtime)[:6], _ZIP_EPOCH))
            written.compress_type, written.file_size = zipfile.ZIP_DEFLATED, stat.st_size
            written.external_attr = (stat.st_mode & 0xFFFF) << 16
            with zipfile.ZipFile(file, "w") as archive, archive.open(written, "w") as member:
                copyfileobj(plain, member)
        else:
            with gzip.GzipFile(path.name, "wb", GZIP_LEVEL, file, stat.st_mtime) as packed:
                copyfileobj(plain, packed)
    # `rolled` sorts by this time to delete the oldest.
    machine.files.set_times(part, stat.st_atime_ns, stat.st_mtime_ns)
    machine.files.rename(part, path.with_name(path.name + _SUFFIXES[compression]))
    machine.files.remove(path)


class LineStream:
    """Lines on a stream that stays open, flushed one by one."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime] = utc_now) -> None:
        """Write to `stream`, which belongs to its creator."""
        self._stream = stream
        self._clock = clock

    def write(self, line: Callable[[datetime], str]) -> None:
        """Write the line that `line` makes of the time, without its end."""
        self._stream.write(line(self._clock()) + "\n")
        self._stream.flush()

    def reopen(self, rolling: RollingPolicy | None = None) -> None:
        """Do nothing: a stream cannot be moved away."""

    def close(self) -> None:
        """Do nothing: the stream belongs to its creator."""


def opened(
    path: Path | None,
    rolling: RollingPolicy,
    console: TextIO,
    complaint: Callable[[datetime, str], str],
    clock: Callable[[], datetime] = utc_now,
) -> RollingFile | LineStream:
    """Return the file at `path`, or the console without one. Raises OSError if the file cannot be opened."""
    return LineStream(console, clock) if path is None else RollingFile(path, rolling, complaint, clock)


class LineLog:
    """A log that accepts lines of text, and adds their time and severity."""

    def __init__(
        self, path: Path | None, rolling: RollingPolicy, console: TextIO, clock: Callable[[], datetime] = utc_now
    ) -> None:
        """Append to `path`, or write to the console without one. Raises OSError if the file cannot be opened."""
        self._lines = opened(path, rolling, console, _complaint, clock)

    def write(self, line: str, severity: Severity = Severity.INFO) -> None:
        self._lines.write(lambda now: _stamped(now, line, severity))

    def warning(self, line: str) -> None:
        """Write one line that an operator should read."""
        self.write(line, Severity.WARNING)

    def reopen(self) -> None:
        """Write a file anew at its path if it was moved away."""
        self._lines.reopen()

    def close(self) -> None:
        """Close a file after rolled files are compressed; the caller writes no more lines."""
        self._lines.close()


def daemon_log(path: Path | None, rolling: RollingPolicy, console: TextIO) -> LineLog:
    """Return the log of a daemon that starts: its console, or a file.

    A file begins with the release and the build (P-613). Raises OSError if it cannot be opened.
    """
    log = LineLog(path, rolling, console)
    for line in () if path is None else (release(), build()):
        log.write(line)
    return log


def _stamped(now: datetime, line: str, severity: Severity) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S} [{severity.value}] {line}"


def _complaint(now: datetime, line: str) -> str:
    return _stamped(now, line, Severity.WARNING)
