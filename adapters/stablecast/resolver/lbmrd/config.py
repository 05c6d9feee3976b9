"""The configuration of a relay: its documented XML file, and the domains and rules in it (T-221, T-222)."""

import ipaddress
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
from lxml import etree

from stablecast.config import xml_reader
from stablecast.config.xml_reader import XmlConfigError, fail, text_of
from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime.address import MAX_PORT, AddressError, check_ip
from stablecast.runtime.resolution_group import choose, interfaces
from stablecast.transports.resolution.udp.address_translation import (
    ANY_PORT,
    AddressDomain,
    AddressRule,
    Transform,
    Translation,
)
from stablecast.transports.resolution.udp.relay import RelayConfig

MAX_MILLISECONDS = 0xFFFF_FFFF
MAX_BUFFER = 1 << 30
OCTETS = 4

DTD = """\
<!ELEMENT lbmrd (daemon?, domains, transformations)>
<!ATTLIST lbmrd version CDATA #REQUIRED>
<!ELEMENT daemon (activity | interface | port | ttl | log
    | resolver_unicast_receiver_socket_buffer | resolver_unicast_send_socket_buffer)*>
<!ELEMENT activity (#PCDATA)>
<!ELEMENT interface (#PCDATA)>
<!ELEMENT port (#PCDATA)>
<!ELEMENT ttl (#PCDATA)>
<!ELEMENT log (#PCDATA)>
<!ELEMENT resolver_unicast_receiver_socket_buffer (#PCDATA)>
<!ELEMENT resolver_unicast_send_socket_buffer (#PCDATA)>
<!ELEMENT domains (domain+)>
<!ELEMENT domain (network+)>
<!ATTLIST domain name ID #REQUIRED>
<!ELEMENT network (#PCDATA)>
<!ELEMENT transformations (transform+)>
<!ELEMENT transform (rule+)>
<!ATTLIST transform source IDREF #REQUIRED destination IDREF #REQUIRED>
<!ELEMENT rule (match, replace)>
<!ELEMENT match EMPTY>
<!ATTLIST match address CDATA #REQUIRED port CDATA "*">
<!ELEMENT replace EMPTY>
<!ATTLIST replace address CDATA #REQUIRED port CDATA "*">
"""
"""What a file may say, as `--dump-dtd` shows it."""


@attrs.frozen
class LbmrdConfig:
    """Where a relay listens, how long it remembers clients, where it logs.

    Attributes:
        interface: Address of this host.
        activity: Milliseconds between looks at silent clients.
        ttl: Milliseconds of silence after which a client is forgotten.
        log: A file; None: standard output.
        receive_buffer: Bytes that the kernel may hold for us; `send_buffer` for others.
    """

    interface: str = "127.0.0.1"
    port: int = 15_380
    activity: int = 60_000
    ttl: int = 60_000
    log: Path | None = None
    receive_buffer: int = 1_048_576
    send_buffer: int = 1_048_576
    translation: Translation = Translation()

    def relay(self) -> RelayConfig:
        """The configuration of the machine."""
        return RelayConfig(self.ttl * MILLISECOND, self.activity * MILLISECOND, translation=self.translation)


def load(path: Path) -> LbmrdConfig:
    """Reads a configuration file.

    Raises:
        XmlConfigError: If it is no XML, not as the DTD says, or has a wrong value.
        OSError: If it cannot be read.
    """
    root = xml_reader.read(path, etree.DTD(StringIO(DTD)))
    if root.get("version") != "1.0":
        raise fail(path, root, f"version {root.get('version')!r} is not '1.0'")
    values: dict[str, Any] = {}
    for element in root.iterfind("daemon/*"):
        name, value = _daemon_value(path, element)
        values[name] = value
    domains = tuple(_domain(path, element) for element in root.iterfind("domains/domain"))
    transforms = tuple(_transform(path, element) for element in root.iterfind("transformations/transform"))
    return LbmrdConfig(**values, translation=Translation(domains, transforms))


def interface_of(text: str) -> str:
    """The address that is meant by an address, a network or a device. Raises ResolverError."""
    try:
        return check_ip(text)
    except AddressError:
        return choose(text, interfaces())


def _daemon_value(path: Path, element: Any) -> tuple[str, Any]:
    text = text_of(element)
    match element.tag:
        case "interface":
            return "interface", xml_reader.checked(path, element, interface_of, text)
        case "port":
            return "port", xml_reader.whole(path, element, 0, MAX_PORT)
        case "log":
            if not text:
                raise fail(path, element, "it is empty: name a file, or leave the element out")
            return "log", Path(text)
        case "activity" | "ttl":
            return element.tag, xml_reader.whole(path, element, 1, MAX_MILLISECONDS)
        case "resolver_unicast_receiver_socket_buffer":
            return "receive_buffer", xml_reader.whole(path, element, 0, MAX_BUFFER)
        case _:
            return "send_buffer", xml_reader.whole(path, element, 0, MAX_BUFFER)


def _domain(path: Path, element: Any) -> AddressDomain:
    networks = (xml_reader.checked(path, one, _network, text_of(one)) for one in element.iterfind("network"))
    return AddressDomain(element.get("name"), tuple(networks))


def _network(text: str) -> ipaddress.IPv4Network:
    """`10.1.0.0/16`, and `192.168.1/24` as the documentation writes it."""
    host, slash, bits = text.partition("/")
    missing = OCTETS - len(host.split("."))
    try:
        return ipaddress.IPv4Network(f"{host}{'.0' * missing}{slash}{bits}", strict=False)
    except ValueError:
        raise XmlConfigError(f"'{text}' is no network: write a.b.c.d/n") from None


def _transform(path: Path, element: Any) -> Transform:
    source, destination = element.get("source"), element.get("destination")
    if source == destination:
        raise fail(path, element, f"source and destination are both '{source}'")
    return Transform(source, destination, tuple(_rule(path, rule) for rule in element.iterfind("rule")))


def _rule(path: Path, element: Any) -> AddressRule:
    (address, port), (new_address, new_port) = (_place(path, element.find(tag)) for tag in ("match", "replace"))
    return AddressRule(address, port, new_address, new_port)


def _place(path: Path, element: Any) -> tuple[str, int]:
    address = xml_reader.checked(path, element, check_ip, element.get("address"))
    text = element.get("port", "*")
    if text == "*":
        return address, ANY_PORT
    if not text.isdecimal() or not 0 < int(text) <= MAX_PORT:
        raise fail(path, element, f"port '{text}' is neither * nor a number from 1 to {MAX_PORT}")
    return address, int(text)
