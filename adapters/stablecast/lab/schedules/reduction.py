"""The search for a smaller failing schedule, for every simulator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import attrs

ItemT = TypeVar("ItemT")
FaultT = TypeVar("FaultT", bound=Any)
ReportT = TypeVar("ReportT")
ScheduleT = TypeVar("ScheduleT")


def reduced(
    report: ReportT,
    smaller: Callable[[ReportT], Iterable[ScheduleT]],
    attempt: Callable[[ScheduleT], ReportT],
    rule: Callable[[ReportT], str | None],
    most: int,
) -> ReportT:
    """Return the report of a smaller schedule that breaks the same rule, or the given report if there is none.

    Args:
        report: A failing run.
        smaller: Yields the schedules to try in place of the one of a report, the largest reductions first.
        attempt: Runs a schedule.
        rule: Returns the rule that a run broke first; None: none.
        most: Schedules to try.
    """
    broken, left, again = rule(report), most, True
    while again and left:
        again = False
        for candidate in smaller(report):
            if not left:
                break
            left -= 1
            found = attempt(candidate)
            if rule(found) == broken:
                report, again = found, True
                break
    return report


def without(items: Sequence[ItemT]) -> Iterator[tuple[ItemT, ...]]:
    """Yield the items without one half of them, then without each single one."""
    half = len(items) // 2
    if half > 1:
        yield tuple(items[half:])
        yield tuple(items[:half])
    for index in range(len(items)):
        yield (*items[:index], *items[index + 1 :])


def with_shorter_spans(faults: Sequence[FaultT]) -> Iterator[tuple[FaultT, ...]]:
    """Yield the faults with half the span of each single one."""
    for index, fault in enumerate(faults):
        if fault.span_ms > 1:
            yield (*faults[:index], attrs.evolve(fault, span_ms=fault.span_ms // 2), *faults[index + 1 :])
