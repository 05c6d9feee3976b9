"""Frames to datagrams and segments."""

from stablecast.capture.files import Frame
from stablecast.capture.ip import Datagram, Segment
from stablecast.capture.network import Carried, Network
from tests.support.captures import ETHERNET, RAW, datagram, framed, pieces, segment

A, B = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
UDP = datagram(A, B, b"payload")


def frame(number: int, octets: bytes, link: int = RAW, cut: int = 0) -> Frame:
    return Frame(number, 0, 0, link, octets[: len(octets) - cut], len(octets))


def test_a_datagram_and_a_segment() -> None:
    network = Network()
    found = network.take(frame(1, framed(ETHERNET, UDP), ETHERNET))
    assert found == Carried(Datagram(A, B, b"payload", 0), (1,))
    found = network.take(frame(2, segment(A, B, 7, b"bytes")))
    assert found == Carried(Segment(A, B, 7, 0x18, b"bytes", 0), (2,))


def test_what_is_neither_is_nothing() -> None:
    network = Network()
    icmp = UDP[:9] + b"\x01" + UDP[10:]
    for octets in (b"", b"\x60", b"\x45", icmp):
        assert network.take(frame(1, octets)) == Carried(None, (1,))


def test_pieces_are_awaited() -> None:
    network = Network()
    first, second = pieces(UDP, 8)
    assert network.take(frame(1, first)) is None
    assert network.take(frame(2, second)) == Carried(Datagram(A, B, b"payload", 0), (1, 2))
    network.take(frame(3, first))
    assert network.abandon() == []
    assert [whole.frames for whole in network.close()] == [(3,)]


def test_a_frame_that_was_cut_has_missing_bytes() -> None:
    assert Network().take(frame(1, UDP, cut=3)) == Carried(Datagram(A, B, b"payl", 3, 3), (1,))
