"""IPv4 packets with the header fields that the product sets (TTL 16, do not fragment), and pcap files of packets."""

import struct
from collections.abc import Iterable
from pathlib import Path

Address = tuple[str, int]
"""IPv4 address and port."""

RAW_IP = 101
"""Link type of packets that start with their IP header."""

SECOND = 1_700_000_000
"""Time of the first packet of a file (s); each packet is one second later than the packet before."""
MAX_PACKET = 262_144
_UDP, _TCP = 17, 6


def write_pcap(
    path: Path,
    frames: Iterable[bytes],
    *,
    link: int = RAW_IP,
    order: str = "<",
    nanoseconds: bool = False,
    ticks: int = 0,
) -> None:
    """Write a pcap file with one frame a second, each `ticks` µs, or ns, after the second."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    records = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, MAX_PACKET, link)]
    for second, frame in enumerate(frames, SECOND):
        records.append(struct.pack(f"{order}IIII", second, ticks, len(frame), len(frame)) + frame)
    path.write_bytes(b"".join(records))


class Capture:
    """Packets in the order in which they are added. TCP sequence numbers follow from the earlier packets."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []
        self._next: dict[tuple[Address, Address], int] = {}

    def udp(self, source: Address, target: Address, payload: bytes) -> None:
        head = struct.pack(">HHH", source[1], target[1], 8 + len(payload))
        check = checksum(_pseudo(source, target, _UDP, 8 + len(payload)) + head + b"\0\0" + payload)
        # A checksum of 0 means that a datagram has none, so UDP sends its other form.
        self._ip(source, target, _UDP, head + (b"\xff\xff" if check == b"\0\0" else check) + payload)

    def tcp(self, source: Address, target: Address, payload: bytes) -> None:
        """Add one segment of the stream from `source` to `target`."""
        sent = self._next.setdefault((source, target), 1)
        acknowledged = self._next.setdefault((target, source), 1)
        self._next[source, target] = sent + len(payload)
        head = struct.pack(">HHIIBBH", source[1], target[1], sent, acknowledged, 0x50, 0x18, 65_535)
        check = checksum(_pseudo(source, target, _TCP, 20 + len(payload)) + head + b"\0\0\0\0" + payload)
        self._ip(source, target, _TCP, head + check + b"\0\0" + payload)

    def write(self, path: Path) -> None:
        """Write the capture file, one packet a second."""
        write_pcap(path, self.packets)

    def _ip(self, source: Address, target: Address, protocol: int, body: bytes) -> None:
        head = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(body), len(self.packets) & 0xFFFF, 0x4000, 16, protocol)
        addresses = _octets(source[0]) + _octets(target[0])
        self.packets.append(head + checksum(head + b"\0\0" + addresses) + addresses + body)


def _octets(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def _pseudo(source: Address, target: Address, protocol: int, length: int) -> bytes:
    return _octets(source[0]) + _octets(target[0]) + struct.pack(">HH", protocol, length)


def checksum(octets: bytes) -> bytes:
    """Return the internet checksum of the octets, in network byte order."""
    octets += b"\0" * (len(octets) % 2)
    total: int = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)
