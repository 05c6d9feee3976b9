"""The source endpoint: the right to send, the resume point, announcements, answers."""

import pytest

from stablecast.core.errors import ConfigError, MisuseError
from stablecast.core.machine.serial import HALF, MODULUS
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Confirmed,
    DeregistrationComplete,
    DeregistrationSuccess,
    Event,
    LivenessFlag,
    Oddity,
    Overtaken,
    QuorumLost,
    ReceiverGone,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    StableFlag,
    StoreMoved,
    Wakeup,
)
from stablecast.core.protocol.inputs import Blocked, Departed, Gone, Located, Moved, Reset, Sent, Start, Tick, Withdraw
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregister,
    Deregistered,
    ElectionToken,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    Pace,
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
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import FLIGHT_BYTES, Retention, StoreBehavior, StoreSpec
from stablecast.core.source import SourceState
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE, OLDER_LIFE
from tests.support.abstract_states import abstract

GROUP_FLAGS = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE


def stable(store: int, first: int, last: int) -> StableAck:
    return StableAck(store, LIFE, first % MODULUS, last % MODULUS)


@pytest.mark.rows("P-028")
def test_a_source_without_stores_streams() -> None:
    """It may send at once, everything counts as settled."""
    driver = SourceDriver(stores=0)
    assert driver.feed(Start()) == [RegistrationComplete(0, RegistrationFlag.NONE)]
    driver.feed(Sent(0, 5, 500))
    assert abstract(driver.machine) == ("ACTIVE", 0, (), (5, 5, (), ()))
    assert (driver.machine.credit_messages, driver.machine.credit_bytes) == (1000, FLIGHT_BYTES)
    assert driver.machine.next_timeout() is None


def test_every_store_is_asked_at_once() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    asked = [(to, m.reg_id, m.role) for to, m in driver.sent(Register)]
    assert asked == [(f"store{index}:1", 40 + index, Role.SOURCE) for index in range(3)]
    assert driver.machine.next_timeout() == INTERVAL_NS
    with pytest.raises(MisuseError):
        driver.feed(Start())


def test_grants_are_told_one_by_one_and_the_last_completes() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    assert driver.grant(0, high=9) == [RegistrationSuccess(0, "store0:1", 50, 0, 9, RegistrationFlag.NONE)]
    assert abstract(driver.machine)[0] == "REGISTERING"
    driver.grant(1)
    assert driver.grant(2, old=True) == [
        RegistrationSuccess(2, "store2:1", 52, 0, -1, RegistrationFlag.OLD),
        RegistrationComplete(10, RegistrationFlag.NONE),
    ]
    [info] = driver.infos()
    assert (info.low, info.high, info.version, info.lives, info.term) == (10, 9, 1, ((LIFE, 10),), 0)
    assert info.stores == tuple(StoreEntry(index, 0, f"store{index}:1", 50 + index, 1) for index in range(3))


def test_a_quorum_is_enough_after_the_first_interval() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1)
    assert RegistrationComplete(0, RegistrationFlag.QUORUM) in driver.feed(Tick(), INTERVAL_NS)


def test_the_history_of_the_stores_is_continued() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1, 2, high=9, term=4, lives=((OLDER_LIFE, 0), (5, 10)), lives_term=3)
    assert driver.machine.info().lives == ((OLDER_LIFE, 0), (LIFE, 10))
    assert driver.machine.info().term == 4


def test_sending_needs_a_quorum_and_the_next_number() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    with pytest.raises(MisuseError, match="not registered with enough stores"):
        driver.feed(Sent(0, 1, 1))
    driver.grant(0, 1, 2)
    for wrong in (Sent(1, 1, 1), Sent(0, 0, 0)):
        with pytest.raises(MisuseError, match="expected a run from 0"):
            driver.feed(wrong)


def test_credit_is_what_the_flight_leaves() -> None:
    driver = SourceDriver.active(flight_messages=5, flight_bytes=100)
    driver.feed(Sent(0, 3, 80))
    assert (driver.machine.credit_messages, driver.machine.credit_bytes) == (2, 20)
    driver.feed(Sent(3, 4, 80))
    assert (driver.machine.credit_messages, driver.machine.credit_bytes) == (0, 0)
    for store in (0, 1):
        driver.hear(stable(store, 0, 2))
    assert (driver.machine.credit_messages, driver.machine.credit_bytes) == (1, 20)


