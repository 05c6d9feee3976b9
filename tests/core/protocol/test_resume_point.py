"""Resume points: from what stores offer to where a source or receiver goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.serial import HALF, MODULUS, wire
from stablecast.core.protocol.messages import Registered
from stablecast.core.protocol.quorum import Consensus, GroupRules, Quorums
from stablecast.core.protocol.resume_point import offer, receiver_low, resume_point, span, start_number
from tests.core.samples import registered

ONE_GROUP = Quorums.of(GroupRules((3,)), [0, 0, 0])


def holding(*highs: int) -> list[Registered]:
    """Return the grants of stores that hold everything up to these numbers."""
    return [registered(store_index=index, high=wire(high)) for index, high in enumerate(highs)]


@given(st.integers(-HALF, 1 << 40), st.integers(-1, MODULUS - 2), st.integers(-1000, 1000))
def test_a_span_is_read_back_whatever_its_length(low: int, length: int, off: int) -> None:
    assert span(wire(low), wire(low + length), low + off) == (low, low + length)


def test_an_offer_of_nothing_is_empty() -> None:
    assert offer(registered(low=5, high=4), 0) == (5, 4)


@pytest.mark.rows("P-413", "P-415", "P-416")
@pytest.mark.parametrize(
    ("consensus", "expected"), [(Consensus.HIGHEST, 13), (Consensus.MAJORITY, 13), (Consensus.LOWEST, 11)]
)
def test_a_source_resumes_above_the_consensus(consensus: Consensus, expected: int) -> None:
    assert resume_point(holding(10, 12, 12), consensus, ONE_GROUP) == expected


@pytest.mark.rows("P-415")
@pytest.mark.parametrize(
    ("highs", "expected"),
    [
        ((100, 5, 5, 9, 9, 9, 3, 3), 10),
        ((7, 7, 5, 9, 2, 2, 3, 3), 8),
    ],
)
def test_the_newest_majority_of_several_groups_counts(highs: tuple[int, ...], expected: int) -> None:
    """C-15, C-16: what is new at a minority of its group is in no majority; groups of 3, 3 and 2."""
    groups = Quorums.of(GroupRules((3, 3, 2)), [0, 0, 0, 1, 1, 1, 2, 2])
    assert resume_point(holding(*highs), Consensus.MAJORITY, groups) == expected
    assert resume_point(holding(*highs), Consensus.HIGHEST, groups) == max(highs) + 1
    assert resume_point(holding(*highs), Consensus.LOWEST, groups) == min(highs) + 1


def test_a_group_without_a_quorum_of_answers_has_no_majority() -> None:
    groups = Quorums.of(GroupRules((1, 3)), [0, 1, 1, 1])
    assert resume_point(holding(4, 90), Consensus.MAJORITY, groups) == 5


def test_without_any_majority_the_lowest_counts() -> None:
    groups = Quorums.of(GroupRules((3, 3)), [0, 1, 1])
    assert resume_point(holding(4, 90), Consensus.MAJORITY, groups) == 5


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 9)), min_size=1, max_size=8), st.sampled_from(Consensus))
def test_the_resume_point_is_that_of_its_definition(stores: list[tuple[int, int]], consensus: Consensus) -> None:
    sizes = [sum(group == index for group, _ in stores) for index in range(3)]
    quorums = Quorums.of(GroupRules(tuple(size or 1 for size in sizes)), [group for group, _ in stores])
    highs = [high for _, high in stores]
    reached = [
        high
        for group, high in stores
        if 2 * sum(other == group and number >= high for other, number in stores) > sizes[group]
    ]
    expected = {Consensus.LOWEST: min(highs), Consensus.HIGHEST: max(highs), Consensus.MAJORITY: max(reached)}
    assert resume_point(holding(*highs), consensus, quorums) == expected[consensus] + 1


def test_a_source_resumes_across_the_wrap() -> None:
    answers = [registered(low=MODULUS - 9, high=MODULUS - 2), registered(low=MODULUS - 9, high=3)]
    assert resume_point(answers, Consensus.HIGHEST, ONE_GROUP) == 4


def test_a_resume_point_needs_an_answer() -> None:
    with pytest.raises(ValueError, match="at least one grant"):
        resume_point([], Consensus.HIGHEST, ONE_GROUP)


def test_stores_that_know_an_acknowledgement_decide() -> None:
    answers = [registered(old=True, low=21), registered(old=True, low=19), registered(low=50)]
    assert receiver_low(answers, Consensus.HIGHEST, 0) == 21
    assert receiver_low(answers, Consensus.LOWEST, 0) == 19


def test_a_history_begins_at_the_lowest_offer() -> None:
    assert receiver_low([registered(low=50), registered(low=0)], Consensus.HIGHEST, 0) == 0


@pytest.mark.rows("P-424")
@pytest.mark.parametrize(("wish", "start"), [(1, 4), (0, 0), (2, 2), (3, 3), (5, 5), (6, 6), (7, 7), (12, 7)])
def test_the_application_may_choose_but_not_ask_for_what_it_was_offered(wish: int, start: int) -> None:
    """Numbers 0 to 6 were sent, 0 is consumed, the maximum is 2."""
    assert start_number(low=1, high=6, maximum=2, wish=wish) == start


def test_without_a_maximum_everything_is_recovered() -> None:
    assert start_number(low=1, high=6, maximum=0, wish=1) == 1
