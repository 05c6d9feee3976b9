"""The store endpoint: sync first, one holder per RegID, what a restart finds."""

import pytest

from stablecast.core import effects as fx
from stablecast.core import store as store_module
from stablecast.core.inputs import Ended, Evicted, Gone, Persisted, Reset, Start, Tick
from stablecast.core.messages import (
    ConsumptionAck,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    Message,
    Refusal,
    Refused,
    Registered,
    RetransmitRequest,
    Role,
    StableAck,
)
from stablecast.core.store import MAX_REQUEST_MESSAGES
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver, code
from tests.core.samples import LIFE, OLDER_LIFE, SECOND, info, register, registered


def test_a_registration_is_answered_when_it_is_on_disk() -> None:
    driver = StoreDriver()
    driver.hear(register(**SOURCE, generation=5))
    assert driver.sent(Registered) == []
    assert [client.reg_id for client in driver.persisted()] == [50]
    assert fx.Join(LIFE, "stream:1") in driver.effects
    driver.sync()
    answer = registered(generation=5, reg_id=50, term=1)
    assert driver.sent(Registered) == [("source:1", answer)]
    assert driver.machine.next_timeout() == 10


def test_messages_are_acknowledged_when_they_are_on_disk() -> None:
    driver = StoreDriver.with_source()
    driver.data(0, 5)
    assert driver.sent(StableAck) == []
    driver.feed(Persisted(driver.machine.tickets.last - 1))
    assert driver.sent(StableAck) == []
    driver.sync()
    assert driver.sent(StableAck) == [("source:1", StableAck(0, LIFE, 0, 4))]


def test_data_of_nobody_is_dropped() -> None:
    driver = StoreDriver()
    driver.data(0, 5)
    assert driver.effects == [fx.Discard(1)]


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


@pytest.mark.parametrize(("rollback", "low"), [(0, 10), (3, 7), (99, 0)])
def test_a_new_receiver_goes_back_as_far_as_it_may(rollback: int, low: int) -> None:
    """P-837."""
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
    monkeypatch.setattr(store_module, "MAX_EARLY", 2)
    driver = StoreDriver()
    driver.hear(register(**SOURCE))
    for reg_id in (70, 70, 71, 72):
        driver.hear(register(**{**RECEIVER, "reg_id": reg_id}))
        assert driver.effects == []
    driver.hear(info())
    driver.sync()
    assert [answer.reg_id for _, answer in driver.sent(Registered)] == [50, 71, 72]
    assert driver.machine.early == []


def test_a_reg_id_that_is_held_is_refused_and_its_holder_asked() -> None:
    driver = StoreDriver.with_source()
    other = register(reg_id=50, reply_to="other:1", incarnation=9)
    driver.hear(other)
    assert [(to, m.reason) for to, m in driver.sent(Refused)] == [("other:1", Refusal.HELD_BY_SOURCE)]
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


@pytest.mark.parametrize(
    "ack",
    [
        ConsumptionAck(LIFE, 50, 71, 5),
        ConsumptionAck(LIFE, 51, 70, 5),
        ConsumptionAck(LIFE, 50, 50, 5),
        ConsumptionAck(OLDER_LIFE, 50, 70, 5),
    ],
)
def test_acknowledgements_of_others_are_dropped(ack: ConsumptionAck) -> None:
    driver = StoreDriver.with_receiver()
    assert code(driver.hear(ack)) == ["late-ack"]
    assert driver.persisted() == []


def test_an_acknowledgement_for_another_source_is_dropped() -> None:
    driver = StoreDriver.with_receiver()
    driver.hear(register(reg_id=51, incarnation=9))
    assert code(driver.hear(ConsumptionAck(9, 51, 70, 5))) == ["late-ack"]


def test_what_is_stored_is_sent_again_where_it_is_held() -> None:
    driver = StoreDriver.with_receiver()
    driver.data(12, 3)
    driver.hear(RetransmitRequest(Role.RECEIVER, LIFE, 50, 1, 8, 13, "receiver:1"))
    assert driver.effects == [
        fx.SendStored("receiver:1", LIFE, 50, 8, 9),
        fx.SendStored("receiver:1", LIFE, 50, 12, 13),
    ]


@pytest.mark.parametrize(
    "request_",
    [
        RetransmitRequest(Role.RECEIVER, LIFE, 51, 1, 0, 1, "receiver:1"),
        RetransmitRequest(Role.RECEIVER, OLDER_LIFE, 50, 1, 0, 1, "receiver:1"),
        RetransmitRequest(Role.RECEIVER, LIFE, 50, 1, 1, 0, "receiver:1"),
        RetransmitRequest(Role.RECEIVER, LIFE, 50, 1, 0, MAX_REQUEST_MESSAGES, "receiver:1"),
    ],
)
def test_wild_requests_are_dropped(request_: RetransmitRequest) -> None:
    assert code(StoreDriver.with_receiver().hear(request_)) == ["wild-request"]


@pytest.mark.parametrize(
    "message",
    [
        RetransmitRequest(Role.STORE, LIFE, 0, 1, 0, 1, "store:2"),
        registered(),
    ],
)
def test_messages_for_others_are_oddities(message: Message) -> None:
    assert code(StoreDriver.with_receiver().hear(message)) == ["unexpected-message"]