@pytest.mark.parametrize(
    "ack", [stable(9, 0, 1), stable(0, 0, 5), stable(0, 3, 2), stable(0, -2, 1), StableAck(0, LIFE, 0, HALF + 9)]
)
def test_wild_acks_are_dropped(ack: StableAck) -> None:
    driver = SourceDriver.active()
    driver.feed(Sent(0, 5, 50))
    [event] = driver.hear(ack)
    assert isinstance(event, Oddity)
    assert event.code == "wild-ack"


def test_late_messages_are_told_from_current_ones() -> None:
    driver = SourceDriver.active()
    [event] = driver.hear(StableAck(0, OLDER_LIFE, 0, 0))
    assert event == Oddity("late-message", "StableAck for incarnation 0x6")
    [event] = driver.hear(LateJoinInfo(LIFE, 1, 0, 0))
    assert isinstance(event, Oddity)
    assert event.code == "unexpected-message"


def test_fewer_stores_than_a_quorum_stop_the_source() -> None:
    driver = SourceDriver.active()
    driver.feed(Sent(0, 3, 30))
    told: list[Event] = []
    for store in (0, 1):
        told += driver.feed(Gone(f"store{store}:1"), 100)
    told += driver.feed(Tick(), 100 + INTERVAL_NS)
    assert QuorumLost(1, 2) in told
    assert not driver.machine.can_send
    assert driver.machine.info().high == 2
    told = driver.grant(0, now=120, high=2, old=True)
    assert told[-1] == RegistrationComplete(3, RegistrationFlag.QUORUM)
    [info] = driver.infos()
    assert [entry.version for entry in info.stores] == [2, 1, 1]
    assert info.version == 2


def test_a_refusal_may_cost_the_quorum_at_once() -> None:
    driver = SourceDriver(stores=1)
    driver.feed(Start())
    driver.grant(0)
    driver.feed(Reset("store0:1"), 100)
    told = driver.hear(Refused(Role.SOURCE, 0, 2, 50, LIFE, Refusal.HELD_BY_SOURCE), 101)
    assert QuorumLost(0, 1) in told


def test_a_life_whose_reg_id_others_hold_is_over_when_the_rest_is_too_few() -> None:
    """7.6: two of three stores granted it and refuse it now. It would end anyway with the first grant after that."""
    driver = SourceDriver.active()
    for index in (0, 1):
        driver.feed(Reset(f"store{index}:1"), 100)
        told = driver.hear(Refused(Role.SOURCE, index, 2, 50, LIFE, Refusal.HELD_BY_SOURCE), 101)
        assert told[1:] == [QuorumLost(1, 2), Overtaken()] * index
    assert driver.machine.state is SourceState.OVER


def test_refusals_for_other_reasons_or_before_a_grant_end_no_life() -> None:
    driver = SourceDriver.active()
    for index in (0, 1):
        driver.feed(Reset(f"store{index}:1"), 100)
        driver.hear(Refused(Role.SOURCE, index, 2, 50, LIFE, Refusal.INCOMPATIBLE), 101)
    assert driver.machine.state is SourceState.SUSPENDED
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0)
    for index in (1, 2):
        driver.hear(Refused(Role.SOURCE, index, 1, 50, LIFE, Refusal.HELD_BY_SOURCE), 1)
    assert driver.machine.state is SourceState.REGISTERING
    documented = SourceDriver.active(stores=1, repairs=Repair.ALL & ~Repair.LEASE)
    documented.feed(Reset("store0:1"), 100)
    documented.hear(Refused(Role.SOURCE, 0, 2, 50, LIFE, Refusal.HELD_BY_SOURCE), 101)
    assert documented.machine.state is SourceState.SUSPENDED


@pytest.mark.rows("P-549")
def test_a_proxy_that_is_refused_asks_on() -> None:
    """T23: the election decides whether it is of use."""
    driver = SourceDriver(stores=1, election=ElectionToken(5, 1))
    driver.feed(Start())
    driver.grant(0)
    driver.feed(Reset("store0:1"), 100)
    driver.hear(Refused(Role.SOURCE, 0, 2, 50, LIFE, Refusal.HELD_BY_SOURCE), 101)
    assert driver.machine.state is SourceState.SUSPENDED
    driver.feed(Tick(), 101 + INTERVAL_NS)
    assert [to for to, _ in driver.sent(Register)] == ["store0:1"]


