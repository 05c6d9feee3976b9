"""What is so of message numbers, run by run: a record changes a view for runs of numbers, not for each."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.lab.model.views.edges import Seen


class Line(Protocol):
    """A view of every number; between two neighbouring `cuts` it is the same."""

    def cuts(self) -> Iterable[int]:
        """Where it may change."""

    def shown(self, number: int) -> str | None:
        """The view of a number; None where it is not followed."""


def bounds(*sets: RangeSet) -> Iterator[int]:
    """Where the ranges begin and stop."""
    for one in sets:
        for start, stop in one:
            yield start
            yield stop


def changes(whose: str, before: Line, after: Line, actions: Iterable[str]) -> Iterator[Seen]:
    """What a record that may be these actions changed; a run of numbers that were alike, and are, is one."""
    allowed = frozenset(actions)
    run: Seen | None = None
    for start, stop in pairwise(sorted({*before.cuts(), *after.cuts()})):
        old, new = before.shown(start), after.shown(start)
        if old == new or old is None or new is None:
            continue
        if run is not None and (run.stop, run.before, run.after) == (start, old, new):
            run = attrs.evolve(run, stop=stop)
            continue
        if run is not None:
            yield run
        run = Seen(whose, old, allowed, new, first=start, stop=stop)
    if run is not None:
        yield run
