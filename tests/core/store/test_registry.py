"""Clients and their repositories: entered together, left together, answered when it is on disk."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import ReleasedUnread
from stablecast.core.protocol.inputs import Gone, Persisted, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregister,
    Deregistered,
    ElectionToken,
    Keepalive,
    LateJoinInfo,
    Pace,
    Refusal,
    Refused,
    Registered,
    Role,
    StableAck,
    Wishes,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, TopicPattern
from stablecast.core.store import registry as registry_module
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver, code
from tests.core.samples import LIFE, SECOND, info, register, registered
from tests.support.abstract_states import abstract


def farewell(number: int, **change: Any) -> tuple[str, Deregistered]:
    fields: dict[str, Any] = {"role": Role.SOURCE, "reg_id": 50, "to": "source:1", "generation": 3, **change}
    to = fields.pop("to")
    return (to, Deregistered(store_index=0, incarnation=LIFE, number=number % (1 << 32), **fields))


SOURCE_LEAVES = Deregister(Role.SOURCE, 0, 3, 50, LIFE, 0, "source:1")
RECEIVER_LEAVES = Deregister(Role.RECEIVER, 0, 3, 70, LIFE, 50, "receiver:1")


@pytest.mark.rows("P-584", "P-586", "P-587")
def test_a_source_that_deregisters_goes_with_its_messages_and_receivers() -> None:
    """Answered when it is on disk, with the newest number that was stored."""
    driver = StoreDriver.with_receiver()
    driver.hear(SOURCE_LEAVES)
    assert [(effect.role, effect.reg_id) for effect in driver.done(fx.Forget)] == [
        (Role.SOURCE, 50),
        (Role.RECEIVER, 70),
    ]
    assert fx.Leave(LIFE) in driver.effects
    assert driver.sent(Deregistered) == []
    driver.sync()
    assert driver.sent(Deregistered) == [farewell(9)]
    assert abstract(driver.machine) == ((), ())
    driver.data(10, 1)
    assert driver.effects == [fx.Discard(driver.tokens)]


def test_a_store_counts_no_fewer_lives_than_an_sri_tells_of() -> None:
    """Formal design, 7.3: the term of a life that may send is counted by every store that is told of it."""
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    driver.sync()
    driver.hear(info(term=5))
    assert [(client.term, client.lives_term) for client in driver.persisted()] == [(5, 5)]
    driver.sync()
    driver.hear(register(**SOURCE, incarnation=LIFE + 1))
    driver.sync()
    assert [answer.term for _, answer in driver.sent(Registered)] == [6]


@pytest.mark.rows("P-584", "P-588")
def test_a_receiver_that_deregisters_is_forgotten() -> None:
    """Its acknowledgement is told, and is not known any more when it comes again."""
    driver = StoreDriver.with_receiver()
    driver.consume(4)
    driver.hear(RECEIVER_LEAVES)
    assert len(driver.done(fx.Forget)) == 1
    driver.sync()
    assert driver.sent(Deregistered) == [farewell(4, role=Role.RECEIVER, reg_id=70, to="receiver:1")]
    driver.hear(register(**RECEIVER, generation=4))
    driver.sync()
    assert [(answer.old, answer.low) for _, answer in driver.sent(Registered)] == [(False, 0)]


@pytest.mark.rows("P-585")
def test_a_paced_receiver_that_deregisters_holds_nothing_up_any_more() -> None:
    driver = StoreDriver.paced()
    driver.hear(register(**{**RECEIVER, "reg_id": 71}, pace=Pace.RECEIVERS))
    driver.data(0, 10)
    driver.consume(8, receiver=71)
    assert driver.done(fx.Reclaim) == []
    driver.hear(RECEIVER_LEAVES)
    assert [effect.number for effect in driver.done(fx.Reclaim)] == [9]


@pytest.mark.rows("P-586")
@pytest.mark.parametrize("leaves", [SOURCE_LEAVES, RECEIVER_LEAVES])
def test_an_unknown_client_stays_unknown(leaves: Deregister) -> None:
    """The answer may have been lost. Nothing has to be written for it."""
    driver = StoreDriver()
    assert code(driver.hear(leaves)) == ["unknown-deregistration"]
    assert [answer.number for _, answer in driver.sent(Deregistered)] == [0xFFFF_FFFF]
    assert driver.done(fx.Forget) == []


def test_a_repeated_deregistration_waits_for_the_disk_as_the_first_did() -> None:
    driver = StoreDriver.with_source()
    driver.hear(SOURCE_LEAVES)
    driver.hear(SOURCE_LEAVES)
    assert driver.sent(Deregistered) == []
    driver.sync()
    assert driver.sent(Deregistered) == [farewell(-1), farewell(-1)]


@pytest.mark.parametrize(("resent", "known"), [(True, 0), (False, 2)], ids=["expected", "lost for good"])
def test_a_paced_receiver_that_returns_is_told_what_was_kept_for_it(resent: bool, known: int) -> None:
    """It acknowledged nothing. A new one is told nothing; of one that did, the acknowledgement says all.

    Numbers that the source may still send again count as kept, and so does what is below a hole (seed 1200865).
    """
    driver = StoreDriver.paced()
    assert [answer.known for _, answer in driver.sent(Registered)][-1:] == [None]
    driver.data(2, 3)
    driver.data(7, 1)
    driver.hear(LateJoinInfo(LIFE, 50, 0 if resent else 2, 7))
    driver.hear(register(**RECEIVER, generation=4, pace=Pace.RECEIVERS))
    driver.sync()
    assert [(answer.old, answer.low, answer.known) for _, answer in driver.sent(Registered)] == [(False, 0, known)]
    driver.data(0, 2, recovered=True)
    driver.data(5, 2, recovered=True)
    driver.consume(1)
    driver.hear(register(**RECEIVER, generation=5, pace=Pace.RECEIVERS))
    driver.sync()
    assert [(answer.old, answer.low, answer.known) for _, answer in driver.sent(Registered)] == [(True, 2, None)]


def test_a_source_that_registers_behind_its_farewell_has_nothing_of_before_synced() -> None:
    """Sync first: what it wrote before is forgotten on the disk before what it sends again gets there."""
    driver = StoreDriver.with_source()
    driver.data(0, 10)
    written = driver.machine.tickets.last
    driver.hear(SOURCE_LEAVES)
    driver.hear(register(**SOURCE))
    driver.hear(info())
    driver.data(0, 10)
    driver.feed(Persisted(written))
    assert driver.acks() == []
    driver.sync()
    assert driver.acks() == [(0, 9)]


@pytest.mark.parametrize("other", [False, True], ids=["nobody", "another source"])
@pytest.mark.parametrize("synced", [False, True], ids=["under way", "granted"])
def test_a_source_goes_though_it_names_the_reg_id_it_had_before(other: bool, synced: bool) -> None:
    """The store forgot it, then granted its session another RegID; it left before it took notice of that."""
    driver = StoreDriver()
    if other:
        driver.hear(register(reg_id=50, incarnation=LIFE + 1, topic="another"))
    driver.hear(register(**{**SOURCE, "reg_id": 50}, session_id=9))
    if synced:
        driver.sync()
    [reg_id] = [client[0] for client in abstract(driver.machine)[0] if client[3] == LIFE]
    assert reg_id != 50
    assert code(driver.hear(SOURCE_LEAVES)) == []
    assert [effect.reg_id for effect in driver.done(fx.Forget)] == [reg_id]
    assert driver.sent(Deregistered) == []
    driver.sync()
    assert driver.sent(Deregistered) == [farewell(-1)]
    assert [client[0] for client in abstract(driver.machine)[0]] == [50] * other


def test_a_receiver_does_not_take_its_source_along() -> None:
    """A life is that of a source; its receivers name it, too."""
    driver = StoreDriver.with_source()
    assert code(driver.hear(RECEIVER_LEAVES)) == ["unknown-deregistration"]
    assert driver.done(fx.Forget) == []


def test_a_reg_id_is_not_given_back_by_another() -> None:
    driver = StoreDriver.with_receiver()
    driver.hear(Deregister(Role.SOURCE, 0, 3, 50, LIFE + 1, 0, "late:1"))
    assert driver.done(fx.Forget) == []
    assert [to for to, _ in driver.sent(Deregistered)] == ["late:1"]


def test_a_store_without_memory_grants_nothing_for_an_activity_timeout() -> None:
    """Formal design, 7.6: the longest that any topic allows. Requests are repeated meanwhile."""
    topics = (TopicPattern("slow", RepositoryConfig(receiver_activity_ns=50 * SECOND)),)
    for memory, repairs, now in ((False, Repair.ALL, 50), (True, Repair.ALL, 0), (False, Repair.NONE, 0)):
        driver = StoreDriver(source_activity_ns=20 * SECOND, topics=topics, repairs=repairs)
        driver.machine.recover([], [], {}, 0, memory=memory)
        if now:
            driver.hear(register(**SOURCE), 50 * SECOND - 1)
            assert [type(effect) for effect in driver.effects] == [fx.PersistMemory]
        driver.hear(register(**SOURCE), now * SECOND)
        driver.sync(now * SECOND)
        assert len(driver.sent(Registered)) == 1


@pytest.mark.rows("P-122")
def test_a_receiver_whose_messages_had_to_go_is_named_once_a_registration() -> None:
    driver = StoreDriver.with_source(kind=RepositoryType.MEMORY, size_threshold=60)
    driver.hear(register(**RECEIVER))
    assert driver.data(0, 10) == [ReleasedUnread(50, 70, 5)]
    assert driver.data(10, 1) == []
    driver.hear(register(**RECEIVER, generation=2))
    assert driver.data(11, 1) == [ReleasedUnread(50, 70, 7)]
    driver.consume(11)
    driver.hear(register(**RECEIVER, generation=3))
    assert driver.data(12, 1) == []


@pytest.mark.rows("P-122")
def test_a_receiver_is_named_whose_messages_had_to_go_below_the_trail_of_an_earlier_life() -> None:
    driver = StoreDriver.with_source(kind=RepositoryType.MEMORY, size_threshold=60)
    driver.data(0, 10)
    driver.hear(register(**SOURCE, incarnation=LIFE + 1))
    driver.sync()
    driver.hear(info(incarnation=LIFE + 1, term=2, lives=((LIFE + 1, 0),)))
    driver.hear(register(**RECEIVER, incarnation=LIFE + 1))
    assert driver.data(0, 7, LIFE + 1) == [ReleasedUnread(50, 70, 2)]


@pytest.mark.rows("P-014", "P-101")
def test_a_store_that_keeps_state_only_says_so() -> None:
    driver = StoreDriver.with_source(kind=RepositoryType.NO_CACHE)
    driver.hear(register(**RECEIVER))
    driver.data(0, 10)
    assert driver.effects == [fx.Discard(1)]
    driver.sync()
    assert [answer.no_cache for _, answer in driver.sent(Registered)] == [True]


@pytest.mark.rows("P-107", "P-817", "P-820")
def test_types_may_be_mixed_in_one_store() -> None:
    topics = (TopicPattern("fast", RepositoryConfig(kind=RepositoryType.MEMORY)),)
    driver = StoreDriver(topics=topics)
    for number, topic in enumerate(("fast", "topic")):
        driver.hear(register(reg_id=50 + number, incarnation=LIFE + number, topic=topic))
    kinds = [repository.terms.kind for repository in driver.machine.repositories.values()]
    assert kinds == [RepositoryType.MEMORY, RepositoryType.DISK]


@pytest.mark.rows("P-564", "P-572")
def test_a_new_paced_receiver_is_recorded_behind_what_was_freed() -> None:
    """P-564, P-572; formal design, 7.8."""
    driver = StoreDriver.paced()
    driver.data(0, 10)
    driver.consume(6)
    driver.hear(register(**{**RECEIVER, "reg_id": 71}, pace=Pace.NON_BLOCKING))
    assert [(client.reg_id, client.freed) for client in driver.persisted()] == [(50, 7), (71, 0)]
    driver.sync()
    assert [(a.low, a.high, a.pace) for _, a in driver.sent(Registered)] == [(7, 9, Pace.NON_BLOCKING)]


@pytest.mark.rows("P-572")
def test_the_first_paced_receiver_gets_nothing_from_before_it() -> None:
    """C-33."""
    driver = StoreDriver(allow_rpp=True)
    driver.hear(register(**SOURCE, pace=Pace.RECEIVERS))
    driver.hear(info())
    driver.data(0, 10)
    driver.hear(register(**RECEIVER, pace=Pace.RECEIVERS))
    driver.sync()
    assert [(answer.low, answer.high) for _, answer in driver.sent(Registered)][1:] == [(10, 9)]


@pytest.mark.rows("P-536", "P-537")
def test_an_early_exiting_receiver_comes_back_and_recovers_what_was_held_for_it() -> None:
    driver = StoreDriver.paced(receiver_activity_ns=SECOND, receiver_lifetime_ns=9 * SECOND)
    driver.data(0, 5)
    driver.consume(1)
    driver.feed(Tick(), 2 * SECOND)
    driver.data(5, 5, now=3 * SECOND)
    driver.hear(register(**RECEIVER, pace=Pace.RECEIVERS), 4 * SECOND)
    driver.sync(4 * SECOND)
    assert [(a.old, a.low, a.high) for _, a in driver.sent(Registered)] == [(True, 2, 9)]
    assert driver.machine.repositories[50].available(0, 99) == [(2, 10)]


@pytest.mark.rows("P-009", "P-014", "P-569")
def test_a_paced_restart_remembers_wishes_and_receivers() -> None:
    """Messages that all had consumed are not offered, and those that wait for the others are."""
    wishes = Wishes(flight_bytes=100, size_limit=1000)
    before = StoreDriver.paced(wishes=wishes)
    before.data(0, 10, size=10)
    before.consume(3)
    after = StoreDriver(allow_rpp=True)
    after.machine.recover(before.machine.checkpoint(), [(50, 2, 8, 80)], {50: 2}, now=7)
    repository = after.machine.repositories[50]
    assert (repository.trail, repository.terms.flight_bytes, repository.paced.consumed) == (4, 100, 4)
    after.feed(Start())
    after.hear(register(**SOURCE, pace=Pace.RECEIVERS))
    assert [refused.reason for _, refused in after.sent(Refused)] == [Refusal.INCOMPATIBLE]
    after.hear(register(**SOURCE, pace=Pace.RECEIVERS, wishes=wishes))
    after.sync()
    assert [ack.last for _, ack in after.sent(StableAck)][-1] == 9


def test_a_new_life_of_a_paced_source_cuts_its_receivers_back() -> None:
    driver = StoreDriver.paced()
    driver.data(0, 10)
    driver.consume(8)
    driver.hear(register(**{**SOURCE, "incarnation": 9}, pace=Pace.RECEIVERS))
    driver.hear(info(incarnation=9, low=5, high=4, term=2))
    repository = driver.machine.repositories[50]
    assert (repository.trail, repository.paced.consumed) == (5, 5)


def test_a_registration_is_answered_when_it_is_on_disk() -> None:
    driver = StoreDriver()
    driver.hear(register(**SOURCE, generation=5))
    assert driver.sent(Registered) == []
    assert [client.reg_id for client in driver.persisted()] == [50]
    assert fx.Join(LIFE, "stream:1") in driver.effects
    driver.sync()
    answer = registered(generation=5, reg_id=50, term=1, state_lifetime_ms=0xFFFF_FFFF)
    assert driver.sent(Registered) == [("source:1", answer)]
    assert driver.machine.next_timeout() == driver.machine.config.keepalive_ns


def test_a_source_that_returns_hears_what_is_held_and_acknowledged() -> None:
    driver = StoreDriver.with_receiver()
    driver.hear(register(**SOURCE, generation=2))
    driver.sync()
    [(_, answer)] = driver.sent(Registered)
    assert (answer.old, answer.low, answer.high, answer.lives, answer.lives_term) == (True, 0, 9, ((LIFE, 0),), 0)
    assert driver.sent(StableAck) == [("source:1", StableAck(0, LIFE, 0, 9))]


def test_a_new_life_takes_over_and_cuts_the_old_one_back() -> None:
    driver = StoreDriver.with_receiver()
    driver.hear(ConsumptionAck(LIFE, 50, 70, 8))
    driver.hear(register(**{**RECEIVER, "reg_id": 71}))
    driver.hear(ConsumptionAck(LIFE, 50, 71, 6))
    driver.hear(register(**SOURCE, incarnation=9, transport="stream:2"))
    assert fx.Leave(LIFE) in driver.effects
    assert fx.Join(9, "stream:2") in driver.effects
    driver.sync()
    driver.hear(info(incarnation=9, low=7, high=6, term=2))
    assert fx.Cut(driver.machine.tickets.last - 2, 50, 7) in driver.effects
    clients = {client.reg_id: client for client in driver.persisted()}
    assert (clients[50].term, clients[50].lives) == (2, ((LIFE, 0), (9, 7)))
    assert clients[70].acknowledged == 6
    assert 71 not in clients
    driver.hear(info(incarnation=9, low=7, high=6, term=2))
    assert driver.effects == []
    driver.data(7, 1, life=LIFE)
    assert isinstance(driver.effects[0], fx.Discard)


def test_a_receiver_begins_where_the_store_does() -> None:
    driver = StoreDriver.with_receiver()
    assert [(answer.old, answer.low, answer.high) for _, answer in driver.sent(Registered)] == [(False, 0, 9)]


@pytest.mark.rows("P-837")
@pytest.mark.parametrize(("rollback", "low"), [(0, 10), (3, 7), (99, 0)])
def test_a_new_receiver_goes_back_as_far_as_it_may(rollback: int, low: int) -> None:
    driver = StoreDriver.with_receiver(rollback=rollback)
    assert [(answer.low, answer.high) for _, answer in driver.sent(Registered)] == [(low, 9)]


def test_a_receiver_returns_behind_what_it_acknowledged() -> None:
    driver = StoreDriver.with_receiver()
    for number, news in ((4, 1), (4, 0), (3, 0)):
        driver.hear(ConsumptionAck(LIFE, 50, 70, number))
        assert len(driver.persisted()) == news
    driver.sync()
    driver.hear(register(**RECEIVER, generation=2))
    driver.sync()
    assert [(answer.old, answer.low) for _, answer in driver.sent(Registered)] == [(True, 5)]


@pytest.mark.parametrize(
    ("upcoming", "repairs", "known"),
    [(False, Repair.ALL, 9), (True, Repair.ALL, None), (False, Repair.ALL & ~Repair.ONE_LIFE, None)],
)
def test_a_receiver_that_acknowledged_everything_hears_that_it_was_sent(
    upcoming: bool, repairs: Repair, known: int | None
) -> None:
    """While the source's next life waits, or if a life alone identifies no message, the numbers may be used again."""
    driver = StoreDriver.with_receiver(repairs=repairs)
    driver.consume(9)
    driver.hear(register(**RECEIVER, generation=2))
    if upcoming:
        driver.hear(register(**SOURCE, incarnation=9))
    driver.sync()
    answers = [answer for _, answer in driver.sent(Registered) if answer.role is Role.RECEIVER]
    assert [(answer.old, answer.low, answer.high, answer.known) for answer in answers] == [(True, 10, 9, known)]


