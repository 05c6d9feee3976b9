"""Both solvers discharge every condition of the proofs, in the decidable fragment; broken rules and weaker
invariants are noticed."""

import attrs
import pytest

from stablecast.lab.model import catalog
from stablecast.lab.proof import (
    fragment,
    healing,
    obligations,
    recovery,
    refill,
    registration,
    solvers,
    stability,
    tie,
)
from stablecast.lab.proof.errors import ProofError
from stablecast.lab.proof.obligations import SYSTEMS
from stablecast.lab.proof.solvers import SolverAnswer
from stablecast.lab.proof.system import CONSEQUENCE, Condition, System, script
from tests.adapters.lab.proof import mutants, mutants_healing, mutants_recovery, mutants_refill, mutants_registration
from tests.support.verdicts import Verdict

z3 = pytest.importorskip("z3")
cvc5 = pytest.importorskip("cvc5")
SOLVERS = (z3.get_version_string(), str(cvc5.__version__))

CASES = [
    (name, transition)
    for name, made in SYSTEMS.items()
    for transition in dict.fromkeys(one.transition for one in made().conditions())
]
MUTANTS = {
    **{f"Stability/{name}": (mutant, stability.text) for name, mutant in mutants.MUTANTS.items()},
    **{f"Refill/{name}": (mutant, refill.text) for name, mutant in mutants_refill.MUTANTS.items()},
    **{f"Registration/{name}": (mutant, registration.text) for name, mutant in mutants_registration.MUTANTS.items()},
}
RECOVERY = {f"Recovery/{name}": (mutant, recovery.text) for name, mutant in mutants_recovery.MUTANTS.items()}
HEALING = {f"Healing/{name}": (mutant, healing.text) for name, mutant in mutants_healing.MUTANTS.items()}
"""Mutants of rules that no configuration of a model breaks."""
NEEDED = {
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
    "wiped is used": ("Sync.granted", "a grant reports votes"),
    "votes were sent": ("Inform", "wiped is used"),
    "a grant reports votes": ("ToSource.grant", "counted votes"),
    "counted votes": ("Resume.followed", "what is excluded has no vote"),
    "counted votes told": ("Resume.followed", "what is excluded has no vote"),
    "counted has memory": ("Return.renewed", "dead by quorum"),
}
"""Invariants of Stability, each with a condition that fails without it."""
NEEDED_FOR_REGISTRATION = {
    "believed on disk": (CONSEQUENCE, "OneHolder"),
    "believed at the store": ("StoreTimer.silent", "believed at the store"),
    "belief needs a lease": ("StoreTimer.silent", "believed at the store"),
    "granted at the store": ("ToClient.grant", "believed at the store"),
    "granted on disk": ("ToClient.grant", "believed on disk"),
    "written at the store": ("Sync", "granted at the store"),
    "asked before now": ("ToStore.ask", "believed at the store"),
    "answers follow questions": ("ToClient.alive", "believed at the store"),
    "no older question after a request": ("ToStore.probe_old", "no older answer after a grant"),
    "one question at a time": ("ClientTimer.probe", "answers follow questions"),
}
"""Invariants of Registration, each with a condition that fails without it."""
NEEDED_FOR_REFILL = {
    "a new number is the life's": ("Send", "disk is held"),
    "one owner": (CONSEQUENCE, "NoReuse"),
    "one life": ("Refill", "held by history"),
    "registered has memory": ("Join.again", "stable is remembered"),
    "nothing while down": ("Join", "nothing while down"),
    "held by history": ("Sync", "on disk by history"),
    "disk is held": ("Begin", "above all stable"),
    "replaced is gone": ("Join", "replaced is gone"),
    "a quorum has memory": ("Begin.all", "above all stable"),
    "a quorum is not gone": (CONSEQUENCE, "NoStableLost"),
    "stable is passed": ("Begin", "stable is kept"),
    "stable is remembered": ("Begin", "above all stable"),
    "stable is kept": (CONSEQUENCE, "NoStableLost"),
}
"""Invariants of Refill, each with a condition that fails without it."""
NEEDED_FOR_HEALING = {
    "a quorum is not gone": (CONSEQUENCE, "NoStableLost"),
    "wiped is gone": (CONSEQUENCE, "KeptByQuorum"),
}
"""Invariants that Healing has beside those of Stability, each with a condition that fails without it."""
NEEDED_FOR_RECOVERY = {
    "a session is of a born life": ("Begin", "old is true"),
    "what began is of a life": ("Register", "began above what is settled"),
    "handed in a session": ("Complete.old", "in order"),
    "granted in a session": ("Register", "old is true"),
    "old is true": ("Complete.old", "began above what is settled"),
    "votes are whole": ("Complete.votes", "began above what is settled"),
    "offers are above what is gone": ("Complete.votes", "began above what is settled"),
    "voters did not forget": ("Complete.votes", "never a second start"),
    "enrolled before": ("Grant.new", "voters did not forget"),
    "enrolled is known": ("Grant.new", "voters did not forget"),
    "enrolled after the first": ("Begin", "enrolled is known"),
    "the first is stable": ("Begin", "enrolled is known"),
    "certain by a store that knows": ("Late.certain", "counted stores owe nothing"),
    "began above what is settled": (CONSEQUENCE, "NoGap"),
    "counted stores owe nothing": ("Acknowledge", "said is settled"),
    "in order": (CONSEQUENCE, "NoGap"),
    "said by a born life": ("Begin", "said is settled"),
    "said is settled": ("Arrive", "acknowledged is settled"),
    "acknowledged by history": ("Grant.old", "old is true"),
    "acknowledged is settled": (CONSEQUENCE, "AcknowledgedIsConsumed"),
    "skipped is let go": (CONSEQUENCE, "PassedOverIsLetGo"),
    "lost is nowhere": (CONSEQUENCE, "LostIsNowhere"),
    "bare is stable": (CONSEQUENCE, "NoKeptIsLost"),
    "never a second start": (CONSEQUENCE, "Continues"),
    "stable is kept": (CONSEQUENCE, "NoKeptIsLost"),
}
"""Invariants of Recovery, each with a condition that fails without it."""


