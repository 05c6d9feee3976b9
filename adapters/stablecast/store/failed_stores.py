"""What becomes of a store of a daemon whose disk failed: it is parked alone, and started again when that may help.

A parked store is stopped, with its port and its journal closed, and still shown, with the reason. The other stores and
the monitor go on. If there was no room it returns by itself once there is; after any other failure an operator says
when, because only people know that a disk was replaced. It returns as a restarted process would: nothing counts as
stored but what the files hold.
"""

import errno

import attrs

from stablecast.store.journal import JournalError

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Errors that end when somebody makes room."""

FIRST_WAIT_SECONDS = 2.0
"""Before the first try to return."""

MAX_DOUBLINGS = 8
"""How often that wait is doubled at most, when the store fails again soon."""

STEADY_SECONDS = 600.0
"""A store that served for longer than this failed anew: the waits begin again."""


def is_no_room(error: JournalError) -> bool:
    """Whether a journal failed for want of room."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in NO_ROOM


@attrs.define
class Patience:
    """How long to wait before the next try (s): longer each time that the store did not last."""

    tries: int = 0

    def after(self, served_seconds: float) -> float:
        """A store served for so long and failed, or could not be started (0)."""
        self.tries = 0 if served_seconds > STEADY_SECONDS else min(self.tries + 1, MAX_DOUBLINGS)
        return FIRST_WAIT_SECONDS * (1 << max(0, self.tries - 1))


def remedy(error: JournalError, least: int, number: int) -> str:
    """What makes a parked store return; `least` bytes are to be free, `number` is its place in the daemon."""
    command = f"`stablecast store resume http://MONITOR/stores/{number}`"
    if is_no_room(error):
        return f"it returns when {least:,} bytes are free (limit room-bytes), or by {command}"
    return f"replace the disk, then use {command}, or restart the daemon"
