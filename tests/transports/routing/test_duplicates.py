"""The window of numbers: each passes once, at the edges and over the wrap. Row R-168."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.transports.routing.duplicates import SIZE, STEP, NumberWindow


def test_numbers_pass_once() -> None:
    window = NumberWindow()
    assert window.take(100, 10) == [(0, 10)]
    assert window.take(100, 10) == []
    assert window.take(95, 20) == [(0, 5), (15, 5)]


@pytest.mark.rows("R-168")
def test_the_window_moves_by_steps() -> None:
    window = NumberWindow()
    window.take(SIZE // 2, 1)
    assert window.base == 0
    window.take(SIZE - 1, 1)
    assert window.base == 0
    window.take(SIZE, 1)
    assert window.base == STEP
    assert window.take(STEP - 1, 2) == [(1, 1)]  # what is below the window does not pass


def test_a_gap_stays_open_for_a_repair() -> None:
    window = NumberWindow()
    window.take(0, 10)
    window.take(20, 10)
    assert window.take(10, 10) == [(0, 10)]


def test_numbers_wrap() -> None:
    window = NumberWindow()
    first = serial.MODULUS - 3
    assert window.take(first, 6) == [(0, 6)]
    assert window.take(0, 4) == [(3, 1)]


@given(st.integers(0, serial.MODULUS - 1), st.lists(st.tuples(st.integers(0, 600), st.integers(1, 40)), max_size=60))
def test_it_is_a_set_as_long_as_the_numbers_are_near(start: int, runs: list[tuple[int, int]]) -> None:
    window = NumberWindow()
    seen: set[int] = set()
    for offset, count in runs:
        numbers = range(offset, offset + count)
        new = window.take(serial.wire(start + offset), count)
        passed = [offset + skip + one for skip, some in new for one in range(some)]
        assert passed == [number for number in numbers if number not in seen]
        seen.update(numbers)
