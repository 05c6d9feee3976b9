"""Run many seeds of a simulator on all cores, or one schedule again, and print what failed.

The first few failing schedules are made smaller, and written with a trace of every endpoint.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from stablecast.lab.schedules.faults import ScheduleError
from stablecast.text import plural
from stablecast.text.console import say
from stablecast.text.json_text import from_json

CHUNK_SEEDS: Final = 10
"""Seeds that one process runs before it reports."""

MAX_SHRUNK: Final = 5
"""Most failing seeds that are shrunk and written. All others are only counted and named."""


@attrs.frozen
class SeedRange:
    """Select the seeds to run. `directory` receives schedule and traces of failing seeds; `jobs` 0: one per core."""

    seeds: int
    first: int = 0
    jobs: int = 0
    directory: Path = Path("stablecast-sim")


@attrs.define
class SeedsResult:
    """Hold the result of some seeds: counts of the worlds, failing reports, visits of charts, and digests by seed."""

    seeds: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    failed: list[Any] = attrs.field(factory=list)
    coverage: dict[str, Counter[str]] = attrs.field(factory=dict)
    digests: dict[int, str] = attrs.field(factory=dict)

    def add_report(self, report: Any) -> None:
        self.seeds += 1
        self.counts += report.counts
        if report.violations:
            self.failed.append(report)

    def add(self, other: "SeedsResult") -> None:
        self.seeds += other.seeds
        self.counts += other.counts
        self.failed += other.failed
        self.digests |= other.digests
        for chart, visits in other.coverage.items():
            self.coverage.setdefault(chart, Counter()).update(visits)


@attrs.frozen
class Simulator:
    """One kind of worlds. A report has `schedule`, `violations` and `counts`; a schedule has `seed` and `faults`.

    Attributes:
        command: The command that runs it.
        prefix: The name of the directory of a failing seed begins so.
        run_seeds: Runs some seeds in a process.
        read: Returns the schedule of JSON values. Raises ScheduleError.
        replay: Runs a schedule, and returns what `run_seeds` does.
        shrink: Returns the report of a smaller schedule.
        trace: Runs a schedule, and writes its traces to a directory.
        details: Returns the violations of a report, and what else there is to say of it, as JSON values.
        told: Returns the lines that say violations.
        more: Returns what else the result has.
        more_told: Returns the lines that say it.
    """

    command: str
    prefix: str
    run_seeds: Callable[[range], SeedsResult]
    read: Callable[[Any], Any]
    replay: Callable[[Any], SeedsResult]
    shrink: Callable[[Any], Any]
    trace: Callable[[Any, Path], object]
    details: Callable[[Any], dict[str, Any]] = lambda report: {"violations": list(report.violations)}
    told: Callable[[list[Any]], list[str]] = lambda violations: violations
    more: Callable[[SeedsResult], dict[str, Any]] = lambda _: {}
    more_told: Callable[[dict[str, Any]], list[str]] = lambda _: []

    def run(self, options: SeedRange, as_json: bool, replay: Path | None = None) -> int:
        """Run seeds, or replay a schedule, print the result and return the exit status: 0 only without violations.

        Raises:
            ScheduleError: the file to replay is not a schedule.
            TraceError, OSError: a file cannot be written, or not read.
        """
        began = time.monotonic()
        outcome = self._run_all(options, quiet=as_json) if replay is None else self.replay(self._read(replay))
        outcome.failed.sort(key=lambda report: report.schedule.seed)
        failures = [self._failure(report, options.directory, index) for index, report in enumerate(outcome.failed)]
        result = {
            "seeds": outcome.seeds,
            "violations": sum(len(report.violations) for report in outcome.failed),
            "failures": failures,
            "counts": dict(sorted(outcome.counts.items())),
            **self.more(outcome),
            "seconds": round(time.monotonic() - began, 3),
        }
        if as_json:
            say(result)
        else:
            self._print(result)
        return 1 if failures else 0

    def _run_all(self, options: SeedRange, quiet: bool) -> SeedsResult:
        outcome = SeedsResult()
        console = Console(stderr=True)
        columns = (TextColumn("sim"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
            task = progress.add_task("sim", total=options.seeds)
            for part in self._parts(options):
                outcome.add(part)
                progress.update(task, completed=outcome.seeds)
        return outcome

    def _parts(self, options: SeedRange) -> Iterator[SeedsResult]:
        """Yield the result of each chunk of seeds, in order of completion."""
        stop = options.first + options.seeds
        chunks = [range(at, min(at + CHUNK_SEEDS, stop)) for at in range(options.first, stop, CHUNK_SEEDS)]
        jobs = min(options.jobs or os.cpu_count() or 1, len(chunks))
        if jobs <= 1:
            yield from map(self.run_seeds, chunks)
            return
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for done in as_completed([pool.submit(self.run_seeds, chunk) for chunk in chunks]):
                yield done.result()

    def _read(self, path: Path) -> Any:
        try:
            return self.read(from_json(path.read_text(encoding="utf-8")))
        except ScheduleError as error:
            raise ScheduleError(f"{path}: {error}; give a file that `{self.command}` wrote") from error
        except ValueError as error:
            raise ScheduleError(f"{path} is not JSON: {error}; give a file that `{self.command}` wrote") from error

    def _failure(self, report: Any, directory: Path, index: int) -> dict[str, Any]:
        """Return a failing seed as JSON. The first few are shrunk, and written with their traces."""
        seed = report.schedule.seed
        record: dict[str, Any] = {"seed": seed}
        if index < MAX_SHRUNK:
            report = self.shrink(report)
            where = directory / f"{self.prefix}-{seed}"
            where.mkdir(parents=True, exist_ok=True)
            path = where / "schedule.json"
            path.write_text(report.schedule.text() + "\n", encoding="utf-8")
            self.trace(report.schedule, where / "traces")
            record |= {"schedule": str(path), "faults": [str(fault) for fault in report.schedule.faults]}
        return record | self.details(report)

    def _print(self, result: dict[str, Any]) -> None:
        for failure in result["failures"]:
            say(f"seed {failure['seed']}: VIOLATED")
            for text in (*self.told(failure["violations"]), *failure.get("faults", ())):
                say(f"  {text}")
            if "schedule" in failure:
                say(f"  replay: {self.command} --replay {failure['schedule']}")
        for text in self.more_told(result):
            say(text)
        counts = result["counts"]
        say(f"{plural(counts.get('sent', 0), 'message')} sent, {counts.get('delivered', 0):,} delivered")
        seeds, violations = plural(result["seeds"], "seed"), plural(result["violations"], "violation")
        say(f"{seeds}, {violations}, {result['seconds']:.1f} s")
