"""State `tla/Refill` as a first-order transition system, with an inductive invariant for any number of everything.

Sorts: stores, lives of the source, numbers, and quorums: the stores with which a life may begin, and those that keep a
stable message. Any two quorums share a store.

`own(l,n,l2)`: the history of life l ascribes number n to l2. `passed(n)`: n is below the next number of the source.
`used(s,n)`: the disk of s shows n to be used, although s may not have the message. `gone(s)` is history: the disk of s
was replaced, and s was not found whole since.
"""

from typing import Final

from stablecast.lab.proof.language import BOOL, Symbol
from stablecast.lab.proof.system import System, SystemText

LETTERS: Final = {"s": "Store", "l": "Life", "n": "Number", "m": "Number", "k": "Quorum"}


def declared(text: str) -> dict[str, Symbol]:
    """Return symbols from `name(letters)` and `name: letter`."""
    symbols = {}
    for one in text.split(";"):
        head, _, result = one.strip().partition(":")
        name, _, inside = head.rstrip(")").partition("(")
        sorts = tuple(LETTERS[letter.strip()] for letter in inside.split(",")) if inside else ()
        symbols[name] = Symbol(name, sorts, LETTERS[result.strip()] if result else BOOL)
    return symbols


CONSTANTS: Final = declared("careful; healing; nobody: l; least: n; in_k(s, k)")
VARIABLES: Final = declared(
    "now: l; born(l); passed(n); own(l, n, l); sent(l, n); stable(n, l);"
    "up(s); joined(s); holds(s, n, l);"
    "disk_life(s, l); disk_holds(s, n, l); kept(s); used(s, n); gone(s)"
)
AXIOMS: Final = {
    "least is the least number": "all n. least <= n",
    "quorums meet": "all k, k2. some s. in_k(s, k) & in_k(s, k2)",
}
WHOLE: Final = (
    "(up(s1) & joined(s1) & (healing -> (all n1, l1. passed(n1) & own(now, n1, l1) -> holds(s1, n1, l1)))"
    " & (all n1, l1. disk_holds(s1, n1, l1) <-> holds(s1, n1, l1)))"
)
"""The store s1 lacks nothing, and all of it is on its disk."""


def _actions(text: SystemText) -> None:
    add = text.transitions
    _beginnings(text)
    add["Send"] = (
        "n",
        ("now != nobody", "!passed(n)", "all m. m < n -> passed(m)"),
        {
            "passed(n1)": "passed(n1) | n1 = n",
            "sent(l1, n1)": "sent(l1, n1) | (l1 = now & n1 = n)",
            "holds(s1, n1, l1)": "(holds(s1, n1, l1) & !(n1 = n & joined(s1))) | (joined(s1) & n1 = n & l1 = now)",
        },
    )
    add["Sync"] = (
        "s",
        ("up(s)",),
        {"disk_holds(s1, n1, l1)": "(s1 != s & disk_holds(s1, n1, l1)) | (s1 = s & holds(s1, n1, l1))"},
    )
    # The source reports what the disks of a quorum hold of the current life.
    add["Report"] = (
        "n k",
        ("passed(n) & own(now, n, now)", "all s1. in_k(s1, k) -> disk_life(s1, now) & disk_holds(s1, n, now)"),
        {"stable(n1, l1)": "stable(n1, l1) | (n1 = n & l1 = now)"},
    )
    # A peer answers for the life that is current there, and the store keeps what the history ascribes to that life.
    add["Refill"] = (
        "s l found(n, l)",
        (
            "healing",
            "up(s) & disk_life(s, l)",
            "all n1, l1. found(n1, l1) -> own(l, n1, l1)",
            "all n1, l1, l2. found(n1, l1) -> !holds(s, n1, l2)",
            "all n1, l1. found(n1, l1) -> (some s2. s2 != s & up(s2) & disk_life(s2, l) & holds(s2, n1, l1))",
        ),
        {"holds(s1, n1, l1)": "holds(s1, n1, l1) | (s1 = s & found(n1, l1))"},
    )
    _faults(text)