def test_a_store_that_came_back_empty_is_told_of_and_no_longer_counts() -> None:
    driver = SourceDriver.active(retention=Retention(threshold_bytes=10_000))
    driver.feed(Sent(0, 3, 30))
    driver.hear(stable(0, 0, 2))
    driver.feed(Reset("store0:1"), 100)
    told = driver.grant(0, now=101)
    assert told[0] == RegistrationSuccess(0, "store0:1", 50, 0, -1, RegistrationFlag.NONE)
    assert [event for event in driver.hear(stable(1, 0, 2)) if StableFlag.STABLE in event.flags] == []  # type: ignore[union-attr]
    assert Stable(0, 2, 0, StableFlag.STORE) in driver.hear(stable(0, 0, 2))


def test_a_life_that_was_replaced_is_over() -> None:
    """Stores would cut the messages of another life, registered meanwhile, if this one announced itself again."""
    driver = SourceDriver.active()
    for store in (0, 1):
        driver.feed(Gone(f"store{store}:1"), 100)
    driver.feed(Tick(), 100 + INTERVAL_NS)
    driver.effects.clear()
    told = driver.grant(0, now=120, old=True, term=3, lives=((LIFE, 0), (9, 0)), lives_term=2)
    assert told == [Overtaken()]
    assert driver.infos() == []
    assert not driver.machine.can_send
    assert driver.grant(1, now=121) + driver.feed(Sent(0, 1, 10)) + driver.feed(Tick(), 10**12) == []
    assert driver.machine.next_timeout() is None


def test_a_late_store_raises_the_version() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1)
    driver.feed(Tick(), INTERVAL_NS)
    driver.grant(2, now=INTERVAL_NS + 1)
    [info] = driver.infos()
    assert (info.version, len(info.stores)) == (2, 3)


@pytest.mark.rows("P-221")
def test_an_sri_is_repeated_at_its_interval_as_often_as_configured() -> None:
    driver = SourceDriver.active(sri_interval_ns=100, sri_maximum=3)
    assert len(driver.infos()) == 1
    times = []
    for now in range(50, 600, 50):
        driver.feed(Tick(), now)
        times += [now] * len(driver.infos())
    assert times == [100, 200]


def test_a_request_for_the_sri_is_answered_on_the_stream() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    driver.hear(SourceInfoRequest(LIFE))
    assert driver.effects == []
    driver.grant(0, 1, 2)
    driver.hear(SourceInfoRequest(LIFE))
    assert len(driver.infos()) == 1


def test_retained_messages_are_sent_again_on_request() -> None:
    driver = SourceDriver.active()
    driver.feed(Sent(0, 5, 50))
    driver.feed(Sent(5, 5, 50))
    for store in (0, 1):
        driver.hear(stable(store, 0, 4))
    driver.hear(RetransmitRequest(Role.STORE, LIFE, 0, 1, 3, 7, "store2:1"))
    gone = fx.Send("store2:1", LateJoinInfo(LIFE, 1, 5, 9))
    assert driver.effects == [fx.Resend("store2:1", LIFE, 5, 7), gone]
    driver.hear(RetransmitRequest(Role.STORE, LIFE, 0, 1, 0, 4, "store2:1"))
    assert driver.effects == [gone]
    driver.hear(LateJoinRequest(LIFE, 9, "store2:1"))
    assert driver.sent(LateJoinInfo) == [("store2:1", LateJoinInfo(LIFE, 9, 5, 9))]


def test_confirmations_count_towards_the_flight() -> None:
    driver = SourceDriver.active(confirmations=True, retention=Retention(unique_confirmations=1), flight_messages=5)
    driver.feed(Sent(0, 5, 50))
    for store in (0, 1):
        driver.hear(stable(store, 0, 4))
    assert driver.machine.credit_messages == 0
    told = driver.hear(ConsumptionAck(LIFE, 0, 70, 2))
    assert isinstance(told[0], Confirmed)
    assert driver.machine.credit_messages == 3


def test_stores_are_asked_for_signs_of_life() -> None:
    driver = SourceDriver.active()
    driver.feed(Tick(), 1000)
    probes = [(to, m.store_index) for to, m in driver.sent(Keepalive)]
    assert probes == [(f"store{index}:1", index) for index in range(3)]
    driver.hear(Keepalive(Role.STORE, LIFE, 51, True, 1), 1001)
    assert driver.sent(Keepalive) == [("store1:1", Keepalive(Role.SOURCE, LIFE, 51, False, 1))]


