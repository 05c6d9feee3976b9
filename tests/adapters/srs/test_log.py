"""Logs that roll, by a clock of the test's own."""

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stablecast.srs.config import Frequency, LogConfig
from stablecast.srs.log import MILLION, ConsoleLog, RollingLog

MIDNIGHT = datetime(2017, 8, 20, tzinfo=UTC)


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = MIDNIGHT

    def __call__(self) -> datetime:
        return self.now


def rolled(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"srs.log"}


def model(date: str, sequence: int) -> str:
    return f"srs.log_{os.getpid()}.{date}.{sequence}"


def test_the_console() -> None:
    """T-501."""
    stream = io.StringIO()
    log = ConsoleLog(stream)
    log.write("one")
    log.close()
    assert stream.getvalue() == "one\n"


def test_a_file_is_appended_to(tmp_path: Path) -> None:
    """T-502: restarts do not overwrite."""
    path = tmp_path / "srs.log"
    for line in ("first", "second", "third"):
        log = RollingLog(path, LogConfig(path))
        log.write(line)
        log.close()
    assert [line[20:] for line in path.read_text().splitlines()] == ["first", "second", "third"]
    assert rolled(tmp_path) == set()


def test_the_worked_example(tmp_path: Path) -> None:
    """T-503, T-504, T-506: a million bytes an hour; rolls at 23:00 by size, and again at midnight by frequency."""
    path, clock = tmp_path / "srs.log", Clock()
    log = RollingLog(path, LogConfig(path, Frequency.DAILY, size=23), clock)
    for hour in range(24):
        clock.now = MIDNIGHT + timedelta(hours=hour)
        before = rolled(tmp_path)
        log.write("x" * (MILLION - 21))
        assert (rolled(tmp_path) != before) is (hour == 23)
    assert rolled(tmp_path) == {model("2017-08-20", 1)}
    clock.now = MIDNIGHT + timedelta(days=1)
    log.write("next day")
    assert rolled(tmp_path) == {model("2017-08-20", 1), model("2017-08-20", 2)}
    log.close()


def test_it_rolls_with_the_next_line_only(tmp_path: Path) -> None:
    """T-505: an hour without a line makes no file; an empty file does not roll."""
    path, clock = tmp_path / "srs.log", Clock()
    log = RollingLog(path, LogConfig(path, Frequency.HOURLY, size=0), clock)
    clock.now += timedelta(hours=5)
    log.write("one")
    assert rolled(tmp_path) == set()
    log.close()
    log = RollingLog(path, LogConfig(path, Frequency.HOURLY, size=0), clock)
    clock.now += timedelta(minutes=59)
    log.write("two")
    clock.now += timedelta(hours=2)
    assert rolled(tmp_path) == set()
    log.write("three")
    assert rolled(tmp_path) == {model("2017-08-20", 1)}
    log.close()


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (LogConfig(size=1, max_history=2, total_size_cap=0), 2),
        (LogConfig(size=1, max_history=0, total_size_cap=3), 2),
        (LogConfig(size=1, max_history=0, total_size_cap=0), 5),
        (LogConfig(size=1, max_history=4, total_size_cap=5), 4),
        (LogConfig(size=1, max_history=0, total_size_cap=1), 0),
    ],
)
def test_the_oldest_are_deleted(tmp_path: Path, limits: LogConfig, left: int) -> None:
    """T-507: by count and by total size, until neither applies."""
    path, clock = tmp_path / "srs.log", Clock()
    log = RollingLog(path, limits, clock)
    for day in range(6):
        clock.now = MIDNIGHT + timedelta(days=day)
        log.write("x" * MILLION)
        for file in log.rolled():  # As if the days had passed.
            began = datetime.strptime(file.name.split(".")[2], "%Y-%m-%d").replace(tzinfo=UTC)
            os.utime(file, (began.timestamp(), began.timestamp()))
    log.close()
    expected = {model(f"2017-08-{20 + day}", 1) for day in range(5 - left, 5)}
    assert rolled(tmp_path) == expected
