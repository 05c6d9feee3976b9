"""`make agreement`: play the same schedules in the simulated world and on real processes, and compare the outcomes.

    python -m tools.agreement                          300 schedules, about half an hour on an idle machine
    python -m tools.agreement --schedules 20 --seed 0  seeds 0 to 19
    python -m tools.agreement --seed 7 --schedules 1 --keep DIR

It needs root for network namespaces and mounts. The exit status is 0 if the share of agreeing schedules reaches
`--least`, 1 otherwise, and 2 if real processes cannot run here.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import attrs

from stablecast.lab.whole.schedule import WorldSchedule
from tools.agreement.drawn_schedules import draw
from tools.agreement.outcomes import outcomes
from tools.agreement.sides import real, world_outcomes
from tools.torture.__main__ import obstacle

SCHEDULES = 300
AT_ONCE = 4
"""Number of real histories that run at the same time. Most of them wait most of the time."""
SHOWN_VALUES = 5
"""Most values of one outcome that the table shows."""
LEAST = 0.95
"""Least share of schedules without a difference."""


@attrs.frozen
class Comparison:
    """The outcomes of one schedule on both sides, by name."""

    schedule: WorldSchedule
    world: dict[str, Any]
    processes: dict[str, Any]
    seconds: float

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """The outcomes that differ: first of the world, then of the processes."""
        names = [*self.world, *(name for name in self.processes if name not in self.world)]
        both = {name: (self.world.get(name), self.processes.get(name)) for name in names}
        return {name: values for name, values in both.items() if values[0] != values[1]}

    @property
    def bad(self) -> list[str]:
        sides = {"world": self.world, "processes": self.processes}
        return [side for side, found in sides.items() if found["violations"] != "none"]


def compare(schedule: WorldSchedule, place: Path, world: Future[dict[str, Any]], *, keep: bool = False) -> Comparison:
    """Play a schedule on real processes, and compare it with the world's outcomes."""
    shutil.rmtree(place, ignore_errors=True)
    played = real(schedule, place)
    found = Comparison(schedule, world.result(), outcomes(schedule, played), played.seconds)
    if not keep and not found.differences:
        shutil.rmtree(place, ignore_errors=True)
    return found


def compared(schedules: list[WorldSchedule], base: Path, at_once: int, *, keep: bool = False) -> Iterator[Comparison]:
    """Compare schedules, several at a time. Worlds have a process of their own, because they replace `time`."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worlds, ThreadPoolExecutor(at_once) as pool:
        waiting = [worlds.submit(world_outcomes, schedule) for schedule in schedules]
        one = partial(compare, keep=keep)
        places = [base / f"agreement-{schedule.seed}" for schedule in schedules]
        yield from pool.map(one, schedules, places, waiting)


def kind_of(outcome: str) -> str:
    """Return the name of an outcome in the table. All times of unchanged faults share a line."""
    what = outcome.partition(" ms: ")[2].partition(" while ")[0]
    return f"{what} during a fault" if what else outcome


def table(comparisons: list[Comparison]) -> str:
    """Return a line for each outcome: how often it was compared and equal, its usual values, and seeds that differ."""
    asked: dict[str, Counter[str]] = {}
    different: dict[str, list[int]] = {}
    for one in comparisons:
        for name in {*one.world, *one.processes}:
            kind = kind_of(name)
            asked.setdefault(kind, Counter())[str(one.processes.get(name))] += 1
            if name in one.differences:
                different.setdefault(kind, []).append(one.schedule.seed)
    width = max(map(len, asked))
    lines = [f"{'outcome':<{width}}  compared  equal  values"]
    for name, values in sorted(asked.items()):
        seeds = different.get(name, [])
        usual = ", ".join(f"{value} {count}" for value, count in values.most_common(SHOWN_VALUES))
        differ = f"; seeds that differ: {' '.join(map(str, seeds))}" if seeds else ""
        lines.append(f"{name:<{width}}  {values.total():>8}  {values.total() - len(seeds):>5}  {usual}{differ}")
    return "\n".join(lines)


def figure(comparisons: list[Comparison], seconds: float) -> str:
    equal = sum(not one.differences for one in comparisons)
    bad = Counter(side for one in comparisons for side in one.bad)
    violated = ", ".join(f"{count} with a violation in the {side}" for side, count in sorted(bad.items()))
    return (
        f"agreement: {equal} of {len(comparisons)} schedules ({equal / len(comparisons):.1%}) have equal outcomes, "
        f"{violated or 'no violation'}, {seconds:.0f} s"
    )


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make agreement ARGS=...", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="first seed (%(default)s)")
    parser.add_argument("--schedules", type=int, default=SCHEDULES, help="number of seeds (%(default)s)")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="real histories at a time (%(default)s)")
    parser.add_argument("--least", type=float, default=LEAST, help="least share that agrees (%(default)s)")
    parser.add_argument("--keep", type=Path, help="keep the files of real histories here")
    parser.add_argument("--show", action="store_true", help="print the schedules without playing them")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Compare the schedules, and print the table and the figure; return the exit status."""
    chosen = options(words)
    schedules = [draw(seed) for seed in range(chosen.seed, chosen.seed + chosen.schedules)]
    if chosen.show:
        for schedule in schedules:
            print(schedule.text())
        return 0
    if reason := obstacle():
        print(reason.replace("torture", "agreement"), file=sys.stderr)
        return 2
    began = time.monotonic()
    comparisons = []
    with tempfile.TemporaryDirectory(prefix="agreement-") as scratch:
        base = chosen.keep or Path(scratch)
        for one in compared(schedules, base, chosen.at_once, keep=bool(chosen.keep)):
            comparisons.append(one)
            _print(one)
            if chosen.keep:
                with (base / "differences.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"seed": one.schedule.seed, "differences": one.differences}) + "\n")
    print(table(comparisons))
    print(figure(comparisons, time.monotonic() - began))
    equal = sum(not one.differences for one in comparisons)
    return int(equal < chosen.least * len(comparisons))


def _print(one: Comparison) -> None:
    result = "equal" if not one.differences else "DIFFERENT"
    print(f"seed {one.schedule.seed} ({one.seconds:.0f} s): {result}", flush=True)
    if one.differences:
        for fault in one.schedule.faults:
            print(f"  {fault}", flush=True)
    for name, (world, processes) in one.differences.items():
        print(f"  {name}: {world} in the world, {processes} on processes", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
