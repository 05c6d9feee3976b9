"""Run many seeds of the simulator on all cores, or one schedule again, for `stablecast sim`."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.schedules.seeds import SeedRange, SeedsResult, Simulator
from stablecast.lab.sim.coverage import Coverage
from stablecast.lab.sim.frames import digest
from stablecast.lab.sim.runner import Report, run, shrink
from stablecast.lab.sim.schedule import Schedule, draw, with_earlier
from stablecast.runtime import garbage_collection
from stablecast.text import plural


@attrs.frozen
class Worlds:
    """Choose the worlds: with `wipe` disks are lost in each, `earlier` of their stores are of release 0.1.0.

    With `digests`, the digest of each world is recorded.
    """

    wipe: bool = False
    earlier: int = 0
    digests: bool = False


def run_sim(options: SeedRange, as_json: bool, replay: Path | None = None, worlds: Worlds = Worlds()) -> int:
    """Run seeds, or replay a schedule, and return the exit status, as `Simulator.run` does."""
    simulator = Simulator(
        command="stablecast sim",
        prefix="seed",
        run_seeds=partial(run_seeds, worlds=worlds),
        read=Schedule.from_json,
        replay=lambda schedule: _run([schedule], worlds.digests),
        shrink=shrink,
        trace=run,
        details=_details,
        told=_told,
        more=partial(_more, worlds),
        more_told=_more_told,
    )
    return simulator.run(options, as_json, replay)


def run_seeds(seeds: range, worlds: Worlds) -> SeedsResult:
    drawn = (draw(seed, wipe=worlds.wipe) for seed in seeds)
    earlier = worlds.earlier
    return _run((with_earlier(one, earlier) for one in drawn) if earlier else drawn, worlds.digests)


def _run(schedules: Any, digests: bool) -> SeedsResult:
    outcome = SeedsResult()
    coverage = Coverage(outcome.coverage)
    with coverage.watching(), _tidying_between() as tidy:
        for schedule in schedules:
            transcript: list[str] | None = [] if digests else None
            outcome.add_report(run(schedule, transcript=transcript))
            if transcript is not None:
                outcome.digests[schedule.seed] = digest(transcript)
            tidy()
    return outcome


@contextmanager
def _tidying_between() -> Iterator[Callable[[], int]]:
    """Collect garbage between worlds only, because collections within a world take a tenth of its time."""
    with garbage_collection.paused():
        yield partial(gc.collect, 0)  # Objects of a world are all in generation 0, because no collection ran meanwhile.


def _details(report: Report) -> dict[str, Any]:
    violations = [
        {"rule": violation.rule, "name": violation.name, "at_ns": violation.at, "text": violation.text}
        for violation in report.violations
    ]
    return {"sends": len(report.schedule.sends), "violations": violations}


def _told(violations: list[Any]) -> list[str]:
    told = [f"{one['name']} at {one['at_ns'] / 1e6:.3f} ms: {one['text']}" for one in violations]
    return [*told, "`stablecast rules ID` prints what a rule means and what to do"]


def _more(worlds: Worlds, outcome: SeedsResult) -> dict[str, Any]:
    more: dict[str, Any] = {"coverage": Coverage(outcome.coverage).as_json()}
    return more | ({"digests": dict(sorted(outcome.digests.items()))} if worlds.digests else {})


def _more_told(result: dict[str, Any]) -> list[str]:
    told = []
    for name, visited in result["coverage"].items():
        never = f"; never: {', '.join(visited['never'])}" if visited["never"] else ""
        states, transitions = len(visited["states"]), len(visited["transitions"])
        told.append(f"{name}: {plural(states, 'state')}, {plural(transitions, 'transition')}{never}")
    return told + [f"seed {seed}: digest {text}" for seed, text in result.get("digests", {}).items()]
