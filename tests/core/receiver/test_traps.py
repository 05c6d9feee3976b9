"""The traps of the field, receivers: what goes wrong in nearly every first implementation. One sentence for each."""

from typing import Any

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Confirmed, RegistrationComplete, RegistrationFlag, UnrecoverableLoss
from stablecast.core.protocol.inputs import Consumed, LowChosen, Sent, Tick
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, Register, Registered
from stablecast.core.receiver.delivery_window import DeliveryWindow
from tests.core.drivers import ACK_NS, RECEIVER, ReceiverDriver, SourceDriver, StoreDriver, code
from tests.core.samples import LIFE, register


@pytest.mark.rows("P-349")
def test_t3_cumulative_ack() -> None:
    """T3: a receiver that lost 4 for good and acknowledges 8 returns at 9, and never confirms 4 to the source.

    The store counts 3 to 8 acknowledged: it only needs to know where the receiver resumes. The source hears of 3, and
    of 5 to 8; the gap tells it of the loss.
    """
    receiver = ReceiverDriver()
    receiver.inform(1, high=8, confirmations=True)
    receiver.grant(0, low=3, high=8, old=True)
    receiver.feed(LowChosen(3))
    receiver.machine.window.lose(4, 5, [])
    receiver.data(3, 1)
    receiver.data(5, 4)
    receiver.feed(Consumed(3, 3), 1)
    receiver.feed(Consumed(5, 8), 1)
    receiver.feed(Tick(), 1 + ACK_NS)
    acks = receiver.sent(ConsumptionAck)
    assert [(ack.first, ack.number) for to, ack in acks if to == "store0:1"] == [(FROM_THE_START, 8)]
    confirmations = [ack for to, ack in acks if to == "source:1"]
    assert [(ack.first, ack.number) for ack in confirmations] == [(3, 3), (5, 8)]
    store = StoreDriver.with_receiver()
    store.hear(ConsumptionAck(LIFE, 50, 70, 8))
    store.hear(register(**RECEIVER, generation=2))
    store.sync()
    assert [(answer.old, answer.low) for _, answer in store.sent(Registered)] == [(True, 9)]
    source = SourceDriver.active(stores=1, confirmations=True)
    source.feed(Sent(0, 9, 90))
    told = [event for ack in confirmations for event in source.hear(ack)]
    assert [(event.first, event.last) for event in told if isinstance(event, Confirmed)] == [(3, 3), (5, 8)]


@pytest.mark.rows("P-344")
def test_t4_contiguous_batching() -> None:
    """T4: after 2, consumption in the order 4, 5, 7, 8, 6, 10, 3 gives one acknowledgement, for 8."""
    driver = ReceiverDriver.active(high=10, low=3)
    driver.data(3, 8)
    for number in (4, 5, 7, 8, 6, 10, 3):
        driver.feed(Consumed(number, number), 1)
        assert driver.sent(ConsumptionAck) == []
    driver.feed(Tick(), 1 + ACK_NS)
    assert [(to, ack.number) for to, ack in driver.sent(ConsumptionAck)] == [(f"store{n}:1", 8) for n in range(3)]


@pytest.mark.parametrize(("wish", "start"), [(1, 4), (2, 2), (0, 0)])
def test_t9_low_number_by_callback(wish: int, start: int) -> None:
    """T9: high 6, low 1, maximum 2: leaving 1 starts at 4, and says why; any other choice is taken as it is."""
    driver = ReceiverDriver(request_maximum=2, session_id=0)
    driver.inform(1, high=6)
    driver.machine.enlistment.on_reg_id(0, 70, 0, [])
    driver.grant(0, low=1, high=6, old=True)
    assert fx.AskLow(6, 4, 1) in driver.effects
    flags = RegistrationFlag.REQUEST_MAXIMUM if wish == 1 else RegistrationFlag.NONE
    assert driver.feed(LowChosen(wish)) == [RegistrationComplete(start, flags)]
    assert driver.asked() == [(start, 6)]


@pytest.mark.rows("P-426")
def test_t10_low_beyond_high() -> None:
    """T10: a low number beyond the end is cut to the end, said so, and nothing is recovered."""
    driver = ReceiverDriver()
    driver.inform(1, high=6)
    driver.grant(0, low=1, high=6)
    told = driver.feed(LowChosen(11))
    assert code(told) == ["low-beyond-high"]
    assert RegistrationComplete(7, RegistrationFlag.SESSION) in told
    assert driver.asked() == []


@pytest.mark.rows("P-224")
def test_t21_sri_version() -> None:
    """T21: when one store's own version rose, the receiver registers again with that store only."""
    driver = ReceiverDriver.active()
    driver.inform(1, 2, 1, version=2)
    assert [to for to, _ in driver.sent(Register)] == ["store1:1"]


def test_t30_burst() -> None:
    """T30: 9 delivered, 10 missing, 11 to 30 held. When 1055 comes, which leaves out 1024 numbers more, the application
    sees one burst for 10 to 1054 and then 1055; what was held goes, and late repairs find their place taken.
    """
    driver = ReceiverDriver.active(burst=1024)
    driver.data(0, 10)
    driver.data(11, 20)
    held = driver.tokens
    assert driver.asked() == [(10, 10)]
    assert driver.data(1055, 1) == [UnrecoverableLoss(10, 1054, burst=True)]
    assert driver.delivered == [*range(10), 1055]
    assert fx.Discard(held) in driver.effects
    driver.data(10, 1, recovered=True)
    driver.data(31, 5)
    assert driver.delivered == [*range(10), 1055]
    assert driver.asked() == []


def test_t30_one_number_less_is_recovered() -> None:
    """T30: and so is every gap with the limit that is advised, which is the default."""
    driver = ReceiverDriver.active(burst=1024)
    driver.data(0, 31)
    assert driver.data(1054, 1) == []
    assert driver.asked()
    driver = ReceiverDriver.active()
    assert driver.data(1_000_000, 1) == []
    assert driver.asked()


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


def test_a_receiver_is_not_pushed_ahead_by_a_store_that_began_late() -> None:
    """A store that was empty when the receiver registered let it begin at 50; elsewhere it acknowledged 20 only."""
    driver = ReceiverDriver()
    driver.inform(1, 1, 1, high=60)
    driver.grant(0, low=50, high=60)
    driver.grant(1, 2, low=21, high=60, old=True)
    assert fx.AskLow(60, 21, 21) in driver.effects
