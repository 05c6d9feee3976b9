"""The options of a topic that are about the store's disk: how its journal writes, checks and reads.

A store has one journal for all its topics, so what they ask for is put together: the largest buffer, the most reads,
and a yes of one is a yes for all.
"""

from collections.abc import Iterable
from functools import reduce

import attrs

from stablecast.config.client_options import MAX_COUNT
from stablecast.config.option import Option
from stablecast.config.option_kinds import Flag, Whole

MIN_BUFFER = 65_664
"""Bytes of a buffer for reading and writing (P-829)."""
CALLBACKS = Whole(1, MAX_COUNT)


@attrs.frozen
class DiskConfig:
    """How a store uses its disk.

    Attributes:
        buffer_bytes: The most that is written, or read for one request, in one go.
        reads: Records of one source that are read at one time.
        writes: Asked for; one write is under way at any time (P-825).
        preallocate: Whether a segment gets its room on the disk when it begins.
        checksum: Whether a restart verifies the messages, too.
    """

    buffer_bytes: int = 1_024_000
    reads: int = 256
    writes: int = 1
    preallocate: bool = False
    checksum: bool = True


def together(configs: Iterable[DiskConfig]) -> DiskConfig:
    """What the topics of a store ask for, all in one."""
    return reduce(_both, configs)


def _both(one: DiskConfig, other: DiskConfig) -> DiskConfig:
    return DiskConfig(
        max(one.buffer_bytes, other.buffer_bytes),
        max(one.reads, other.reads),
        max(one.writes, other.writes),
        one.preallocate or other.preallocate,
        one.checksum or other.checksum,
    )


DISK_OPTIONS = (
    Option(
        "repository-disk-async-buffer-length",
        "buffer_bytes",
        Whole(MIN_BUFFER, 1 << 62, "bytes"),
        "the most that is written, or read for a request, in one go; a larger message goes alone",
        "at most a third of repository-disk-file-size-limit",
    ),
    Option(
        "repository-disk-max-read-async-cbs",
        "reads",
        CALLBACKS,
        "disk reads for one source at one time; more of them wait",
        "the documentation asks for 200 times the receivers of a topic where the type is reduced-fd",
    ),
    Option(
        "repository-disk-max-write-async-cbs",
        "writes",
        CALLBACKS,
        "disk writes at one time: read and checked, there is never more than one, which all that waits goes into",
    ),
    Option(
        "repository-disk-file-preallocate",
        "preallocate",
        Flag(),
        "each file of the journal gets its room on the disk when it begins",
    ),
    Option(
        "repository-disk-message-checksum",
        "checksum",
        Flag(),
        "a restart verifies every message; 0: each is verified when it is read. They all have checksums",
        "0 makes the restart of a large store faster",
    ),
)
