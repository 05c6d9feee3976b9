"""The clocks of the real machine: this module is the object, because a call of a module's function costs the least."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

monotonic_ns = time.monotonic_ns
monotonic = time.monotonic
wall_ns = time.time_ns
thread_seconds = time.thread_time
process_seconds = time.process_time


def utc_now() -> "datetime":
    """Return the wall clock as a date in UTC."""
    from datetime import UTC, datetime  # noqa: PLC0415 - most commands write no log

    return datetime.now(UTC)
