"""Run one schedule: faults until the horizon, a calm phase until everything is settled; then some clients leave."""

from collections import Counter
from functools import partial
from pathlib import Path
from traceback import extract_tb

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.quiescence import trouble
from stablecast.lab.sim.rules import Violation
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import HORIZON_MS, RECEIVERS, SOURCE, Habit, Leaving

LAST_MESSAGES = 5
"""Messages that the application sends when all faults are over. They must be delivered."""

SETTLE_NS = 15 * SECOND
STEP_NS = 50 * MILLISECOND
"""Longest calm phase, and interval of the checks whether everything is settled."""

BACKLOG_NS = 15 * SECOND
"""Additional time for slow applications, whose backlog may wait until a loss is given up."""

LASTING_NS = 1 * SECOND
"""Time that the only remaining proxy must keep running."""


@attrs.frozen
class Report:
    """Hold the result of a schedule.

    Equal fingerprints mean that two worlds drew the same random numbers and ran equally many events.
    """

    schedule: Schedule
    violations: tuple[Violation, ...]
    counts: Counter[str]
    virtual_ns: int
    fingerprint: str


def run(schedule: Schedule, traces: Path | None = None, transcript: list[str] | None = None) -> Report:
    """Run a schedule.

    Args:
        schedule: Messages, faults and setup.
        traces: Directory for a trace of every endpoint.
        transcript: Receives a line for each input of a machine.
    """
    world = seeded(schedule.seed, transcript)
    cluster = Cluster(world, traces, schedule.setup)
    for at, count in schedule.sends:
        world.at(at * MILLISECOND, partial(cluster.want, count))
    for fault in schedule.faults:
        world.at(fault.at_ms * MILLISECOND, partial(cluster.suffer, fault))
    facts = cluster.checkers.facts
    try:
        _live(cluster)
    except Exception as error:  # noqa: BLE001  # an exception of a machine or driver is a violation
        where = extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno} in {where.name})"
        facts.report("X1", text)
    finally:
        cluster.close()
    fingerprint = f"{world.now:x}-{world.rng.getrandbits(64):016x}"
    return Report(schedule, tuple(facts.violations), facts.counts, world.now, fingerprint)


def _live(cluster: Cluster) -> None:
    world, facts = cluster.world, cluster.checkers.facts
    while world.now < HORIZON_MS * MILLISECOND and not facts.violations:
        world.run(world.now + 10 * STEP_NS)
    cluster.calm()
    if cluster.deserted:
        _settle(cluster)
        world.run(world.now + LASTING_NS)
        _settle(cluster, 0)
        cluster.adopt()
    cluster.want(LAST_MESSAGES)
    leaving = cluster.setup.leaving
    if leaving is Leaving.HASTY_SOURCE:
        cluster.leave(SOURCE)
    _settle(cluster)
    if leaving is Leaving.SOURCE:
        cluster.leave(SOURCE)
        _settle(cluster)
    elif leaving is Leaving.RECEIVER:
        cluster.leave(RECEIVERS[-1])
        cluster.want(LAST_MESSAGES)
        _settle(cluster)
    if not facts.violations:
        cluster.checkers.at_the_end()


def _settle(cluster: Cluster, span: int = SETTLE_NS) -> None:
    """Run until nothing is left to do; report a violation if that takes too long."""
    world, facts = cluster.world, cluster.checkers.facts
    deadline = world.now + span
    if span and cluster.setup.habit is not Habit.PROMPT:
        deadline += BACKLOG_NS
    while not facts.violations and (found := trouble(cluster)) is not None:
        if world.now >= deadline:
            facts.report(*found)
            return
        world.run(world.now + STEP_NS)
