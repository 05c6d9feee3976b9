"""Worlds: no violations, everything exercised, the same again in every process."""

import subprocess
import sys

from stablecast.sim.coverage import Coverage
from stablecast.sim.runner import run
from stablecast.sim.schedule import draw
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


ELSEWHERE = {"WITHDRAW", "WITHDRAWING", "WITHDRAWN", "FORGOTTEN", "LEFT", "MOVE", "PARK", "JOINING"}
"""What these worlds have not: nobody deregisters, no store moves or takes turns, no source does without stores."""


def test_sixty_worlds_keep_all_rules() -> None:
    coverage, sent = Coverage(), 0
    with coverage.watching():
        for seed in range(SEEDS):
            report = run(draw(seed))
            assert not report.violations, f"seed {seed}: {report.violations}"
            sent += report.counts["sent"]
    assert sent > 20 * SEEDS
    visited = coverage.as_json()
    assert set(visited["receiver"]["states"]) >= {"WAITING", "REGISTERING", "CHOOSING", "ACTIVE"}
    rare = {"RENEWING.REFUSAL", "SUSPENDED.OVERTAKEN", "OVER", "EXPIRED", "INACTIVE.EXPIRE"}
    never = {what for machine in visited.values() for what in machine["never"]}
    assert {what for what in never if not set(what.split(".")) & ELSEWHERE} <= rare


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
