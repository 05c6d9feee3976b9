"""Packets inside of packets: GRE, IP in IP, VXLAN and GENEVE, which overlays and mirror ports use.

The outer packet says nothing about the protocol: its addresses are those of hosts or switches that carry others.
"""

from collections.abc import Callable, Mapping

from stablecast.evidence.capture.ip import UDP, IpPacket
from stablecast.evidence.capture.link import BRIDGED, behind_type

IP_IN_IP, GRE = 4, 47
"""Protocol numbers of an IPv4 header."""
VXLAN, GENEVE = 4789, 6081
"""Ports of UDP to which such datagrams go."""
MAX_TUNNELS = 4
"""Packets around a packet, at most."""

_UDP_HEAD = 8
_CHECKSUM, _KEY, _SEQUENCE, _ROUTING = 0x80, 0x20, 0x10, 0x40
"""Flags of GRE: fields that are there, and routing, which nobody uses."""
_ERSPAN, _ERSPAN_HEAD = 0x88BE, 8
"""The ethertype of mirrored frames in GRE, and the bytes before one if frames are numbered."""
_VXLAN_FLAGS, _VXLAN_HEAD = 0x08, 8
"""The only flag of VXLAN: it has a number of its network."""


def inner(packet: IpPacket) -> bytes:
    """Return the IPv4 packet inside of a whole packet, or nothing."""
    reader = _READERS.get(packet.protocol)
    return reader(packet.payload) if reader else b""


def _ip(octets: bytes) -> bytes:
    return behind_type(0x0800, octets)


def _gre(octets: bytes) -> bytes:
    if len(octets) < 4 or octets[1] & 0x07 or octets[0] & _ROUTING:
        return b""
    kind = int.from_bytes(octets[2:4])
    at = 4 + sum(4 for flag in (_CHECKSUM, _KEY, _SEQUENCE) if octets[0] & flag)
    if kind == _ERSPAN:
        return behind_type(BRIDGED, octets[at + (_ERSPAN_HEAD if octets[0] & _SEQUENCE else 0) :])
    return behind_type(kind, octets[at:])


def _udp(octets: bytes) -> bytes:
    """Return the packet in a datagram of an overlay; the source's port is any one."""
    port, body = int.from_bytes(octets[2:4]), octets[_UDP_HEAD:]
    if port == VXLAN and body[:1] == bytes((_VXLAN_FLAGS,)):
        return behind_type(BRIDGED, body[_VXLAN_HEAD:])
    if port == GENEVE and len(body) >= 8 and not body[0] >> 6:
        return behind_type(int.from_bytes(body[2:4]), body[8 + 4 * (body[0] & 0x3F) :])
    return b""


_READERS: Mapping[int, Callable[[bytes], bytes]] = {IP_IN_IP: _ip, GRE: _gre, UDP: _udp}
