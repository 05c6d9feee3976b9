"""The simulator's checkers, the judge in process and Spark agree: on clean worlds, on worlds in which one endpoint lies
(`tests.adapters.evidence.trace.planted_faults`), and on worlds of a faulty core.

The checkers see the disks, the judges have the traces and the core without the fault.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stablecast.evidence.spark.verification_job import verify_on
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import TraceViolation, VerificationSummary
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.sim.runner import run as run_world
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.spark.test_verification_job import seen
from tests.adapters.evidence.trace.fault_injection import tell
from tests.adapters.evidence.trace.planted_faults import LIES
from tools.mutants.mutant import FOUND, Mutant, Worlds, run
from tools.mutants.table import MUTANTS

CLEAN_SEEDS = range(3)

PLANTED = [mutant for mutant in MUTANTS if isinstance(mutant.killer, Worlds) and mutant.killer.rule != "X1"]
"""But for machines that raise: what they were told is in no trace."""

SAMPLE = ("one-more-message-is-acknowledged", "acknowledged-before-it-is-synced")


def judge_all(spark: SparkSession, worlds: dict[str, Path]) -> tuple[VerificationSummary, VerificationSummary]:
    """Judge all worlds by both judges in one go."""
    files = [path for directory in worlds.values() for path in find([directory])]
    return verify_paths(files), verify_on(spark, files).summary


def test_three_judges_agree_on_clean_worlds(spark: SparkSession, tmp_path: Path) -> None:
    worlds = {}
    for seed in CLEAN_SEEDS:
        worlds[str(seed)] = tmp_path / str(seed)
        assert run_world(draw(seed), worlds[str(seed)]).violations == ()
    here, there = judge_all(spark, worlds)
    assert here.violations == there.violations == []
    assert here.untold == there.untold
    assert here.records == there.records > 0


UNSURVIVED = draw(20)
"""All three disks lost something that was stable: they were wiped, came back as older copies, or went bad."""


def test_three_judges_agree_that_what_no_quorum_survived_is_not_promised(spark: SparkSession, tmp_path: Path) -> None:
    assert run_world(UNSURVIVED, tmp_path).violations == ()
    here, there = judge_all(spark, {"": tmp_path})
    assert here.violations == there.violations == []
    assert here.untold == there.untold
    assert {text[:2] for text in here.untold} >= {"S2", "S3"}, "they do not say that it is right, either"


def firsts(summary: VerificationSummary) -> set[tuple[str, int, str]]:
    """Return the first record of each file that each rule blames; Spark omits later frames."""
    blamed: dict[Path, list[TraceViolation]] = {}
    for one in summary.violations:
        blamed.setdefault(one.path, []).append(one)
    return {
        (path.name, one.record, one.rule)
        for path, some in blamed.items()
        for one in some
        if one.record == min(other.record for other in some)
    }


@pytest.mark.no_cover
def test_three_judges_blame_the_same_endpoint_and_record_for_every_lie(spark: SparkSession, tmp_path: Path) -> None:
    """The checkers see the rule broken; both judges of traces name the record, and no other endpoint's machine."""
    told, worlds = [], {}
    for number, lie in enumerate(LIES):
        worlds[lie.name] = tmp_path / str(number)
        where, broken = tell(lie, worlds[lie.name], number)
        assert lie.rule in broken, lie.name
        told.append(where)
    assert len(told) >= 30
    here, there = judge_all(spark, worlds)
    assert firsts(there) == firsts(here)
    found = {(one.path, one.record, one.rule) for one in there.violations}
    assert [one.lie.name for one in told if (one.path, one.record, one.lie.judged) not in found] == []
    differing = {(path, record) for path, record, rule in found if rule == "replay"}
    assert differing <= {(one.path, one.record) for one in told}, "nobody else did what the core does not"


def agree(spark: SparkSession, directory: Path, mutants: list[Mutant]) -> None:
    worlds = {}
    for mutant in mutants:
        killer = mutant.killer
        assert isinstance(killer, Worlds)
        core, worlds[mutant.name] = directory / f"core-{mutant.name}", directory / mutant.name
        mutant.plant(core)
        arguments = (killer.rule, str(killer.first), str(killer.count), str(worlds[mutant.name]))
        status, said = run(("tests.adapters.evidence.spark.worlds", *arguments), core)
        assert status == FOUND, f"{mutant.name}: {said}"
    here, there = judge_all(spark, worlds)
    assert seen(there) == seen(here)
    blamed = {one.path.parent.name for one in here.violations}
    assert blamed == set(worlds), "each world is blamed, by both"


def test_three_judges_agree_on_a_core_with_a_fault(spark: SparkSession, tmp_path: Path) -> None:
    agree(spark, tmp_path, [mutant for mutant in PLANTED if mutant.name in SAMPLE])


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_three_judges_agree_on_every_fault_that_breaks_a_rule(spark: SparkSession, tmp_path: Path) -> None:
    agree(spark, tmp_path, PLANTED)
