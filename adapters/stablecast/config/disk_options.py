"""The options of a topic that concern the store's disk: how its journal writes, checks and reads.

A store has one journal for all its topics, so the values of all topics are combined: the largest buffer, the most
reads, and a flag is set if one topic sets it.
"""

from collections.abc import Iterable

import attrs

from stablecast.config.option import option_field, options_of
from stablecast.config.option_kinds import FLAG, MAX_COUNT, MAX_SIZE, NumberKind

MIN_BUFFER = 65_664
"""Smallest buffer for reading and writing, in bytes (P-829)."""
CALLBACKS = NumberKind(1, MAX_COUNT)


@attrs.frozen
class DiskConfig:
    buffer_bytes: int = option_field(
        "repository-disk-async-buffer-length",
        NumberKind(MIN_BUFFER, MAX_SIZE, "bytes"),
        "bytes that are written, or read for a request, at one time; a larger message is written alone",
        1_024_000,
        "keep it at a third of repository-disk-file-size-limit or less",
    )
    reads: int = option_field(
        "repository-disk-max-read-async-cbs",
        CALLBACKS,
        "number of disk reads for one source at one time; further reads wait",
        256,
        "with reduced-fd the documentation recommends 200 times the receivers of a topic",
    )
    writes: int = option_field(
        "repository-disk-max-write-async-cbs",
        CALLBACKS,
        "checked but not followed: there is one write at a time, which writes all waiting messages",  # P-825
        1,
    )
    preallocate: bool = option_field(
        "repository-disk-file-preallocate", FLAG, "reserve the disk space of each journal file when it begins", False
    )
    checksum: bool = option_field(
        "repository-disk-message-checksum",
        FLAG,
        "verify the checksum of every message at a restart; 0: verify it when the message is read",
        True,
        "0 makes the restart of a large store faster",
    )


DISK_OPTIONS = tuple(options_of(DiskConfig).values())


def together(configs: Iterable[DiskConfig]) -> DiskConfig:
    """Combine the values of the topics of a store: the largest number, and each flag that one topic sets."""
    columns = zip(*(attrs.astuple(config) for config in configs), strict=True)
    return DiskConfig(*(max(column) for column in columns))
