"""The traps of the field that a store can fall into; each test says it in one sentence (T7 to T22)."""

from itertools import permutations

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Gone, Tick
from stablecast.core.protocol.messages import (
    LateJoinInfo,
    Message,
    Pace,
    Refusal,
    Refused,
    Register,
    Registered,
    RetransmitRequest,
    StableAck,
    Wishes,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store.client_lifetime import LifetimeState
from tests.core.drivers import INTERVAL_NS, RECEIVER, SOURCE, ReceiverDriver, StoreDriver
from tests.core.samples import LIFE, SECOND, info, register


@pytest.mark.rows("P-530", "P-531", "P-532", "P-533", "P-534", "P-535", "P-832")
@pytest.mark.parametrize(
    ("own_ms", "lifetime_s", "free_s", "deleted_s"),
    [(0, 0, 30, 30), (5000, 0, 5, 5), (5000, 20, 5, 20), (0, 10, 30, 30)],
)
def test_t7_activity_versus_lifetime(own_ms: int, lifetime_s: int, free_s: int, deleted_s: int) -> None:
    """The RegID is free at the activity timeout, the client's own if it has one; the state goes at the
    longer span.
    """
    store = StoreDriver(source_activity_ns=30 * SECOND, source_lifetime_ns=lifetime_s * SECOND)
    store.hear(register(**SOURCE, activity_timeout_ms=own_ms))
    [record] = store.machine.clients.sources()
    for second in range(1, deleted_s + 1):
        store.feed(Tick(), second * SECOND)
        expected = LifetimeState.EXPIRED if second >= deleted_s else LifetimeState(second >= free_s)
        assert record.lifetime.state is expected
    assert store.machine.clients.sources() == []


@pytest.mark.rows("P-531")
def test_t8_frozen_timeout() -> None:
    """A source that registered with 5 s and returns with 60 s keeps 5 s."""
    store = StoreDriver()
    store.hear(register(**SOURCE, activity_timeout_ms=5000))
    store.hear(register(**SOURCE, activity_timeout_ms=60_000))
    store.sync()
    assert {answer.activity_timeout_ms for _, answer in store.sent(Registered)} == {5000}


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


@pytest.mark.rows("P-440")
def test_t16_duplicate() -> None:
    """A stored message that comes again, unasked, is acknowledged again and not stored again."""
    store = StoreDriver.with_source()
    store.data(0, 5)
    store.sync()
    store.data(2, 2, recovered=True, proactive=True)
    assert [(ack.first, ack.last) for _, ack in store.sent(StableAck)] == [(2, 3)]
    assert not [effect for effect in store.effects if isinstance(effect, fx.PersistMessages)]


@pytest.mark.rows("P-441")
def test_t16_a_duplicate_of_what_was_lost() -> None:
    """Declared lost and sent again unasked, it is refused and not stored; asked for, it is taken."""
    for proactive in (True, False):
        store = StoreDriver.with_source()
        store.data(2, 1)
        store.hear(LateJoinInfo(LIFE, 50, 2, 2))
        store.data(1, 1, recovered=True, proactive=proactive)
        assert [ack for _, ack in store.sent(StableAck)] == ([StableAck(0, LIFE, 1, 1, nack=True)] if proactive else [])
        assert len(store.done(fx.PersistMessages)) == (not proactive)


FLIGHT = Wishes(flight_bytes=100, size_limit=1000, disk_limit=1000)


@pytest.mark.rows("P-013", "P-566", "P-580")
def test_t17_rpp_room() -> None:
    """With room for ten flights acknowledgements stop when less than one is left, not at zero;
    they go on when receivers acknowledge.
    """
    store = StoreDriver.paced(wishes=FLIGHT)
    for number in range(10):
        store.data(number, 1, size=100)
        store.sync()
        assert store.acks() == ([(number, number)] if number < 9 else [])
    store.consume(0)
    assert store.acks() == [(9, 9)]


@pytest.mark.rows("P-566")
def test_t17_rpp_room_in_messages() -> None:
    """The same holds for the flight size in messages."""
    store = StoreDriver.paced(wishes=Wishes(flight_messages=2))
    store.machine.repositories[50].paced.capacity = 5
    store.data(0, 3)
    store.sync()
    assert store.acks() == [(0, 2)]
    store.data(3, 1)
    store.sync()
    assert store.acks() == []
    store.consume(0)
    assert store.acks() == [(3, 3)]


@pytest.mark.rows("P-536")
def test_t18_rpp_inactive_receiver() -> None:
    """An inactive receiver inside its lifetime holds the source up; when its lifetime ends, its messages go."""
    store = StoreDriver.paced(wishes=FLIGHT, receiver_activity_ns=SECOND, receiver_lifetime_ns=5 * SECOND)
    store.data(0, 10, size=100)
    store.sync()
    assert store.acks() == []
    store.feed(Tick(), 2 * SECOND)
    assert not store.machine.clients.records[70].lifetime.active
    assert store.acks() == []
    store.feed(Tick(), 5 * SECOND)
    assert store.acks() == [(0, 9)]
    assert [effect.number for effect in store.done(fx.Reclaim)] == [10]


def test_t18_rpp_non_blocking_receiver() -> None:
    """A receiver that does not block has its messages kept while there is room; then the oldest go."""
    store = StoreDriver.paced(pace=Pace.NON_BLOCKING, wishes=FLIGHT)
    acked = []
    for number in range(15):
        store.data(number, 1, size=100)
        store.sync()
        acked += store.acks()
    assert acked == [(number, number) for number in range(15)]
    assert store.machine.repositories[50].trail == 6


@pytest.mark.rows("P-578", "P-579")
@pytest.mark.parametrize(("repairs", "at_once"), [(Repair.NONE, True), (Repair.ALL, False)])
def test_t19_rpp_skipped_write(repairs: Repair, at_once: bool) -> None:
    """With a write delay of one second, what all receivers consumed within it is not written. It is
    acknowledged at once, or, repaired, when its end is synced: the disk must know that the number was used.
    """
    store = StoreDriver.paced(write_delay_ns=SECOND, repairs=repairs)
    store.data(0, 5)
    assert store.acks() == []
    store.consume(4, now=SECOND // 2)
    assert (store.acks() == [(0, 4)]) is at_once
    store.sync(now=SECOND // 2)
    assert (store.acks() == [(0, 4)]) is not at_once
    for now in (SECOND, 2 * SECOND):
        store.feed(Tick(), now)
        assert not store.done(fx.PersistCached)
        assert not store.done(fx.PersistMessages)


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


def test_grants_are_durable_before_they_are_given() -> None:
    """A store that loses power may forget nothing that it granted."""
    store = StoreDriver()
    store.hear(register(**SOURCE))
    assert store.sent(Registered) == []
    assert [client.reg_id for client in store.persisted()] == [50]
    store.sync()
    assert [to for to, _ in store.sent(Registered)] == ["source:1"]


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
