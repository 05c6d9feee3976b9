"""Packets inside of packets: what stock tshark reads in overlays and tunnels is read."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from stablecast.evidence.capture.files import CaptureFrame
from stablecast.evidence.capture.ip import UdpDatagram
from stablecast.evidence.capture.network import GENEVE, GRE, IP_IN_IP, MAX_TUNNELS, VXLAN, IpNetwork
from tests.support.captures import ETHERNET, MACS, datagram, framed, pcap, pieces
from tests.support.pcap import Address, checksum

A, B = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
HOSTS: tuple[Address, Address] = ("192.0.2.1", 40_000), ("192.0.2.2", 4789)
INSIDE = datagram(A, B, b"payload")
FRAME = framed(ETHERNET, INSIDE)
FOUND = UdpDatagram(A, B, b"payload")
LABELS = b"\0\x01\x00\x40\0\x02\x01\x40"


def carried(protocol: int, body: bytes) -> bytes:
    """Return a packet of another protocol between two hosts."""
    head = datagram(*HOSTS, bytes(max(0, len(body) - 8)))[:20]
    head = head[:2] + (20 + len(body)).to_bytes(2) + head[4:9] + bytes((protocol, 0, 0)) + head[12:20]
    return head[:10] + checksum(head) + head[12:] + body


def overlay(port: int, body: bytes) -> bytes:
    return datagram(HOSTS[0], (HOSTS[1][0], port), body)


def gre(kind: int, body: bytes, flags: int = 0) -> bytes:
    more = b"".join(bytes(4) for flag in (0x80, 0x20, 0x10) if flags & flag)
    return carried(GRE, struct.pack(">BBH", flags, 0, kind) + more + body)


TUNNELS = {
    "gre": gre(0x0800, INSIDE),
    "gre with a key and numbers": gre(0x0800, INSIDE, 0x30),
    "gre with a frame": gre(0x6558, FRAME),
    "gre with labels": gre(0x8847, LABELS + INSIDE),
    "a mirror port": gre(0x88BE, b"\x10\5" + bytes(6) + FRAME, 0x10),
    "ip in ip": carried(IP_IN_IP, INSIDE),
    "vxlan": overlay(VXLAN, b"\x08\0\0\0\0\0\x2a\0" + FRAME),
    "geneve": overlay(GENEVE, b"\x01\0\x65\x58\0\0\x2a\0" + b"\1\2\3\0" + FRAME),
    "vxlan in gre": gre(0x0800, overlay(VXLAN, b"\x08\0\0\0\0\0\x2a\0" + FRAME)),
}


def read(octets: bytes, link: int = ETHERNET) -> UdpDatagram | None:
    found = IpNetwork().unwrap(CaptureFrame(1, 0, 0, link, octets, len(octets)))
    assert found is not None
    assert found.content is None or isinstance(found.content, UdpDatagram)
    return found.content


@pytest.mark.parametrize("name", TUNNELS)
def test_the_packet_inside_is_read(name: str) -> None:
    assert read(framed(ETHERNET, TUNNELS[name])) == FOUND
    assert read(framed(ETHERNET, TUNNELS[name][: -len(INSIDE)])) != FOUND


@pytest.mark.parametrize("inside", [INSIDE, bytes(4) + FRAME], ids=["ip", "a frame"])
def test_labels_are_passed_over(inside: bytes) -> None:
    assert read(MACS + b"\x88\x47" + LABELS + inside) == FOUND
    assert read(MACS + b"\x81\0\0\5\x88\x48" + LABELS + inside) == FOUND


def test_pieces_of_a_tunnelled_packet_are_joined() -> None:
    network = IpNetwork()
    first, second = pieces(TUNNELS["vxlan"], 48)
    assert network.unwrap(CaptureFrame(1, 0, 0, ETHERNET, framed(ETHERNET, first), 999)) is None
    found = network.unwrap(CaptureFrame(2, 0, 0, ETHERNET, framed(ETHERNET, second), 999))
    assert found is not None
    assert (found.content, found.frames) == (FOUND, (1, 2))


def test_tunnels_are_bounded() -> None:
    octets = INSIDE
    for _ in range(MAX_TUNNELS + 1):
        octets = carried(IP_IN_IP, octets)
    assert read(framed(ETHERNET, octets)) is None


@pytest.mark.parametrize(
    "octets", [gre(0x0800, b""), gre(0x0800, INSIDE, 0x40), overlay(VXLAN, b"\x08"), carried(4, b"")]
)
def test_other_datagrams_are_left_alone(octets: bytes) -> None:
    assert read(framed(ETHERNET, octets)) != FOUND


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_them_too(tmp_path: Path) -> None:
    frames = [framed(ETHERNET, octets) for octets in TUNNELS.values()]
    frames += [MACS + b"\x88\x47" + LABELS + inside for inside in (INSIDE, bytes(4) + FRAME)]
    frames.append(framed(ETHERNET, INSIDE, 8))
    path = pcap(tmp_path / "tunnels.pcap", frames, ETHERNET)
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "udp.dstport"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.rpartition(",")[2] for line in shown] == ["2000"] * len(frames)
    assert [read(frame) for frame in frames] == [FOUND] * len(frames)
