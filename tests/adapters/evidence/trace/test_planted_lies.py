"""The simulator's checkers and the judge of traces agree: on clean worlds, on worlds in which one endpoint lies
(`tests.adapters.evidence.trace.planted_faults`), and on worlds of a faulty core.

The checkers see the disks, the judge has the traces and the core without the fault.
"""

from pathlib import Path

import pytest

from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.reports import VerificationSummary
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.sim.runner import run as run_world
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.trace.fault_injection import Lie, tell
from tests.adapters.evidence.trace.planted_faults import LIES
from tools.mutants.mutant import FOUND, Mutant, Worlds, run
from tools.mutants.table import MUTANTS

PLANTED = [mutant for mutant in MUTANTS if isinstance(mutant.killer, Worlds) and mutant.killer.rule != "X1"]
"""But for machines that raise: what they were told is in no trace."""

SAMPLE = ("one-more-message-is-acknowledged", "acknowledged-before-it-is-synced")

UNSURVIVED = 20
"""All three disks lost something that was stable: they were wiped, came back as older copies, or went bad."""


def judged(seed: int, directory: Path) -> VerificationSummary:
    assert run_world(draw(seed), directory).violations == ()
    return verify_paths(find([directory]))


@pytest.mark.parametrize("seed", range(3))
def test_both_agree_on_clean_worlds(tmp_path: Path, seed: int) -> None:
    summary = judged(seed, tmp_path)
    assert summary.violations == []
    assert summary.records > 0


def test_both_agree_that_what_no_quorum_survived_is_not_promised(tmp_path: Path) -> None:
    summary = judged(UNSURVIVED, tmp_path)
    assert summary.violations == []
    assert {text[:2] for text in summary.untold} >= {"S2", "S3"}, "it does not say that it is right, either"


def test_there_are_lies_of_many_kinds() -> None:
    assert len(LIES) >= 30


@pytest.mark.no_cover
@pytest.mark.parametrize(("number", "lie"), list(enumerate(LIES)), ids=[lie.name for lie in LIES])
def test_both_blame_the_same_endpoint_and_record_for_a_lie(number: int, lie: Lie, tmp_path: Path) -> None:
    """The checkers see the rule broken; the judge names the record, and no other endpoint's machine."""
    told, broken = tell(lie, tmp_path, number)
    assert lie.rule in broken
    found = {(one.path, one.record, one.rule) for one in verify_paths(find([tmp_path])).violations}
    assert (told.path, told.record, lie.judged) in found
    differing = {(path, record) for path, record, rule in found if rule == "replay"}
    assert differing <= {(told.path, told.record)}, "nobody else did what the core does not"


def agree(directory: Path, mutants: list[Mutant]) -> None:
    blamed = set()
    for mutant in mutants:
        killer = mutant.killer
        assert isinstance(killer, Worlds)
        core, world = directory / f"core-{mutant.name}", directory / mutant.name
        mutant.plant(core)
        arguments = (killer.rule, str(killer.first), str(killer.count), str(world))
        status, said = run(("tests.adapters.evidence.trace.worlds", *arguments), core)
        assert status == FOUND, f"{mutant.name}: {said}"
        if verify_paths(find([world])).violations:
            blamed.add(mutant.name)
    assert blamed == {mutant.name for mutant in mutants}, "each world is blamed, by both"


def test_both_agree_on_a_core_with_a_fault(tmp_path: Path) -> None:
    agree(tmp_path, [mutant for mutant in PLANTED if mutant.name in SAMPLE])


@pytest.mark.thorough
@pytest.mark.timeout(0)
def test_both_agree_on_every_fault_that_breaks_a_rule(tmp_path: Path) -> None:
    agree(tmp_path, PLANTED)
