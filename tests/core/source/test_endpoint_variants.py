"""The source endpoint in its other ways: in turn, all-active, receiver-paced, without late join, several groups."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import (
    Event,
    QuorumLost,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    StableFlag,
    StoreUnresponsive,
)
from stablecast.core.protocol.inputs import Gone, Reset, Sent, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Keepalive,
    LateJoinInfo,
    LateJoinRequest,
    Pace,
    Register,
    RetransmitRequest,
    Role,
    StableAck,
)
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import Notification, Retention, StoreBehavior, StoreSpec
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE

GROUP_FLAGS = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE


def stable(store: int, first: int, last: int) -> StableAck:
    return StableAck(store, LIFE, first, last)


@pytest.mark.rows("P-502", "P-503", "P-504", "P-528")
def test_in_turn_one_store_after_the_other() -> None:
    """The next one is filled by late join, and decides alone from then on."""
    driver = SourceDriver(behavior=StoreBehavior.RR)
    driver.feed(Start())
    assert [to for to, _ in driver.sent(Register)] == ["store0:1"]
    assert driver.grant(0)[-1] == RegistrationComplete(0, RegistrationFlag.NONE)
    driver.feed(Sent(0, 3, 30))
    assert driver.hear(stable(0, 0, 0))[:2] == [Stable(0, 0, 0, StableFlag.STORE), Stable(0, 0, 0, GROUP_FLAGS)]
    driver.feed(Gone("store0:1"), 100)
    told = driver.feed(Tick(), 100 + INTERVAL_NS)
    assert QuorumLost(0, 1) in told
    assert [to for to, _ in driver.sent(Register)][-1] == "store1:1"
    assert driver.grant(1, now=120, lives=((3, 0),), lives_term=9)[-1] == RegistrationComplete(3, RegistrationFlag.NONE)
    assert [entry.index for info in driver.infos() for entry in info.stores] == [1]
    driver.hear(LateJoinRequest(LIFE, 9, "store1:1"))
    assert driver.sent(LateJoinInfo) == [("store1:1", LateJoinInfo(LIFE, 9, 0, 2))]
    assert driver.hear(stable(0, 1, 2)) == []
    assert driver.feed(Reset("store1:1"), 130) == []  # It is silent, and the one before it is asked by nobody.
    assert Stable(1, 2, 1, GROUP_FLAGS) in driver.hear(stable(1, 1, 2))


@pytest.mark.rows("P-521", "P-524")
def test_a_store_that_falls_silent_no_longer_holds_up_all_active() -> None:
    """At once, long before it no longer counts for sending."""
    rules = GroupRules((3,), Intragroup.ALL_ACTIVE)
    driver = SourceDriver.active(groups=rules)
    driver.feed(Sent(0, 3, 30))
    for store in (0, 1):
        driver.hear(stable(store, 0, 2))
    assert driver.machine.window.unsettled_messages == 3
    assert Stable(0, 2, -1, GROUP_FLAGS) in driver.feed(Reset("store2:1"), 10)
    assert len(driver.machine.enrollment.counting) == 3


@pytest.mark.rows("P-411", "P-412")
def test_without_late_join_the_sri_says_so() -> None:
    """A source with stores always has it."""
    assert SourceDriver.active(late_join=False).machine.info().late_join
    driver = SourceDriver(stores=0)
    driver.feed(Start())
    assert not driver.machine.info().late_join
    driver.feed(Sent(0, 5, 50))
    assert driver.effects[-1] == fx.Release(5), "its driver has no use for copies"
    driver.effects.clear()
    driver.hear(RetransmitRequest(Role.RECEIVER, LIFE, 0, 1, 0, 4, "receiver:1"))
    driver.hear(LateJoinRequest(LIFE, 9, "receiver:1"))
    assert driver.effects == [fx.Send("receiver:1", LateJoinInfo(LIFE, 9, 5, 4))]


@pytest.mark.rows("P-573", "P-574", "P-663")
def test_rpp_that_a_store_does_not_know_is_an_error() -> None:
    """It granted, and does not count."""
    driver = SourceDriver(stores=1, pace=Pace.RECEIVERS, flight_bytes=10)
    driver.feed(Start())
    [event] = driver.grant(0)
    assert isinstance(event, RegistrationError)
    assert driver.feed(Tick(), INTERVAL_NS) == []
    assert not driver.machine.can_send
    assert driver.grant(0, now=11, pace=Pace.RECEIVERS)[0] == RegistrationSuccess(
        0, "store0:1", 50, 0, -1, RegistrationFlag.RPP
    )


@pytest.mark.rows("P-509", "P-510", "P-516", "P-518", "P-523")
def test_thirteen_stores_in_three_groups() -> None:
    """Groups of 5, 3 and 5, all-active; the group that dies is left out at once."""
    groups = [0] * 5 + [1] * 3 + [2] * 5
    specs = tuple(StoreSpec(f"store{index}:1", group=group) for index, group in enumerate(groups))
    rules = GroupRules((5, 3, 5), intergroup=Intergroup.ALL_ACTIVE)
    driver = SourceDriver.active(specs=specs, groups=rules)
    assert driver.machine.info().group_sizes == (5, 3, 5)
    assert [entry.group for entry in driver.machine.info().stores] == groups
    driver.feed(Sent(0, 3, 30))
    for store in (0, 1, 2, 5, 6):
        driver.hear(stable(store, 0, 2))
    assert driver.machine.window.unsettled_messages == 3
    for store in (8, 9):
        driver.feed(Gone(f"store{store}:1"), 10)
    assert driver.machine.window.unsettled_messages == 3
    told = driver.feed(Gone("store10:1"), 10)
    assert Stable(0, 2, -1, StableFlag.INTERGROUP | StableFlag.STABLE) in told
    assert driver.machine.can_send


def silent(driver: SourceDriver, stores: tuple[int, ...], until: int) -> list[tuple[int, Event]]:
    """Every other store answers what it is asked; return what was told, and when. No connection ends."""
    told: list[tuple[int, Event]] = []
    while (now := driver.machine.next_timeout()) is not None and now <= until:
        told += [(now, event) for event in driver.feed(Tick(), now)]
        for index, known in driver.machine.enrollment.registrations.items():
            if index not in stores and known.probed_at == now:
                told += [(now, one) for one in driver.hear(Keepalive(Role.STORE, LIFE, 50 + index, False, index), now)]
    return told


@pytest.mark.rows("P-521", "P-523", "P-524")
@pytest.mark.parametrize(
    ("intragroup", "intergroup", "sizes", "soon"),
    [
        (Intragroup.QUORUM, Intergroup.ALL_ACTIVE, (1, 2), True),
        (Intragroup.ALL_ACTIVE, Intergroup.ANY, (3,), True),
        (Intragroup.QUORUM, Intergroup.ALL, (1, 2), False),
    ],
)
def test_a_silent_store_is_inactive_before_its_activity_timeout_is_over(
    intragroup: Intragroup, intergroup: Intergroup, sizes: tuple[int, ...], soon: bool
) -> None:
    """Stores 1 and 2, or store 0 of one group, are stopped: they accept connections and say nothing."""
    groups = [index for index, size in enumerate(sizes) for _ in range(size)]
    specs = tuple(StoreSpec(f"store{index}:1", group=group) for index, group in enumerate(groups))
    driver = SourceDriver.active(specs=specs, groups=GroupRules(sizes, intragroup, intergroup))
    away = (1, 2) if len(sizes) > 1 else (0,)
    driver.feed(Sent(0, 3, 30), 1)
    for store in {0, 1, 2} - set(away):
        driver.hear(stable(store, 0, 2), 2)
    assert driver.machine.window.unsettled_messages == 3
    told = silent(driver, away, 2900)
    stable_at = [at for at, one in told if isinstance(one, Stable) and one.flags & StableFlag.STABLE]
    assert bool(stable_at) is soon
    assert not [one for _, one in told if isinstance(one, StoreUnresponsive)], "its timeout still runs"
    if soon:
        assert stable_at[0] == 1000 + INTERVAL_NS
        assert driver.machine.can_send
        driver.hear(Keepalive(Role.STORE, LIFE, 50 + away[0], False, away[0]), 2950)
        for store in away[1:]:
            driver.hear(stable(store, 0, 2), 2950)
        driver.feed(Sent(3, 3, 30), 2960)
        for store in {0, 1, 2} - set(away):
            driver.hear(stable(store, 3, 5), 2961)
        assert driver.machine.window.unsettled_messages == 3, "a store that returned counts at once"


@pytest.mark.rows("P-101", "P-321", "P-332")
def test_a_source_without_stores_that_acknowledge_waits_for_receivers() -> None:
    """Its stores keep its state only."""
    driver = SourceDriver(stores=1, retention=Retention(unique_confirmations=1))
    driver.feed(Start())
    told = driver.grant(0, no_cache=True)
    assert told[0] == RegistrationSuccess(0, "store0:1", 50, 0, -1, RegistrationFlag.NO_ACKS)
    driver.feed(Sent(0, 3, 30))
    assert driver.machine.window.unsettled_messages == 3
    driver.hear(ConsumptionAck(LIFE, 0, 70, 2))
    assert driver.machine.window.unsettled_messages == 0


@pytest.mark.rows("P-328")
def test_nothing_told_and_everything_freed() -> None:
    """U1."""
    driver = SourceDriver.active(stable_notification=Notification.NONE, confirmed_notification=Notification.NONE)
    driver.feed(Sent(0, 3, 30))
    told = [event for store in (0, 1) for event in driver.hear(stable(store, 0, 2))]
    assert not [event for event in told if isinstance(event, Stable)]
    assert driver.machine.window.trail == 3
