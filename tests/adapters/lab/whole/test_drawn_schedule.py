"""Drawn schedules of whole worlds: every kind of fault and setup has its share, and none breaks a condition."""

from functools import partial

import pytest

from stablecast.lab.schedules.faults import OF_PROGRAMS, Kind
from stablecast.lab.whole.drawn_domains import PARTED_SEEDS
from stablecast.lab.whole.drawn_schedule import (
    ENDS_STORES,
    FACTORS,
    FAULTS,
    PAUSES_MS,
    REFILL_MS,
    ROUTED_FACTOR,
    ROUTER_FAULTS,
    STRIKES_PATHS,
    STRIKES_ROUTERS,
    draw,
)
from stablecast.lab.whole.schedule import (
    DAEMON,
    DISK_FAULTS,
    HORIZON_MS,
    MEMORY,
    RECEIVERS,
    ROUTERS,
    SECOND_RECEIVER,
    SIDES,
    SOURCE,
    STORES,
    TURNS,
    Setup,
)

DRAWN = [draw(seed) for seed in range(600)]
PARTED = [draw(seed) for seed in range(PARTED_SEEDS, PARTED_SEEDS + 300)]
"""Worlds that all have two domains."""
TWICE = [schedule for schedule in DRAWN if schedule.horizon_ms == 2 * HORIZON_MS + REFILL_MS]
"""Worlds in which two stores lose their disks, one after the other."""
PLAIN = Setup(pause_ms=PAUSES_MS[0])


def _reads(habit: str, setup: Setup) -> bool:
    return habit in setup.modes


def test_a_seed_draws_the_same_schedule() -> None:
    assert [draw(seed) for seed in range(20)] == DRAWN[:20]
    assert len({schedule.text() for schedule in DRAWN}) == len(DRAWN)


def test_all_faults_happen_and_are_over_at_the_horizon() -> None:
    faults = [fault for schedule in DRAWN for fault in schedule.faults]
    assert {fault.kind for fault in faults} == set(OF_PROGRAMS)
    for schedule in (*DRAWN, *PARTED):
        assert all(one.at_ms >= 0 and one.at_ms + one.span_ms <= schedule.horizon_ms for one in schedule.faults)
    once = [schedule for schedule in DRAWN if schedule not in TWICE and not schedule.setup.far]
    assert {len(schedule.faults) for schedule in once} == set(range(FAULTS[0], FAULTS[1] + 2)), "one more: a departure"


def test_faults_last_longer_than_each_time_out() -> None:
    lengths = {schedule.horizon_ms for schedule in DRAWN if not schedule.setup.far}
    assert lengths == {HORIZON_MS, *(HORIZON_MS * factor for factor in FACTORS), 2 * HORIZON_MS + REFILL_MS}
    assert max(fault.span_ms for schedule in DRAWN for fault in schedule.faults) > 30_000
    assert sum(schedule.horizon_ms == HORIZON_MS for schedule in DRAWN) > 0.8 * len(DRAWN)


def test_a_second_store_loses_its_disk_after_a_pause() -> None:
    assert len(TWICE) > 3
    for schedule in TWICE:
        before, after = (
            {one.who for one in schedule.faults if one.kind in DISK_FAULTS and (one.at_ms > HORIZON_MS) is later}
            for later in (False, True)
        )
        assert len(before) == len(after) == 1
        assert before != after
        assert not any(HORIZON_MS < one.at_ms < HORIZON_MS + REFILL_MS for one in schedule.faults)


def test_no_schedule_breaks_the_disks_of_a_quorum() -> None:
    """At most one disk of a world fails, never one with two of the copies, and none where groups have one store."""
    struck = 0
    for schedule in DRAWN:
        weak = {fault.who for fault in schedule.faults if fault.kind in DISK_FAULTS}
        struck += bool(weak)
        assert len(weak) <= 1 + (schedule in TWICE)
        assert weak <= set(STORES)
        assert not (schedule.setup.daemon and DAEMON in weak)
        assert not (weak and "ume_store_group" in dict(schedule.setup.options))
    assert struck > len(DRAWN) // 10


def test_receivers_leave_only_where_stores_keep_messages_for_newcomers() -> None:
    paced = [found for found in DRAWN if "ume_receiver_paced_persistence" in dict(found.setup.options)]
    assert len(paced) > 10
    assert not any(fault.kind is Kind.LEAVE or found.setup.late for found in paced for fault in found.faults)
    leaving = [(found, fault.who) for found in DRAWN for fault in found.faults if fault.kind is Kind.LEAVE]
    assert all(who in (SOURCE, *RECEIVERS) for _, who in leaving)
    departed = [found for found, who in leaving if who == SOURCE]
    assert len(departed) > 0.05 * len(DRAWN)
    assert not any(fault.kind is Kind.TWIN and fault.who == SOURCE for found in departed for fault in found.faults)
    assert not any(found.setup.storage == TURNS for found in departed)