def test_a_receiver_that_acknowledged_nothing_is_not_called_old() -> None:
    """Elsewhere it may be known for longer: where it was let begin here says nothing about what it consumed."""
    driver = StoreDriver.with_receiver(rollback=0)
    driver.hear(register(**RECEIVER, generation=2))
    driver.sync()
    assert [(answer.old, answer.low) for _, answer in driver.sent(Registered)] == [(False, 10)]


def test_a_receiver_waits_for_its_source() -> None:
    driver = StoreDriver()
    driver.hear(register(**RECEIVER))
    [(to, refused)] = driver.sent(Refused)
    assert (to, refused.reason) == ("receiver:1", Refusal.UNKNOWN_SOURCE)


def test_receivers_that_come_before_the_sri_wait_in_a_bounded_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_EARLY", 2)
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    for reg_id in (70, 70, 71, 72):
        driver.hear(register(**{**RECEIVER, "reg_id": reg_id}))
        assert driver.effects == []
    driver.hear(info())
    driver.sync()
    assert [answer.reg_id for _, answer in driver.sent(Registered)] == [50, 71, 72]
    assert driver.machine.registry.early == []


@pytest.mark.rows("P-019")
def test_two_lives_of_one_context_do_not_take_the_reg_id_from_each_other() -> None:
    """The later one replaces the earlier one, which is refused from then on, after a restart as well."""
    asked = {**SOURCE, "context": 5}
    driver = StoreDriver()
    driver.hear(register(**asked))
    driver.sync()
    later = register(**asked, incarnation=LIFE + 1)
    driver.hear(later)
    assert fx.Leave(LIFE) in driver.effects
    driver.sync()
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [LIFE + 1]
    again = StoreDriver()
    again.machine.recover(driver.machine.checkpoint(), (), {}, 0)
    for machine in (driver, again):
        for request in (register(**asked), later, register(**asked)):
            machine.hear(request)
            machine.sync()
        assert [answer.incarnation for _, answer in machine.sent(Refused)] in ([], [LIFE])
        assert machine.machine.clients.records[50].client.incarnation == LIFE + 1


