"""Facts of all checkers: promises and excuses."""

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.evidence.trace.cross_rules import Suspect
from stablecast.lab.sim.disk import DiskRecord, DiskRecordKind, VirtualDisk
from stablecast.lab.sim.facts import NOBODY
from stablecast.lab.sim.setup import STORES
from stablecast.lab.sim.source_checkers import Checkers
from tests.adapters.lab.sim.checker_world import (
    LIFE,
    NEXT,
    STREAM,
    begin,
    broken,
    stable,
    store,
    world,
)


@pytest.mark.rows("P-026")
def test_what_was_only_on_disks_that_are_lost_is_nobodys_promise() -> None:
    """One of two disks that have it is enough no more."""
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


def test_a_majority_that_lost_its_disks_hides_no_other_loss_between_traces() -> None:
    """Planted: a loss of the next number, of another life, and a message that was changed."""
    checkers = world()
    store(checkers, 0, 2, STORES[:2])
    checkers.on_stable(LIFE, 0, 2, list(STORES))
    checkers.facts.excuse(LIFE, 0)
    lost = Suspect("store", 1, "S3", 0, "cut", LIFE, "", 0)
    others = {"number": 1}, {"life": NEXT}, {"rule": "H1"}
    assert not checkers._promised(lost)
    assert all(checkers._promised(attrs.evolve(lost, **other)) for other in others)


def test_what_was_in_a_memory_is_nobodys_promise_without_it() -> None:
    checkers = world(memory=True)
    for name in STORES[:2]:
        checkers.facts.disks[name].keep(STREAM, 0, 1, LIFE)
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    assert broken(checkers) == []
    checkers.facts.on_lost(STORES[0], disk=False)
    assert checkers.facts.stable == {}


def doubtful(stores: tuple[str, ...], term: int) -> Checkers:
    """A life that these stores knew when the first of them lost its disk, and the next one under a term."""
    checkers = world()
    for name in stores:
        checkers.facts.on_granted(name, STREAM, LIFE)
    checkers.facts.on_told(LIFE, 1)
    checkers.facts.on_lost(stores[0], disk=True)
    stable(checkers, 0, 1)
    checkers.facts.on_told(NEXT, term)
    return checkers


@pytest.mark.parametrize(
    ("stores", "term", "promised"), [(STORES[:2], 1, False), (STORES[:2], 2, True), (STORES, 1, True)]
)
def test_a_life_that_no_quorum_remembers_is_promised_nothing_beside_the_next(
    stores: tuple[str, ...], term: int, promised: bool
) -> None:
    """Formal design, 7.3: the next life has a higher term wherever a quorum remembers the one before."""
    checkers = doubtful(stores, term)
    assert (checkers.facts.stable == {0: LIFE}) is promised
    store(checkers, 1, 2, life=NEXT)
    checkers.on_stable(NEXT, 1, 2, list(STORES))
    assert (1 in checkers.facts.stable) is promised
    assert broken(checkers) == []


@pytest.mark.parametrize(
    ("stores", "begins", "declared", "found"),
    [
        (STORES[:2], 0, False, []),
        (STORES[:2], 1, False, []),
        (STORES[:2], 0, True, ["S2", "S3"]),
        (STORES, 0, False, ["S2", "S3"]),
    ],
)
def test_a_life_that_comes_back_through_an_undeclared_copy_excuses_itself_and_the_later_one(
    stores: tuple[str, ...], begins: int, declared: bool, found: list[str]
) -> None:
    """The store that forgot the later life was needed for its quorum; nobody else who answers has heard of it."""
    checkers = world()
    checkers.on_life(NEXT, begins)
    for name in stores:
        checkers.facts.on_granted(name, STREAM, NEXT)
    checkers.facts.on_told(LIFE, 1)
    checkers.facts.on_told(NEXT, 2)
    checkers.facts.on_lost(STORES[0], disk=True, silent=declared, copy=VirtualDisk())
    checkers.facts.violations.clear()
    stable(checkers, 0, 1)
    assert (0 in checkers.facts.stable) is (begins == 1 or bool(found))
    store(checkers, begins, begins + 1, life=NEXT)
    checkers.on_stable(NEXT, begins, begins + 1, list(STORES))
    checkers.at_the_end()
    assert broken(checkers) == found


@pytest.mark.parametrize(
    ("declared", "again", "found"),
    [(False, False, []), (False, True, ["S2", "S3"]), (True, False, ["S2", "S3"])],
    ids=["an undeclared copy", "which granted it again", "a declared copy: the store has no vote"],
)
def test_a_grant_that_is_forgotten_on_its_way_excuses_the_life_that_counts_it(
    declared: bool, again: bool, found: list[str]
) -> None:
    """The later life announced itself when the store that it counted had got an older copy of its disk.

    The guarantees exclude a backup that nobody declared, if nobody who answers has heard of a later run.
    """
    checkers = world()
    checkers.on_life(NEXT, 0)
    for name in STORES[:2]:
        checkers.facts.on_granted(name, STREAM, NEXT)
    checkers.facts.on_told(LIFE, 1)
    checkers.facts.on_lost(STORES[0], disk=True, silent=declared, copy=VirtualDisk())
    if again:
        checkers.facts.on_granted(STORES[0], STREAM, NEXT)
    checkers.facts.on_told(NEXT, 2)
    checkers.facts.violations.clear()
    stable(checkers, 0, 1)
    store(checkers, 0, 1, life=NEXT)
    checkers.on_stable(NEXT, 0, 1, list(STORES))
    checkers.at_the_end()
    assert broken(checkers) == found


