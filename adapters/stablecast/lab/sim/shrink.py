"""Reduce a failing schedule to one that still breaks the same rule and cannot be reduced further."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from stablecast.lab.reduction import reduced
from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import plainer

ItemT = TypeVar("ItemT")

MAX_RUNS = 400
"""Most worlds to try."""


def shrink(report: Report, attempt: Callable[[Schedule], Report] = run) -> Report:
    """Return the report of a smaller schedule that breaks the same rule, or the given report if there is none.

    Faults go first, alone or by halves, then sends, then deviations of the setup. Then runs of messages and spans
    become shorter.
    """
    return reduced(report, lambda one: _smaller(one.schedule), attempt, _rule, MAX_RUNS)


def _rule(report: Report) -> str | None:
    return report.violations[0].rule if report.violations else None


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Yield smaller schedules, the largest reductions first."""
    for faults in _shorter(schedule.faults):
        yield attrs.evolve(schedule, faults=faults)
    for sends in _shorter(schedule.sends):
        yield attrs.evolve(schedule, sends=sends)
    for setup in plainer(schedule.setup):
        yield attrs.evolve(schedule, setup=setup)
    for index, (at, count) in enumerate(schedule.sends):
        if count > 1:
            sends = (*schedule.sends[:index], (at, count // 2), *schedule.sends[index + 1 :])
            yield attrs.evolve(schedule, sends=sends)
    for index, fault in enumerate(schedule.faults):
        if fault.span_ms > 1:
            less = attrs.evolve(fault, span_ms=fault.span_ms // 2)
            yield attrs.evolve(schedule, faults=(*schedule.faults[:index], less, *schedule.faults[index + 1 :]))


def _shorter(items: tuple[ItemT, ...]) -> Iterator[tuple[ItemT, ...]]:
    half = len(items) // 2
    if half > 1:
        yield items[half:]
        yield items[:half]
    for index in range(len(items)):
        yield (*items[:index], *items[index + 1 :])
