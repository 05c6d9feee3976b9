"""Where a life begins, and which other lives matter to it."""

from stablecast.core.quorum import Consensus, GroupRules, Quorums
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


def test_a_life_begins_behind_what_the_stores_have() -> None:
    """T5, P-413, P-415."""
    machine = begun()
    assert (machine.resume_point, machine.born, machine.term) == (7, 3, 3)
    assert machine.lives == [(OLDER_LIFE, 0), (LIFE, 7)]


def test_a_life_that_registered_later_and_was_announced_replaces_this_one() -> None:
    machine = begun()
    assert machine.succeeded(registered(lives=((LIFE, 7), (9, 9)), lives_term=4))
    assert machine.succeeded(registered(lives=((9, 9),), lives_term=4))
    assert not machine.succeeded(registered(lives=((LIFE, 7),), lives_term=4))
    assert not machine.succeeded(registered())


def test_an_earlier_life_that_sent_nothing_replaces_nobody() -> None:
    """A store that was away when this life began tells of the one before, whose first number this life uses."""
    machine = begun()
    assert not machine.succeeded(registered(lives=((OLDER_LIFE, 0), (5, 7)), lives_term=3))
    machine.on_term(6)
    machine.on_term(5)
    assert (machine.born, machine.term) == (3, 6)
    assert machine.succeeded(registered(lives=((9, 9),), lives_term=6))