def test_numbers_wrap_on_the_wire_only() -> None:
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1, 2, low=MODULUS - 9, high=MODULUS - 3)
    assert driver.machine.resume_point == -2
    driver.feed(Sent(-2, 5, 50))
    assert (driver.machine.info().low, driver.machine.info().high) == (MODULUS - 2, 2)
    driver.hear(stable(0, MODULUS - 2, 2))
    assert Stable(-2, 2, 1, StableFlag.STORE) in driver.hear(stable(1, MODULUS - 2, 2))
    assert driver.machine.window.unsettled_messages == 0


# Names, turns, proxies, leaving.


def test_a_store_is_not_located_nowhere() -> None:
    driver = SourceDriver(stores=1)
    with pytest.raises(MisuseError, match="cannot be located nowhere"):
        driver.machine.receive(Located("one", ""), 0)


@pytest.mark.rows("P-201", "P-203", "P-212")
def test_a_store_found_by_name_is_asked_when_it_is_found() -> None:
    """Before the start or after it; the others are not held up."""
    named = (StoreSpec(name="one"), StoreSpec(name="two"), StoreSpec("store2:1"))
    driver = SourceDriver(specs=named)
    driver.feed(Located("one", "store0:1"))
    assert driver.effects == []
    driver.feed(Start())
    assert [to for to, _ in driver.sent(Register)] == ["store0:1", "store2:1"]
    driver.grant(0, 2)
    assert driver.machine.state is SourceState.REGISTERING
    assert driver.feed(Located("two", "store1:1"), 5) == []
    assert [to for to, _ in driver.sent(Register)] == ["store1:1"]
    driver.feed(Located("three", "store3:1"), 6)
    assert driver.effects == []
    driver.grant(1, now=7)
    assert driver.machine.can_send


@pytest.mark.rows("P-203", "P-207")
def test_a_store_that_moved_is_told_of_and_registered_with_anew() -> None:
    """The SRI names its new place."""
    driver = SourceDriver.active(specs=(StoreSpec("a:1", name="one"),))
    assert driver.feed(Located("one", "a:1"), 10) == []
    assert driver.feed(Located("one", "b:1"), 10) == [StoreMoved("one", "a:1", "b:1")]
    assert [to for to, _ in driver.sent(Register)] == ["b:1"]
    assert driver.machine.can_send
    driver.grant(0, now=11)
    [info] = driver.infos()
    assert [(entry.address, entry.version) for entry in info.stores] == [("b:1", 2)]


@pytest.mark.parametrize("later", [True, False])
def test_a_proxy_is_over_once_a_store_knows_a_later_life(later: bool) -> None:
    """T23: the source takes its RegIDs before the leases of its proxy end, so they do not end the proxy."""
    driver = SourceDriver(election=ElectionToken(5, 1))
    driver.feed(Start())
    driver.grant(0, 1, term=4)
    driver.feed(Tick(), INTERVAL_NS)
    assert driver.machine.state is SourceState.ACTIVE
    driver.effects.clear()
    told = driver.grant(2, now=INTERVAL_NS + 1, old=True, term=7, lives=((9, 0),), lives_term=4 + later)
    assert (told == [Overtaken()], driver.infos() == []) == (later, later)
    assert (driver.machine.next_timeout() is None) is later


def test_a_source_with_a_lease_outlives_the_grant_of_a_store_that_knows_another_life() -> None:
    """Its stores may have forgotten that life, if somebody evicted it there."""
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1, term=4)
    driver.feed(Tick(), INTERVAL_NS)
    driver.grant(2, now=INTERVAL_NS + 1, old=True, term=7, lives=((9, 0),), lives_term=5)
    assert driver.machine.can_send


@pytest.mark.rows("P-541", "P-549")
def test_a_proxy_announces_and_never_sends() -> None:
    """C-35: otherwise it is a source like any other; refused, it asks again."""
    driver = SourceDriver(election=ElectionToken(5, 1))
    driver.feed(Start())
    assert {message.election for _, message in driver.sent(Register)} == {ElectionToken(5, 1)}
    driver.hear(Refused(Role.SOURCE, 0, 1, 50, LIFE, Refusal.HELD_BY_SOURCE))
    driver.feed(Tick(), INTERVAL_NS)
    assert [to for to, _ in driver.sent(Register)] == ["store0:1", "store1:1", "store2:1"]
    driver.grant(0, 1, 2, now=INTERVAL_NS + 1, high=4)
    assert (driver.machine.state, driver.machine.can_send) == (SourceState.ACTIVE, False)
    driver.hear(SourceInfoRequest(LIFE))
    assert len(driver.infos()) == 1
    with pytest.raises(MisuseError, match="a proxy sends no data"):
        driver.feed(Sent(5, 1, 10))


