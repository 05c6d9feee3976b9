"""The traps on the side of the source: what goes wrong in nearly every first implementation.

T numbers are those of the list of traps; what the formal design found by model checking stands at the end.
"""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Event,
    NotStable,
    NotStableFlag,
    Oddity,
    Overtaken,
    QuorumLost,
    Reclaimed,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    Wakeup,
)
from stablecast.core.protocol.inputs import Blocked, Gone, Sent, Start, Tick
from stablecast.core.protocol.messages import Refusal, Refused, Register, Registered, StableAck
from stablecast.core.protocol.quorum import Consensus, GroupRules, Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.registration.store_registration import LEASE_MARGIN
from stablecast.core.source.stability import OVERHEAD_BYTES, StabilityWindow
from tests.core.drivers import INTERVAL_NS, SOURCE, SourceDriver, StoreDriver
from tests.core.samples import LIFE, SECOND, drain, events, register


def started(**changes: Any) -> SourceDriver:
    driver = SourceDriver(**changes)
    driver.feed(Start())
    return driver


def complete(told: list[Any]) -> bool:
    return any(isinstance(event, RegistrationComplete) for event in told)


def test_t1_first_interval() -> None:
    """T1: with one store of three dead, registration completes after one interval, not at the second answer; with all
    three alive it completes at the third.
    """
    driver = started()
    assert not complete(driver.grant(0, 1))
    assert not complete(driver.feed(Tick(), INTERVAL_NS - 1))
    assert complete(driver.feed(Tick(), INTERVAL_NS))
    assert complete(started().grant(0, 1, 2))


def test_t2_quorum_base() -> None:
    """T2: a group of five of which three stores are listed needs three of them."""
    driver = started(groups=GroupRules((5,)))
    driver.grant(0, 1)
    assert not complete(driver.feed(Tick(), INTERVAL_NS))
    assert complete(driver.grant(2, now=INTERVAL_NS + 1))


@pytest.mark.parametrize(
    ("consensus", "first"), [(Consensus.HIGHEST, 13), (Consensus.MAJORITY, 13), (Consensus.LOWEST, 11)]
)
def test_t5_two_consensus_answers(consensus: Consensus, first: int) -> None:
    """T5: stores report 10, 12 and 12: success tells each one's own number, completion the number agreed on."""
    driver = started(consensus=consensus)
    told = [event for index, high in enumerate((10, 12, 12)) for event in driver.grant(index, high=high)]
    assert [event.number for event in told if isinstance(event, RegistrationSuccess)] == [10, 12, 12]
    assert told[-1] == RegistrationComplete(first, RegistrationFlag.NONE)


@pytest.mark.rows("P-019", "P-530")
def test_t6_own_request_lost() -> None:
    """T6: a source whose answer got lost asks again and succeeds; another with its RegID is refused until the timeout.

    P-019, P-530.
    """
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


def retaining(threshold: int, limit: int) -> tuple[StabilityWindow, list[fx.Effect]]:
    window = StabilityWindow.create(Quorums.of(GroupRules((1,)), [0]), Retention(threshold, limit), 1)
    window.on_stores(1, False, [])
    return window, []


def test_t11_retention_threshold() -> None:
    """T11: below the threshold nothing goes; above it the oldest goes first; an unstable oldest holds all back."""
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


@pytest.mark.rows("P-323")
def test_t12_forced_reclaim() -> None:
    """T12, C-36: above the size limit an unstable message goes all the same, is reported as forced, and leaves
    the flight.
    """
    window, out = retaining(threshold=0, limit=250)
    for _ in range(3):
        window.sent(1, 100, out)
    assert events(out) == [Reclaimed(0, 0, forced=True)]
    assert (window.unsettled_messages, window.unsettled_bytes) == (2, 200)


