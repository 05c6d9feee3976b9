"""Messages in pieces, and whole again."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core import serial
from stablecast.transports.reliable import fragments as module
from stablecast.transports.reliable.fragments import FRAGMENT_BYTES, Reassembly, Whole, cut
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Fragment

ROOM = 500


def pieces(number: int, payload: bytes, room: int = ROOM) -> list[tuple[int, Fragment, bytes]]:
    """Number, header and payload of each piece, as they come off the wire."""
    found = []
    for place, octets in enumerate(cut(7, number, payload, room)):
        message, end = lbmc.decode(octets)
        assert end == len(octets) <= room
        assert message.sequence == serial.wire(number + place)
        (header,) = message.headers
        assert isinstance(header, Fragment)
        found.append((number + place, header, message.payload))
    return found


def piece(offset: int, size: int, of: int, first: int = 0) -> tuple[Fragment, bytes]:
    return Fragment(first_sqn=first, offset=offset, len=of), bytes(size)


def test_a_message_that_fits_is_a_plain_one() -> None:
    (octets,) = cut(7, 3, bytes(ROOM - lbmc.DATA_HEADER.size), ROOM)
    assert lbmc.decode(octets)[0].headers == ()


def test_a_large_message_has_a_number_for_each_piece() -> None:
    """P-129, P-131, P-334: 100 KB over UDP is 13 pieces of about 8 KB."""
    found = pieces(40, bytes(100_000), 8172)
    assert [number for number, _, _ in found] == list(range(40, 53))
    assert {header.first_sqn for _, header, _ in found} == {40}
    assert sum(len(payload) for _, _, payload in found) == 100_000


@given(
    st.integers(600, 4000),
    st.randoms(use_true_random=False),
    st.sampled_from([0, serial.MODULUS - 2]),
)
def test_pieces_in_any_order_and_repeated_make_the_message(size: int, chance: Random, number: int) -> None:
    payload = bytes(place * 7 % 251 for place in range(size))
    reassembly = Reassembly()
    found = pieces(number, payload)
    shuffled = found[:-1] + found[:1]
    chance.shuffle(shuffled)
    assert [reassembly.add(*one) for one in shuffled] == [None] * len(shuffled)
    assert reassembly.add(*found[-1]) == Whole(number, number + len(found) - 1, payload)
    assert (reassembly.partials, reassembly.held) == ({}, 0)


def test_two_messages_may_be_under_way_at_once() -> None:
    reassembly = Reassembly()
    one, two = pieces(0, b"a" * 900), pieces(2, b"b" * 900)
    assert [reassembly.add(*each) for each in (one[0], two[1], two[0])][2] == Whole(2, 3, b"b" * 900)
    assert reassembly.add(*one[1]) == Whole(0, 1, b"a" * 900)


@pytest.mark.parametrize(
    ("number", "found"),
    [
        (0, piece(10, 10, 100)),  # the first piece is not at 0
        (3, piece(0, 10, 100)),  # a later one is
        (5, piece(0, 10, 100, first=6)),  # before the first
        (1, piece(95, 10, 100)),  # beyond the end
        (0, piece(0, 0, 100)),  # empty
        (0, piece(0, 10, module.MAX_LARGE + 1)),
    ],
)
def test_nonsense_is_passed_over(number: int, found: tuple[Fragment, bytes]) -> None:
    reassembly = Reassembly()
    assert reassembly.add(number, *found) is None
    assert reassembly.partials == {}


def test_pieces_that_disagree_about_the_size_are_passed_over() -> None:
    reassembly = Reassembly()
    reassembly.add(0, *piece(0, 50, 100))
    assert reassembly.add(1, *piece(50, 50, 101)) is None
    assert reassembly.add(1, *piece(50, 50, 100)) is not None


def test_pieces_that_overlap_are_no_message() -> None:
    reassembly = Reassembly()
    reassembly.add(0, *piece(0, 60, 100))
    assert reassembly.add(1, *piece(50, 50, 100)) is None
    assert (reassembly.given_up, reassembly.held) == (1, 0)


def test_a_lost_piece_ends_its_message_alone() -> None:
    reassembly = Reassembly()
    reassembly.add(0, *piece(0, 50, 100))
    reassembly.add(3, *piece(50, 50, 200, first=2))
    reassembly.lose(6, 9)
    assert len(reassembly.partials) == 2
    reassembly.lose(1, 2)
    assert list(reassembly.partials) == [2]
    reassembly.lose(5, 6)
    assert (reassembly.partials, reassembly.given_up) == ({}, 2)


def test_incomplete_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARTIAL_BYTES", 100)
    reassembly = Reassembly()
    for first in range(0, 30, 10):
        reassembly.add(first, *piece(0, 60, 1000, first))
    assert (list(reassembly.partials), reassembly.held, reassembly.given_up) == ([20], 60, 2)
    reassembly.add(21, *piece(60, 60, 1000, 20))
    assert list(reassembly.partials) == [20], "the only one may be larger"


def test_the_size_of_a_piece_beside_its_payload() -> None:
    (first, *_) = cut(1, 0, bytes(2000), ROOM)
    assert len(first) - len(lbmc.decode(first)[0].payload) == FRAGMENT_BYTES
