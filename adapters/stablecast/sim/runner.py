"""Runs one schedule: faults until the horizon, then peace until all is settled, or for too long."""

from collections import Counter
from functools import partial
from pathlib import Path
from traceback import extract_tb

import attrs

from stablecast.core.units import MILLISECOND, SECOND
from stablecast.sim.cluster import Cluster, seeded
from stablecast.sim.rules import Violation
from stablecast.sim.schedule import HORIZON_MS, RECEIVERS, Schedule

LAST_MESSAGES = 5
"""What the application sends when all faults are over: it must get through."""

SETTLE_NS = 15 * SECOND
STEP_NS = 50 * MILLISECOND
"""How long peace may take, and how often it is looked whether all is settled."""


@attrs.frozen
class Report:
    """What came of a schedule. Equal fingerprints: the worlds drew the same numbers for the same number of things."""

    schedule: Schedule
    violations: tuple[Violation, ...]
    counts: Counter[str]
    virtual_ns: int
    fingerprint: str


def run(schedule: Schedule, traces: Path | None = None, transcript: list[str] | None = None) -> Report:
    """Run a schedule.

    Args:
        schedule: What to do.
        traces: A directory for the trace of every endpoint.
        transcript: Gets a line for whatever a machine is told.
    """
    world = seeded(schedule.seed, transcript)
    cluster = Cluster(world, traces)
    for at, count in schedule.sends:
        world.at(at * MILLISECOND, partial(cluster.want, count))
    for fault in schedule.faults:
        world.at(fault.at_ms * MILLISECOND, partial(cluster.suffer, fault))
    try:
        _live(cluster)
    except Exception as error:  # noqa: BLE001  # whatever a machine or a driver raises is a finding
        where = extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno} in {where.name})"
        cluster.checkers.report("X1", text)
    finally:
        cluster.close()
    fingerprint = f"{world.now:x}-{world.rng.getrandbits(64):016x}"
    checkers = cluster.checkers
    return Report(schedule, tuple(checkers.violations), checkers.counts, world.now, fingerprint)


def _live(cluster: Cluster) -> None:
    world, checkers = cluster.world, cluster.checkers
    while world.now < HORIZON_MS * MILLISECOND and not checkers.violations:
        world.run(world.now + 10 * STEP_NS)
    cluster.calm()
    cluster.want(LAST_MESSAGES)
    deadline = world.now + SETTLE_NS
    while not checkers.violations and not cluster.settled():
        if world.now >= deadline:
            _complain(cluster)
            return
        world.run(world.now + STEP_NS)
    checkers.at_the_end()


def _complain(cluster: Cluster) -> None:
    """Too long: say who did not get on. What a session has passed by will never come."""
    checkers, source = cluster.checkers, cluster.source
    if source is None or not source.idle:
        state = "nobody" if source is None else f"{source.machine.abstract()}, {source.wanted} unsent"
        checkers.report("L1", f"not everything sent is stable {SETTLE_NS // SECOND} s after the last fault: {state}")
        return
    for receiver in RECEIVERS:
        session = cluster.ledgers[receiver].last
        for low, high, life in checkers.missed(receiver, source.sent_up_to):
            rule = "D1" if session is not None and session.next >= high else "L1"
            checkers.report(rule, f"{receiver} never had {low}..{high - 1} of life {life:#x}")
