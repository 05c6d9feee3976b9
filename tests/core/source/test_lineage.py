"""Lineage: the beginning of a life, and the other lives that matter to it."""

import pytest

from stablecast.core.protocol.quorum import Consensus, GroupRules, Quorums
from stablecast.core.source.lineage import Lineage
from tests.core.samples import LIFE, OLDER_LIFE, registered

GROUP = Quorums.of(GroupRules((3,)), [0, 0, 0])


def begun() -> Lineage:
    machine = Lineage()
    answers = [
        registered(store_index=0, high=4, term=3, lives=((OLDER_LIFE, 0),), lives_term=2),
        registered(store_index=1, high=6, term=2),
    ]
    machine.begin(answers, LIFE, Consensus.HIGHEST, GROUP)
    return machine


@pytest.mark.rows("P-413", "P-415")
def test_a_life_begins_behind_what_the_stores_have() -> None:
    """T5."""
    machine = begun()
    assert (machine.resume_point, machine.term) == (7, 3)
    assert machine.lives == [(OLDER_LIFE, 0), (LIFE, 7)]


def test_a_store_that_counts_more_lives_than_before_had_another_one_since() -> None:
    """The other life need not have announced itself: it may have had its term at a quorum."""
    machine = begun()
    assert machine.succeeded(registered(lives=((LIFE, 7), (9, 9)), lives_term=4, term=5), registered(term=3), 3)
    assert machine.succeeded(registered(term=5), registered(term=3), 3)
    assert machine.succeeded(registered(term=10), registered(term=9), 3)
    assert not machine.succeeded(registered(term=3), registered(term=2), 3)
    assert not machine.succeeded(registered(term=9), registered(term=9), 3)


def test_a_first_grant_is_judged_by_the_lives_that_the_store_knows() -> None:
    """It may have counted lives that reached no other store; those that began earlier replace nobody."""
    machine = begun()
    assert machine.succeeded(registered(lives=((9, 9),), lives_term=4, term=5), None, 3)
    assert not machine.succeeded(registered(lives=((OLDER_LIFE, 0), (5, 7)), lives_term=3, term=3), None, 3)
    assert not machine.succeeded(registered(term=9), None, 3)


def test_a_count_that_was_asked_for_is_no_other_life() -> None:
    machine = begun()
    assert not machine.succeeded(registered(term=8), registered(term=3), 8)
    assert machine.succeeded(registered(term=9), registered(term=3), 8)


def test_under_a_newer_term_a_store_shows_that_it_was_told_of_it() -> None:
    """Formal design, 7.6."""
    machine = begun()
    assert machine.proven(None)
    machine.renew(5)
    assert machine.term == 5
    assert [machine.proven(answer) for answer in (None, registered(lives_term=3), registered(lives_term=5))] == [
        False,
        False,
        True,
    ]
