"""What all checkers know: what is promised, and what is excused."""

from stablecast.sim.setup import STORES
from tests.adapters.sim.checking import (
    LIFE,
    NEXT,
    STREAM,
    begin,
    broken,
    stable,
    store,
    world,
)


def test_what_was_only_on_disks_that_are_lost_is_nobodys_promise() -> None:
    """P-026: one of two disks that have it is enough no more."""
    checkers = world()
    store(checkers, 0, 2, STORES[:2])
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    checkers.facts.on_lost(STORES[2], disk=True)
    assert checkers.facts.stable == {0: LIFE}
    checkers.facts.on_lost(STORES[0], disk=True)
    assert checkers.facts.stable == {}
    checkers.facts.disks[STORES[0]].wipe()
    checkers.on_stable(LIFE, 1, 2, list(STORES))
    checkers.at_the_end()
    assert broken(checkers) == []
    assert [list(numbers) for numbers in checkers.facts.excused.values()] == [[(0, 2)]]


def test_what_was_in_a_memory_is_nobodys_promise_without_it() -> None:
    checkers = world(memory=True)
    for name in STORES[:2]:
        checkers.facts.disks[name].keep(STREAM, 0, 1, LIFE)
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    assert broken(checkers) == []
    checkers.facts.on_lost(STORES[0], disk=False)
    assert checkers.facts.stable == {}


def test_in_turns_nothing_is_promised_but_what_the_next_store_has() -> None:
    """P-502, P-505."""
    checkers = world(turns=True)
    store(checkers, 0, 4, STORES[:1])
    store(checkers, 0, 2, STORES[1:2])
    checkers.on_stable(LIFE, 0, 4, [STORES[0]])
    checkers.facts.on_turn(STORES[1])
    checkers.on_life(NEXT, 2)
    assert broken(checkers) == []
    assert checkers.facts.stable == {0: LIFE, 1: LIFE}
    checkers.on_life(NEXT, 1)
    assert broken(checkers) == ["S2"]


def test_a_violation_is_told_by_id_and_name() -> None:
    checkers = world()
    checkers.on_stable(LIFE, 0, 1, [])
    assert [violation.name for violation in checkers.facts.violations] == ["S1 StableByQuorum"]


def test_what_a_quorum_of_disks_took_along_is_not_promised() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    for name in STORES[:2]:
        checkers.facts.on_lost(name, disk=True)
        checkers.facts.disks[name].wipe()
    checkers.at_the_end()
    checkers.on_release(LIFE, 3)
    assert broken(checkers) == []


def test_what_a_limit_let_go_is_excused() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    for name in STORES:
        checkers.stores.on_reclaim(name, STREAM, 2)
        del checkers.facts.disks[name].durable[STREAM][0]
    checkers.at_the_end()
    begin(checkers, 2)
    assert broken(checkers) == []
    begin(checkers, 3)
    assert broken(checkers) == ["D1"]
