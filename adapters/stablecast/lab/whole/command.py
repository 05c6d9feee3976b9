"""Run many seeds of whole worlds on all cores, or one schedule again, for `stablecast sim --whole`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from stablecast.lab.schedules.seeds import SeedsResult, Simulator
from stablecast.lab.whole.drawn_schedule import draw
from stablecast.lab.whole.runner import WholeReport, run, shrink
from stablecast.lab.whole.schedule import WorldSchedule
from stablecast.lab.world.world import prepared

TRACED_SEEDS: Final = 5
"""Each seed divisible by this is traced, and its traces are judged. Such a world takes a quarter longer."""


def run_seeds(seeds: range) -> SeedsResult:
    """Run some seeds in this process; their lines stay here."""
    outcome = SeedsResult()
    with prepared(), _directory() as traces:
        for seed in seeds:
            report = _run(draw(seed), traced=seed % TRACED_SEEDS == 0, traces=traces)
            outcome.add_report(attrs.evolve(report, lines=()))
    return outcome


@contextmanager
def _directory() -> Iterator[Path]:
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


def _replayed(schedule: WorldSchedule) -> SeedsResult:
    """Run a schedule without traces, then with them: to write traces takes time, so the two runs differ."""
    outcome, plain = SeedsResult(), _run(schedule, traced=False)
    outcome.add_report(plain if plain.violations else _run(schedule, traced=True))
    return outcome


SIMULATOR: Final = Simulator(
    command="stablecast sim --whole",
    prefix="whole",
    run_seeds=run_seeds,
    read=WorldSchedule.from_json,
    replay=_replayed,
    shrink=lambda report: shrink(report, partial(_run, traced=report.traced)),
    trace=run,
)
