"""Large messages: which ranges of numbers are whole messages, against the plain definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.source.large_messages import LargeMessages
from tests.support.invariants import check_large_messages

LAYOUTS = st.lists(st.integers(1, 4), min_size=1, max_size=8)
"""The number of fragments of each message, from number 0 on."""


def laid_out(layout: list[int]) -> tuple[LargeMessages, list[range]]:
    large, messages, at = LargeMessages(), list[range](), 0
    for count in layout:
        messages.append(range(at, at + count))
        if count > 1:
            large.add(at, at + count - 1)
        at += count
    return large, messages


@pytest.mark.rows("P-334", "P-335")
@given(LAYOUTS, st.lists(st.tuples(st.integers(0, 31), st.integers(1, 8)), max_size=8))
def test_a_whole_message_is_reported_once(layout: list[int], steps: list[tuple[int, int]]) -> None:
    large, messages = laid_out(layout)
    held, told = RangeSet(), set[int]()
    for start, count in steps:
        parts = held.add(start % sum(layout), min(start % sum(layout) + count, sum(layout)))
        for first, stop in large.whole(parts, held):
            assert not told & set(range(first, stop))
            told |= set(range(first, stop))
        assert told == {n for message in messages if all(n in held for n in message) for n in message}


@given(LAYOUTS, st.integers(0, 40))
def test_lower_messages_are_forgotten(layout: list[int], below: int) -> None:
    large, messages = laid_out(layout)
    assert large.begun(below) == [(m[0], m[-1] + 1) for m in messages if len(m) > 1 and m[0] < below]
    large.forget(below)
    assert large.firsts == [m[0] for m in messages if len(m) > 1 and m[-1] >= below]
    assert large.lasts == [m[-1] for m in messages if len(m) > 1 and m[-1] >= below]


def test_without_large_messages_every_number_is_whole() -> None:
    large = LargeMessages()
    large.forget(7)
    assert large.whole([(3, 9)], RangeSet()) == [(3, 9)]


def test_a_message_that_two_parts_complete_is_told_once() -> None:
    """The middle of 3 to 5 was there before."""
    large, _ = laid_out([1, 1, 1, 3, 1])
    held = RangeSet([(4, 5)])
    assert large.whole(held.add(2, 7), held) == [(2, 6), (6, 7)]


@pytest.mark.rows("P-334")
def test_the_first_number_of_a_message() -> None:
    large = LargeMessages()
    large.add(3, 5)
    assert [large.first_of(number) for number in range(2, 7)] == [2, 3, 3, 3, 6]
    large.add(6, 7)
    check_large_messages(large, 8)
    with pytest.raises(AssertionError):
        check_large_messages(large, 7)
