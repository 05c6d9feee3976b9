"""The configuration of a service: a TOML file with the documented names, or the same as keyword arguments.

[srs]
interface = "10.29.3.41"
port = 12000
state-lifetime = 86400          # seconds; default of the next two (T-417)
source-state-lifetime = 86400
interest-state-lifetime = 86400
source-leave-backoff = 500      # milliseconds

[daemon]
pid-file = "srs.pid"

[daemon.log]
type = "file"
name = "srs.log"
frequency = "daily"             # or "hourly", "disable"
size = 10                       # millions of bytes; 0: not by size
max-history = 10                # rolled files to keep; 0: any number
total-size-cap = 1000           # millions of bytes; 0: any size
compression = "gzip"            # of rolled files; or "zip", "none"

[daemon.monitor]
publishing-interval = 60000     # milliseconds between statistics, as JSON; 0: none
topic = "/daemons/statistics"    # their topic; without one they stand in the log
publish-connection-events = 1
remote-snapshot-request = 1     # requests at the monitor
remote-config-changes-request = 0
context = { resolver_service = "10.29.3.41:12000" }   # also source, receiver: options of the publishing context

[daemon.monitor.publishing-intervals]
um-client-stats = 5000

[daemon.debug-monitor]
enabled = 1
interface = "localhost"
port = 27001

`xml_config` reads the documented XML form with the same names.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from stablecast.config import toml_file
from stablecast.config.client_configuration import ClientConfiguration, ConfigLayer
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option import Option, option_field, options_of
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import FLAG, PORT, ChoiceKind, NumberKind, TextKind, words
from stablecast.config.setting_checks import option_notices
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime.logs import Compression, Frequency, RollingPolicy
from stablecast.transports.resolution.srs.settings import ServiceConfig

DEFAULT_PORT = 27_000
MILLION = 1_000_000
PATH = TextKind("path", Path)
LIFETIME = NumberKind(0, 20_736_000, "s")
COUNT = NumberKind(0, 1_000_000)
INTERVAL = NumberKind(200, 7_776_000_000, "ms", or_zero=True)
SCOPES = ("context", "source", "receiver")


@attrs.frozen
class SrsLogConfig:
    """The log of a service."""

    name: Path | None = option_field("name", PATH, "file for log lines; None: the console (T-501)", None)
    frequency: Frequency = option_field(
        "frequency",
        ChoiceKind(tuple((one.value, one) for one in Frequency)),
        "interval at which the file rolls by the clock",
        Frequency.DISABLE,
    )
    size: int = option_field("size", COUNT, "millions of bytes after which it rolls; 0: not by size", 10)
    max_history: int = option_field("max-history", COUNT, "rolled files to keep; 0: any number", 10)
    total_size_cap: int = option_field("total-size-cap", COUNT, "millions of bytes to keep; 0: any size", 1000)
    compression: Compression = option_field(
        "compression",
        ChoiceKind(tuple((one.value, one) for one in Compression)),
        "format of rolled files",
        Compression.NONE,
    )

    def rolling(self) -> RollingPolicy:
        """Return the settings of the rolling file, in bytes."""
        size, total = (MILLION * millions for millions in (self.size, self.total_size_cap))
        return RollingPolicy(self.frequency, size, self.max_history, total, self.compression)


def _every(category: str) -> Any:
    return option_field(category, INTERVAL, "time between statistics of this kind", None)


@attrs.frozen
class StatisticsIntervals:
    """Milliseconds between statistics of each kind; 0: never; None: those of `publishing-interval`."""

    srs_stats: int | None = _every("srs-stats")
    um_client_stats: int | None = _every("um-client-stats")
    connection_events: int | None = _every("connection-events")
    srs_error_stats: int | None = _every("srs-error-stats")
    um_client_error_stats: int | None = _every("um-client-error-stats")
    config_opts: int | None = _every("config-opts")
    internal_config_opts: int | None = _every("internal-config-opts")


CATEGORIES = tuple(options_of(StatisticsIntervals))
"""The documented kinds of statistics, each with an interval of its own."""


@attrs.frozen
class SrsMonitorConfig:
    """The statistics of a service; `settings` are options of the context that publishes."""

    topic: str = option_field("topic", TextKind("topic"), "topic of the statistics; without one: the log", "")
    form: str = option_field("monitor-format", words(json="json", pb="pb"), "json; pb has no effect", "json")
    ping_interval: int = option_field(
        "ping-interval",
        NumberKind(100, 3_600_000, "ms"),
        "without effect: statistics are read when they are published",
        60_000,
    )
    intervals: StatisticsIntervals = StatisticsIntervals()
    connection_events: bool = option_field("publish-connection-events", FLAG, "publish connections and breaks", False)
    snapshots: bool = option_field("remote-snapshot-request", FLAG, "answer requests for statistics", False)
    changes: bool = option_field("remote-config-changes-request", FLAG, "answer requests that set intervals", False)
    settings: tuple[Setting, ...] = ()

    @property
    def configuration(self) -> ClientConfiguration:
        """Return the options of the context that publishes."""
        return ClientConfiguration((ConfigLayer("", self.settings),))


@attrs.frozen
class DebugMonitorConfig:
    enabled: bool = option_field("enabled", FLAG, "serve the monitor over HTTP", False)
    interface: str = option_field("interface", TextKind("address or host name"), "address to listen at", "localhost")
    port: int = option_field("port", PORT, "port to listen at", DEFAULT_PORT)


@attrs.frozen
class SrsConfig:
    """The configuration of a service; `notices` are sentences about parts of the file without effect."""

    interface: str = option_field("interface", TextKind("address or host name"), "address to listen at", "localhost")
    port: int = option_field("port", PORT, "port to listen at", DEFAULT_PORT)
    state_lifetime: int = option_field("state-lifetime", LIFETIME, "default of the next two; 0: without end", 86_400)
    source_state_lifetime: int | None = option_field(
        "source-state-lifetime", LIFETIME, "time for which lost sources are kept", None
    )
    interest_state_lifetime: int | None = option_field(
        "interest-state-lifetime", LIFETIME, "the same for lost receivers", None
    )
    route_state_lifetime: int = option_field(
        "route-state-lifetime", LIFETIME, "the same for the routes of lost routers", 30
    )
    source_leave_backoff: int = option_field(
        "source-leave-backoff", NumberKind(0, 60_000, "ms"), "wait before a leave", 500
    )
    log: SrsLogConfig = SrsLogConfig()
    publishing_interval: int = option_field("publishing-interval", INTERVAL, "time between statistics; 0: none", 0)
    pid_file: Path | None = option_field("pid-file", PATH, "file for the number of the process while it serves", None)
    application_id: str = option_field("application-id", TextKind("name"), "name of the service in its statistics", "")
    monitor: SrsMonitorConfig = SrsMonitorConfig()
    debug: DebugMonitorConfig = DebugMonitorConfig()
    notices: tuple[str, ...] = ()

    def interval(self, category: str) -> int:
        """Return the milliseconds between statistics of a kind; 0: never."""
        own: int | None = getattr(self.monitor.intervals, category.replace("-", "_"))
        if own is not None:
            return own
        if category == "connection-events":
            return self.publishing_interval if self.monitor.connection_events else 0
        # Without a topic the log has the figures of the service only: those of all clients would fill it.
        usual = category == "srs-stats" or bool(self.monitor.topic and "config-opts" not in category)
        return self.publishing_interval if usual else 0

    def service(self) -> ServiceConfig:
        source, interest = self.source_state_lifetime, self.interest_state_lifetime
        return ServiceConfig(
            source_lifetime_ns=(self.state_lifetime if source is None else source) * SECOND,
            interest_lifetime_ns=(self.state_lifetime if interest is None else interest) * SECOND,
            route_lifetime_ns=self.route_state_lifetime * SECOND,
            leave_backoff_ns=self.source_leave_backoff * MILLISECOND,
        )


_OWN = options_of(SrsConfig)
OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "daemon": {"pid-file": _OWN.pop("pid-file")},
    "daemon.monitor": {
        "publishing-interval": _OWN.pop("publishing-interval"),
        **options_of(SrsConfig, "monitor"),
    },
    "daemon.monitor.publishing-intervals": options_of(SrsConfig, "monitor.intervals"),
    "daemon.debug-monitor": options_of(SrsConfig, "debug"),
    "daemon.log": options_of(SrsConfig, "log"),
    "srs": _OWN,
}
"""The options of each section of the file, by name."""


def load(path: Path) -> SrsConfig:
    """Read a TOML file. Raises ConfigFileError, and OSError if it cannot be read."""
    return parse(toml_file.read(path), str(path))


def parse(tables: Mapping[str, Any], where: str = "configuration") -> SrsConfig:
    """Return the configuration of TOML tables. Raises ConfigFileError, which names the file as `where`."""
    found, config = ConfigFindings(), SrsConfig()
    found.keys(tables, ("srs", "daemon"), ConfigPlace())
    daemon = dict(found.table(tables.get("daemon", {}), "daemon"))
    log = found.table(daemon.pop("log", {}), "daemon.log")
    monitor = dict(found.table(daemon.pop("monitor", {}), "daemon.monitor"))
    intervals = monitor.pop("publishing-intervals", {})
    asked = {scope: found.table(monitor.pop(scope, {}), f"daemon.monitor.{scope}") for scope in SCOPES}
    sections = {
        "srs": found.table(tables.get("srs", {}), "srs"),
        "daemon.debug-monitor": found.table(daemon.pop("debug-monitor", {}), "daemon.debug-monitor"),
        "daemon": daemon,
        "daemon.monitor": monitor,
        "daemon.monitor.publishing-intervals": found.table(intervals, "daemon.monitor.publishing-intervals"),
    }
    for section, table in sections.items():
        for name, value in table.items():
            place = ConfigPlace(0, f"{section}.{name}")
            config = found.configured(config, OPTIONS[section], name, value, place)
    config = with_log(config, log, ConfigPlace(0, "daemon.log"), found)
    given = ((scope, name, value) for scope, options in asked.items() for name, value in options.items())
    for scope, name, value in given:
        config = with_option(config, Setting(scope, name, str(value), 0), ConfigPlace(0, f"monitor.{name}"), found)
    found.check(where)
    return noticed(config, found)


def with_option(config: SrsConfig, setting: Setting, place: ConfigPlace, found: ConfigFindings) -> SrsConfig:
    """Return the configuration with one more option of the context that publishes."""
    found.tried(place, lambda: option_notices(setting))
    settings = (*config.monitor.settings, setting)
    return attrs.evolve(config, monitor=attrs.evolve(config.monitor, settings=settings))


def noticed(config: SrsConfig, found: ConfigFindings) -> SrsConfig:
    if config.monitor.form != "json":
        found.notice(ConfigPlace(0, "monitor-format"), "statistics are always published as JSON")
    return attrs.evolve(config, notices=tuple(f"{one.place}: {one.text}" for one in found.notices))


def with_log(config: SrsConfig, values: Mapping[str, Any], place: ConfigPlace, found: ConfigFindings) -> SrsConfig:
    """Return the configuration with the options of its log set; `type` is console, or file with a name."""
    options = {name: value for name, value in values.items() if name != "type"}
    kind = values.get("type", "console")
    if kind not in ("console", "file") or (kind == "file") != bool(options.get("name")):
        found.problem(place, "a log has the type 'file' with a name, or 'console' without one")
    for name, value in options.items():
        config = found.configured(config, OPTIONS["daemon.log"], name, value, place)
    return config
