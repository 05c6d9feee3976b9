"""The stream of hot numbers: each number once, gaps, and what all sources lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.core.receiver.hot_failover import MAX_GAPS, HotFailover, HotState

A, B = 1, 2


def stream(*sources: int) -> HotFailover:
    made = HotFailover()
    for source in sources:
        made.join(source)
    return made


@pytest.mark.rows("M-004")
def test_the_first_copy_wins() -> None:
    """M-004: whichever source brings it."""
    numbers = stream(A, B)
    assert numbers.state.name == "EMPTY"
    assert [numbers.take(source, number) for source, number in ((A, 7), (B, 7), (B, 8), (A, 8))] == [True, False] * 2
    assert numbers.state.name == "COMPLETE"
    assert numbers.take_missed() == []


def test_a_gap_waits_for_the_slower_source() -> None:
    numbers = stream(A, B)
    for number in (1, 2, 5):
        numbers.take(A, number)
    assert numbers.state.name == "GAPPED"
    numbers.take(B, 2)
    assert numbers.take_missed() == []
    assert numbers.take(B, 3)
    assert numbers.take(B, 4)
    assert numbers.state.name == "COMPLETE"
    assert numbers.take_missed() == []


def test_numbers_that_all_sources_passed_are_missed_once() -> None:
    """Also when the source that could still bring them leaves; a late copy is taken all the same."""
    numbers = stream(A, B)
    for number in (1, 4):
        numbers.take(A, number)
    numbers.take(B, 1)
    numbers.take(B, 3)
    assert numbers.take_missed() == [(2, 3)]
    assert numbers.state.name == "COMPLETE"
    numbers.take(A, 7)
    assert (numbers.take_missed(), numbers.state) == ([], HotState.GAPPED)
    numbers.leave(B)
    assert numbers.take_missed() == [(5, 7)]
    assert numbers.take(B, 5)
    assert numbers.take_missed() == []
    assert numbers.state.name == "COMPLETE"


def test_a_source_that_has_brought_nothing_is_waited_for() -> None:
    numbers = stream(A, B)
    for number in (1, 3):
        numbers.take(A, number)
    assert numbers.take_missed() == []
    numbers.leave(B)
    assert numbers.take_missed() == [(2, 3)]


def test_lower_numbers_than_the_first_are_taken() -> None:
    """They belong to a source that is behind; they were never a gap."""
    numbers = stream(A, B)
    numbers.take(A, 100)
    assert numbers.take(B, 97)
    assert numbers.take(B, 98)
    assert not numbers.take(B, 100)
    assert numbers.take_missed() == []


def test_a_number_that_is_put_back_comes_again() -> None:
    numbers = stream(A, B)
    numbers.take(A, 1)
    numbers.take(A, 2)
    numbers.put_back(A, 2)
    assert numbers.fresh(2)
    assert numbers.take(B, 2)
    assert not numbers.fresh(2)
    numbers = stream(A, B)
    numbers.take(A, 1)
    numbers.put_back(A, 1)
    numbers.leave(9)
    assert numbers.take(B, 1)


def test_numbers_wrap() -> None:
    numbers = stream(A)
    last = numbers.extended(serial.MODULUS - 1)
    numbers.take(A, last)
    assert numbers.extended(0) == last + 1
    numbers.take(A, numbers.extended(0))
    assert numbers.state.name == "COMPLETE"


NEAR_A_WRAP = st.one_of(
    st.integers(0, 40),
    st.integers(serial.HALF - 20, serial.HALF + 20),
    st.integers(serial.MODULUS - 40, serial.MODULUS - 1),
)
"""Hot numbers on the wire at which the arithmetic could go wrong."""


@given(NEAR_A_WRAP, st.integers(0, 50), st.integers(1, 50))
def test_a_source_that_is_behind_brings_each_number_once_wherever_the_wrap_is(
    begin: int, behind: int, count: int
) -> None:
    """Its numbers may lie before the first one of all, and before the wrap. No number is negative: that means none."""
    numbers, sent = stream(A, B), [(begin + offset) % serial.MODULUS for offset in range(-behind, count)]
    for source, wires in (A, sent[behind:]), (B, sent):
        for wire in wires:
            number = numbers.extended(wire)
            assert number >= 0
            assert numbers.take(source, number) is (source == A or wire in sent[:behind])
    assert numbers.take_missed() == []
    assert numbers.taken.total() == behind + count


@pytest.mark.parametrize(("gaps", "known"), [(MAX_GAPS - 1, True), (MAX_GAPS, False)])
def test_gaps_are_bounded(gaps: int, known: bool) -> None:
    """The first number is forgotten with the gap that is one too many; what was reported missed is not again."""
    numbers = stream(A, B)
    for number in range(0, 2 * gaps + 1, 2):
        numbers.take(A, number)
    assert numbers.fresh(0) is not known
    assert not numbers.fresh(2)
    assert not numbers.fresh(2 * gaps)
    assert len(numbers.taken) == min(gaps + 1, MAX_GAPS)
    numbers.leave(B)
    first = 1 if known else 3
    assert numbers.take_missed() == [(number, number + 1) for number in range(first, 2 * gaps, 2)]


def test_what_was_reported_missed_is_not_again_when_gaps_are_forgotten() -> None:
    numbers, reported = stream(A), list[tuple[int, int]]()
    for number in range(0, 2 * MAX_GAPS + 10, 2):
        numbers.take(A, number)
        reported += numbers.take_missed()
    assert reported == [(number, number + 1) for number in range(1, 2 * MAX_GAPS + 8, 2)]


def test_a_late_number_lowers_neither_the_newest_nor_what_its_source_has_passed() -> None:
    """The room for numbers on the wire is around the newest one, and a number is missed once all have passed it."""
    numbers = stream(A, B)
    numbers.take(A, 0)
    numbers.take(A, serial.HALF - 1)
    numbers.take(A, 5)
    assert numbers.extended(serial.MODULUS - 2) == serial.MODULUS - 2
    numbers.take(B, serial.HALF - 2)
    assert numbers.take_missed() == [(1, 5), (6, serial.HALF - 2)]


def test_each_source_passes_the_number_that_it_brings() -> None:
    """So a number directly below is missed at once, and one above is waited for."""
    numbers = stream(A, B)
    for source, number in (A, 0), (A, 2), (B, 2):
        numbers.take(source, number)
    assert numbers.take_missed() == [(1, 2)]
    numbers.take(A, 4)
    numbers.take(B, 3)
    assert (numbers.take_missed(), numbers.state) == ([], HotState.COMPLETE)


def test_a_number_that_was_put_back_leaves_a_gap_until_it_comes_again() -> None:
    numbers = stream(A, B)
    for number in (1, 2, 3):
        numbers.take(A, number)
    numbers.put_back(A, 2)
    assert numbers.state.name == "GAPPED"
    assert numbers.take(B, 2)
    assert numbers.state.name == "COMPLETE"


def test_numbers_that_were_put_back_are_not_missed_before_their_source_passed_them_again() -> None:
    numbers = stream(A)
    for number in range(1, 5):
        numbers.take(A, number)
    for number in (2, 3):
        numbers.put_back(A, number)
    assert (numbers.take_missed(), numbers.state) == ([], HotState.GAPPED)
    numbers.take(A, 3)
    assert numbers.take_missed() == [(2, 3)]
    numbers.put_back(B, 3)
    assert numbers.fresh(3)


SENT = st.lists(st.tuples(st.sampled_from([A, B, 3]), st.integers(0, 30)), max_size=60)


@given(SENT, st.sets(st.sampled_from([A, B, 3])))
def test_each_number_is_taken_once_and_missed_only_if_all_passed_it(
    arrivals: list[tuple[int, int]], leaving: set[int]
) -> None:
    """A naive twin that keeps every arrival."""
    numbers, taken, missed = stream(A, B, 3), set[int](), set[int]()
    passed: dict[int, Any] = {A: None, B: None, 3: None}
    for source, number in arrivals:
        assert numbers.take(source, number) is (number not in taken)
        taken.add(number)
        passed[source] = max(passed[source] or 0, number + 1)
        missed |= {number for first, stop in numbers.take_missed() for number in range(first, stop)}
        assert all(
            stop is not None and all(number < stop for stop in passed.values())
            for number in missed
            for stop in passed.values()
        )
    for source in leaving:
        numbers.leave(source)
        del passed[source]
        missed |= {number for first, stop in numbers.take_missed() for number in range(first, stop)}
    begun = arrivals[0][1] if arrivals else 0
    least = min((0 if stop is None else stop for stop in passed.values()), default=100)
    late = {number for number in missed if number in taken}
    assert {number for number in range(begun, min(least, max(taken, default=0))) if number not in taken} <= missed
    assert all(number not in taken or number in late for number in missed)
    gaps = [number for number in range(begun, max(taken, default=0)) if number not in taken and number not in missed]
    assert (numbers.state is HotState.GAPPED) == bool(gaps)
