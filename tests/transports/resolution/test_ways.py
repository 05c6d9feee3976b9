"""One place of each source is taken: the cheapest; the next one when it goes."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.resolution import ways
from stablecast.transports.resolution.records import SourceRecord, named
from stablecast.transports.resolution.ways import Ways

SOURCE = named(SourceRecord("10.0.0.1:14371", 7, 1, "10.0.0.1:14391", persistent=True, instance=b"instance"))


def behind(number: int, cost: int = 1, hops: int = 1, source: SourceRecord = SOURCE) -> SourceRecord:
    """Return the place where router `number` repeats a source."""
    return attrs.evolve(source, address=f"10.0.1.{number}:14371", session_id=100 + number, cost=cost, hops=hops)


@pytest.mark.rows("R-059", "R-066")
def test_the_cheapest_place_is_taken_and_then_the_one_with_fewest_routers() -> None:
    known = Ways()
    assert known.found(behind(1, cost=9)) == behind(1, cost=9)
    assert known.found(behind(2, cost=10)) is None
    assert known.found(behind(3, cost=2, hops=2)) == behind(3, cost=2, hops=2)
    assert known.found(behind(4, cost=2)) == behind(4, cost=2)
    assert known.found(behind(4, cost=2)) is None, "it is taken already"
    assert known.found(SOURCE) == SOURCE
    assert known.found(behind(6, cost=0, hops=0)) is None, "the source itself comes first"


@pytest.mark.rows("R-119")
def test_of_equal_places_the_one_that_was_found_last_is_taken() -> None:
    """A router that was killed says no more, and its stream seems to last until a time-out."""
    known = Ways()
    for number in (2, 1, 3):
        assert known.found(behind(number)) == behind(number)
    for number in (2, 1, 3):
        assert known.found(behind(number)) is None, "it is known, and two routers that live change nothing"


def test_when_a_place_goes_the_next_one_is_taken() -> None:
    known = Ways()
    for record in (behind(1, cost=9), behind(2, cost=4), behind(3, cost=2)):
        known.found(record)
    assert known.gone(behind(2, cost=4)) == (False, None), "nobody is there"
    assert known.lost(behind(3).address) == ([behind(3, cost=2)], [behind(1, cost=9)])
    assert known.found(behind(4, cost=3)) == behind(4, cost=3)
    assert known.gone(behind(4, cost=3)) == (True, behind(1, cost=9))
    assert known.gone(behind(1, cost=9)) == (True, None)
    assert known.gone(behind(1)) == (True, None), "an end that is reported twice does no harm"
    assert (known.known, known.taken) == ({}, {})


def test_a_place_whose_stream_ended_is_the_last_choice() -> None:
    """Whoever advertises it may have died, or refuse; each attempt there would cost messages."""
    known = Ways()
    known.found(SOURCE)
    known.found(behind(1))
    assert known.lost(SOURCE.address) == ([SOURCE], [behind(1)])
    assert known.found(SOURCE) is None
    assert known.lost(behind(1).address) == ([behind(1)], [SOURCE])
    assert known.found(behind(1)) is None
    again = attrs.evolve(behind(1), session_id=200)
    assert known.found(again) == again, "a router that began again has another session"


def test_a_place_whose_cost_rises_is_left() -> None:
    known = Ways()
    known.found(behind(1, cost=1))
    known.found(behind(2, cost=5))
    assert known.found(behind(1, cost=3)) is None
    assert known.found(behind(1, cost=7)) == behind(2, cost=5)


def test_a_source_that_moves_with_its_host_is_joined_where_it_is_now() -> None:
    """Its new address may be any."""
    known = Ways()
    moved = named(attrs.evolve(SOURCE, address="10.0.0.2:14371", origin=b""))
    for record in (SOURCE, moved, SOURCE):
        assert known.found(record) == record


def test_what_one_kind_of_resolution_does_not_tell_is_no_news() -> None:
    """Services know no number of routers, and releases 0.1 and 0.2 advertise no OTID over UDP."""
    known = Ways()
    known.found(SOURCE)
    assert known.found(attrs.evolve(SOURCE, origin=b"")) is None
    other = attrs.evolve(SOURCE, request_address="10.0.0.1:14392")
    assert known.found(other) == other


def test_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one goes that nobody has joined."""
    monkeypatch.setattr(ways, "MAX_WAYS", 3)
    known = Ways()
    for number in range(1, 5):
        known.found(behind(number, cost=number))
    assert [record.name for record in known.known.values()] == [behind(number).name for number in (1, 3, 4)]
    others = [named(attrs.evolve(SOURCE, index=index, origin=b"")) for index in range(10, 14)]
    for record in others:
        assert known.found(record) == record
    assert list(known.known.values()) == others[1:]
    assert set(known.taken.values()) == set(others[1:])


STEP = st.tuples(st.sampled_from(["found", "gone", "lost"]), st.integers(1, 4), st.integers(0, 3))


@given(st.lists(STEP, max_size=40))
def test_the_place_that_is_taken_is_the_best_known(steps: list[tuple[str, int, int]]) -> None:
    """Told by what is returned alone: whoever follows it is where the machine thinks."""
    known, joined = Ways(), None
    costs: dict[int, int] = {}
    since: dict[int, int] = {}
    failed: set[int] = set()
    for step, (what, number, cost) in enumerate(steps):
        record = behind(number, cost)
        if what == "found":
            since[number] = since[number] if number in costs else step
            costs[number] = cost
            joined = known.found(record) or joined
        else:
            costs.pop(number, None)
            if what == "gone":
                ended, other = known.gone(record)
                others = [] if other is None else [other]
            else:
                gone, others = known.lost(record.address)
                failed |= {number} if gone else set()
                ended = bool(gone) and joined is not None and joined.name == record.name
            if ended:
                joined = others[0] if others else None
        best = min(((one in failed, cost, -since[one], one) for one, cost in costs.items()), default=None)
        assert (joined and joined.name) == (best and behind(best[3]).name)
