"""Break the rules of the system of Refill as the configurations `mut_*` and `doc_*` of its model do."""

from collections.abc import Callable, Mapping
from typing import Final

from stablecast.lab.proof.system import SystemText
from tests.adapters.lab.proof.mutants import Mutant, guard_replaced


def _whole_without(part: str, instead: str) -> Callable[[SystemText], None]:
    """Let a store count as whole although a part of that does not hold."""

    def change(text: SystemText) -> None:
        heads, guards, updates = text.transitions["Replace"]
        assert part in guards[2]
        text.transitions["Replace"] = (heads, (*guards[:2], guards[2].replace(part, instead), *guards[3:]), updates)

    return change


def _any_life(text: SystemText) -> None:
    """Let peers answer for whatever life is current there, and let the store keep what any life sent."""
    guard_replaced("Refill", 2, "true")(text)
    guard_replaced("Refill", 4, text.transitions["Refill"][1][4].replace("disk_life(s2, l) & ", ""))(text)


MUTANTS: Final[Mapping[str, Mutant]] = {
    "doc_early": Mutant(guard_replaced("Replace", 2, "all s1. mended(s1) -> s1 != s"), "Replace", "stable is kept"),
    "doc_wiped": Mutant(_whole_without("healing ->", "false ->"), "Replace", "stable is kept"),
    "mut_any_life_bug": Mutant(_any_life, "Refill", "held by history"),
    "mut_blank_votes_bug": Mutant(
        guard_replaced("Begin", 3, "all s1. in_k(s1, k) -> up(s1)"), "Begin", "above all stable"
    ),
    "mut_recent_bug": Mutant(
        _whole_without("own(now, n1, l1)", "own(now, n1, l1) & l1 = now"), "Replace", "stable is kept"
    ),
    "mut_unsynced_bug": Mutant(
        _whole_without(" & (all n1, l1. disk_holds(s1, n1, l1) <-> holds(s1, n1, l1))", ""),
        "Replace",
        "stable is kept",
    ),
}
"""The mutants by the name of their configuration."""
