"""Addresses of sources in other networks: domains, and rules between them (T-221).

An advertisement from one domain to another is rewritten by the rules of that pair. A rule replaces an address, with one
port or with any; the first matching rule applies. Everything else passes unchanged, and so do all queries, because they
hold no address (T28). The request address of a source is rewritten like the address of its data.
"""

import ipaddress
from collections.abc import Iterable

import attrs

from stablecast.transports.wire import lbmr

ANY_PORT = 0
"""In a rule: matches every port, and does not change it."""


@attrs.frozen
class AddressDomain:
    """Networks (`10.1.0.0/16`) in which addresses have the same meaning."""

    name: str
    networks: tuple[ipaddress.IPv4Network, ...]

    def holds(self, address: ipaddress.IPv4Address) -> bool:
        return any(address in network for network in self.networks)


@attrs.frozen
class AddressRule:
    """An address and its replacement; ports may be `ANY_PORT`."""

    address: str
    port: int
    new_address: str
    new_port: int

    def matches(self, address: str, port: int) -> bool:
        return address == self.address and self.port in (ANY_PORT, port)

    def apply(self, port: int) -> tuple[str, int]:
        return self.new_address, port if self.new_port == ANY_PORT else self.new_port


@attrs.frozen
class Transform:
    """The rules from one domain to another, by their names."""

    source: str
    destination: str
    rules: tuple[AddressRule, ...]


@attrs.frozen
class Translation:
    """All domains and rules of a relay; without any, nothing is rewritten."""

    domains: tuple[AddressDomain, ...] = ()
    transforms: tuple[Transform, ...] = ()

    def domain_of(self, client: str) -> str:
        """Return the name of the first domain that holds a client (`ip:port`); empty if none does."""
        address = ipaddress.IPv4Address(client.rpartition(":")[0])
        return next((domain.name for domain in self.domains if domain.holds(address)), "")

    def rules(self, source: str, destination: str) -> tuple[AddressRule, ...]:
        transforms = (t for t in self.transforms if (t.source, t.destination) == (source, destination))
        return tuple(rule for transform in transforms for rule in transform.rules)


def rewritten(packet: lbmr.Packet, rules: Iterable[AddressRule]) -> lbmr.Packet:
    """Return the packet with its addresses rewritten, or the same object if no rule applies."""
    rules = tuple(rules)
    tirs = tuple(_rewritten(tir, rules) for tir in packet.advertisements)
    return packet if tirs == packet.advertisements else attrs.evolve(packet, advertisements=tirs)


def _rewritten(tir: lbmr.Advertisement, rules: tuple[AddressRule, ...]) -> lbmr.Advertisement:
    transport = tir.transport
    if isinstance(transport, lbmr.TcpTransport | lbmr.LbtruTransport):
        address, port = _translated(transport.address, transport.port, rules)
        transport = attrs.evolve(transport, address=address, port=port)
    return attrs.evolve(tir, transport=transport, options=tuple(_option(option, rules) for option in tir.options))


def _option(option: lbmr.TirOption, rules: tuple[AddressRule, ...]) -> lbmr.TirOption:
    if not isinstance(option, lbmr.ExtendedFunctionality):
        return option
    address, port = _translated(option.source_address, option.source_port, rules)
    return attrs.evolve(option, source_address=address, source_port=port)


def _translated(address: str, port: int, rules: tuple[AddressRule, ...]) -> tuple[str, int]:
    found = next((rule for rule in rules if rule.matches(address, port)), None)
    return (address, port) if found is None else found.apply(port)
