"""The checkers of the receivers: what each of them says of the least that breaks its rule."""

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Life, StoreEntry
from stablecast.lab.sim.setup import STORES
from tests.adapters.lab.sim.checker_world import (
    LIFE,
    NEXT,
    PROCESS,
    READER,
    STREAM,
    begin,
    broken,
    deliver,
    stable,
    store,
    world,
)
from tests.core.samples import info


def test_what_a_later_life_got_stable_an_earlier_session_need_not_have() -> None:
    """T5: it ends where its life ends."""
    checkers = world()
    checkers.receivers.on_session(READER, PROCESS, LIFE)
    checkers.on_life(NEXT, 0)
    store(checkers, 0, 3, life=NEXT)
    checkers.on_stable(NEXT, 0, 3, list(STORES))
    checkers.receivers.on_begin(READER, PROCESS, LIFE, 1)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 1, 3)
    assert broken(checkers) == []


@pytest.mark.parametrize(("turns", "lost", "found"), [(True, 2, []), (True, 1, ["D1"]), (False, 2, ["D1"])])
def test_in_turns_only_what_was_given_up_may_come_late(turns: bool, lost: int, found: list[str]) -> None:
    """Round robin: the store that has it may be away, and the guarantees say nothing about its messages."""
    checkers = world(turns=turns)
    begin(checkers)
    checkers.receivers.on_given_up_run(PROCESS, LIFE, lost, lost + 1)
    checkers.receivers.on_handed(PROCESS, LIFE, 4, 5)
    checkers.receivers.on_handed(PROCESS, LIFE, 2, 3)
    assert broken(checkers) == found


def test_delivered_is_what_its_sender_put_there() -> None:
    checkers = world()
    begin(checkers)
    deliver(checkers, 0, 4)
    assert broken(checkers) == []
    deliver(checkers, 4, 5, payload=NEXT)
    assert broken(checkers) == ["D1"]


def test_what_is_stable_is_not_reported_lost() -> None:
    checkers = world()
    begin(checkers)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 0, 2)
    assert broken(checkers) == []
    stable(checkers, 6, 8)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 7, 8)
    assert broken(checkers) == ["S3"]


@pytest.mark.parametrize(
    ("registered", "damaged", "cut", "found"),
    [
        (STORES[:2], STORES[:1], STORES[1:2], []),
        (STORES[:2], STORES[:1], (), ["S3"]),
        (STORES[:2], (), STORES[:2], ["S3"]),
        (STORES[:2], STORES[:1], STORES[1:], ["S3"]),
        (STORES, STORES[:2], (), ["S3"]),
        (STORES[:1], STORES[1:2], STORES[:1], ["S3"]),
    ],
)
def test_what_only_a_store_has_that_is_away_for_a_life_may_be_lost(
    registered: tuple[str, ...], damaged: tuple[str, ...], cut: tuple[str, ...], found: list[str]
) -> None:
    """Of the stores that registered the life one lost its copy, and none has one."""
    checkers = world()
    stable(checkers, 6, 8)
    begin(checkers)
    for name in registered:
        checkers.facts.on_granted(name, STREAM, LIFE)
    for name in damaged:
        checkers.facts.deprived[name] = {LIFE: RangeSet([(6, 8)])}
    for name in (*damaged, *cut):
        checkers.facts.disks[name].durable.clear()
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 7, 8)
    assert broken(checkers) == found


def test_a_session_is_told_only_what_the_application_consumed() -> None:
    """Of what this process delivered; whether acknowledgements follow from it, the ledger judges."""
    checkers = world()
    begin(checkers)
    deliver(checkers, 0, 3)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    checkers.receivers.on_told_consumed(READER, PROCESS, 0, 2)
    assert broken(checkers) == []
    checkers.receivers.on_told_consumed(READER, PROCESS, 1, 3)
    assert broken(checkers) == ["A1"]
    checkers.receivers.on_consumed(READER, LIFE, 2, 4)
    checkers.receivers.on_told_consumed(READER, PROCESS, 2, 4)
    assert broken(checkers) == ["A1", "A1"], "the last one was delivered to another process"


def test_no_session_begins_behind_what_the_application_never_had() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    begin(checkers, 2)
    assert broken(checkers) == []
    begin(checkers, 3)
    assert broken(checkers) == ["D1"]
    deliver(checkers, 2, 3)
    assert broken(checkers) == ["D1", "D1"]


def test_what_another_life_got_stable_is_not_delivered_of_this_one() -> None:
    checkers = world()
    store(checkers, 0, 1, life=NEXT)
    checkers.on_life(NEXT, 0)
    checkers.on_stable(NEXT, 0, 1, list(STORES))
    checkers.receivers.on_session(READER, PROCESS, NEXT)
    checkers.receivers.on_begin(READER, PROCESS, NEXT, 0)
    checkers.receivers.on_delivered(PROCESS, NEXT, LIFE, 0, [(LIFE, 0)])
    assert broken(checkers) == ["D1"]


