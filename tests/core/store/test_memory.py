"""A store that lost its memory: what it reports, what it learns, and what survives a restart (formal design, 7.11)."""

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.inputs import Damaged, Data
from stablecast.core.protocol.messages import Registered, StoreEntry, StoreMemory
from stablecast.core.protocol.repairs import Repair
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver
from tests.core.samples import LIFE, info, register

KEPT, NEW, LOST = StoreMemory.KEPT, StoreMemory.NEW, StoreMemory.LOST
NEXT = LIFE + 1


def started(standing: StoreMemory, repairs: Repair = Repair.ALL & ~Repair.MEMORY) -> StoreDriver:
    driver = StoreDriver(repairs=repairs)
    driver.machine.recover([], [], {}, 0, memory=standing is not LOST, standing=standing)
    return driver


def granted(driver: StoreDriver, **changes: object) -> Registered:
    driver.hear(register(**{**SOURCE, **changes}))
    driver.sync()
    (answer,) = (answer for _, answer in driver.sent(Registered))
    assert isinstance(answer, Registered)
    return answer


def restarted(before: StoreDriver) -> StoreDriver:
    after = StoreDriver(repairs=before.machine.config.repairs)
    after.machine.recover(before.machine.checkpoint(), [], {}, 0, standing=before.machine.status.memory)
    return after


@pytest.mark.parametrize("standing", [KEPT, NEW, LOST])
def test_a_grant_names_what_the_store_knows(standing: StoreMemory) -> None:
    assert granted(started(standing)).memory is standing


def test_documented_a_store_does_not_mention_its_lost_disk() -> None:
    assert granted(started(LOST, Repair.NONE)).memory is KEPT


@pytest.mark.parametrize("standing", [NEW, LOST])
def test_a_store_without_memory_writes_that_down(standing: StoreMemory) -> None:
    driver = started(standing)
    driver.hear(register(**SOURCE))
    assert [one.memory for one in driver.effects if isinstance(one, fx.PersistMemory)] == [standing]
    assert granted(restarted(driver)).memory is standing


def test_the_announcement_of_the_current_life_gives_the_vote_back() -> None:
    """The announced numbers may be stable elsewhere, so the store reports them, although it holds none of them."""
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=3, high=8))
    answer = granted(driver, generation=2)
    assert (answer.memory, answer.high, answer.known) == (KEPT, 2, 8)
    again = granted(restarted(driver), generation=3)
    assert (again.memory, again.known) == (KEPT, 8)
    assert driver.machine.status.memory is LOST


def test_a_number_that_is_held_needs_no_mention() -> None:
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=3, high=8))
    driver.data(9, 1)
    driver.sync()
    assert granted(driver, generation=2).known is None


def test_a_later_life_replaces_the_known_number() -> None:
    """It found a quorum, which need not have had the numbers above its beginning."""
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=0, high=8))
    granted(driver, incarnation=NEXT, generation=2)
    driver.hear(info(incarnation=NEXT, low=5, high=5, term=2))
    assert driver.machine.status.clients[50].client.known == 5


def test_the_announcement_counts_for_its_source_only() -> None:
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=0, high=0))
    assert granted(driver, reg_id=51, incarnation=99, topic="other", reply_to="other:1").memory is LOST


@pytest.mark.parametrize(("standing", "becomes"), [(NEW, KEPT), (LOST, LOST)])
def test_a_life_that_found_only_new_stores_makes_them_witnesses(standing: StoreMemory, becomes: StoreMemory) -> None:
    driver = started(standing)
    granted(driver)
    driver.hear(info(low=0, high=0xFFFF_FFFF, founding=True))
    assert driver.machine.status.memory is becomes
    assert granted(driver, reg_id=51, incarnation=99, topic="other", reply_to="other:1").memory is becomes


