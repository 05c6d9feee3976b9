"""Simulated worlds: whole worlds a second and core, schedules of an application, and one world with three crashes.

    python -m tools.bench.worlds --worlds 100 --schedules 2000

The application is a shop that sells, an office that books, and three stores. A schedule has one to five faults. The
small world has 50 messages and crashes of the shop, the office and a store. The figures are printed as JSON. Times of
worlds are CPU time of one process, so a busy machine changes them less.
"""

import argparse
import json
import logging
import os
import statistics
import time
from typing import Any, Final

from stablecast.client import Message
from stablecast.lab.whole.command import run_seeds
from stablecast.lab.world.world import prepared
from stablecast.testing import SimulatedWorld, crash, partition, slow_disk, stop
from stablecast.testing.exploration import WorldExploration, WorldPlan
from stablecast.testing.faults import as_faults
from stablecast.testing.run_options import RunOptions
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.world_run import WorldSetting, run_world
from tests.adapters.testing.planted_support import append, expect_each, orders, run

FAULTS: Final = as_faults(crash("store") | crash("app") | partition() | stop() | slow_disk())
STORES: Final = 3
MESSAGES: Final = 50
CRASHES: Final = tuple(
    Strike("crash", host, at=at * MILLISECOND, span=200 * MILLISECOND)
    for host, at in (("store0", 100), ("app", 250), ("shop", 400))
)
WARM: Final = 5
"""Worlds before the measured ones."""


async def office(world: SimulatedWorld) -> None:
    """Book orders as they come."""

    async def book(message: Message) -> None:
        append(message.payload.decode())

    await orders(world, book)


async def business(world: SimulatedWorld) -> None:
    """Sell and book until all is settled."""
    await run(world, office, count=MESSAGES)
    expect_each(world, MESSAGES)


def whole_worlds(count: int) -> dict[str, float]:
    """Run whole worlds; return worlds in a CPU second, and violations."""
    run_seeds(range(count, count + WARM))
    began = time.process_time()
    outcome = run_seeds(range(count))
    used = time.process_time() - began
    return {"per_cpu_s": count / used, "violations": sum(len(one.violations) for one in outcome.failed)}


def small_worlds(count: int) -> dict[str, float]:
    """Run worlds of 50 messages and three crashes; return the median of one in ms of CPU time."""
    taken = []
    with prepared():
        for seed in range(count + WARM):
            began = time.process_time()
            outcome = run_world(WorldSetting(STORES), business, seed, CRASHES)
            taken.append(1e3 * (time.process_time() - began))
            assert outcome.failure is None, outcome.failure
            assert len(outcome.struck) == len(CRASHES)
    return {"median_ms": statistics.median(taken[WARM:]), "slowest_ms": max(taken[WARM:])}


def schedules(count: int, jobs: int) -> dict[str, float]:
    """Explore schedules of an application on all cores; return the time in s."""
    plan = WorldPlan(WorldSetting(STORES), count, FAULTS)
    report = WorldExploration(plan, business, RunOptions(jobs=jobs)).run()
    assert report.found is None, report.found
    return {"schedules": report.worlds, "faults": report.faults.total(), "seconds": report.seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast simulated worlds run.")
    parser.add_argument("--worlds", type=int, default=60, help="whole worlds, and small ones")
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    logging.disable()
    found: dict[str, Any] = {
        "whole": whole_worlds(asked.worlds),
        "small": small_worlds(asked.worlds),
        "application": schedules(asked.schedules, asked.jobs),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
