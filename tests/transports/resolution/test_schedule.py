"""When turns come: the documented instants, lateness, the grid, and the plan against a plain list."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.units import SECOND
from stablecast.transports.resolution.schedule import ADVERTISING, QUERYING, STALE_TURNS, Pace, Rounds
from tests.transports.resolution.virtual import ADVERTISEMENTS, MS, QUERIES


def instants(rounds: Rounds[str], until: int) -> list[int]:
    """Whole milliseconds of the turns up to `until`."""
    found = []
    while (due := rounds.next()) is not None and due <= until:
        found += [due // MS for _ in rounds.take(due)]
    return found


@pytest.mark.parametrize(("pace", "expected"), [(ADVERTISING, ADVERTISEMENTS), (QUERYING, QUERIES)])
def test_the_initial_phase(pace: Pace, expected: tuple[int, ...]) -> None:
    """T-102, T-107, and T25 as corrected by observation: the turn planned before the end of the phase still comes."""
    rounds: Rounds[str] = Rounds(pace)
    rounds.begin("a", 0)
    assert tuple(instants(rounds, 6 * SECOND)) == expected


@pytest.mark.parametrize(
    ("pace", "expected"),
    [(ADVERTISING, [6200, 7200, 8200, 9200]), (QUERYING, [6100, 7100, 8100, 9100])],
)
def test_the_sustaining_phase_never_ends(pace: Pace, expected: list[int]) -> None:
    rounds: Rounds[str] = Rounds(pace)
    rounds.begin("a", 0)
    instants(rounds, 6 * SECOND)
    assert rounds.sustaining("a")
    assert instants(rounds, 10 * SECOND) == expected
    day = instants(rounds, 3_600 * SECOND)
    assert len(day) == 3_590
    assert {later - earlier for earlier, later in pairwise(day)} == {1000}


def test_an_interval_that_is_no_multiple_of_the_tick_keeps_its_average() -> None:
    """T25: 1250 ms with a tick of 100 ms."""
    rounds: Rounds[str] = Rounds(Pace(10 * MS, 10 * MS, 500 * MS, sustain=1250 * MS))
    rounds.sustain("a", 0)
    assert instants(rounds, 5 * SECOND) == [0, 1300, 2500, 3800, 5000]


def test_turns_stand_on_the_grid_and_share_ticks() -> None:
    rounds: Rounds[str] = Rounds(ADVERTISING)
    rounds.begin("b", 3 * MS)
    rounds.begin("a", 7 * MS)
    assert rounds.next() == 10 * MS
    assert rounds.take(10 * MS) == ["a", "b"]
    assert rounds.next() == 20 * MS


def test_missed_turns_are_not_made_up_for() -> None:
    rounds: Rounds[str] = Rounds(ADVERTISING)
    rounds.begin("a", 0)
    assert rounds.take(200 * MS) == ["a"]
    assert rounds.next() == 310 * MS
    assert rounds.take(10**6 * SECOND + 1) == ["a"]
    due = rounds.next()
    assert due is not None
    assert 10**6 * SECOND + 1 < due <= (10**6 + 2) * SECOND
    assert rounds.take(10**6 * SECOND + 1) == []


def test_a_late_call_does_not_move_the_turns_after_it() -> None:
    rounds: Rounds[str] = Rounds(QUERYING)
    rounds.begin("a", 0)
    assert rounds.take(19 * MS) == ["a"]
    assert rounds.take(45 * MS) == ["a"]
    assert rounds.next() == 60 * MS


def test_stopping_and_starting_leave_no_turn_of_the_past() -> None:
    rounds: Rounds[str] = Rounds(ADVERTISING)
    rounds.stop("a")
    rounds.begin("a", 0)
    rounds.stop("a")
    assert rounds.next() is None
    assert not rounds.sustaining("a")
    rounds.begin("a", 0)
    rounds.begin("a", 0)
    assert rounds.take(0) == ["a"]


def test_the_plan_is_bounded() -> None:
    rounds: Rounds[int] = Rounds(ADVERTISING)
    rounds.begin(-1, 0)
    for key in range(1_000):
        rounds.begin(key, key * MS)
        rounds.stop(key)
        assert len(rounds.plan) <= 2 * len(rounds.turns) + STALE_TURNS + 1
    assert rounds.take(0) == [-1]


STEP = st.tuples(st.sampled_from(["begin", "sustain", "stop", "take"]), st.sampled_from("abc"), st.integers(0, 900))


@given(st.lists(STEP, max_size=40))
@settings(max_examples=100)
def test_against_one_plan_for_each_key(steps: list[tuple[str, str, int]]) -> None:
    """All keys in one plan behave as each key in a plan of its own."""
    together: Rounds[str] = Rounds(QUERYING)
    apart: dict[str, Rounds[str]] = {key: Rounds(QUERYING) for key in "abc"}
    now = 0
    for step, key, wait in steps:
        now += wait * MS
        if step == "take":
            assert sorted(together.take(now)) == sorted(taken for plan in apart.values() for taken in plan.take(now))
        elif step == "stop":
            together.stop(key)
            apart[key].stop(key)
        else:
            getattr(together, step)(key, now)
            getattr(apart[key], step)(key, now)
        dues = [due for plan in apart.values() if (due := plan.next()) is not None]
        assert together.next() == min(dues, default=None)