def test_signs_of_life_are_answered_to_who_is_active() -> None:
    driver = StoreDriver.with_receiver()
    driver.hear(Keepalive(Role.SOURCE, LIFE, 50, True))
    assert driver.sent(Keepalive) == [("source:1", Keepalive(Role.STORE, LIFE, 50, False, 0))]
    assert driver.hear(Keepalive(Role.SOURCE, LIFE, 50, False)) == []
    assert driver.effects == []
    for late in (
        Keepalive(Role.SOURCE, LIFE, 99, True),
        Keepalive(Role.RECEIVER, LIFE, 50, True),
        Keepalive(Role.SOURCE, OLDER_LIFE, 50, True),
    ):
        assert code(driver.hear(late)) == ["late-keepalive"]
    driver.feed(Gone("source:1"))
    assert code(driver.hear(Keepalive(Role.SOURCE, LIFE, 50, True))) == ["late-keepalive"]


def test_sris_and_late_join_answers_of_strangers_are_dropped() -> None:
    driver = StoreDriver()
    assert driver.hear(info()) == []
    assert driver.hear(LateJoinInfo(LIFE, 50, 0, 1)) == []
    assert driver.effects == []


def test_a_gap_is_asked_of_the_source() -> None:
    driver = StoreDriver.with_source()
    driver.data(5, 1)
    assert [to for to, _ in driver.sent(LateJoinRequest)] == ["source:1"]
    driver.hear(LateJoinInfo(LIFE, 50, 0, 5))
    assert [(m.first, m.last) for _, m in driver.sent(RetransmitRequest)] == [(0, 4)]
    driver.feed(Tick(), 10)
    driver.feed(Tick(), 20)
    assert [(m.first, m.last) for _, m in driver.sent(RetransmitRequest)] == [(0, 4)]


def test_time_is_looked_at_at_its_interval() -> None:
    driver = StoreDriver()
    driver.feed(Tick(), 5)
    assert driver.machine.next_timeout() is None
    driver.hear(register(**SOURCE))
    driver.feed(Tick(), 9)
    assert driver.machine.next_timeout() == 10
    driver.feed(Tick(), 15)
    assert driver.machine.next_timeout() == 25


def test_a_silent_source_goes_with_its_messages_and_its_receivers() -> None:
    driver = StoreDriver.with_receiver(source_activity_ns=30 * SECOND, receiver_activity_ns=60 * SECOND)
    driver.feed(Tick(), 30 * SECOND)
    forgotten = [(effect.role, effect.reg_id) for effect in driver.effects if isinstance(effect, fx.Forget)]
    assert forgotten == [(Role.SOURCE, 50), (Role.RECEIVER, 70)]
    assert fx.Leave(LIFE) in driver.effects
    assert driver.machine.abstract() == ((), ())
    assert driver.machine.next_timeout() is None


def test_clients_that_end_together_are_forgotten_once() -> None:
    driver = StoreDriver.with_receiver(source_activity_ns=SECOND, receiver_activity_ns=SECOND)
    driver.feed(Tick(), SECOND)
    assert len([effect for effect in driver.effects if isinstance(effect, fx.Forget)]) == 2


def test_a_silent_receiver_goes_alone() -> None:
    driver = StoreDriver.with_receiver(receiver_activity_ns=SECOND)
    driver.feed(Tick(), SECOND)
    assert [client.reg_id for client in driver.machine.checkpoint()] == [50]


def test_what_was_waiting_for_somebody_forgotten_is_dropped() -> None:
    driver = StoreDriver.with_source(source_activity_ns=SECOND)
    driver.data(0, 1)
    driver.hear(register(**SOURCE, generation=2))
    driver.hear(register(**RECEIVER))
    driver.feed(Tick(), SECOND)
    driver.sync()
    assert driver.effects == []


def test_a_receiver_whose_source_went_is_not_answered() -> None:
    driver = StoreDriver.with_source()
    driver.hear(register(**RECEIVER))
    driver.machine.repositories.clear()
    driver.machine.clients.remove(driver.machine.clients.records[50])
    driver.sync()
    assert driver.effects == []


def test_a_broken_connection_alone_proves_nothing() -> None:
    driver = StoreDriver.with_receiver()
    for event in (Reset("source:1"), Ended(LIFE)):
        driver.feed(event)
        assert driver.effects == []
    assert {client[2] for client in driver.machine.clients.abstract()} == {"ACTIVE"}


def test_what_the_journal_let_go_is_not_offered() -> None:
    driver = StoreDriver.with_receiver()
    driver.feed(Evicted(50, 4))
    driver.feed(Evicted(99, 4))
    driver.hear(register(**{**RECEIVER, "reg_id": 71}))
    driver.sync()
    assert [(answer.low, answer.high) for _, answer in driver.sent(Registered)] == [(4, 9)]


def test_a_restart_finds_everything_that_was_synced() -> None:
    before = StoreDriver.with_receiver()
    before.hear(ConsumptionAck(LIFE, 50, 70, 3))
    after = StoreDriver()
    after.machine.recover(before.machine.checkpoint(), [(50, 0, 10), (99, 0, 5)], {50: 1}, now=7)
    after.feed(Start())
    assert after.effects == [fx.Join(LIFE, "stream:1")]
    assert after.machine.next_timeout() == 17
    clients, repositories = after.machine.abstract()
    assert clients == before.machine.abstract()[0]
    assert repositories == ((50, (LIFE, 0, ((1, 10),), ((1, 10),), 10)),)
    after.hear(register(**RECEIVER, generation=2))
    after.sync()
    assert [(answer.old, answer.low) for _, answer in after.sent(Registered)] == [(True, 4)]
