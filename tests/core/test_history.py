"""Histories: which life a number belongs to, and where two histories part."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.history import continued, divergence, fold, newest_history, owner, unfold
from stablecast.core.serial import MODULUS
from tests.core.samples import registered

HISTORIES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 8)), max_size=4).map(
    lambda lives: sorted(lives, key=lambda life: life[1])
)


@given(HISTORIES, HISTORIES)
def test_histories_part_at_the_first_number_with_two_owners(
    ours: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    def differ(number: int) -> bool:
        owners = {owner(ours, number), owner(theirs, number)}
        return len(owners) == 2 and None not in owners

    assert divergence(ours, theirs) == next(filter(differ, range(20)), None)


def test_a_life_that_sent_nothing_owns_nothing() -> None:
    history = continued(continued([(1, 0)], 2, 5), 3, 5)
    assert history == [(1, 0), (3, 5)]
    assert [owner(history, number) for number in (-1, 4, 5)] == [None, 1, 3]


def test_the_history_of_the_newest_life_is_continued() -> None:
    """A store that only counted a later life says so with its term; its history is older all the same."""
    told = registered(term=3, lives=((1, 0), (2, 5)), lives_term=2)
    counted = registered(term=4, lives=((1, 0),), lives_term=1)
    assert newest_history([counted, told, registered()], 5) == ([(1, 0), (2, 5)], 4)


def test_histories_cross_the_wrap() -> None:
    history = [(1, MODULUS - 3), (2, MODULUS + 1)]
    assert fold(history) == ((1, MODULUS - 3), (2, 1))
    assert unfold(fold(history), MODULUS) == history
