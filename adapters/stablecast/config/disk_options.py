"""The options of a topic that concern the store's disk: how its journal writes, checks and reads.

A store has one journal for all its topics, so the values of all topics are combined: the largest buffer, the most
reads, and a flag is set if one topic sets it.
"""

from collections.abc import Iterable

import attrs

from stablecast.config.option import Option
from stablecast.config.option_kinds import FLAG, MAX_COUNT, MAX_SIZE, NumberKind

MIN_BUFFER = 65_664
"""Smallest buffer for reading and writing, in bytes (P-829)."""
CALLBACKS = NumberKind(1, MAX_COUNT)


@attrs.frozen
class DiskConfig:
    """The disk settings of a store.

    Attributes:
        buffer_bytes: Bytes that are written, or read for one request, at one time.
        reads: Records of one source that are read at one time.
        writes: The configured number; there is always one write at a time (P-825).
        preallocate: Whether a segment reserves its disk space when it begins.
        checksum: Whether a restart also verifies the messages.
    """

    buffer_bytes: int = 1_024_000
    reads: int = 256
    writes: int = 1
    preallocate: bool = False
    checksum: bool = True


def together(configs: Iterable[DiskConfig]) -> DiskConfig:
    """Combine the values of the topics of a store: the largest number, and each flag that one topic sets."""
    columns = zip(*(attrs.astuple(config) for config in configs), strict=True)
    return DiskConfig(*(max(column) for column in columns))


# fmt: off
DISK_OPTIONS = (
    Option("repository-disk-async-buffer-length", "buffer_bytes", NumberKind(MIN_BUFFER, MAX_SIZE, "bytes"),
           "bytes that are written, or read for a request, at one time; a larger message is written alone",
           "keep it at a third of repository-disk-file-size-limit or less"),
    Option("repository-disk-max-read-async-cbs", "reads", CALLBACKS,
           "number of disk reads for one source at one time; further reads wait",
           "with reduced-fd the documentation recommends 200 times the receivers of a topic"),
    Option("repository-disk-max-write-async-cbs", "writes", CALLBACKS,
           "checked but not followed: there is one write at a time, which writes all waiting messages"),
    Option("repository-disk-file-preallocate", "preallocate", FLAG,
           "reserve the disk space of each journal file when it begins"),
    Option("repository-disk-message-checksum", "checksum", FLAG,
           "verify the checksum of every message at a restart; 0: verify it when the message is read",
           "0 makes the restart of a large store faster"),
)
# fmt: on