def condition(system: System, transition: str, invariant: str) -> Condition:
    (found,) = [one for one in system.conditions([transition]) if one.invariant == invariant]
    return found


@pytest.mark.parametrize(("name", "transition"), CASES)
def test_both_solvers_discharge_every_condition(name: str, transition: str) -> None:
    system = SYSTEMS[name]()
    conditions = list(system.conditions([transition]))
    verdict = Verdict(f"{name}.{transition}", (*SOLVERS, *(script(system, one) for one in conditions)))
    if verdict.shown:
        return
    with verdict.showing():
        for one in conditions:
            found = obligations.discharge(system, one)
            assert found.holds, (found.name, found.results)


@pytest.mark.parametrize("name", SYSTEMS)
def test_axioms_and_invariants_do_not_contradict_each_other(name: str) -> None:
    system = SYSTEMS[name]()
    assert obligations.discharge(system, system.consistent(), consistent=True).holds


@pytest.mark.parametrize("name", [*MUTANTS, *RECOVERY, *HEALING])
def test_a_broken_rule_breaks_an_induction_step(name: str) -> None:
    mutant, made = {**MUTANTS, **RECOVERY, **HEALING}[name]
    text = made()
    mutant.breaks(text)
    # Every invariant is assumed, so the rule alone is at fault.
    system = attrs.evolve(text.read(), needs={})
    broken = condition(system, mutant.transition, mutant.invariant)
    assert solvers.cvc5(script(system, broken)) is SolverAnswer.FAILS


@pytest.mark.parametrize("name", NEEDED)
def test_a_weaker_invariant_is_noticed(name: str) -> None:
    system = attrs.evolve(stability.stability(), needs={}).without(name)
    assert solvers.cvc5(script(system, condition(system, *NEEDED[name]))) is SolverAnswer.FAILS