@pytest.mark.rows("P-584", "P-586", "P-587", "P-664", "P-665")
def test_a_source_that_withdrew_is_over_when_every_store_has_forgotten_it() -> None:
    """Sends are dropped, nothing else is of interest meanwhile."""
    driver = SourceDriver.active(liveness_ns=50)
    driver.feed(Sent(0, 3, 30))
    assert driver.feed(Withdraw(), 10) == []
    assert [to for to, _ in driver.sent(Deregister)] == ["store0:1", "store1:1", "store2:1"]
    assert (driver.machine.can_send, driver.machine.next_timeout()) == (False, 10 + INTERVAL_NS)
    driver.feed(Sent(3, 3, 30), 11)
    for message in (stable(0, 0, 2), SourceInfoRequest(LIFE)):
        assert driver.hear(message, 11) == []
    assert driver.effects == []
    assert driver.feed(Withdraw(), 12) == []
    driver.feed(Tick(), 10 + INTERVAL_NS)
    assert len(driver.sent(Deregister)) == 3
    told: list[Event] = []
    for index in range(3):
        generation = driver.machine.enrollment.registrations[index].request.generation
        told += driver.hear(Deregistered(Role.SOURCE, index, generation, 50 + index, LIFE, 2), 30)
    assert told[-2:] == [DeregistrationSuccess(2, "store2:1", 52, 2), DeregistrationComplete()]
    assert (driver.machine.state, driver.machine.next_timeout()) == (SourceState.OVER, None)


@pytest.mark.parametrize("started", [False, True])
def test_a_source_that_no_store_knows_is_over_at_once(started: bool) -> None:
    driver = SourceDriver()
    if started:
        driver.feed(Start())
    assert driver.feed(Withdraw()) == [DeregistrationComplete()]
    assert driver.machine.state is SourceState.OVER
    driver.machine.handle_timeout(10**12)
    assert driver.machine.take_effects() == []


@pytest.mark.rows("P-338", "P-339", "P-679")
def test_signs_of_life_of_receivers_are_watched() -> None:
    driver = SourceDriver.active(liveness_ns=50)
    driver.hear(ReceiverAlive(LIFE, 70, 9, 5), 10)
    driver.hear(ReceiverAlive(LIFE, 71, 8, 6), 10)
    assert driver.feed(Departed(5), 20) == [ReceiverGone(70, 9, LivenessFlag.END)]
    assert driver.feed(Tick(), 60) == [ReceiverGone(71, 8, LivenessFlag.TIMEOUT)]


@pytest.mark.rows("P-309")
def test_a_blocked_send_hears_of_credit() -> None:
    """T13."""
    driver = SourceDriver.active(flight_messages=1)
    driver.feed(Sent(0, 1, 10))
    assert driver.feed(Blocked()) == []
    driver.hear(stable(0, 0, 0))
    assert driver.hear(stable(1, 0, 0))[-1] == Wakeup()
    driver.machine.check_size(10)


@pytest.mark.rows("P-594")
def test_a_configuration_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="not round robin"):
        SourceDriver(behavior=StoreBehavior.RR, pace=Pace.RECEIVERS, flight_bytes=10)


def test_a_source_that_moved_registers_with_each_store_and_announces_its_new_addresses() -> None:
    driver = SourceDriver.active()
    before = driver.machine.info().version
    driver.feed(Moved("source:2", "stream:2"), 3)
    asked = [(to, request.reply_to, request.transport) for to, request in driver.sent(Register)]
    assert asked == [(f"store{index}:1", "source:2", "stream:2") for index in range(3)]
    assert [(told.request, told.version) for told in driver.infos()] == [("source:2", before + 1)]


def test_a_source_looks_at_its_stores_its_messages_and_its_announcements_in_time() -> None:
    machine = SourceDriver.active(check_ns=7).machine
    machine.receive(Sent(0, 1, 10), 0)
    dues = (machine.enrollment.next(), machine.sending.next(), machine.announcing.due)
    assert machine.next_timeout() == min(due for due in dues if due is not None) == 7
