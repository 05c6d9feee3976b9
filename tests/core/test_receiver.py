"""The receiver's session: from the first SRI to the last acknowledgement."""

import pytest

from stablecast.core import effects as fx
from stablecast.core.errors import MisuseError
from stablecast.core.events import (
    Event,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
    RegistrationSuccess,
    UnrecoverableLoss,
)
from stablecast.core.inputs import (
    Consumed,
    Data,
    Finish,
    Gone,
    History,
    LowChosen,
    RegIdChosen,
    Reset,
    Start,
    Tick,
)
from stablecast.core.messages import (
    ConsumptionAck,
    Keepalive,
    Refusal,
    Refused,
    Register,
    Role,
    SourceInfo,
    SourceInfoRequest,
    StableAck,
    StoreEntry,
)
from stablecast.core.receiver import MAX_STORES
from stablecast.core.serial import HALF, MODULUS
from stablecast.core.settings import AckMode
from tests.core.drivers import ACK_NS, INTERVAL_NS, ReceiverDriver, code
from tests.core.samples import LIFE, OLDER_LIFE, info


def test_the_sri_is_asked_for_while_none_comes() -> None:
    """P-227: by unicast, at an interval, so many times."""
    driver = ReceiverDriver()
    driver.feed(Start())
    asked, told = [], list[Event]()
    for now in (99, 100, 200, 300, 400):
        told += driver.feed(Tick(), now)
        asked += [(now, to) for to, _ in driver.sent(SourceInfoRequest)]
    assert asked == [(100, "source:1"), (200, "source:1")]
    assert told == [RegistrationError(0, "source:1", "no SRI after 2 requests to source:1")]


def test_nobody_is_asked_once_there_is_one_or_without_an_address() -> None:
    driver = ReceiverDriver(source_request="")
    driver.feed(Start())
    assert driver.machine.next_timeout() is None
    driver = ReceiverDriver()
    driver.inform(1)
    driver.feed(Start())
    driver.feed(Tick(), 100)
    assert driver.sent(SourceInfoRequest) == []


def test_a_source_without_stores_is_followed_from_now_on() -> None:
    driver = ReceiverDriver()
    driver.inform(high=4, low=2)
    driver.data(5, 3)
    driver.data(9, 1)
    assert driver.delivered == [5, 6, 7]
    assert driver.asked() == []
    driver.inform(version=2, high=20)
    assert driver.machine.window.high == 9


def test_registration_goes_from_the_sri_to_the_choice_of_a_low_number() -> None:
    driver = ReceiverDriver()
    driver.inform(1, 1, 1, high=6)
    assert [(to, m.role, m.source_reg_id) for to, m in driver.sent(Register)] == [
        (f"store{index}:1", Role.RECEIVER, 50) for index in range(3)
    ]
    assert driver.grant(0, low=1, high=6, old=True) == [
        RegistrationSuccess(0, "store0:1", 70, 50, 1, RegistrationFlag.OLD)
    ]
    driver.grant(1, 2, low=1, high=6, old=True)
    assert fx.AskLow(6, 1, 1) in driver.effects
    driver.data(7, 1)
    assert driver.delivered == []
    assert driver.feed(LowChosen(1)) == [RegistrationComplete(1, RegistrationFlag.NONE)]
    assert driver.asked() == [(1, 6)]
    driver.feed(LowChosen(3))
    assert driver.effects == []


def test_a_quorum_is_enough_after_the_first_interval() -> None:
    driver = ReceiverDriver()
    driver.inform(1, 1, 1)
    driver.grant(0, 1)
    driver.feed(Tick(), INTERVAL_NS)
    assert fx.AskLow(-1, 0, 0) in driver.effects
    assert driver.feed(LowChosen(0), INTERVAL_NS) == [RegistrationComplete(0, RegistrationFlag.QUORUM)]


def test_the_application_may_choose_its_reg_ids() -> None:
    driver = ReceiverDriver(session_id=0)
    driver.inform(1)
    assert driver.effects == [fx.AskRegId(0, "store0:1", 50)]
    driver.feed(RegIdChosen(0, 33))
    assert [message.reg_id for _, message in driver.sent(Register)] == [33]


def test_a_refusal_is_told() -> None:
    driver = ReceiverDriver()
    driver.inform(1)
    told = driver.hear(Refused(Role.RECEIVER, 0, 1, 70, LIFE, Refusal.UNKNOWN_SOURCE))
    assert [type(event) for event in told] == [RegistrationError]


