"""Makes a failing schedule small: the same rule is still broken, and nothing more can be left out."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import plainer

ItemT = TypeVar("ItemT")

MAX_RUNS = 400
"""Worlds tried before what is left is called small enough."""


def shrink(report: Report, attempt: Callable[[Schedule], Report] = run) -> Report:
    """The report of a smaller schedule that breaks the same rule; the report itself if there is none.

    Faults go first, alone or by halves, then sends, then what is not plain in the setup; then runs of messages and
    spans get shorter.
    """
    rule = report.violations[0].rule
    left = MAX_RUNS
    again = True
    while again and left:
        again = False
        for candidate in _smaller(report.schedule):
            if not left:
                break
            left -= 1
            found = attempt(candidate)
            if found.violations and found.violations[0].rule == rule:
                report, again = found, True
                break
    return report


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with less in them, the boldest cuts first."""
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
