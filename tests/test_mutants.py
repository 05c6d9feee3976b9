"""The table of planted faults fits the code. These tests plant a few of them; `make mutants` plants all."""

import re
from collections import Counter
from typing import Final

import attrs
import pytest

from stablecast.evidence.rules.judges import ONE_TRACE, SIMULATOR, TRACES_TOGETHER
from tests.support.tree import ROOT
from tools.mutants.__main__ import main
from tools.mutants.mutant import CORE, Mutant, Test, WholeWorlds, Worlds
from tools.mutants.table import MUTANTS

LEAST: Final = 40
"""Least number of mutants of the core and its neighbours, and of those of the programs around them."""

MOST_WORLDS: Final = 40
"""Number of worlds for one mutant: a test is the better killer of a fault that needs more of them."""

VOCABULARY: Final = {
    "__init__", "effects", "errors", "events", "inputs", "messages", "records", "repairs", "settings", "status",
    "stored_contents", "units",
}  # fmt: skip
"""Modules of the core without rules of their own."""

SAMPLE: Final = (
    "one-store-fewer-is-a-quorum",
    "wire-numbers-compared-as-plain-integers",
    "a-lease-starts-at-the-answer",
    "copies-are-released-before-they-are-stable",
    "the-same-store-is-asked-again",
    "acknowledged-before-it-is-synced",
    "the-removal-of-a-source-is-not-sent",
    "a-batch-of-the-live-stream-has-the-wrong-first-number",
)


def named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


def test_every_fault_can_be_planted() -> None:
    for mutant in MUTANTS:
        compile(mutant.text(), mutant.module, "exec")
        assert mutant.before != mutant.after, mutant.name


def test_mutant_names_are_unique() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []


def test_every_module_with_rules_has_a_mutant() -> None:
    assert len(MUTANTS) >= LEAST
    modules = (path for path in CORE.rglob("*.py") if path.stem not in VOCABULARY)
    assert {mutant.module for mutant in MUTANTS if mutant.package == CORE} == {
        path.relative_to(CORE).with_suffix("").as_posix() for path in modules
    }


def test_every_rule_of_the_simulator_has_a_mutant_that_breaks_it() -> None:
    worlds = [mutant.killer for mutant in MUTANTS if isinstance(mutant.killer, Worlds)]
    broken = {killer.rule for killer in worlds}
    assert broken >= set(SIMULATOR.checks)
    assert broken <= {rule for judge in (SIMULATOR, ONE_TRACE, TRACES_TOGETHER) for rule in judge.checks}
    assert max(killer.count for killer in worlds) <= MOST_WORLDS


def test_the_programs_have_mutants_that_whole_worlds_find() -> None:
    programs = {mutant.name: mutant for mutant in MUTANTS if mutant.module.startswith("adapters/")}
    found = [mutant.killer for mutant in programs.values() if isinstance(mutant.killer, WholeWorlds)]
    assert len(programs) >= LEAST
    assert {mutant.package.name for mutant in programs.values()} >= {"client", "runtime", "store", "resolver"}
    assert len({killer.rule for killer in found}) > 3
    assert max(killer.count for killer in found) <= MOST_WORLDS


def test_the_tests_that_kill_mutants_exist() -> None:
    nodes = {mutant.killer.node for mutant in MUTANTS if isinstance(mutant.killer, Test)}
    for file, _, case in sorted(node.partition("::") for node in nodes):
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        test = case.partition("[")[0]
        assert not test or re.search(rf"^(async )?def {test}\(", text, re.MULTILINE), f"{file} has no {test}"


def test_the_sample_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(SAMPLE)) == 0
    assert f"kill rate 100 %: {len(SAMPLE)} of {len(SAMPLE)} mutants" in capsys.readouterr().out


def test_a_mutant_that_no_killer_finds_survives(capsys: pytest.CaptureFixture[str]) -> None:
    harmless = attrs.evolve(named(SAMPLE[1]), after="return 0 < (b - a) % MODULUS <= HALF - 1")
    assert harmless.survival().startswith("exit 0: ")
    unplanted = attrs.evolve(harmless, before="nowhere")
    assert unplanted.survival() == "its text occurs 0 times in machine/serial.py"
    assert main(["no-such-mutant"]) == 2
    assert "there is no mutant no-such-mutant" in capsys.readouterr().err
