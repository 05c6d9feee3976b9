"""The search for a smaller failing schedule, for every simulator."""

from collections.abc import Callable, Iterable
from typing import TypeVar

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
