"""Worlds: no violations, everything exercised, the same again in every process."""

import subprocess
import sys
from collections import Counter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.store import StoreEndpoint
from stablecast.lab.sim import runner
from stablecast.lab.sim.coverage import Coverage
from stablecast.lab.sim.runner import SETTLE_NS, run
from stablecast.lab.sim.schedule import draw
from stablecast.lab.sim.setup import HORIZON_MS, WorldSetup
from stablecast.lab.sim.source_checkers import Checkers
from tests.support.tree import ROOT

SEEDS = 60

DIGEST = """
import hashlib
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
for seed in (3, 7, 12):
    lines = []
    report = run(draw(seed), transcript=lines)
    print(hashlib.sha256("\\n".join(lines).encode()).hexdigest(), report.fingerprint)
"""


ELSEWHERE = {"PARK"}
"""Rows that no world visits: these worlds take no turns."""


@pytest.mark.no_cover
def test_sixty_worlds_keep_all_rules() -> None:
    """S1 to X1, in plain worlds and others; every chart is walked about in."""
    coverage, counts, setups = Coverage(), Counter[str](), 0
    with coverage.watching():
        for seed in range(SEEDS):
            schedule = draw(seed)
            report = run(schedule)
            assert not report.violations, f"seed {seed}: {report.violations}"
            counts += report.counts
            # An application's habit is drawn on its own: a world is plain if all else of it is.
            setups += attrs.evolve(schedule.setup, habit=WorldSetup().habit) != WorldSetup()
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


@pytest.mark.no_cover
def test_a_wiped_disk_is_survived_by_what_its_quorum_survives() -> None:
    for seed in range(15):
        assert not run(draw(seed, wipe=True)).violations, f"seed {seed}"


@pytest.mark.no_cover
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1_000_000))
def test_a_world_happens_the_same_way_every_time(seed: int) -> None:
    """Other worlds in the same process make no difference."""
    transcripts: list[list[str]] = [[], []]
    first, second = (run(draw(seed), transcript=lines) for lines in transcripts)
    assert transcripts[0] == transcripts[1]
    assert first == second


def test_whatever_a_machine_raises_is_told() -> None:
    def fail(*_: object) -> None:
        raise ValueError("planted")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreEndpoint, "handle_timeout", fail)
        (violation,) = run(draw(3)).violations
    assert violation.rule == "X1"
    assert violation.text.startswith("ValueError: planted (test_runner.py:")


def test_what_does_not_settle_is_told_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "trouble", lambda _: ("L1", "planted"))
    report = run(draw(5))  # No disk loses anything there.
    assert [(violation.rule, violation.text) for violation in report.violations] == [("L1", "planted")]
    assert report.virtual_ns == HORIZON_MS * MILLISECOND + SETTLE_NS


def test_a_broken_rule_ends_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkers, "on_life", lambda self, *_: self.facts.report("S2", "planted"))
    report = run(draw(3))
    assert {violation.rule for violation in report.violations} == {"S2"}
    assert report.virtual_ns < HORIZON_MS * MILLISECOND
