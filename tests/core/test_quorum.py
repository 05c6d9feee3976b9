"""Quorum arithmetic: majorities of the configured size, and one number out of many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.quorum import Consensus, Group, Intragroup, agree, quorum_of

NUMBERS = st.lists(st.integers(-1, 9), min_size=1, max_size=7)


def test_a_quorum_is_a_simple_majority() -> None:
    """P-026."""
    assert [quorum_of(size) for size in range(1, 10)] == [1, 2, 2, 3, 3, 4, 4, 5, 5]


@given(st.integers(1, 9), st.data())
def test_two_quorums_share_a_store(size: int, data: st.DataObject) -> None:
    masks = st.integers(0, (1 << size) - 1)
    one, other = data.draw(masks), data.draw(masks)
    group = Group(size)
    if group.stable(one) and group.registered(other):
        assert one & other


@pytest.mark.parametrize(("rule", "needed"), [(Intragroup.QUORUM, 3), (Intragroup.ALL, 5)])
def test_the_rule_says_how_many_are_needed(rule: Intragroup, needed: int) -> None:
    group = Group(5, rule)
    assert group.needed == needed
    assert not group.stable((1 << needed - 1) - 1)
    assert group.stable((1 << needed) - 1)
    assert group.registered((1 << needed) - 1)


@given(NUMBERS, st.integers(1, 7))
def test_majority_is_the_highest_that_a_quorum_reaches(numbers: list[int], size: int) -> None:
    agreed = agree(numbers, Consensus.MAJORITY, size)
    reached = [n for n in numbers if sum(other >= n for other in numbers) >= quorum_of(size)]
    assert agreed == max(reached, default=min(numbers))


@given(NUMBERS)
def test_lowest_and_highest(numbers: list[int]) -> None:
    assert agree(numbers, Consensus.LOWEST, 3) == min(numbers)
    assert agree(numbers, Consensus.HIGHEST, 3) == max(numbers)


def test_nothing_agrees_on_nothing() -> None:
    with pytest.raises(ValueError, match="at least one answer"):
        agree([], Consensus.HIGHEST, 3)
