"""The traps of the field: what goes wrong in nearly every first implementation. Each test says it in one sentence.

T numbers are those of the list of traps; what the formal design found by model checking stands at the end.
"""

from itertools import permutations
from typing import Any

import pytest

from stablecast.core import effects as fx
from stablecast.core.delivery import DeliveryWindow
from stablecast.core.events import (
    Oddity,
    Reclaimed,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    UnrecoverableLoss,
)
from stablecast.core.inputs import Consumed, Gone, LowChosen, Sent, Start, Tick
from stablecast.core.lifetime import LifetimeState
from stablecast.core.messages import (
    ConsumptionAck,
    LateJoinInfo,
    Message,
    Refusal,
    Refused,
    Register,
    Registered,
    RetransmitRequest,
    StableAck,
)
from stablecast.core.quorum import Consensus, Group
from stablecast.core.ranges import RangeSet
from stablecast.core.registration import LEASE_MARGIN
from stablecast.core.stability import OVERHEAD_BYTES, Retention, StabilityWindow
from tests.core.drivers import ACK_NS, INTERVAL_NS, RECEIVER, SOURCE, ReceiverDriver, SourceDriver, StoreDriver, code
from tests.core.samples import LIFE, SECOND, drain, events, info, register


def started(**changes: Any) -> SourceDriver:
    driver = SourceDriver(**changes)
    driver.feed(Start())
    return driver


def complete(told: list[Any]) -> bool:
    return any(isinstance(event, RegistrationComplete) for event in told)


def test_t1_first_interval() -> None:
    """With one store of three dead, registration completes after one interval, not at the second answer; with all three
    alive it completes at the third.
    """
    driver = started()
    assert not complete(driver.grant(0, 1))
    assert not complete(driver.feed(Tick(), INTERVAL_NS - 1))
    assert complete(driver.feed(Tick(), INTERVAL_NS))
    assert complete(started().grant(0, 1, 2))


def test_t2_quorum_base() -> None:
    """A group of five of which three stores are listed needs three of them."""
    driver = started(group=Group(5))
    driver.grant(0, 1)
    assert not complete(driver.feed(Tick(), INTERVAL_NS))
    assert complete(driver.grant(2, now=INTERVAL_NS + 1))


def test_t3_cumulative_ack() -> None:
    """A receiver that lost 4 for good and acknowledges 8 has acknowledged 3 to 8; it returns at 9."""
    receiver = ReceiverDriver.active(high=8, low=3)
    receiver.machine.window.lose(4, 5, [])
    receiver.data(3, 1)
    receiver.data(5, 4)
    receiver.feed(Consumed(3, 3), 1)
    receiver.feed(Consumed(5, 8), 1)
    receiver.feed(Tick(), 1 + ACK_NS)
    [number] = {ack.number for _, ack in receiver.sent(ConsumptionAck)}
    store = StoreDriver.with_receiver()
    store.hear(ConsumptionAck(LIFE, 50, 70, number))
    store.hear(register(**RECEIVER, generation=2))
    store.sync()
    assert [(answer.old, answer.low) for _, answer in store.sent(Registered)] == [(True, 9)]


def test_t4_contiguous_batching() -> None:
    """After 2, consumption in the order 4, 5, 7, 8, 6, 10, 3 gives one acknowledgement, for 8."""
    driver = ReceiverDriver.active(high=10, low=3)
    driver.data(3, 8)
    for number in (4, 5, 7, 8, 6, 10, 3):
        driver.feed(Consumed(number, number), 1)
        assert driver.sent(ConsumptionAck) == []
    driver.feed(Tick(), 1 + ACK_NS)
    assert [(to, ack.number) for to, ack in driver.sent(ConsumptionAck)] == [(f"store{n}:1", 8) for n in range(3)]


@pytest.mark.parametrize(
    ("consensus", "first"), [(Consensus.HIGHEST, 13), (Consensus.MAJORITY, 13), (Consensus.LOWEST, 11)]
)
def test_t5_two_consensus_answers(consensus: Consensus, first: int) -> None:
    """Stores that report 10, 12 and 12: success tells each one's own number, completion the number agreed on."""
    driver = started(consensus=consensus)
    told = [event for index, high in enumerate((10, 12, 12)) for event in driver.grant(index, high=high)]
    assert [event.number for event in told if isinstance(event, RegistrationSuccess)] == [10, 12, 12]
    assert told[-1] == RegistrationComplete(first, RegistrationFlag.NONE)


