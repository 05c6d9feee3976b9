"""Votes about where a receiver begins: stores that lack messages, or may have forgotten it (formal design, 7.11)."""

from typing import Any

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Event,
    RegistrationComplete,
    RegistrationError,
    RegistrationSuccess,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import Consumed, LowChosen, Reset, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Pace,
    Refusal,
    Refused,
    Register,
    Role,
    StoreEntry,
    StoreMemory,
)
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import Ordering
from tests.core.drivers import ACK_NS, GIVE_UP_NS, INTERVAL_NS, ReceiverDriver
from tests.core.samples import LIFE, sends

HIGH = 40
LACKS: dict[str, Any] = {"low": 34, "high": HIGH, "memory": StoreMemory.LOST, "known": 0}
FORGOT: dict[str, Any] = {"low": 0, "high": HIGH, "memory": StoreMemory.LOST}
UNMARKED: dict[str, Any] = {"low": 34, "high": HIGH}
KNOWS: dict[str, Any] = {"low": 17, "high": HIGH, "old": True}


def registering(versions: int = 3, **changes: Any) -> ReceiverDriver:
    driver = ReceiverDriver(**changes)
    driver.inform(*[1] * versions, high=HIGH, group_sizes=(3,))
    return driver


def proposed(driver: ReceiverDriver) -> list[int]:
    return [effect.low for effect in driver.effects if isinstance(effect, fx.AskLow)]


def errors(told: list[Event]) -> list[int]:
    return [event.store_index for event in told if isinstance(event, RegistrationError)]


@pytest.mark.parametrize("grants", [(LACKS, LACKS), (LACKS, UNMARKED), (FORGOT, UNMARKED)])
def test_stores_without_a_vote_do_not_decide_where_a_receiver_begins(grants: tuple[dict[str, Any], ...]) -> None:
    """One that knows the receiver answers later. Until then the application learns what the receiver waits for."""
    driver = registering()
    for index, one in enumerate(grants, 1):
        driver.grant(index, **one)
    told = driver.feed(Tick(), INTERVAL_NS)
    assert proposed(driver) == []
    assert errors(told) == [index for index, one in enumerate(grants, 1) if one is not UNMARKED]
    assert all("waiting for store 0 [store0:1]" in event.text for event in told if isinstance(event, RegistrationError))
    assert errors(driver.feed(Tick(), 2 * INTERVAL_NS)) == []
    driver.grant(0, now=2 * INTERVAL_NS, **KNOWS)
    assert proposed(driver) == [17]


def test_a_quorum_that_lacks_nothing_needs_no_other_store() -> None:
    """The offer of a store without a vote does not count: it may have forgotten that the receiver is not new."""
    driver = registering()
    driver.grant(0, 1, **UNMARKED)
    driver.grant(2, **FORGOT)
    assert proposed(driver) == [34]


def test_a_store_that_knows_the_receiver_ends_the_wait() -> None:
    driver = registering()
    driver.grant(1, **LACKS)
    driver.grant(2, **KNOWS)
    driver.feed(Tick(), INTERVAL_NS)
    assert proposed(driver) == [17]


def test_what_all_stores_lack_is_lost_at_once() -> None:
    """All disks were replaced: there is nothing to wait for, and nothing that a request could bring."""
    driver = registering()
    driver.grant(0, 1, **{**LACKS, "known": 5})
    driver.grant(2, **{**LACKS, "low": 30, "known": 3})
    assert proposed(driver) == [3]
    told = driver.feed(LowChosen(3))
    assert [event for event in told if not isinstance(event, RegistrationComplete)] == [UnrecoverableLoss(3, 29)]
    assert driver.asked() == [(30, HIGH)]


def test_what_one_store_does_not_lack_is_not_lost() -> None:
    """A rule released what is below its offer."""
    driver = registering()
    driver.grant(0, 1, **LACKS)
    driver.grant(2, **{**FORGOT, "low": 20})
    assert proposed(driver) == [20]
    assert UnrecoverableLoss not in {type(event) for event in driver.feed(LowChosen(20))}
    assert driver.asked() == [(20, HIGH)]


