"""Faults planted in the source text of machines, each with the simulation, the test or the model that must find it.

`make mutants` plants them one by one in a copy of the core, of the transports or of the journal, and prints the kill
rate; a survivor is a hole in the tests.
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

from tests.support.tree import ROOT

CORE: Final = ROOT / "core" / "stablecast" / "core"
TRANSPORTS: Final = ROOT / "transports" / "stablecast" / "transports"

JOURNAL: Final = ROOT / "adapters" / "stablecast" / "store" / "journal"

OTHERS: Final = {"transports": TRANSPORTS, "journal": JOURNAL}
"""Packages beside the core, by the word that stands before the name of a module there."""

FOUND: Final = 1
"""Exit status of a killer that found something: pytest's for failed tests, and that of `worlds`."""

MEASURING: Final = ("COVERAGE_", "COV_CORE_")
"""How the variables begin by which a child process is told to measure its coverage."""

TIMEOUT_S: Final = 300
"""How long a killer may take, in seconds."""


@attrs.frozen
class Worlds:
    """Simulated worlds, from seed `first` on; one of the next `count` must break `rule`."""

    rule: str
    first: int = 0
    count: int = 40

    def command(self, _: Path) -> tuple[str, ...]:
        """What to run, for `python -m`."""
        return ("tests.mutants.worlds", self.rule, str(self.first), str(self.count))

    def __str__(self) -> str:
        return f"worlds, {self.rule}"


@attrs.frozen
class Test:
    """A test of the suite, by its node id below `tests/`."""

    __test__ = False

    node: str

    def command(self, core: Path) -> tuple[str, ...]:
        """What to run, for `python -m`."""
        return run_tests(core, self)

    def __str__(self) -> str:
        return self.node


@attrs.frozen
class Graph:
    """A configuration of a model, whose graph the machines must not have any more."""

    configuration: str

    def command(self, _: Path) -> tuple[str, ...]:
        """What to run, for `python -m`."""
        return ("stablecast.cli.main", "model", "equal", self.configuration)

    def __str__(self) -> str:
        return f"graph, {self.configuration}"


@attrs.frozen
class Mutant:
    """In `module` of the core, `before`, which is there once, becomes `after`.

    A module of the transports is named with `transports/` in front, one of the journal with `journal/`.
    """

    name: str
    module: str
    before: str
    after: str
    killer: Worlds | Test | Graph

    @property
    def package(self) -> Path:
        """The package that the module is in."""
        return OTHERS.get(self.module.partition("/")[0], CORE)

    @property
    def file(self) -> str:
        """The module's file, below its package."""
        first, _, rest = self.module.partition("/")
        return f"{rest if first in OTHERS else self.module}.py"

    def text(self) -> str:
        """The module with the fault. Raises ValueError unless `before` is there exactly once."""
        text = (self.package / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"its text is {text.count(self.before)} times in {self.module}.py")
        return text.replace(self.before, self.after)

    def plant(self, directory: Path) -> None:
        """Make a copy of the package with the fault. Raises ValueError as `text` does."""
        target = directory / "stablecast" / self.package.name
        shutil.copytree(self.package, target, ignore=shutil.ignore_patterns("__pycache__"))
        (target / self.file).write_text(self.text(), encoding="utf-8")

    def survives(self) -> str:
        """Why the fault is not found, or nothing if it is."""
        with tempfile.TemporaryDirectory(prefix="stablecast-mutant-") as directory:
            core = Path(directory)
            try:
                self.plant(core)
                status, said = run(self.killer.command(core), core)
            except ValueError as error:
                return str(error)
            except subprocess.TimeoutExpired:
                return f"nothing found in {TIMEOUT_S} s"
        return "" if status == FOUND else f"exit {status}: {said}"


def run_tests(core: Path, *tests: Test) -> tuple[str, ...]:
    """What to run, for `python -m`; pytest puts its own paths first, so it must be told where the copy is."""
    paths = f"pythonpath={core} . core transports adapters"
    nodes = (f"tests/{test.node}" for test in tests)
    return ("pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-cov", "-o", paths, *nodes)


def run(command: Sequence[str], core: Path) -> tuple[int, str]:
    """Exit status and last line of a killer, with a copy of a package below a directory. Raises TimeoutExpired."""
    # A killer's lines are those of a copy that is gone when the report is made: they must not be counted.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(MEASURING)}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**inherited, "PYTHONPATH": f"{core}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else "nothing said"