def test_t6_own_request_lost() -> None:
    """A source whose answer got lost asks again and succeeds; another with its RegID is refused until the timeout."""
    store = StoreDriver.with_source(source_activity_ns=SECOND)
    store.hear(register(**SOURCE))
    store.sync()
    assert [answer.old for _, answer in store.sent(Registered)] == [True]
    other = register(**{**SOURCE, "incarnation": 9, "reply_to": "other:1"})
    store.hear(other, SECOND - 1)
    assert [refused.reason for _, refused in store.sent(Refused)] == [Refusal.HELD_BY_SOURCE]
    store.feed(Tick(), SECOND)
    store.hear(other, SECOND)
    assert store.sent(Refused) == []


@pytest.mark.parametrize(
    ("own_ms", "lifetime_s", "free_s", "deleted_s"),
    [(0, 0, 30, 30), (5000, 0, 5, 5), (5000, 20, 5, 20), (0, 10, 30, 30)],
)
def test_t7_activity_versus_lifetime(own_ms: int, lifetime_s: int, free_s: int, deleted_s: int) -> None:
    """The RegID is free at the activity timeout, the client's own if it has one; the state goes at the longer span."""
    store = StoreDriver(source_activity_ns=30 * SECOND, source_lifetime_ns=lifetime_s * SECOND)
    store.hear(register(**SOURCE, activity_timeout_ms=own_ms))
    [record] = store.machine.clients.sources()
    for second in range(1, deleted_s + 1):
        store.feed(Tick(), second * SECOND)
        expected = LifetimeState.EXPIRED if second >= deleted_s else LifetimeState(second >= free_s)
        assert record.lifetime.state is expected
    assert store.machine.clients.sources() == []


def test_t8_frozen_timeout() -> None:
    """A source that registered with 5 s and returns with 60 s keeps 5 s."""
    store = StoreDriver()
    store.hear(register(**SOURCE, activity_timeout_ms=5000))
    store.hear(register(**SOURCE, activity_timeout_ms=60_000))
    store.sync()
    assert {answer.activity_timeout_ms for _, answer in store.sent(Registered)} == {5000}


@pytest.mark.parametrize(("wish", "start"), [(1, 4), (2, 2), (0, 0)])
def test_t9_low_number_by_callback(wish: int, start: int) -> None:
    """High 6, low 1, maximum 2: leaving 1 starts at 4; any other choice is taken as it is."""
    driver = ReceiverDriver(request_maximum=2)
    driver.inform(1, high=6)
    driver.grant(0, low=1, high=6, old=True)
    assert fx.AskLow(6, 4, 1) in driver.effects
    assert driver.feed(LowChosen(wish)) == [RegistrationComplete(start, RegistrationFlag.NONE)]
    assert driver.asked() == [(start, 6)]


def test_t10_low_beyond_high() -> None:
    """A low number beyond the end is cut to the end, said so, and nothing is recovered."""
    driver = ReceiverDriver()
    driver.inform(1, high=6)
    driver.grant(0, low=1, high=6)
    told = driver.feed(LowChosen(11))
    assert code(told) == ["low-beyond-high"]
    assert RegistrationComplete(7, RegistrationFlag.NONE) in told
    assert driver.asked() == []


def retaining(threshold: int, limit: int) -> tuple[StabilityWindow, list[fx.Effect]]:
    retention = Retention(threshold, limit)
    return StabilityWindow(Group(1), retention, [RangeSet()]), []


def test_t11_retention_threshold() -> None:
    """Below the threshold nothing is released; above it the oldest goes first; an unstable oldest holds all back."""
    size = 100 + OVERHEAD_BYTES
    window, out = retaining(threshold=2 * size, limit=100 * size)
    for _ in range(2):
        window.sent(1, 100, out)
    window.on_acked(0, 0, 2, out)
    assert not [event for event in events(drain(out)) if isinstance(event, Reclaimed)]
    window.sent(1, 100, out)
    assert events(drain(out)) == [Reclaimed(0, 0, forced=False)]
    for _ in range(3):
        window.sent(1, 100, out)
    drain(out)
    window.on_acked(0, 3, 6, out)
    assert window.trail == 2
    window.on_acked(0, 2, 3, out)
    assert window.trail == 4


