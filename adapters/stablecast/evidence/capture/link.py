"""Link layers: the bytes before the IPv4 packet of a frame."""

from collections.abc import Callable

ETHERNET = 1
NULL = 0
LOOP = 108
RAW_IP = 101
PPP = 9
PPP_HDLC = 50
LINUX_COOKED = 113
LINUX_COOKED_2 = 276
IPV4 = 228
"""Link types of the registry."""
_ETHERTYPES = {0x0800: 4, 0x86DD: 6}
"""Versions of IP by ethertype."""
_PROTOCOLS = {0x0021: 4, 0x0057: 6}
"""Versions of IP by PPP protocol."""
_PPPOE, _PPPOE_HEAD = 0x8864, 6
"""The ethertype of PPP, and the bytes before it."""
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_FAMILIES = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
"""Versions of IP by address family; systems number IPv6 differently."""
MAX_TAGS = 4
"""VLAN tags before a packet that are skipped."""


def ipv4_packet(link: int, octets: bytes) -> bytes | None:
    """Return the IPv4 packet in a frame, or None."""
    packet = _packet(link, octets)
    return packet if packet and packet[0] >> 4 == 4 else None


def is_ipv6(link: int, octets: bytes) -> bool:
    """Return whether there is an IPv6 packet in a frame."""
    packet = _packet(link, octets)
    return bool(packet) and packet[0] >> 4 == 6


def _packet(link: int, octets: bytes) -> bytes:
    taker = _TAKERS.get(link)
    return taker(octets) if taker else b""


def _of_version(version: int | None, packet: bytes) -> bytes:
    return packet if packet and packet[0] >> 4 == version else b""


def is_read(link: int) -> bool:
    """Return whether frames of this link type can be read."""
    return link in _TAKERS


def _raw(octets: bytes) -> bytes:
    return octets


def _null(octets: bytes) -> bytes:
    """Read the address family in the byte order of the host."""
    family = int.from_bytes(octets[:4])
    swapped = int.from_bytes(octets[:4], "little")
    return _of_version(_FAMILIES.get(min(family, swapped)), octets[4:])


def _ppp(octets: bytes) -> bytes:
    """Read a PPP frame; address and control may be left out, and the first byte of the protocol."""
    at = 2 if octets[:2] == b"\xff\x03" else 0
    end = at + (1 if octets[at : at + 1] and octets[at] & 1 else 2)
    return _of_version(_PROTOCOLS.get(int.from_bytes(octets[at:end])), octets[end:])


def _ethernet(octets: bytes) -> bytes:
    return _behind_tags(octets, 12)


def _cooked(octets: bytes) -> bytes:
    return _behind_tags(octets, 14)


def _cooked_2(octets: bytes) -> bytes:
    kind = int.from_bytes(octets[:2])
    if kind in _VLAN_TAGS:  # the tag follows the header, and then comes the ethertype
        return _behind_tags(octets[:20] + octets[:2] + octets[20:], 20)
    return _of_version(_ETHERTYPES.get(kind), octets[20:])


def _behind_tags(octets: bytes, at: int) -> bytes:
    """Return the IP packet after the ethertype at `at` and its VLAN tags."""
    kind = int.from_bytes(octets[at : at + 2])
    for _ in range(MAX_TAGS):
        if kind not in _VLAN_TAGS:
            break
        at += 4
        kind = int.from_bytes(octets[at : at + 2])
    if kind == _PPPOE:
        return _ppp(octets[at + 2 + _PPPOE_HEAD :])
    return _of_version(_ETHERTYPES.get(kind), octets[at + 2 :])


_TAKERS: dict[int, Callable[[bytes], bytes]] = {
    NULL: _null,
    ETHERNET: _ethernet,
    PPP: _ppp,
    PPP_HDLC: _ppp,
    12: _raw,
    14: _raw,
    RAW_IP: _raw,
    LOOP: _null,
    LINUX_COOKED: _cooked,
    IPV4: _raw,
    LINUX_COOKED_2: _cooked_2,
}
"""Readers by link type; 12 and 14 are raw IP on some systems."""
