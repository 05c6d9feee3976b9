"""A seed makes one plan, which can be kept and played again. No plan breaks a condition of the guarantees."""

from pathlib import Path

import pytest

from tools.torture.__main__ import main, options, plans
from tools.torture.history import UNDONE
from tools.torture.kinds import KINDS, draw
from tools.torture.plan import KEPT_BYTES, STORES, Plan

SEEDS = range(60)
OF_DISKS = {"fill", "fail", "power", "damage"}


@pytest.mark.parametrize("seed", SEEDS[: len(KINDS)])
def test_a_seed_makes_one_plan_that_can_be_kept(seed: int) -> None:
    plan = draw(seed)
    assert plan == draw(seed) == Plan.read(plan.text())
    assert plan.kind == list(KINDS)[seed % len(KINDS)]


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_differ(kind: str) -> None:
    assert len({draw(seed, kind).text().partition('"kind"')[2] for seed in range(10)}) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_quorum_keeps_its_disks(kind: str) -> None:
    """All stores may lose their power at once, because synced writes survive that."""
    for plan in (draw(seed, kind) for seed in SEEDS):
        assert len({step.who for step in plan.steps if step.do == "damage"}) <= 1
        assert kind == "powercuts" or len({step.who for step in plan.steps if step.do in OF_DISKS}) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_steps_name_known_programs_and_can_be_undone(kind: str) -> None:
    for plan in (draw(seed, kind) for seed in SEEDS):
        _check_steps(plan)


def _check_steps(plan: Plan) -> None:
    everybody = {"relay", *STORES, *plan.sources, *plan.receivers, *(["daemon"] if plan.daemon else [])}
    assert {step.who for step in plan.steps} <= everybody
    assert {step.other for step in plan.steps} <= everybody | {""}
    assert list(plan.steps) == sorted(plan.steps, key=lambda step: step.at)
    undone = {*UNDONE.values()}
    for_good = {"kill", "start", "copy", "damage", "none", "readdress", "fork"}
    assert {step.do for step in plan.steps} <= {*UNDONE, *undone, *for_good}
    assert not set(plan.later) - {step.who for step in plan.steps if step.do == "start"}


def test_the_newest_messages_within_the_limit_of_the_stores_are_due() -> None:
    """Seed 920151 sent 147 MB, and its judge expected all of them of a new receiver."""
    plan = draw(920_151, "mixed")
    assert plan.sources["source"]["size"] == 70_000
    kept = plan.kept_by_owner()
    assert kept["source"] * 70_000 < KEPT_BYTES < (kept["source"] + 10) * 70_000
    assert kept["second"] > 100 * kept["source"]
    few = draw(0, "overtaken")
    assert few.kept_by_owner() == {"source": few.kept}


def test_a_shown_plan_can_be_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--seed", "7", "--show"]) == 0
    kept = tmp_path / "plan.json"
    kept.write_text(capsys.readouterr().out, encoding="utf-8")
    assert plans(options(["--plan", str(kept)])) == [draw(7)]


def test_seeds_of_one_kind() -> None:
    chosen = plans(options(["--seed", "3", "--histories", "2", "--kind", "backlog"]))
    assert [(plan.seed, plan.kind) for plan in chosen] == [(3, "backlog"), (4, "backlog")]
