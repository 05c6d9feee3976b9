"""Capture files in every form, from IPv4 packets: link layers, both formats, pieces."""

import struct
from collections.abc import Iterable
from pathlib import Path

from tests.support.pcap import Address, Capture

ETHERNET, NULL, RAW, COOKED, COOKED_2 = 1, 0, 101, 113, 276
MACS = bytes(range(12))
SECOND = 1_700_000_000
TCP = 6


def framed(link: int, packet: bytes, tags: int = 0) -> bytes:
    """The packet behind a header of that link layer, with VLAN tags where it has some."""
    tagged = b"\x81\x00\x00\x05" * tags + b"\x08\x00"
    return {
        ETHERNET: MACS + tagged + packet,
        NULL: struct.pack("<I", 2) + packet,
        RAW: packet,
        COOKED: bytes(14) + tagged + packet,
        COOKED_2: (tagged[:2] + bytes(18) + tagged[2:] + packet),
    }[link]


def pcap(path: Path, frames: Iterable[bytes], link: int = RAW, order: str = "<", nanoseconds: bool = False) -> Path:
    """Writes a pcap file, one frame a second and 5 µs, or 5 ns, after it."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    lines = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262_144, link)]
    for number, frame in enumerate(frames):
        lines.append(struct.pack(f"{order}IIII", SECOND + number, 5, len(frame), len(frame)) + frame)
    path.write_bytes(b"".join(lines))
    return path


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A block of a pcapng file."""
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    """The block that starts a section."""
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int, order: str = "<", snap: int = 0, options: bytes = b"") -> bytes:
    """The block that declares an interface."""
    return block(1, struct.pack(f"{order}HHI", link, 0, snap) + options, order)


def enhanced(number: int, frame: bytes, order: str = "<", ticks: int | None = None) -> bytes:
    """A packet of the first interface; microseconds unless told otherwise."""
    ticks = (SECOND + number) * 1_000_000 + 5 if ticks is None else ticks
    head = struct.pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), len(frame))
    return block(6, head + frame, order)


def pcapng(path: Path, frames: Iterable[bytes], link: int = RAW, order: str = "<") -> Path:
    """Writes a pcapng file of one section with one interface."""
    blocks = [enhanced(number, frame, order) for number, frame in enumerate(frames)]
    path.write_bytes(section(order) + interface(link, order) + b"".join(blocks))
    return path


def pieces(packet: bytes, size: int) -> list[bytes]:
    """An IPv4 packet without options, cut up on the way; `size` is a multiple of eight."""
    head, payload = packet[:20], packet[20:]
    found = []
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        more = 0x2000 if at + size < len(payload) else 0
        field = struct.pack(">H", more | at // 8)
        found.append(head[:2] + struct.pack(">H", 20 + len(part)) + head[4:6] + field + head[8:] + part)
    return found


def datagram(source: Address, target: Address, payload: bytes) -> bytes:
    """One IPv4 packet with a datagram."""
    capture = Capture()
    capture.udp(source, target, payload)
    return capture.packets[0]


def segment(source: Address, target: Address, sequence: int, payload: bytes, flags: int = 0x18) -> bytes:
    """One IPv4 packet with a TCP segment; nobody looks at its checksums."""
    tcp = (
        struct.pack(">HHIIBBHHH", source[1], target[1], sequence & 0xFFFF_FFFF, 1, 0x50, flags, 65_535, 0, 0) + payload
    )
    head = datagram(source, target, tcp[8:])
    return head[:9] + b"\x06\0\0" + head[12:20] + tcp


def checked(packet: bytes) -> bytes:
    """An IPv4 packet without options with the checksums that it should have."""
    body, at = packet[20:], 16 if packet[9] == TCP else 6
    body = body[:at] + b"\0\0" + body[at + 2 :]
    pseudo = packet[12:20] + bytes((0, packet[9])) + len(body).to_bytes(2)
    head = packet[:10] + b"\0\0" + packet[12:20]
    return head[:10] + _check(head) + head[12:] + body[:at] + _check(pseudo + body) + body[at + 2 :]


def _check(octets: bytes) -> bytes:
    return (0xFFFF - int.from_bytes(octets + bytes(len(octets) % 2)) % 0xFFFF).to_bytes(2)