def test_a_receiver_waits_no_longer_than_for_a_message() -> None:
    """The store that could tell is gone for ever. What only it may have is reported lost, in one piece."""
    driver = registering()
    driver.grant(1, 2, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    assert driver.machine.next_timeout() is not None
    for now in range(2 * INTERVAL_NS, INTERVAL_NS + GIVE_UP_NS, INTERVAL_NS):
        driver.feed(Tick(), now)
        driver.grant(1, 2, now=now, **LACKS)
    assert proposed(driver) == []
    driver.feed(Tick(), INTERVAL_NS + GIVE_UP_NS)
    assert proposed(driver) == [0]
    assert UnrecoverableLoss(0, 33) in driver.feed(LowChosen(0), INTERVAL_NS + GIVE_UP_NS)


def test_a_wait_for_votes_begins_once_enough_stores_granted() -> None:
    """Before that the receiver waits for grants. The first quorum without a vote does not decide at once."""
    driver = registering()
    driver.grant(1, **LACKS)
    late = INTERVAL_NS + GIVE_UP_NS
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(Tick(), late)
    driver.grant(2, now=late, **LACKS)
    assert proposed(driver) == []
    driver.grant(0, now=late, **KNOWS)
    assert proposed(driver) == [17]


def test_while_a_receiver_waits_for_votes_the_earliest_is_due() -> None:
    """The store without a grant is asked again before those without a vote are."""
    driver = registering()
    driver.grant(1, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    driver.grant(2, now=INTERVAL_NS + 3, **LACKS)
    assert driver.machine.enlistment.again_at == 2 * INTERVAL_NS + 3
    assert driver.machine.enlistment.next() == 2 * INTERVAL_NS


def test_the_source_used_the_highest_number_that_any_store_knows_of() -> None:
    driver = registering()
    driver.grant(0, **{**KNOWS, "known": 5})
    driver.grant(1, **{**KNOWS, "known": 9})
    assert driver.machine.enlistment.used(HIGH) == 9


def test_a_wait_that_ended_without_enough_stores_is_due_no_more() -> None:
    """Only the machine's other timers are: one in the past would wake the driver again and again."""
    driver = registering()
    driver.grant(1, 2, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    late = INTERVAL_NS + GIVE_UP_NS
    for index in (1, 2):
        driver.feed(Reset(f"store{index}:1"), late - 1)
        generation = driver.machine.enrollment.registrations[index].request.generation
        driver.hear(Refused(Role.RECEIVER, index, generation, 70 + index, LIFE, Refusal.UNKNOWN_SOURCE), late - 1)
    driver.feed(Tick(), late)
    assert proposed(driver) == []
    due = driver.machine.next_timeout()
    assert due is not None
    assert due > late


def test_stores_that_are_whole_again_end_the_wait() -> None:
    """They are asked at the interval. The third store is out of this receiver's reach, and refilled them."""
    driver = registering()
    driver.grant(1, 2, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(Tick(), 2 * INTERVAL_NS)
    assert [to for to, _ in driver.sent(Register)] == ["store0:1", "store1:1", "store2:1"]
    assert driver.grant(1, now=2 * INTERVAL_NS, **LACKS) == []
    driver.feed(Tick(), 2 * INTERVAL_NS)
    assert driver.sent(Register) == []
    driver.feed(Tick(), 3 * INTERVAL_NS)
    driver.grant(1, now=3 * INTERVAL_NS, low=0, high=HIGH)
    assert proposed(driver) == []
    driver.grant(2, now=3 * INTERVAL_NS, low=0, high=HIGH)
    assert proposed(driver) == [0]
    assert UnrecoverableLoss not in {type(event) for event in driver.feed(LowChosen(0), 3 * INTERVAL_NS)}


def test_no_store_is_asked_for_its_vote_once_the_wait_is_over() -> None:
    """A store that knows the receiver ended it. What the others register later is told as ever."""
    driver = registering()
    driver.grant(1, 2, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    driver.grant(0, now=INTERVAL_NS, **KNOWS)
    driver.feed(LowChosen(17), INTERVAL_NS)
    driver.feed(Tick(), 2 * INTERVAL_NS)
    assert driver.sent(Register) == []
    driver.feed(Reset("store1:1"), 2 * INTERVAL_NS)
    assert RegistrationSuccess in {type(event) for event in driver.grant(1, now=2 * INTERVAL_NS, **LACKS)}


def test_a_store_that_the_source_has_not_named_may_know_more() -> None:
    """The source names the stores that granted it. A third store may know the receiver."""
    driver = registering(versions=2)
    driver.grant(0, 1, **LACKS)
    told = driver.feed(Tick(), INTERVAL_NS)
    assert proposed(driver) == []
    assert errors(told) == [0, 1]
    assert driver.machine.next_timeout() == 2 * INTERVAL_NS  # No other store is due, and these may be whole by then.
    driver.inform(1, 1, 1, high=HIGH, group_sizes=(3,), version=2, now=INTERVAL_NS)
    driver.grant(2, now=INTERVAL_NS, **KNOWS)
    assert proposed(driver) == [17]


def test_a_store_of_another_group_may_know_more() -> None:
    driver = ReceiverDriver()
    stores = tuple(StoreEntry(index, index, f"store{index}:1", 50, 1) for index in range(2))
    driver.inform(stores=stores, high=HIGH, group_sizes=(1, 1))
    driver.grant(0, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    assert proposed(driver) == []


def test_a_store_that_registered_the_receiver_again_is_told() -> None:
    """With the same answer as before: only while votes are missing it says nothing new."""
    driver = begun()
    driver.feed(Reset("store1:1"), INTERVAL_NS)
    told = driver.grant(1, now=INTERVAL_NS, **UNMARKED)
    assert [event.store_index for event in told if isinstance(event, RegistrationSuccess)] == [1]


def test_documented_every_store_decides() -> None:
    driver = registering(repairs=Repair.ALL & ~Repair.VOTE)
    driver.grant(1, 2, **LACKS)
    driver.feed(Tick(), INTERVAL_NS)
    assert proposed(driver) == [34]


def begun(**changes: Any) -> ReceiverDriver:
    """Stores of an earlier release have no marks, and offer only what they hold."""
    driver = registering(**changes)
    driver.grant(1, 2, **UNMARKED)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(LowChosen(34), INTERVAL_NS)
    return driver


def test_a_late_grant_below_the_start_takes_the_session_back() -> None:
    driver = begun()
    told = driver.grant(0, now=INTERVAL_NS, low=driver.machine.start_number, high=HIGH, old=True)
    assert RegistrationComplete not in {type(event) for event in told}
    # It cannot tell whether that is of this session, so another store may still know less.
    driver.feed(Reset("store1:1"), INTERVAL_NS)
    told = driver.grant(1, now=INTERVAL_NS, **KNOWS)
    assert [event.number for event in told if isinstance(event, RegistrationComplete)] == [17]
    driver = begun()
    told = driver.grant(0, now=INTERVAL_NS, **KNOWS)
    assert [event.number for event in told if isinstance(event, RegistrationComplete)] == [17]
    assert driver.machine.start_number == 17
    assert driver.sent(ConsumptionAck) == []
    driver.data(17, 24, recovered=True, now=INTERVAL_NS)
    assert driver.delivered == [*range(17, HIGH + 1)]


def test_a_store_that_knows_more_than_the_session_acknowledged_ends_the_doubt() -> None:
    """It knows that of an earlier session, so a store that knows less was away then."""
    driver = begun()
    driver.grant(0, now=INTERVAL_NS, low=36, high=HIGH, old=True)
    driver.feed(Reset("store1:1"), INTERVAL_NS)
    told = driver.grant(1, now=INTERVAL_NS, **KNOWS)
    assert RegistrationComplete not in {type(event) for event in told}
    assert driver.machine.start_number == 34


def test_in_arrival_order_it_takes_back_a_session_that_delivered() -> None:
    driver = begun(ordering=Ordering.ARRIVAL)
    driver.data(36, 2, recovered=True, now=INTERVAL_NS)
    driver.grant(0, now=INTERVAL_NS, **KNOWS)
    driver.data(17, 24, recovered=True, now=INTERVAL_NS)
    assert sorted(driver.delivered) == [*range(17, HIGH + 1)]


def test_a_late_grant_below_what_was_delivered_is_a_loss_that_is_told() -> None:
    """Once, and no acknowledgement passes over it before."""
    driver = begun()
    driver.data(34, 1, recovered=True, now=INTERVAL_NS)
    driver.feed(Consumed(34, 34), INTERVAL_NS)
    driver.feed(Tick(), INTERVAL_NS + ACK_NS)
    # A store that this session acknowledged to knows nothing of an earlier one.
    driver.feed(Reset("store1:1"), INTERVAL_NS + ACK_NS)
    driver.grant(1, now=INTERVAL_NS + ACK_NS, low=35, high=HIGH, old=True)
    told = driver.grant(0, now=INTERVAL_NS + ACK_NS, **KNOWS)
    assert UnrecoverableLoss(17, 33) in told
    loss = driver.effects.index(fx.Notify(UnrecoverableLoss(17, 33)))
    assert [to for to, _ in sends(driver.effects[:loss])] == []
    assert [(to, ack.number) for to, ack in driver.sent(ConsumptionAck)] == [("store0:1", 34)]
    driver.feed(Reset("store0:1"), INTERVAL_NS + ACK_NS)
    assert UnrecoverableLoss(17, 33) not in driver.grant(0, now=INTERVAL_NS + ACK_NS, **KNOWS)


def test_where_the_application_wished_to_begin_no_later_grant_counts() -> None:
    driver = registering()
    driver.grant(1, 2, **UNMARKED)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(LowChosen(36), INTERVAL_NS)
    told = driver.grant(0, now=INTERVAL_NS, **KNOWS)
    assert {type(event) for event in told} & {RegistrationComplete, UnrecoverableLoss} == set()
    assert driver.machine.start_number == 36


def test_a_receiver_that_sets_the_pace_tells_stores_with_older_messages_where_it_begins() -> None:
    driver = registering(pace=Pace.RECEIVERS)
    driver.grant(0, low=20, high=HIGH, pace=Pace.RECEIVERS)
    driver.grant(1, 2, **UNMARKED, pace=Pace.RECEIVERS)
    driver.feed(LowChosen(34), INTERVAL_NS)
    assert [(to, ack.number) for to, ack in driver.sent(ConsumptionAck)] == [("store0:1", 33)]


def test_a_late_store_that_kept_messages_for_a_receiver_takes_it_back() -> None:
    """The receiver sets the pace, was registered there, and acknowledged nothing; others released what it had not."""
    driver = registering(pace=Pace.RECEIVERS)
    driver.grant(1, 2, **UNMARKED, pace=Pace.RECEIVERS)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(LowChosen(34), INTERVAL_NS)
    told = driver.grant(0, now=INTERVAL_NS, low=17, high=HIGH, known=20, pace=Pace.RECEIVERS)
    assert [event.number for event in told if isinstance(event, RegistrationComplete)] == [20]
    assert driver.machine.start_number == 20


def test_a_receiver_that_sets_the_pace_hears_of_a_late_grant_too() -> None:
    driver = registering(pace=Pace.RECEIVERS)
    driver.grant(1, 2, **UNMARKED, pace=Pace.RECEIVERS)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(LowChosen(34), INTERVAL_NS)
    driver.grant(0, now=INTERVAL_NS, **KNOWS, pace=Pace.RECEIVERS)
    assert driver.machine.start_number == 17
    assert driver.sent(ConsumptionAck) == []
