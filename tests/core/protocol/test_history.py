"""Histories: which life a number belongs to, and where two histories part."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol.history import (
    FORGOTTEN,
    continued,
    divergence,
    fold,
    newest_history,
    owner,
    remembered,
    unfold,
)
from stablecast.core.protocol.messages import Life
from tests.core.samples import registered

BRANCHES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), min_size=1, max_size=7)
"""For each life the one whose history it continues (0: none), and its first number."""


def histories(branches: list[tuple[int, int]], limit: int) -> list[list[Life]]:
    """Return the history of every life, as stores remember it that keep `limit` entries."""
    known: list[list[Life]] = [[]]
    for life, (parent, first) in enumerate(branches, 1):
        known.append(remembered(continued(known[min(parent, life - 1)], life, first), limit))
    return known


def parting(ours: list[Life], theirs: list[Life]) -> int | None:
    """Return the first number of two owners, looked for number by number."""

    def differ(number: int) -> bool:
        owners = {owner(ours, number), owner(theirs, number)}
        return len(owners) == 2 and None not in owners

    return next(filter(differ, range(20)), None)


@given(BRANCHES, st.integers(0, 7), st.integers(0, 7))
def test_histories_part_at_the_first_number_with_two_owners(
    branches: list[tuple[int, int]], one: int, other: int
) -> None:
    known = histories(branches, limit=99)
    ours, theirs = known[min(one, len(branches))], known[min(other, len(branches))]
    assert divergence(ours, theirs) == parting(ours, theirs)


@given(BRANCHES, st.integers(0, 7), st.integers(0, 7), st.integers(2, 4))
def test_forgotten_lives_are_never_agreement(branches: list[tuple[int, int]], one: int, other: int, limit: int) -> None:
    whole, short = histories(branches, limit=99), histories(branches, limit)
    one, other = min(one, len(branches)), min(other, len(branches))
    true, told = parting(whole[one], whole[other]), divergence(short[one], short[other])
    if true is not None:
        assert told is not None
        assert told <= true
    if {life for life, _ in short[one]} & {life for life, _ in short[other]} - {FORGOTTEN}:
        assert told == true


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
