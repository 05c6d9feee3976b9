"""Confirmations: what enough different receivers consumed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.source import confirmations
from stablecast.core.source.confirmations import Confirmations

RANGES = st.tuples(st.integers(0, 4), st.integers(0, 20), st.integers(0, 8))


def members(parts: list[tuple[int, int]]) -> set[int]:
    return {number for first, stop in parts for number in range(first, stop)}


@pytest.mark.rows("P-020", "P-329", "P-349")
@given(st.integers(0, 3), st.lists(RANGES, max_size=20))
def test_confirmed_is_what_enough_receivers_consumed(unique: int, steps: list[tuple[int, int, int]]) -> None:
    """Counted message by message."""
    machine, known = Confirmations(unique), dict[int, set[int]]()
    enough: set[int] = set()
    for receiver, first, count in steps:
        news, risen = machine.on_confirmed(receiver, first, first + count)
        before = known.setdefault(receiver, set())
        assert members(news) == set(range(first, first + count)) - before
        before |= members(news)
        now = {n for n in range(30) if unique and sum(n in mine for mine in known.values()) >= unique}
        assert members(risen) == now - enough
        enough = now
        assert members(machine.enough(0, 30)) == (enough if unique else set(range(30)))


@pytest.mark.rows("P-312")
def test_more_is_confirmed_by_enough_only_sometimes() -> None:
    """Two receivers are asked for."""
    machine = Confirmations(2)
    assert machine.on_confirmed(7, 0, 6) == ([(0, 6)], [])
    assert machine.on_confirmed(8, 0, 4) == ([(0, 4)], [(0, 4)])
    assert machine.on_confirmed(7, 0, 10) == ([(6, 10)], [])
    assert machine.on_confirmed(8, 4, 5) == ([(4, 5)], [(4, 5)])


def test_a_receiver_begins_where_the_life_does() -> None:
    """Below are numbers of an earlier life, which this one has nobody to tell of."""
    machine = Confirmations()
    machine.begin(4)
    assert machine.on_confirmed(7, 0, 4) == ([], [])
    assert machine.on_confirmed(7, 0, 6) == ([(4, 6)], [])


def test_receivers_beyond_the_bound_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmations, "MAX_RECEIVERS", 1)
    machine = Confirmations(1)
    assert machine.on_confirmed(7, 0, 2) == ([(0, 2)], [(0, 2)])
    assert machine.on_confirmed(8, 0, 10) == ([], [])
    assert machine.on_confirmed(7, 0, 3) == ([(2, 3)], [(2, 3)])


def test_a_receiver_with_too_many_gaps_confirms_nothing_below_the_newest_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A forgotten number never counts a second time for the same receiver."""
    monkeypatch.setattr(confirmations, "MAX_RUNS", 2)
    machine = Confirmations(1)
    for first in (0, 2, 4):
        assert machine.on_confirmed(7, first, first + 1) == ([(first, first + 1)], [(first, first + 1)])
    assert machine.on_confirmed(7, 0, 2) == ([(1, 2)], [(1, 2)])
    assert machine.confirmed[7].numbers == RangeSet([(1, 3), (4, 5)])
    assert machine.on_confirmed(7, 0, 1) == ([], [])
