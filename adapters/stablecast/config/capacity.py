"""The memory, disk space and descriptors that stores need: the sums of the guide, and those of this store (P-033).

A size option applies to each source. So a repository of 48 MB with 1,000 sources needs 48 GB of memory, and with
100 MB on disk 100 GB. The guide counts two descriptors for each topic of type disk, and five for a whole store of type
reduced-fd (P-105). This store writes all sources to one journal, so its files do not grow with the topics.
"""

from collections.abc import Iterable

import attrs

from stablecast.core.protocol.messages import Wishes
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, SourceConfig

GUIDE_DESCRIPTORS_PER_TOPIC = 2
"""Descriptors of the guide for a topic of type disk."""

GUIDE_DESCRIPTORS_REDUCED = 5
"""Descriptors of the guide for all topics of type reduced-fd of a store."""

JOURNAL_DESCRIPTORS = 67
"""Descriptors of a journal: the lock, the segment being written, a directory, and 64 segments for reading."""

REDUCED_JOURNAL_DESCRIPTORS = 5
"""Descriptors of a journal without repositories of type disk."""

SOURCE_CONNECTIONS = 3
"""Connections of a source that has a context of its own: its data, its requests, and the answers of the store."""

RECEIVER_CONNECTIONS = 2
"""Connections of a receiver that has a context of its own: its requests, and the answers of the store."""

PROCESS_DESCRIPTORS = 16
"""Descriptors of a process before any client: standard streams, the event loops, the listening ports."""

KEPT_IN_MEMORY = (RepositoryType.MEMORY, RepositoryType.DISK, RepositoryType.REDUCED_FD)
ON_DISK = (RepositoryType.DISK, RepositoryType.REDUCED_FD)


@attrs.frozen
class Load:
    """The clients of one topic pattern: `sources` on `topics`, and `receivers` of each source."""

    sources: int
    topics: int
    receivers: int


@attrs.frozen
class PatternNeed:
    """The memory, disk space and descriptors that one topic pattern needs at one store, in bytes and counts.

    Attributes:
        memory_each: Bytes of memory for one source; `disk_each`: bytes of disk space.
        guide_descriptors: Descriptors by the guide.
        connections: Descriptors of the connections of its clients, if each has a context of its own.
    """

    pattern: str
    kind: RepositoryType
    load: Load
    memory_each: int
    disk_each: int
    guide_descriptors: int
    connections: int

    @property
    def memory_bytes(self) -> int:
        return self.memory_each * self.load.sources

    @property
    def disk_bytes(self) -> int:
        return self.disk_each * self.load.sources


def need_of(pattern: str, repository: RepositoryConfig, load: Load, asked: Iterable[SourceConfig] = ()) -> PatternNeed:
    """Return what a pattern needs. `asked` are the sources whose own sizes replace those of the store (P-593)."""
    wishes = [source.wishes for source in asked if source.stores] or [Wishes()]
    kind = repository.kind
    memory = max(wish.size_limit or repository.size_limit for wish in wishes) if kind in KEPT_IN_MEMORY else 0
    disk = max(wish.disk_limit or repository.disk_limit for wish in wishes) if kind in ON_DISK else 0
    return PatternNeed(
        pattern,
        kind,
        load,
        memory,
        disk,
        GUIDE_DESCRIPTORS_PER_TOPIC * load.topics if kind is RepositoryType.DISK else 0,
        load.sources * (SOURCE_CONNECTIONS + RECEIVER_CONNECTIONS * load.receivers),
    )


@attrs.frozen
class StoreNeed:
    """The memory, disk space and descriptors that one store needs for all its topics."""

    name: str
    needs: tuple[PatternNeed, ...]

    @property
    def memory_bytes(self) -> int:
        return sum(need.memory_bytes for need in self.needs)

    @property
    def disk_bytes(self) -> int:
        return sum(need.disk_bytes for need in self.needs)

    @property
    def sources(self) -> int:
        return sum(need.load.sources for need in self.needs)

    @property
    def clients(self) -> int:
        """Return the number of sources and receivers."""
        return sum(need.load.sources * (1 + need.load.receivers) for need in self.needs)

    @property
    def guide_descriptors(self) -> int:
        """Return the descriptors for files by the guide, without those of connections."""
        reduced = any(need.kind is RepositoryType.REDUCED_FD for need in self.needs)
        return sum(need.guide_descriptors for need in self.needs) + GUIDE_DESCRIPTORS_REDUCED * reduced

    @property
    def descriptors(self) -> int:
        """Return the descriptors of this store: its journal, its process, and the connections of its clients."""
        kinds = {need.kind for need in self.needs}
        files = JOURNAL_DESCRIPTORS if RepositoryType.DISK in kinds else REDUCED_JOURNAL_DESCRIPTORS
        return files + PROCESS_DESCRIPTORS + sum(need.connections for need in self.needs)
