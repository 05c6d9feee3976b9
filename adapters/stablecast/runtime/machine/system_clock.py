"""The clocks and the entropy of the real machine."""

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class SystemClock:
    """The clocks of this host; each function is the one of `time`, so that a call costs nothing more."""

    __slots__ = ()
    monotonic_ns = staticmethod(time.monotonic_ns)
    monotonic = staticmethod(time.monotonic)
    wall_ns = staticmethod(time.time_ns)
    thread_seconds = staticmethod(time.thread_time)

    def utc_now(self) -> "datetime":
        """Return the wall clock as a date in UTC."""
        from datetime import UTC, datetime  # noqa: PLC0415 - most commands write no log

        return datetime.now(UTC)


class SystemEntropy:
    """The entropy of the kernel."""

    __slots__ = ()
    octets = staticmethod(os.urandom)

    def bits(self, count: int) -> int:
        """Return a random number of at most `count` bits, without the imports of `secrets`."""
        return int.from_bytes(os.urandom(-(-count // 8)), "big") >> (-count % 8)

    def below(self, limit: int) -> int:
        """Return a random number from 0 to below `limit`."""
        width = (limit - 1).bit_length()
        # A remainder would prefer small numbers, so numbers that are too large are drawn again.
        while (drawn := self.bits(width)) >= limit:
            pass
        return drawn
