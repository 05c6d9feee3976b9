"""Faults planted in the source text of the core, each with the simulation or the test that must find it.

`make mutants` plants them one by one in a copy of the core and prints the kill rate; a survivor is a hole in the tests.
"""

from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import ROOT

CORE: Final = ROOT / "core" / "stablecast" / "core"


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
        """What to run, for `python -m`; pytest puts its own paths first, so it must be told where the core is."""
        paths = f"pythonpath={core} . transports adapters"
        return ("pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-cov", "-o", paths, f"tests/{self.node}")

    def __str__(self) -> str:
        return self.node


@attrs.frozen
class Mutant:
    """In `module` of the core, `before`, which is there once, becomes `after`."""

    name: str
    module: str
    before: str
    after: str
    killer: Worlds | Test

    def plant(self, directory: Path) -> None:
        """Make a copy of the core with the fault. Raises ValueError unless `before` is there exactly once."""
        text = (CORE / f"{self.module}.py").read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"mutant {self.name}: its text is {text.count(self.before)} times in {self.module}.py")
        target = directory / "stablecast" / "core"
        target.mkdir(parents=True)
        for path in CORE.glob("*.py"):
            (target / path.name).write_bytes(path.read_bytes())
        (target / f"{self.module}.py").write_text(text.replace(self.before, self.after), encoding="utf-8")