def _beginnings(text: SystemText) -> None:
    history = "(l1 != l & own(l1, n1, l2)) | (l1 = l & n1 < n & own(now, n1, l2)) | (l1 = l & n <= n1 & l2 = l)"
    # A message stays if the new history ascribes it to the same life: all below the parting of the histories.
    follows = "((n2 < n & own(now, n2, l2)) | (n <= n2 & l2 = l))".replace("n2", "n1").replace("l2", "l1")
    begun = {
        "now": "l",
        "born(l1)": "born(l1) | l1 = l",
        "passed(n1)": "n1 < n",
        "own(l1, n1, l2)": history,
        "joined(s1)": "joined(s1) | up(s1)",
        "holds(s1, n1, l1)": f"holds(s1, n1, l1) & (!up(s1) | {follows})",
        "disk_life(s1, l1)": "(!up(s1) & disk_life(s1, l1)) | (up(s1) & l1 = l)",
        "disk_holds(s1, n1, l1)": f"(!up(s1) & disk_holds(s1, n1, l1)) | (up(s1) & holds(s1, n1, l1) & {follows})",
        "kept(s1)": "kept(s1) | up(s1)",
        "used(s1, n1)": (
            "(up(s1) & (!kept(s1) | used(s1, least)) & n1 < n)"
            " | (!(up(s1) & (!kept(s1) | used(s1, least))) & used(s1, n1))"
        ),
    }
    above = (
        "!born(l) & l != nobody",
        "all s1, m1, l1. up(s1) & holds(s1, m1, l1) -> m1 < n",
        "all s1, m1. up(s1) & used(s1, m1) -> m1 < n",
    )
    text.transitions["Begin"] = ("l n k", (*above, "all s1. in_k(s1, k) -> up(s1) & kept(s1)"), begun)
    text.transitions["Begin.all"] = ("l n", (*above, "all s1. up(s1)"), begun)
    joins = ("now != nobody", "up(s) & !joined(s)")
    joined = {"joined(s1)": "joined(s1) | s1 = s", "kept(s1)": "kept(s1) | s1 = s"}
    text.transitions["Join"] = (
        "s",
        (*joins, "!disk_life(s, now)"),
        {
            **joined,
            "holds(s1, n1, l1)": "holds(s1, n1, l1) & (s1 != s | own(now, n1, l1))",
            "disk_life(s1, l1)": "(s1 != s & disk_life(s1, l1)) | (s1 = s & l1 = now)",
            "disk_holds(s1, n1, l1)": (
                "(s1 != s & disk_holds(s1, n1, l1)) | (s1 = s & holds(s1, n1, l1) & own(now, n1, l1))"
            ),
            "used(s1, n1)": (
                "(s1 = s & (!kept(s1) | used(s1, least)) & passed(n1))"
                " | (!(s1 = s & (!kept(s1) | used(s1, least))) & used(s1, n1))"
            ),
        },
    )
    text.transitions["Join.again"] = (
        "s",
        (*joins, "disk_life(s, now)"),
        {
            **joined,
            "disk_holds(s1, n1, l1)": "(s1 != s & disk_holds(s1, n1, l1)) | (s1 = s & holds(s1, n1, l1))",
        },
    )


def _faults(text: SystemText) -> None:
    text.transitions["Stop"] = (
        "s",
        ("up(s)",),
        {
            "up(s1)": "up(s1) & s1 != s",
            "joined(s1)": "joined(s1) & s1 != s",
            "holds(s1, n1, l1)": "holds(s1, n1, l1) & s1 != s",
        },
    )
    text.transitions["Start"] = (
        "s",
        ("!up(s)",),
        {
            "up(s1)": "up(s1) | s1 = s",
            "holds(s1, n1, l1)": "(s1 != s & holds(s1, n1, l1)) | (s1 = s & disk_holds(s1, n1, l1))",
        },
    )
    empty = {
        "disk_life(s1, l1)": "disk_life(s1, l1) & s1 != s",
        "disk_holds(s1, n1, l1)": "disk_holds(s1, n1, l1) & s1 != s",
        "kept(s1)": "kept(s1) & s1 != s",
        "used(s1, n1)": "used(s1, n1) & s1 != s",
    }
    # Each quorum has a store that keeps the disk of when it was whole last. The model replaces one disk at a time.
    text.transitions["Replace"] = (
        "s mended(s)",
        (
            "careful",
            "!up(s)",
            f"all s1. mended(s1) -> s1 != s & {WHOLE}",
            "all k. some s1. in_k(s1, k) & s1 != s & (mended(s1) | !gone(s1))",
        ),
        {**empty, "gone(s1)": "(gone(s1) & !mended(s1)) | s1 = s"},
    )
    text.transitions["Replace.early"] = (
        "s",
        ("!careful", "!up(s)", "all k. some s1. in_k(s1, k) & s1 != s & kept(s1)"),
        empty,
    )


