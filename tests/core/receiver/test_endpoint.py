"""The receiver's session: from the first SRI to the last acknowledgement."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    DeregistrationComplete,
    DeregistrationSuccess,
    Event,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
    RegistrationSuccess,
    SteppedBack,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import (
    Acknowledge,
    Consumed,
    Data,
    Finish,
    History,
    Lost,
    LowChosen,
    RegIdChosen,
    Reset,
    Start,
    Tick,
    Useless,
    Withdraw,
)
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregister,
    Deregistered,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    ReceiverAlive,
    Refusal,
    Refused,
    Register,
    RetransmitRequest,
    Role,
    SourceInfoRequest,
    StableAck,
    StoreEntry,
)
from stablecast.core.protocol.settings import AckMode, OtrTimes, UseOtr
from tests.core.drivers import ACK_NS, ReceiverDriver, code
from tests.core.samples import LIFE, OLDER_LIFE, info
from tests.support.abstract_states import abstract

SESSION = RegistrationFlag.SESSION


@pytest.mark.rows("P-227")
def test_the_sri_is_asked_for_while_none_comes() -> None:
    """By unicast, at an interval, so many times."""
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


def test_registration_goes_from_the_sri_to_the_choice_of_a_low_number() -> None:
    driver = ReceiverDriver()
    driver.inform(1, 1, 1, high=6)
    assert [(to, m.role, m.source_reg_id) for to, m in driver.sent(Register)] == [
        (f"store{index}:1", Role.RECEIVER, 50) for index in range(3)
    ]
    assert driver.grant(0, low=1, high=6, old=True) == [
        RegistrationSuccess(0, "store0:1", 70, 50, 1, RegistrationFlag.OLD | SESSION)
    ]
    driver.grant(1, 2, low=1, high=6, old=True)
    assert fx.AskLow(6, 1, 1) in driver.effects
    driver.data(7, 1)
    assert driver.delivered == []
    assert driver.feed(LowChosen(1)) == [RegistrationComplete(1, SESSION)]
    assert driver.asked() == [(1, 6)]
    driver.feed(LowChosen(3))
    assert driver.effects == []


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


def test_messages_of_other_lives_and_of_other_kinds_are_oddities() -> None:
    driver = ReceiverDriver.active()
    assert code(driver.hear(StableAck(0, LIFE, 0, 0))) == ["unexpected-message"]
    assert code(driver.hear(info(incarnation=OLDER_LIFE))) == ["late-message"]
    assert code(driver.feed(Data(OLDER_LIFE, OLDER_LIFE, 0, 1, 0, False, 1))) == ["early-data"]
    assert fx.Discard(1) in driver.effects


def test_data_before_the_sri_is_dropped() -> None:
    driver = ReceiverDriver()
    assert code(driver.data(0, 1)) == ["early-data"]


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


@pytest.mark.rows("P-349")
def test_pieces_of_no_use_are_acknowledged_past_and_not_confirmed() -> None:
    """1 and 2 belong to a message that will never be whole. An acknowledgement never ends with them."""
    driver = ReceiverDriver()
    driver.inform(1, 1, 1, confirmations=True)
    driver.grant(0, 1, 2, low=0, high=MODULUS - 1)
    driver.feed(LowChosen(0))
    driver.data(0, 4)
    driver.feed(Useless(1, 2))
    driver.feed(Consumed(0, 0))
    driver.feed(Finish())
    assert {(to, ack.number) for to, ack in driver.sent(ConsumptionAck) if to != "source:1"} == {
        (f"store{index}:1", 0) for index in range(3)
    }
    driver.feed(Consumed(3, 3))
    driver.feed(Finish())
    told = driver.sent(ConsumptionAck)
    assert {(to, ack.number) for to, ack in told if to != "source:1"} == {(f"store{index}:1", 3) for index in range(3)}
    assert [(ack.first, ack.number) for to, ack in told if to == "source:1"] == [(3, 3)]
    assert driver.machine.lives.known(LIFE, 0, 4) == [(0, 1), (3, 4)]
    with pytest.raises(MisuseError, match=r"4\.\.4 is called useless"):
        driver.feed(Useless(4, 4))


def confirming(**config: Any) -> ReceiverDriver:
    """A session with a source that asks for confirmations, which delivers from 0 on."""
    driver = ReceiverDriver(**config)
    driver.inform(1, 1, 1, confirmations=True)
    driver.grant(0, 1, 2, low=0, high=MODULUS - 1)
    driver.feed(LowChosen(0))
    return driver


def told(driver: ReceiverDriver) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the numbers acknowledged to stores, and the ranges confirmed to the source, since the last call."""
    sent = driver.sent(ConsumptionAck)
    ranges = [(ack.first, ack.number) for to, ack in sent if to == "source:1"]
    return {ack.number for to, ack in sent if to != "source:1"}, ranges


