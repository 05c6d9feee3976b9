"""The shortest schedule that fails as a given one does: strikes are left out, then shortened, while it still fails."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from stablecast.lab.schedules.reduction import without
from stablecast.testing.schedule import MILLISECOND, Strike
from stablecast.testing.world_run import Outcome

RUNS: Final = 60
"""Worlds that the search may run."""

SPANS: Final = (1 * MILLISECOND, 100 * MILLISECOND, 1_000 * MILLISECOND)
"""Spans that are tried in place of longer ones, in ns."""

Run = Callable[[Sequence[Strike]], Outcome]


class MinimalSchedule:
    """The search for a minimal schedule.

    Attributes:
        best: The shortest failing run so far.
        runs: The number of worlds that the search ran.
    """

    def __init__(self, failing: Outcome, run: Run, limit: int | None = None) -> None:
        """Prepare to shorten a failing run; `run` runs the test with another schedule."""
        self.best = failing
        self.runs = 0
        self._run = run
        self._limit = RUNS if limit is None else limit

    def search(self) -> Outcome:
        """Return the shortest failing run that was found."""
        if self.best.failure is None:
            return self.best
        # Strikes without effect are left out first, because that nearly always succeeds.
        if len(self.best.struck) < len(self.best.strikes):
            self._try(self.best.struck)
        while any(self._try(shorter) for shorter in without(self.best.strikes)):
            pass
        while any(self._try(simpler) for simpler in self._simpler()):
            pass
        return self.best

    def _try(self, strikes: Sequence[Strike]) -> bool:
        """Run a schedule; keep and return whether it fails in the same way."""
        if self.runs >= self._limit:
            return False
        self.runs += 1
        outcome = self._run(strikes)
        if outcome.failure is None or self.best.failure is None:
            return False
        if outcome.failure.signature != self.best.failure.signature:
            return False
        self.best = outcome
        return True

    def _simpler(self) -> Iterator[list[Strike]]:
        """Yield the schedule with one strike shortened, or without its loss of power."""
        strikes = list(self.best.strikes)
        for number, strike in enumerate(strikes):
            for simpler in _simpler_strikes(strike):
                yield [*strikes[:number], simpler, *strikes[number + 1 :]]


def _simpler_strikes(strike: Strike) -> Iterator[Strike]:
    if strike.power:
        yield attrs.evolve(strike, power=False)
    for span in SPANS:
        if span < strike.span:
            yield attrs.evolve(strike, span=span)
