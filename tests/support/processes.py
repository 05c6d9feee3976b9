"""Who is there: looks at processes that a test did not start itself."""

import os
from pathlib import Path


def children(parent: int | None = None) -> list[int]:
    """The processes that a process, by default this one, started and that it has not waited for."""
    tasks = Path(f"/proc/{parent or os.getpid()}/task")
    while True:
        try:
            return [int(number) for file in tasks.glob("*/children") for number in file.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            if not tasks.exists():
                return []
            # A thread has ended since it was listed, and its children are another one's: look again.


def alive(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
