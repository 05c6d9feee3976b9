"""Multicast sockets: which interface, which group, and clear words when the network has none."""

import contextlib
import errno
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Sequence

import attrs

from stablecast.runtime.address import AddressError, check_ip
from stablecast.runtime.resolver_error import ResolverError

_SIOCGIFFLAGS = 0x8913
_SIOCGIFADDR = 0x8915
_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000
_REMEDY = "name one with resolver_multicast_interface, or use relays (resolver_unicast_daemon)"


@attrs.frozen
class MulticastSettings:
    """How a context uses multicast; the group is heard at `group:port` and spoken to at `outgoing`.

    Attributes:
        group: Group listened to; 0.0.0.0: do not listen.
        interface: `a.b.c.d`, `a.b.c.d/n`, a device or a host name; empty: the first that can multicast.
        outgoing: Where to send, `ip:port`; empty: to the group itself.
        ttl: Routers that a datagram may pass.
        loop: Whether other contexts of this host hear it.
        receive_buffer: Bytes that the kernel may hold for us.
    """

    group: str = "224.9.10.11"
    port: int = 12_965
    interface: str = ""
    outgoing: str = ""
    ttl: int = 16
    loop: bool = True
    receive_buffer: int = 8_388_608


@attrs.frozen
class Interface:
    """A device of this machine."""

    name: str
    address: str
    up: bool
    loopback: bool
    multicast: bool


def interfaces() -> list[Interface]:
    """The devices of this machine that have an IPv4 address, in the order of the system."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("16s24x", name.encode())
            with contextlib.suppress(OSError):  # A device without an address, or one that has just gone.
                address = socket.inet_ntoa(fcntl.ioctl(sock, _SIOCGIFADDR, request)[20:24])
                (flags,) = struct.unpack_from("H", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)
                up, loopback, multicast = (bool(flags & bit) for bit in (_UP, _LOOPBACK, _MULTICAST))
                found.append(Interface(name, address, up, loopback, multicast))
    return found


def choose(wanted: str, devices: Sequence[Interface]) -> str:
    """The address of the interface that is meant: an address, a CIDR, a device or a host name; empty: the first usable.

    Raises:
        ResolverError: If this machine has none like that.
    """
    wanted = wanted.strip('"')
    if wanted in ("", "0.0.0.0"):  # noqa: S104  the documented way to say nothing
        return _first(devices)
    for device in devices:
        if wanted in (device.name, device.address):
            return device.address
    network = _network(wanted)
    for device in devices:
        if ipaddress.IPv4Address(device.address) in network:
            return device.address
    known = ", ".join(f"{device.name} ({device.address})" for device in devices)
    raise ResolverError(f"no interface of this machine is '{wanted}': it has {known or 'none with an IPv4 address'}")


def _first(devices: Sequence[Interface]) -> str:
    for device in devices:
        if device.up and device.multicast and not device.loopback:
            return device.address
    raise ResolverError(f"no interface of this machine is up and can multicast: {_REMEDY}")


def _network(text: str) -> ipaddress.IPv4Network:
    host, _, bits = text.partition("/")
    try:
        try:
            address = check_ip(host)
        except AddressError:
            address = socket.gethostbyname(host)
        return ipaddress.IPv4Network(f"{address}/{bits or 32}", strict=False)
    except (OSError, ValueError):
        raise ResolverError(f"'{text}' is no interface: write an address, a.b.c.d/n, a device or a host name") from None


def sender(settings: MulticastSettings, interface: str) -> socket.socket:
    """The socket that everything is sent from, at a port of the system's choice. Raises ResolverError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, settings.ttl)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, int(settings.loop))
        sock.bind((interface, 0))
    except OSError as error:
        sock.close()
        raise ResolverError(f"cannot multicast from {interface}: {error.strerror}; {_REMEDY}") from error
    return sock


def member(settings: MulticastSettings, interface: str) -> socket.socket:
    """A socket that hears the group. Raises ResolverError."""
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        raise ResolverError(f"cannot open a socket: {error.strerror}; allow this process more open files") from error
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer)
        sock.bind((settings.group, settings.port))
        membership = socket.inet_aton(settings.group) + socket.inet_aton(interface)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        sock.close()
        where = f"the group {settings.group}:{settings.port} on {interface}"
        if error.errno == errno.EADDRINUSE:
            raise ResolverError(f"cannot join {where}: another program keeps the port for itself") from error
        raise ResolverError(f"cannot join {where}: {error.strerror}; {_REMEDY}") from error
    return sock
