"""Schedules of both sides: a seed makes one schedule, and each fault has its steps. A difference is seen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.lab.schedules.faults import Kind
from stablecast.lab.whole.schedule import RECEIVERS, STORES, WorldSchedule
from tools.agreement.__main__ import Comparison, figure, kind_of, main, table
from tools.agreement.drawn_schedules import FIRST_MS, HORIZON_MS, KINDS, LOSSES, draw
from tools.agreement.outcomes import PlayedSchedule, outcomes
from tools.agreement.plan_translation import NAMES, translate
from tools.agreement.sides import real, simulated
from tools.torture.history import UNDONE
from tools.torture.plan import LATE, Plan

SEEDS = range(300)
STABLE = "511 ms: stable while stop store2 for 2579 ms"


def test_a_seed_makes_one_schedule_that_can_be_kept() -> None:
    for seed in SEEDS[:30]:
        schedule = draw(seed)
        assert schedule == draw(seed) == WorldSchedule.from_json(schedule.as_json())
        plan = translate(schedule).plan
        assert plan == Plan.read(plan.text())


def test_every_fault_is_drawn() -> None:
    assert {fault.kind for seed in SEEDS for fault in draw(seed).faults} == set(KINDS)


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_a_schedule_breaks_no_condition(seed: int) -> None:
    schedule = draw(seed)
    faults = schedule.faults
    assert all(FIRST_MS <= fault.at_ms <= fault.at_ms + fault.span_ms <= HORIZON_MS for fault in faults)
    assert len({fault.who for fault in faults if fault.kind in LOSSES or fault.kind is Kind.FULL}) <= 1
    if any(fault.kind in LOSSES for fault in faults):
        weak = next(fault.who for fault in faults if fault.kind in LOSSES)
        assert not {name for fault in faults for name in (fault.who, fault.other)} & set(STORES) - {weak}


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_every_fault_begins_and_ends_in_the_plan(seed: int) -> None:
    schedule = draw(seed)
    translated = translate(schedule)
    steps = translated.plan.steps
    assert len(steps) == len(translated.edges)
    assert list(steps) == sorted(steps, key=lambda step: step.at)
    assert {step.do for step in steps} <= {*UNDONE, *UNDONE.values(), "kill", "start", "damage"}
    for index, fault in enumerate(schedule.faults):
        edges = {edge for one, edge in translated.edges if one == index}
        assert edges == ({"begin", "end"} if fault.span_ms else {"begin"})
    hosts = {NAMES[name] for name in NAMES if not (schedule.setup.late and name == RECEIVERS[-1])}
    assert {name for step in steps for name in (step.who, step.other)} <= hosts | {""}
    assert (LATE in hosts) is False


@pytest.fixture(scope="module")
def played() -> tuple[WorldSchedule, PlayedSchedule]:
    schedule = draw(99)  # one store is stopped for longer than a second
    return schedule, simulated(schedule)


def test_a_world_has_the_expected_outcomes(played: tuple[WorldSchedule, PlayedSchedule]) -> None:
    found = outcomes(*played)
    assert found["violations"] == found["programs that ended by themselves"] == "none"
    assert found["receiver0 has every stable message"] is found["receiver1 has every stable message"] is True
    assert found[STABLE] is True
    assert found["silent sources"] == len(played[0].setup.topics) * played[0].setup.handles


Change = Callable[[PlayedSchedule], PlayedSchedule]


def _without(what: str, **fields: Any) -> Change:
    def change(played: PlayedSchedule) -> PlayedSchedule:
        lines = [
            line
            for line in played.lines
            if not (line["is"] == what and all(line.get(name) == value for name, value in fields.items()))
        ]
        assert len(lines) < len(played.lines)
        return attrs.evolve(played, lines=lines)

    return change


def _with(**line: Any) -> Change:
    return lambda played: attrs.evolve(played, lines=[*played.lines, {"t": 1 << 60, "run": "x", **line}])


@pytest.mark.parametrize(
    ("outcome", "change"),
    [
        ("receiver0 has every stable message", _without("delivered", receiver="receiver0")),
        ("silent sources", _without("quiet")),
        ("some messages stable", _without("stable")),
        (STABLE, _without("stable")),
        (STABLE.replace("stable", "delivered to receiver1"), _without("delivered", receiver="receiver1")),
        ("the last run continues the numbers", _without("registered")),
        ("programs that ended by themselves", _with(**{"is": "gone", "who": "store1"})),
        ("violations", lambda played: attrs.evolve(played, violations=["order: one after another"])),
        ("receiver1 reported a loss", _with(**{"is": "event", "name": "UnrecoverableLoss", "run": "receiver1.1"})),
    ],
)
def test_a_difference_is_seen(outcome: str, change: Change, played: tuple[WorldSchedule, PlayedSchedule]) -> None:
    schedule, world = played
    found = Comparison(schedule, outcomes(*played), outcomes(schedule, change(world)), 1.0)
    assert outcome in found.differences
    assert "0 of 1 schedules (0.0%)" in figure([found], 1.0)
    line = next(line for line in table([found]).splitlines() if line.startswith(f"{kind_of(outcome)} "))
    assert line.endswith(str(schedule.seed))


def test_a_history_that_did_not_run_is_a_difference(
    tmp_path: Path, played: tuple[WorldSchedule, PlayedSchedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.torture.__main__.arguments", lambda *_: ["false"])
    schedule, _ = played
    found = outcomes(schedule, real(schedule, tmp_path))
    assert found["violations"] == "tool"


def test_shown_schedules_can_be_replayed_in_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "7", "--schedules", "1", "--show"]) == 0
    assert capsys.readouterr().out == draw(7).text() + "\n"
