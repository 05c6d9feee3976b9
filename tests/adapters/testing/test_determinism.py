"""A seed has one run: in another process, under another hash seed, and for the second time."""

import os
import subprocess
import sys

import pytest

from stablecast.testing import crash, delay, partition, stop
from stablecast.testing.exploration import WorldPlan
from stablecast.testing.schedule import draw
from stablecast.testing.world_run import WorldSetting, run_world
from tests.adapters.testing.planted_bugs import BUGS
from tests.support.tree import PYTHON_PATH, ROOT

FAULTS = crash("store") | crash("app", power=True) | partition() | stop() | delay()
SEEDS = (1, 2, 3, 1)


def digests() -> list[str]:
    """The digests of some worlds with stores and faults."""
    bug = next(one for one in BUGS if one.name == "handler_not_idempotent")
    plan = WorldPlan(WorldSetting(bug.stores), faults=FAULTS)

    def run(seed: int, clean: bool = False) -> str:
        strikes = [] if clean else draw(seed, plan.faults, activity, plan.most)
        return run_world(plan.setting, lambda world: bug.scenario(world, True), seed, strikes).digest

    activity = run_world(plan.setting, lambda world: bug.scenario(world, True), 0, ()).activity
    return [run(0, clean=True), *(run(seed) for seed in SEEDS)]


@pytest.mark.no_cover
def test_a_seed_has_one_run() -> None:
    command = [sys.executable, "-c", f"from {__name__} import digests; print(*digests())"]
    found = {
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHON_PATH},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(found) == 1
    clean, first, second, third, again = found.pop().split()
    assert first == again
    assert len({clean, first, second, third}) == 4
