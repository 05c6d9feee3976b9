"""The repairs of receivers, which replace documented rules that lose messages: each run with and without the repair.

Formal design, section 7; `stablecast.core.protocol.repairs`. The profile `safe` has all repairs, `5.3` has none.
"""

import pytest

from stablecast.core.protocol.events import Event, UnrecoverableLoss
from stablecast.core.protocol.inputs import Consumed, Gone, History, LowChosen, Tick
from stablecast.core.protocol.messages import ConsumptionAck, Registered, StoreEntry
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, Ordering
from tests.core.drivers import INTERVAL_NS, RECEIVER, ReceiverDriver, StoreDriver
from tests.core.samples import LIFE, OLDER_LIFE, register

SAFE, DOCUMENTED = Repair.ALL, Repair.NONE


def reused(repairs: Repair) -> ReceiverDriver:
    """An earlier session consumed 5 of a life that died before 5 was stable; the next life sends its own 5 and 6."""
    driver = ReceiverDriver(repairs=repairs)
    driver.feed(History(OLDER_LIFE, 0, 5))
    driver.inform(1, low=5, high=4)
    driver.grant(0, low=5, high=4, old=True)
    driver.feed(LowChosen(5))
    driver.data(5, 2)
    return driver


@pytest.mark.rows("P-427")
def test_a_number_that_is_used_again_is_delivered() -> None:
    """7.4 TELL_LIVES."""
    assert reused(SAFE).delivered == [5, 6]


def test_documented_a_number_that_is_used_again_is_taken_for_a_duplicate() -> None:
    """7.4: 5 of the new life was never seen, and never will be."""
    assert reused(DOCUMENTED).delivered == [6]


def crashed(repairs: Repair, ordering: Ordering) -> int:
    """3 to 9 of ten reach the receiver and are consumed, then it crashes; where the store lets it go on."""
    driver = ReceiverDriver.active(high=9, repairs=repairs, ordering=ordering, ack_mode=AckMode.IMMEDIATE)
    driver.data(3, 7, recovered=True)
    if ordering is Ordering.ARRIVAL:
        driver.feed(Consumed(3, 9))
    else:
        driver.data(0, 3, recovered=True)
        driver.feed(Consumed(7, 9))
    numbers = {ack.number for _, ack in driver.sent(ConsumptionAck)}
    store = StoreDriver.with_receiver()
    for number in numbers:
        store.hear(ConsumptionAck(LIFE, 50, 70, number))
        store.sync()
    store.hear(register(**RECEIVER, generation=2))
    store.sync()
    [(_, answer)] = store.sent(Registered)
    return int(answer.low)


@pytest.mark.rows("P-431")
def test_a_receiver_returns_to_what_it_never_consumed() -> None:
    """7.7 PREFIX."""
    assert [crashed(SAFE, ordering) for ordering in Ordering] == [0, 0]


@pytest.mark.rows("P-431")
def test_documented_a_receiver_acknowledges_past_what_it_never_consumed() -> None:
    """7.7: 0 to 2 were never delivered, or never consumed, and it returns at 10."""
    assert [crashed(DOCUMENTED, ordering) for ordering in Ordering] == [10, 10]


def given_up(repairs: Repair) -> list[Event]:
    """Two groups of one store; what was stable in the first alone is asked for while that store is away."""
    driver = ReceiverDriver(repairs=repairs)
    stores = tuple(StoreEntry(index, index, f"store{index}:1", 50, 1) for index in range(2))
    driver.inform(high=2, stores=stores, group_sizes=(1, 1))
    driver.grant(0, 1, low=0, high=2)
    driver.feed(LowChosen(0))
    driver.feed(Gone("store0:1"), 1)
    told = [event for now in range(INTERVAL_NS, 1000, INTERVAL_NS) for event in driver.feed(Tick(), now)]
    driver.grant(0, now=1000, low=0, high=2)
    driver.data(0, 3, recovered=True, now=1001)
    lost = [event for event in told if isinstance(event, UnrecoverableLoss)]
    assert driver.delivered == ([] if lost else [0, 1, 2])
    return list(lost)


def test_a_message_is_given_up_only_while_every_group_can_be_asked() -> None:
    """7.2 EVERY_GROUP: the store that has it comes back."""
    assert given_up(SAFE) == []


def test_documented_a_message_that_one_group_holds_is_given_up_without_it() -> None:
    """7.2: the group that is there completed the registration, so it is all that is waited for."""
    assert given_up(DOCUMENTED) == [UnrecoverableLoss(0, 2)]
