"""State Stability together with Refill: stores fill each other up while two processes act for one source.

The system is that of `stability`, with its rivals, and two changes. A store that a life has announced itself to may
take whatever the history of that life ascribes to anybody who sent it, however late the answer of the peer comes. And
disks are replaced under the condition of `refill`: each quorum has a store that keeps the disk of when it was whole
last. `gone(s)` is history: the disk of s was replaced, and s was not found whole since.

Only what is not a condition of Stability is left to discharge.
"""

from typing import Final

from stablecast.lab.proof import stability
from stablecast.lab.proof.language import BOOL, Symbol
from stablecast.lab.proof.system import System, SystemText

PASSED: Final = "(n1 < first(life(last)) | sent(life(last), n1))"
"""The number n1 is used, as the newest life sees it."""
WHOLE: Final = (
    f"(all n1, l1. own(life(last), n1, l1) & {PASSED} -> disk_content(s1, n1, l1) & (up(s1) -> content(s1, n1, l1)))"
)
"""The store s1 has all that the history of the newest life ascribes to anybody on its disk."""
MENDED: Final = f"all s1. mended(s1) -> s1 != s & {WHOLE}"
INVARIANTS: Final = {
    "a quorum is not gone": "all k. some s. in_k(s, k) & !gone(s)",
    "wiped is gone": "all s, e, n. wiped(s, e, n) -> gone(s) | dead(e, n)"
    " | (disk_content(s, n, life(e)) & (up(s) -> content(s, n, life(e))))",
}
PROPERTIES: Final = {
    "KeptByQuorum": "all e, n. safe(e, n) -> (some k. all s. in_k(s, k) -> disk_content(s, n, life(e)) | gone(s))",
    "NoStableLost": "all e, n. safe(e, n) -> (some s. disk_content(s, n, life(e)))",
    "NoDead": "all s, e, n, l. store_told(s, last) & began(last) & content(s, n, l) & safe(e, n) -> l = life(e)",
    "NothingInvented": "all s, n, l. (up(s) & content(s, n, l)) | disk_content(s, n, l) -> sent(l, n)",
    # A stable message that the store has not yet is one that it knows to lack.
    "Healed": "all s, e, n1. began(last) & store_told(s, last) & safe(e, n1) & !content(s, n1, life(e)) ->"
    f" {PASSED} & (all l. !content(s, n1, l))",
}


def text() -> SystemText:
    told = stability.text()
    told.name = "Healing"
    told.variables = {**told.variables, "gone": Symbol("gone", ("Store",), BOOL)}
    told.initial["gone(s1)"] = "false"
    # The peer may have answered long ago, and have lost the message since: that it was sent is all that counts.
    told.transitions["Refill"] = (
        "s l e found(n, l)",
        (
            "up(s)",
            "store_life(s, l)",
            "store_begun(s) & store_told(s, e)",
            "all n1, l1. found(n1, l1) -> own(l, n1, l1)",
            "all n1, l1. found(n1, l1) -> sent(l1, n1)",
        ),
        {"content(s1, n1, l1)": "content(s1, n1, l1) | (s1 = s & found(n1, l1))"},
    )
    heads, guards, updates = told.transitions["Wipe"]
    told.transitions["Wipe"] = (
        f"{heads} mended(s)",
        (*guards, MENDED, "all k. some s1. in_k(s1, k) & s1 != s & (mended(s1) | !gone(s1))"),
        {**updates, "gone(s1)": "(gone(s1) & !mended(s1)) | s1 = s"},
    )
    told.invariants.update(INVARIANTS)
    told.consequences.update(PROPERTIES)
    return told


def healing() -> System:
    """Return the system; the conditions of Stability are taken as discharged."""
    return text().read(stability.stability())