def test_older_and_wild_sris_are_dropped() -> None:
    driver = ReceiverDriver()
    driver.inform(1, version=5)
    assert driver.inform(1, 1, version=4) == []
    assert len(driver.machine.enrollment.registrations) == 1
    stores = tuple(StoreEntry(0, 0, "x:1", 50, 1) for _ in range(MAX_STORES + 1))
    assert code(driver.hear(info(version=6, stores=stores))) == ["wild-info"]


def test_messages_of_other_lives_and_of_other_kinds_are_oddities() -> None:
    driver = ReceiverDriver.active()
    assert code(driver.hear(StableAck(0, LIFE, 0, 0))) == ["unexpected-message"]
    assert code(driver.hear(info(incarnation=OLDER_LIFE))) == ["late-message"]
    assert code(driver.feed(Data(OLDER_LIFE, OLDER_LIFE, 0, 1, 0, False, 1))) == ["early-data"]
    assert fx.Discard(1) in driver.effects


def test_data_before_the_sri_is_dropped() -> None:
    driver = ReceiverDriver()
    assert code(driver.data(0, 1)) == ["early-data"]


@pytest.mark.parametrize(
    ("first", "count", "life", "belongs"),
    [(5, 1, LIFE, True), (4, 2, LIFE, False), (3, 2, OLDER_LIFE, True), (4, 2, OLDER_LIFE, False)],
)
def test_numbers_belong_to_one_life(first: int, count: int, life: int, belongs: bool) -> None:
    """This life resumed at 5: what is below is of older lives, what is above is not."""
    driver = ReceiverDriver()
    driver.inform(1, high=9, low=5)
    driver.grant(0, low=0, high=9)
    driver.feed(LowChosen(0))
    assert code(driver.data(first, count, life, recovered=True)) == ([] if belongs else ["dead-tail"])


def test_a_gap_is_recovered_and_then_in_order() -> None:
    driver = ReceiverDriver.active()
    driver.data(0, 2)
    driver.data(5, 2)
    assert driver.asked() == [(2, 4)]
    driver.data(2, 2, recovered=True, now=1)
    assert driver.delivered == [0, 1, 2, 3]
    driver.data(4, 1, recovered=True, now=1)
    assert driver.delivered == list(range(7))
    assert not driver.machine.requests


def test_what_an_sri_or_a_store_knows_to_exist_is_recovered() -> None:
    driver = ReceiverDriver.active()
    driver.inform(1, 1, 1, high=3, version=2)
    assert driver.asked() == [(0, 3)]
    driver = ReceiverDriver.active()
    driver.feed(Reset("store0:1"), 50)
    driver.grant(0, now=51, low=0, high=3)
    assert driver.asked() == [(0, 3)]


def test_messages_are_lost_only_while_a_quorum_was_asked() -> None:
    """Two of three stores refuse for long: what they hold may be stable, so it is waited for."""
    driver = ReceiverDriver.active(high=2)
    for store in (0, 1):
        driver.feed(Gone(f"store{store}:1"), 1)
    told: list[Event] = []
    for now in range(INTERVAL_NS, 1000, INTERVAL_NS):
        told += driver.feed(Tick(), now)
    assert not [event for event in told if isinstance(event, UnrecoverableLoss)]
    driver.grant(1, now=1000, low=0, high=2)
    for now in range(1000, 1200, INTERVAL_NS):
        told += driver.feed(Tick(), now)
    assert [event for event in told if isinstance(event, UnrecoverableLoss)] == [UnrecoverableLoss(0, 2)]


def test_nobody_is_asked_while_no_store_is_registered() -> None:
    driver = ReceiverDriver.active()
    for store in range(3):
        driver.feed(Reset(f"store{store}:1"), 1)
    driver.data(5, 1, now=2)
    assert driver.asked() == []
    driver.grant(2, now=3)
    assert driver.asked() == [(0, 4)]


def test_consumption_is_acknowledged_to_every_store_at_the_interval() -> None:
    driver = ReceiverDriver.active(high=3)
    driver.data(0, 4, recovered=True)
    driver.feed(Consumed(0, 1), 1)
    driver.feed(Consumed(2, 2), 2)
    assert driver.sent(ConsumptionAck) == []
    driver.feed(Tick(), 1 + ACK_NS)
    assert driver.sent(ConsumptionAck) == [
        (f"store{index}:1", ConsumptionAck(LIFE, 50, 70 + index, 2)) for index in range(3)
    ]
    driver.feed(Tick(), 100)
    assert driver.sent(ConsumptionAck) == []


