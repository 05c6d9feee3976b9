"""Sockets of LBT-RM: for a group's data, for sending to groups, and for NAKs."""

import socket
import struct

from stablecast.runtime import datagrams
from stablecast.runtime.address import check_ip
from stablecast.runtime.ports import PortError

NAK_PORTS = (14390, 14399)
"""Where sources take NAKs (transport_lbtrm_source_port_low, _high)."""

DEFAULT_GROUPS = tuple(f"224.10.10.{place}" for place in range(10, 15))
"""transport_lbtrm_multicast_address_low to _high."""

DEFAULT_PORT = 14400
"""transport_lbtrm_destination_port."""

HOPS = 16
"""Time to live of what is sent to a group."""

_MEMBERSHIP = struct.Struct("4s4s")


def hearing(group: str, port: int, interface: str) -> socket.socket:
    """A socket that hears a group on one interface; others on this host may hear it too. Raises PortError."""
    sock = datagrams.open_socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, datagrams.RECEIVE_BUFFER)
    membership = _MEMBERSHIP.pack(socket.inet_aton(group), socket.inet_aton(check_ip(interface)))
    try:
        sock.bind((group, port))  # The group, not any address: other groups at this port are not ours.
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        sock.close()
        text = f"cannot join {group}:{port} on {interface}: {error.strerror}"
        raise PortError(f"{text}; give a group from 224.0.0.0 to 239.255.255.255 and an address of this host") from None
    return sock


def sending(interface: str, hops: int = HOPS) -> socket.socket:
    """A socket that sends to groups through one interface, from a port of the system's choice. Raises PortError."""
    sock = datagrams.bind(check_ip(interface), 0)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    return sock