@pytest.mark.parametrize("name", NEEDED_FOR_REGISTRATION)
def test_a_weaker_invariant_of_registration_is_noticed(name: str) -> None:
    assert fails_without(registration.registration(), name, NEEDED_FOR_REGISTRATION[name])


@pytest.mark.parametrize("name", NEEDED_FOR_REFILL)
def test_a_weaker_invariant_of_refill_is_noticed(name: str) -> None:
    assert fails_without(refill.refill(), name, NEEDED_FOR_REFILL[name])


@pytest.mark.parametrize("name", healing.INVARIANTS)
def test_a_weaker_invariant_of_healing_is_noticed(name: str) -> None:
    assert fails_without(healing.healing(), name, NEEDED_FOR_HEALING[name])


@pytest.mark.parametrize("name", NEEDED_FOR_RECOVERY)
def test_a_weaker_invariant_of_recovery_is_noticed(name: str) -> None:
    assert fails_without(recovery.recovery(), name, NEEDED_FOR_RECOVERY[name])


def test_every_invariant_of_recovery_is_shown_to_be_needed() -> None:
    assert set(NEEDED_FOR_RECOVERY) == set(recovery.INVARIANTS)


def test_what_another_system_proves_is_not_left_out_if_it_differs() -> None:
    whole, base = healing.healing(), stability.stability()
    text = healing.text()
    mutants.guard_replaced("Tell", 1, "true")(text)
    changed = {(one.transition, one.invariant) for one in text.read(base).conditions()}
    left = {(one.transition, one.invariant) for one in whole.conditions()}
    assert ("Tell", "acks are votes") in changed - left
    assert left < changed
    assert left | {(one.transition, one.invariant) for one in base.conditions()} == {
        (one.transition, one.invariant) for one in attrs.evolve(whole, proved=None).conditions()
    }
    weaker = attrs.evolve(whole.without("votes own"), proved=base)
    with pytest.raises(ValueError, match="assumes less"):
        list(weaker.conditions())


def fails_without(system: System, name: str, where: tuple[str, str]) -> bool:
    """Return whether a condition fails when an invariant is assumed no more; the goal stays."""
    kept = condition(system, *where)
    assumed = tuple(one for one in kept.assumptions if one != system.invariants[name])
    assert len(assumed) < len(kept.assumptions)
    return solvers.cvc5(script(system, attrs.evolve(kept, assumptions=assumed))) is SolverAnswer.FAILS


def test_restarts_that_do_not_wait_break_an_induction_step() -> None:
    text = stability.text()
    mutants.guard_replaced("Restart.begun", 2)(text)
    system = text.read()
    assert solvers.cvc5(script(system, condition(system, "Restart.begun", "frozen is not begun"))) is SolverAnswer.FAILS


def test_every_broken_configuration_of_the_tied_models_has_a_mutant() -> None:
    models = tie.TIED.keys() - {"ReceiverVotes"}  # The broken rules of Recovery are others than those of its graphs.
    configurations = catalog.configurations(catalog.folder(), tuple(models))
    broken = {one.name for one in configurations if one.path.stem.startswith(("mut_", "doc_"))}
    assert broken == set(MUTANTS)


def test_a_condition_that_its_own_invariant_does_not_suffice_for_is_proved_with_all() -> None:
    system = refill.refill()
    kept = condition(system, "Join.again", "stable is remembered")
    assert solvers.cvc5(script(system, attrs.evolve(kept, assumptions=kept.narrow))) is SolverAnswer.FAILS
    assert obligations.discharge(system, kept).holds


def test_a_cycle_of_sorts_is_refused() -> None:
    words = stability.stability().vocabulary
    with pytest.raises(ProofError, match="decidable"):
        fragment.check([words.read("all s. some e. store_told(s, e)"), words.read("all e. some s. formed(e, s)")], "x")


@pytest.mark.parametrize("text", ["all s.", "counts(l)", "unheard(s)", "all s. counts(s, s) &", "?"])
def test_a_malformed_formula_is_refused(text: str) -> None:
    with pytest.raises(ProofError):
        stability.stability().vocabulary.read(text)
