"""How a journal uses its disk: the calls, their sizes, and the steps that a crash may come between."""

import os
from collections.abc import Callable, Sequence

import attrs

from stablecast.store.journal.record_format import Block
from stablecast.store.journal.segments import MAX_OPEN_FILES

SEGMENT_BYTES = 64 << 20
"""Bytes of records behind the checkpoint of a segment; a larger single record gets a segment of its own."""

BUFFER_BYTES = 1_024_000
"""Of one write, in bytes; a larger single record is written in one all the same."""

SHORT_NS = 250_000
"""A flush that takes no longer costs less than to wake a thread for it, and to be woken by it: in ns."""

Write = Callable[[int, Sequence[Block], int], int]
Sync = Callable[[int], None]
Step = Callable[[str], None]
"""Told the name of each step before or after which a crash makes a difference; tests of crashes listen."""

STEPS = (
    "restart-scanned",
    "restart-cut",
    "roll",
    "rolled",
    "checkpoint",
    "append",
    "written",
    "checkpoint-synced",
    "synced",
    "reclaim",
    "reclaimed",
)
"""All steps: an open, a segment begun, its first and its later batches, and a segment that goes."""


def _unheard(_: str) -> None:
    """Nobody listens."""


@attrs.frozen
class Disk:
    """How to write, sync and read.

    Attributes:
        write: Like `os.pwritev`.
        sync: Like `os.fdatasync`.
        segment_bytes: When to begin a new segment, see `SEGMENT_BYTES`.
        buffer_bytes: See `BUFFER_BYTES`.
        preallocate: Whether a new segment gets its whole room on the disk at once.
        verify: Whether an open verifies the blocks of messages, too; else each is verified when it is read.
        open_files: Segments open for reading at one time.
        short_ns: Flushes that take so long or less may be done by the loop's thread; -1: none is.
        step: Told of each step.
    """

    write: Write = os.pwritev
    sync: Sync = os.fdatasync
    segment_bytes: int = SEGMENT_BYTES
    buffer_bytes: int = BUFFER_BYTES
    preallocate: bool = False
    verify: bool = True
    open_files: int = MAX_OPEN_FILES
    short_ns: int = SHORT_NS
    step: Step = _unheard


DISK = Disk()
"""The default."""
