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
BRIDGED = 0x6558
"""The ethertype of a whole Ethernet frame in a tunnel."""
_PPPOE, _PPPOE_HEAD = 0x8864, 6
"""The ethertype of PPP, and the bytes before it."""
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_FAMILIES = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
"""Versions of IP by address family; systems number IPv6 differently."""
_MPLS = frozenset({0x8847, 0x8848})
_BOTTOM = 1
"""The bit in the third byte of an MPLS label that no label follows."""
MAX_TAGS = 32
"""VLAN tags or MPLS labels before a packet that are skipped."""


def ipv4_packet(link: int, octets: bytes) -> bytes | None:
    packet = _packet(link, octets)
    return packet if packet and packet[0] >> 4 == 4 else None


def is_ipv6(link: int, octets: bytes) -> bool:
    packet = _packet(link, octets)
    return bool(packet) and packet[0] >> 4 == 6


def _packet(link: int, octets: bytes) -> bytes:
    taker = _TAKERS.get(link)
    return taker(octets) if taker else b""


def _of_version(version: int | None, packet: bytes) -> bytes:
    return packet if packet and packet[0] >> 4 == version else b""


def is_read(link: int) -> bool:
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


def _behind_tags(octets: bytes, at: int, labelled: bool = False) -> bytes:
    """Return the IP packet after the ethertype at `at`, its VLAN tags, and labels unless it is `labelled` already."""
    kind = int.from_bytes(octets[at : at + 2])
    for _ in range(MAX_TAGS):
        if kind not in _VLAN_TAGS:
            break
        at += 4
        kind = int.from_bytes(octets[at : at + 2])
    if kind == _PPPOE:
        return _ppp(octets[at + 2 + _PPPOE_HEAD :])
    if kind in _MPLS and not labelled:
        return _behind_labels(octets, at + 2)
    return _of_version(_ETHERTYPES.get(kind), octets[at + 2 :])


def _behind_labels(octets: bytes, at: int) -> bytes:
    """Return the IP packet after MPLS labels, or the one in an Ethernet frame behind a control word."""
    for _ in range(MAX_TAGS):
        label, at = octets[at : at + 4], at + 4
        if len(label) < 4:
            return b""
        if label[2] & _BOTTOM:
            break
    if octets[at : at + 1] and octets[at] >> 4 == 0:  # its type follows two addresses
        return _behind_tags(octets, at + 16, labelled=True)
    return octets[at:]


def behind_type(kind: int, octets: bytes) -> bytes:
    """Return the IPv4 packet after an ethertype, or nothing. A whole Ethernet frame has a type of its own, too."""
    packet = _ethernet(octets) if kind == BRIDGED else _behind_tags(kind.to_bytes(2) + octets, 0)
    return packet if packet and packet[0] >> 4 == 4 else b""


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
