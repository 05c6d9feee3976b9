"""The configuration of a service in its documented XML form; what it means is said by the same names in `config`."""

from io import BytesIO
from pathlib import Path
from typing import Any

from lxml import etree

from stablecast.config import xml_reader
from stablecast.config.xml_reader import fail, text_of
from stablecast.resolver.srs.config import SrsConfig, SrsConfigError, parse

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
        <xs:attribute name="type">
          <xs:simpleType>
            <xs:restriction base="xs:string">
              <xs:enumeration value="console"/><xs:enumeration value="file"/>
            </xs:restriction>
          </xs:simpleType>
        </xs:attribute>
        <xs:attribute name="frequency">
          <xs:simpleType>
            <xs:restriction base="xs:string">
              <xs:enumeration value="disable"/><xs:enumeration value="daily"/><xs:enumeration value="hourly"/>
            </xs:restriction>
          </xs:simpleType>
        </xs:attribute>
        <xs:attribute name="size" type="count"/>
        <xs:attribute name="max-history" type="count"/>
        <xs:attribute name="total-size-cap" type="count"/>
        <xs:attribute name="compression">
          <xs:simpleType>
            <xs:restriction base="xs:string">
              <xs:enumeration value="none"/><xs:enumeration value="zip"/><xs:enumeration value="gzip"/>
            </xs:restriction>
          </xs:simpleType>
        </xs:attribute>
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
</xs:schema>
"""
"""What a file may say, as `--dump-xsd` shows it."""

UNUSED = ("route-state-lifetime", "context-name-state-lifetime", "application-id")
"""Taken, and without effect: there are no routers and no store names here."""


def load_xml(path: Path) -> SrsConfig:
    """Reads an XML file.

    Raises:
        XmlConfigError: If it is no XML, not as the schema says, or has a wrong value; line and element are named.
        OSError: If it cannot be read.
    """
    root = xml_reader.read(path, etree.XMLSchema(etree.parse(BytesIO(XSD.encode()))))
    daemon: dict[str, Any] = {}
    for element in root.iterfind("daemon/log"):
        daemon["log"] = _log(element)
        _check(path, element, {"daemon": daemon})
    for element in root.iterfind("daemon/pid-file"):
        daemon["pid-file"] = text_of(element)
        _check(path, element, {"daemon": daemon})
    for element in root.iterfind("daemon-monitor/publishing-interval/default"):
        daemon["monitor"] = {"publishing-interval": int(text_of(element))}
        _check(path, element, {"daemon": daemon})
    service: dict[str, Any] = {}
    for element in root.iterfind("srs/*"):
        if element.tag not in UNUSED:
            text = text_of(element)
            service[element.tag] = text if element.tag == "interface" else int(text)
            _check(path, element, {"srs": service})
    return parse({"daemon": daemon, "srs": service})


def _log(element: Any) -> dict[str, Any]:
    values = {name: int(value) if value.isdecimal() else value for name, value in element.attrib.items()}
    name = text_of(element)
    return {**values, "name": name} if name else values


def _check(path: Path, element: Any, tables: dict[str, Any]) -> None:
    """So that what is wrong is found where it stands."""
    try:
        parse(tables)
    except SrsConfigError as error:
        raise fail(path, element, str(error)) from error
