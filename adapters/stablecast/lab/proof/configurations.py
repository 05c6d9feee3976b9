"""Check by solver that the groups of a configuration fulfil the axioms of the proof of Stability.

Each axiom says that two sets of stores share one whenever the rules allow both. A solver looks for two disjoint sets,
for any number of stores and groups, and finds none or an example.
"""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Final

import attrs

from stablecast.core.protocol.quorum import Consensus, Intergroup, Intragroup, Quorums
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior
from stablecast.lab.proof import solvers
from stablecast.lab.proof.solvers import SOLVERS, SolverAnswer

NEEDED: Final = (Repair.EVERY_GROUP, Repair.ONE_LIFE, Repair.HOLES, Repair.LEASE)
"""Repairs without which the documented rules lose messages in every layout; the proof is of the repaired ones."""
AXIOMS: Final = {
    "any two beginnings share a store": ("begins", "begins"),
    "a beginning shares a store with every set that keeps a message": ("begins", "keeps"),
    "a beginning shares a store with every set to go on with": ("begins", "goes_on"),
}
"""The axioms of the proof, by their kinds of sets (`stability.AXIOMS`)."""
_BIT: Final = re.compile(r"\(define-fun (a|b)(\d+) \(\) Bool\s+true\)")


@attrs.frozen
class Disjoint:
    """Hold two sets of stores, by index, that the rules allow and that share none."""

    axiom: str
    one: tuple[int, ...]
    other: tuple[int, ...]


@attrs.frozen
class GroupProof:
    """Hold whether the proof covers a configuration; if not, why, and two sets that share no store if that is why."""

    proved: bool
    why: str = ""
    disjoint: Disjoint | None = None


def covers(config: SourceConfig, repairs: Iterable[Repair]) -> GroupProof:
    """Return whether the proof covers a source with these repairs of its own and of its stores.

    Raises:
        ProofError: the solvers disagree.
    """
    if config.behavior is not StoreBehavior.QC:
        return GroupProof(False, "the proof is of quorums, not of round robin")
    if any(find_spec(name) is None for name in SOLVERS):
        return GroupProof(False, "the solvers are missing: install stablecast[prove]")
    known = list(repairs)
    quorums = Quorums.of(config.groups, [store.group for store in config.stores])
    all_groups = quorums.any_group and Repair.EVERY_GROUP in config.repairs
    for axiom, kinds in AXIOMS.items():
        found = _disjoint(axiom, kinds, quorums, all_groups)
        if found is not None:
            return GroupProof(False, f"not {axiom}", found)
    if config.consensus is not Consensus.HIGHEST:
        return GroupProof(False, f"consensus {config.consensus.name.lower()} may use numbers of stable messages again")
    missing = [str(one.name) for one in NEEDED if any(one not in each for each in known)]
    if missing:
        return GroupProof(False, f"the proof needs the repair {', '.join(missing)}")
    return GroupProof(True)


def _disjoint(axiom: str, kinds: tuple[str, str], quorums: Quorums, all_groups: bool) -> Disjoint | None:
    stores = range(max(mask.bit_length() for mask in quorums.members))
    lines = ["(set-logic QF_LIA)", "(set-option :produce-models true)"]
    lines += [f"(declare-const {side}{store} Bool)" for side in "ab" for store in stores]
    lines += [f"(assert {_allowed(kind, side, quorums, all_groups)})" for kind, side in zip(kinds, "ab", strict=True)]
    lines += [f"(assert (not (and a{store} b{store})))" for store in stores]
    text = "\n".join([*lines, "(check-sat)", ""])
    answers = {name: solve(text) for name, solve in SOLVERS.items()}
    if set(answers.values()) == {SolverAnswer.HOLDS}:
        return None
    bits = _BIT.findall(solvers.model(text))
    sides = {side: tuple(sorted(int(store) for one, store in bits if one == side)) for side in "ab"}
    return Disjoint(axiom, sides["a"], sides["b"])


def _allowed(kind: str, side: str, quorums: Quorums, all_groups: bool) -> str:
    """Return the formula that a set of stores is of a kind; the sets that keep a message by the weakest reading."""
    rules = quorums.rules
    counts = [_count(side, mask) for mask in quorums.members]
    most = [f"(> (* 2 {count}) {size})" for count, size in zip(counts, rules.sizes, strict=True)]
    every = [f"(>= {count} {size})" for count, size in zip(counts, rules.sizes, strict=True)]
    met = every if rules.intragroup is Intragroup.ALL else most
    enough = _between(rules.intergroup, met)
    if kind == "goes_on" and rules.intergroup is Intergroup.ALL_ACTIVE:
        active = " ".join(f"(=> {one} {other})" for one, other in zip(most, met, strict=True))
        return f"(and (or {' '.join(most)} false) {active})"
    if kind == "begins" and all_groups:
        return f"(and {enough} {' '.join(most)})"
    return enough


def _between(rule: Intergroup, met: list[str]) -> str:
    if rule is Intergroup.ALL:
        return f"(and {' '.join(met)} true)"
    if rule is Intergroup.MAJORITY:
        total = " ".join(f"(ite {one} 1 0)" for one in met)
        return f"(> (* 2 (+ {total} 0)) {len(met)})"
    return f"(or {' '.join(met)} false)"


def _count(side: str, mask: int) -> str:
    bits = " ".join(f"(ite {side}{store} 1 0)" for store in range(mask.bit_length()) if mask >> store & 1)
    return f"(+ {bits} 0 0)"
