"""Faults in the source text of machines, each with its killer: the simulation, test or model that must find it.

`make mutants` plants them one by one in a copy of the package: the core, the transports, or a package of the adapters.
It prints the kill rate. A mutant that survives shows a hole in the tests.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import FAULTY, ROOT

CORE: Final = ROOT / "core" / "stablecast" / "core"
TRANSPORTS: Final = ROOT / "transports" / "stablecast" / "transports"

ADAPTERS: Final = ROOT / "adapters" / "stablecast"

FOUND: Final = 1
"""Exit status of a killer that found the fault: pytest's for failed tests, and that of `worlds`."""

MEASURING: Final = ("COVERAGE_", "COV_CORE_")
"""Prefixes of the environment variables that make a child process measure its coverage."""

TIMEOUT_S: Final = 300
"""Time limit of a killer, in seconds."""

TEST_TIMEOUT_S: Final = 30
"""Time limit of one test of a killer, in seconds. A test that hangs with a fault fails, so it has found the fault."""


@attrs.frozen
class Worlds:
    """A killer that runs `count` simulated worlds from seed `first` on; one of them must break `rule`."""

    rule: str
    first: int = 0
    count: int = 40

    def command(self, _: Path) -> tuple[str, ...]:
        return ("tools.mutants.worlds", self.rule, str(self.first), str(self.count))

    def __str__(self) -> str:
        return f"worlds, {self.rule}"


@attrs.frozen
class WholeWorlds:
    """A killer that runs `count` whole worlds from seed `first` on; one of them must break `rule`.

    Traces are judged as well if `traced`: that takes twice as long, and finds more.
    """

    rule: str
    first: int = 0
    count: int = 25
    traced: bool = False

    def command(self, _: Path) -> tuple[str, ...]:
        traced = ("traced",) if self.traced else ()
        return ("tools.mutants.whole_worlds", self.rule, str(self.first), str(self.count), *traced)

    def __str__(self) -> str:
        return f"whole worlds, {self.rule}"


@attrs.frozen
class Test:
    """A killer that is a test of the suite, by its node id below `tests/`."""

    __test__ = False

    node: str
    files: tuple[str, ...] = ()
    """Files of tests in place of the node, of which the tests in the gate run."""

    def command(self, core: Path) -> tuple[str, ...]:
        return run_tests(core, self)

    def __str__(self) -> str:
        return self.node or f"{len(self.files)} files of the gate"


@attrs.frozen
class Graph:
    """A killer that compares graphs: the faulty machines must differ from the graph of this configuration."""

    configuration: str

    def command(self, _: Path) -> tuple[str, ...]:
        return ("stablecast.cli.main", "model", "equal", self.configuration)

    def __str__(self) -> str:
        return f"graph, {self.configuration}"


@attrs.frozen
class Mutant:
    """A fault: in `module` of the core, the text `before`, which occurs once, becomes `after`.

    A module of the transports has the prefix `transports/`, a module of the adapters `adapters/` and its package.
    """

    name: str
    module: str
    before: str
    after: str
    killer: Worlds | WholeWorlds | Test | Graph

    @property
    def package(self) -> Path:
        match self.module.split("/"):
            case ["transports", *_]:
                return TRANSPORTS
            case ["adapters", package, *_]:
                return ADAPTERS / package
            case _:
                return CORE

    @property
    def file(self) -> str:
        """The path of the module's file below its package."""
        parts = self.module.split("/")
        return "/".join(parts[{"transports": 1, "adapters": 2}.get(parts[0], 0) :]) + ".py"

    def text(self) -> str:
        """Return the module's text with the fault. Raises ValueError unless `before` occurs exactly once."""
        text = (self.package / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"its text occurs {text.count(self.before)} times in {self.module}.py")
        return text.replace(self.before, self.after)

    def plant(self, directory: Path) -> None:
        """Copy the package to `directory` with the fault. Raises ValueError as `text` does."""
        target = directory / "stablecast" / self.package.name
        shutil.copytree(self.package, target, ignore=shutil.ignore_patterns("__pycache__"))
        (target / self.file).write_text(self.text(), encoding="utf-8")

    def survival(self) -> str:
        """Return why the killer did not find the fault, or an empty string if it did."""
        with tempfile.TemporaryDirectory(prefix="stablecast-mutant-") as directory:
            core = Path(directory)
            try:
                self.plant(core)
                status, line = run(self.killer.command(core), core)
            except ValueError as error:
                return str(error)
            except subprocess.TimeoutExpired:
                return f"not found within {TIMEOUT_S} s"
        return "" if status == FOUND else f"exit {status}: {line}"


def run_tests(core: Path, *tests: Test) -> tuple[str, ...]:
    """Return the arguments of `python -m` that run these tests on the copy in `core`."""
    # pytest puts its own paths before PYTHONPATH, so the option must name the copy.
    paths = f"pythonpath={core} . core transports adapters"
    nodes = [f"tests/{test.node}" for test in tests if test.node] + [file for test in tests for file in test.files]
    tiers = ["--tier=gate"] if any(test.files for test in tests) else []
    return (
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-cov",
        "-o",
        paths,
        "--timeout",
        f"{TEST_TIMEOUT_S}",
        *tiers,
        *nodes,
    )


def run(command: Sequence[str], core: Path) -> tuple[int, str]:
    """Run a killer with the copy of a package in `core`; return its exit status and last line.

    Raises:
        TimeoutExpired: If the killer takes longer than `TIMEOUT_S`.
    """
    # Coverage of the copy must not be recorded, because the copy is gone when the report is made.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(MEASURING)}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={
            **inherited,
            "PYTHONPATH": f"{core}:{ROOT}",
            FAULTY: str(core),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "true",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else "no output"
