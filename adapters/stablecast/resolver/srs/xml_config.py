"""The documented XML form of a service's configuration; `config` has the options with their names."""

from pathlib import Path

from stablecast.config.findings import ConfigFindings
from stablecast.config.option_files import Setting
from stablecast.config.xml_reader import Element, NamedSchema, attributes_of, place_of, text_of
from stablecast.config.xml_reader import load as load_file
from stablecast.resolver.srs.config import OPTIONS, SrsConfig, noticed, with_log, with_option

XSD = """\
<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="um-srs">
    <xs:complexType>
      <xs:all>
        <xs:element name="daemon" type="daemon" minOccurs="0"/>
        <xs:element name="srs" type="srs" minOccurs="0"/>
        <xs:element name="debug-monitor" type="debug-monitor" minOccurs="0"/>
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
      <xs:element name="otidmap" type="anything" minOccurs="0"/>
      <xs:element name="topicmap" type="anything" minOccurs="0"/>
      <xs:element name="routemap" type="anything" minOccurs="0"/>
      <xs:element name="namemap" type="anything" minOccurs="0"/>
      <xs:element name="clientactor" type="anything" minOccurs="0"/>
    </xs:all>
  </xs:complexType>
  <xs:complexType name="daemon-monitor">
    <xs:all>
      <xs:element name="monitor-format" type="xs:string" minOccurs="0"/>
      <xs:element name="ping-interval" type="count" minOccurs="0"/>
      <xs:element name="publishing-interval" minOccurs="0">
        <xs:complexType>
          <xs:all>
            <xs:element name="default" type="count" minOccurs="0"/>
            <xs:element name="srs-stats" type="count" minOccurs="0"/>
            <xs:element name="um-client-stats" type="count" minOccurs="0"/>
            <xs:element name="connection-events" type="count" minOccurs="0"/>
            <xs:element name="srs-error-stats" type="count" minOccurs="0"/>
            <xs:element name="um-client-error-stats" type="count" minOccurs="0"/>
            <xs:element name="config-opts" type="count" minOccurs="0"/>
            <xs:element name="internal-config-opts" type="count" minOccurs="0"/>
          </xs:all>
        </xs:complexType>
      </xs:element>
      <xs:element name="publish-connection-events" type="permission" minOccurs="0"/>
      <xs:element name="remote-snapshot-request" type="permission" minOccurs="0"/>
      <xs:element name="remote-config-changes-request" type="permission" minOccurs="0"/>
      <xs:element name="lbm-attributes" minOccurs="0">
        <xs:complexType>
          <xs:sequence>
            <xs:element name="option" minOccurs="0" maxOccurs="unbounded">
              <xs:complexType>
                <xs:attribute name="scope" type="scope" use="required"/>
                <xs:attribute name="name" type="xs:string" use="required"/>
                <xs:attribute name="value" type="xs:string" use="required"/>
              </xs:complexType>
            </xs:element>
          </xs:sequence>
        </xs:complexType>
      </xs:element>
    </xs:all>
    <xs:attribute name="topic" type="xs:string"/>
  </xs:complexType>
  <xs:complexType name="debug-monitor">
    <xs:all>
      <xs:element name="enabled" type="truth" minOccurs="0"/>
      <xs:element name="interface" type="xs:string" minOccurs="0"/>
      <xs:element name="port" type="xs:unsignedShort" minOccurs="0"/>
    </xs:all>
    <xs:attribute name="enabled" type="truth"/>
    <xs:attribute name="interface" type="xs:string"/>
    <xs:attribute name="port" type="xs:unsignedShort"/>
  </xs:complexType>
  <xs:complexType name="permission">
    <xs:attribute name="allow" type="truth"/>
  </xs:complexType>
  <xs:simpleType name="truth"><xs:restriction base="xs:string">
    <xs:enumeration value="true"/><xs:enumeration value="false"/>
    <xs:enumeration value="1"/><xs:enumeration value="0"/>
  </xs:restriction></xs:simpleType>
  <xs:simpleType name="scope"><xs:restriction base="xs:string">
    <xs:enumeration value="context"/><xs:enumeration value="source"/><xs:enumeration value="receiver"/>
  </xs:restriction></xs:simpleType>
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

_NO_ROUTERS = "there are no routers"
_TABLES = "tables grow as needed"
UNUSED = {
    "route-state-lifetime": _NO_ROUTERS,
    "context-name-state-lifetime": "services know no names of stores",
    "otidmap": _TABLES,
    "topicmap": _TABLES,
    "routemap": _TABLES,
    "namemap": _TABLES,
    "clientactor": "one thread serves all clients",
}
"""Elements that are accepted without effect, each with the reason for its notice."""

_SECTIONS = {
    "daemon/pid-file": "daemon",
    "srs/*": "srs",
    "debug-monitor/*": "daemon.debug-monitor",
    "daemon-monitor/monitor-format": "daemon.monitor",
    "daemon-monitor/ping-interval": "daemon.monitor",
    "daemon-monitor/publish-connection-events": "daemon.monitor",
    "daemon-monitor/remote-snapshot-request": "daemon.monitor",
    "daemon-monitor/remote-config-changes-request": "daemon.monitor",
    "daemon-monitor/publishing-interval/*": "daemon.monitor.publishing-intervals",
}
_TRUTH = {"true": "1", "false": "0"}


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
    for query, section in _SECTIONS.items():
        for element in root.iterfind(query):
            name, value = str(element.tag), element.get("allow", text_of(element))
            if name in UNUSED:
                found.notice(place_of(element), f"{name} has no effect: {UNUSED[name]}")
                continue
            of = section
            if name == "default":
                name, of = "publishing-interval", "daemon.monitor"
            config = found.configured(config, OPTIONS[of], name, _TRUTH.get(value, value), place_of(element))
    for element in root.iterfind("debug-monitor"):
        for name, value in attributes_of(element).items():
            options = OPTIONS["daemon.debug-monitor"]
            config = found.configured(config, options, name, _TRUTH.get(value, value), place_of(element))
    config = _publishing(root, config, found)
    found.check(str(path))
    return noticed(config, found)


def _publishing(root: Element, config: SrsConfig, found: ConfigFindings) -> SrsConfig:
    """Return the configuration with the topic of the statistics, and the options of the context that publishes."""
    for element in root.iterfind("daemon-monitor[@topic]"):
        topic = element.get("topic", "")
        config = found.configured(config, OPTIONS["daemon.monitor"], "topic", topic, place_of(element))
    for element in root.iterfind("daemon-monitor/lbm-attributes/option"):
        line = element.sourceline or 0
        setting = Setting(element.get("scope", ""), element.get("name", "").lower(), element.get("value", ""), line)
        config = with_option(config, setting, place_of(element), found)
    return config
