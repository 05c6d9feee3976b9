"""The network interfaces of this host, and the address that a setting selects (P-810)."""

import contextlib
import errno
import ipaddress
from collections.abc import Iterable, Sequence

import attrs

from stablecast.core.errors import StablecastError
from stablecast.runtime import machine
from stablecast.runtime.address import HOST, AddressError, check_ip, is_ip6, join, parse_place
from stablecast.transports.codec.domains import join_domain, split_domain

LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"  # noqa: S104 - the documented default of a store's interface
_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000


class InterfaceError(StablecastError):
    """No interface of this host matches; the message names the interfaces of this host."""


@attrs.frozen
class Interface:
    """A network device of this host and its IPv4 address."""

    name: str
    address: str
    up: bool
    loopback: bool
    multicast: bool


def interfaces() -> list[Interface]:
    """Return the devices of this host that have an IPv4 address, in the order of the system."""
    found = []
    for name, address, flags in machine.network.devices():
        up, loopback, multicast = (bool(flags & bit) for bit in (_UP, _LOOPBACK, _MULTICAST))
        found.append(Interface(name, address, up, loopback, multicast))
    return found


def choose(text: str) -> str:
    """Return the address to listen at: an address as it is, or the one of a range, device or host name of this host.

    Raises:
        InterfaceError: The text is none of these, or no address of this host matches.
    """
    if HOST.fullmatch(text):
        return choose_device(text, interfaces())
    try:
        if "/" not in text:
            return str(ipaddress.IPv4Address(text))
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        remedy = "write an IPv4 address, or a range like 10.29.3.16/25"
        raise InterfaceError(f"'{text}' is not an interface: {remedy}") from None
    return _in_network(text, network, interfaces())


def choose_device(wanted: str, devices: Sequence[Interface]) -> str:
    """Return the address of the interface that an address, a range, a device or a host name selects.

    An empty text or 0.0.0.0 selects the first interface that is up and can multicast. Raises InterfaceError.
    """
    wanted = wanted.strip('"')
    if wanted in ("", ANY):
        return _first_multicast(devices)
    for device in devices:
        if wanted in (device.name, device.address):
            return device.address
    host, _, bits = wanted.partition("/")
    try:
        network = ipaddress.IPv4Network(f"{_resolved(host)}/{bits or 32}", strict=False)
    except (OSError, ValueError):
        remedy = "write an address, a.b.c.d/n, a device or a host name"
        raise InterfaceError(f"'{wanted}' is not an interface: {remedy}") from None
    return _in_network(wanted, network, devices)


def address_of(text: str) -> str:
    """Return an address as it is, or the address of the device, range or host name. Raises InterfaceError."""
    try:
        return check_ip(text)
    except AddressError:
        return choose_device(text, interfaces())


def check_local(text: str) -> None:
    """Raise InterfaceError unless this host has the IPv4 address or the host name; an IPv6 address is not looked up."""
    host = text.strip("[]")
    if not is_ip6(host) and host != ANY and not host.startswith("127."):
        choose_device(host, interfaces())


def facing(peers: Iterable[str]) -> str:
    """Return the address of this host from which packets to the first known peer leave; 127.0.0.1 without one.

    Peers are texts `host:port`. A name that cannot be resolved, or an address without a route, is passed over.
    """
    for peer in peers:
        host, _, _ = peer.rpartition(":")
        if is_ip6(host):
            return announced(ANY)  # Peers need an IPv4 address, and no route leads from it to this one.
        with contextlib.suppress(OSError):
            return machine.network.route(_resolved(host))
    return LOOPBACK


def resolved_place(text: str) -> str:
    """Return `ip:port` of a place `ip:port` or `host:port`, in the same domain; this may block.

    Raises AddressError for an unknown host.
    """
    domain, place = split_domain(text)
    host, port = parse_place(place)
    try:
        return join_domain(domain, join(_resolved(host), port))
    except OSError as error:
        remedy = "correct the host name, or write ip:port"
        raise AddressError(f"'{text}' has no address ({error.strerror}): {remedy}") from None


def has_address(host: str) -> bool:
    """Return whether this host has an IPv4 address now, also one that is no device's first."""
    try:
        if any(device.address == host for device in interfaces()):
            return True
        probe = machine.network.datagram()
    except OSError:  # No descriptor is free, which says nothing about the address.
        return True
    try:
        probe.bind((host, 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    finally:
        probe.close()
    return True


def announced(host: str) -> str:
    """Return the address at which others reach a listener: for all interfaces, the first that is no loopback."""
    if host != ANY:
        return host
    return next((one.address for one in interfaces() if not one.loopback), LOOPBACK)


def _in_network(text: str, network: ipaddress.IPv4Network, devices: Sequence[Interface]) -> str:
    for device in devices:
        if ipaddress.IPv4Address(device.address) in network:
            return device.address
    known = ", ".join(f"{device.name} ({device.address})" for device in devices)
    raise InterfaceError(f"no interface of this host matches '{text}': it has {known or 'none with an IPv4 address'}")


def _first_multicast(devices: Sequence[Interface]) -> str:
    for device in devices:
        if device.up and device.multicast and not device.loopback:
            return device.address
    remedy = "name one with resolver_multicast_interface, or use relays (resolver_unicast_daemon)"
    raise InterfaceError(f"no interface of this host is up and can multicast: {remedy}")


def _resolved(host: str) -> str:
    try:
        return check_ip(host)
    except AddressError:
        return machine.network.resolve(host)
