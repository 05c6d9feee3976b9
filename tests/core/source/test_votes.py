"""Stores without memory have no vote about older lives (formal design, 7.11)."""

from typing import Any

import pytest

from stablecast.core.protocol.effects import Broadcast
from stablecast.core.protocol.events import (
    Event,
    Overtaken,
    QuorumLost,
    RegistrationComplete,
    RegistrationError,
    RegistrationFlag,
)
from stablecast.core.protocol.inputs import Gone, Sent, Start, Tick
from stablecast.core.protocol.messages import Register, SourceInfo, StableAck, StoreMemory
from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreBehavior, StoreSpec
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE

KEPT, NEW, LOST = StoreMemory.KEPT, StoreMemory.NEW, StoreMemory.LOST


def asking(**changes: Any) -> SourceDriver:
    driver = SourceDriver(**changes)
    driver.feed(Start())
    return driver


def interval(driver: SourceDriver) -> list[Event]:
    return driver.feed(Tick(), INTERVAL_NS)


def errors(told: list[Event]) -> list[tuple[int, str]]:
    return [(one.store_index, one.text.rsplit("; ", 1)[1]) for one in told if isinstance(one, RegistrationError)]


@pytest.mark.parametrize("memory", [NEW, LOST])
def test_a_store_that_lost_its_disk_does_not_decide_where_a_life_begins(memory: StoreMemory) -> None:
    """Messages 0..4 are stable at stores 0 and 1. Store 1 lost its disk, store 2 was away, store 0 is late."""
    driver = asking()
    driver.grant(1, memory=memory)
    driver.grant(2)
    told = interval(driver)
    assert not driver.machine.can_send
    assert errors(told) == [(1, "waiting for store 0 [store0:1]")]
    assert driver.grant(0, now=20, high=4)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)


def test_documented_a_store_that_lost_its_disk_decides_with_the_others() -> None:
    driver = asking(repairs=Repair.ALL & ~Repair.VOTE)
    driver.grant(1, memory=LOST)
    driver.grant(2)
    assert RegistrationComplete(0, RegistrationFlag.QUORUM) in interval(driver)


def test_a_quorum_that_kept_its_memory_needs_nobody_else() -> None:
    driver = asking()
    driver.grant(1, memory=LOST)
    driver.grant(0, high=4)
    assert driver.grant(2)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)


def test_when_every_store_has_answered_nobody_knows_better() -> None:
    driver = asking()
    driver.grant(1, 2, memory=LOST)
    assert driver.grant(0, high=4)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)
    assert not driver.infos()[-1].founding


@pytest.mark.parametrize("rule", [Intragroup.ALL, Intragroup.ALL_ACTIVE])
def test_where_all_stores_are_needed_an_empty_one_counts_without_a_vote(rule: Intragroup) -> None:
    driver = asking(groups=GroupRules((3,), rule), consensus=Consensus.LOWEST)
    driver.grant(0, 1, high=4)
    assert driver.grant(2, memory=LOST)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)


def test_new_stores_vote_where_all_that_answer_are_new() -> None:
    driver = asking()
    driver.grant(0, 1, memory=NEW)
    assert RegistrationComplete(0, RegistrationFlag.QUORUM) in interval(driver)
    assert driver.infos()[-1].founding


def test_a_lost_store_among_new_ones_has_no_vote_before_all_have_answered() -> None:
    driver = asking()
    driver.grant(0, memory=NEW)
    driver.grant(1, memory=LOST)
    told = interval(driver)
    assert [index for index, _ in errors(told)] == [0, 1]
    assert driver.grant(2, now=20, memory=NEW)[-1] == RegistrationComplete(0, RegistrationFlag.NONE)


def test_a_number_that_a_store_only_knows_is_not_used_again() -> None:
    driver = asking()
    driver.grant(1, known=4)
    driver.grant(2, high=2)
    assert RegistrationComplete(5, RegistrationFlag.QUORUM) in interval(driver)


