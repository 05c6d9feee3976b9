"""What the session with a life inherits from the sessions before: what it withholds, acknowledges, and begins with."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Event, RegistrationComplete
from stablecast.core.protocol.inputs import History, LowChosen, Tick
from stablecast.core.protocol.messages import ConsumptionAck
from stablecast.core.protocol.settings import AckMode, Ordering
from stablecast.core.subscription.succession import Inheritance, Succession
from tests.core.drivers import INTERVAL_NS, ReceiverDriver
from tests.core.samples import LIFE as THIRD


class Nothing:
    """A queue in which no message waits."""

    def unconsumed(self) -> list[tuple[Any, int, int]]:
        return []

    def drop(self, _: Callable[[Any], tuple[int, int] | None]) -> list[tuple[Any, int, int]]:
        return []


NOTHING = Nothing()


@pytest.mark.rows("P-349")
def test_messages_that_an_earlier_session_lost_are_withheld_and_not_consumed() -> None:
    """Consumed would be confirmed to the source."""
    inherited = Inheritance(lost=RangeSet([(3, 5)]), lives={1})
    assert inherited.deliver(1, 2, 6) == ([(2, 3), (5, 6)], [], [(3, 5)])
    assert inherited.deliver(1, 3, 5) == ([(3, 5)], [], [])


def test_messages_of_two_lives_are_withheld_until_all_of_them_came_again_or_never_will() -> None:
    inherited = Inheritance(lives={1, 2}, lost=RangeSet([(3, 5)]))
    inherited.add(1, 0, 3)
    inherited.add(2, 5, 10)
    assert [inherited.ahead(low, 12) for low in (0, 4, 10)] == [True, True, False]
    assert inherited.unconsumed
    assert inherited.consume(0, 3) == []
    inherited.begin(1)
    assert inherited.deliver(2, 5, 6) == ([], [], [])
    assert inherited.consume(4, 7) == [(5, 6)]
    inherited.drop(2, 9, 10)
    assert inherited.deliver(2, 9, 10) == ([(9, 10)], [], [])
    assert inherited.deliver(9, 3, 5) == ([(3, 5)], [], [])
    assert inherited.skip(1, 5) == [(3, 5)]
    assert inherited.deliver(1, 3, 5) == ([(3, 5)], [], [])
    assert inherited.deliver(2, 6, 8) == ([], [(6, 7)], [])
    assert (inherited.open, inherited.unconsumed) == (True, True)
    assert inherited.consume(7, 10) == [(7, 8)]
    assert (inherited.open, inherited.unconsumed) == (True, False)
    assert inherited.skip(8, 11) == [(9, 11)]
    assert not inherited.open


def test_a_lost_message_keeps_the_machine_watched() -> None:
    inherited = Inheritance(lost=RangeSet([(0, 5)]), lives={1})
    inherited.begin(5)
    opened = [inherited.open]
    inherited.begin(0)
    assert [*opened, inherited.open] == [False, True]
    assert inherited.deliver(1, 0, 5) == ([], [], [(0, 5)])


LIVES = ((1, 0), (2, 5), (THIRD, 20))


def place(**changes: Any) -> tuple[ReceiverDriver, Succession]:
    """Return a session with the third life of a source, which goes on at 20."""
    driver = ReceiverDriver(**changes)
    driver.inform(1, low=20, high=29, lives=LIVES)
    return driver, Succession(driver.machine, lambda _: None, NOTHING)


def test_a_session_that_a_late_store_takes_back_reports_what_was_consumed_when_it_has_delivered_it() -> None:
    """Before, the machine had said that it begins above all of it (seed 406638: the machine refused the report)."""
    inherited = Inheritance(lives={1}, lost=RangeSet([(20, 22)]))
    inherited.add(1, 0, 20)
    inherited.add(1, 22, 57)
    inherited.begin(57)
    opened = [inherited.open]
    assert inherited.consume(50, 51) == [(50, 51)]
    inherited.begin(10)
    opened.append(inherited.open)
    assert inherited.consume(51, 52) == []
    assert inherited.deliver(1, 10, 57) == ([], [(50, 52)], [(20, 22)])
    assert [*opened, inherited.open] == [False, True, False]


def test_an_acknowledgement_is_told_again_to_a_session_that_a_late_store_takes_back() -> None:
    """It was told to a machine that had begun above the message, and forgotten there (P-346)."""
    driver = ReceiverDriver(ack_mode=AckMode.EXPLICIT)
    driver.inform(1, 1, 1, low=20, high=29, lives=LIVES)
    succession = Succession(driver.machine, lambda event: list.clear(driver.feed(event)), NOTHING)
    inherited = succession.inherited = Inheritance(lives={2})
    inherited.add(2, 10, 20)
    before = Succession(ReceiverDriver.active(high=29).machine, lambda _: None, NOTHING, heir=succession)

    def begin(told: list[Event]) -> None:
        [number] = [one.number for one in told if isinstance(one, RegistrationComplete)]
        succession.begin(number)

    driver.grant(0, 1, low=20, high=29)
    driver.feed(Tick(), INTERVAL_NS)
    begin(driver.feed(LowChosen(20), INTERVAL_NS))
    assert driver.machine.window.next == 20
    before.on_acknowledged(10, 14)
    assert driver.sent(ConsumptionAck) == []
    begin(driver.grant(2, now=INTERVAL_NS, low=10, high=29, old=True))
    assert driver.machine.window.next == 10
    driver.data(10, 10, life=2, recovered=True)
    succession.claim()
    assert {ack.number for _, ack in driver.sent(ConsumptionAck)} == {14}


def test_an_acknowledgement_covers_no_number_that_the_next_life_used_again() -> None:
    """The application has not read the message that has the number now (P-346)."""
    _, succession = place(ack_mode=AckMode.EXPLICIT)
    inherited = succession.inherited = Inheritance(lives={2})
    before = ReceiverDriver.active(high=29)
    before.machine.config = attrs.evolve(before.machine.config, incarnation=2)
    Succession(before.machine, lambda _: None, NOTHING, heir=succession).on_acknowledged(10, 25)
    assert inherited.claims == RangeSet([(10, 20)])


def test_a_session_begins_no_lower_than_this_run_did() -> None:
    """D1: what is below is of an earlier run, and would come out of order. Wishes and the request maximum go first."""
    driver, succession = place()
    question = AskLow(29, 0, 0)
    assert succession.low(question, 0) == 0
    driver.feed(History(2, 7, 9))
    driver.feed(History(THIRD, 20, 25))
    assert succession.low(question, 0) == 7
    assert succession.low(question, 3) == 3
    assert succession.low(AskLow(29, 10, 0), 0) == 0
    assert succession.low(AskLow(3, 0, 0), 0) == 4
    inherited = succession.inherited = Inheritance()
    inherited.add(2, 6, 7)
    assert succession.low(question, 0) == 6


def test_dead_or_unordered_messages_do_not_tell_where_a_run_began() -> None:
    """Number 6 is the second life's; in arrival order what is below may still be missing."""
    driver, succession = place()
    driver.feed(History(1, 6, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 0
    driver, succession = place(ordering=Ordering.ARRIVAL)
    driver.feed(History(2, 7, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 0
    unheard = ReceiverDriver()
    assert Succession(unheard.machine, lambda _: None, NOTHING).low(AskLow(29, 0, 0), 0) == 0
