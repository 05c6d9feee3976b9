"""The receiver's session: what is recovered, whom it asks, and how it goes through; numbers at their ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.serial import HALF, MODULUS
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Event,
    RegistrationComplete,
    RegistrationFlag,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import (
    Acknowledge,
    Consumed,
    Finish,
    Gone,
    History,
    Lost,
    LowChosen,
    Reset,
    Tick,
    Useless,
)
from stablecast.core.protocol.messages import (
    MAX_STORES,
    AckFlag,
    ConsumptionAck,
    LateJoinInfo,
    LateJoinRequest,
    Register,
    RetransmitRequest,
    SourceInfo,
    StoreEntry,
)
from stablecast.core.protocol.settings import AckMode, Ordering, OtrTimes, UseOtr
from tests.core.drivers import ACK_NS, GIVE_UP_NS, INTERVAL_NS, RETRY_NS, ReceiverDriver, code
from tests.core.samples import LIFE, OLDER_LIFE, info

SESSION = RegistrationFlag.SESSION


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


def test_messages_known_from_an_sri_or_a_store_are_recovered() -> None:
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


def denials(driver: ReceiverDriver, low: int, *stores: int, now: int = 0) -> list[UnrecoverableLoss]:
    """Let stores deny what they are asked for until nothing more is asked of them; return what is lost."""
    told: list[Event] = []
    asked = driver.sent(RetransmitRequest)
    for to, request in asked:
        store = int(to.removeprefix("store").removesuffix(":1"))
        if store in stores and request.first < low:
            told += driver.hear(LateJoinInfo(LIFE, request.request, low, low + 9, store), now)
            asked += driver.sent(RetransmitRequest)  # The loop goes on with these.
    return [event for event in told if isinstance(event, UnrecoverableLoss)]


def tick_until(driver: ReceiverDriver, end: int, low: int, *stores: int) -> dict[int, list[UnrecoverableLoss]]:
    lost: dict[int, list[UnrecoverableLoss]] = {}
    for now in range(RETRY_NS, end, RETRY_NS):
        told = [event for event in driver.feed(Tick(), now) if isinstance(event, UnrecoverableLoss)]
        told += denials(driver, low, *stores, now=now)
        if told:
            lost[now] = told
    return lost


def test_the_newest_message_is_lost_too_when_all_stores_let_go_of_it() -> None:
    driver = ReceiverDriver.active(high=9)
    assert denials(driver, 10, 0, 1, 2) == [UnrecoverableLoss(0, 9)]


@pytest.mark.parametrize("ordering", Ordering)
@pytest.mark.parametrize("distance", [1_000, 1_000_000_000])
def test_what_all_stores_let_go_is_lost_at_once_and_as_a_whole(ordering: Ordering, distance: int) -> None:
    driver = ReceiverDriver.active(high=distance + 9, ordering=ordering)
    assert denials(driver, distance, 0, 1, 2) == [UnrecoverableLoss(0, distance - 1)]
    driver.data(distance, 10, recovered=True)
    assert driver.delivered == list(range(distance, distance + 10))
    assert not driver.machine.requests


def test_nothing_is_lost_while_a_store_that_is_asked_may_have_it() -> None:
    """One store is being refilled, so it does not deny."""
    driver = ReceiverDriver.active(high=9_999)
    assert denials(driver, 9_000, 0, 1) == []
    driver.data(0, 200, recovered=True)
    assert driver.delivered == list(range(200))


def test_what_the_other_stores_let_go_is_lost_in_its_time_while_one_is_away() -> None:
    """It may return with what the others let go. A store that begins to answer is asked, however late."""
    driver = ReceiverDriver.active(high=9_999)
    driver.feed(Gone("store2:1"), 1)
    lost = tick_until(driver, 2 * GIVE_UP_NS, 9_000, 0, 1)
    assert list(lost.values()) == [[UnrecoverableLoss(0, 8_999)]]
    assert GIVE_UP_NS <= min(lost) <= GIVE_UP_NS + RETRY_NS


def test_one_store_that_let_go_speaks_for_no_other() -> None:
    """A quorum is there, and one of its stores is silent: what it was not asked for is not lost."""
    driver = ReceiverDriver.active(high=9_999)
    lost = tick_until(driver, 2 * GIVE_UP_NS, 9_000, 0)
    assert sum((event.last - event.first + 1 for told in lost.values() for event in told), 0) <= 200


def test_a_source_without_stores_says_what_it_retains_no_more() -> None:
    driver = ReceiverDriver.joining()
    driver.hear(LateJoinInfo(LIFE, 1, 2, 9))
    [(_, request)] = driver.sent(RetransmitRequest)
    told = driver.hear(LateJoinInfo(LIFE, request.request, 6, 9))
    assert [event for event in told if isinstance(event, UnrecoverableLoss)] == [UnrecoverableLoss(2, 5)]


def test_what_a_source_denies_says_nothing_of_stores() -> None:
    """A store that forwards requests may have what the source denies."""
    driver = ReceiverDriver.active(high=9)
    for number in range(10):
        assert driver.hear(LateJoinInfo(LIFE, number, 6, 9)) == []
    assert tick_until(driver, GIVE_UP_NS, 9) == {}


@pytest.mark.parametrize("history", [True, False])
def test_time_begins_anew_once_when_the_source_is_gone(history: bool) -> None:
    """Its next life may have had the stores for long. Numbers that no store has are given up in the end, whether they
    came before the session or are a gap of the stream.
    """

    def lost_at(*gone: int) -> int:
        driver = ReceiverDriver.active(high=2 if history else -1, otr=OtrTimes(give_up_ns=GIVE_UP_NS))
        if not history:
            driver.data(3, 1)
        for now in range(RETRY_NS, 10 * GIVE_UP_NS, RETRY_NS):
            driver.feed(Gone("store9:1"), now)  # Not the source's.
            if now in gone:
                driver.feed(Gone("source:1"), now)
            if UnrecoverableLoss(0, 2) in driver.feed(Tick(), now):
                return now
        return 0

    usual = lost_at()
    assert GIVE_UP_NS <= usual < GIVE_UP_NS + RETRY_NS
    assert lost_at(usual - RETRY_NS) == 2 * usual - RETRY_NS
    assert lost_at(usual - RETRY_NS, 2 * usual - 2 * RETRY_NS) == 2 * usual - RETRY_NS


def test_nobody_is_asked_while_no_store_is_registered() -> None:
    driver = ReceiverDriver.active()
    for store in range(3):
        driver.feed(Reset(f"store{store}:1"), 1)
    driver.data(5, 1, now=2)
    assert driver.asked() == []
    driver.grant(2, now=3)
    assert driver.asked() == [(0, 4)]


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


def test_messages_that_a_source_without_stores_released_are_lost() -> None:
    driver = ReceiverDriver.joining()
    driver.hear(LateJoinInfo(LIFE, 1, 8, 9))
    told = [event for now in range(0, 200, INTERVAL_NS) for event in driver.feed(Tick(), now)]
    assert told == [UnrecoverableLoss(8, 9)]


@pytest.mark.rows("P-410")
def test_off_transport_recovery_of_a_streaming_source_asks_the_source() -> None:
    """Where it is on, and not only for sources with stores; its SRI tells of a lost end too."""
    driver = ReceiverDriver.joining(otr=OtrTimes(use=UseOtr.ON))
    driver.hear(LateJoinInfo(LIFE, 1, 10, 9))
    driver.data(12, 1)
    assert driver.asked() == [(10, 11)]
    driver.data(10, 2, recovered=True)
    assert [effect.otr for effect in driver.effects if isinstance(effect, fx.Deliver)] == [True, False]
    driver.inform(version=2, high=15)
    assert driver.asked() == [(13, 15)]
    for use in (UseOtr.OFF, UseOtr.PERSISTENT):
        driver = ReceiverDriver.joining(otr=OtrTimes(use=use))
        driver.hear(LateJoinInfo(LIFE, 1, 10, 9))
        driver.data(12, 1)
        assert driver.asked() == []


def test_a_persistent_source_may_be_joined_without_its_stores() -> None:
    driver = ReceiverDriver(use_store=False)
    driver.inform(1, 1, 1, high=9)
    driver.feed(Tick(), 0)
    assert [to for to, _ in driver.sent(LateJoinRequest)] == ["source:1"]
    driver.hear(LateJoinInfo(LIFE, 1, 8, 9))
    driver.inform(1, 2, 1, version=2, high=9)
    assert driver.sent(Register) == []
    assert not driver.machine.enrollment


@pytest.mark.rows("P-411")
def test_without_late_join_a_persistent_receiver_recovers_nothing() -> None:
    """It starts behind the newest number, and acknowledges from there."""
    driver = ReceiverDriver.active(high=4, late_join=False)
    assert (driver.asked(), driver.machine.window.next) == ([], 5)
    driver.data(7, 1)
    assert driver.asked() == []
    driver.feed(Lost(LIFE, 5, 2))
    assert driver.delivered == [7]


@pytest.mark.rows("P-410", "P-433", "P-583")
def test_gaps_are_recovered_when_they_are_old_enough() -> None:
    """An old gap is asked for; given up after a time of its own."""
    driver = ReceiverDriver.active(high=-1, otr=OtrTimes(delay_ns=500, give_up_ns=100))
    driver.data(2, 1, now=10)
    assert driver.asked() == []
    driver.feed(Tick(), 510)
    assert driver.asked() == [(0, 1)]
    told = [event for now in range(510, 700, INTERVAL_NS) for event in driver.feed(Tick(), now)]
    assert told == [UnrecoverableLoss(0, 1)]


@pytest.mark.rows("P-305", "P-402", "P-427", "P-434")
def test_live_data_during_recovery_is_delivered_after_it() -> None:
    """Recovered messages say so, and are acknowledged like others."""
    driver = ReceiverDriver.active(high=3)
    driver.data(4, 2)
    assert driver.delivered == []
    driver.data(0, 4, recovered=True)
    assert driver.delivered == list(range(6))
    runs = [effect for effect in driver.effects if isinstance(effect, fx.Deliver)]
    assert [(run.recovered, run.otr) for run in runs] == [(True, False), (False, False)]
    driver.feed(Consumed(0, 5))
    driver.feed(Finish())
    assert {message.number for _, message in driver.sent(ConsumptionAck)} == {5}


@pytest.mark.rows("P-403", "P-429", "P-430")
def test_requests_go_to_the_stores_in_turn_and_to_another_one_when_in_vain() -> None:
    driver = ReceiverDriver.active(high=129)
    stores = [to for to, _ in driver.sent(RetransmitRequest)]
    assert sorted(stores) == ["store0:1", "store1:1", "store2:1"]
    driver.data(64, 66, recovered=True)
    driver.feed(Tick(), RETRY_NS)
    [(to, message)] = driver.sent(RetransmitRequest)
    assert (message.first, message.last) == (0, 63)
    assert to != stores[0]


@pytest.mark.rows("P-330", "P-431")
def test_arrival_order_delivers_at_once_and_acknowledges_prefixes() -> None:
    """Gaps are recovered all the same."""
    driver = ReceiverDriver.active(ordering=Ordering.ARRIVAL, ack_mode=AckMode.IMMEDIATE)
    driver.inform(1, 1, 1, version=2, confirmations=True)
    driver.data(2, 2)
    assert (driver.delivered, driver.asked()) == ([2, 3], [(0, 1)])
    driver.feed(Consumed(2, 3))
    assert driver.sent(ConsumptionAck) == []
    driver.data(0, 2, recovered=True)
    driver.feed(Consumed(0, 1))
    acks = [message for _, message in driver.sent(ConsumptionAck)]
    assert [ack.number for ack in acks] == [3, 3, 3, 3]
    assert acks[-1].flags == AckFlag.ARRIVAL_ORDER


def test_an_announcement_of_another_life_is_not_believed() -> None:
    driver, late = ReceiverDriver.active(), info(incarnation=OLDER_LIFE)
    driver.hear(late)
    assert driver.machine.info != late


@pytest.mark.parametrize(
    ("mode", "ordering"), [(AckMode.BATCHED, Ordering.ORDERED), (AckMode.EXPLICIT, Ordering.ARRIVAL)]
)
def test_an_acknowledgement_that_waited_for_pieces_goes_out_when_they_are_of_no_use(
    mode: AckMode, ordering: Ordering
) -> None:
    driver = ReceiverDriver.active(ack_mode=mode, ordering=ordering)
    driver.data(0, 4)
    acks: list[list[int]] = []
    for event in (Acknowledge(3, 2) if mode is AckMode.EXPLICIT else Consumed(2, 3), Useless(0, 1)):
        driver.feed(event, ACK_NS)
        sent = driver.sent(ConsumptionAck)
        driver.feed(Tick(), 3 * ACK_NS)
        acks.append([ack.number for _, ack in (*sent, *driver.sent(ConsumptionAck))])
    assert acks == [[], [3] * 3]


@pytest.mark.parametrize("mode", AckMode)
def test_a_loss_lets_the_acknowledgement_go_on_in_arrival_order(mode: AckMode) -> None:
    """Messages above the loss were consumed before it, so nothing else would acknowledge them."""
    driver = ReceiverDriver.active(ordering=Ordering.ARRIVAL, ack_mode=mode)
    driver.data(0, 1)
    driver.data(3, 2)
    driver.feed(Consumed(0, 0))
    driver.feed(Consumed(3, 4))
    driver.feed(Acknowledge(4, 3) if mode is AckMode.EXPLICIT else Tick(), ACK_NS)
    driver.sent(ConsumptionAck)
    driver.feed(Lost(LIFE, 1, 2, burst=True), ACK_NS)
    if mode is AckMode.BATCHED:
        assert driver.sent(ConsumptionAck) == []
        driver.feed(Tick(), 2 * ACK_NS)
    assert {message.number for _, message in driver.sent(ConsumptionAck)} == {4}


def test_a_wish_to_skip_is_no_acknowledgement() -> None:
    """A store that returns is told what was consumed, and nothing before there was anything."""
    driver = ReceiverDriver.active(high=9, wish=5)
    driver.feed(Reset("store1:1"), 50)
    driver.grant(1, now=51, high=9)
    assert driver.sent(ConsumptionAck) == []


def test_a_quorum_is_enough_after_the_first_interval() -> None:
    driver = ReceiverDriver()
    driver.inform(1, 1, 1)
    driver.grant(0, 1)
    driver.feed(Tick(), INTERVAL_NS)
    assert fx.AskLow(-1, 0, 0) in driver.effects
    assert driver.feed(LowChosen(0), INTERVAL_NS) == [RegistrationComplete(0, RegistrationFlag.QUORUM | SESSION)]


def test_older_and_wild_sris_are_dropped() -> None:
    driver = ReceiverDriver()
    driver.inform(1, version=5)
    assert driver.inform(1, 1, version=4) == []
    assert len(driver.machine.enrollment.registrations) == 1
    stores = tuple(StoreEntry(0, 0, "x:1", 50, 1) for _ in range(MAX_STORES + 1))
    assert code(driver.hear(info(version=6, stores=stores))) == ["wild-info"]


def test_the_source_hears_what_it_wants_confirmed() -> None:
    driver = ReceiverDriver()
    driver.inform(1, confirmations=True)
    driver.grant(0)
    driver.feed(LowChosen(0))
    driver.data(0, 1)
    driver.feed(Consumed(0, 0))
    driver.feed(Tick(), ACK_NS)
    assert ("source:1", ConsumptionAck(LIFE, 0, 70, 0, session_id=9, first=0)) in driver.sent(ConsumptionAck)


def test_confirmations_of_an_earlier_session_are_repeated_once_a_store_counts() -> None:
    """The connection may have broken after that session ended, and stores offer no more of what it acknowledged."""
    driver = ReceiverDriver()
    for life, first, last in ((LIFE, 0, 1), (OLDER_LIFE, 2, 2), (LIFE, 3, 3)):
        driver.feed(History(life, first, last, confirmed=True))
    driver.feed(History(LIFE, 4, 4))
    driver.inform(1, confirmations=True, high=5)
    driver.grant(0, low=5, high=5, old=True)
    both = [
        ("source:1", ConsumptionAck(LIFE, 0, 70, last, session_id=9, first=first)) for first, last in ((0, 1), (3, 3))
    ]
    assert driver.sent(ConsumptionAck) == both
    driver.feed(Reset("source:1"))
    assert driver.sent(ConsumptionAck) == both
    assert driver.machine.status.confirmable == ((0, 2), (3, 4))


def test_a_confirmed_message_belongs_to_the_life_that_sent_it() -> None:
    """A session confirms to its source what earlier lives sent, too. It is no message of this life for that."""
    driver = ReceiverDriver()
    driver.feed(History(OLDER_LIFE, 0, 1))
    driver.feed(History(LIFE, 0, 1, confirmed=True))
    assert {life: list(known) for life, known in driver.machine.status.lives.items()} == {OLDER_LIFE: [(0, 2)]}


def test_what_was_consumed_while_no_store_counted_is_confirmed_once_one_counts() -> None:
    """Confirmations name a RegID, and a source may wait for them before it goes on."""
    driver = ReceiverDriver()
    driver.inform(1, confirmations=True)
    driver.grant(0)
    driver.feed(LowChosen(0))
    driver.data(0, 1)
    later = 100 * SECOND
    driver.feed(Tick(), later)
    assert driver.machine.enrollment.counting == []
    driver.feed(Consumed(0, 0), later)
    driver.feed(Tick(), later + ACK_NS)
    assert driver.sent(ConsumptionAck) == []
    driver.grant(0, now=later + ACK_NS)
    assert ("source:1", ConsumptionAck(LIFE, 0, 70, 0, session_id=9, first=0)) in driver.sent(ConsumptionAck)


def test_a_wish_beyond_the_end_is_cut_and_told() -> None:
    driver = ReceiverDriver()
    driver.inform(1, high=3)
    driver.grant(0, low=0, high=3)
    told = driver.feed(LowChosen(9))
    assert code(told) == ["low-beyond-high"]
    assert told[-1] == RegistrationComplete(4, SESSION)


def test_a_number_that_ends_the_wrap_is_followed_by_0_on_the_wire() -> None:
    driver = ReceiverDriver()
    driver.inform(1, low=MODULUS - 2, high=-3)
    driver.grant(0, low=MODULUS - 2, high=MODULUS - 3)
    driver.feed(LowChosen(driver.machine.starting.low))
    driver.data(MODULUS - 2, 5)
    assert driver.delivered == [-2, -1, 0, 1, 2]
    driver.feed(Consumed(-2, 2))
    driver.feed(Tick(), ACK_NS)
    assert [message.number for _, message in driver.sent(ConsumptionAck)] == [2]
    driver.data(4, 1)
    assert driver.asked() == [(3, 3)]


@pytest.mark.rows("P-231", "P-402", "P-430", "P-432")
@pytest.mark.no_cover
@given(
    st.sampled_from(Ordering),
    st.sampled_from(AckMode),
    st.sampled_from([0, 30]),
    st.integers(3, 50),
    st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.booleans()), min_size=1, max_size=20),
)
@settings(max_examples=60)
def test_everything_is_delivered_once_and_acknowledged(
    ordering: Ordering, mode: AckMode, delay_ns: int, proximity: int, runs: list[tuple[int, bool, bool]]
) -> None:
    """Any part of the stream and of the first answers may be lost."""
    otr = OtrTimes(delay_ns=delay_ns)
    driver = ReceiverDriver.active(ordering=ordering, ack_mode=mode, otr=otr, proximity=proximity, window=7)
    number, now, lossy = 0, 0, [lost for *_, lost in runs]

    def consume() -> None:
        for effect in [effect for effect in driver.effects if isinstance(effect, fx.Deliver)]:
            last = effect.first + effect.count - 1
            driver.feed(Consumed(effect.first, last), now)
            if mode is AckMode.EXPLICIT:
                driver.feed(Acknowledge(last), now)

    for count, arrives, _ in runs:
        if arrives:
            driver.data(number, count, now=now)
            consume()
        number, now = number + count, now + 5
    driver.inform(1, 1, 1, high=number - 1, now=now)
    for _ in range(400):
        for first, last in driver.asked():
            assert last - first < 7
            if not (lossy and lossy.pop()):
                driver.data(first, last - first + 1, recovered=True, now=now)
                consume()
        now += 5
        driver.feed(Tick(), now)
    assert sorted(driver.delivered) == list(range(number))
    assert driver.machine.window.acked == number - 1
    assert ordering is Ordering.ARRIVAL or driver.delivered == sorted(driver.delivered)


def test_messages_that_are_of_no_use_keep_no_room_from_those_that_are_missing() -> None:
    """An application that lags has others wait. It never gets these."""
    driver = ReceiverDriver.active(proximity=4)
    driver.data(0, 5)
    driver.data(6, 1)
    assert driver.asked() == []
    driver.feed(Useless(0, 4), 1)
    assert driver.asked() == [(5, 5)]
