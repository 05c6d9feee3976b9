"""Writes packet captures: raw IPv4 packets, as the product's own look (TTL 16, do not fragment)."""

import struct
from pathlib import Path

Address = tuple[str, int]
"""IPv4 address and port."""

RAW_IP = 101
"""Link type of packets that start with their IP header."""
MAX_PACKET = 262_144
_UDP, _TCP = 17, 6


class Capture:
    """Packets in the order in which they are added; TCP numbers count themselves."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []
        self._next: dict[tuple[Address, Address], int] = {}

    def udp(self, source: Address, target: Address, payload: bytes) -> None:
        """Adds one datagram."""
        head = struct.pack(">HHH", source[1], target[1], 8 + len(payload))
        check = _sum(_pseudo(source, target, _UDP, 8 + len(payload)) + head + b"\0\0" + payload) or 0xFFFF
        self._ip(source, target, _UDP, head + struct.pack(">H", check) + payload)

    def tcp(self, source: Address, target: Address, payload: bytes) -> None:
        """Adds one segment of the stream from `source` to `target`."""
        sent = self._next.setdefault((source, target), 1)
        acknowledged = self._next.setdefault((target, source), 1)
        self._next[source, target] = sent + len(payload)
        head = struct.pack(">HHIIBBH", source[1], target[1], sent, acknowledged, 0x50, 0x18, 65_535)
        check = _sum(_pseudo(source, target, _TCP, 20 + len(payload)) + head + b"\0\0\0\0" + payload)
        self._ip(source, target, _TCP, head + struct.pack(">HH", check, 0) + payload)

    def write(self, path: Path) -> None:
        """Writes the capture file, one packet a second."""
        lines = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, MAX_PACKET, RAW_IP)]
        for second, packet in enumerate(self.packets):
            lines.append(struct.pack("<IIII", 1_700_000_000 + second, 0, len(packet), len(packet)) + packet)
        path.write_bytes(b"".join(lines))

    def _ip(self, source: Address, target: Address, protocol: int, body: bytes) -> None:
        head = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(body), len(self.packets) & 0xFFFF, 0x4000, 16, protocol)
        addresses = _octets(source[0]) + _octets(target[0])
        check = _sum(head + b"\0\0" + addresses)
        self.packets.append(head + struct.pack(">H", check) + addresses + body)


def _octets(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def _pseudo(source: Address, target: Address, protocol: int, length: int) -> bytes:
    return _octets(source[0]) + _octets(target[0]) + struct.pack(">HH", protocol, length)


def _sum(octets: bytes) -> int:
    """The internet checksum."""
    octets += b"\0" * (len(octets) % 2)
    total: int = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
