"""Failures of a store's disk: the store is parked alone, and started again when that may help.

A parked store is stopped, with its port and its journal closed. The monitor still shows it, with the reason. The other
stores go on. After a lack of space the store returns by itself once there is enough. After a lack of descriptors,
memory or threads, which no disk causes, it tries to return again and again. After any other failure an operator
decides, because only people know that a disk was replaced. The store returns as a restarted process would: only
messages in its files count as stored.
"""

import attrs

from stablecast.store.journal import JournalError
from stablecast.store.journal.journal import NO_ROOM
from stablecast.store.journal.lock import FilesLostError
from stablecast.text.scarcity import is_scarce

ROOM_SECONDS = 2.0
"""Seconds between two checks of the free space."""

FIRST_WAIT_SECONDS = 2.0
"""Seconds before the first attempt to return."""

MAX_DOUBLINGS = 8
"""Doublings of that wait at most, while the store fails again soon."""

STEADY_SECONDS = 600.0
"""A store that served for longer than this (s) starts with the first wait again."""


@attrs.define
class FreeSpace:
    """The free space of the journal's file system, in bytes: `free`, -1 if not known, and `low` if below `least`."""

    least: int
    free: int = -1
    low: bool = False

    def update(self, free: int) -> bool:
        """Set the free space; return True if `low` changed."""
        self.free = free
        before, self.low = self.low, free < self.least
        return before is not self.low


def is_no_room(error: JournalError) -> bool:
    """Return True if a journal failed for lack of disk space."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in NO_ROOM


@attrs.define
class RestartBackoff:
    """The waits before attempts to return: longer each time that the store failed again soon."""

    tries: int = 0

    def after(self, served_seconds: float) -> float:
        """Return the seconds to wait after a store served this long; 0 if it could not even be started."""
        self.tries = 0 if served_seconds > STEADY_SECONDS else min(self.tries + 1, MAX_DOUBLINGS)
        return FIRST_WAIT_SECONDS * (1 << max(0, self.tries - 1))


def remedy(error: JournalError, least: int, number: int) -> str:
    """Return the advice for a parked store: `least` bytes must be free, `number` is its index in the daemon."""
    command = f"`stablecast store resume http://MONITOR/stores/{number}`"
    if is_no_room(error):
        return f"it returns when {least:,} bytes are free (limit room-bytes) and an inode is, or by {command}"
    if is_scarce(error.__cause__):
        return f"it returns by itself once the process has descriptors, memory and threads again, or by {command}"
    if isinstance(error, FilesLostError):
        return f"mount or make its directory again, then use {command}, or restart the daemon"
    return f"replace the disk, then use {command}, or restart the daemon"
