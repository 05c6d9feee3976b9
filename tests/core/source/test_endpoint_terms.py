"""The source endpoint among its lives: one term at a quorum before it may send, and who is told apart by what."""

from typing import Any

import pytest

from stablecast.core.protocol.events import (
    Confirmed,
    ConfirmFlag,
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
)
from stablecast.core.protocol.inputs import Gone, Sent, Start, Tick
from stablecast.core.protocol.messages import ConsumptionAck, Register
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import Retention, StoreBehavior
from stablecast.core.source import SourceState
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE


@pytest.mark.parametrize(("term", "over"), [(7, False), (8, True), (9, True)])
def test_a_life_goes_on_unless_another_one_was_counted_since(term: int, over: bool) -> None:
    """Formal design, 7.6: the other may have begun with more stores than this one, though it told them nothing yet."""
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, 1, 2, term=7)
    for store in (0, 1):
        driver.feed(Gone(f"store{store}:1"), 100)
    driver.feed(Tick(), 100 + INTERVAL_NS)
    driver.grant(0, now=120, old=True, term=term, lives=((LIFE, 0),), lives_term=7)
    assert driver.machine.can_send is not over
    assert driver.machine.info().term == 7


def asked_again(driver: SourceDriver) -> list[tuple[str, int]]:
    return [(to, message.term) for to, message in driver.sent(Register)]


def test_stores_that_count_fewer_lives_are_asked_again_before_it_may_send() -> None:
    """Formal design, 7.3: a quorum knows the term before it may send; the application is told of each store once."""
    driver = SourceDriver()
    driver.feed(Start())
    told = driver.grant(0, term=3)
    assert asked_again(driver) == []
    told += driver.grant(1, term=1)
    assert asked_again(driver) == [("store1:1", 3)]
    told += driver.grant(2, term=4)
    assert asked_again(driver) == [("store0:1", 4)]
    told += driver.grant(1, term=3)
    assert asked_again(driver) == [("store1:1", 4)]
    assert driver.machine.state is SourceState.REGISTERING
    told += driver.grant(0, 1, term=4)
    assert [type(event) for event in told] == [RegistrationSuccess] * 3 + [RegistrationComplete]
    assert told[-1] == RegistrationComplete(0, RegistrationFlag.NONE)
    assert driver.machine.info().term == 4


@pytest.mark.rows("P-217")
def test_a_quorum_that_knows_the_term_is_enough_after_the_first_interval() -> None:
    """P-217; a store that does not say so does not count, and is asked every interval (T6)."""
    driver = SourceDriver()
    driver.feed(Start())
    driver.grant(0, term=1)
    driver.grant(1, term=2)
    driver.feed(Tick(), INTERVAL_NS)
    assert driver.machine.state is SourceState.REGISTERING
    assert asked_again(driver) == [("store0:1", 2), ("store2:1", 2)]
    told = driver.grant(0, term=2, now=INTERVAL_NS + 1)
    assert told == [RegistrationComplete(0, RegistrationFlag.QUORUM)]


@pytest.mark.parametrize(
    "changes", [{"repairs": Repair.ALL & ~Repair.ONE_LIFE}, {"behavior": StoreBehavior.RR}], ids=["documented", "rr"]
)
def test_documented_and_alone_each_store_has_its_own_count(changes: dict[str, Any]) -> None:
    driver = SourceDriver(**changes)
    driver.feed(Start())
    driver.grant(0, term=3)
    if driver.machine.state is SourceState.REGISTERING:
        driver.grant(1, 2, term=1)
    assert asked_again(driver) == []
    assert driver.machine.can_send


@pytest.mark.rows("P-329")
@pytest.mark.parametrize(("session_id", "confirmed"), [(9, False), (0, True)])
def test_a_receiver_that_returns_to_other_stores_confirms_once(session_id: int, confirmed: bool) -> None:
    """It is told by its session id, or else by the RegID that it names."""
    driver = SourceDriver.active(confirmations=True, retention=Retention(unique_confirmations=2))
    driver.feed(Sent(0, 5, 50))
    driver.hear(ConsumptionAck(LIFE, 0, 70, 2, session_id=session_id))
    told = driver.hear(ConsumptionAck(LIFE, 0, 71, 2, session_id=session_id))
    unique = [event for event in told if isinstance(event, Confirmed) and ConfirmFlag.UNIQUE in event.flags]
    assert bool(unique) is confirmed
    [other] = driver.hear(ConsumptionAck(LIFE, 0, 70, 2, session_id=8))
    assert isinstance(other, Confirmed)
    assert other.receiver_reg_id == 70
