"""Worlds: no violations, everything exercised, the same again in every process."""

import subprocess
import sys
from collections import Counter

from stablecast.sim.coverage import Coverage
from stablecast.sim.runner import run
from stablecast.sim.schedule import draw
from stablecast.sim.setup import Setup
from tests.support.tree import ROOT

SEEDS = 60

DIGEST = """
import hashlib
from stablecast.sim.runner import run
from stablecast.sim.schedule import draw
for seed in (3, 7, 12):
    lines = []
    report = run(draw(seed), transcript=lines)
    print(hashlib.sha256("\\n".join(lines).encode()).hexdigest(), report.fingerprint)
"""


ELSEWHERE = {"PARK"}
"""What no world has: nobody takes turns."""


def test_sixty_worlds_keep_all_rules() -> None:
    """S1 to X1, in plain worlds and others; every chart is walked about in."""
    coverage, counts, setups = Coverage(), Counter[str](), 0
    with coverage.watching():
        for seed in range(SEEDS):
            schedule = draw(seed)
            report = run(schedule)
            assert not report.violations, f"seed {seed}: {report.violations}"
            counts += report.counts
            setups += schedule.setup != Setup()
    assert counts["sent"] > 20 * SEEDS
    assert min(setups, SEEDS - setups) > SEEDS // 4
    assert counts["proxies"] > 0
    visited = coverage.as_json()
    assert set(visited["receiver"]["states"]) >= {"WAITING", "REGISTERING", "CHOOSING", "ACTIVE", "JOINING"}
    states = {f"{name}.{state}" for name, machine in visited.items() for state in machine["states"]}
    never = {f"{name}.{what}" for name, machine in visited.items() for what in machine["never"]}
    assert states & never <= {"source.OVER", "lifetime.EXPIRED"}
    often = {what for what in never if not set(what.split(".")) & {*ELSEWHERE, "WITHDRAW", "MOVE", "election"}}
    assert len(often - states) < 20


def test_same_seed_same_transcript_whatever_the_hash_seed() -> None:
    paths = ":".join(str(ROOT / part) for part in ("core", "transports", "adapters"))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    assert outputs.pop().count(b"\n") == 3


def test_a_wiped_disk_is_survived_by_what_its_quorum_survives() -> None:
    for seed in range(15):
        assert not run(draw(seed, wipe=True)).violations, f"seed {seed}"
