"""Processes that a test did not start itself, and conditions that other processes bring about."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

HANG_S: Final = 600
"""Seconds after which a thread that waits for a test gives up: the limit of pytest, which ends the test itself."""


def children(parent: int | None = None) -> list[int]:
    """Return the children that a process, by default this one, started and has not waited for."""
    tasks = Path(f"/proc/{parent or os.getpid()}/task")
    while True:
        try:
            return [int(number) for file in tasks.glob("*/children") for number in file.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            if not tasks.exists():
                return []
            # A thread ended after it was listed. Another thread has its children now, so read again.


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], bool], seconds: float = HANG_S, pause: float = 0.02) -> bool:
    """Poll a condition every `pause` seconds; return whether it held within `seconds`."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(pause)
    return True
