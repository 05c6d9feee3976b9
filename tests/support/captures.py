"""Capture files of IPv4 packets in every form: link layers, both file formats, IP fragments."""

import struct
from collections.abc import Iterable
from pathlib import Path

from stablecast.evidence.capture.decoder import CapturePacket, CaptureTally
from tests.support.pcap import SECOND, Address, Capture, checksum, write_pcap

ETHERNET, NULL, RAW, COOKED, COOKED_2 = 1, 0, 101, 113, 276
MACS = bytes(range(12))
TCP = 6


def framed(link: int, packet: bytes, tags: int = 0) -> bytes:
    """Return the packet after a header of this link layer, with VLAN tags where the layer has them."""
    tagged = b"\x81\x00\x00\x05" * tags + b"\x08\x00"
    return {
        ETHERNET: MACS + tagged + packet,
        NULL: struct.pack("<I", 2) + packet,
        RAW: packet,
        COOKED: bytes(14) + tagged + packet,
        COOKED_2: (tagged[:2] + bytes(18) + tagged[2:] + packet),
    }[link]


def pcap(path: Path, frames: Iterable[bytes], link: int = RAW, order: str = "<", nanoseconds: bool = False) -> Path:
    """Write a pcap file with one frame a second, each 5 µs, or 5 ns, after the second; return its path."""
    write_pcap(path, frames, link=link, order=order, nanoseconds=nanoseconds, ticks=5)
    return path


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int, order: str = "<", snap: int = 0, options: bytes = b"") -> bytes:
    return block(1, struct.pack(f"{order}HHI", link, 0, snap) + options, order)


def enhanced(number: int, frame: bytes, order: str = "<", ticks: int | None = None) -> bytes:
    """Return a packet block of the first interface; the default `ticks` are microseconds."""
    ticks = (SECOND + number) * 1_000_000 + 5 if ticks is None else ticks
    head = struct.pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), len(frame))
    return block(6, head + frame, order)


def pcapng(path: Path, frames: Iterable[bytes], link: int = RAW, order: str = "<") -> Path:
    """Write a pcapng file of one section with one interface; return its path."""
    blocks = [enhanced(number, frame, order) for number, frame in enumerate(frames)]
    path.write_bytes(section(order) + interface(link, order) + b"".join(blocks))
    return path


def pieces(packet: bytes, size: int) -> list[bytes]:
    """Return the fragments of an IPv4 packet without options; `size` (bytes) is a multiple of eight."""
    head, payload = packet[:20], packet[20:]
    found = []
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        more = 0x2000 if at + size < len(payload) else 0
        field = struct.pack(">H", more | at // 8)
        found.append(head[:2] + struct.pack(">H", 20 + len(part)) + head[4:6] + field + head[8:] + part)
    return found


def datagram(source: Address, target: Address, payload: bytes) -> bytes:
    capture = Capture()
    capture.udp(source, target, payload)
    return capture.packets[0]


def segment(source: Address, target: Address, sequence: int, payload: bytes, flags: int = 0x18) -> bytes:
    """Return one IPv4 packet with a TCP segment. Its checksums are zero or wrong, see `checked`."""
    tcp = (
        struct.pack(">HHIIBBHHH", source[1], target[1], sequence & 0xFFFF_FFFF, 1, 0x50, flags, 65_535, 0, 0) + payload
    )
    head = datagram(source, target, tcp[8:])
    return head[:9] + b"\x06\0\0" + head[12:20] + tcp


def checked(packet: bytes) -> bytes:
    """Return an IPv4 packet without options with the right checksums."""
    body, at = packet[20:], 16 if packet[9] == TCP else 6
    body = body[:at] + b"\0\0" + body[at + 2 :]
    pseudo = packet[12:20] + bytes((0, packet[9])) + len(body).to_bytes(2)
    head = packet[:10] + b"\0\0" + packet[12:20]
    return head[:10] + checksum(head) + head[12:] + body[:at] + checksum(pseudo + body) + body[at + 2 :]


def count(packets: Iterable[CapturePacket]) -> CaptureTally:
    """Return the tally of some packets."""
    tally = CaptureTally()
    for packet in packets:
        tally.add(packet)
    return tally