@pytest.mark.rows("P-349")
def test_messages_of_other_shares_are_acknowledged_and_not_confirmed() -> None:
    """An acknowledgement may end with them: stores that receivers pace wait for it."""
    driver = confirming(divides=True)
    driver.data(0, 6)
    driver.feed(Consumed(0, 1, unseen=True))
    driver.feed(Consumed(2, 2))
    driver.feed(Consumed(3, 4, unseen=True))
    driver.feed(Finish())
    assert told(driver) == ({4}, [(2, 2)])
    driver.feed(Reset("source:1"))  # A broken connection may have lost the confirmation, so it is repeated.
    assert told(driver) == (set(), [(2, 2)])
    assert driver.machine.lives.known(LIFE, 0, 6) == [(0, 5)]


@pytest.mark.rows("P-349")
@pytest.mark.parametrize(("divides", "confirmed"), [(False, [(0, 1)]), (True, [])])
def test_a_share_confirms_nothing_of_an_earlier_session(divides: bool, confirmed: list[tuple[int, int]]) -> None:
    """The earlier session consumed messages of other shares, too, and nobody knows which."""
    driver = confirming(divides=divides)
    driver.feed(History(LIFE, 0, 1))
    driver.data(0, 2)
    driver.feed(Finish())
    assert told(driver) == ({1}, confirmed)


def test_a_store_that_returns_hears_the_last_acknowledgement() -> None:
    driver = ReceiverDriver.active()
    driver.data(0, 4)
    driver.feed(Consumed(0, 3))
    driver.feed(Tick(), ACK_NS)
    driver.feed(Reset("store1:1"), 50)
    driver.grant(1, now=51, high=3)
    assert driver.sent(ConsumptionAck) == [("store1:1", ConsumptionAck(LIFE, 50, 71, 3))]


def test_signs_of_life_are_answered() -> None:
    driver = ReceiverDriver.active()
    driver.hear(Keepalive(Role.STORE, LIFE, 71, True, 1))
    assert driver.sent(Keepalive) == [("store1:1", Keepalive(Role.RECEIVER, LIFE, 71, False, 1))]


def test_nothing_new_is_nothing_to_acknowledge() -> None:
    driver = ReceiverDriver.active()
    driver.feed(Finish())
    assert driver.effects == []


def test_a_receiver_joins_a_source_without_stores_late() -> None:
    """P-M003: what the source still has is recovered from it, then live data goes on."""
    driver = ReceiverDriver.joining()
    driver.data(10, 2)
    assert driver.delivered == []
    driver.hear(LateJoinInfo(LIFE, 1, 5, 9))
    expected = RetransmitRequest(Role.RECEIVER, LIFE, 0, 1, 5, 9, "me:1")
    assert driver.sent(RetransmitRequest) == [("source:1", expected)]
    driver.data(5, 5, recovered=True)
    assert driver.delivered == list(range(5, 12))
    driver.hear(LateJoinInfo(LIFE, 1, 0, 40))
    assert driver.effects == []
    driver.feed(Tick(), 10**9)
    assert driver.sent(LateJoinRequest) == []


@pytest.mark.rows("P-411")
def test_a_source_that_does_not_answer_is_joined_from_now_on() -> None:
    """The request is repeated, and not for ever."""
    driver = ReceiverDriver.joining()
    assert driver.machine.next_timeout() == 100
    driver.feed(Tick(), 100)
    assert len(driver.sent(LateJoinRequest)) == 1
    assert code(driver.feed(Tick(), 200)) == ["late-join-unanswered"]
    driver.data(10, 1)
    assert driver.delivered == [10]
    assert driver.asked() == []


@pytest.mark.rows("P-401", "P-410")
def test_a_loss_of_the_transport_is_recovered_or_final() -> None:
    """Messages of no session are ignored."""
    driver = ReceiverDriver.active(otr=OtrTimes(delay_ns=500))
    driver.feed(Lost(LIFE, 0, 2))
    assert driver.asked() == [(0, 1)]
    driver = ReceiverDriver.active(otr=OtrTimes(use=UseOtr.OFF))
    driver.data(2, 1)
    assert driver.asked() == []
    assert driver.feed(Lost(LIFE, 0, 2)) == [UnrecoverableLoss(0, 1)]
    driver.feed(Lost(OLDER_LIFE, 3, 2))
    assert driver.effects == []
    driver = ReceiverDriver()
    driver.feed(Lost(LIFE, 0, 2))
    assert driver.effects == []