def test_a_reg_id_that_is_held_is_refused_and_its_holder_asked() -> None:
    driver = StoreDriver.with_source()
    other = register(reg_id=50, reply_to="other:1", incarnation=9)
    driver.hear(other)
    [(to, refused)] = driver.sent(Refused)
    assert (to, refused.reg_id, refused.reason) == ("other:1", 50, Refusal.HELD_BY_SOURCE)
    assert refused.held_ms > 0
    assert driver.sent(Keepalive) == [("source:1", Keepalive(Role.STORE, LIFE, 50, True, 0))]
    driver.feed(Gone("source:1"))
    driver.hear(other)
    assert driver.sent(Refused) == []
    driver.sync()
    assert [to for to, _ in driver.sent(Registered)] == ["other:1"]


def test_nobody_is_asked_where_nobody_holds() -> None:
    driver = StoreDriver.with_source()
    driver.feed(Gone("source:1"))
    driver.hear(register(reg_id=50, topic="other"))
    assert [m.reason for _, m in driver.sent(Refused)] == [Refusal.OTHER_TOPIC]
    assert driver.sent(Keepalive) == []


def test_an_answer_that_was_overtaken_is_not_sent() -> None:
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    driver.hear(register(**SOURCE, incarnation=9))
    driver.sync()
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [9]


