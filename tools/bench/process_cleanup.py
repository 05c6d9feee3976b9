"""Cleanup of all processes that a benchmark started, however the benchmark ends.

The benchmark sets a mark in its environment, which all its processes inherit. It starts a reaper that waits at a pipe
for the end of the benchmark. The reaper then ends every process with the mark, with SIGTERM and later with SIGKILL.
Children are not notified when their parent is killed with SIGKILL, so only another process can do this.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MARK: Final = "STABLECAST_BENCH"
OVER: Final = b"over"
"""Sent to the reaper at a regular end."""

PATIENCE_S: Final = 5.0
"""Time between SIGTERM and SIGKILL."""

LOOK_S: Final = 0.05
"""Time between two checks for remaining processes."""


@contextmanager
def reaped() -> Iterator[None]:
    """End all processes that are started inside when this process ends."""
    mark = os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, "-m", "tools.bench.process_cleanup", mark]
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        yield
    finally:
        reaper.communicate(OVER)  # a regular end has ended all its processes


def marked(mark: str) -> list[int]:
    """Return the processes with this mark, or none if the system does not show environments."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
        except OSError:
            continue  # the process has ended, or belongs to another user
    return found


def reap(mark: str, patience_s: float = PATIENCE_S) -> None:
    _signal(mark, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    _signal(mark, signal.SIGKILL)


def _signal(mark: str, number: signal.Signals) -> None:
    for process in marked(mark):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    if sys.stdin.buffer.read() != OVER:
        reap(sys.argv[1])
