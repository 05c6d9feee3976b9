"""Frames to datagrams and segments."""

from stablecast.evidence.capture.files import CaptureFrame
from stablecast.evidence.capture.ip import TcpSegment, UdpDatagram, intact, parse
from stablecast.evidence.capture.network import Carried, IpNetwork
from tests.support.captures import ETHERNET, RAW, datagram, framed, pieces, segment
from tests.support.pcap import Capture

A, B = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
UDP = datagram(A, B, b"payload")


def frame(number: int, octets: bytes, link: int = RAW, cut: int = 0) -> CaptureFrame:
    return CaptureFrame(number, 0, 0, link, octets[: len(octets) - cut], len(octets))


def test_a_datagram_and_a_segment() -> None:
    network = IpNetwork()
    found = network.unwrap(frame(1, framed(ETHERNET, UDP), ETHERNET))
    assert found == Carried(UdpDatagram(A, B, b"payload", 0), (1,))
    found = network.unwrap(frame(2, segment(A, B, 7, b"bytes")))
    assert found == Carried(TcpSegment(A, B, 7, 0x18, b"bytes", 0), (2,))


def test_other_protocols_have_no_content() -> None:
    network = IpNetwork()
    icmp = UDP[:9] + b"\x01" + UDP[10:]
    for octets in (b"", b"\x60", b"\x45", icmp):
        assert network.unwrap(frame(1, octets)) == Carried(None, (1,))


def test_pieces_are_awaited() -> None:
    network = IpNetwork()
    first, second = pieces(UDP, 8)
    assert network.unwrap(frame(1, first)) is None
    assert network.unwrap(frame(2, second)) == Carried(UdpDatagram(A, B, b"payload", 0), (1, 2))
    network.unwrap(frame(3, first))
    assert network.abandon() == []
    assert [whole.frames for whole in network.close()] == [(3,)]


def test_a_frame_that_was_cut_has_missing_bytes() -> None:
    assert IpNetwork().unwrap(frame(1, UDP, cut=3)) == Carried(UdpDatagram(A, B, b"payl", 3, 3), (1,))


def test_only_a_wrong_checksum_is_damage() -> None:
    """Zero is not set; the sum of addresses and length is half of one, to be completed by the network card."""

    def right(octets: bytes) -> bool | None:
        packet = parse(octets, len(octets))
        assert packet is not None
        return intact(packet)

    stream = Capture()
    stream.tcp(A, B, b"odd")
    for packet, at in ((UDP, 26), (stream.packets[0], 36)):
        assert right(packet) is True
        assert right(packet[:-1] + b"?") is False
        assert right(packet[:8] + b"\1" + packet[9:]) is False, "the header has one of its own"
        assert right(packet[:at] + b"\0\0" + packet[at + 2 : -1] + b"?") is None
        pseudo = (int.from_bytes(packet[12:20]) + packet[9] + len(packet) - 20) % 65_535
        assert right(packet[:at] + pseudo.to_bytes(2) + packet[at + 2 : -1] + b"?") is None
    assert right(UDP[:9] + b"\1\0\0" + UDP[12:]) is None, "no protocol of ours"


def test_damage_is_looked_for_where_there_are_checksums() -> None:
    damaged = frame(1, UDP[:-1] + b"?")
    for network, expected in ((IpNetwork(), False), (IpNetwork({A[0]}), True), (IpNetwork({B[0]}), False)):
        carried = network.unwrap(damaged)
        assert carried is not None
        assert carried.damaged is expected
