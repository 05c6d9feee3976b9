"""Write the HTTP server's complaints to the daemon's log, bounded in number and length.

The server logs a traceback with the peer's bytes for each malformed request. Without the bound, anyone who reaches the
monitor could fill the disk.
"""

import logging
from collections import Counter
from pathlib import Path

from stablecast.store.log_lines import Severity, Write

EVERY = 1000
"""Complaints of one kind for each logged line; the first one is logged."""
MAX_KINDS = 32
"""Most kinds that are counted separately; further kinds are counted as one."""
CODE = "monitor-request"


class Complaints(logging.Handler):
    """Count a server's complaints by kind, and log a few of them without the bytes of a peer."""

    def __init__(self, log: Write) -> None:
        """Write lines to `log`."""
        super().__init__(logging.WARNING)
        self._write = log
        self._counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a complaint, and log every `EVERY`-th of its kind, starting with the first."""
        kind = _kind(record)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = "others"
        self._counts[kind] += 1
        if self._counts[kind] % EVERY == 1:
            text = f"a request failed: {kind}, {self._counts[kind]} times so far"
            self._write(Severity.WARNING, "", CODE, text)


def _kind(record: logging.LogRecord) -> str:
    """Return the class of the error and where it was raised.

    The message is left out, because it may quote the peer.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return f"{Path(record.pathname).name}:{record.lineno}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__} in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def logger(log: Write) -> logging.Logger:
    """Return a new logger whose records reach no other log of the process."""
    made = logging.Logger("stablecast.ops.monitor")  # noqa: LOG001 - each monitor has its own, for its own log
    made.addHandler(Complaints(log))
    return made
