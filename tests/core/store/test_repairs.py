"""The store's part of the repaired rules: each run loses nothing with its repair, and what it loses without."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Tick
from stablecast.core.protocol.messages import Pace, Refusal, Refused, Registered, StableAck, Wishes
from stablecast.core.protocol.repairs import Repair
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver
from tests.core.samples import LIFE, SECOND, info, register

NEXT = LIFE + 2


def test_the_tail_of_an_older_life_is_cut_back() -> None:
    """A returning store holds 0 to 9 of a life whose successor resumed at 7: 7 to 9 go before anything new comes."""
    store = StoreDriver.with_receiver()
    store.hear(register(**{**SOURCE, "incarnation": 9}))
    store.data(7, 1, life=9)
    assert [type(effect) for effect in store.effects] == [fx.Discard]
    store.hear(info(incarnation=9, low=7, high=7))
    assert [effect.number for effect in store.effects if isinstance(effect, fx.Cut)] == [7]
    store.data(7, 1, life=9)
    store.sync()
    assert [(ack.incarnation, ack.first) for _, ack in store.sent(StableAck)] == [(9, 7)]


def with_a_dead_tail(repairs: Repair) -> StoreDriver:
    """It holds 0 to 9; its source crashed when others held 0 to 6 only, and its next life resumes at 7."""
    driver = StoreDriver.with_receiver(repairs=repairs)
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}))
    driver.sync()
    driver.hear(info(incarnation=NEXT, low=7, high=6, term=2))
    return driver


@pytest.mark.parametrize(("repairs", "stored"), [(Repair.ALL, 1), (Repair.ALL & ~Repair.ONE_LIFE, 0)])
def test_one_life(repairs: Repair, stored: int) -> None:
    """7.3: number 7 of the new life is another message than number 7 of the old one. A store that goes by the number
    alone acknowledges what it never stored.
    """
    driver = with_a_dead_tail(repairs)
    assert len(driver.done(fx.Cut)) == stored
    driver.data(7, 1, life=NEXT)
    assert len(driver.done(fx.PersistMessages)) == stored
    driver.sync()
    held = driver.machine.repositories[50].available(7, 8)
    assert held == [(7, 8)]
    driver.data(7, 1, life=NEXT)
    assert driver.acks() == [(7, 7)]


@pytest.mark.parametrize(("repairs", "acks"), [(Repair.ALL, [(9, 9)]), (Repair.ALL & ~Repair.HOLES, [])])
def test_holes(repairs: Repair, acks: list[tuple[int, int]]) -> None:
    """7.5: 5 and 6 died with their life, with more than one message in flight. A store that waits for them acknowledges
    nothing any more.
    """
    driver = StoreDriver.with_source(repairs=repairs)
    driver.data(0, 5)
    driver.data(7, 2)
    driver.sync()
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}))
    driver.sync()
    driver.hear(info(incarnation=NEXT, low=9, high=8, term=2))
    driver.data(9, 1, life=NEXT)
    driver.sync()
    assert driver.acks() == acks


@pytest.mark.parametrize("repairs", [Repair.ALL, Repair.ALL & ~Repair.MEMORY])
def test_memory(repairs: Repair) -> None:
    """7.6: a store lost its disk while a source is active. If it grants at once, a rival gets the RegID that the source
    still believes to hold.
    """
    driver = StoreDriver(repairs=repairs, source_activity_ns=30 * SECOND)
    driver.machine.recover([], [], {}, 0, memory=False)
    rival = register(**{**SOURCE, "incarnation": NEXT, "reply_to": "rival:1"})
    driver.hear(rival, SECOND)
    driver.sync(SECOND)
    assert len(driver.sent(Registered)) == (Repair.MEMORY not in repairs)
    driver.hear(rival, 31 * SECOND)
    driver.sync(31 * SECOND)
    assert len(driver.sent(Registered)) == 1


@pytest.mark.parametrize(
    ("repairs", "refused"), [(Repair.ALL, [Refusal.INCOMPATIBLE]), (Repair.ALL & ~Repair.PACED, [])]
)
def test_paced_flight_within_capacity(repairs: Repair, refused: list[Refusal]) -> None:
    """7.8: a store with less room than a flight would never acknowledge anything."""
    driver = StoreDriver(allow_rpp=True, repairs=repairs)
    driver.hear(register(**SOURCE, pace=Pace.RECEIVERS, wishes=Wishes(flight_bytes=200, size_limit=100)))
    assert [message.reason for _, message in driver.sent(Refused)] == refused


@pytest.mark.parametrize(("repairs", "acks"), [(Repair.ALL, [(0, 0), (1, 9)]), (Repair.ALL & ~Repair.PACED, [(0, 0)])])
def test_paced_withheld_acknowledgements(repairs: Repair, acks: list[tuple[int, int]]) -> None:
    """7.8: the source waits for an acknowledgement, and the store, which looks at it on new data only, for data."""
    driver = StoreDriver.paced(wishes=Wishes(flight_bytes=100, size_limit=1000), repairs=repairs)
    driver.data(0, 10, size=100)
    driver.sync()
    assert driver.acks() == []
    driver.consume(0)
    assert driver.acks() == acks


@pytest.mark.parametrize("repairs", [Repair.ALL, Repair.ALL & ~Repair.PACED])
def test_paced_messages_of_the_life_before(repairs: Repair) -> None:
    """7.8: what is stored and unacknowledged when the source restarts takes the room that its next life counts on.
    Nothing of that may be lost.
    """
    wishes = Wishes(flight_bytes=300, disk_limit=600)
    driver = StoreDriver.paced(wishes=wishes, repairs=repairs)
    driver.data(0, 6, size=100)
    driver.sync()
    driver.hear(register(**{**SOURCE, "incarnation": NEXT}, pace=Pace.RECEIVERS, wishes=wishes))
    driver.sync()
    driver.hear(info(incarnation=NEXT, low=6, high=5, term=2))
    driver.data(6, 3, life=NEXT, size=100)
    lost = list(driver.machine.repositories[50].filling.lost)
    assert lost == ([] if Repair.PACED in repairs else [(6, 9)])
    for proactive in range(2):
        driver.data(6, 3, life=NEXT, size=100, recovered=True, proactive=bool(proactive))
        nacks = [ack for _, ack in driver.sent(StableAck) if ack.nack]
        assert len(nacks) == (proactive and Repair.PACED not in repairs)


@pytest.mark.parametrize(("repairs", "first"), [(Repair.ALL, 7), (Repair.ALL & ~Repair.PACED, 0)])
def test_paced_receivers_begin_behind_all_that_was_freed(repairs: Repair, first: int) -> None:
    """7.8: 0 to 6 were freed; after a restart the journal does not show it, the record of the source does."""
    before = StoreDriver.paced(repairs=repairs)
    before.data(0, 10)
    before.consume(6)
    clients = [client for client in before.machine.checkpoint() if client.reg_id == 50]
    after = StoreDriver(allow_rpp=True, repairs=repairs)
    after.machine.recover(clients, [(50, 0, 10, 0)], {}, now=0)
    after.feed(Tick(), 0)
    assert after.machine.repositories[50].window.trail >= first
    after = StoreDriver(allow_rpp=True, repairs=repairs)
    after.machine.recover(before.machine.checkpoint(), [], {}, now=0)
    after.hear(register(**{**RECEIVER, "reg_id": 71}, pace=Pace.RECEIVERS))
    after.sync()
    assert [answer.low for _, answer in after.sent(Registered)] == [first]
