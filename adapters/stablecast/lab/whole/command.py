"""Run many seeds of whole worlds on all cores, or one schedule again, for `stablecast sim --whole`."""

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.runner import WholeReport, run, shrink
from stablecast.lab.whole.schedule import WorldSchedule, WorldScheduleError
from stablecast.lab.world.world import prepared
from stablecast.text import plural
from stablecast.text.console import say
from stablecast.text.json_text import from_json

CHUNK_SEEDS: Final = 10
"""Seeds that one process runs before it reports."""

TRACED_SEEDS: Final = 5
"""Each seed divisible by this is traced, and its traces are judged. Such a world takes a quarter longer."""

MAX_SHRUNK: Final = 5
"""Most failing seeds that are shrunk and written. All others are only counted and named."""


@attrs.frozen
class WholeSeeds:
    """Select the seeds to run. `directory` receives schedule and traces of failing seeds; `jobs` 0: one per core."""

    seeds: int
    first: int = 0
    jobs: int = 0
    directory: Path = Path("stablecast-sim")


def run_whole(options: WholeSeeds, as_json: bool, replay: Path | None = None) -> int:
    """Run seeds, or replay a schedule, print the result and return the exit status: 0 only without violations.

    Raises:
        WorldScheduleError: the file to replay is not a schedule.
        OSError: a file cannot be written, or not read.
    """
    began = time.monotonic()
    parts = iter([[_replayed(read(replay))]]) if replay is not None else _parts(options)
    counts: Counter[str] = Counter()
    failed: list[WholeReport] = []
    seeds = 0
    for reports in parts:
        seeds += len(reports)
        for report in reports:
            counts += report.counts
            if report.violations:
                failed.append(report)
    failed.sort(key=lambda report: report.schedule.seed)
    failures = [_failure(report, options.directory, index) for index, report in enumerate(failed)]
    result = {
        "seeds": seeds,
        "violations": sum(len(report.violations) for report in failed),
        "failures": failures,
        "counts": dict(sorted(counts.items())),
        "seconds": round(time.monotonic() - began, 3),
    }
    if as_json:
        say(result)
    else:
        _print(result)
    return 1 if failures else 0


def run_seeds(seeds: range) -> list[WholeReport]:
    """Run some seeds in this process; their lines stay here."""
    with prepared(), _directory() as traces:
        reports = [_run(draw(seed), traced=seed % TRACED_SEEDS == 0, traces=traces) for seed in seeds]
    return [attrs.evolve(report, lines=()) for report in reports]


def read(path: Path) -> WorldSchedule:
    """Return the schedule in a file. Raises WorldScheduleError, OSError."""
    try:
        return WorldSchedule.from_json(from_json(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise WorldScheduleError(f"{path} is not JSON: {error}; give a file that the simulator wrote") from error
    except WorldScheduleError as error:
        raise WorldScheduleError(f"{path}: {error}; give a file that `stablecast sim --whole` wrote") from error


@contextmanager
def _directory() -> Iterator[Path]:
    """Yield a directory for traces that nobody keeps."""
    with tempfile.TemporaryDirectory(prefix="stablecast-sim-") as directory:
        yield Path(directory)


def _run(schedule: WorldSchedule, *, traced: bool, traces: Path | None = None) -> WholeReport:
    if not traced:
        return run(schedule)
    if traces is None:
        with _directory() as directory:
            return run(schedule, directory)
    report = run(schedule, traces)
    for path in traces.glob("*/*"):
        path.unlink()  # The directories stay for the next world. To remove them takes a tenth of the time of a world.
    return report


def _replayed(schedule: WorldSchedule) -> WholeReport:
    """Run a schedule without traces, then with them: to write traces takes time, so the two runs differ."""
    plain = _run(schedule, traced=False)
    return plain if plain.violations else _run(schedule, traced=True)


def _parts(options: WholeSeeds) -> Iterator[list[WholeReport]]:
    """Yield the reports of each chunk of seeds, in order of completion."""
    stop = options.first + options.seeds
    chunks = [range(at, min(at + CHUNK_SEEDS, stop)) for at in range(options.first, stop, CHUNK_SEEDS)]
    jobs = min(options.jobs or os.cpu_count() or 1, len(chunks))
    if jobs <= 1:
        yield from map(run_seeds, chunks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run_seeds, chunk) for chunk in chunks]):
            yield done.result()


def _failure(report: WholeReport, directory: Path, index: int) -> dict[str, Any]:
    """Return a failing seed as JSON. The first few are shrunk, and written with a trace of every program."""
    seed = report.schedule.seed
    record: dict[str, Any] = {"seed": seed}
    if index < MAX_SHRUNK:
        report = shrink(report, partial(_run, traced=report.traced))
        where = directory / f"whole-{seed}"
        where.mkdir(parents=True, exist_ok=True)
        path = where / "schedule.json"
        path.write_text(report.schedule.text() + "\n", encoding="utf-8")
        run(report.schedule, traces=where / "traces")
        record |= {"schedule": str(path), "faults": [str(fault) for fault in report.schedule.faults]}
    return record | {"violations": list(report.violations)}


def _print(result: dict[str, Any]) -> None:
    for failure in result["failures"]:
        say(f"seed {failure['seed']}: VIOLATED")
        for text in (*failure["violations"], *failure.get("faults", ())):
            say(f"  {text}")
        if "schedule" in failure:
            say(f"  replay: stablecast sim --whole --replay {failure['schedule']}")
    counts = result["counts"]
    say(f"{plural(counts.get('sent', 0), 'message')} sent, {counts.get('delivered', 0):,} delivered")
    seeds, violations = plural(result["seeds"], "seed"), plural(result["violations"], "violation")
    say(f"{seeds}, {violations}, {result['seconds']:.1f} s")
