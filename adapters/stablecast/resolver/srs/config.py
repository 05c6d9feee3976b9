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
publishing-interval = 60000     # milliseconds between statistics in the log, as JSON; 0: none

The documented XML form has the same names.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from stablecast.config import toml_file
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.option import Option
from stablecast.config.option_kinds import PORT, ChoiceKind, NumberKind, TextKind
from stablecast.config.xml_reader import NamedSchema, attributes_of, place_of, text_of
from stablecast.config.xml_reader import load as load_file
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime.logs import Compression, Frequency, RollingPolicy
from stablecast.transports.resolution.srs.settings import ServiceConfig

DEFAULT_PORT = 27_000
MILLION = 1_000_000
PATH = TextKind("path", Path)
LIFETIME = NumberKind(0, 20_736_000, "s")
COUNT = NumberKind(0, 1_000_000)

# fmt: off
OPTIONS: Mapping[str, Mapping[str, Option]] = {
    section: {option.name: option for option in options}
    for section, options in {
        "srs": (
            Option("interface", "interface", TextKind("address or host name"), "address to listen at"),
            Option("port", "port", PORT, "port to listen at"),
            Option("state-lifetime", "state_lifetime", LIFETIME, "default of the next two"),
            Option("source-state-lifetime", "source_state_lifetime", LIFETIME, "time for which lost sources are kept"),
            Option("interest-state-lifetime", "interest_state_lifetime", LIFETIME, "the same for lost receivers"),
            Option("source-leave-backoff", "source_leave_backoff", NumberKind(0, 60_000, "ms"), "wait before a leave"),
        ),
        "daemon": (Option("pid-file", "pid_file", PATH, "file for the number of the process"),),
        "daemon.monitor": (
            Option("publishing-interval", "publishing_interval", NumberKind(200, 7_776_000_000, "ms", or_zero=True),
                   "time between statistics in the log; 0: none"),
        ),
        "daemon.log": (
            Option("name", "log.name", PATH, "file for log lines"),
            Option("frequency", "log.frequency", ChoiceKind(tuple((one.value, one) for one in Frequency)),
                   "interval at which the file rolls"),
            Option("size", "log.size", COUNT, "millions of bytes after which the file rolls; 0: not by size"),
            Option("max-history", "log.max_history", COUNT, "rolled files to keep; 0: any number"),
            Option("total-size-cap", "log.total_size_cap", COUNT, "millions of bytes to keep; 0: any size"),
            Option("compression", "log.compression", ChoiceKind(tuple((one.value, one) for one in Compression)),
                   "format of rolled files"),
        ),
    }.items()
}
# fmt: on
"""The options of each section of the file, by name."""


@attrs.frozen
class SrsLogConfig:
    """The log of a service.

    Attributes:
        name: File for log lines; None: the console (T-501).
        frequency: Interval at which the file rolls by the clock.
        size: Millions of bytes after which it rolls; 0: not by size.
        max_history: Rolled files that are kept; 0: any number.
        total_size_cap: Millions of bytes of rolled files that are kept; 0: any size.
        compression: Format of rolled files.
    """

    name: Path | None = None
    frequency: Frequency = Frequency.DISABLE
    size: int = 10
    max_history: int = 10
    total_size_cap: int = 1000
    compression: Compression = Compression.NONE

    def rolling(self) -> RollingPolicy:
        """Return the settings of the rolling file, in bytes."""
        size, total = (MILLION * millions for millions in (self.size, self.total_size_cap))
        return RollingPolicy(self.frequency, size, self.max_history, total, self.compression)


@attrs.frozen
class SrsConfig:
    """The configuration of a service: its address, its lifetimes in seconds (0: without end), and its log.

    Attributes:
        publishing_interval: Milliseconds between statistics in the log; 0: none.
        pid_file: File that has the number of the process while it serves.
    """

    interface: str = "localhost"
    port: int = DEFAULT_PORT
    state_lifetime: int = 86_400
    source_state_lifetime: int | None = None
    interest_state_lifetime: int | None = None
    source_leave_backoff: int = 500
    log: SrsLogConfig = SrsLogConfig()
    publishing_interval: int = 0
    pid_file: Path | None = None

    def service(self) -> ServiceConfig:
        """Return the configuration of the machine."""
        source, interest = self.source_state_lifetime, self.interest_state_lifetime
        return ServiceConfig(
            source_lifetime_ns=(self.state_lifetime if source is None else source) * SECOND,
            interest_lifetime_ns=(self.state_lifetime if interest is None else interest) * SECOND,
            leave_backoff_ns=self.source_leave_backoff * MILLISECOND,
        )


def load(path: Path) -> SrsConfig:
    """Read a TOML file. Raises ConfigFileError, and OSError if it cannot be read."""
    return parse(toml_file.read(path), str(path))


def parse(tables: Mapping[str, Any], where: str = "configuration") -> SrsConfig:
    """Return the configuration of TOML tables. Raises ConfigFileError, which names the file as `where`."""
    found, config = ConfigFindings(), SrsConfig()
    found.keys(tables, ("srs", "daemon"), ConfigPlace())
    daemon = dict(found.table(tables.get("daemon", {}), "daemon"))
    log = found.table(daemon.pop("log", {}), "daemon.log")
    monitor = found.table(daemon.pop("monitor", {}), "daemon.monitor")
    sections = {"srs": found.table(tables.get("srs", {}), "srs"), "daemon": daemon, "daemon.monitor": monitor}
    for section, table in sections.items():
        for name, value in table.items():
            place = ConfigPlace(0, f"{section}.{name}")
            config = found.configured(config, OPTIONS[section], name, value, place)
    config = with_log(config, log, ConfigPlace(0, "daemon.log"), found)
    found.check(where)
    return config


