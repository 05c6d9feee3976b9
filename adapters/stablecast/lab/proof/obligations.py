"""Discharge every condition of the systems by both solvers, in several processes.

A condition holds if it lies in the decidable fragment and both solvers say so. The last condition of a system is that
axioms and invariants do not contradict each other: without it everything would hold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import attrs

from stablecast.lab.proof import fragment, solvers
from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.healing import healing
from stablecast.lab.proof.recovery import recovery
from stablecast.lab.proof.refill import refill
from stablecast.lab.proof.registration import registration
from stablecast.lab.proof.solvers import SolverAnswer, SolverResult
from stablecast.lab.proof.stability import stability
from stablecast.lab.proof.system import Condition, System, script

SYSTEMS: Final[Mapping[str, Callable[[], System]]] = {
    "Healing": healing,
    "Recovery": recovery,
    "Refill": refill,
    "Registration": registration,
    "Stability": stability,
}
"""The systems by the name of their model. Recovery is not that of its model, which has no lost disks and one life."""


@attrs.frozen
class Obligation:
    """Hold a condition of a system and the solvers' results. `consistent`: the condition must fail, not hold."""

    system: str
    name: str
    results: Mapping[str, SolverResult]
    consistent: bool = False

    @property
    def holds(self) -> bool:
        """True if both solvers agree as they should."""
        wanted = SolverAnswer.FAILS if self.consistent else SolverAnswer.HOLDS
        return all(result.answer is wanted for result in self.results.values())


def named(names: Sequence[str]) -> list[str]:
    """Return the systems with these names, without any all of them.

    Raises:
        ProofError: there is no such system.
    """
    for name in names:
        if name not in SYSTEMS:
            raise ProofError(f"there is no proof of {name}: proofs are {', '.join(SYSTEMS)}")
    return list(names) or list(SYSTEMS)


def discharge(system: System, condition: Condition, consistent: bool = False) -> Obligation:
    """Discharge one condition.

    Raises:
        ProofError: it lies outside the decidable fragment, or a solver is missing.
    """
    fragment.check(condition.formulas, condition.name)
    narrow = script(system, attrs.evolve(condition, assumptions=condition.narrow)) if condition.narrow else ""
    return Obligation(system.name, condition.name, solvers.discharge(script(system, condition), narrow), consistent)


def discharge_all(names: Sequence[str], jobs: int) -> Iterator[Obligation]:
    """Yield the obligations of systems, in order."""
    parts = [(name, part, jobs) for name in names for part in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        for done in pool.map(_share, parts):
            yield from done


def _share(part: tuple[str, int, int]) -> list[Obligation]:
    """Discharge every `jobs`-th condition of a system."""
    name, first, jobs = part
    system = SYSTEMS[name]()
    done = [discharge(system, one) for one in list(system.conditions())[first::jobs]]
    if not first:
        done.append(discharge(system, system.consistent(), consistent=True))
    return done
