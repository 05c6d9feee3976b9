"""What a session tells its driver about its stores and messages."""

from stablecast.core.protocol.inputs import Acknowledge, Consumed, Moved, Reset, Tick
from stablecast.core.protocol.messages import ConsumptionAck, ReceiverAlive, Register, RetransmitRequest
from stablecast.core.protocol.settings import AckMode
from tests.core.drivers import ACK_NS, RETRY_NS, ReceiverDriver
from tests.core.samples import LIFE


def test_an_application_that_acknowledges_owes_what_it_was_handed() -> None:
    driver = ReceiverDriver(ack_mode=AckMode.EXPLICIT)
    assert not driver.machine.status.owes
    driver = ReceiverDriver.active(ack_mode=AckMode.EXPLICIT)
    owed = [driver.machine.status.owes]
    driver.data(0, 2)
    owed.append(driver.machine.status.owes)
    driver.feed(Acknowledge(1, 0))
    assert [*owed, driver.machine.status.owes] == [False, True, False]


def test_an_acknowledgement_is_recorded_when_enough_stores_show_it() -> None:
    driver = ReceiverDriver.active()
    driver.data(0, 3)
    assert driver.machine.delivered(0, 3)
    assert not driver.machine.delivered(2, 4)
    assert not driver.machine.status.owes, "it acknowledges by itself"
    assert (driver.machine.status.unrecorded, driver.machine.status.confirmable) == ((), ())
    driver.feed(Consumed(0, 1))
    driver.feed(Tick(), ACK_NS)
    assert driver.machine.status.unrecorded == ("store0:1", "store1:1", "store2:1")
    assert driver.machine.status.confirmable == ((0, 2),)
    shown = []
    for store, low, old in ((0, 2, True), (1, 2, False), (2, 1, True), (1, 2, True)):
        driver.feed(Reset(f"store{store}:1"))
        driver.grant(store, low=low, high=2, old=old)
        shown.append(driver.machine.status.unrecorded)
    assert shown == [("store1:1", "store2:1")] * 3 + [()]


def test_a_session_knows_its_stores_and_whether_it_began_where_they_proposed() -> None:
    driver = ReceiverDriver.active(high=9, low=3)
    assert driver.machine.status.stores() == ["store0:1", "store1:1", "store2:1"]
    assert driver.machine.status.stores(1) == ["store1:1"]
    assert driver.machine.status.turn is not None
    assert driver.machine.begins_at_proposal
    driver.data(3, 7, recovered=True)
    assert driver.machine.status.turn is None
    assert not ReceiverDriver.active(high=9, low=3, wish=5).machine.begins_at_proposal


def test_a_receiver_that_moved_registers_with_later_stores_from_its_new_address() -> None:
    driver = ReceiverDriver.active()
    driver.feed(Moved("me:2"))
    driver.inform(1, 1, 1, 1, version=2)
    assert {request.reply_to for _, request in driver.sent(Register)} == {"me:2"}


def test_a_receiver_that_moved_has_answers_sent_to_its_new_address() -> None:
    driver = ReceiverDriver.active(high=9)
    driver.feed(Moved("me:2"))
    driver.grant(0, 1, 2, low=0, high=9)
    driver.feed(Tick(), RETRY_NS)
    assert {request.reply_to for _, request in driver.sent(RetransmitRequest)} == {"me:2"}


def test_each_store_hears_of_an_acknowledgement_a_sign_of_life_and_a_new_address() -> None:
    """All of them at one time."""
    driver = ReceiverDriver.active(liveness_ns=ACK_NS)
    driver.data(0, 1)
    driver.feed(Consumed(0, 0))
    driver.feed(Tick(), ACK_NS)
    stores = [f"store{index}:1" for index in range(3)]
    assert driver.sent(ConsumptionAck) == [
        (store, ConsumptionAck(LIFE, 50, 70 + at, 0)) for at, store in enumerate(stores)
    ]
    assert [to for to, _ in driver.sent(ReceiverAlive)] == ["source:1"]
    assert driver.machine.status.unrecorded == tuple(stores)
    driver.feed(Moved("me:2"), ACK_NS)
    assert [(to, request.reply_to) for to, request in driver.sent(Register)] == [(store, "me:2") for store in stores]
