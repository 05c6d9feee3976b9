"""Warnings and errors in the logs of daemons, by their local time."""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND

LINE: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(\d{3}) \[(WARNING|ERROR|CRITICAL|ALERT|EMERGENCY)\] (.*)")
"""A line of a log: local date and time, milliseconds, severity, text."""

MAX_LINES: Final = 100_000
"""Lines that are kept of all logs."""


@attrs.frozen
class LogLine:
    """A line of a log with its time, ns of the epoch."""

    time: int
    text: str


def is_log(path: Path) -> bool:
    """Return whether a file begins like a log of a daemon."""
    try:
        with path.open("rb") as file:
            head = file.read(64).decode("utf-8", "replace")
    except OSError:
        return False
    return re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[", head) is not None


def read_logs(paths: Iterable[Path]) -> list[LogLine]:
    """Return the warnings and errors of logs, in order of time. Raise OSError."""
    found: list[LogLine] = []
    for path in paths:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if len(found) < MAX_LINES and (match := LINE.match(line)) is not None:
                    date, milliseconds, severity, text = match.groups()
                    # Daemons write local time, so a log must be read in the time zone of its host.
                    seconds = int(datetime.fromisoformat(date).astimezone().timestamp())
                    time = seconds * SECOND + int(milliseconds) * MILLISECOND
                    found.append(LogLine(time, f"{path.name}: {date}.{milliseconds} [{severity}] {text}"))
    return sorted(found, key=lambda one: one.time)
