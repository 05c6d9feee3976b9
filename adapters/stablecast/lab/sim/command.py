"""Run many seeds on all cores, or one schedule again, for `stablecast sim`."""

import gc
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from stablecast.lab.sim.coverage import Coverage
from stablecast.lab.sim.frames import digest
from stablecast.lab.sim.runner import Report, run, shrink
from stablecast.lab.sim.schedule import Schedule, draw, with_earlier
from stablecast.lab.sim.setup import ScheduleError
from stablecast.runtime import garbage_collection
from stablecast.text import plural
from stablecast.text.json_text import from_json

CHUNK_SEEDS: Final = 20
"""Seeds that one process runs before it reports."""

MAX_SHRUNK: Final = 5
"""Most failing seeds that are shrunk and written. All others are only counted and named."""


@attrs.frozen
class SeedRange:
    """Select the seeds to run. `directory` receives schedule and traces of failing seeds; `jobs` 0: one per core.

    `earlier` stores of each world are of release 0.1.0.
    """

    seeds: int
    first: int = 0
    jobs: int = 0
    wipe: bool = False
    directory: Path = Path("stablecast-sim")
    digests: bool = False
    earlier: int = 0


@attrs.define
class SeedsResult:
    """Hold the result of some seeds."""

    seeds: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    coverage: Coverage = attrs.field(factory=Coverage)
    failed: list[Report] = attrs.field(factory=list)
    digests: dict[int, str] = attrs.field(factory=dict)

    def add(self, other: "SeedsResult") -> None:
        """Add the result of other seeds."""
        self.seeds += other.seeds
        self.counts += other.counts
        self.coverage.add(other.coverage)
        self.failed += other.failed
        self.digests |= other.digests


def run_sim(options: SeedRange, as_json: bool, replay: Path | None = None) -> int:
    """Run seeds, or replay a schedule, print the result and return the exit status: 0 only without violations.

    Raises:
        ScheduleError: the file to replay is not a schedule.
        TraceError, OSError: a file cannot be written, or not read.
    """
    began = time.monotonic()
    outcome = _replay(replay, options.digests) if replay is not None else _run_all(options, quiet=as_json)
    outcome.failed.sort(key=lambda report: report.schedule.seed)
    failures = [_failure(report, options.directory, index) for index, report in enumerate(outcome.failed)]
    result = {
        "seeds": outcome.seeds,
        "violations": sum(len(report.violations) for report in outcome.failed),
        "failures": failures,
        "counts": dict(sorted(outcome.counts.items())),
        "coverage": outcome.coverage.as_json(),
        "seconds": round(time.monotonic() - began, 3),
    }
    if options.digests:
        result["digests"] = dict(sorted(outcome.digests.items()))
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _print(result)
    return 1 if failures else 0


def run_seeds(seeds: range, wipe: bool, digests: bool = False, earlier: int = 0) -> SeedsResult:
    """Run some seeds in this process; with `digests`, record the digest of each."""
    outcome = SeedsResult(seeds=len(seeds))
    with outcome.coverage.watching(), _tidying_between() as tidy:
        for seed in seeds:
            transcript: list[str] | None = [] if digests else None
            schedule = draw(seed, wipe=wipe)
            report = run(with_earlier(schedule, earlier) if earlier else schedule, transcript=transcript)
            outcome.counts += report.counts
            if transcript is not None:
                outcome.digests[seed] = digest(transcript)
            if report.violations:
                outcome.failed.append(report)
            tidy()
    return outcome


@contextmanager
def _tidying_between() -> Iterator[Callable[[], int]]:
    """Collect garbage between worlds only, because collections within a world take a tenth of its time."""
    with garbage_collection.paused():
        yield partial(gc.collect, 0)  # Objects of a world are all in generation 0, because no collection ran meanwhile.


