"""What a store daemon runs by: everything that its configuration says, read and checked."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from stablecast.config.daemon_outline import Problem
from stablecast.config.disk_options import DiskConfig
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import TransportConfig
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import StoreConfig, TopicPattern, repository_for
from stablecast.runtime.logs import Frequency

HOUR_NS = 3600 * SECOND


@attrs.frozen
class LogConfig:
    """Where lines go. `path` None: standard error; `size` in MiB after which a file rolls, 0: not by size."""

    path: Path | None = None
    frequency: Frequency = Frequency.DISABLE
    size: int = 10


@attrs.frozen
class MonitorConfig:
    """Where the monitor listens, and whether it may change anything (P-807). `token_file` holds what opens it."""

    host: str
    port: int
    writable: bool = False
    token_file: Path | None = None


GROUPS = ("store", "source", "receiver", "disk", "config", "memory")
"""What statistics are published in; `default` stands for those that are not named."""


@attrs.frozen
class StatisticsConfig:
    """What the daemon publishes of itself (`daemon-monitor`): the topic, and seconds between, by group; 0: never."""

    topic: str = "umestore.monitor"
    intervals: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class DaemonPlan:
    """The process. `uid` and `gid` None: as it was started. `tls`: a directory with certificates."""

    log: LogConfig = LogConfig()
    pidfile: Path | None = None
    uid: int | None = None
    gid: int | None = None
    options: Path | None = None
    monitor: MonitorConfig | None = None
    tls: Path | None = None
    statistics: StatisticsConfig | None = None


MAX_SOURCES = 50_000
"""Sources that one store registers unless told otherwise."""

MAX_CLIENTS = 100_000
"""Sources and receivers, likewise."""

ROOM_BYTES = 256 << 20
"""Free bytes of a file system below which a store warns, likewise: four files of its journal."""


@attrs.frozen
class Limits:
    """What a store takes at most, so that no peer can use up the host.

    Attributes:
        sources: That are registered.
        clients: Sources and receivers that are registered.
        disk_bytes: Of the journal, above which no new source is registered; 0: no limit.
        room_bytes: Free on the journal's file system, below which the store warns; a store that stopped for want of
            room returns when so many are free again; 0: no warning.
    """

    sources: int = MAX_SOURCES
    clients: int = MAX_CLIENTS
    disk_bytes: int = 0
    room_bytes: int = ROOM_BYTES


@attrs.frozen
class TopicPlan:
    """The topics of a pattern: how they are kept, and what proxies of their sources are set to."""

    rule: TopicPattern
    disk: DiskConfig
    proxy_options: Mapping[str, Value]
    restore_last_hours: int = 0


@attrs.frozen
class StorePlan:
    """One store. `port` 0: the first free one of `ports`. `name` is for people, `context_name` for sources."""

    name: str
    host: str
    port: int
    ports: tuple[int, int]
    config: StoreConfig
    disk: DiskConfig
    cache_directory: Path
    state_directory: Path
    context_name: str
    resolver: tuple[str, ...]
    resolver_service: tuple[str, ...]
    topics: tuple[TopicPlan, ...]
    resolution: Mapping[str, Value] = attrs.field(factory=dict)
    limits: Limits = Limits()
    transports: TransportConfig = TransportConfig()
    intervals: Mapping[str, int] = attrs.field(factory=dict)

    def proxy_options(self, topic: str) -> Mapping[str, Value]:
        """The source options of a proxy for this topic."""
        found = self.of_topic(topic)
        return {} if found is None else found.proxy_options

    def restore_last_ns(self, topic: str) -> int:
        """How far back from its newest a source of this topic is restored; 0: all."""
        found = self.of_topic(topic)
        return 0 if found is None else found.restore_last_hours * HOUR_NS

    def of_topic(self, topic: str) -> TopicPlan | None:
        """What is kept of this topic, as the machine chooses: the first that matches; None: it is refused."""
        for plan in self.topics:
            alone = attrs.evolve(self.config, topics=(plan.rule,), repository=None)
            if repository_for(alone, topic) is not None:
                return plan
        return None


@attrs.frozen
class Plan:
    """A whole daemon. `notices`: what people should know, though it stops nothing."""

    path: str
    daemon: DaemonPlan
    stores: tuple[StorePlan, ...]
    notices: tuple[Problem, ...] = ()
