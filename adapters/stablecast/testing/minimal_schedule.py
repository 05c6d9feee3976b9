"""The shortest schedule that fails as a given one does: strikes are left out, then shortened, while it still fails."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from stablecast.lab.schedules.reduction import Reduction, without
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.world_run import Outcome

RUNS: Final = 60
"""Worlds that the search may run."""

Run = Callable[[Sequence[Strike]], Outcome]

SPANS: Final = (1 * MILLISECOND, 100 * MILLISECOND, 1_000 * MILLISECOND)
"""Spans that are tried in place of longer ones, in ns."""


def minimised(
    failing: Outcome, run: Callable[[Sequence[Strike]], Outcome], most: int | None = None
) -> tuple[Outcome, int]:
    """Return the shortest failing run that was found, and how many of at most `most` worlds the search ran."""
    search: Reduction[Sequence[Strike], Outcome] = Reduction(
        run, lambda one: one.failure and one.failure.signature, RUNS if most is None else most
    )
    # Strikes without effect are left out first, because that nearly always succeeds.
    found = search.smallest(failing, lambda one: [one.struck] if len(one.struck) < len(one.strikes) else [])
    found = search.smallest(found, lambda one: without(one.strikes))
    return search.smallest(found, _simpler), search.runs


def _simpler(outcome: Outcome) -> Iterator[list[Strike]]:
    """Yield the schedule with one strike shortened, or without its loss of power."""
    strikes = list(outcome.strikes)
    for number, strike in enumerate(strikes):
        simpler = [attrs.evolve(strike, power=False)] if strike.power else []
        simpler += [attrs.evolve(strike, span=span) for span in SPANS if span < strike.span]
        yield from ([*strikes[:number], one, *strikes[number + 1 :]] for one in simpler)
