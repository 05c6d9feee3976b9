"""The tiers of the tests. `tests/tiers.toml` says which tests are in the gate, and why the others are not.

`make test` runs the gate (`--tier=gate`), and `make test-all` both tiers (`--tier=all`, the default). `.ci/run` runs
the gate, then the rest of the rooms that changed (`--tier=rest`). The longest line that a test's name begins with
decides.

A test of the gate starts no process, unless it is a smoke test. One that does fails where it does.
"""

import os
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.tree import ROOT, name

TABLE: Final = ROOT / "tests" / "tiers.toml"
GATE: Final = "gate"
REST: Final = "rest"
ALL: Final = "all"
GATE_STATES: Final = 5_000
"""States of the largest graph that the gate explores when something that it shows has changed."""
STARTS: Final = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
"""Audit events of a program that starts a process."""


_TABLE: Final = tomllib.loads(TABLE.read_text(encoding="utf-8"))
SMOKE: Final[tuple[str, ...]] = tuple(_TABLE["smoke"])
"""The tests of the gate that start processes."""
LINES: Final[Mapping[str, str]] = {
    **{line: REST for lines in _TABLE["rest"].values() for line in lines},
    **dict.fromkeys([*SMOKE, *_TABLE["gate"]], GATE),
}
"""The tier of each line of the table."""


def tier(test: str) -> str:
    """Return the tier of a test, a file or a folder, named as pytest does."""
    test = test if test in LINES else test.partition("[")[0]
    while test:
        if test in LINES:
            return LINES[test]
        test = parent(test)
    return GATE


def parent(test: str) -> str:
    """Return the file of a test, or the folder of a file or a folder; an empty string above all."""
    test, _, case = test.partition("[")
    return test if case else test.rpartition("::" if "::" in test else "/")[0]


def has(path: str, wanted: str) -> bool:
    """Return whether a file or a folder has a test of this tier."""
    return tier(path) == wanted or any(
        of == wanted and line.startswith((f"{path}/", f"{path}::")) for line, of in LINES.items()
    )


class Selection:
    """The plugin that leaves tests of another tier out, and watches over those of the gate.

    Args:
        wanted: The tier to run.
        budget_s: Seconds of the clock after which no further test begins; 0 is no limit.
    """

    def __init__(self, wanted: str, budget_s: int = 0) -> None:
        self.late = 0
        """Number of tests that the budget had no time for."""
        self._wanted, self._budget_s = wanted, budget_s
        self._began = time.monotonic()
        self._watched = ""
        if wanted == GATE:
            sys.addaudithook(self.audit)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Import no file of which no test is to run."""
        mine = (
            self._wanted == ALL or not collection_path.is_relative_to(ROOT) or has(name(collection_path), self._wanted)
        )
        return None if mine else True

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave the tests of the other tier out."""
        mine = [item for item in items if self._wanted in (ALL, tier(item.nodeid))]
        if len(mine) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in mine])
            items[:] = mine

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Begin a test, unless the budget is spent."""
        if self._budget_s and time.monotonic() - self._began > self._budget_s:
            self.late += 1
            return True
        self.watch(item.nodeid)
        return None

    def watch(self, test: str) -> None:
        """Let no process be started from now on, unless this is a smoke test."""
        self._watched = "" if test.startswith(SMOKE) else test

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let a run succeed whose files have no test of the other tier."""
        if self._wanted == REST and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """Watch no longer: pytest itself may start what it likes."""
        self._watched = ""

    def audit(self, event: str, _: tuple[Any, ...]) -> None:
        """Fail where a watched test starts a process."""
        if self._watched and event in STARTS:
            test, self._watched = self._watched, ""
            raise AssertionError(f"{test} is in the gate and starts a process: see {name(TABLE)}")


class Spent:
    """The plugin that writes the processor seconds of each test file, its child processes included: `--spent=FILE`.

    Args:
        to: The file. Each run adds its lines: seconds, those of children, number of tests, name of the file.
    """

    def __init__(self, to: Path) -> None:
        self._to = to
        self._sums: dict[str, list[float]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Add the seconds of one test to those of its file."""
        before = os.times()
        result = yield
        after = os.times()
        sums = self._sums.setdefault(item.nodeid.partition("::")[0], [0.0, 0.0, 0])
        sums[0] += sum(after[:2]) - sum(before[:2])
        sums[1] += sum(after[2:4]) - sum(before[2:4])
        sums[2] += 1
        return result

    def pytest_sessionfinish(self) -> None:
        """Write the sums, and as the last line what the whole process used."""
        whole = os.times()
        lines = [f"{own:8.2f} {children:8.2f} {tests:5} {file}" for file, (own, children, tests) in self._sums.items()]
        lines.append(f"{sum(whole[:2]):8.2f} {sum(whole[2:4]):8.2f}       in all")
        with self._to.open("a", encoding="utf-8") as file:
            file.write("\n".join(sorted(lines, reverse=True)) + "\n")
