"""Every test is in one of the two tiers, both run, and the table names what exists."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support import changed, tiers
from tests.support.tree import ROOT, name, python_files

MOST_SMOKE_TESTS: Final = 14
"""Tests of the gate that may start processes of the system."""


def functions(path: Path) -> Iterator[str]:
    """Yield the tests of a file, named as pytest does."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield f"{name(path)}::{node.name}"


TESTS: Final = {name(path): list(functions(path)) for path in python_files("tests") if path.stem.startswith("test_")}


def runs(test: str, wanted: str) -> bool:
    """Return whether `--tier=wanted` runs a test: no folder above it and not its file may be passed over."""
    file = test.partition("::")[0]
    above = [folder.as_posix() for folder in Path(file).parents if folder.as_posix() != "."]
    return wanted == tiers.ALL or (tiers.tier(test) == wanted and all(tiers.has(one, wanted) for one in [file, *above]))


def test_every_test_is_in_one_tier_and_everything_includes_the_gate() -> None:
    every = [test for tests in TESTS.values() for test in tests]
    assert every
    assert all(runs(test, tiers.GATE) + runs(test, tiers.REST) == runs(test, tiers.ALL) == 1 for test in every)
    assert all(any(runs(test, tier) for test in every) for tier in (tiers.GATE, tiers.REST))


def test_lines_name_what_exists_and_change_the_tier() -> None:
    known = {*TESTS, *(test for tests in TESTS.values() for test in tests)}
    known |= {folder.as_posix() for file in TESTS for folder in Path(file).parents}
    assert sorted({line.partition("[")[0] for line in tiers.LINES} - known) == []
    above = {line: tiers.tier(tiers.parent(line)) for line in tiers.LINES}
    assert [line for line, tier in tiers.LINES.items() if above[line] == tier and line not in tiers.SMOKE] == []


def test_smoke_tests_are_few_and_in_the_gate() -> None:
    assert len(tiers.SMOKE) <= MOST_SMOKE_TESTS
    assert {tiers.tier(test) for test in tiers.SMOKE} == {tiers.GATE}


def test_a_case_is_in_the_tier_of_its_test() -> None:
    assert tiers.tier(f"{tiers.SMOKE[0]}[a/b::c]") == tiers.GATE
    assert tiers.tier("tests/e2e/test_demo.py::test_x[1]") == tiers.REST


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("core/stablecast/core/store/repository.py", "tests/core/store/test_repository.py"),
        ("core/stablecast/core/store/repository.py", "tests/models/test_equal.py"),
        ("adapters/stablecast/cli/cluster.py", "tests/adapters/cli/test_cluster.py"),
        ("adapters/stablecast/client/source.py", "tests/e2e/test_upgrade.py"),
        ("tests/support/daemons.py", "tests/adapters/ops/fleet/test_fleet.py"),
        ("packaging/monitoring/alerts.yml", "tests/packaging/test_monitoring.py"),
    ],
)
def test_tests_follow_what_changed(file: str, test: str) -> None:
    assert test in changed.selected([file])


def test_a_room_is_not_followed_by_all_tests() -> None:
    few = set(changed.selected(["adapters/stablecast/faststream/broker.py"]))
    assert few
    assert len(few) < len(TESTS) / 4


def test_the_night_runs_everything() -> None:
    assert "make test-all" in (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")


def test_a_test_of_the_gate_that_starts_a_process_fails(pytestconfig: pytest.Config) -> None:
    selection = tiers.Selection(tiers.REST)
    selection.watch("tests/test_tiers.py::test_x")
    with pytest.raises(AssertionError, match=r"test_x is in the gate and starts a process"):
        selection.audit("subprocess.Popen", ())
    selection.watch(tiers.SMOKE[0])
    selection.audit("subprocess.Popen", ())