def test_t12_forced_reclaim() -> None:
    """Above the size limit an unstable message goes all the same, is reported as forced, and leaves the flight."""
    window, out = retaining(threshold=0, limit=250)
    for _ in range(3):
        window.sent(1, 100, out)
    assert events(out) == [Reclaimed(0, 0, forced=True)]
    assert (window.unsettled_messages, window.unsettled_bytes) == (2, 200)


def test_t15_stability_at_the_last_hole() -> None:
    """With 5 missing, 6 to 20 are not acknowledged until 5 is there or known to be lost."""
    for lost in (False, True):
        store = StoreDriver.with_source()
        store.data(0, 5)
        store.data(6, 15)
        store.sync()
        assert [(ack.first, ack.last) for _, ack in store.sent(StableAck)] == [(0, 4)]
        if lost:
            store.hear(LateJoinInfo(LIFE, 50, 6, 20))
            assert [(ack.first, ack.last) for _, ack in store.sent(StableAck)] == [(6, 20)]
        else:
            store.data(5, 1)
            store.sync()
            assert [(ack.first, ack.last) for _, ack in store.sent(StableAck)] == [(5, 20)]


def test_t16_duplicate() -> None:
    """A stored message that comes again is acknowledged again and not stored again."""
    store = StoreDriver.with_source()
    store.data(0, 5)
    store.sync()
    store.data(2, 2)
    assert [(ack.first, ack.last) for _, ack in store.sent(StableAck)] == [(2, 3)]
    assert not [effect for effect in store.effects if isinstance(effect, fx.PersistMessages)]


@pytest.mark.parametrize(("consensus", "first"), [(Consensus.HIGHEST, 101), (Consensus.MAJORITY, 0)])
def test_t20_wiped_quorum(consensus: Consensus, first: int) -> None:
    """Two of three stores were wiped: the highest number of the third is what counts, a majority would begin at 0."""
    driver = started(consensus=consensus)
    driver.grant(0, high=100)
    told = driver.grant(1, 2)
    assert RegistrationComplete(first, RegistrationFlag.NONE) in told


def test_t21_sri_version() -> None:
    """When one store's own version rose, the receiver registers again with that store only."""
    driver = ReceiverDriver.active()
    driver.inform(1, 2, 1, version=2)
    assert [to for to, _ in driver.sent(Register)] == ["store1:1"]


ORDERS = list(permutations(["sri", "stream", "receiver"]))


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_t22_arrival_order_of_control(order: tuple[str, ...]) -> None:
    """The SRI, the stream's data and a receiver's request reach the store in any order; all are served in the end."""
    store = StoreDriver()
    store.hear(register(**SOURCE))
    store.sync()
    answers: list[Registered] = []
    for step in order:
        messages: dict[str, Message] = {"sri": info(high=4), "receiver": register(**RECEIVER)}
        if step == "stream":
            store.data(0, 5)
        else:
            store.hear(messages[step])
        store.sync()
        answers += [answer for _, answer in store.sent(Registered)]
    store.hear(LateJoinInfo(LIFE, 50, 0, 4))
    if store.sent(RetransmitRequest):
        store.data(0, 5)
    store.sync()
    assert [(answer.reg_id, answer.low) for answer in answers] == [(70, 0)]
    assert store.machine.repositories[50].acked == 5


def test_t22_a_receiver_before_its_source_asks_again() -> None:
    """A store that does not know the source yet refuses the receiver, who asks again after its interval."""
    driver = ReceiverDriver()
    driver.inform(1)
    driver.hear(Refused(register(**RECEIVER).role, 0, 1, 0, LIFE, Refusal.UNKNOWN_SOURCE))
    driver.feed(Tick(), INTERVAL_NS)
    assert len(driver.sent(Register)) == 1
    assert driver.grant(0)


def test_numbers_are_used_again_and_told_apart() -> None:
    """Numbers of unstable messages are used again by the next life: a receiver that consumed 5 of the old life gets 5
    of the new one, and a straggler of the old life fits nowhere.
    """
    driver = ReceiverDriver()
    driver.machine.lives.remember(6, 0, 6)
    driver.inform(1, low=5, high=4)
    driver.grant(0, low=5, high=4, old=True)
    driver.feed(LowChosen(5))
    assert code(driver.data(5, 1, life=6)) == ["dead-tail"]
    driver.data(5, 1)
    assert driver.delivered == [5]


