"""A life that comes back through a store it never reached: a newer term at a quorum before anything counts again."""

from typing import Any

import pytest

from stablecast.core.protocol.effects import Broadcast
from stablecast.core.protocol.events import (
    Overtaken,
    QuorumLost,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    StableFlag,
)
from stablecast.core.protocol.inputs import Gone, Sent, Start, Tick
from stablecast.core.protocol.messages import Register, SourceInfoRequest, StableAck
from stablecast.core.protocol.repairs import Repair
from stablecast.core.source import SourceState
from stablecast.core.source.stability import StabilityWindow
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE
from tests.support.invariants import check_invariants

LOST_NS = 100
ALL_RULES = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE


def stable(store: int, first: int, last: int) -> StableAck:
    return StableAck(store, LIFE, first, last)


def suspended(**changes: Any) -> SourceDriver:
    """It began with stores 0 and 1 and term 3, sent 0..4, which store 0 has, and lost store 1."""
    driver = SourceDriver(**changes)
    driver.feed(Start())
    driver.grant(0, 1, term=3)
    driver.feed(Tick(), INTERVAL_NS)
    driver.feed(Sent(0, 5, 50))
    driver.hear(stable(0, 0, 4))
    driver.feed(Gone("store1:1"), LOST_NS)
    assert QuorumLost(1, 2) in driver.feed(Tick(), LOST_NS + INTERVAL_NS)
    return driver


def asked(driver: SourceDriver) -> list[tuple[str, int, int]]:
    return [(to, message.term, message.lives_term) for to, message in driver.sent(Register)]


def terms(driver: SourceDriver) -> list[int]:
    return [info.term for info in driver.infos()]


def test_a_store_that_counts_no_more_lives_is_enough_to_go_on_with() -> None:
    driver = suspended()
    told = driver.grant(2, now=150, term=3)
    assert told[-1] == RegistrationComplete(5, RegistrationFlag.QUORUM)
    assert terms(driver) == [3]
    assert asked(driver) == []
    assert Stable(0, 4, 2, ALL_RULES) in driver.hear(stable(2, 0, 4), 150)


def test_a_store_that_counts_more_lives_takes_a_second_round() -> None:
    """Formal design, 7.6: a quorum knows the newer term, then each store shows that it was told of it."""
    driver = suspended()
    assert [type(event) for event in driver.grant(2, now=150, old=True, term=5)] == [RegistrationSuccess]
    assert asked(driver) == [("store0:1", 5, 0)]
    assert terms(driver) == []
    assert not driver.machine.can_send
    assert driver.hear(stable(2, 0, 4), 155) == []
    assert asked(driver) == []
    told = driver.grant(0, now=160, old=True, high=4, term=5, lives=((LIFE, 0),), lives_term=3)
    assert told == [RegistrationComplete(5, RegistrationFlag.QUORUM)]
    assert terms(driver) == [5]
    assert asked(driver) == [("store0:1", 5, 5), ("store2:1", 5, 5)]
    assert driver.hear(stable(0, 0, 4), 165) == []
    assert asked(driver) == []
    assert driver.grant(2, now=170, old=True, term=5) == []
    assert driver.hear(stable(2, 0, 4), 175) == []
    assert asked(driver) == [("store2:1", 5, 5)]
    proof = {"old": True, "high": 4, "term": 5, "lives": ((LIFE, 0),), "lives_term": 5}
    assert driver.grant(0, 2, now=180, **proof) == []
    driver.hear(stable(0, 0, 4), 180)
    assert Stable(0, 4, 2, ALL_RULES) in driver.hear(stable(2, 0, 4), 180)


def test_repeated_acknowledgements_count() -> None:
    """Formal design, 7.6: store 0 has not shown yet that it was told of the newer term."""
    driver = suspended()
    driver.grant(2, now=150, old=True, term=5)
    driver.grant(0, now=160, old=True, high=4, term=5, lives=((LIFE, 0),), lives_term=3)
    driver.grant(2, now=170, old=True, high=4, term=5, lives=((LIFE, 0),), lives_term=5)
    assert driver.hear(stable(2, 0, 4), 175) == [Stable(0, 4, 2, StableFlag.STORE)]


@pytest.mark.rows("P-027")
def test_a_silent_store_does_not_hold_the_second_round_up() -> None:
    """The one of three that is lost is asked in vain, and later has to show the term like any other."""
    driver = suspended()
    driver.grant(2, now=150, term=5)
    driver.feed(Tick(), 150 + INTERVAL_NS)
    assert driver.grant(0, now=165, term=5)[-1] == RegistrationComplete(5, RegistrationFlag.QUORUM)
    driver.grant(1, now=170, term=5)
    assert driver.hear(stable(1, 0, 4), 175) == []
    assert asked(driver) == [("store1:1", 5, 5)]
    driver.grant(1, now=180, high=4, term=5, lives=((LIFE, 0),), lives_term=5)
    assert Stable(0, 4, 1, StableFlag.STORE) in driver.hear(stable(1, 0, 4), 185)


def test_the_store_that_counts_more_may_go_before_the_others_agree() -> None:
    driver = suspended()
    driver.grant(2, now=150, term=5)
    driver.feed(Gone("store2:1"), 151)
    driver.feed(Tick(), 151 + INTERVAL_NS)
    assert driver.machine.state is SourceState.SUSPENDED
    driver.grant(0, 1, now=170, term=5)
    assert driver.machine.info().term == 5


@pytest.mark.parametrize(("lives_term", "over"), [(3, False), (4, True)])
def test_a_later_life_that_told_one_of_them_ends_it_in_either_round(lives_term: int, over: bool) -> None:
    """Formal design, 7.6: though what that store counts is no more than it was asked to."""
    driver = suspended()
    driver.grant(2, now=150, term=6)
    told = driver.grant(0, now=160, old=True, term=6, lives=((LIFE, 0), (9, 5)), lives_term=lives_term)
    assert (told == [Overtaken()]) is over
    assert driver.machine.can_send is not over


def test_documented_it_goes_on_under_the_term_that_it_began_with() -> None:
    """Formal design, 7.6: without the repair."""
    driver = suspended(repairs=Repair.ALL & ~Repair.LEASE)
    assert driver.grant(2, now=150, term=5)[-1] == RegistrationComplete(5, RegistrationFlag.QUORUM)
    assert terms(driver) == [3]


def test_a_suspended_source_announces_nothing() -> None:
    """Formal design, 7.6: a store that comes back might take it for news, and cut back what another life has there."""
    driver = SourceDriver.active(sri_interval_ns=30, sri_maximum=10)
    for store in (0, 1):
        driver.feed(Gone(f"store{store}:1"), 5)
    driver.feed(Tick(), 5 + INTERVAL_NS)
    assert not driver.machine.can_send
    driver.feed(Tick(), 40)
    driver.hear(SourceInfoRequest(LIFE), 41)
    assert not any(isinstance(effect, Broadcast) for effect in driver.effects)
    assert driver.machine.announcing.due is None


def test_stable_messages_stay_stable_without_acknowledgements() -> None:
    driver = SourceDriver.active()
    driver.feed(Sent(0, 4, 40))
    for store in (0, 1):
        driver.hear(stable(store, 2, 3))
    window: StabilityWindow = driver.machine.window
    window.forget_acks()
    assert tuple(window.stable) == ((2, 4),)
    assert [tuple(held) for held in window.acked] == [(), (), ()]
    check_invariants(window)