def with_log(config: SrsConfig, values: Mapping[str, Any], place: ConfigPlace, found: ConfigFindings) -> SrsConfig:
    """Return the configuration with the options of its log set; `type` is console, or file with a name."""
    options = {name: value for name, value in values.items() if name != "type"}
    kind = values.get("type", "console")
    if kind not in ("console", "file") or (kind == "file") != bool(options.get("name")):
        found.problem(place, "a log has the type 'file' with a name, or 'console' without one")
    for name, value in options.items():
        config = found.configured(config, OPTIONS["daemon.log"], name, value, place)
    return config


XSD = """\
<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="um-srs">
    <xs:complexType>
      <xs:all>
        <xs:element name="daemon" type="daemon" minOccurs="0"/>
        <xs:element name="srs" type="srs" minOccurs="0"/>
        <xs:element name="debug-monitor" type="anything" minOccurs="0"/>
        <xs:element name="daemon-monitor" type="daemon-monitor" minOccurs="0"/>
      </xs:all>
      <xs:attribute name="version" use="required">
        <xs:simpleType><xs:restriction base="xs:string"><xs:enumeration value="1.0"/></xs:restriction></xs:simpleType>
      </xs:attribute>
    </xs:complexType>
  </xs:element>
  <xs:complexType name="daemon">
    <xs:all>
      <xs:element name="log" type="log" minOccurs="0"/>
      <xs:element name="pid-file" type="xs:string" minOccurs="0"/>
    </xs:all>
  </xs:complexType>
  <xs:complexType name="log">
    <xs:simpleContent>
      <xs:extension base="xs:string">
        <xs:attribute name="type" type="type"/>
        <xs:attribute name="frequency" type="frequency"/>
        <xs:attribute name="size" type="count"/>
        <xs:attribute name="max-history" type="count"/>
        <xs:attribute name="total-size-cap" type="count"/>
        <xs:attribute name="compression" type="compression"/>
      </xs:extension>
    </xs:simpleContent>
  </xs:complexType>
  <xs:complexType name="srs">
    <xs:all>
      <xs:element name="interface" type="xs:string" minOccurs="0"/>
      <xs:element name="port" type="xs:unsignedShort" minOccurs="0"/>
      <xs:element name="state-lifetime" type="count" minOccurs="0"/>
      <xs:element name="source-state-lifetime" type="count" minOccurs="0"/>
      <xs:element name="interest-state-lifetime" type="count" minOccurs="0"/>
      <xs:element name="route-state-lifetime" type="count" minOccurs="0"/>
      <xs:element name="context-name-state-lifetime" type="count" minOccurs="0"/>
      <xs:element name="source-leave-backoff" type="count" minOccurs="0"/>
      <xs:element name="application-id" type="xs:string" minOccurs="0"/>
    </xs:all>
  </xs:complexType>
  <xs:complexType name="daemon-monitor">
    <xs:all>
      <xs:element name="monitor-format" type="xs:string" minOccurs="0"/>
      <xs:element name="ping-interval" type="count" minOccurs="0"/>
      <xs:element name="publishing-interval" minOccurs="0">
        <xs:complexType>
          <xs:all><xs:element name="default" type="count" minOccurs="0"/></xs:all>
        </xs:complexType>
      </xs:element>
    </xs:all>
    <xs:attribute name="topic" type="xs:string"/>
  </xs:complexType>
  <xs:complexType name="anything" mixed="true">
    <xs:sequence><xs:any processContents="skip" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
    <xs:anyAttribute processContents="skip"/>
  </xs:complexType>
  <xs:simpleType name="count"><xs:restriction base="xs:unsignedLong"/></xs:simpleType>
  <xs:simpleType name="type"><xs:restriction base="xs:string">
    <xs:enumeration value="console"/><xs:enumeration value="file"/>
  </xs:restriction></xs:simpleType>
  <xs:simpleType name="frequency"><xs:restriction base="xs:string">
    <xs:enumeration value="disable"/><xs:enumeration value="daily"/><xs:enumeration value="hourly"/>
  </xs:restriction></xs:simpleType>
  <xs:simpleType name="compression"><xs:restriction base="xs:string">
    <xs:enumeration value="none"/><xs:enumeration value="zip"/><xs:enumeration value="gzip"/>
  </xs:restriction></xs:simpleType>
</xs:schema>
"""
"""The schema of the file, which `--dump-xsd` prints."""

UNUSED = ("route-state-lifetime", "context-name-state-lifetime", "application-id")
"""Elements that are accepted without effect: there are no routers and no store names here."""

_SECTIONS = {"daemon/pid-file": "daemon", "srs/*": "srs"}


def load_xml(path: Path) -> SrsConfig:
    """Read an XML file.

    Raises:
        ConfigFileError: It is no XML, does not follow the schema, or has a wrong value.
        OSError: It cannot be read.
    """
    root = load_file(path, NamedSchema(XSD))
    found, config = ConfigFindings(), SrsConfig()
    for element in root.iterfind("daemon/log"):
        values = {**attributes_of(element), **({"name": text_of(element)} if text_of(element) else {})}
        config = with_log(config, values, place_of(element), found)
    for element in root.iterfind("daemon-monitor/publishing-interval/default"):
        publishing = OPTIONS["daemon.monitor"]
        config = found.configured(config, publishing, "publishing-interval", text_of(element), place_of(element))
    for query, section in _SECTIONS.items():
        for element in root.iterfind(query):
            if element.tag not in UNUSED:
                name, value = str(element.tag), text_of(element)
                config = found.configured(config, OPTIONS[section], name, value, place_of(element))
    found.check(str(path))
    return config
