"""Sized runs: what goes at a limit, against a twin that keeps every message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.store import extents as extents_module
from stablecast.core.store.extents import Extents


def spans(extents: Extents) -> list[tuple[int, int, int]]:
    return [(run.first, run.stop, run.payload_bytes) for run in extents.runs]


def test_neighbours_of_one_instant_are_joined_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extents_module, "RUN_BYTES", 20)
    kept = Extents()
    for first, at in ((0, 1), (1, 1), (2, 1), (3, 2), (5, 2)):
        kept.add(first, first + 1, 10, at)
    assert spans(kept) == [(0, 2, 20), (2, 3, 10), (3, 4, 10), (5, 6, 10)]
    assert (kept.messages, kept.payload_bytes) == (5, 50)


def test_late_runs_find_their_place() -> None:
    kept = Extents()
    for first in (10, 0, 5):
        kept.add(first, first + 2, 10, 1)
    assert [first for first, _, _ in spans(kept)] == [0, 5, 10]
    assert kept.oldest.first == 0


def test_a_run_that_is_cut_keeps_its_share() -> None:
    kept = Extents()
    kept.add(0, 10, 105, 1)
    kept.forget(3)
    assert spans(kept) == [(3, 10, 74)]
    kept.cut(5)
    assert spans(kept) == [(3, 5, 21)]
    kept.cut(3)
    assert (bool(kept), kept.messages, kept.payload_bytes) == (False, 0, 0)


@pytest.mark.rows("P-110", "P-113", "P-114")
@pytest.mark.parametrize(
    ("excess", "horizon", "number"),
    [
        (0, None, 0),
        (1, None, 1),
        (10, None, 1),
        (11, None, 2),
        (100, None, 10),
        (101, None, 11),
        (999, None, 20),
        (0, 1, 10),
        (0, 2, 20),
        (150, 1, 15),
        (0, 0, 0),
        (50, 1, 10),
    ],
)
def test_the_oldest_messages_must_go(excess: int, horizon: int | None, number: int) -> None:
    """By size as much as is needed and no more; by age whole runs."""
    kept = Extents()
    kept.add(0, 10, 100, 1)
    kept.add(10, 20, 100, 2)
    assert kept.below(0, excess, 0, horizon) == number


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 40), st.integers(1, 5)),
        st.tuples(st.sampled_from(["forget", "cut"]), st.integers(0, 45)),
    ),
    max_size=25,
)


@pytest.mark.rows("P-123")
@given(STEPS)
def test_sums_are_those_of_the_messages(steps: list[Any]) -> None:
    """The cost is that of runs. Messages of one size have no rounding."""
    kept, twin = Extents(), set[int]()
    for step in steps:
        match step:
            case ("add", first, count):
                if not twin & set(range(first, first + count)):
                    kept.add(first, first + count, 10 * count, 1)
                    twin |= set(range(first, first + count))
            case ("forget", number):
                kept.forget(number)
                twin = {n for n in twin if n >= number}
            case (_, number):
                kept.cut(number)
                twin = {n for n in twin if n < number}
        assert {n for run in kept.runs for n in range(run.first, run.stop)} == twin
        assert (kept.messages, kept.payload_bytes) == (len(twin), 10 * len(twin))
        assert [run.first for run in kept.runs] == sorted(run.first for run in kept.runs)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6), st.booleans()), max_size=20))
def test_removing_a_range_leaves_the_rest(steps: list[tuple[int, int, bool]]) -> None:
    """Messages of one byte, so that a part of a run has what the twin says."""
    kept, twin = Extents(), dict[int, int]()
    for at, (first, count, removed) in enumerate(steps):
        numbers = range(first, first + count)
        if removed:
            kept.remove(first, first + count)
            twin = {number: came for number, came in twin.items() if number not in numbers}
        elif not any(number in twin for number in numbers):
            kept.add(first, first + count, count, at // 4)
            twin |= dict.fromkeys(numbers, at // 4)
        assert {number: run.at for run in kept.runs for number in range(run.first, run.stop)} == twin
        assert kept.messages == kept.payload_bytes == len(twin)
        assert [run.first for run in kept.runs] == sorted(run.first for run in kept.runs)
