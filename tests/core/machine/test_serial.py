"""Serial numbers: what holds on unbounded ints must hold across the wrap (P-127, C-26)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stablecast.core.machine.serial import HALF, MODULUS, before, extend, wire

EXTENDED = st.one_of(
    st.integers(-3 * MODULUS, 3 * MODULUS),
    st.builds(lambda wraps, offset: wraps * HALF + offset, st.integers(-6, 6), st.integers(-3, 3)),
)
DISTANCE = st.one_of(st.integers(-HALF, HALF - 1), st.integers(-3, 3), st.sampled_from([-HALF, -HALF + 1, HALF - 1]))


@given(EXTENDED, DISTANCE)
@example(0, -HALF)
@example(MODULUS - 1, 1)
def test_extend_undoes_wire_within_half(near: int, distance: int) -> None:
    assert extend(wire(near + distance), near) == near + distance


@given(st.integers(0, MODULUS - 1), EXTENDED)
def test_extend_is_congruent_and_close(number: int, near: int) -> None:
    extended = extend(number, near)
    assert wire(extended) == number
    assert -HALF <= extended - near < HALF


@given(EXTENDED, DISTANCE)
@example(MODULUS - 1, 1)
def test_before_is_less_than_on_extended_numbers(near: int, distance: int) -> None:
    expected = near < near + distance if distance != -HALF else False
    assert before(wire(near), wire(near + distance)) is expected


@given(st.integers(0, MODULUS - 1))
def test_no_order_at_half_nor_with_itself(number: int) -> None:
    opposite = wire(number + HALF)
    assert not before(number, opposite)
    assert not before(opposite, number)
    assert not before(number, number)


@pytest.mark.parametrize("number", [-1, MODULUS, MODULUS + 7])
def test_extend_refuses_what_does_not_fit_32_bits(number: int) -> None:
    with pytest.raises(ValueError, match=f"wire number {number} does not fit 32 bits"):
        extend(number, near=0)
