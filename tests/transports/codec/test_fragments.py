"""Messages in pieces, and their reassembly."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.transports.codec import fragments as module
from stablecast.transports.codec.chained_messages import ChainedPiece, pieces
from stablecast.transports.codec.fragments import (
    FRAGMENT_BYTES,
    PIECE_BYTES,
    FragmentReassembly,
    WholeMessage,
    count,
    encode_pieces,
)
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Fragment

ROOM = 500


def cut_up(number: int, payload: bytes, room: int = ROOM, properties: int = 0) -> list[tuple[int, ChainedPiece]]:
    """Return number and content of each piece, as decoded from the wire."""
    found = []
    for place, octets in enumerate(encode_pieces(7, number, payload, room, properties)):
        message, end = lbmc.decode(octets)
        assert end == len(octets) <= room
        assert message.sequence == serial.wire(number + place)
        found += [(number + place, piece) for piece in pieces(octets, 0, 1)]
    return found


def piece(offset: int, size: int, of: int, first: int = 0) -> ChainedPiece:
    return ChainedPiece(bytes(size), Fragment(first_sqn=first, offset=offset, len=of))


def passed(reassembly: FragmentReassembly) -> list[tuple[int, int]]:
    """Return the passed numbers, all of which are reported as lost."""
    reassembly.check_invariants()
    everything, lost = reassembly.take_passed()
    assert everything == lost
    return lost


def test_a_message_that_fits_is_a_plain_one() -> None:
    (octets,) = encode_pieces(7, 3, bytes(ROOM - lbmc.DATA_HEADER.size), ROOM)
    assert lbmc.decode(octets)[0].headers == ()


@given(st.integers(0, 4000), st.integers(0, 40), st.integers(100, 600))
def test_the_number_of_pieces_is_known_before(size: int, properties: int, room: int) -> None:
    payload = bytes(size + properties)
    encoded = encode_pieces(7, 0, payload, room, properties)
    assert len(encoded) == count(len(payload), properties, room)
    assert max(map(len, encoded)) <= room


@pytest.mark.rows("P-129", "P-131", "P-334")
def test_a_large_message_has_a_number_for_each_piece() -> None:
    """100 KB over UDP is 13 pieces of about 8 KB."""
    found = cut_up(40, bytes(100_000), 8172)
    assert [number for number, _ in found] == list(range(40, 53))
    assert {piece.fragment.first_sqn for _, piece in found if piece.fragment} == {40}
    assert sum(len(piece.payload) for _, piece in found) == 100_000


@given(
    st.integers(600, 4000),
    st.randoms(use_true_random=False),
    st.sampled_from([0, serial.MODULUS - 2]),
    st.sampled_from([0, 7, 500]),
)
def test_pieces_in_any_order_make_the_message(size: int, chance: Random, number: int, properties: int) -> None:
    payload = bytes(place * 7 % 251 for place in range(size))
    reassembly = FragmentReassembly()
    found = cut_up(number, payload, properties=properties)
    chance.shuffle(found)
    assert [reassembly.add(*one) for one in found[:-1]] == [None] * (len(found) - 1)
    reassembly.check_invariants()
    body, block = payload[: size - properties], payload[size - properties :]
    assert reassembly.add(*found[-1]) == WholeMessage(number, number + len(found) - 1, body, block)
    assert (reassembly.partials, reassembly.held, reassembly.take_passed()) == ({}, 0, ([], []))


def test_a_piece_of_a_life_before_does_not_end_the_message_that_has_its_numbers_now() -> None:
    """Its source died before the other pieces were stable. In arrival order it may come after the new message."""
    reassembly = FragmentReassembly()
    before, now = cut_up(4, b"a" * 1300), cut_up(5, b"b" * 900)
    assert reassembly.add(*now[0]) is None
    assert reassembly.add(*before[0], recovered=True, until=5) is None
    assert reassembly.take_passed() == ([(4, 5)], [(4, 5)])
    assert reassembly.add(*now[1]) == WholeMessage(5, 6, b"b" * 900)
    assert reassembly.partials == {}


def test_a_message_is_recovered_if_a_piece_of_it_was() -> None:
    reassembly = FragmentReassembly()
    one, two = cut_up(0, b"a" * 900)
    reassembly.add(*one, recovered=True)
    assert reassembly.add(*two) == WholeMessage(0, 1, b"a" * 900, recovered=True)


def test_two_messages_may_be_under_way_at_once() -> None:
    reassembly = FragmentReassembly()
    one, two = cut_up(0, b"a" * 900), cut_up(2, b"b" * 900)
    assert [reassembly.add(*each) for each in (one[0], two[1], two[0])][2] == WholeMessage(2, 3, b"b" * 900)
    assert reassembly.add(*one[1]) == WholeMessage(0, 1, b"a" * 900)


def test_a_small_message_with_properties_is_whole_at_once() -> None:
    reassembly = FragmentReassembly()
    ((number, found),) = cut_up(9, b"payloadprops", properties=5)
    assert reassembly.add(number, found, recovered=True) == WholeMessage(9, 9, b"payload", b"props", recovered=True)
    assert reassembly.add(10, ChainedPiece(b"few", None, 4)) == WholeMessage(10, 10, b"few"), "so many there are not"


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
def test_nonsense_is_lost(number: int, found: ChainedPiece) -> None:
    reassembly = FragmentReassembly()
    assert reassembly.add(number, found) is None
    assert reassembly.partials == {}
    assert passed(reassembly) == [(number, number + 1)]


def test_pieces_that_disagree_about_the_size_are_lost() -> None:
    reassembly = FragmentReassembly()
    reassembly.add(0, piece(0, 50, 100))
    assert reassembly.add(1, piece(50, 50, 101)) is None
    assert passed(reassembly) == [(1, 2)]
    assert reassembly.add(1, piece(50, 50, 100)) is not None


@pytest.mark.parametrize("offset", [50, 0])
def test_pieces_that_do_not_join_are_no_message(offset: int) -> None:
    reassembly = FragmentReassembly()
    reassembly.add(0, piece(0, 60, 100))
    assert reassembly.add(1, piece(offset, 50, 100)) is None
    assert passed(reassembly) == ([(0, 2)] if offset else [(1, 2)])


def test_pieces_must_have_the_numbers_of_their_places() -> None:
    reassembly = FragmentReassembly()
    reassembly.add(0, piece(0, 50, 150))
    reassembly.add(3, piece(50, 50, 150))
    assert reassembly.add(2, piece(100, 50, 150)) is None
    assert passed(reassembly) == [(0, 1), (2, 4)]


def test_a_lost_piece_ends_its_message_alone() -> None:
    reassembly = FragmentReassembly()
    reassembly.add(0, piece(0, 50, 100))
    reassembly.add(3, piece(50, 50, 200, first=2))
    reassembly.lose(6, 9)
    assert len(reassembly.partials) == 2
    reassembly.lose(1, 2)
    assert list(reassembly.partials) == [2]
    reassembly.lose(5, 6)
    assert reassembly.partials == {}
    assert passed(reassembly) == [(0, 1), (3, 4)]
    reassembly.add(4, piece(100, 50, 200, first=2))
    assert passed(reassembly) == [(4, 5)], "what comes of it later is lost as well"


def test_a_message_whose_first_piece_was_lost_is_lost() -> None:
    reassembly = FragmentReassembly()
    reassembly.lose(0, 1)
    assert reassembly.add(1, piece(50, 50, 100)) is None
    assert passed(reassembly) == [(1, 2)]


def test_numbers_that_went_to_others_end_a_message() -> None:
    """A source died before it had sent all pieces; its next life uses the remaining numbers (T20)."""
    reassembly = FragmentReassembly()
    reassembly.add(0, piece(0, 50, 200))
    reassembly.settle(4, 9)
    assert list(reassembly.partials) == [0]
    reassembly.settle(1, 2)
    assert passed(reassembly) == [(0, 1)]
    reassembly.add(5, piece(0, 50, 200, first=5))
    reassembly.add(6, piece(0, 50, 100, first=6))
    assert (passed(reassembly), list(reassembly.partials)) == ([(5, 6)], [6])
    assert reassembly.add(7, piece(50, 50, 100, first=6)) == WholeMessage(6, 7, bytes(100)), (
        "within the numbers of the dead"
    )


def test_a_message_that_began_before_the_application_is_not_reported() -> None:
    reassembly = FragmentReassembly(floor=10)
    for number in (10, 11):
        assert reassembly.add(number, piece(50 * (number - 8), 50, 200, first=8)) is None
    assert reassembly.take_passed() == ([(10, 12)], [])


def test_a_message_that_the_stores_have_only_in_part_is_reported() -> None:
    reassembly = FragmentReassembly(floor=10, owed=True)
    for number in (10, 11):
        assert reassembly.add(number, piece(50 * (number - 8), 50, 200, first=8)) is None
        assert reassembly.partials == {}
    assert passed(reassembly) == [(10, 12)]


def test_incomplete_messages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest message is given up and reported."""
    monkeypatch.setattr(module, "MAX_PARTIAL_BYTES", PIECE_BYTES + 100)
    reassembly = FragmentReassembly()
    for first in range(0, 90, 30):
        reassembly.add(first, piece(0, 60, 1000, first))
    assert (list(reassembly.partials), reassembly.held) == ([60], PIECE_BYTES + 60)
    assert passed(reassembly) == [(0, 1), (30, 31)]
    reassembly.add(61, piece(60, 60, 1000, 60))
    assert list(reassembly.partials) == [60], "the only one may be larger"


def test_dead_numbers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DEAD", 2)
    reassembly = FragmentReassembly()
    for number in (0, 10, 20):
        reassembly.lose(number, number + 1)
    assert list(reassembly.missing) == [(10, 11), (20, 21)]


def test_the_size_of_a_piece_beside_its_payload() -> None:
    (first, *_) = encode_pieces(1, 0, bytes(2000), ROOM)
    assert len(first) - len(lbmc.decode(first)[0].payload) == FRAGMENT_BYTES
