"""The free space of the file system that a journal lies on: read, and watched before it ends."""

import os
from pathlib import Path

import attrs

ROOM_SECONDS = 2.0
"""Between two looks, in seconds."""


def free_bytes(directory: Path) -> int:
    """Return the bytes that this process may still write there, quotas aside.

    Raises:
        OSError: The directory is gone, or its file system does not answer.
    """
    found = os.statvfs(directory)
    return (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * found.f_frsize


@attrs.define
class Room:
    """What is known of it. `free` in bytes, -1: not known; below `least` it is low; 0: it never is."""

    least: int
    free: int = -1
    low: bool = False

    def update(self, free: int) -> bool:
        """Take a look's result; returns whether it is news that there is little room, or enough again."""
        self.free = free
        before, self.low = self.low, free < self.least
        return before is not self.low
