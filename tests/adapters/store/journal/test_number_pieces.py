"""The pieces of a stream against a plain dict of numbers."""

from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.store.journal import number_pieces as tested
from stablecast.store.journal.number_pieces import Pieces
from stablecast.store.journal.segments import JournalSegment, RecordPlace
from stablecast.store.journal.summary import Runs

Naive = dict[int, tuple[JournalSegment, int, int]]
"""Segment, offset and tag of the record that shows a number."""

NUMBERS = st.integers(0, 60) | st.integers(900, 930)
STEPS = st.lists(
    st.tuples(st.just("add"), NUMBERS, st.integers(1, 9))
    | st.tuples(st.just("next"), st.integers(0, 5), st.integers(1, 3))
    | st.tuples(st.just("erase"), NUMBERS, st.integers(0, 70)),
    max_size=60,
)


def segments(count: int) -> list[JournalSegment]:
    return [JournalSegment(number, 0, Path("unused")) for number in range(1, count + 1)]


def check(pieces: Pieces, naive: Naive, places: list[JournalSegment]) -> None:
    """The pieces are disjoint, ascending, in chunks that are not empty, and say what the dict says."""
    shown: Naive = {}
    stop = -1
    for start, end, place in pieces:
        assert stop <= start < end
        assert place.first <= start
        assert end <= place.first + place.count
        shown |= dict.fromkeys(range(start, end), (place.segment, place.offset, place.tag))
        stop = end
    assert shown == naive
    assert all(chunk.starts and len(chunk.starts) <= tested.CHUNK_PIECES + 2 for chunk in pieces.chunks)
    assert Counter({place: place.live for place in places if place.live}) == Counter(
        place.segment for _, _, place in pieces
    )


def test_a_chunk_takes_numbers_whose_distance_fits_32_bits() -> None:
    chunk = tested.PieceChunk(100, [])
    far = 100 + (1 << 32)
    assert [chunk.reaches(number) for number in (99, 100, far - 1, far)] == [False, True, True, False]


@given(STEPS, st.integers(2, 4), st.integers(1, 4), st.sampled_from([64, 1 << 31]), st.data())
def test_against_a_dict(
    steps: list[tuple[str, int, int]], most: int, count: int, reach: int, data: st.DataObject
) -> None:
    """Chunks of few pieces, and of few numbers; erasures look back from anywhere."""
    places, pieces, naive = segments(count), Pieces(), Naive()
    with mock.patch.object(tested, "CHUNK_PIECES", most), mock.patch.object(tested, "REACH", reach):
        for step, (what, first, length) in enumerate(steps):
            before = {place for place in places if place.live}
            if what == "erase":
                as_of = data.draw(st.none() | st.tuples(st.integers(1, count), st.integers(0, step)))
                emptied = pieces.erase(first, first + length, as_of)
                for number in range(first, first + length):
                    if number in naive and (as_of is None or (naive[number][0].number, naive[number][1]) < as_of):
                        del naive[number]
            else:
                start = first + (max(naive, default=0) + 1 if what == "next" else 0)
                place = places[step * count // len(steps)]
                emptied = pieces.add(RecordPlace(place, step, 1, start, step % 3, length))
                naive |= dict.fromkeys(range(start, start + length), (place, step, step % 3))
            check(pieces, naive, places)
            assert emptied <= {place for place in before if not place.live}
            assert before - {place for place in places if place.live} <= emptied
        for number in range(-2, 140):
            found = pieces.find(number)
            assert (None if found is None else (found[2].segment, found[2].offset, found[2].tag)) == naive.get(number)


def test_origins_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk whose pieces are replaced again and again, each time by another life."""
    monkeypatch.setattr(tested, "CHUNK_PIECES", 4)
    (place,), pieces = segments(1), Pieces()
    for number in (1, 5):
        pieces.add(RecordPlace(place, 0, 1, number, 0, 1))
    for tag in range(1, 40):
        pieces.add(RecordPlace(place, tag, 1, 1, tag, 1))
    (chunk,) = pieces.chunks
    assert [(start, found.tag) for start, _, found in pieces] == [(1, 39), (5, 0)]
    assert len(chunk.origins) <= 4


@pytest.mark.parametrize("most", [1, 2048])
def test_records_far_apart_are_entered_at_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """From a summary: those beyond the reach of a chunk, or beyond its size, begin one of their own."""
    monkeypatch.setattr(tested, "REACH", 8)
    monkeypatch.setattr(tested, "CHUNK_PIECES", most)
    (place,), pieces, runs = segments(1), Pieces(), Runs(1, 0)
    numbers = (0, 5, 15, 16, 40, 41)
    for number in numbers:
        for column, value in zip(runs.columns, (number, 1, 24 + number, 9), strict=True):
            column.append(value)
    assert pieces.extend(place, runs)
    check(pieces, {number: (place, 24 + number, 0) for number in numbers}, [place])
    assert [len(chunk.starts) for chunk in pieces.chunks] == ([1] * 6 if most == 1 else [2, 2, 2])
    bases = [chunk.base for chunk in pieces.chunks]
    assert all(chunk.reaches(chunk.stop - 1) for chunk in pieces.chunks), bases
    assert not pieces.extend(place, runs), "they do not come in order now"


def test_a_piece_far_below_begins_a_chunk_of_its_own() -> None:
    (place,), pieces = segments(1), Pieces()
    for number in (1 << 40, 0, 1 << 41):
        pieces.add(RecordPlace(place, 0, 1, number, 0, 1))
    assert [start for start, _, _ in pieces] == [0, 1 << 40, 1 << 41]
    assert len(pieces.chunks) == 3
    assert pieces.find(1 << 40) is not None