def test_the_other_group_decides_nothing_for_the_group_of_an_empty_store() -> None:
    specs = tuple(StoreSpec(f"store{index}:1", 40 + index, index // 3) for index in range(6))
    driver = asking(specs=specs, groups=GroupRules((3, 3)))
    driver.grant(0, 1, 2)
    driver.grant(3)
    driver.grant(4, memory=LOST)
    interval(driver)
    assert not driver.machine.can_send
    assert driver.grant(5, now=20)[-1] == RegistrationComplete(0, RegistrationFlag.NONE)


def test_a_group_of_one_empty_store_does_not_decide_against_an_absent_group() -> None:
    """Messages are stable at stores 0 and 1, each a group. Store 0 lost its disk, store 2 was away, store 1 is late."""
    specs = tuple(StoreSpec(f"store{index}:1", group=index) for index in range(3))
    driver = asking(specs=specs, groups=GroupRules((1, 1, 1), intergroup=Intergroup.MAJORITY))
    driver.grant(0, memory=LOST)
    driver.grant(2)
    told = interval(driver)
    assert not driver.machine.can_send
    assert errors(told) == [(0, "waiting for store 1 [store1:1]")]
    assert driver.grant(1, now=20, high=4)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)


def test_in_round_robin_the_store_whose_turn_it_is_decides() -> None:
    driver = asking(behavior=StoreBehavior.RR)
    assert driver.grant(0, memory=LOST)[-1] == RegistrationComplete(0, RegistrationFlag.NONE)


def test_the_report_is_repeated_only_when_something_changed() -> None:
    driver = asking()
    driver.grant(1, memory=LOST)
    driver.grant(2)
    assert len(errors(interval(driver))) == 1
    assert errors(driver.feed(Tick(), 2 * INTERVAL_NS)) == []
    driver.feed(Gone("store1:1"), 2 * INTERVAL_NS)
    driver.feed(Tick(), 4 * INTERVAL_NS)
    assert len(errors(driver.grant(1, now=50, memory=LOST))) == 0


def suspended() -> SourceDriver:
    """It sent 0 to stores 0 and 1. Then store 1 lost its disk, and granted again; and stores 0 and 2 went."""
    driver = SourceDriver.active()
    driver.feed(Sent(0, 1, 10))
    for index in (0, 1):
        driver.hear(StableAck(index, LIFE, 0, 0))
    driver.feed(Gone("store1:1"), 100)
    driver.grant(1, now=101, memory=LOST)
    assert driver.machine.can_send
    for index in (0, 2):
        driver.feed(Gone(f"store{index}:1"), 102)
    return driver


def test_an_empty_store_counts_for_a_life_that_runs() -> None:
    driver = suspended()
    assert QuorumLost not in map(type, driver.feed(Tick(), 103))
    told = driver.feed(Tick(), 102 + INTERVAL_NS)
    assert QuorumLost(1, 2) in told


def test_a_life_that_lost_its_quorum_asks_the_empty_store_again() -> None:
    """It announced itself there meanwhile, so the store may know all that a quorum knows."""
    driver = suspended()
    driver.feed(Tick(), 102 + INTERVAL_NS)
    assert [to for to, _ in driver.sent(Register)].count("store1:1") == 1
    driver.grant(2, now=120)
    assert not driver.machine.can_send
    driver.grant(1, now=121)
    assert driver.machine.can_send


def test_an_empty_store_does_not_bring_a_life_back() -> None:
    """A later life may have had a quorum with the disk that is gone."""
    driver = suspended()
    driver.feed(Tick(), 102 + INTERVAL_NS)
    driver.grant(2, now=120)
    driver.grant(1, now=121, memory=LOST)
    assert not driver.machine.can_send
    assert not [one for one in driver.effects if isinstance(one, Broadcast) and isinstance(one.message, SourceInfo)]
    assert Overtaken() in driver.grant(0, now=122, lives_term=9, term=9)


def test_an_empty_answer_does_not_lower_the_consensus() -> None:
    """A quorum kept its memory, so what the empty store does not hold says nothing."""
    driver = asking(consensus=Consensus.LOWEST)
    driver.grant(1, memory=LOST)
    driver.grant(0, high=4)
    assert driver.grant(2, high=4)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)


def test_stale_grants_of_new_stores_do_not_bring_a_life_back() -> None:
    """All stores were new when it began. Since then store 1 lost its disk, and a later life may have had that store."""
    driver = asking()
    driver.grant(0, 1, 2, memory=NEW)
    assert driver.machine.can_send
    for index in (1, 2):
        driver.feed(Gone(f"store{index}:1"), 100)
    driver.feed(Tick(), 100 + INTERVAL_NS)
    driver.grant(1, now=120, memory=NEW)
    assert not driver.machine.can_send
