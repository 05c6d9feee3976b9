"""The plan of a store daemon: its whole configuration, read and checked."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from stablecast.config.disk_options import DiskConfig
from stablecast.config.findings import ConfigProblem
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import TransportConfig
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.settings import StoreConfig, TopicPattern, repository_for
from stablecast.runtime.logs import Frequency

HOUR_NS = 3600 * SECOND


@attrs.frozen
class LogConfig:
    """The log: `path` None means standard error; a file rolls after `size` MiB, or with 0 not by size."""

    path: Path | None = None
    frequency: Frequency = Frequency.DISABLE
    size: int = 10


@attrs.frozen
class MonitorConfig:
    """The address of the monitor, whether it may change the daemon (P-807), and the file with its access token."""

    host: str
    port: int
    writable: bool = False
    token_file: Path | None = None


GROUPS = ("store", "source", "receiver", "disk", "config", "memory")
"""The groups of published statistics; `default` stands for those that are not named."""


@attrs.frozen
class StatisticsConfig:
    """The statistics that a daemon publishes (`daemon-monitor`): topic, and interval in seconds by group; 0: never."""

    topic: str = "umestore.monitor"
    intervals: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class DaemonPlan:
    """The process: `uid` and `gid` None keep those of its start; `tls` is a directory with certificates.

    `options` and `xml_options` are files with options of the library, the latter those of an `application`.
    """

    log: LogConfig = LogConfig()
    pidfile: Path | None = None
    uid: int | None = None
    gid: int | None = None
    options: Path | None = None
    xml_options: Path | None = None
    application: str = ""
    monitor: MonitorConfig | None = None
    tls: Path | None = None
    statistics: StatisticsConfig | None = None


MAX_SOURCES = 50_000
"""Sources that one store registers by default."""

MAX_CLIENTS = 100_000
"""Sources and receivers that one store registers by default."""

SCRUB_HOURS = 7 * 24
"""Hours in which a store verifies all records of its journal again by default."""

SCRUB_BYTES = 8 << 20
"""Bytes a second that it reads for that at most."""

ROOM_BYTES = 256 << 20
"""Free bytes of a file system below which a store warns by default: four files of its journal."""


@attrs.frozen
class StoreLimits:
    """The limits of a store, so that no peer can exhaust the host.

    Attributes:
        sources: Registered sources.
        clients: Registered sources and receivers.
        disk_bytes: Size of the journal above which no new source is registered; 0: no limit.
        room_bytes: Free bytes of the journal's file system below which the store warns. A store that stopped because
            the disk was full returns when that many bytes are free again. 0: no warning.
        scrub_hours: Time in which every record of the journal is verified again; 0: never.
        scrub_bytes: Bytes a second that are read for that at most.
    """

    sources: int = MAX_SOURCES
    clients: int = MAX_CLIENTS
    disk_bytes: int = 0
    room_bytes: int = ROOM_BYTES
    scrub_hours: int = SCRUB_HOURS
    scrub_bytes: int = SCRUB_BYTES


@attrs.frozen
class TopicPlan:
    """The topics of a pattern: the rule for their repositories, and the options of proxies for their sources."""

    rule: TopicPattern
    disk: DiskConfig
    proxy_options: Mapping[str, Value]
    restore_last_hours: int = 0


@attrs.frozen
class StorePlan:
    """One store; `port` 0 means the first free one of `ports`. People see `name`, and sources use `context_name`."""

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
    limits: StoreLimits = StoreLimits()
    transports: TransportConfig = TransportConfig()
    intervals: Mapping[str, int] = attrs.field(factory=dict)

    def proxy_options(self, topic: str) -> Mapping[str, Value]:
        found = self.of_topic(topic)
        return {} if found is None else found.proxy_options

    def restore_last_ns(self, topic: str) -> int:
        """Return the age (ns), from its newest message back, up to which a source is restored; 0: all messages."""
        found = self.of_topic(topic)
        return 0 if found is None else found.restore_last_hours * HOUR_NS

    def of_topic(self, topic: str) -> TopicPlan | None:
        """Return the first plan that matches a topic, as the machine chooses it; None: the topic is refused."""
        for plan in self.topics:
            alone = attrs.evolve(self.config, topics=(plan.rule,), repository=None)
            if repository_for(alone, topic) is not None:
                return plan
        return None


@attrs.frozen
class Plan:
    """A whole daemon; `notices` inform the user and stop nothing. `elsewhere`: it belongs to another host."""

    path: str
    daemon: DaemonPlan
    stores: tuple[StorePlan, ...]
    notices: tuple[ConfigProblem, ...] = ()
    elsewhere: bool = False
