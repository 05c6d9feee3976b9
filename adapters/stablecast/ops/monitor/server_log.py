"""What the HTTP server complains of, as lines of the daemon's log: one line each, bounded in number and in length.

The server logs a traceback for each malformed request, with the peer's bytes in it. Anybody who reaches the monitor
could fill the disk with them.
"""

import logging
from collections import Counter
from pathlib import Path

from stablecast.store.log_lines import Severity, Write

EVERY = 1000
"""Of each kind of complaint the first is logged, and then every so many."""
MAX_KINDS = 32
"""Kinds that are counted one by one; the others are one kind."""
CODE = "monitor-request"


class Complaints(logging.Handler):
    """Counts the complaints of a server by their kind, and logs few of them, without the bytes of a peer."""

    def __init__(self, log: Write) -> None:
        """Lines go to `log`."""
        super().__init__(logging.WARNING)
        self._write = log
        self._counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count one, and log it if it is the first of its kind, or one of `EVERY`."""
        kind = _kind(record)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = "others"
        self._counts[kind] += 1
        if self._counts[kind] % EVERY == 1:
            text = f"a request could not be answered: {kind}, {self._counts[kind]} times so far"
            self._write(Severity.WARNING, "", CODE, text)


def _kind(record: logging.LogRecord) -> str:
    """The class of the error and where it was raised; no text of it, for that may quote the peer."""
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
    """Return a logger of its own for a server: nothing of it reaches the other logs of the process."""
    made = logging.Logger("stablecast.ops.monitor")  # noqa: LOG001 - each monitor has its own, for its own log
    made.addHandler(Complaints(log))
    return made