@pytest.mark.parametrize(
    ("told", "losing", "disk", "found"),
    [
        (STORES, STORES, False, []),
        (STORES, STORES[:2], False, []),
        (STORES, STORES[:1], False, ["S2"]),
        (STORES[:2], STORES[:1], False, []),
        (STORES[:2], STORES[2:], False, ["S2"]),
        (STORES[:2], STORES[:1], True, ["S2"]),
    ],
    ids=["all", "a quorum", "one of three", "one of a quorum", "one that had none", "a disk: the store has no vote"],
)
def test_a_late_acknowledgement_of_what_memories_lost_claims_no_number_again(
    told: tuple[str, ...], losing: tuple[str, ...], disk: bool, found: list[str]
) -> None:
    """The next life used the number, and all receivers consumed it; so the stores have neither message any more."""
    checkers = world(memory=True, paced=True)
    for name in told:
        checkers.facts.disks[name].keep(STREAM, 0, 1, LIFE)
        checkers.stores.on_acknowledged(name, LIFE, 0, 1)
    for name in losing:
        checkers.facts.on_lost(name, disk=disk, silent=disk)
        checkers.facts.disks[name].memory.clear()
    checkers.on_life(NEXT, 0)
    checkers.facts.stable[0] = NEXT
    for name in STORES:
        checkers.facts.gone.setdefault(name, {})[NOBODY] = RangeSet([(0, 1)])
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    assert broken(checkers) == found
    assert checkers.facts.stable == {0: NEXT}


@pytest.mark.rows("P-502", "P-505")
def test_in_turns_nothing_is_promised_but_what_the_next_store_has() -> None:
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


def spoil(checkers: Checkers, name: str, number: int) -> None:
    """The record goes bad that shows a number."""
    record = checkers.facts.disks[name].durable[STREAM][number]
    checkers.facts.on_damaged(name, record)
    record.bad = True


@pytest.mark.rows("P-026")
def test_bad_copies_are_survived_while_a_good_one_is_left() -> None:
    checkers = world()
    stable(checkers, 0, 1)
    spoil(checkers, STORES[0], 0)
    assert checkers.facts.holders(LIFE, 0) == list(STORES[1:])
    checkers.at_the_end()
    checkers.on_life(NEXT, 0)
    assert broken(checkers) == ["S2"]
    spoil(checkers, STORES[1], 0)
    checkers.on_life(NEXT, 0)
    assert broken(checkers) == ["S2", "S2"]
    checkers.at_the_end()
    assert broken(checkers) == ["S2", "S2", "S3"]
    spoil(checkers, STORES[2], 0)
    checkers.on_life(NEXT, 0)
    checkers.at_the_end()
    assert broken(checkers) == ["S2", "S2", "S3"]
    assert list(checkers.facts.excused[LIFE]) == [(0, 1)]


def test_what_went_bad_may_be_called_stable_late() -> None:
    """By a source that heard of it before."""
    checkers = world()
    store(checkers, 0, 2, STORES[:2])
    spoil(checkers, STORES[0], 0)
    checkers.on_stable(LIFE, 0, 2, list(STORES))
    assert broken(checkers) == []
    assert list(checkers.facts.excused[LIFE]) == [(0, 2)]


def test_nobody_misses_what_a_bad_record_does_not_show() -> None:
    """It was cut, and another life used the number."""
    checkers = world()
    old = DiskRecord(1, DiskRecordKind.MESSAGES, None, STREAM, 0, 2, NEXT)
    store(checkers, 0, 1)
    checkers.on_stable(LIFE, 0, 1, list(STORES))
    checkers.facts.disks[STORES[0]].durable[STREAM][1] = old
    checkers.facts.on_damaged(STORES[0], old)
    assert checkers.facts.stable == {0: LIFE}


@pytest.mark.rows("P-012", "P-026")
def test_with_its_disk_a_store_forgets_what_it_let_go() -> None:
    """A message that two of three do not know is nobody's promise; what the third let go counts again."""
    checkers = world(paced=True)
    stable(checkers, 0, 2)
    for name in STORES:
        checkers.stores.on_reclaim(name, STREAM, 2)
        checkers.facts.disks[name].durable.clear()
    checkers.stores.on_wiped(STORES[0])
    assert checkers.facts.holders(LIFE, 0) == list(STORES[1:])
    checkers.stores.on_wiped(STORES[1])
    checkers.on_life(NEXT, 0)
    checkers.on_stable(LIFE, 0, 2, list(STORES))
    assert (broken(checkers), checkers.facts.stable) == ([], {})
    checkers.stores.on_reclaim(STORES[0], STREAM, 2)
    assert checkers.facts.holders(LIFE, 0) == [STORES[0], STORES[2]]
