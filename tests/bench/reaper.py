"""What a benchmark has started ends with it, however it ends.

The benchmark marks its environment, which whatever it starts inherits, and starts a reaper that waits at a pipe for the
end of the benchmark; then everything that has the mark is asked to end, and made to if it does not. Nothing else can do
that after a `kill -9`: children do not hear of the end of their parent.
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
"""Said at an end that is no accident."""

PATIENCE_S: Final = 5.0
"""Between the question and the end."""

LOOK_S: Final = 0.05
"""Between two looks at who is still there."""


@contextmanager
def reaped() -> Iterator[None]:
    """Whatever is started inside ends with this process."""
    mark = os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, "-m", "tests.bench.reaper", mark]
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        yield
    finally:
        reaper.communicate(OVER)  # whoever comes here has ended what he started


def marked(mark: str) -> list[int]:
    """The processes with this mark; none where the system does not show environments."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
        except OSError:
            continue  # It has ended, or is not ours.
    return found


def reap(mark: str, patience_s: float = PATIENCE_S) -> None:
    """End what has the mark."""
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
