"""Break the rules of the system of Registration as the configurations `mut_*` and `doc_*` of its model do."""

from collections.abc import Callable, Mapping
from typing import Final

from stablecast.lab.proof.system import SystemText
from tests.adapters.lab.proof.mutants import Mutant, guard_replaced, update_replaced


def _stolen(free: str) -> Callable[[SystemText], None]:
    """Let a request take the RegID whenever a formula holds."""

    def change(text: SystemText) -> None:
        guard_replaced("ToStore.ask", 2, free)(text)
        guard_replaced("ToStore.late", 2, free)(text)

    return change


def _late_counts(text: SystemText) -> None:
    """Let a grant of an older request count like one of the newest."""
    heads, guards, updates = text.transitions["ToClient.grant"]
    text.transitions["ToClient.late"] = (heads, ("late_grant(i)", *guards[1:]), updates)


MUTANTS: Final[Mapping[str, Mutant]] = {
    "doc_no_lease": Mutant(
        update_replaced("ClientTimer.lapsed", "renewing(i1)", None), "ClientTimer.lapsed", "belief needs a lease"
    ),
    "mut_any_generation_bug": Mutant(_late_counts, "ToClient.late", "believed at the store"),
    "mut_lease_from_answer_bug": Mutant(
        update_replaced("ToClient.grant", "lease(i1)", "if i1 = i then horizon else lease(i1)"),
        "ToClient.grant",
        "believed at the store",
    ),
    "mut_steal_bug": Mutant(_stolen("true"), "ToStore.ask", "believed at the store"),
    "mut_answer_before_sync_bug": Mutant(
        update_replaced("ToStore.ask", "fresh_grant(i1)", "fresh_grant(i1) | i1 = i"), "ToStore.ask", "granted on disk"
    ),
    "mut_restart_forgets_bug": Mutant(
        guard_replaced("Restart.empty", 1, "true"), "Restart.empty", "believed at the store"
    ),
    "mut_restart_inactive_bug": Mutant(
        update_replaced("Restart", "active", "false"), "Restart", "believed at the store"
    ),
    "mut_take_turns_bug": Mutant(
        _stolen("holder = nobody | holder = i | !active | later(i, holder) | later(holder, i)"),
        "ToStore.ask",
        "NoReturn",
    ),
}
"""The mutants by the name of their configuration."""
