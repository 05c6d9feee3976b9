"""The clocks of the host: monotonic, wall and processor time."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

monotonic_ns = time.monotonic_ns
"""Return the monotonic clock in ns. Deadlines are set on it."""

monotonic = time.monotonic
"""Return the monotonic clock in seconds."""

wall_ns = time.time_ns
"""Return the ns since the epoch. This clock may leap."""

thread_seconds = time.thread_time
process_seconds = time.process_time
"""Return the processor time of the calling thread, or of the program, in seconds."""


def utc_now() -> "datetime":
    from datetime import UTC, datetime  # noqa: PLC0415 - most commands write no log

    return datetime.now(UTC)