@pytest.mark.rows("P-101", "P-332")
def test_a_store_without_a_cache_is_not_asked() -> None:
    """Its word on the newest number does not count, and its number is not on offer."""
    driver = ReceiverDriver()
    driver.inform(1, 1, high=3)
    driver.grant(0, low=0, high=9, no_cache=True)
    driver.grant(1, low=2, high=3)
    assert fx.AskLow(3, 2, 2) in driver.effects
    driver.feed(LowChosen(2))
    assert [to for to, _ in driver.sent(RetransmitRequest)] == ["store1:1"]


@pytest.mark.rows("P-338")
def test_a_silent_receiver_shows_that_it_lives() -> None:
    """From its registration on."""
    driver = ReceiverDriver.active(liveness_ns=50, context=3)
    driver.feed(Tick(), 50)
    assert driver.sent(ReceiverAlive) == [("source:1", ReceiverAlive(LIFE, 70, 9, 3))]


@pytest.mark.rows("P-584", "P-586", "P-588", "P-670", "P-671")
def test_a_receiver_that_withdraws_is_forgotten_everywhere() -> None:
    """It still receives, and acknowledges nothing."""
    driver = ReceiverDriver.active(high=1, liveness_ns=50)
    driver.data(4, 1)
    told = driver.feed(Withdraw())
    assert told == [UnrecoverableLoss(0, 3)]
    farewells = driver.sent(Deregister)
    assert [to for to, _ in farewells] == ["store0:1", "store1:1", "store2:1"]
    told = []
    for index, (_, farewell) in enumerate(farewells):
        told += driver.hear(Deregistered(Role.RECEIVER, index, farewell.generation, 70 + index, LIFE, 4))
    done = [DeregistrationSuccess(index, f"store{index}:1", 70 + index, 4) for index in range(3)]
    assert told == [*done, DeregistrationComplete()]
    driver.data(5, 1)
    driver.feed(Consumed(4, 5))
    driver.feed(Finish())
    driver.feed(Tick(), 10**6)
    driver.inform(1, 2, 1, version=2, high=9)
    assert driver.delivered == [4, 5]
    assert driver.effects == []
    driver.feed(Withdraw())
    assert driver.effects == []
    assert driver.machine.next_timeout() is None


@pytest.mark.rows("P-207", "P-586")
def test_a_store_that_moves_is_asked_to_forget_where_it_is_now() -> None:
    """The source tells where, whether the store still knows it by that RegID or not."""
    driver = ReceiverDriver.active()
    driver.feed(Withdraw())
    assert [to for to, _ in driver.sent(Deregister)] == ["store0:1", "store1:1", "store2:1"]
    moved = (StoreEntry(0, 0, "store0:2", 99, 2), StoreEntry(1, 0, "store1:1", 50, 2))
    assert driver.inform(stores=moved, version=2) == []
    assert driver.sent(Register) == []
    driver.feed(Tick(), 10**9)
    assert [to for to, _ in driver.sent(Deregister)] == ["store0:2", "store1:1", "store2:1"]


@pytest.mark.rows("P-588")
@pytest.mark.parametrize("steps", range(3))
def test_one_that_withdraws_early_receives_from_then_on(steps: int) -> None:
    """Before the SRI, while it registers, while the application chooses."""
    driver = ReceiverDriver(otr=OtrTimes(use=UseOtr.ON))
    driver.feed(Start())
    actions: list[Callable[[], object]] = [lambda: driver.inform(1, high=4), lambda: driver.grant(0, low=0, high=4)]
    for action in actions[:steps]:
        action()
    driver.feed(Withdraw())
    if not steps:
        driver.feed(Tick(), 10**6)
        assert driver.sent(SourceInfoRequest) == []
        actions[0]()
        assert driver.sent(Register) == []
    driver.feed(LowChosen(0))
    driver.data(5, 1)
    driver.data(7, 1)
    assert driver.delivered == [5]
    assert driver.asked() == []
    assert driver.feed(Lost(LIFE, 6, 1)) == [UnrecoverableLoss(6, 6)]


def test_one_that_withdraws_while_it_joins_does_not_join() -> None:
    driver = ReceiverDriver.joining()
    assert driver.feed(Withdraw()) == [DeregistrationComplete()]
    driver.hear(LateJoinInfo(LIFE, 1, 2, 9))
    driver.data(10, 1)
    assert driver.delivered == [10]


