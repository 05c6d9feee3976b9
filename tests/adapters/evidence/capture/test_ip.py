"""IPv4, UDP and TCP headers, and pieces of datagrams in any order."""

from itertools import permutations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.evidence.capture.ip import IpPacket, TcpSegment, parse, parse_tcp, parse_udp
from stablecast.evidence.capture.network import MAX_APART_NS, MAX_HELD, IpReassembly, WholePacket
from tests.support.captures import datagram, pieces, segment

A, B = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
UDP, OTHER = (datagram(A, B, octets) for octets in (b"payload of some length", b"PAYLOAD OF SOME LENGTH"))


def parsed(octets: bytes) -> IpPacket:
    packet = parse(octets, len(octets))
    assert packet is not None
    return packet


def test_a_datagram() -> None:
    found = parse_udp(parsed(UDP))
    assert found is not None
    assert (found.source, found.target, found.payload, found.missing) == (A, B, b"payload of some length", 0)


def test_padding_of_the_link_layer_is_cut_off() -> None:
    found = parse_udp(parsed(UDP + bytes(10)))
    assert found is not None
    assert found.payload == b"payload of some length"


def test_bytes_that_the_capture_cut_off_are_missing() -> None:
    packet = parse(UDP[:-5], len(UDP))
    assert packet is not None
    assert packet.missing == 5
    found = parse_udp(packet)
    assert found is not None
    assert (found.payload, found.missing, found.cut) == (b"payload of some l", 5, 5)


def test_a_segment() -> None:
    found = parse_tcp(parsed(segment(A, B, 7, b"bytes", flags=0x02)))
    assert found == TcpSegment(A, B, 7, 0x02, b"bytes", 0)
    assert found.syn


def test_a_length_that_the_card_writes_later_is_that_of_the_frame() -> None:
    octets = segment(A, B, 7, b"bytes")
    packet = parse(octets[:2] + b"\0\0" + octets[4:], len(octets) + 2)
    assert packet is not None
    assert (packet.missing, packet.payload[-5:]) == (2, b"bytes")


@pytest.mark.parametrize(
    "octets",
    [
        b"\x45 short",
        b"\x44" + UDP[1:],  # a header shorter than a header
        b"\x46" + UDP[1:21],  # with options that are not there
        UDP[:2] + b"\0\x13" + UDP[4:],  # shorter than its header
    ],
)
def test_malformed_packets_are_none(octets: bytes) -> None:
    assert parse(octets, len(octets)) is None


def test_malformed_datagrams_and_segments_are_none() -> None:
    packet = parsed(UDP)
    assert parse_udp(attrs.evolve(packet, payload=b"short")) is None
    assert parse_udp(attrs.evolve(packet, payload=b"\0\1\0\2\0\7\0\0")) is None
    assert parse_tcp(attrs.evolve(packet, payload=b"short")) is None
    assert parse_tcp(attrs.evolve(packet, payload=bytes(12) + b"\xf0" + bytes(19))) is None


def test_pieces_in_any_order_make_the_datagram() -> None:
    for order in permutations(enumerate(pieces(UDP, 8), 1)):
        reassembly = IpReassembly()
        *first, last = [reassembly.add_piece(parsed(piece), number, 0) for number, piece in order]
        assert first == [None] * len(first)
        assert last is not None
        assert (last.packet.payload, last.packet.piece) == (UDP[20:], False)
        assert last.frames == tuple(number for number, _ in order)
        assert reassembly.abandon(0) == []


@given(st.lists(st.integers(0, 3), max_size=8))
def test_a_datagram_needs_all_its_pieces(numbers: list[int]) -> None:
    parts = pieces(UDP, 8)
    reassembly = IpReassembly()
    seen: set[int] = set()
    for number in numbers:
        seen.add(number)
        whole = reassembly.add_piece(parsed(parts[number]), number, 0)
        assert (whole is not None) == (len(seen) == len(parts))
        if whole is not None:
            seen.clear()


def test_the_first_piece_tells_whose_a_lost_datagram_is() -> None:
    first, second, *_ = (parsed(piece) for piece in pieces(UDP, 8))
    reassembly = IpReassembly()
    reassembly.add_piece(second, 1, 0)
    reassembly.add_piece(first, 2, 0)
    assert reassembly.abandon(MAX_HELD) == []
    assert reassembly.abandon(0) == [WholePacket(first, (1, 2))]


@pytest.mark.parametrize(
    ("earlier", "later", "apart_ns"),
    [
        ([0], UDP, MAX_APART_NS + 1),  # the rest of the earlier one was lost
        ([1, 3], UDP, MAX_APART_NS + 1),
        ([0], OTHER, 5),
    ],
)
def test_a_number_that_comes_again_is_of_another_datagram(earlier: list[int], later: bytes, apart_ns: int) -> None:
    """Senders count to 65,536: where pieces are lost, two datagrams were put together to one that nobody sent."""
    before, after = ([attrs.evolve(parsed(piece), ident=7) for piece in pieces(octets, 8)] for octets in (UDP, later))
    reassembly = IpReassembly()
    for place in earlier:
        assert reassembly.add_piece(before[place], place, 0) is None
    found = [reassembly.add_piece(piece, 10 + place, apart_ns) for place, piece in enumerate(after)]
    assert found[:-1] == [None] * (len(after) - 1)
    assert found[-1] is not None
    assert found[-1].packet.payload == later[20:]
    assert [whole.frames for whole in reassembly.abandon(MAX_HELD)] == [tuple(earlier)]
    assert reassembly.abandon(0) == []


def test_incomplete_datagrams_are_bounded() -> None:
    piece = parsed(pieces(UDP, 8)[0])
    reassembly = IpReassembly()
    for number in range(MAX_HELD + 2):
        reassembly.add_piece(attrs.evolve(piece, ident=number), number, 0)
    assert [whole.frames for whole in reassembly.abandon(MAX_HELD)] == [(0,), (1,)]
