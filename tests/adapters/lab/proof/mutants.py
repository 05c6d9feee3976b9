"""Break the rules of the system of Stability as the configurations `mut_*` and `doc_*` of its model do.

Each mutant replaces text of transitions or axioms. A condition that held must then fail: an induction step breaks.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from stablecast.lab.proof.system import SystemText


@attrs.frozen
class Mutant:
    """Name a broken rule, the transition whose condition must fail, and that condition's invariant."""

    breaks: Callable[[SystemText], None]
    transition: str
    invariant: str


def guard_replaced(name: str, drop: int, *instead: str) -> Callable[[SystemText], None]:
    """Return the change that replaces a guard of a transition, or drops it."""

    def change(text: SystemText) -> None:
        heads, guards, updates = text.transitions[name]
        text.transitions[name] = (heads, (*guards[:drop], *instead, *guards[drop + 1 :]), updates)

    return change


def update_replaced(name: str, head: str, value: str | None) -> Callable[[SystemText], None]:
    """Return the change that replaces an update of a transition, or drops it."""

    def change(text: SystemText) -> None:
        heads, guards, updates = text.transitions[name]
        kept = {one: old for one, old in updates.items() if one != head}
        text.transitions[name] = (heads, guards, kept if value is None else {**kept, head: value})

    return change


def both(*changes: Callable[[SystemText], None]) -> Callable[[SystemText], None]:
    """Return the change that makes all of these."""

    def change(text: SystemText) -> None:
        for one in changes:
            one(text)

    return change


def _axiom(name: str) -> Callable[[SystemText], None]:
    def change(text: SystemText) -> None:
        text.axioms = {one: formula for one, formula in text.axioms.items() if one != name}

    return change


def _blank_votes(text: SystemText) -> None:
    """Let stores without memory vote on where a life begins."""
    for name in ("Resume", "Resume.followed"):
        heads, guards, updates = text.transitions[name]
        text.transitions[name] = (heads, tuple(one.replace(" & !granted_blank(l, s1)", "") for one in guards), updates)


def _one_group(text: SystemText) -> None:
    """Let a life return under a newer term with the stores that suffice to go on with."""
    heads, guards, updates = text.transitions["Return.renewed"]
    enough = guards[-1].replace("in_r(s1, r)", "in_c(s1, c)")
    text.transitions["Return.renewed"] = (heads.replace(" r", " c"), (*guards[:-1], enough), updates)


_CUT_AT_RETURN = update_replaced(
    "Inform.cut", "content(s1, n1, l1)", "content(s1, n1, l1) & (s1 != s | (n1 < n & n1 < first(l)))"
)

MUTANTS: Final[Mapping[str, Mutant]] = {
    "mut_ack_before_sync_bug": Mutant(
        guard_replaced("Tell", 1, "all n1. told(n1) -> content(s, n1, l)"), "Tell", "acks are votes"
    ),
    "mut_any_life_bug": Mutant(
        guard_replaced("ToSource.acks", 2, "all n1. heard(n1) -> (some l2. ack(s, l2, n1))"),
        "ToSource.acks",
        "acked are votes",
    ),
    "mut_present_quorum_bug": Mutant(
        guard_replaced("Judge", 2, "all s. in_k(s, k) & counts(l, s) -> acked(l, s, n)"), "Judge", "safe by votes"
    ),
    "mut_cut_low_bug": Mutant(
        both(
            guard_replaced("Inform.cut", 7, "all m, l4. m <= n -> (own(life(e2), m, l4) <-> own(l, m, l4))"),
            guard_replaced("Inform.cut", 6),
        ),
        "Inform.cut",
        "cut is dead",
    ),
    "mut_cut_at_return_bug": Mutant(_CUT_AT_RETURN, "Inform.cut", "cut is dead"),
    "mut_cut_at_return_once_bug": Mutant(_CUT_AT_RETURN, "Inform.cut", "cut is dead"),
    "mut_resume_at_newest_bug": Mutant(
        guard_replaced("Resume.followed", 4), "Resume.followed", "what is excluded has no vote"
    ),
    "mut_used_twice_bug": Mutant(
        guard_replaced("Resume.followed", 4), "Resume.followed", "what is excluded has no vote"
    ),
    "mut_early_release_bug": Mutant(guard_replaced("Judge.released", 1), "Judge.released", "released is stable"),
    "mut_own_count_bug": Mutant(
        guard_replaced("Resume.followed", 2, "all s1. in_r(s1, r) -> counts(l, s1)"),
        "Resume.followed",
        "formed by quorum",
    ),
    "mut_no_second_round_bug": Mutant(guard_replaced("Return", 2), "Return", "as new as all"),
    "mut_one_group_returns_bug": Mutant(_one_group, "Return.renewed", "formed by quorum"),
    "mut_no_proof_bug": Mutant(
        both(
            update_replaced("Return.renewed", "owes(l1, s1)", None),
            update_replaced("Return.renewed", "acked(l1, s1, n1)", None),
        ),
        "Return.renewed",
        "acked are votes",
    ),
    "mut_forgotten_agrees_bug": Mutant(guard_replaced("Inform.cut", 7), "Inform.cut", "content by history"),
    "doc_any_group": Mutant(_axiom("beginnings meet what keeps"), "Inv", "safe is not dead"),
    "doc_all_active": Mutant(_axiom("beginnings meet what keeps"), "Inv", "safe is not dead"),
    "doc_backup": Mutant(_axiom("beginnings meet what keeps"), "Inv", "safe is not dead"),
    "doc_lowest": Mutant(guard_replaced("Resume.followed", 4), "Resume.followed", "what is excluded has no vote"),
    "doc_majority": Mutant(guard_replaced("Resume.followed", 4), "Resume.followed", "what is excluded has no vote"),
    "doc_one_number": Mutant(
        update_replaced("Inform.cut", "content(s1, n1, l1)", None), "Inform.cut", "content by history"
    ),
    "doc_vote": Mutant(update_replaced("Wipe", "disk_blank(s1)", None), "Wipe", "votes told"),
    "doc_wiped": Mutant(_blank_votes, "Resume.followed", "what is excluded has no vote"),
    "mut_blank_votes_bug": Mutant(_blank_votes, "Resume.followed", "what is excluded has no vote"),
    "mut_few_vote_bug": Mutant(_blank_votes, "Resume.followed", "what is excluded has no vote"),
    "mut_held_only_bug": Mutant(
        guard_replaced("Resume.followed", 3), "Resume.followed", "what is excluded has no vote"
    ),
}
"""The mutants by the name of their configuration."""