def test_consumption_may_be_acknowledged_at_once() -> None:
    driver = ReceiverDriver.active(ack_mode=AckMode.IMMEDIATE)
    driver.data(0, 4)
    driver.feed(Consumed(0, 3))
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [3, 3, 3]


def test_a_session_that_ends_acknowledges_first() -> None:
    driver = ReceiverDriver.active()
    driver.data(0, 4)
    driver.feed(Consumed(0, 3))
    driver.feed(Finish())
    assert len(driver.sent(ConsumptionAck)) == 3


def test_only_what_was_delivered_can_be_consumed() -> None:
    driver = ReceiverDriver()
    with pytest.raises(MisuseError, match=r"consumed 0\.\.0"):
        driver.feed(Consumed(0, 0))
    driver = ReceiverDriver.active()
    driver.data(0, 2)
    with pytest.raises(MisuseError, match=r"consumed 1\.\.2"):
        driver.feed(Consumed(1, 2))


def test_a_store_that_returns_hears_the_last_acknowledgement() -> None:
    driver = ReceiverDriver.active()
    driver.data(0, 4)
    driver.feed(Consumed(0, 3))
    driver.feed(Tick(), ACK_NS)
    driver.feed(Reset("store1:1"), 50)
    driver.grant(1, now=51, high=3)
    assert driver.sent(ConsumptionAck) == [("store1:1", ConsumptionAck(LIFE, 50, 71, 3))]


def test_the_source_hears_what_it_wants_confirmed() -> None:
    driver = ReceiverDriver()
    driver.inform(1, confirmations=True)
    driver.grant(0)
    driver.feed(LowChosen(0))
    driver.data(0, 1)
    driver.feed(Consumed(0, 0))
    driver.feed(Tick(), ACK_NS)
    assert ("source:1", ConsumptionAck(LIFE, 0, 70, 0)) in driver.sent(ConsumptionAck)


def test_what_an_earlier_session_consumed_is_not_handed_over_again() -> None:
    """The stores did not hear the last acknowledgement: it is repeated, the messages are not."""
    driver = ReceiverDriver()
    driver.feed(History(OLDER_LIFE, 0, 3))
    driver.inform(1, high=5, low=5)
    driver.grant(0, low=2, high=4, old=True)
    driver.feed(LowChosen(2))
    driver.data(2, 3, OLDER_LIFE, recovered=True)
    assert driver.delivered == [4]
    driver.feed(Tick(), ACK_NS)
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [3]


def test_signs_of_life_are_answered() -> None:
    driver = ReceiverDriver.active()
    driver.hear(Keepalive(Role.STORE, LIFE, 71, True, 1))
    assert driver.sent(Keepalive) == [("store1:1", Keepalive(Role.RECEIVER, LIFE, 71, False, 1))]


def test_a_wish_beyond_the_end_is_cut_and_told() -> None:
    driver = ReceiverDriver()
    driver.inform(1, high=3)
    driver.grant(0, low=0, high=3)
    told = driver.feed(LowChosen(9))
    assert code(told) == ["low-beyond-high"]
    assert told[-1] == RegistrationComplete(4, RegistrationFlag.NONE)


def test_a_number_that_ends_the_wrap_is_followed_by_0_on_the_wire() -> None:
    driver = ReceiverDriver()
    driver.inform(1, low=MODULUS - 2, high=-3)
    driver.grant(0, low=MODULUS - 2, high=MODULUS - 3)
    driver.feed(LowChosen(driver.machine.low))
    driver.data(MODULUS - 2, 5)
    assert driver.delivered == [-2, -1, 0, 1, 2]
    driver.feed(Consumed(-2, 2))
    driver.feed(Tick(), ACK_NS)
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [2]
    driver.data(4, 1)
    assert driver.asked() == [(3, 3)]


def test_a_receiver_may_come_late_to_a_long_life() -> None:
    """The newest number is more than half of all wire numbers above the first one."""
    driver = ReceiverDriver()
    driver.inform(1, low=0, high=HALF + 10)
    driver.grant(0, low=HALF, high=HALF + 10)
    driver.feed(LowChosen(HALF))
    assert driver.asked() == [(HALF, HALF + 10)]
    driver.data(HALF, 11, recovered=True)
    assert driver.delivered == list(range(HALF, HALF + 11))
    assert isinstance(driver.machine.info, SourceInfo)


def test_nothing_new_is_nothing_to_acknowledge() -> None:
    driver = ReceiverDriver.active()
    driver.feed(Finish())
    assert driver.effects == []
