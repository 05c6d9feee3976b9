"""Break the rules by which stores fill each other up and disks are replaced while two processes act for one source."""

from collections.abc import Callable, Mapping
from typing import Final

from stablecast.lab.proof.healing import PASSED
from stablecast.lab.proof.system import SystemText
from tests.adapters.lab.proof.mutants import Mutant, guard_replaced, update_replaced


def _mended_without(part: str, instead: str = "") -> Mutant:
    """Count stores as whole although a part of that does not hold."""

    def change(text: SystemText) -> None:
        mended = text.transitions["Wipe"][1][2]
        assert part in mended
        guard_replaced("Wipe", 2, mended.replace(part, instead))(text)

    return Mutant(change, "Wipe", "wiped is gone")


def _refill(guard: int, breaks: str, *instead: str) -> Mutant:
    return Mutant(guard_replaced("Refill", guard, *instead), "Refill", breaks)


def _counted(told: Callable[[SystemText], None]) -> Mutant:
    return Mutant(told, "Refill", "lost is dead")


MUTANTS: Final[Mapping[str, Mutant]] = {
    "messages of any life are taken": _refill(3, "content by history"),
    "messages are made up": _refill(4, "held was sent"),
    "a store is filled up before the life that it granted to is announced": _refill(
        2, "granted synced", "store_told(s, e)"
    ),
    "what a peer sent counts before it is on the disk": _counted(
        update_replaced("Refill", "vote(s1, e1, n1)", "vote(s1, e1, n1) | (s1 = s & e1 = e & found(n1, l))")
    ),
    "a disk is replaced in silence": Mutant(
        update_replaced("Wipe", "gone(s1)", "gone(s1) & !mended(s1)"), "Wipe", "wiped is gone"
    ),
    "a disk is replaced before the others are mended": Mutant(
        guard_replaced("Wipe", 2, "all s1. mended(s1) -> s1 != s"), "Wipe", "wiped is gone"
    ),
    "the last disk of a quorum is replaced": Mutant(guard_replaced("Wipe", 3), "Wipe", "a quorum is not gone"),
    "a disk is replaced while a life counts the store": Mutant(guard_replaced("Wipe", 1), "Wipe", "counted has memory"),
    "what the newest life inherited may be missing": _mended_without(PASSED, "sent(life(last), n1)"),
    "what the newest life sent may be missing": _mended_without(PASSED, "n1 < first(life(last))"),
    "only the messages of the newest life count": _mended_without(
        "own(life(last), n1, l1)", "own(life(last), n1, l1) & l1 = life(last)"
    ),
    "what is in memory counts as on the disk": _mended_without("disk_content(s1, n1, l1) & ", ""),
    "what is about to be cut from the disk counts": _mended_without(" & (up(s1) -> content(s1, n1, l1))"),
}
"""The broken rules by what they do."""
