"""Link layers: what stands before the IPv4 packet of a frame."""

from collections.abc import Callable

ETHERNET = 1
NULL = 0
LOOP = 108
RAW_IP = 101
LINUX_COOKED = 113
LINUX_COOKED_2 = 276
IPV4 = 228
_ETHERTYPE_IPV4 = 0x0800
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_AF_INET = 2
MAX_TAGS = 4
"""VLAN tags before a packet that are passed over."""


def ipv4_packet(link: int, octets: bytes) -> bytes | None:
    """The IPv4 packet in a frame, or None if there is none or the link type is not read."""
    taker = _TAKERS.get(link)
    packet = taker(octets) if taker else b""
    return packet if packet and packet[0] >> 4 == 4 else None


def is_read(link: int) -> bool:
    """Whether frames of this link type can be read."""
    return link in _TAKERS


def _raw(octets: bytes) -> bytes:
    return octets


def _null(octets: bytes) -> bytes:
    """The address family stands in the byte order of the host."""
    family = octets[:4]
    return octets[4:] if _AF_INET in {int.from_bytes(family), int.from_bytes(family, "little")} else b""


def _ethernet(octets: bytes) -> bytes:
    return _behind_tags(octets, 12)


def _cooked(octets: bytes) -> bytes:
    return _behind_tags(octets, 14)


def _cooked_2(octets: bytes) -> bytes:
    kind = int.from_bytes(octets[:2])
    if kind in _VLAN_TAGS:  # the tag follows the header, and then comes the ethertype
        return _behind_tags(octets[:20] + octets[:2] + octets[20:], 20)
    return octets[20:] if kind == _ETHERTYPE_IPV4 else b""


def _behind_tags(octets: bytes, at: int) -> bytes:
    """What follows an ethertype at `at` and the VLAN tags behind it, if that is IPv4."""
    kind = int.from_bytes(octets[at : at + 2])
    for _ in range(MAX_TAGS):
        if kind not in _VLAN_TAGS:
            break
        at += 4
        kind = int.from_bytes(octets[at : at + 2])
    return octets[at + 2 :] if kind == _ETHERTYPE_IPV4 else b""


_TAKERS: dict[int, Callable[[bytes], bytes]] = {
    NULL: _null,
    ETHERNET: _ethernet,
    12: _raw,
    14: _raw,
    RAW_IP: _raw,
    LOOP: _null,
    LINUX_COOKED: _cooked,
    IPV4: _raw,
    LINUX_COOKED_2: _cooked_2,
}
"""By link type; 12 and 14 are raw IP on some systems."""
