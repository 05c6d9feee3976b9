"""The boundaries of a receiver: exactly one message, the first and the last of a range, and the wrap."""

import pytest

from stablecast.core.machine import serial
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import SteppedBack, UnrecoverableLoss
from stablecast.core.protocol.inputs import Consumed, Finish, Reset, Tick, Withdraw
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregister,
    Pace,
    Refusal,
    Refused,
    Register,
    Role,
    StoreEntry,
)
from stablecast.core.protocol.settings import Ordering, ReceiverConfig
from stablecast.core.receiver.arrival import Arrivals
from stablecast.core.receiver.delivery_window import DeliveryWindow
from tests.core.drivers import ACK_NS, INTERVAL_NS, ReceiverDriver
from tests.core.receiver.test_arrival import Shop
from tests.core.receiver.test_consumption_acks import ASKING, acknowledger, registration
from tests.core.receiver.test_endpoint import confirming, told
from tests.core.samples import LIFE, events, info, sends

BEGINNINGS = (0, serial.HALF - 1, serial.MODULUS - 1, serial.MODULUS)
"""Numbers before a wrap, or before the middle of all numbers, and the beginnings after them."""


def consumed(low: int, count: int, *, in_order: bool = True) -> DeliveryWindow:
    """Return a window that begins at `low`, of which this many of ten messages are consumed and acknowledged."""
    window = DeliveryWindow(100, in_order=in_order)
    window.begin(low, [])
    window.on_run(low, low + 10, 1, False, [])
    if count:
        window.on_consumed(low, low + count)
        assert window.acknowledge() == low + count - 1
    return window


@pytest.mark.parametrize("low", BEGINNINGS)
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("pace", [Pace.SOURCE, Pace.RECEIVERS])
def test_a_store_that_grants_late_hears_of_the_first_message_that_was_acknowledged(
    low: int, count: int, pace: Pace
) -> None:
    """Else it would offer it again, or hold it for a receiver that has it, until the second one is acknowledged."""
    window, out = consumed(low, count), list[fx.Effect]()
    acknowledger(pace=pace).catch_up(registration(1), window, out)
    told = [("store1:1", ConsumptionAck(LIFE, 51, 71, serial.wire(low + count - 1)))]
    assert sends(out) == (told if count else [])


@pytest.mark.parametrize("low", BEGINNINGS)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_confirmation_of_one_message_is_repeated(low: int, count: int) -> None:
    """The connection broke, and may have swallowed it."""
    window, out = consumed(low, count), list[fx.Effect]()
    acknowledger().on_broken(Reset("source:1"), [registration(0)], ASKING, window, 0, out)
    last = serial.wire(low + count - 1)
    told = [("source:1", ConsumptionAck(LIFE, 0, 70, last, first=serial.wire(low)))]
    assert sends(out) == (told if count else [])


@pytest.mark.parametrize("low", BEGINNINGS)
@pytest.mark.parametrize(("known", "told"), [(-1, False), (0, True), (1, True)])
def test_a_life_that_uses_one_number_again_steps_back(low: int, known: int, told: bool) -> None:
    """T20: the life before reached the number directly below the resume point, that number, or one more."""
    machine, out = Arrivals.of(ReceiverConfig("topic", LIFE, "me:1")), list[fx.Effect]()
    machine.lives.remember(LIFE - 1, low, low + 5 + known + 1)
    machine.inform(info(low=serial.wire(low + 5), high=serial.wire(low + 4)), out)
    assert events(out) == [SteppedBack(low + 5, low + 5 + known)] * told


@pytest.mark.parametrize(("gap", "lost"), [(9, None), (10, (1, 10))])
@pytest.mark.parametrize("ordering", Ordering)
def test_a_burst_begins_above_the_newest_number_that_was_announced(
    gap: int, lost: tuple[int, int] | None, ordering: Ordering
) -> None:
    """Number 0 is announced and has not come: it is recovered in arrival order, whatever is lost above it."""
    shop = Shop(high=0, burst=10, ordering=ordering)
    shop.data(gap + 1, 1)
    told = [event for event in events(shop.out) if isinstance(event, UnrecoverableLoss)]
    first = 0 if ordering is Ordering.ORDERED else 1
    assert [(one.first, one.last) for one in told] == ([] if lost is None else [(first, lost[1])])
    left = [(0, 0)] if ordering is Ordering.ARRIVAL else []
    assert shop.asked() == (left if lost is not None else [(0, 0), (1, 9)])


@pytest.mark.parametrize(("stop", "delivered"), [(9, True), (10, True), (11, False)])
@pytest.mark.parametrize("in_order", [True, False])
def test_delivered_is_exactly_what_was_handed_over(stop: int, delivered: bool, in_order: bool) -> None:
    window = consumed(0, 0, in_order=in_order)
    assert window.delivered(9, stop) is delivered
    assert window.unconsumed == 10


