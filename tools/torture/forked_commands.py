"""The shipped commands in a forked process, with syncs that can be slow.

The modules of the commands are loaded before the fork, because their load takes longer than a short history uses them.
"""

import io
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import uvloop  # noqa: F401 - the commands load it, and so does the parent of their processes

from stablecast.cli import app, daemons, resolution_daemons  # noqa: F401 - loaded before the fork
from stablecast.cli.main import main
from stablecast.runtime import machine


def run(words: Sequence[str], delay: Path) -> None:
    """Run a command line of `stablecast`, and end the process with its status."""
    machine.files.sync_data = partial(slow_sync, delay)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv = ["stablecast", *words]
    try:
        main()
        status = 0
    except SystemExit as end:
        status = _status(end.code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _status(code: str | int | None) -> int:
    if isinstance(code, str):
        print(code, file=sys.stderr)
        return 1
    return code or 0


def slow_sync(delay: Path, descriptor: int) -> None:
    """Sync a file after as many milliseconds as the file `delay` has. Without the file there is no delay."""
    try:
        ms = float(delay.read_text(encoding="ascii") or 0)
    except FileNotFoundError:
        ms = 0.0
    if ms:
        time.sleep(ms / 1e3)
    os.fdatasync(descriptor)
