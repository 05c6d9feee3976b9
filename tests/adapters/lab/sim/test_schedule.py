"""Schedules: drawn, written down, read again."""

import json

import pytest

from stablecast.lab.schedules.faults import OF_ENDPOINTS, Kind, ScheduleError
from stablecast.lab.sim.schedule import Schedule, draw
from stablecast.lab.sim.setup import CLIENTS, HORIZON_MS, SOURCE, WorldSetup


def test_schedules_survive_json() -> None:
    for seed in range(30):
        schedule = draw(seed)
        assert Schedule.from_json(json.loads(json.dumps(schedule.as_json()))) == schedule


def test_everything_is_over_at_the_horizon() -> None:
    faults = [fault for seed in range(200) for fault in draw(seed).faults]
    assert all(0 <= fault.at_ms < HORIZON_MS and 0 <= fault.span_ms <= HORIZON_MS - fault.at_ms for fault in faults)
    assert {fault.kind for fault in faults} == set(OF_ENDPOINTS)
    assert str(faults[0])


@pytest.mark.rows("P-505")
def test_in_turns_no_second_life_of_the_source_begins_beside_the_first() -> None:
    """They might have stores of their own."""
    drawn = [draw(seed) for seed in range(600)]
    turns = [schedule for schedule in drawn if schedule.setup.turns]
    assert len(turns) > 10
    assert not any(fault.who == SOURCE and fault.kind is Kind.TAKEOVER for found in turns for fault in found.faults)
    assert any(fault.who == SOURCE and fault.kind is Kind.TAKEOVER for found in drawn for fault in found.faults)


@pytest.mark.rows("P-207")
def test_stores_with_a_name_come_back_elsewhere_at_once() -> None:
    drawn = [schedule for schedule in map(draw, range(300)) if schedule.setup.named]
    quick = [fault for found in drawn for fault in found.faults if (fault.kind, fault.span_ms) == (Kind.KILL, 1)]
    assert len([fault for fault in quick if fault.variant]) >= len(drawn) > 0


def test_disks_are_lost_and_damaged_in_every_world_on_demand() -> None:
    for schedule in (draw(seed, wipe=True) for seed in range(100)):
        acts = {fault.kind for fault in schedule.faults}
        assert schedule.setup.turns or (Kind.ROT in acts and acts & {Kind.WIPE, Kind.RESTORE})


@pytest.mark.rows("P-502")
def test_disks_go_bad_where_more_than_one_has_what_is_stable() -> None:
    """In turns the one store that has it is all there is (P-502)."""
    drawn = [draw(seed) for seed in range(300)]
    bad = [found for found in drawn if any(fault.kind is Kind.ROT for fault in found.faults)]
    assert len(drawn) // 6 < len(bad) < len(drawn) // 3
    assert not any(found.setup.turns for found in bad)


def test_two_living_processes_claim_one_client_where_leases_are_brief() -> None:
    """Else the second would be refused until all faults are over. In turns they might have stores of their own."""
    drawn = [draw(seed) for seed in range(300)]
    rivals = [found for found in drawn if any(fault.kind is Kind.TWIN for fault in found.faults)]
    assert len(drawn) // 6 < len(rivals) < len(drawn) // 3
    assert all(found.setup.brief and found.setup.rules.sizes and not found.setup.turns for found in rivals)
    claimed = {fault.who for found in rivals for fault in found.faults if fault.kind is Kind.TWIN}
    assert claimed == set(CLIENTS)


def test_a_schedule_of_before_setups_is_plain() -> None:
    value = {name: part for name, part in draw(0).as_json().items() if name != "setup"}
    assert Schedule.from_json(value).setup == WorldSetup()


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"seed": 1, "sends": [[1]], "faults": []},
        {"seed": 1, "sends": [], "faults": [{"kind": "kill"}]},
        {"seed": 1, "sends": [], "faults": [{"kind": "eat", "at_ms": 1, "who": "source"}]},
        {"seed": 1, "sends": [], "faults": [], "setup": {"moon": 1}},
    ],
)
def test_what_is_no_schedule_is_refused(value: object) -> None:
    with pytest.raises(ScheduleError, match="not a schedule"):
        Schedule.from_json(value)


@pytest.mark.parametrize(
    ("kind", "who", "other"),
    [("full", "source", ""), ("leave", "store0", ""), ("reset", "store0", "moon"), ("power", "store0", "")],
)
def test_faults_of_nobody_are_refused(kind: str, who: str, other: str) -> None:
    fault = {"at_ms": 1, "kind": kind, "who": who, "other": other, "span_ms": 1}
    with pytest.raises(ScheduleError, match="strikes nobody of that name"):
        Schedule.from_json({"seed": 1, "sends": [], "faults": [fault]})