def test_nothing_ends_a_store_in_memory_or_moves_a_source_from_its_first_store() -> None:
    found = {kind: [one for one in DRAWN if one.setup.storage == kind] for kind in (MEMORY, TURNS)}
    assert all(len(schedules) > 10 for schedules in found.values())
    for schedule in found[MEMORY]:
        assert not any(fault.who in STORES and fault.kind in ENDS_STORES for fault in schedule.faults)
    for schedule in found[TURNS]:
        assert not any(fault.who in STORES or fault.kind is Kind.TWIN for fault in schedule.faults)
        assert not any(SOURCE in (fault.who, fault.other) for fault in schedule.faults if fault.kind in STRIKES_PATHS)
    assert not any(fault.kind is Kind.BLACKOUT for one in (*found[MEMORY], *found[TURNS]) for fault in one.faults)


@pytest.mark.parametrize(
    "has",
    [
        lambda setup: len(setup.topics) > 1,
        lambda setup: setup.handles > 1,
        lambda setup: setup.second,
        lambda setup: setup.daemon,
        lambda setup: setup.named,
        lambda setup: setup.ids == "regid",
        lambda setup: setup.ids == "new",
        lambda setup: setup.hasty,
        lambda setup: setup.late,
        lambda setup: setup.ending == "deregister",
        lambda setup: "explicit" in setup.modes,
        lambda setup: "ume_store_group" in dict(setup.options),
        lambda setup: len(setup.finders) > 1,
        lambda setup: setup.storage == MEMORY,
        lambda setup: setup.storage == TURNS,
        lambda setup: setup.kept > 0,
        lambda setup: any(option.startswith("repository-size-limit=") for option in setup.store_options),
        lambda setup: setup == PLAIN,
        lambda setup: setup.stored,
        lambda setup: setup.pattern,
        lambda setup: setup.start,
        lambda setup: setup.group,
        lambda setup: setup.apart,
        lambda setup: setup.hot,
        lambda setup: setup.far,
        *(partial(_reads, habit) for habit in ("arrival", "settled", "fickle", "impatient", "threads", "reader")),
    ],
)
def test_each_kind_of_setup_has_its_share(has: object) -> None:
    assert callable(has)
    share = sum(bool(has(schedule.setup)) for schedule in DRAWN) / len(DRAWN)
    assert 0.015 < share < 0.5


def test_a_router_is_struck_in_each_world_that_has_one() -> None:
    assert all(schedule.setup.far for schedule in PARTED)
    assert not any(fault.who in ROUTERS for schedule in DRAWN if not schedule.setup.far for fault in schedule.faults)
    struck = [[fault for fault in schedule.faults if fault.who in ROUTERS] for schedule in PARTED]
    assert {fault.kind for faults in struck for fault in faults} == {*STRIKES_ROUTERS}
    assert {fault.other for faults in struck for fault in faults} == {"", *SIDES, *ROUTERS}
    once = [
        len(faults) for faults, one in zip(struck, PARTED, strict=True) if one.horizon_ms == HORIZON_MS * ROUTED_FACTOR
    ]
    assert {*once} == set(range(ROUTER_FAULTS[0], ROUTER_FAULTS[1] + 1))


def test_linked_routers_are_struck_alike_and_cut_off_from_each_other() -> None:
    linked = [schedule for schedule in PARTED if schedule.setup.linked]
    assert 0.25 < len(linked) / len(PARTED) < 0.55
    faults = [fault for schedule in linked for fault in schedule.faults if fault.who in ROUTERS]
    assert {(fault.who, fault.other) for fault in faults} == {
        *((who, "") for who in ROUTERS),
        *((who, other) for who in ROUTERS for other in ROUTERS if who != other),
    }


def test_each_program_is_on_either_side_of_the_router() -> None:
    for name in (SOURCE, *RECEIVERS, *STORES):
        assert 0.3 < sum(name in schedule.setup.far for schedule in PARTED) / len(PARTED) < 0.7
    for schedule in PARTED:
        setup = schedule.setup
        assert setup.finder in {"relays", "services", "both"}, "stores take part in resolution"
        assert not any((setup.daemon, setup.tight, setup.storage == TURNS))
        assert setup.domain(SECOND_RECEIVER) == setup.domain(RECEIVERS[1])


def test_habits_are_drawn_only_where_their_rules_hold() -> None:
    for setup in (schedule.setup for schedule in (*DRAWN, draw(30010))):
        paced = "ume_receiver_paced_persistence" in dict(setup.options)
        if paced or setup.kept or setup.tight or setup.storage:
            assert not setup.group
            assert not setup.apart
        if paced or setup.kept or setup.tight or setup.storage == TURNS:
            assert "reader" not in setup.modes
        assert not (setup.storage == TURNS and setup.stored)
        assert not (setup.hot and "settled" in setup.modes)
    assert not any(
        fault.kind is Kind.LEAVE and fault.who in RECEIVERS
        for schedule in DRAWN
        for fault in schedule.faults
        if schedule.setup.group
    )