def test_a_life_that_steps_back_is_reported() -> None:
    """T20: by what this application consumed, or by what the stores say it acknowledged."""
    driver = ReceiverDriver()
    driver.feed(History(OLDER_LIFE, 0, 100))
    assert driver.inform(1) == [SteppedBack(0, 100)]
    driver = ReceiverDriver()
    driver.inform(1)
    told = driver.grant(0, low=101, high=100, old=True)
    assert told[-1] == SteppedBack(0, 100)
    assert fx.AskLow(100, 101, 101) not in driver.effects


def test_a_receiver_begins_behind_what_it_acknowledged_though_the_announcement_is_older() -> None:
    """A member of a group acknowledged 0 to 100 and died; the next one knows an SRI of before. A store without a cache
    knows as much.
    """
    for no_cache in False, True:
        driver = ReceiverDriver()
        driver.inform(1)
        told = driver.grant(0, low=101, high=100, known=100, old=True, no_cache=no_cache)
        assert fx.AskLow(100, 101, 101) in driver.effects
        assert [event for event in told if isinstance(event, SteppedBack)] == []
        driver.feed(LowChosen(101))
        driver.data(99, 3)
        assert driver.delivered == [101]
    driver = ReceiverDriver()
    driver.inform(1, 1)
    driver.grant(0, low=101, high=100, known=100, old=True)
    told = driver.grant(1, low=201, high=200, old=True)
    assert told[-1] == SteppedBack(0, 200)
    assert fx.AskLow(100, 101, 101) in driver.effects


def test_an_answer_before_the_sri_is_of_no_use() -> None:
    driver = ReceiverDriver()
    driver.hear(Deregistered(Role.RECEIVER, 0, 1, 70, LIFE, 4))
    driver.hear(LateJoinInfo(LIFE, 1, 2, 9))
    assert driver.effects == []


@pytest.mark.rows("P-223", "P-224")
def test_an_sri_of_the_same_version_only_says_how_far_the_source_is() -> None:
    driver = ReceiverDriver.active()
    driver.inform(1, 2, 1, high=3)
    assert driver.sent(Register) == []
    assert driver.asked() == [(0, 3)]
    driver.inform(1, 2, 1, version=2, high=3)
    assert [to for to, _ in driver.sent(Register)] == ["store1:1"]


@pytest.mark.rows("P-411")
def test_a_source_without_stores_is_followed_from_now_on() -> None:
    """Without late join, or where the source does not offer it."""
    driver = ReceiverDriver(late_join=False)
    driver.inform(high=4, low=2)
    driver.data(5, 3)
    driver.data(9, 1)
    assert driver.delivered == [5, 6, 7]
    assert driver.asked() == []
    driver.inform(version=2, high=20)
    assert driver.machine.window.high == 9
    driver = ReceiverDriver()
    driver.inform(high=4, low=2, late_join=False)
    assert abstract(driver.machine)[0] == "ACTIVE"


@pytest.mark.rows("P-227", "P-411")
def test_a_receiver_that_knows_where_to_begin_asks_no_more() -> None:
    driver = ReceiverDriver()
    driver.inform(high=-1)
    driver.data(0, 2)
    driver.hear(LateJoinInfo(LIFE, 0, 2, 1))
    assert driver.delivered == [0, 1]
    assert driver.machine.contact.due is None


def test_consumption_may_be_acknowledged_at_once() -> None:
    driver = ReceiverDriver.active(ack_mode=AckMode.IMMEDIATE)
    driver.data(0, 4)
    driver.feed(Consumed(0, 3))
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [3, 3, 3]


def test_messages_of_an_earlier_session_are_not_delivered_again() -> None:
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


@pytest.mark.rows("P-346", "P-347", "P-348")
def test_an_application_may_acknowledge_itself() -> None:
    """Nothing is acknowledged by consumption, everything below by a call, however late."""
    driver = ReceiverDriver.active(ack_mode=AckMode.EXPLICIT)
    driver.data(0, 9)
    driver.feed(Consumed(0, 8))
    driver.feed(Tick(), 100)
    assert driver.sent(ConsumptionAck) == []
    driver.feed(Acknowledge(5), 10**9)
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [5, 5, 5]
    driver.feed(Acknowledge(3))
    assert driver.effects == []
    driver.feed(Finish())
    assert driver.effects == []
    with pytest.raises(MisuseError, match="acknowledged 9"):
        driver.feed(Acknowledge(9))