@pytest.mark.parametrize("between", [register(**SOURCE, incarnation=9), attrs.evolve(SOURCE_LEAVES, store_index=2)])
def test_a_holder_that_returns_is_granted_nothing_before_its_newest_record_is_synced(between: Any) -> None:
    """Formal design, 7.5: after a crash the disk would show what lies between the two records."""
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    first = driver.machine.tickets.last
    driver.hear(between)
    driver.hear(register(**SOURCE))
    driver.feed(Persisted(first))
    assert driver.sent(Registered) == []
    driver.sync()
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [LIFE]


def test_a_receiver_that_replaces_another_is_granted_nothing_before_its_record_is_synced() -> None:
    driver = StoreDriver.with_source()
    driver.hear(register(**RECEIVER))
    first = driver.machine.tickets.last
    driver.feed(Gone(RECEIVER_LEAVES.reply_to))
    driver.hear(register(**{**RECEIVER, "reply_to": "elsewhere:1"}))
    driver.feed(Persisted(first))
    assert driver.sent(Registered) == []
    driver.sync()
    assert [to for to, _ in driver.sent(Registered)] == ["elsewhere:1"]


def test_a_life_that_returns_is_granted_nothing_before_its_last_record_is_synced() -> None:
    """After a crash the disk would show the life between as the holder."""
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    first = driver.machine.tickets.last
    driver.feed(Gone(SOURCE_LEAVES.reply_to))
    driver.hear(register(**SOURCE, incarnation=LIFE + 1))
    driver.feed(Gone(SOURCE_LEAVES.reply_to))
    driver.hear(register(**SOURCE))
    driver.feed(Persisted(first))
    assert driver.sent(Registered) == []
    driver.sync()
    assert {answer.incarnation for _, answer in driver.sent(Registered)} == {LIFE}


