"""The compiled build: compiled modules behave like their sources, and only suitable modules are compiled."""

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hatch_build import CompiledBuildHook, compiled
from tests.mutants.mutant import MEASURING
from tests.support.tree import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LISTED = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["modules"]

FEW = [
    "core/stablecast/core/machine/chart.py",
    "core/stablecast/core/machine/ranges.py",
    "core/stablecast/core/source/endpoint.py",
    "core/stablecast/core/source/stability.py",
    "core/stablecast/core/store/repository.py",
    "core/stablecast/core/store/message_window.py",
]
"""A sample of each kind of module: ranges, the charts' engine, and machines with slots. All modules take minutes."""

UNHEIRED = ("PYTHONPATH", *MEASURING)
"""Variables that a child must not inherit. Coverage measures the tree, not a copy that is deleted before the report."""

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
NEEDS_COMPILER = pytest.mark.skipif(
    shutil.which(COMPILER) is None and "CI" not in os.environ,
    reason=f"{COMPILER}, which compiles modules, is missing: run 'sudo apt-get install -y gcc'",
)


def stablecast(*arguments: str, path: Path | None = None) -> str:
    """Return the output of the command, with the modules at `path` before all others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(UNHEIRED)}
    environment = inherited | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-m", "stablecast.cli.main", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def some_compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the core in which a few modules are compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    portion = folder / "portion"
    shutil.copytree(ROOT / "core", portion, ignore=shutil.ignore_patterns("__pycache__"))
    for made, place in compiled(ROOT, FEW, folder / "build").items():
        shutil.copy(made, portion / place)
    return portion


@NEEDS_COMPILER
@pytest.mark.timeout(180)
def test_compiled_and_plain_worlds_have_the_same_outcome(some_compiled: Path) -> None:
    def outcome(path: Path | None) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(stablecast("sim", "--seeds=6", "--jobs=1", "--json", path=path))
        return {name: value for name, value in result.items() if name != "seconds"}

    assert outcome(some_compiled) == outcome(None)


@NEEDS_COMPILER
@pytest.mark.timeout(180)
def test_a_compiled_core_has_the_graph_of_the_model(some_compiled: Path) -> None:
    result = json.loads(stablecast("model", "equal", "Stability/graph_small", "--json", path=some_compiled))
    assert [model["equal"] for model in result["models"]] == [True]


@NEEDS_COMPILER
@pytest.mark.timeout(180)
def test_the_version_names_the_running_form(some_compiled: Path) -> None:
    assert stablecast("--version", path=some_compiled).endswith(" (compiled)\n")
    assert stablecast("--version").endswith(" (pure)\n")


def test_a_wheel_is_pure_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STABLECAST_COMPILED", raising=False)
    hook = CompiledBuildHook(str(ROOT), {"modules": FEW}, None, None, "", "wheel")  # type: ignore[arg-type]
    data: dict[str, Any] = {}
    hook.initialize("standard", data)
    assert (data, hook.dependencies()) == ({}, [])


@NEEDS_COMPILER
def test_the_build_needs_only_development_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STABLECAST_COMPILED", "1")
    hook = CompiledBuildHook(str(ROOT), {"modules": FEW}, None, None, "", "wheel")  # type: ignore[arg-type]
    assert set(hook.dependencies()) <= set(PYPROJECT["project"]["optional-dependencies"]["dev"])


def test_listed_modules_exist() -> None:
    assert [module for module in LISTED if not (ROOT / module).is_file()] == []
    assert set(FEW) <= set(LISTED)


def test_compiled_modules_do_not_use_super_without_arguments() -> None:
    """attrs creates a class with slots a second time, and a compiled `super()` keeps the first one."""
    found = [
        f"{module}:{node.lineno}: super() of no arguments; name the base class"
        for module in LISTED
        for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args
    ]
    assert not found, "\n".join(found)
