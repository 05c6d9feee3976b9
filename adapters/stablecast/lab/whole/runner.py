"""Run one schedule of a whole world, and judge it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.ranges import RangeSet
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

LOST_WITH_DISK = frozenset({"S3", "P6", "H1"})
"""Rules of traces together that a store cannot keep after its disk lost records, or its trace.

A store that begins with an empty directory looks like a new one, so its trace seems to have all that it ever sent.
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
    """Copy the traces of all hosts, and return what `stablecast verify` finds in them.

    `weak` stores lost records of messages or of traces.
    """
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
    judged = _without_witness(verify_paths(paths).violations, weak)
    return [f"{one.rule}: {one.path.name} record {one.record}: {one.text}" for one in judged]


def _without_witness(violations: Sequence[TraceViolation], weak: frozenset[str]) -> list[TraceViolation]:
    """Return the violations without those that only the lost records of `weak` stores would disprove.

    A number is stable by the acknowledgements that P6 looks for. If a trace that had one of them is lost, it had the
    message, too, and S1 cannot be judged of that number.
    """
    left = [one for one in violations if not _excused(one, weak)]
    lost: dict[tuple[Path, str], RangeSet] = defaultdict(RangeSet)
    for one in violations:
        if one.rule == "P6" and one not in left:
            lost[_life(one)].update(_missing(one))
    return [one for one in left if one.rule != "S1" or not _covered(one, lost[_life(one)])]


def _excused(violation: TraceViolation, weak: frozenset[str]) -> bool:
    where = f"{violation.path.name} {violation.text}"
    return violation.rule in LOST_WITH_DISK and any(f"{at}{end}" in where for end in ":_" for at in weak)


def _life(violation: TraceViolation) -> tuple[Path, str]:
    return violation.path, _across(violation).get("life", "")


def _missing(violation: TraceViolation) -> list[tuple[int, int]]:
    """Return all numbers that a rule across traces misses, as first and stop. Its sentence names only the lowest."""
    return [(first, last + 1) for first, last in _across(violation).get("missing", ())]


def _across(violation: TraceViolation) -> dict[str, Any]:
    return violation.found if isinstance(violation.found, dict) else {}


def _covered(violation: TraceViolation, numbers: RangeSet) -> bool:
    missing = _missing(violation)
    return bool(missing) and not any(numbers.missing(first, stop) for first, stop in missing)


def shrink(report: WholeReport, attempt: Callable[[WorldSchedule], WholeReport] = run) -> WholeReport:
    """Return the report of a smaller schedule that breaks the same rule, or the given one if there is none."""
    return Reduction(attempt, _rule, MAX_RUNS).smallest(report, lambda one: smaller(one.schedule))


def _rule(report: WholeReport) -> str | None:
    return report.violations[0].partition(":")[0] if report.violations else None