def _run_all(options: SeedRange, quiet: bool) -> SeedsResult:
    outcome = SeedsResult()
    console = Console(stderr=True)
    columns = (TextColumn("sim"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("sim", total=options.seeds)
        for part in _parts(options):
            outcome.add(part)
            progress.update(task, completed=outcome.seeds)
    return outcome


def _parts(options: SeedRange) -> Iterator[SeedsResult]:
    """Yield the result of each chunk of seeds, in order of completion."""
    stop = options.first + options.seeds
    chunks = [range(at, min(at + CHUNK_SEEDS, stop)) for at in range(options.first, stop, CHUNK_SEEDS)]
    jobs = min(options.jobs or os.cpu_count() or 1, len(chunks))
    if jobs <= 1:
        some = partial(run_seeds, wipe=options.wipe, digests=options.digests, earlier=options.earlier)
        yield from map(some, chunks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        more = (options.wipe, options.digests, options.earlier)
        for done in as_completed([pool.submit(run_seeds, chunk, *more) for chunk in chunks]):
            yield done.result()


def _replay(path: Path, digests: bool) -> SeedsResult:
    try:
        schedule = Schedule.from_json(from_json(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ScheduleError(f"{path} is not JSON: {error}; give a file that the simulator wrote") from error
    except ScheduleError as error:
        raise ScheduleError(f"{path}: {error}; give a file that `stablecast sim` wrote") from error
    outcome = SeedsResult(seeds=1)
    with outcome.coverage.watching():
        transcript: list[str] = []
        report = run(schedule, transcript=transcript if digests else None)
    outcome.counts += report.counts
    if digests:
        outcome.digests[schedule.seed] = digest(transcript)
    if report.violations:
        outcome.failed.append(report)
    return outcome


def _failure(report: Report, directory: Path, index: int) -> dict[str, Any]:
    """Return a failing seed as JSON. The first few are shrunk, and written with a trace of every endpoint."""
    seed = report.schedule.seed
    record: dict[str, Any] = {"seed": seed}
    if index < MAX_SHRUNK:
        report = shrink(report)
        where = directory / f"seed-{seed}"
        where.mkdir(parents=True, exist_ok=True)
        path = where / "schedule.json"
        path.write_text(json.dumps(report.schedule.as_json(), indent=1) + "\n", encoding="utf-8")
        run(report.schedule, traces=where / "traces")
        record |= {"schedule": str(path), "faults": [str(fault) for fault in report.schedule.faults]}
        record["sends"] = len(report.schedule.sends)
    record["violations"] = [
        {"rule": violation.rule, "name": violation.name, "at_ns": violation.at, "text": violation.text}
        for violation in report.violations
    ]
    return record


def _print(result: dict[str, Any]) -> None:
    for failure in result["failures"]:
        typer.echo(f"seed {failure['seed']}: VIOLATED")
        for violation in failure["violations"]:
            typer.echo(f"  {violation['name']} at {violation['at_ns'] / 1e6:.3f} ms: {violation['text']}")
        typer.echo("  `stablecast rules ID` prints what a rule means and what to do")
        for fault in failure.get("faults", ()):
            typer.echo(f"  {fault}")
        if "schedule" in failure:
            typer.echo(f"  replay: stablecast sim --replay {failure['schedule']}")
    for name, visited in result["coverage"].items():
        never = f"; never: {', '.join(visited['never'])}" if visited["never"] else ""
        states, transitions = len(visited["states"]), len(visited["transitions"])
        typer.echo(f"{name}: {plural(states, 'state')}, {plural(transitions, 'transition')}{never}")
    for seed, text in result.get("digests", {}).items():
        typer.echo(f"seed {seed}: digest {text}")
    counts = result["counts"]
    typer.echo(f"{plural(counts.get('sent', 0), 'message')} sent, {counts.get('delivered', 0):,} delivered")
    seeds, violations = plural(result["seeds"], "seed"), plural(result["violations"], "violation")
    typer.echo(f"{seeds}, {violations}, {result['seconds']:.1f} s")
