"""Confirmations: how far enough different receivers are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.source import confirmations
from stablecast.core.source.confirmations import Confirmations


@given(st.integers(0, 3), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=20))
def test_confirmed_is_what_enough_receivers_reached(unique: int, steps: list[tuple[int, int]]) -> None:
    """P-329, P-020."""
    machine, newest = Confirmations(unique), dict[int, int]()
    for receiver, number in steps:
        before = newest.get(receiver, -1)
        news = machine.on_confirmed(receiver, number)
        newest[receiver] = max(before, number)
        reached = next(n for n in range(22) if not unique or sum(n <= upto for upto in newest.values()) < unique)
        grown = reached > machine.reached if news is None else False
        assert not grown
        if number <= before:
            assert news is None
        else:
            assert news is not None
            assert news[0] == before + 1
        assert machine.stop(99) == (reached if unique else 99)


def test_more_is_confirmed_by_enough_only_sometimes() -> None:
    """P-312: two receivers are asked for."""
    machine = Confirmations(2)
    assert machine.on_confirmed(7, 5) == (0, False)
    assert machine.on_confirmed(8, 3) == (0, True)
    assert machine.on_confirmed(7, 9) == (6, False)
    assert machine.on_confirmed(8, 4) == (4, True)


def test_a_receiver_begins_where_the_life_does() -> None:
    """Below are numbers of an earlier life, which this one has nobody to tell of."""
    machine = Confirmations()
    machine.begin(4)
    assert machine.on_confirmed(7, 3) is None
    assert machine.on_confirmed(7, 5) == (4, False)


def test_receivers_beyond_the_bound_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmations, "MAX_RECEIVERS", 1)
    machine = Confirmations(1)
    assert machine.on_confirmed(7, 1) == (0, True)
    assert machine.on_confirmed(8, 9) is None
    assert machine.on_confirmed(7, 2) == (2, True)
