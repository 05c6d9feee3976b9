"""The configuration of a relay: its documented XML file, with its domains and rules (T-221, T-222)."""

import ipaddress
from io import StringIO
from pathlib import Path

import attrs
from lxml import etree

from stablecast.config.findings import ConfigFindings, ConfigProblem
from stablecast.config.option import option_field, options_of
from stablecast.config.option_kinds import PORT, NumberKind, TextKind
from stablecast.config.xml_reader import Element, place_of, text_of
from stablecast.config.xml_reader import load as load_xml
from stablecast.core.machine.units import MILLISECOND
from stablecast.runtime import machine
from stablecast.runtime.address import MAX_PORT, AddressError, check_ip
from stablecast.runtime.interfaces import address_of
from stablecast.transports.resolution.udp import address_translation
from stablecast.transports.resolution.udp.relay import RelayConfig

OCTETS = 4
SPAN = NumberKind(1, 0xFFFF_FFFF, "ms")
BUFFER = NumberKind(0, 1 << 30, "bytes")
DTD = machine.installed_file(Path(__file__).with_name("lbmrd.dtd")).decode()
"""The document type of the file, which `--dump-dtd` prints."""


@attrs.frozen
class LbmrdConfig:
    """The configuration of a relay.

    Attributes:
        translation: Domains and the addresses that are translated between them.
        notices: Notices about the file.
    """

    interface: str = option_field(
        "interface", TextKind("a.b.c.d[/n], device", address_of), "address of this host to listen at", "127.0.0.1"
    )
    port: int = option_field("port", PORT, "port to listen at", 15_380)
    activity: int = option_field("activity", SPAN, "time between checks for silent clients", 60_000)
    ttl: int = option_field("ttl", SPAN, "silence after which a client is forgotten", 60_000)
    log: Path | None = option_field("log", TextKind("path", Path), "file for log lines; None: standard output", None)
    receive_buffer: int = option_field(
        "resolver_unicast_receiver_socket_buffer", BUFFER, "receive buffer; 0: the system's size", 1_048_576
    )
    send_buffer: int = option_field(
        "resolver_unicast_send_socket_buffer", BUFFER, "send buffer; 0: the system's size", 1_048_576
    )
    translation: address_translation.Translation = address_translation.Translation()
    notices: tuple[ConfigProblem, ...] = ()

    @property
    def late(self) -> str:
        """Return what is wrong with the times together; empty: nothing."""
        if self.ttl >= self.activity:
            return ""
        return f"the relay looks for silent clients only every {self.activity} ms: set activity below ttl {self.ttl}"

    def relay(self) -> RelayConfig:
        return RelayConfig(self.ttl * MILLISECOND, self.activity * MILLISECOND, translation=self.translation)


OPTIONS = options_of(LbmrdConfig)


def load(path: Path, *, here: bool = True) -> LbmrdConfig:
    """Read a configuration file; `here` is false for one of another host, whose interface may lack here.

    Raises:
        ConfigFileError: It is no XML, does not follow the DTD, or has a wrong value.
        OSError: It cannot be read.
    """
    root, found = load_xml(path, etree.DTD(StringIO(DTD))), ConfigFindings(here=here)
    if root.get("version") != "1.0":
        found.problem(place_of(root), f"version {root.get('version')!r} is not '1.0'")
    config = LbmrdConfig()
    for element in root.iterfind("daemon/*"):
        config = found.configured(config, OPTIONS, str(element.tag), text_of(element), place_of(element))
    domains = tuple(_domain(element, found) for element in root.iterfind("domains/domain"))
    for element, one in zip(root.iterfind("domains/domain"), domains, strict=True):
        _apart(element, one, domains, found)
    made = (_transform(element, found) for element in root.iterfind("transformations/transform"))
    translation = address_translation.Translation(domains, tuple(one for one in made if one is not None))
    found.check(str(path))
    notices = (attrs.evolve(one, place=attrs.evolve(one.place, path=str(path))) for one in found.notices)
    return attrs.evolve(config, translation=translation, notices=tuple(notices))


def _apart(
    element: Element,
    domain: address_translation.AddressDomain,
    domains: tuple[address_translation.AddressDomain, ...],
    found: ConfigFindings,
) -> None:
    """Report networks that a later domain has, too: an address belongs to one domain."""
    for other in domains[domains.index(domain) + 1 :]:
        for network in domain.networks:
            if (shared := next((one for one in other.networks if one.overlaps(network)), None)) is not None:
                text = f"network {network} overlaps {shared} of domain '{other.name}': an address lies in one domain"
                found.problem(place_of(element), text)


def _domain(element: Element, found: ConfigFindings) -> address_translation.AddressDomain:
    networks = (
        found.attempt(place_of(one), None, lambda one=one: _network(text_of(one)))  # type: ignore[misc]
        for one in element.iterfind("network")
    )
    return address_translation.AddressDomain(
        element.get("name", ""), tuple(network for network in networks if network is not None)
    )


def _network(text: str) -> ipaddress.IPv4Network:
    """Parse `10.1.0.0/16`, or `192.168.1/24` as the documentation writes it."""
    host, slash, bits = text.partition("/")
    missing = OCTETS - len(host.split("."))
    try:
        return ipaddress.IPv4Network(f"{host}{'.0' * missing}{slash}{bits}", strict=False)
    except ValueError:
        raise AddressError(f"'{text}' is not a network: write a.b.c.d/n") from None


def _transform(element: Element, found: ConfigFindings) -> address_translation.Transform | None:
    """Return a translation; None for one within a domain, the documented form of a file that translates nothing."""
    source, destination = element.get("source", ""), element.get("destination", "")
    rules = tuple(_rule(rule, found) for rule in element.iterfind("rule"))
    if source == destination:
        found.notice(place_of(element), f"no address is translated within the domain '{source}'")
        return None
    return address_translation.Transform(source, destination, rules)


def _rule(element: Element, found: ConfigFindings) -> address_translation.AddressRule:
    (match,), (replace,) = element.findall("match"), element.findall("replace")
    return address_translation.AddressRule(*_endpoint(match, found), *_endpoint(replace, found))


def _endpoint(element: Element, found: ConfigFindings) -> tuple[str, int]:
    address, port = element.get("address", ""), element.get("port", "*")
    number = (
        address_translation.ANY_PORT
        if port == "*"
        else found.number(port, 0, MAX_PORT, place_of(element), "port, unless it is *,")
    )
    return found.attempt(place_of(element), address, lambda: check_ip(address)), number