def test_a_process_must_know_that_a_life_came_back_before_it_is_blamed() -> None:
    """Until then it may have what the life between sent in vain, but no number that was stable before."""
    checkers = world()
    reading = checkers.receivers
    checkers.facts.on_told(LIFE, 1)
    stable(checkers, 0, 1)
    checkers.on_life(NEXT, 1)
    checkers.facts.on_granted(STORES[0], STREAM, NEXT)
    reading.on_session(READER, PROCESS, NEXT)
    reading.on_told(PROCESS, 2)
    reading.on_handed(PROCESS, NEXT, 0, 1)
    checkers.facts.on_told(LIFE, 3)
    stable(checkers, 1, 4)
    assert broken(checkers) == ["D1"]
    reading.on_handed(PROCESS, NEXT, 1, 2)
    assert broken(checkers) == ["D1"]
    reading.on_told(PROCESS, 3)
    reading.on_handed(PROCESS, NEXT, 2, 3)
    assert broken(checkers) == ["D1", "D1"]


@pytest.mark.parametrize(
    ("lost", "reg_id", "lives", "found"),
    [
        (STORES, 9, (), []),
        (STORES[1:], 9, (), ["D1"]),
        (STORES, STREAM, (), ["D1"]),
        (STORES, 9, ((LIFE, 0),), ["D1"]),
    ],
    ids=["nobody knows", "a store knows", "a RegID tells", "an announcement tells"],
)
def test_no_receiver_can_know_that_a_source_is_the_one_which_all_stores_lost(
    lost: tuple[str, ...], reg_id: int, lives: tuple[Life, ...], found: list[str]
) -> None:
    """The guarantees give receivers something across lives if a quorum of the stores keeps its disks."""
    checkers = world()
    for life, number, known in ((LIFE, STREAM, ()), (NEXT, reg_id, lives)):
        entry = StoreEntry(0, 0, "store:1", number, 1)
        checkers.stores.on_info(STORES[0], info(incarnation=life, stores=(entry,), lives=((life, 0), *known)))
        for name in STORES if life == LIFE else ():
            checkers.facts.on_granted(name, number, life)
    begin(checkers)
    deliver(checkers, 0, 1)
    for name in lost:
        checkers.facts.on_lost(name, disk=True)
    store(checkers, 0, 1, life=NEXT)
    checkers.on_life(NEXT, 0)
    checkers.on_stable(NEXT, 0, 1, list(STORES))
    checkers.receivers.on_session(READER, PROCESS, NEXT)
    checkers.receivers.on_handed(PROCESS, LIFE, 0, 1)
    assert broken(checkers) == found


def test_who_left_is_promised_nothing() -> None:
    checkers = world()
    begin(checkers)
    stable(checkers, 0, 3)
    checkers.receivers.on_leave(PROCESS)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 0, 3)
    assert broken(checkers) == []


def test_a_piece_is_given_up_only_of_a_message_that_cannot_be_whole() -> None:
    """S3: of one that is all stable, and of which nothing was lost, none may be; of others nothing is promised."""
    checkers = world()
    checkers.on_sent(LIFE, 0, 9, [(0, 2), (3, 5), (6, 8)])
    stable(checkers, 0, 5)
    begin(checkers)
    reading = checkers.receivers
    reading.on_given_up(READER, PROCESS, LIFE, LIFE, 3, told=True)
    assert broken(checkers) == [], "the last piece of it is not stable"
    assert reading.missed(READER) == [(0, 1, LIFE), (1, 2, LIFE), (2, 3, LIFE)]
    reading.on_given_up(READER, PROCESS, LIFE, LIFE, 1, told=True)
    assert broken(checkers) == ["S3"]
    stable(checkers, 5, 9)
    reading.ledgers[READER].lost.add(7, 8)
    reading.on_given_up(READER, PROCESS, LIFE, LIFE, 6, told=True)
    assert broken(checkers) == ["S3"]
    reading.on_given_up(READER, PROCESS, LIFE, LIFE, 8, told=False)
    assert broken(checkers) == ["S3", "D1"]


@pytest.mark.rows("P-584")
def test_who_leaves_is_not_promised_the_pieces_that_are_left() -> None:
    """Nobody keeps for it the messages that it had not had."""
    checkers = world()
    checkers.on_sent(LIFE, 0, 3, [(0, 2)])
    stable(checkers, 0, 3)
    begin(checkers)
    checkers.receivers.on_leave(PROCESS)
    checkers.receivers.on_given_up(READER, PROCESS, LIFE, LIFE, 0, told=True)
    assert broken(checkers) == []


def test_a_message_that_began_before_the_session_need_not_be_whole() -> None:
    checkers = world()
    checkers.on_sent(LIFE, 0, 3, [(0, 2)])
    stable(checkers, 0, 3)
    checkers.receivers.on_consumed(READER, LIFE, 0, 1)
    begin(checkers, 1)
    checkers.receivers.on_given_up(READER, PROCESS, LIFE, LIFE, 1, told=False)
    assert broken(checkers) == []
