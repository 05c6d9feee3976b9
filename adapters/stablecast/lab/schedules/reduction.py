"""The search for a smaller failing schedule, for every simulator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import attrs

ItemT = TypeVar("ItemT")
FaultT = TypeVar("FaultT", bound=Any)
ReportT = TypeVar("ReportT")
ScheduleT = TypeVar("ScheduleT")
SetupT = TypeVar("SetupT", bound=Any)


@attrs.define
class Reduction(Generic[ScheduleT, ReportT]):
    """Search for a smaller schedule that breaks the same rule.

    Attributes:
        attempt: Runs a schedule.
        rule: Returns the rule that a run broke first; None: none.
        most: Schedules to try at most.
        runs: Schedules that were tried.
    """

    attempt: Callable[[ScheduleT], ReportT]
    rule: Callable[[ReportT], object]
    most: int
    runs: int = 0

    def smallest(self, report: ReportT, smaller: Callable[[ReportT], Iterable[ScheduleT]]) -> ReportT:
        """Return the report of the smallest schedule that was found, or the given one of a failing run.

        `smaller` yields the schedules to try in place of the one of a report, the largest reductions first.
        """
        broken, again = self.rule(report), True
        while again:
            again = False
            for candidate in smaller(report):
                if self.runs >= self.most:
                    return report
                self.runs += 1
                found = self.attempt(candidate)
                if self.rule(found) == broken:
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


def deviations(setup: SetupT) -> dict[str, Any]:
    """Return what differs in a setup from the plain one."""
    plain = type(setup)()
    values = ((field.name, getattr(setup, field.name)) for field in attrs.fields(type(setup)))
    return {name: value for name, value in values if value != getattr(plain, name)}


def plainer(setup: SetupT) -> Iterator[SetupT]:
    """Yield setups closer to the plain one: the plain one first, then each without one deviation."""
    plain, names = type(setup)(), deviations(setup)
    if len(names) > 1:
        yield plain
    for name in names:
        yield attrs.evolve(setup, **{name: getattr(plain, name)})
