"""RegIDs: of the store's choice, and those that several lives of a source ask for."""

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.inputs import Gone, Tick
from stablecast.core.protocol.messages import ElectionToken, Refusal, Refused, Registered
from stablecast.core.store import clients as clients_module
from tests.core.drivers import SOURCE, StoreDriver
from tests.core.samples import LIFE, info, register


@pytest.mark.rows("P-234")
def test_a_source_that_lets_the_store_choose_and_asks_again_is_one() -> None:
    """T6: the answer was not there within the interval; both requests get the same one."""
    driver = StoreDriver()
    for _ in range(2):
        driver.hear(register(reg_id=0, reply_to="source:1"))
    driver.sync()
    (chosen,) = driver.machine.clients.records
    assert chosen
    assert {answer.reg_id for _, answer in driver.sent(Registered)} == {chosen}
    driver.hear(register(reg_id=0, reply_to="source:2", incarnation=9))
    assert len(driver.machine.clients.records) == 2, "another life is another source"


def test_a_late_request_of_a_life_that_ended_takes_nothing_from_its_successor() -> None:
    """Its process ended, and another one has its port; the network still carried what it had written."""
    driver = StoreDriver.with_source()
    driver.hear(register(**SOURCE, incarnation=LIFE + 1, context=6))
    driver.hear(info(incarnation=LIFE + 1, term=2, low=10, high=9, lives=((LIFE, 0), (LIFE + 1, 10))))
    driver.sync()
    driver.effects.clear()
    driver.hear(register(**SOURCE, context=5, term=1))
    assert [refused.reason for _, refused in driver.sent(Refused)] == [Refusal.HELD_BY_SOURCE]
    driver.sync()
    assert driver.sent(Registered) == []
    record = driver.machine.clients.records[50]
    assert (record.client.incarnation, record.client.term, record.lifetime.active) == (LIFE + 1, 2, True)


def test_a_late_request_of_a_life_that_never_sent_takes_nothing() -> None:
    """It ended before it announced itself anywhere, so no history has it; its successor neither."""
    driver = StoreDriver()
    for life, context in ((LIFE, 5), (LIFE + 1, 6), (LIFE + 2, 7)):
        driver.hear(register(**SOURCE, incarnation=life, context=context))
        driver.sync()
    for life, context in ((LIFE + 1, 6), (LIFE, 5)):
        driver.hear(register(**SOURCE, incarnation=life, context=context))
        assert [refused.reason for _, refused in driver.sent(Refused)] == [Refusal.HELD_BY_SOURCE]
        driver.sync()
        assert driver.sent(Registered) == []
    record = driver.machine.clients.records[50]
    assert (record.client.incarnation, record.lifetime.active) == (LIFE + 2, True)


def test_the_lives_that_ended_at_an_address_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "MAX_ENDED", 2)
    driver = StoreDriver()
    for place in range(4):
        driver.hear(register(**SOURCE, incarnation=LIFE + place, context=5 + place))
    assert driver.machine.clients.records[50].ended == (LIFE + 1, LIFE + 2)


def test_a_source_takes_its_reg_id_back_from_a_late_request() -> None:
    """The source was silent for so long that the request of its predecessor was granted."""
    driver = StoreDriver()
    late, source = register(**SOURCE, context=5), register(**SOURCE, incarnation=LIFE + 1, context=6)
    driver.hear(late)
    driver.hear(source)
    driver.sync()
    driver.feed(Tick(), 60 * SECOND)
    driver.hear(late, 60 * SECOND)
    driver.sync(60 * SECOND)
    assert driver.machine.clients.records[50].client.incarnation == LIFE
    driver.hear(source, 60 * SECOND)
    driver.sync(60 * SECOND)
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [LIFE + 1]
    driver.hear(late, 60 * SECOND)
    assert [refused.incarnation for _, refused in driver.sent(Refused)] == [LIFE]


def test_a_source_that_returns_after_a_proxy_is_not_late() -> None:
    """The proxy announced itself since, at another address, and is active."""
    driver = StoreDriver(allow_proxy=True)
    source = register(**SOURCE, context=5, wants_proxy=True)
    proxy = {"incarnation": LIFE + 1, "reply_to": "proxy:1", "context": 6, "election": ElectionToken(1, 1, LIFE)}
    driver.hear(source)
    driver.hear(info())
    driver.feed(Gone("source:1"))
    driver.feed(Tick(), 60 * SECOND)
    driver.hear(register(**{**SOURCE, **proxy}), 60 * SECOND)
    driver.hear(info(incarnation=LIFE + 1, term=2, lives=((LIFE, 0), (LIFE + 1, 0))), 60 * SECOND)
    driver.sync(60 * SECOND)
    assert driver.machine.clients.records[50].client.incarnation == LIFE + 1
    driver.hear(source, 60 * SECOND)
    driver.sync(60 * SECOND)
    assert [answer.incarnation for _, answer in driver.sent(Registered)] == [LIFE]


def test_a_life_of_a_restored_machine_is_granted_once_its_successor_is_silent() -> None:
    """A machine that is restored from a snapshot has a process at its old address again."""
    driver = StoreDriver.with_source()
    driver.hear(register(**SOURCE, incarnation=LIFE + 1, context=6))
    driver.hear(info(incarnation=LIFE + 1, term=2, low=10, high=9, lives=((LIFE, 0), (LIFE + 1, 10))))
    driver.sync()
    driver.feed(Gone("source:1"))
    driver.effects.clear()
    driver.hear(register(**SOURCE, context=5, term=1))
    driver.sync()
    [(_, answer)] = driver.sent(Registered)
    assert (answer.incarnation, answer.term, answer.lives) == (LIFE, 3, ((LIFE, 0), (LIFE + 1, 10)))
