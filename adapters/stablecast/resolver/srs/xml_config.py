"""The documented XML form of a service's configuration; `config` has the options with their names."""

from pathlib import Path

from stablecast.config.findings import ConfigFindings
from stablecast.config.xml_reader import NamedSchema, attributes_of, place_of, text_of
from stablecast.config.xml_reader import load as load_file
from stablecast.resolver.srs.config import OPTIONS, SrsConfig, with_log

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
