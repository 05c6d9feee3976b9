"""Compare views of message numbers run by run, because a record changes whole runs of numbers."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.lab.model.views.edges import Seen


class NumberLine(Protocol):
    """Show every number; between two neighbouring `cuts` the view is the same."""

    def cuts(self) -> Iterable[int]:
        """Return the numbers where the view may change."""

    def shown(self, number: int) -> str | None:
        """Return the view of a number; None where it is not followed."""


def bounds(*sets: RangeSet) -> Iterator[int]:
    """Yield where the ranges begin and stop."""
    for one in sets:
        for start, stop in one:
            yield start
            yield stop


def changes(whose: str, before: NumberLine, after: NumberLine, actions: Iterable[str]) -> Iterator[Seen]:
    """Yield what a record that may be these actions changed; equal neighbours are one run."""
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
