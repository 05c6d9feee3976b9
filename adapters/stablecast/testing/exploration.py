"""All worlds of one test: its regressions, one world without faults, and one world for each seed."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Final

import attrs

from stablecast.lab.world.world import prepared
from stablecast.testing.faults import FaultKinds
from stablecast.testing.minimal_schedule import minimised
from stablecast.testing.parallel_seeds import first_failing
from stablecast.testing.run_options import RunOptions
from stablecast.testing.schedule import Activity, Strike, draw
from stablecast.testing.world_run import Body, Outcome, WorldSetting, run_world


def write_traces(outcome: Outcome, directory: Path) -> int:
    """Write the traces of all hosts to one directory, as the tools for traces want them; return their number."""
    traces = {
        f"{host}-{PurePath(path).name}": content
        for host, backup in outcome.traces.items()
        for path, _, content in backup.files
        if isinstance(content, bytes)
    }
    if traces:
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("*.sct"):
            old.unlink()
    for name, content in traces.items():
        (directory / name).write_bytes(content)
    return len(traces)


CLEAN_SEED: Final = 0
"""Seed of the world without faults. The activity in it is the measure for all schedules."""

MOST_STRIKES: Final = 5
"""Strikes of one schedule at most, by default."""


@attrs.frozen
class Regression:
    """A schedule that once failed, with its seed."""

    seed: int
    strikes: Sequence[Strike]


@attrs.frozen
class WorldPlan:
    """The worlds that a test asks for.

    Attributes:
        setting: The parts of each world that do not depend on its seed.
        seeds: Number of seeds.
        faults: The kinds of faults.
        most: Strikes of one schedule at most.
        regressions: Schedules that run first.
    """

    setting: WorldSetting = WorldSetting()
    seeds: int = 200
    faults: FaultKinds = FaultKinds()
    most: int = MOST_STRIKES
    regressions: tuple[Regression, ...] = ()


@attrs.define
class WorldReport:
    """The result of all worlds of one test.

    Attributes:
        worlds: Number of worlds that ran, those of the search for a minimal schedule aside.
        faults: Number of faults by kind.
        seconds: The time that they took.
        found: The minimal failing run; None if the test passed.
        first: The number of strikes of the failing schedule before it was minimised.
        searched: Number of worlds that the search for the minimal schedule ran.
        traces: The directory with the traces of the failing run; empty without.
        real: Whether the worlds were of this machine.
        left_out: Kinds of faults that a real machine does not permit.
        traces_fail: Whether the run with traces failed, too. To write traces takes time, so another run may result.
    """

    worlds: int = 0
    faults: Counter[str] = attrs.Factory(Counter)
    seconds: float = 0.0
    found: Outcome | None = None
    first: int = 0
    searched: int = 0
    traces: str = ""
    traces_fail: bool = True
    real: bool = False
    left_out: list[str] = attrs.Factory(list)

    def count(self, struck: Iterable[str]) -> None:
        self.worlds += 1
        self.faults.update(struck)


class WorldExploration:
    """Run the worlds of one test until one fails."""

    def __init__(self, plan: WorldPlan, body: Body, options: RunOptions, name: str = "test") -> None:
        """Prepare the worlds of a test; `body` is called anew for each. `name` is for the directory of traces."""
        self._name = name
        self._plan = plan
        self._body = body
        self._options = options
        self.report = WorldReport()

    def run(self) -> WorldReport:
        """Run all worlds, and return the report. A failing schedule is minimised."""
        began = time.monotonic()
        try:
            with prepared():
                failing = self._first_failing()
                if failing is not None:
                    self._minimise(failing)
        finally:
            self.report.seconds = time.monotonic() - began
        return self.report

    def _first_failing(self) -> Outcome | None:
        plan, options = self._plan, self._options
        if options.seed is None:
            for regression in plan.regressions:
                outcome = self._one(regression.seed, regression.strikes)
                if outcome.failure is not None:
                    return outcome
        seeds = plan.seeds if options.seeds is None or not plan.seeds else options.seeds
        if not seeds:
            return None
        clean = self._one(CLEAN_SEED, ())
        if clean.failure is not None:
            return clean
        if options.seed is not None:
            return self._failing(options.seed, clean.activity)
        return self._search(range(1, seeds), clean.activity)

    def _search(self, seeds: Sequence[int], activity: Activity) -> Outcome | None:
        """Return the run of the first failing seed, or None; several processes share the seeds."""

        def one(seed: int) -> tuple[bool, list[str]]:
            outcome = self._run(seed, self._draw(seed, activity))
            return outcome.failure is not None, [strike.fault for strike in outcome.struck]

        found = first_failing(seeds, one, self._options.jobs, lambda _, struck: self.report.count(struck))
        return None if found is None else self._run(found, self._draw(found, activity))

    def _failing(self, seed: int, activity: Activity) -> Outcome | None:
        outcome = self._one(seed, self._draw(seed, activity))
        return outcome if outcome.failure is not None else None

    def _draw(self, seed: int, activity: Activity) -> list[Strike]:
        return draw(seed, self._plan.faults, activity, self._plan.most)

    def _one(self, seed: int, strikes: Sequence[Strike]) -> Outcome:
        outcome = self._run(seed, strikes)
        self.report.count(strike.fault for strike in outcome.struck)
        return outcome

    def _run(self, seed: int, strikes: Sequence[Strike]) -> Outcome:
        return run_world(self._plan.setting, self._body, seed, strikes)

    def _minimise(self, failing: Outcome) -> None:
        found, searched = minimised(failing, lambda strikes: self._run(failing.seed, strikes))
        self.report.first, self.report.found, self.report.searched = len(failing.strikes), found, searched
        if self._options.traces:
            self._trace(found, Path(self._options.traces) / f"{self._name}-{failing.seed}")

    def _trace(self, found: Outcome, directory: Path) -> None:
        """Run the failing world once more, and keep its traces."""
        setting = attrs.evolve(self._plan.setting, traced=True)
        traced = run_world(setting, self._body, found.seed, found.strikes)
        if write_traces(traced, directory):
            self.report.traces = str(directory)
            self.report.traces_fail = traced.failure is not None
