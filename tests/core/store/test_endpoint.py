"""The store endpoint: sync first, one holder per RegID, what a restart finds."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import ClientForgotten, Farewell
from stablecast.core.protocol.inputs import Damaged, Ended, Gone, Lost, Persisted, ProxyQuorum, Reset, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregister,
    Deregistered,
    ElectionToken,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    Message,
    Registered,
    RetransmitRequest,
    Role,
    StableAck,
)
from stablecast.core.protocol.request_window import MAX_REQUEST_MESSAGES
from tests.core.drivers import RECEIVER, RETRY_NS, SOURCE, StoreDriver, code
from tests.core.samples import LIFE, MILLISECOND, OLDER_LIFE, SECOND, info, register, registered
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

NEXT = LIFE + 1
UNSET = {"source_lifetime_ns": 0, "receiver_lifetime_ns": 0}
"""The documented lifetimes: state goes at the activity timeout."""


def test_messages_are_acknowledged_when_they_are_on_disk() -> None:
    driver = StoreDriver.with_source()
    assert driver.machine.streams == {LIFE: 50}
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


@pytest.mark.parametrize("announced", [False, True])
def test_an_acknowledgement_of_the_life_before_counts_for_its_own_numbers(announced: bool) -> None:
    """The receiver has not met the next life yet. Numbers that this one used again are not its own."""
    driver = StoreDriver.with_receiver()
    driver.hear(info(low=0, high=5, lives=((LIFE, 0),), term=1))
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}))
    driver.sync()
    client = driver.machine.clients.records
    following = info(incarnation=NEXT, low=3, high=5, lives=((LIFE, 0), (NEXT, 3)), term=2)
    if announced:
        driver.hear(following)
    driver.hear(ConsumptionAck(LIFE, 50, 70, 1))
    assert client[70].client.acknowledged == 1
    driver.hear(ConsumptionAck(LIFE, 50, 70, 5))
    if not announced:
        assert client[70].client.acknowledged == 5  # It was consumed, and all of it may be stable.
        driver.hear(following)
    assert client[70].client.acknowledged == 2


def test_an_acknowledgement_waits_until_the_life_tells_where_it_resumes() -> None:
    """Formal design, 7.4: until then its numbers are those of another life here, whose messages may be stable."""
    driver = StoreDriver.with_receiver()
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}))
    driver.sync()
    driver.hear(ConsumptionAck(NEXT, 50, 70, 5))
    assert driver.persisted() == []
    assert driver.machine.clients.records[70].client.acknowledged == -1
    driver.hear(info(incarnation=NEXT, low=3, high=5, lives=((LIFE, 0), (NEXT, 3)), term=2))
    assert driver.machine.clients.records[70].client.acknowledged == 5
    assert driver.machine.early_acks == {}


def test_an_acknowledgement_of_a_life_that_never_tells_is_dropped() -> None:
    """The life was replaced: what it sent is nothing that the store has."""
    driver = StoreDriver.with_receiver()
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}))
    driver.hear(ConsumptionAck(NEXT, 50, 70, 5))
    driver.hear(register(**SOURCE))
    driver.hear(info(low=0, high=5, lives=((LIFE, 0),), term=3))
    assert driver.machine.clients.records[70].client.acknowledged == -1


def test_stored_messages_are_sent_again() -> None:
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


@pytest.mark.rows("P-835")
def test_time_is_looked_at_at_its_interval() -> None:
    driver = StoreDriver(source_activity_ns=27, **UNSET)
    driver.feed(Tick(), 5)
    assert driver.machine.next_timeout() is None
    driver.hear(register(**SOURCE))
    driver.feed(Tick(), 9)
    assert driver.machine.next_timeout() == 30, "the first check that has work"
    driver.feed(Tick(), 15)
    assert driver.machine.next_timeout() == 35, "later checks follow the last one"
    driver.feed(Tick(), 35)
    assert [effect.reg_id for effect in driver.effects if isinstance(effect, fx.Forget)] == [50]


@pytest.mark.rows("P-831")
def test_a_silent_source_goes_with_its_messages_and_its_receivers() -> None:
    driver = StoreDriver.with_receiver(source_activity_ns=30 * SECOND, receiver_activity_ns=60 * SECOND, **UNSET)
    driver.feed(Tick(), 30 * SECOND)
    forgotten = [(effect.role, effect.reg_id) for effect in driver.effects if isinstance(effect, fx.Forget)]
    assert forgotten == [(Role.SOURCE, 50), (Role.RECEIVER, 70)]
    assert fx.Leave(LIFE) in driver.effects
    assert abstract(driver.machine) == ((), ())
    assert driver.machine.next_timeout() is None


def test_by_default_state_never_goes_by_itself() -> None:
    """Stable messages are there when their source returns, however late: their numbers are not used again."""
    driver = StoreDriver.with_receiver()
    driver.data(0, 10)
    driver.sync()
    driver.feed(Tick(), 1000 * 365 * 86_400 * SECOND)
    assert [effect for effect in driver.effects if isinstance(effect, fx.Forget)] == []
    assert driver.machine.next_timeout() is None, "no time changes anything"
    driver.hear(register(**{**SOURCE, "incarnation": LIFE + 1}), 1000 * 365 * 86_400 * SECOND)
    driver.sync()
    [(_, answer)] = driver.sent(Registered)
    assert (answer.old, answer.low, answer.high) == (True, 0, 9)


def test_forgetting_is_told_with_what_went_and_why() -> None:
    driver = StoreDriver.with_receiver(source_activity_ns=30 * SECOND, receiver_activity_ns=60 * SECOND, **UNSET)
    driver.data(0, 10)
    driver.consume(3)
    driver.sync()
    driver.feed(Tick(), 30 * SECOND)
    told = [effect.event for effect in driver.effects if isinstance(effect, fx.Notify)]
    assert told == [
        ClientForgotten(Role.SOURCE, 50, 0, "topic", 10, 9, 30 * SECOND, Farewell.EXPIRED),
        ClientForgotten(Role.RECEIVER, 70, 50, "topic", 6, 9, 30 * SECOND, Farewell.SOURCE_GONE),
    ]


def test_clients_that_end_together_are_forgotten_once() -> None:
    driver = StoreDriver.with_receiver(source_activity_ns=SECOND, receiver_activity_ns=SECOND, **UNSET)
    driver.feed(Tick(), SECOND)
    assert len([effect for effect in driver.effects if isinstance(effect, fx.Forget)]) == 2


@pytest.mark.rows("P-833")
def test_a_silent_receiver_goes_alone() -> None:
    driver = StoreDriver.with_receiver(receiver_activity_ns=SECOND, **UNSET)
    driver.feed(Tick(), SECOND)
    assert [client.reg_id for client in driver.machine.checkpoint()] == [50]


def test_answers_to_forgotten_clients_are_dropped() -> None:
    driver = StoreDriver.with_source(source_activity_ns=SECOND, **UNSET)
    driver.data(0, 1)
    driver.hear(register(**SOURCE, generation=2))
    driver.hear(register(**RECEIVER))
    driver.feed(Tick(), SECOND)
    driver.sync()
    assert driver.effects == []


def test_a_broken_connection_alone_proves_nothing() -> None:
    driver = StoreDriver.with_receiver()
    for event in (Reset("source:1"), Ended(LIFE)):
        driver.feed(event)
        assert driver.effects == []
    assert {client[2] for client in abstract(driver.machine.clients)} == {"ACTIVE"}


@pytest.mark.rows("P-004", "P-009")
def test_a_restart_finds_everything_that_was_synced() -> None:
    """C-37: and its timers start anew."""
    before = StoreDriver.with_receiver()
    before.hear(ConsumptionAck(LIFE, 50, 70, 3))
    after = StoreDriver()
    after.machine.recover(before.machine.checkpoint(), [(50, 0, 10, 0), (99, 0, 5, 0)], {50: 1}, now=7)
    after.feed(Start())
    assert after.effects == [fx.Join(LIFE, "stream:1")]
    assert after.machine.next_timeout() == 7
    after.feed(Tick(), 7)
    assert after.machine.next_timeout() == 7 + after.machine.config.keepalive_ns
    clients, repositories = abstract(after.machine)
    assert clients == abstract(before.machine)[0]
    assert repositories == ((50, (LIFE, 0, ((1, 10),), ((1, 10),), 10)),)
    after.hear(register(**RECEIVER, generation=2))
    after.sync()
    assert [(answer.old, answer.low) for _, answer in after.sent(Registered)] == [(True, 4)]


@pytest.mark.rows("P-009")
def test_a_restart_goes_on_with_what_it_finds() -> None:
    """P-009; extents of sources that nobody knows are passed over. Formal design, 7.6: it grants nothing yet."""
    before = StoreDriver.with_receiver()
    after = StoreDriver()
    after.machine.recover(before.machine.checkpoint(), [(50, 0, 10, 0), (99, 0, 5, 0)], {}, now=0, memory=False)
    assert after.machine.repositories[50].available(0, 99) == [(0, 10)]
    after.hear(register(**RECEIVER, generation=2), SECOND)
    assert [type(effect) for effect in after.effects] == [fx.PersistMemory]


def test_messages_that_a_transport_lost_are_requested_at_once() -> None:
    driver = StoreDriver.with_source()
    driver.feed(Lost(LIFE, 0, 3))
    assert [to for to, _ in driver.sent(LateJoinRequest)] == ["source:1"]
    assert driver.machine.next_timeout() == RETRY_NS
    driver.feed(Lost(OLDER_LIFE, 0, 3))
    assert driver.effects == []


@pytest.mark.rows("P-586")
def test_a_deregistration_is_answered_when_it_is_on_disk() -> None:
    driver = StoreDriver.with_source()
    driver.hear(Deregister(Role.SOURCE, 0, 3, 50, LIFE, 0, "source:1"))
    assert driver.sent(Deregistered) == []
    driver.sync()
    assert [to for to, _ in driver.sent(Deregistered)] == ["source:1"]


@pytest.mark.rows("P-303")
def test_an_acknowledgement_that_is_no_news_writes_nothing() -> None:
    """T3: one number for each receiver, the highest."""
    driver = StoreDriver.with_receiver()
    for number, writes in ((4, 1), (4, 0), (3, 0), (9, 1)):
        driver.consume(number)
        assert len(driver.persisted()) == writes


@pytest.mark.rows("P-538", "P-836")
def test_a_silent_client_is_asked_for_a_sign_of_life() -> None:
    """Once an interval; not one that goes with its source in the same check."""
    driver = StoreDriver.with_receiver(keepalive_ns=SECOND, source_activity_ns=2 * SECOND, **UNSET)
    driver.feed(Tick(), SECOND)
    asked = [(to, message.role, message.respond) for to, message in driver.sent(Keepalive)]
    assert asked == [("source:1", Role.STORE, True), ("receiver:1", Role.STORE, True)]
    driver.feed(Tick(), SECOND + 500 * MILLISECOND)
    assert driver.sent(Keepalive) == []
    driver.feed(Tick(), 2 * SECOND)
    assert driver.sent(Keepalive) == []
    assert abstract(driver.machine) == ((), ())


@pytest.mark.rows("P-407")
def test_retransmissions_leave_as_the_rate_allows() -> None:
    driver = StoreDriver.with_receiver(request_rate=10)
    driver.hear(RetransmitRequest(Role.RECEIVER, LIFE, 50, 1, 0, 4, "receiver:1"))
    assert driver.effects == [fx.SendStored("receiver:1", LIFE, 50, 0, 0)]
    driver.feed(Tick(), SECOND // 10)
    assert driver.effects == [fx.SendStored("receiver:1", LIFE, 50, 1, 1)]
    assert driver.machine.next_timeout() is not None


@pytest.mark.rows("P-835")
def test_a_tick_costs_what_is_due() -> None:
    """Nothing is looked at whose time has not come."""
    driver = StoreDriver.with_receiver()
    looked = driver.machine.registry.agenda.deadlines
    assert looked == {}
    driver.feed(Tick(), 10)
    assert driver.effects == []


def test_damaged_messages_are_not_held_and_the_source_is_asked() -> None:
    """It counts as a hole: not served, not acknowledged again, filled if the source still has it."""
    driver = StoreDriver.with_source()
    driver.data(0, 10)
    driver.sync()
    repository = driver.machine.repositories[50]
    driver.feed(Damaged(50, 3, 5))
    assert list(repository.held) == list(repository.window.synced) == [(0, 3), (6, 10)]
    assert repository.window.disk.messages == repository.window.memory.messages == 7
    assert [to for to, _ in driver.sent(LateJoinRequest)] == ["source:1"]
    assert repository.acked == 10
    driver.data(3, 3)
    driver.sync()
    assert driver.sent(StableAck)[-1] == ("source:1", StableAck(0, LIFE, 3, 5))
    check_invariants(driver.machine)


def collecting() -> StoreDriver:
    """Ten messages are synced; the acknowledgement of the last six waits for more."""
    driver = StoreDriver.with_source(ack_minimum=1000, ack_interval_ns=100)
    driver.data(0, 4)
    driver.sync()
    driver.feed(Tick(), 100)
    assert driver.acks() == [(0, 3)]
    driver.data(4, 6, now=100)
    driver.sync(100)
    assert driver.acks() == []
    return driver


def test_damage_withdraws_acknowledgements_that_wait() -> None:
    """Sync first: an acknowledgement says what the disk has when it is sent, not what it had when it was due."""
    driver = collecting()
    driver.feed(Damaged(50, 2, 7), 150)
    repository = driver.machine.repositories[50]
    assert (repository.acked, list(repository.held)) == (4, [(0, 2), (8, 10)])
    driver.feed(Tick(), 200)
    assert driver.acks() == [(8, 9)]
    driver.data(2, 6, now=200)
    driver.sync(200)
    driver.feed(Tick(), 300)
    assert driver.acks() == [(2, 9)]
    assert repository.acked == 10


def test_a_withdrawn_acknowledgement_does_not_hold_the_next_ones_back_for_ever() -> None:
    """T15: what the source cannot send again is lost, which is passed over."""
    driver = collecting()
    driver.feed(Damaged(50, 4, 9), 150)
    assert [to for to, _ in driver.sent(LateJoinRequest)] == ["source:1"]
    driver.data(10, 5, now=160)
    driver.sync(160)
    driver.hear(LateJoinInfo(LIFE, 50, 10, 14), 170)
    driver.feed(Tick(), 270)
    assert driver.acks() == [(10, 14)]


def test_a_withdrawn_acknowledgement_is_sent_when_all_receivers_have_consumed() -> None:
    """T19: then it is stable, written or not, once it is synced that it goes."""
    driver = StoreDriver.paced(ack_minimum=1000, ack_interval_ns=100)
    driver.data(0, 10)
    driver.sync()
    driver.feed(Damaged(50, 3, 5), 50)
    driver.feed(Tick(), 100)
    assert driver.acks() == [(0, 2), (6, 9)]
    driver.consume(9, now=150)
    driver.sync(200)
    driver.feed(Tick(), 300)
    assert driver.acks() == [(3, 9)]


def test_damage_of_what_was_cut_is_no_sign_that_the_numbers_exist() -> None:
    """The read that found it began before the cut; the current life has not reached these numbers."""
    driver = StoreDriver.with_source()
    driver.data(0, 10)
    driver.sync()
    driver.hear(register(**SOURCE, incarnation=LIFE + 1))
    driver.hear(info(incarnation=LIFE + 1, low=5, high=4, lives=((LIFE, 0), (LIFE + 1, 5))))
    driver.feed(Damaged(50, 5, 9))
    assert driver.sent(LateJoinRequest) == []
    assert driver.machine.repositories[50].filling.high == 4


def test_unsynced_messages_cannot_be_damaged() -> None:
    driver = StoreDriver.with_source()
    driver.data(0, 10)
    driver.feed(Damaged(50, 3, 5))
    driver.feed(Damaged(51, 3, 5))
    assert list(driver.machine.repositories[50].held) == [(0, 10)]


def test_a_proxy_without_a_required_quorum_ends() -> None:
    """C-40: the store is told by whoever runs its proxy."""
    driver = StoreDriver.with_source(allow_proxy=True, proxy_quorum=True)
    record = driver.machine.clients.records[50]
    assert driver.machine.registry.elections.running == {}
    driver.feed(ProxyQuorum(50, ElectionToken(1, 0, LIFE), True))
    assert driver.effects == []
    assert record.lifetime.active


def test_a_client_is_found_by_its_reg_id_or_else_by_the_life_of_its_source() -> None:
    status = StoreDriver.with_receiver().machine.status
    found = [status.holder(*asked) for asked in ((50,), (70, LIFE), (71,), (0, LIFE), (71, LIFE), (0, OLDER_LIFE))]
    assert [None if client is None else client.reg_id for client in found] == [50, 70, None, 50, 50, None]
