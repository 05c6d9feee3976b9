"""Resume points: from what stores offer to where a source or receiver goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.quorum import Consensus
from stablecast.core.resume import offer, receiver_low, resume_point, span, start_number
from stablecast.core.serial import HALF, MODULUS, wire
from tests.core.samples import registered


@given(st.integers(-HALF, 1 << 40), st.integers(-1, MODULUS - 2), st.integers(-1000, 1000))
def test_a_span_is_read_back_whatever_its_length(low: int, length: int, off: int) -> None:
    assert span(wire(low), wire(low + length), low + off) == (low, low + length)


def test_an_offer_of_nothing_is_empty() -> None:
    assert offer(registered(low=5, high=4), 0) == (5, 4)


@pytest.mark.parametrize(
    ("consensus", "expected"), [(Consensus.HIGHEST, 13), (Consensus.MAJORITY, 13), (Consensus.LOWEST, 11)]
)
def test_a_source_resumes_above_the_consensus(consensus: Consensus, expected: int) -> None:
    answers = [registered(high=high) for high in (10, 12, 12)]
    assert resume_point(answers, consensus, 3) == expected


def test_a_source_resumes_across_the_wrap() -> None:
    answers = [registered(low=MODULUS - 9, high=MODULUS - 2), registered(low=MODULUS - 9, high=3)]
    assert resume_point(answers, Consensus.HIGHEST, 3) == 4


def test_a_resume_point_needs_an_answer() -> None:
    with pytest.raises(ValueError, match="at least one grant"):
        resume_point([], Consensus.HIGHEST, 3)


def test_stores_that_know_an_acknowledgement_decide() -> None:
    answers = [registered(old=True, low=21), registered(old=True, low=19), registered(low=50)]
    assert receiver_low(answers, Consensus.HIGHEST, 0) == 21
    assert receiver_low(answers, Consensus.LOWEST, 0) == 19


def test_a_history_begins_at_the_lowest_offer() -> None:
    assert receiver_low([registered(low=50), registered(low=0)], Consensus.HIGHEST, 0) == 0


@pytest.mark.parametrize(("wish", "start"), [(1, 4), (0, 0), (2, 2), (3, 3), (5, 5), (6, 6), (7, 7), (12, 7)])
def test_the_application_may_choose_but_not_ask_for_what_it_was_offered(wish: int, start: int) -> None:
    """P-424: numbers 0 to 6 were sent, 0 is consumed, the maximum is 2."""
    assert start_number(low=1, high=6, maximum=2, wish=wish) == start


def test_without_a_maximum_everything_is_recovered() -> None:
    assert start_number(low=1, high=6, maximum=0, wish=1) == 1
