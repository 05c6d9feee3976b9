"""The table of planted faults fits the code; a few of them are planted here, `make mutants` plants all."""

import re
from collections import Counter
from typing import Final

import attrs
import pytest

from stablecast.evidence.rules.judges import SIMULATOR
from tests.mutants.__main__ import main
from tests.mutants.mutant import CORE, Mutant, Test, Worlds
from tests.mutants.table import MUTANTS
from tests.support.tree import ROOT

LEAST: Final = 40
"""Mutants."""

MOST_WORLDS: Final = 40
"""Worlds for one mutant: a fault that more of them are needed for is better found by a test."""

NAMES: Final = {"effects", "errors", "events", "inputs", "messages", "settings", "units"}
WORDS: Final = {"__init__", "records", "repairs", "status", *NAMES}
"""Modules of the core without rules of their own."""

SAMPLE: Final = (
    "one-store-fewer-is-a-quorum",
    "wire-numbers-compared-as-plain-integers",
    "a-lease-from-the-answer",
    "copies-go-before-they-are-stable",
    "the-same-store-is-asked-again",
    "acknowledged-before-it-is-synced",
    "a-removed-source-is-not-told",
)


def named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_fault_can_be_planted(mutant: Mutant) -> None:
    compile(mutant.text(), mutant.module, "exec")
    assert mutant.before != mutant.after


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []


def test_there_are_faults_in_every_module_with_rules() -> None:
    assert len(MUTANTS) >= LEAST
    modules = (path for path in CORE.rglob("*.py") if path.stem not in WORDS)
    assert {mutant.module for mutant in MUTANTS if mutant.package == CORE} == {
        path.relative_to(CORE).with_suffix("").as_posix() for path in modules
    }


def test_every_rule_of_the_simulator_has_a_fault_that_breaks_it() -> None:
    worlds = [mutant.killer for mutant in MUTANTS if isinstance(mutant.killer, Worlds)]
    assert {killer.rule for killer in worlds} == set(SIMULATOR.checks)
    assert max(killer.count for killer in worlds) <= MOST_WORLDS


def test_tests_that_must_find_a_fault_exist() -> None:
    nodes = {mutant.killer.node for mutant in MUTANTS if isinstance(mutant.killer, Test)}
    for file, _, case in sorted(node.partition("::") for node in nodes):
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        test = case.partition("[")[0]
        assert not test or re.search(rf"^(async )?def {test}\(", text, re.MULTILINE), f"{file} has no {test}"


@pytest.mark.timeout(300)
def test_these_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(SAMPLE)) == 0
    assert f"kill rate 100 %: {len(SAMPLE)} of {len(SAMPLE)} mutants" in capsys.readouterr().out


def test_a_fault_that_nothing_finds_survives(capsys: pytest.CaptureFixture[str]) -> None:
    harmless = attrs.evolve(named(SAMPLE[1]), after="return 0 < (b - a) % MODULUS <= HALF - 1")
    assert harmless.survives().startswith("exit 0: ")
    unplanted = attrs.evolve(harmless, before="nowhere")
    assert unplanted.survives() == "its text is 0 times in machine/serial.py"
    assert main(["no-such-mutant"]) == 2
    assert "there is no mutant no-such-mutant" in capsys.readouterr().err