@pytest.mark.parametrize("in_order", [True, False])
def test_a_message_that_is_consumed_twice_or_passed_over_below_an_acknowledgement_counts_nothing(
    in_order: bool,
) -> None:
    """Five are acknowledged; what is done again below them, and up to exactly there, is old."""
    for low, high in (3, 5), (4, 5), (0, 4), (4, 6):
        window = consumed(0, 5, in_order=in_order)
        window.on_consumed(low, high)
        window.pass_over(low, high)
        assert window.grown() == (5 if high == 6 else None)
        assert (window.consumed.first or 5) >= 5
        assert (window.skipped.first or 5) >= 5


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("number", [4, 5, 6, 9])
def test_an_own_acknowledgement_covers_exactly_up_to_its_number(number: int, in_order: bool) -> None:
    window = consumed(0, 5, in_order=in_order)
    window.on_consumed(5, number + 1)
    window.claim(number, number)
    assert window.grown(explicit=True) == (number if number > 4 else None)
    assert (window.claimed.first or 5) >= 5


@pytest.mark.parametrize(("high", "origin"), [(None, 5), (3, 5), (4, 5), (5, 6), (9, 10)])
def test_history_ends_with_the_newest_number_that_was_sent_before_the_start(high: int | None, origin: int) -> None:
    """P-427: what comes above it is the stream, whose gaps wait for the transport."""
    window = DeliveryWindow(100)
    if high is not None:
        window.learn(high)
    window.begin(5, [])
    assert window.origin == origin


@pytest.mark.parametrize(("stop", "kept"), [(10, True), (11, False)])
@pytest.mark.parametrize("begun", [False, True])
def test_runs_are_held_as_far_as_the_proximity_reaches(stop: int, kept: bool, begun: bool) -> None:
    """Before the start it counts from the oldest run that is held, then from the next number."""
    window, out = DeliveryWindow(10), list[fx.Effect]()
    if begun:
        window.begin(0, out)
    else:
        window.on_run(0, 1, 1, False, out)
    window.on_run(stop - 1, stop, 2, False, out)
    assert (fx.Discard(2) in out) is (not kept)
    if begun:
        window.on_run(0, 1, 1, False, out)
    else:
        window.begin(0, out)
    assert [one.token for one in out if isinstance(one, fx.Deliver)] == [1]
    window.on_run(1, stop - 1, 3, False, out)
    assert [one.token for one in out if isinstance(one, fx.Deliver)] == [1, 3, 2][: 3 if kept else 2]


@pytest.mark.rows("P-304")
def test_what_was_consumed_while_no_store_counted_is_confirmed_when_the_first_one_grants_again() -> None:
    """Without a store there is no RegID to confirm under."""
    driver = confirming()
    for index in range(3):
        driver.feed(Reset(f"store{index}:1"))
        generation = driver.machine.enrollment.registrations[index].request.generation
        driver.hear(Refused(Role.RECEIVER, index, generation, 70 + index, LIFE, Refusal.UNKNOWN_SOURCE))
    driver.data(0, 2)
    driver.feed(Consumed(0, 1))
    driver.feed(Finish())
    assert told(driver) == (set(), [])
    driver.grant(1, low=0, high=1)
    assert told(driver)[1] == [(0, 1)]
    driver.grant(2, low=0, high=1)
    assert told(driver)[1] == []


def test_a_store_that_holds_one_message_tells_of_it() -> None:
    driver = ReceiverDriver.active()
    driver.feed(Reset("store0:1"))
    driver.grant(0, low=0, high=0)
    assert driver.asked() == [(0, 0)]


def test_an_answer_to_what_was_answered_before_tells_of_nothing() -> None:
    driver = ReceiverDriver.active()
    driver.grant(0, low=0, high=9)
    assert driver.asked() == []


def test_a_store_is_asked_with_the_generation_that_its_source_knows() -> None:
    """So one that runs on an older copy learns of it by the first request."""
    driver = ReceiverDriver()
    driver.hear(info(stores=(StoreEntry(0, 0, "store0:1", 50, 1, generation=5 << 32),), group_sizes=(1,)))
    assert [message.known_generation for _, message in driver.sent(Register)] == [5 << 32]


def test_the_next_thing_that_is_due_is_the_earliest() -> None:
    driver = ReceiverDriver.active()
    later = driver.machine.next_timeout()
    driver.data(0, 1)
    driver.feed(Consumed(0, 0), 1)
    assert later is not None
    assert driver.machine.next_timeout() == 1 + ACK_NS < later


def test_a_receiver_that_leaves_asks_every_store_that_moved_where_it_is_now() -> None:
    """It registers with no store that is new."""
    driver = ReceiverDriver.active()
    driver.feed(Withdraw())
    addresses = ("new0:1", "store1:1", "new2:1", "store3:1")
    entries = tuple(StoreEntry(index, 0, address, 50, 1) for index, address in enumerate(addresses))
    driver.hear(info(stores=entries, group_sizes=(4,), version=2))
    assert driver.sent(Register) == []
    driver.feed(Tick(), INTERVAL_NS)
    assert [to for to, _ in driver.sent(Deregister)] == ["new0:1", "store1:1", "new2:1"]