def test_the_tail_of_an_older_life_is_cut_back() -> None:
    """A returning store holds 0 to 9 of a life whose successor resumed at 7: 7 to 9 go before anything new comes."""
    store = StoreDriver.with_receiver()
    store.hear(register(**{**SOURCE, "incarnation": 9}))
    store.data(7, 1, life=9)
    assert [type(effect) for effect in store.effects] == [fx.Discard]
    store.hear(info(incarnation=9, low=7, high=7))
    assert [effect.number for effect in store.effects if isinstance(effect, fx.Cut)] == [7]
    store.data(7, 1, life=9)
    store.sync()
    assert [(ack.incarnation, ack.first) for _, ack in store.sent(StableAck)] == [(9, 7)]


def test_a_frozen_client_gives_up_before_its_reg_id_is_taken() -> None:
    """The lease ends, counted from the sending of what the store answered last, before the store lets another in."""
    source, store = SourceDriver(stores=1), StoreDriver(source_activity_ns=8 * SECOND, check_ns=SECOND // 10)
    source.feed(Start(), 0)
    [(_, request)] = source.sent(Register)
    store.hear(request, SECOND // 2)
    store.sync(SECOND // 2)
    [(_, grant)] = store.sent(Registered)
    source.hear(grant, SECOND)
    rival = register(reg_id=grant.reg_id, incarnation=9, reply_to="rival:1")
    taken = 0
    while not taken:
        now = store.machine.next_timeout()
        assert now is not None
        store.feed(Tick(), now)
        store.hear(rival, now)
        taken = now if store.persisted() else 0
    source.feed(Tick(), 8 * SECOND - 8 * SECOND // LEASE_MARGIN)
    assert not source.machine.can_send
    assert taken > 8 * SECOND - 8 * SECOND // LEASE_MARGIN


def test_grants_are_durable_before_they_are_given() -> None:
    """A store that loses power may forget nothing that it granted."""
    store = StoreDriver()
    store.hear(register(**SOURCE))
    assert store.sent(Registered) == []
    assert [client.reg_id for client in store.persisted()] == [50]
    store.sync()
    assert [to for to, _ in store.sent(Registered)] == ["source:1"]


def test_acknowledgements_are_prefixes_whatever_the_order() -> None:
    """The highest acknowledgement of all stores is where a receiver resumes, so it must never jump over anything."""
    window, out = DeliveryWindow(100), list[fx.Effect]()
    window.begin(0, out)
    window.on_run(0, 9, 1, False, out)
    for number in (8, 1, 5):
        window.on_consumed(number, number + 1)
        assert window.acknowledge() is None


def test_a_hole_below_the_resume_point_is_announced_and_passed() -> None:
    """Nobody has 3 and 4: their life died with them. Delivery goes on behind them, and says so."""
    driver = ReceiverDriver.active(high=5)
    driver.data(0, 3, recovered=True)
    driver.data(5, 1, recovered=True)
    told: list[Any] = []
    for now in range(0, 200, 10):
        told += driver.feed(Tick(), now)
    assert UnrecoverableLoss(3, 4) in told
    assert driver.delivered == [0, 1, 2, 5]


def test_an_acknowledgement_counts_by_content() -> None:
    """An acknowledgement of an older life's message with the same number makes nothing stable."""
    driver = SourceDriver.active()
    driver.feed(Sent(0, 3, 30))
    told = [event for store in range(3) for event in driver.hear(StableAck(store, 6, 0, 2))]
    assert {type(event) for event in told} == {Oddity}
    told = [event for store in range(3) for event in driver.hear(StableAck(store, LIFE, 0, 2))]
    assert any(isinstance(event, Stable) for event in told)


def test_a_receiver_is_not_pushed_ahead_by_a_store_that_began_late() -> None:
    """A store that was empty when the receiver registered let it begin at 50; elsewhere it acknowledged 20 only."""
    driver = ReceiverDriver()
    driver.inform(1, 1, 1, high=60)
    driver.grant(0, low=50, high=60)
    driver.grant(1, 2, low=21, high=60, old=True)
    assert fx.AskLow(60, 21, 21) in driver.effects


def test_a_process_that_ended_frees_its_reg_id_at_once() -> None:
    """Nobody waits for the activity timeout of a process whose port refuses connections."""
    store = StoreDriver.with_source()
    rival = register(**{**SOURCE, "incarnation": 9, "reply_to": "rival:1"})
    store.hear(rival)
    assert store.sent(Refused)
    store.feed(Gone("source:1"))
    store.hear(rival)
    store.sync()
    assert [to for to, _ in store.sent(Registered)] == ["rival:1"]
