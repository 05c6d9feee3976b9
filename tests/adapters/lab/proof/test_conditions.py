"""Both solvers discharge every condition of the proofs, in the decidable fragment; broken rules and weaker
invariants are noticed."""

import pytest

from stablecast.lab.model import catalog
from stablecast.lab.proof import fragment, obligations, solvers, stability, tie
from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.mutants import MUTANTS
from stablecast.lab.proof.obligations import SYSTEMS
from stablecast.lab.proof.solvers import SolverAnswer
from stablecast.lab.proof.system import CONSEQUENCE, INITIAL, Condition, System, script

pytest.importorskip("z3")
pytest.importorskip("cvc5")

CASES = [
    (name, transition)
    for name, made in SYSTEMS.items()
    for transition in (INITIAL, CONSEQUENCE, *(one.name for one in made().transitions))
]
NEEDED = {
    "one count": ("Resume", "nobody is active"),
    "formed by quorum": ("Resume", "later than all"),
    "formed counted": ("Resume", "later than all"),
    "later is claimed": ("Return", "as new as all"),
    "dead by quorum": (CONSEQUENCE, "safe is not dead"),
    "replaced is dead": ("Inform.cut", "cut is dead"),
    "lost is dead": (CONSEQUENCE, "StableByQuorum"),
    "safe by votes": (CONSEQUENCE, "StableByQuorum"),
    "frozen is not begun": ("Tell", "acks are votes"),
    "acks are votes": ("ToSource.acks", "acked are votes"),
    "acked are votes": ("Judge", "safe by votes"),
}
"""Invariants of Stability, each with a condition that fails without it."""


def condition(system: System, transition: str, invariant: str) -> Condition:
    (found,) = [one for one in system.conditions([transition]) if one.invariant == invariant]
    return found


@pytest.mark.parametrize(("name", "transition"), CASES)
def test_both_solvers_discharge_every_condition(name: str, transition: str) -> None:
    system = SYSTEMS[name]()
    for one in system.conditions([transition]):
        found = obligations.discharge(system, one)
        assert found.holds, (found.name, found.results)


@pytest.mark.parametrize("name", SYSTEMS)
def test_axioms_and_invariants_do_not_contradict_each_other(name: str) -> None:
    system = SYSTEMS[name]()
    assert obligations.discharge(system, system.consistent(), consistent=True).holds


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_breaks_an_induction_step(name: str) -> None:
    mutant = MUTANTS[name]
    text = stability.text()
    mutant.breaks(text)
    system = text.read()
    broken = condition(system, mutant.transition, mutant.invariant)
    assert solvers.cvc5(script(system, broken)) is SolverAnswer.FAILS


@pytest.mark.parametrize("name", NEEDED)
def test_a_weaker_invariant_is_noticed(name: str) -> None:
    system = stability.stability().without(name)
    assert solvers.cvc5(script(system, condition(system, *NEEDED[name]))) is SolverAnswer.FAILS


def test_every_broken_configuration_of_the_model_has_a_mutant() -> None:
    configurations = catalog.configurations(catalog.folder(), ("Stability",))
    covered = [one.path.stem for one in configurations if tie.covers(one)]
    assert {stem for stem in covered if stem.startswith(("mut_", "doc_"))} == set(MUTANTS)


def test_a_cycle_of_sorts_is_refused() -> None:
    words = stability.stability().vocabulary
    with pytest.raises(ProofError, match="decidable"):
        fragment.check([words.read("all s. some e. store_told(s, e)"), words.read("all e. some s. formed(e, s)")], "x")


@pytest.mark.parametrize("text", ["all s.", "counts(l)", "unheard(s)", "all s. counts(s, s) &", "?"])
def test_a_malformed_formula_is_refused(text: str) -> None:
    with pytest.raises(ProofError):
        stability.stability().vocabulary.read(text)
