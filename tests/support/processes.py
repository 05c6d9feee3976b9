"""Who is there: looks at processes that a test did not start itself."""

import os
from pathlib import Path


def children(parent: int | None = None) -> list[int]:
    """The processes that a process, by default this one, started and that it has not waited for."""
    parent = parent or os.getpid()
    return [
        int(number) for file in Path(f"/proc/{parent}/task").glob("*/children") for number in file.read_text().split()
    ]


def alive(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
