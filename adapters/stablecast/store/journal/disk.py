"""A journal's use of its disk: the system calls, their sizes, and the steps between which a crash may come."""

from collections.abc import Callable, Sequence

import attrs

from stablecast.runtime import machine
from stablecast.store.journal.record_format import Block
from stablecast.store.journal.segments import MAX_OPEN_FILES

SEGMENT_BYTES = 64 << 20
"""Bytes of records after the checkpoint of a segment. A larger single record gets a segment of its own."""

BUFFER_BYTES = 1_024_000
"""Bytes of one write. A larger single record is still written in one call."""

SHORT_NS = 250_000
"""Flushes shorter than this (ns) run on the loop's thread, because waking another thread would take longer."""

WEEK_SECONDS = 7 * 24 * 3600
"""Period of the scrubber by default."""

SCRUB_BYTES = 8 << 20
"""Bytes a second that the scrubber reads at most by default."""

MIN_SCRUB_BYTES = 64 << 10
"""Bytes a second that it reads at least: 40 GB in a week. A smaller journal ends its pass early."""

Write = Callable[[int, Sequence[Block], int], int]
Sync = Callable[[int], None]
Step = Callable[[str], None]
"""A function called with the name of each step at which a crash makes a difference; crash tests use it."""

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
"""All steps: of an open, a new segment, its first and its later batches, and a deleted segment."""


def _write(descriptor: int, parts: Sequence[Block], offset: int) -> int:
    return machine.files.pwritev(descriptor, parts, offset)


def _sync(descriptor: int) -> None:
    machine.files.sync_data(descriptor)


@attrs.frozen
class ScrubPace:
    """The pace of the scrubber: all records in `period_s` seconds (0: never), at most `most_bytes` a second."""

    period_s: int = WEEK_SECONDS
    most_bytes: int = SCRUB_BYTES

    def rate(self, size: int) -> float:
        """Return the bytes a second for a journal of `size` bytes."""
        return min(self.most_bytes, max(MIN_SCRUB_BYTES, size / self.period_s))


@attrs.frozen
class Disk:
    """The limits of a journal, and the two calls whose failures are its own among the journals of a process.

    Attributes:
        write: Like `machine.files.pwritev`.
        sync: Like `machine.files.sync_data`.
        segment_bytes: Bytes of a segment, see `SEGMENT_BYTES`.
        buffer_bytes: Bytes of one write, see `BUFFER_BYTES`.
        preallocate: True to allocate the whole room of a new segment at once.
        verify: True to verify the blocks of messages at open. Otherwise each block is verified when it is read.
        open_files: Segments open for reading at one time.
        short_ns: Flushes up to this time (ns) may run on the loop's thread; -1 for none.
        scrub: The pace at which all records are verified again.
        step: Called with the name of each step.
    """

    write: Write = _write
    sync: Sync = _sync
    segment_bytes: int = SEGMENT_BYTES
    buffer_bytes: int = BUFFER_BYTES
    preallocate: bool = False
    verify: bool = True
    open_files: int = MAX_OPEN_FILES
    short_ns: int = SHORT_NS
    scrub: ScrubPace = ScrubPace()
    step: Step = lambda _: None


DISK = Disk()
"""The default disk."""