@pytest.mark.parametrize("ack_first", [False, True])
def test_t13_wake_up_race(ack_first: bool) -> None:
    """T13: the acknowledgement comes before or after the refused send is reported; one wake-up, and the send fits."""
    driver = SourceDriver.active(stores=1, flight_messages=2)
    driver.feed(Sent(0, 2, 20))
    ack = StableAck(0, LIFE, 0, 0)
    told: list[Event] = []
    if ack_first:
        told += driver.hear(ack) + driver.feed(Blocked(10))
    else:
        told += driver.feed(Blocked(10)) + driver.hear(ack)
    assert told.count(Wakeup()) == 1
    assert driver.machine.credit_messages == 1
    assert Wakeup() not in driver.feed(Sent(2, 1, 10)) + driver.hear(StableAck(0, LIFE, 1, 2))


def test_t14_over_large_message() -> None:
    """T14: a message that exceeds the whole flight is misuse at once, with nothing in flight; it never waits."""
    driver = SourceDriver.active(flight_bytes=1000)
    driver.machine.check_size(1000)
    with pytest.raises(MisuseError, match="2000 bytes"):
        driver.machine.check_size(2000)


@pytest.mark.rows("P-441")
def test_t16_nack_ends_the_retries() -> None:
    """T16: what a store has lost for good is not sent to it again, and the application hears why."""
    driver = SourceDriver.active(stores=1, stability_timeout_ns=100, check_ns=100)
    driver.feed(Sent(0, 3, 30))
    driver.feed(Tick(), 100)
    assert fx.Resend("store0:1", LIFE, 0, 2, proactive=True) in driver.effects
    told = driver.hear(StableAck(0, LIFE, 0, 2, nack=True), 150)
    assert told == [NotStable(0, 2, 0, NotStableFlag.STORE | NotStableFlag.LOSS)]
    driver.feed(Tick(), 200)
    driver.feed(Tick(), 300)
    assert not [effect for effect in driver.effects if isinstance(effect, fx.Resend)]


@pytest.mark.parametrize(("consensus", "first"), [(Consensus.HIGHEST, 101), (Consensus.MAJORITY, 0)])
def test_t20_wiped_quorum(consensus: Consensus, first: int) -> None:
    """T20: two of three stores were wiped: the highest number of the third counts, a majority would begin at 0."""
    driver = started(consensus=consensus)
    driver.grant(0, high=100)
    told = driver.grant(1, 2)
    assert RegistrationComplete(first, RegistrationFlag.NONE) in told


def test_t20_stores_brought_back_one_at_a_time() -> None:
    """T20: with a message in between, numbering continues whatever the consensus."""
    driver = started(consensus=Consensus.MAJORITY)
    for store, high in enumerate((101, 100, 101)):
        driver.grant(store, high=high)
    assert driver.machine.resume_point == 102


# Findings of the formal design.


def test_an_acknowledgement_counts_by_content() -> None:
    """An acknowledgement of an older life's message with the same number makes nothing stable."""
    driver = SourceDriver.active()
    driver.feed(Sent(0, 3, 30))
    told = [event for store in range(3) for event in driver.hear(StableAck(store, 6, 0, 2))]
    assert {type(event) for event in told} == {Oddity}
    told = [event for store in range(3) for event in driver.hear(StableAck(store, LIFE, 0, 2))]
    assert any(isinstance(event, Stable) for event in told)


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


def test_an_earlier_life_that_sent_nothing_is_no_successor() -> None:
    """A store that was away when this life began tells of the life before it, whose first number is ours now."""
    driver = started()
    driver.grant(0, 1, term=3)
    driver.feed(Tick(), INTERVAL_NS)
    told: list[Event] = []
    for store in (0, 1):
        told += driver.feed(Gone(f"store{store}:1"), 100)
    told += driver.feed(Tick(), 100 + INTERVAL_NS)
    assert QuorumLost(0, 2) in told
    assert Overtaken() not in driver.grant(2, now=150, old=True, term=2, lives=((6, 0),), lives_term=2)