INVARIANTS: Final = {
    "now is born": "now = nobody | born(now)",
    "nobody is not born": "!born(nobody)",
    "passed from below": "all n, m. passed(n) & m <= n -> passed(m)",
    "used from below": "all s, n, m. used(s, n) & m <= n -> used(s, m)",
    "a new number is the life's": "all n. now != nobody & !passed(n) -> own(now, n, now)",
    # Histories.
    "an owner is born": "all l, n, l2. own(l, n, l2) -> born(l) & born(l2)",
    "one owner": "all l, n, l2, l3. own(l, n, l2) & own(l, n, l3) -> l2 = l3",
    # Stores.
    "joined is up": "all s. joined(s) -> up(s) & disk_life(s, now) & now != nobody",
    "one life": "all s, l, l2. disk_life(s, l) & disk_life(s, l2) -> l = l2",
    "a life is born": "all s, l. disk_life(s, l) -> born(l)",
    "registered has memory": "all s, l. disk_life(s, l) -> kept(s)",
    "nothing while down": "all s, n, l. holds(s, n, l) -> up(s)",
    "held by history": "all s, n, l, l2. holds(s, n, l) & disk_life(s, l2) -> own(l2, n, l)",
    "on disk by history": "all s, n, l, l2. disk_holds(s, n, l) & disk_life(s, l2) -> own(l2, n, l)",
    "disk is held": "all s, n, l. up(s) & disk_holds(s, n, l) -> holds(s, n, l)",
    "held is sent": "all s, n, l. holds(s, n, l) | disk_holds(s, n, l) -> sent(l, n)",
    # Memory.
    "replaced is gone": "careful -> (all s. !kept(s) -> gone(s))",
    "a quorum has memory": "all k. some s. in_k(s, k) & kept(s)",
    "a quorum is not gone": "careful -> (all k. some s. in_k(s, k) & !gone(s))",
    # Stable messages.
    "stable is passed": "all n, l. stable(n, l) -> passed(n) & own(now, n, l)",
    "stable is remembered": "all n, l. stable(n, l) -> (some k. all s. in_k(s, k) ->"
    " disk_holds(s, n, l) | used(s, n) | !kept(s))",
    "stable is kept": "careful & healing -> (all n, l. stable(n, l) -> (some k. all s. in_k(s, k) ->"
    " disk_holds(s, n, l) | gone(s)))",
}
LEMMAS: Final = {name: {"above all stable": "all n1, l1. stable(n1, l1) -> n1 < n"} for name in ("Begin", "Begin.all")}
PROPERTIES: Final = {
    "NoStableLost": "careful & healing -> (all n, l. stable(n, l) -> (some s. disk_holds(s, n, l)))",
    "NoDead": "all s, n, l. joined(s) & holds(s, n, l) -> own(now, n, l)",
    "NoReuse": "all n, l, l2. stable(n, l) & own(now, n, l2) -> l = l2",
    "NothingInvented": "all s, n, l. holds(s, n, l) -> sent(l, n)",
    "Healed": "all s. joined(s) & (all n1. passed(n1) -> (some l1. holds(s, n1, l1))) ->"
    " (all n, l. stable(n, l) -> holds(s, n, l))",
}
_EMPTY = (
    "born(l1); passed(n1); own(l1, n1, l2); sent(l1, n1); stable(n1, l1); joined(s1); holds(s1, n1, l1);"
    "disk_life(s1, l1); disk_holds(s1, n1, l1); used(s1, n1); gone(s1)"
)
NOTHING: Final = {
    **{head.strip(): "false" for head in _EMPTY.split(";")},
    "now": "nobody",
    "up(s1)": "true",
    "kept(s1)": "true",
}
"""The initial state."""


def text() -> SystemText:
    told = SystemText("Refill", LETTERS, frozenset({"Number"}), CONSTANTS, VARIABLES, AXIOMS)
    told.initial.update(NOTHING)
    _actions(told)
    told.invariants.update(INVARIANTS)
    told.lemmas.update(LEMMAS)
    told.consequences.update(PROPERTIES)
    return told


def refill() -> System:
    return text().read()