def test_the_sri_of_a_stranger_is_dropped() -> None:
    driver = StoreDriver()
    assert driver.hear(info()) == []
    assert driver.effects == []


@pytest.mark.rows("P-540")
def test_the_stores_that_a_proxy_would_need_are_those_of_all_lives() -> None:
    """Formal design, 7.9: a life names the stores that granted it; P-540. The SRI of a proxy teaches nothing."""
    driver = StoreDriver()
    driver.hear(register(reg_id=50, wants_proxy=True))
    three = info(1, 1, 1)
    driver.hear(three)
    stores = driver.machine.clients.records[50].client.stores
    assert stores == three.stores
    driver.hear(info(2))
    known = driver.machine.clients.records[50].client
    assert (known.stores, known.group_sizes) == (info(2).stores, (1,)), "of other groups nothing is known"
    moved = attrs.evolve(three.stores[2], address="elsewhere:1")
    driver.hear(info(2, 1, 1))
    driver.hear(attrs.evolve(info(), stores=(moved,), group_sizes=(3,)))
    assert driver.machine.clients.records[50].client.stores == (*info(2, 1).stores, moved)
    driver.hear(attrs.evolve(info(), stores=(moved,), group_sizes=(3,)))
    assert driver.persisted() == []
    driver.machine.clients.records[50].client = attrs.evolve(known, election=ElectionToken(1, 2))
    driver.hear(info(5, 5, 5))
    assert driver.machine.clients.records[50].client.stores == known.stores


def test_what_a_source_left_behind_its_proxy_is_not_cut() -> None:
    """Formal design, 7.3: a source took its RegID from a proxy and ended; the proxy still counts on its lease."""
    driver = StoreDriver()
    driver.hear(register(reg_id=50, wants_proxy=True, term=3))
    driver.hear(info(1, term=3, lives=((LIFE, 0),)))
    driver.data(0, 5)
    driver.sync()
    proxy, gone = LIFE + 1, 100 * SECOND
    token = ElectionToken(1, 2, LIFE)
    driver.feed(Tick(), gone)
    driver.hear(register(reg_id=50, incarnation=proxy, wants_proxy=True, election=token, reply_to="proxy:1"), gone)
    driver.sync(gone)
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [proxy]
    driver.hear(info(1, incarnation=proxy, term=2, lives=((proxy, 0),)), gone)
    assert driver.effects == []
    driver.hear(info(1, incarnation=proxy, term=4, low=5, high=4, lives=((LIFE, 0), (proxy, 5))), gone)
    assert driver.done(fx.Cut) == []
    assert [client.lives for client in driver.persisted()] == [((LIFE, 0), (proxy, 5))]
