"""Multicast sockets, for LBT-RM and for topic resolution: one that joins a group, and one that sends to groups."""

import errno
import socket
import sys

import attrs

from stablecast.runtime import datagrams, machine
from stablecast.runtime.address import check_ip
from stablecast.runtime.ports import PortError
from stablecast.text import refusal

NAK_PORTS = (14390, 14399)
"""Ports at which sources receive NAKs (transport_lbtrm_source_port_low, _high)."""

DEFAULT_GROUPS = tuple(f"224.10.10.{place}" for place in range(10, 15))
"""Groups of LBT-RM (transport_lbtrm_multicast_address_low to _high)."""

DEFAULT_PORT = 14400
"""Port of the groups of LBT-RM (transport_lbtrm_destination_port)."""

HOPS = 16
"""Time to live of datagrams to a group, in routers."""

_MULTICAST_ALL = 49
"""Linux's IP_MULTICAST_ALL, which Python does not name."""


@attrs.frozen
class MulticastSettings:
    """Multicast resolution of a context: it reads the group at `group:port` and sends to `outgoing`.

    Attributes:
        group: Group to read; 0.0.0.0: none.
        interface: `a.b.c.d`, `a.b.c.d/n`, a device or a host name; empty: the first that can multicast.
        outgoing: Address to send to, `ip:port`; empty: the group itself.
        ttl: Routers that a datagram may pass.
        loop: Whether other contexts of this host receive the datagrams.
        receive_buffer: Bytes that the kernel may hold for reading; 0: the system's size.
    """

    group: str = "224.9.10.11"
    port: int = 12_965
    interface: str = ""
    outgoing: str = ""
    ttl: int = HOPS
    loop: bool = True
    receive_buffer: int = datagrams.RECEIVE_BUFFER


def hearing(group: str, port: int, interface: str, receive_buffer: int = datagrams.RECEIVE_BUFFER) -> machine.Socket:
    """Return a socket that joined a group on one interface; other sockets of this host may join as well.

    It does not hear the group on the other interfaces, where other members have joined it. Raises PortError.
    """
    sock = datagrams.open_socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform == "linux":  # By default it gets what any member on this host joined, from any domain.
        sock.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    membership = socket.inet_aton(group) + socket.inet_aton(check_ip(interface))
    try:
        sock.bind((group, port))  # The group, not any address: other groups at this port are not ours.
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        sock.close()
        text = f"cannot join {group}:{port} on {interface}: {refusal(error)}"
        if error.errno == errno.EADDRINUSE:
            raise PortError(f"{text}; stop the program that holds the port for itself") from None
        raise PortError(f"{text}; give a group from 224.0.0.0 to 239.255.255.255 and an address of this host") from None
    return sock


def sending(interface: str, hops: int = HOPS, loop: bool = True) -> machine.Socket:
    """Return a socket that sends to groups through one interface, from a port of the system's choice.

    Raises PortError.
    """
    sock = datagrams.bind(check_ip(interface), 0)
    try:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, int(loop))
    except OSError as error:
        sock.close()
        raise PortError(f"cannot multicast from {interface}: {refusal(error)}; name another interface") from None
    return sock
