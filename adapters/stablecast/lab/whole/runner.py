"""Run one schedule of a whole world, and judge it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.evidence.trace.reports import TraceViolation
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.schedules.reduction import Reduction
from stablecast.lab.whole.conductor import Conductor
from stablecast.lab.whole.history_checker import judge
from stablecast.lab.whole.schedule import DISK_FAULTS, WorldSchedule, smaller
from stablecast.lab.world.kernel import WorldError
from stablecast.lab.world.programs import TRACES
from stablecast.lab.world.world import World

LIMIT_SECONDS = 300.0
"""Virtual time in s within which a world ends."""

LOST_WITH_DISK = frozenset({"S3"})
"""Rules of traces together that a store cannot keep after its disk lost records, or its trace.

README promises what is stable while a minority of the disks is lost, and traces do not show how many were.
"""

MAX_RUNS = 150
"""Most worlds that are run to find a smaller schedule."""


@attrs.frozen
class WholeReport:
    """The result of a schedule, run with traces or without. Equal fingerprints mean equal runs."""

    schedule: WorldSchedule
    violations: tuple[str, ...]
    counts: Counter[str]
    virtual_ns: int
    fingerprint: str
    lines: tuple[dict[str, object], ...] = ()
    traced: bool = False


def run(schedule: WorldSchedule, traces: Path | None = None) -> WholeReport:
    """Run a schedule and have it judged.

    Args:
        schedule: Programs and faults.
        traces: A directory for the traces of all programs, which are judged, too.
    """
    world = World(schedule.seed)
    conductor = Conductor(world, schedule, traced=traces is not None)
    violations: list[str] = []
    try:
        world.run(conductor.run, LIMIT_SECONDS)
    except WorldError as stuck:
        violations.append(f"hang: {stuck}")
    for process, failure in world.failures:
        if not isinstance(failure, OSError | StablecastError):  # `ended` judges what a command reports.
            violations.append(f"traceback: {process.name} raised {type(failure).__name__}: {failure}")
    verdict = judge(conductor.lines, conductor.printed(), schedule.setup.receivers)
    violations += verdict.violations
    if traces is not None:
        violations += _judged(world, traces, _weak(world, schedule))
    counts = Counter(sent=verdict.sent, stable=verdict.stable, delivered=verdict.delivered, confirmed=verdict.confirmed)
    fingerprint = f"{world.now:x}-{world.kernel.steps:x}-{world.kernel.random.getrandbits(64):016x}"
    lines = tuple(conductor.lines)
    return WholeReport(schedule, tuple(violations), counts, world.now, fingerprint, lines, traces is not None)


def _weak(world: World, schedule: WorldSchedule) -> frozenset[str]:
    """Return the addresses of the stores whose disks lost records."""
    return frozenset(world.host(fault.who).address for fault in schedule.faults if fault.kind in DISK_FAULTS)


def _judged(world: World, directory: Path, weak: frozenset[str]) -> list[str]:
    """Copy the traces of all hosts, and return what `verify` finds in them, without losses of `weak` stores."""
    paths = []
    for host in world.hosts.values():
        if TRACES.name not in host.disk.listing(host.disk.root):
            continue
        for name, _, contents in host.disk.backup(str(TRACES)).files:
            if isinstance(contents, bytes):
                path = directory / host.name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(contents)
                paths.append(path)
    judged = [one for one in verify_paths(paths).violations if not _excused(one, weak)]
    return [f"{one.rule}: {one.path.name} record {one.record}: {one.text}" for one in judged]


def _excused(violation: TraceViolation, weak: frozenset[str]) -> bool:
    where = f"{violation.path.name} {violation.text}"
    return violation.rule in LOST_WITH_DISK and any(f"{at}{end}" in where for end in ":_" for at in weak)


def shrink(report: WholeReport, attempt: Callable[[WorldSchedule], WholeReport] = run) -> WholeReport:
    """Return the report of a smaller schedule that breaks the same rule, or the given one if there is none."""
    return Reduction(attempt, _rule, MAX_RUNS).smallest(report, lambda one: smaller(one.schedule))


def _rule(report: WholeReport) -> str | None:
    return report.violations[0].partition(":")[0] if report.violations else None
