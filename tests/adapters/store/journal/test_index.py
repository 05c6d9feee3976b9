"""The index against a plain dict of numbers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.store.journal.index import Erase, Index
from stablecast.store.journal.record_format import HIGHEST, LOWEST
from stablecast.store.journal.segments import JournalSegment, RecordPlace

RUN = st.tuples(st.just("add"), st.integers(0, 30), st.integers(1, 8))
ERASE = st.tuples(st.just("erase"), st.integers(-1, 32) | st.just(LOWEST), st.integers(0, 32) | st.just(HIGHEST))


def segment(number: int) -> JournalSegment:
    return JournalSegment(number, 0, Path("unused"))


def record(place: JournalSegment, offset: int, first: int, count: int, tag: int = 0) -> RecordPlace:
    return RecordPlace(place, offset, 1, first, tag, count)


@given(st.lists(RUN | ERASE, max_size=25), st.integers(0, 25))
def test_against_a_dict(steps: list[tuple[str, int, int]], as_of: int) -> None:
    """Each step is one record in one of four segments; erasures look back from `as_of` or from where they stand."""
    places = [segment(number) for number in range(1, 5)]
    index = Index()
    naive: dict[int, int] = {}
    for step, (what, first, other) in enumerate(steps):
        before = {place for place in places if place.live}
        place = places[step % 4] if step % 2 else places[-1]
        if what == "add":
            emptied = index.add(7, record(place, step, first, other, tag=step))
            naive |= dict.fromkeys(range(first, first + other), step)
        else:
            view = min(as_of, step)
            emptied = index.erase(Erase(7, first, other, (9, view)))
            naive = {number: tag for number, tag in naive.items() if not first <= number < other}
        found = {n: tag for start, count, tag in index.extents(7) for n in range(start, start + count)}
        assert found == naive
        assert all(not place.live for place in emptied)
        assert before - {place for place in places if place.live} <= set(emptied)
    for number in range(-2, 40):
        hit = index.find(7, number)
        assert (None if hit is None else hit[2].tag) == naive.get(number)
    pieces = index.streams.get(7)
    assert sum(place.live for place in places) == (0 if pieces is None else len(list(pieces)))


def test_erasure_spares_what_was_written_behind_its_place() -> None:
    index, place = Index(), segment(1)
    index.add(1, record(place, 100, 0, 5, tag=1))
    index.add(1, record(place, 200, 5, 5, tag=2))
    index.erase(Erase(1, LOWEST, HIGHEST, (1, 150)))
    assert index.extents(1) == [(5, 5, 2)]


def test_an_erasure_covers_smaller_older_ones() -> None:
    wide = Erase(1, LOWEST, HIGHEST, (2, 0))
    assert wide.covers(Erase(1, 3, 9, (1, 5)))
    assert not wide.covers(Erase(1, 3, 9, (2, 1)))
    assert not Erase(1, 3, 9, (2, 1)).covers(wide)


def test_prune_keeps_what_has_records_to_look_back_on() -> None:
    index, first, second = Index(), segment(1), segment(2)
    index.add(1, record(first, 100, 0, 5))
    index.add(2, record(second, 100, 0, 5))
    old, late, missing = Erase(2, 0, 9, (1, 500)), Erase(1, 0, 9, (2, 0)), Erase(3, 0, 9, (2, 0))
    for erase in (old, late, missing):
        index.erase(erase)
    assert index.prune([first, second]) == [late]
    assert index.erases == {1: [late]}
    # Records that came after the erasure do not hide that the oldest segment has some from before.
    for place in (first, segment(4)):
        index.add(1, record(place, 600, 20, 5))
        assert index.prune([first, second, place]) == [late]


def test_prune_tells_trails_anew() -> None:
    index, place = Index(), segment(1)
    index.add(1, record(place, 100, 0, 50))
    old, cut = Erase(1, LOWEST, 40, (1, 200)), Erase(1, 30, HIGHEST, (1, 300))
    for erase in (old, cut, Erase(2, LOWEST, 9, (1, 400)), Erase(3, 5, HIGHEST, (1, 500))):
        index.erase(erase)
    trails = [Erase(1, LOWEST, 30, (1, 200)), Erase(2, LOWEST, 9, (1, 400))]
    assert index.prune([place]) == [old, cut, *trails]
    assert index.prune([]) == trails
    assert list(index.trails.values()) == trails


def test_unknown_stream() -> None:
    index = Index()
    assert index.extents(1) == []
    assert index.find(1, 0) is None


def test_erasure_that_does_not_fit() -> None:
    with pytest.raises(MisuseError, match="does not fit"):
        Erase(-1, 0, 1, (1, 1)).body()
