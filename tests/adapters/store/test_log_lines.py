"""A daemon's log: lines, and files that roll."""

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stablecast.config.plan import LogConfig
from stablecast.runtime.logs import Frequency
from stablecast.store.log_lines import MIB, Log, Severity, unheard

BEGAN = datetime(2026, 11, 21, 15, 40, 12, 123_456, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        return self.now


def test_a_line_says_when_how_bad_who_what_and_why() -> None:
    stream = io.StringIO()
    log = Log(LogConfig(), stream, Clock())
    log.write(Severity.WARNING, "test-store", "loss", "two lines\nare one \x1b[31m")
    log.write(Severity.INFO, "", "ready", "yes")
    log.close()
    assert stream.getvalue() == (
        "2026-11-21 15:40:12.123 [WARNING] test-store: loss: two lines?are one ?[31m\n"
        "2026-11-21 15:40:12.123 [INFO] ready: yes\n"
    )


def rolled(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "a.log")


@pytest.mark.parametrize(
    ("frequency", "later", "rolls"),
    [
        (Frequency.DISABLE, timedelta(days=9), False),
        (Frequency.DAILY, timedelta(hours=8), False),
        (Frequency.DAILY, timedelta(hours=9), True),
        (Frequency.HOURLY, timedelta(minutes=19), False),
        (Frequency.HOURLY, timedelta(minutes=20), True),
    ],
)
def test_a_file_rolls_by_the_clock(frequency: Frequency, later: timedelta, rolls: bool, tmp_path: Path) -> None:
    clock = Clock()
    log = Log(LogConfig(tmp_path / "a.log", frequency, 0), io.StringIO(), clock)
    for _ in range(2):
        log.write(Severity.INFO, "", "a", "b")
        clock.now = BEGAN + later
    log.close()
    assert rolled(tmp_path) == ([f"a.log_{os.getpid()}.2026-11-21.1"] if rolls else [])


def test_a_file_rolls_by_its_size_and_no_rolled_file_is_lost(tmp_path: Path) -> None:
    """U5: a mebibyte."""
    path = tmp_path / "a.log"
    path.write_text("kept from before\n")
    log = Log(LogConfig(path, size=1), io.StringIO())
    for _ in range(3):
        log.write(Severity.INFO, "", "a", "." * MIB)
    log.close()
    names = rolled(tmp_path)
    assert [name.rpartition(".")[2] for name in names] == ["1", "2"]
    assert (tmp_path / names[0]).read_text().startswith("kept from before\n")


def test_without_a_file_lines_go_to_the_console() -> None:
    stream = io.StringIO()
    log = Log(LogConfig(), stream)
    log.write(Severity.ERROR, "s", "c", "t")
    assert stream.getvalue().endswith("[ERROR] s: c: t\n")


def test_a_log_may_drop_its_lines() -> None:
    unheard(Severity.INFO, "", "", "")