def test_a_life_that_found_an_older_store_makes_no_witness() -> None:
    driver = started(NEW)
    granted(driver)
    driver.hear(info(low=0, high=0xFFFF_FFFF))
    assert driver.machine.status.memory is NEW


def test_a_damaged_journal_has_no_vote_until_the_source_announces_itself() -> None:
    """Its newest messages and lives may be among what is missing."""
    before = StoreDriver.with_source(repairs=Repair.ALL & ~Repair.MEMORY)
    before.data(0, 5)
    before.sync()
    after = StoreDriver(repairs=Repair.ALL & ~Repair.MEMORY)
    after.machine.recover(before.machine.checkpoint(), [(50, 0, 3, 30)], {}, 0, memory=False)
    assert granted(after, generation=2).memory is LOST
    after.hear(info(low=0, high=4))
    answer = granted(after, generation=3)
    assert (answer.memory, answer.high, answer.known) == (KEPT, 2, 4)


def test_a_message_that_turns_out_damaged_still_counts_as_used() -> None:
    driver = StoreDriver.with_source()
    driver.data(0, 5)
    driver.sync()
    driver.feed(Damaged(50, 4, 4))
    assert [one.client.known for one in driver.effects if isinstance(one, fx.PersistClient)] == [4]
    answer = granted(driver, generation=2)
    assert (answer.high, answer.known) == (3, 4)


def to_receiver(driver: StoreDriver, **changes: object) -> tuple[StoreMemory, int, int | None, bool]:
    driver.hear(register(**{**RECEIVER, **changes}))
    driver.sync()
    (answer,) = (answer for _, answer in driver.sent(Registered))
    assert isinstance(answer, Registered)
    return (answer.memory, answer.low, answer.known, answer.old)


def test_a_store_without_memory_may_have_forgotten_a_receiver() -> None:
    """It knows all that were there since, and one that acknowledged something."""
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=0, high=4))
    driver.data(0, 5)
    driver.sync()
    assert to_receiver(driver) == (LOST, 0, None, False)
    after = restarted(driver)
    assert to_receiver(after, generation=2) == (LOST, 0, None, False)
    driver.consume(3)
    driver.sync()
    assert to_receiver(driver, generation=2) == (KEPT, 4, None, True)


def test_a_source_that_had_sent_nothing_had_no_receivers() -> None:
    driver = started(LOST)
    granted(driver)
    driver.hear(info(low=0, high=-1 % 2**32))
    assert to_receiver(driver) == (KEPT, 0, None, False)


def test_a_receiver_hears_what_a_store_lacks_below_its_offer() -> None:
    """A store that was away and has all of its memory lacks them, too. When they came back, it offers them."""
    driver = StoreDriver(repairs=Repair.ALL & ~Repair.MEMORY)
    granted(driver, incarnation=NEXT)
    lives = ((LIFE, 0), (NEXT, 3))
    peers = tuple(StoreEntry(index, 0, f"store{index}:1", 50, 1) for index in range(2))
    driver.hear(info(incarnation=NEXT, low=3, high=4, lives=lives, stores=peers, group_sizes=(2,)))
    driver.data(3, 2, life=NEXT)
    driver.sync()
    receiver = {"incarnation": NEXT}
    assert to_receiver(driver, **receiver) == (LOST, 3, 0, False)
    driver.feed(Data(NEXT, LIFE, 1, 2, 0, True, 99))
    driver.sync()
    assert to_receiver(driver, **receiver, generation=2) == (LOST, 1, 0, False)
    driver.feed(Data(NEXT, LIFE, 0, 1, 0, True, 100))
    driver.sync()
    assert to_receiver(driver, **receiver, generation=3) == (KEPT, 0, None, False)


def test_documented_a_receiver_does_not_hear_of_a_lost_disk() -> None:
    driver = started(LOST, Repair.NONE)
    granted(driver)
    driver.hear(info(low=3, high=4, lives=((LIFE, 0),)))
    assert to_receiver(driver) == (KEPT, 3, None, False)
