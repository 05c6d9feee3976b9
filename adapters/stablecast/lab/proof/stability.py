"""State `tla/Stability` as a first-order transition system, with an inductive invariant for any number of everything.

Sorts: stores, lives of the source, epochs (a life under a term), terms, numbers, and three kinds of quorums: the stores
with which a life may begin (R), with which it may go on (C), and that keep a stable message (K). All that is known of
quorums is that some kinds share a store; a solver checks that for a configuration (`configurations`).

The variables are those of the model. `store[s]` is written `store_life(s,l)`, `store_told(s,e)` and so on, and
`disk[s]` in the same way. A history that a store was told of is that of an epoch: `told(s,e)` stands for the model's
`lives` (those of the life of e) and `told` (the term of e). `own(l,n,l2)`: the history of l ascribes n to l2.
"""

from typing import Final

from stablecast.lab.proof.language import BOOL, Symbol
from stablecast.lab.proof.stability_beginnings import ANNOUNCED, reviews
from stablecast.lab.proof.stability_invariants import INVARIANTS, LEMMAS, NEEDS, PROPERTIES
from stablecast.lab.proof.system import System, SystemText

LETTERS: Final = {
    "s": "Store",
    "l": "Life",
    "e": "Epoch",
    "t": "Term",
    "n": "Number",
    "m": "Number",
    "r": "BeginQuorum",
    "c": "GoOnQuorum",
    "k": "KeepQuorum",
}


def _symbols(text: str) -> dict[str, Symbol]:
    """Return symbols from `name(letters)` and `name(letters): letter`."""
    symbols = {}
    for line in text.split(";"):
        head, _, result = line.strip().partition(":")
        name, _, inside = head.strip().rstrip(")").partition("(")
        sorts = tuple(LETTERS[one.strip()] for one in inside.split(",")) if inside else ()
        symbols[name] = Symbol(name, sorts, LETTERS[result.strip()] if result else BOOL)
    return symbols


CONSTANTS: Final = _symbols(
    "rivals; nobody: l; zero: t; least: n; life(e): l; term(e): t; in_r(s, r); in_c(s, c); in_k(s, k)"
)
VARIABLES: Final = _symbols(
    "born(l); registering(l); active(l); suspended(l); claim(l): t; again(l); known(l); now(l, e);"
    "first(l): n; own(l, n, l);"
    "sent(l, n); counts(l, s); granted_term(l, s): t; owes(l, s); acked(l, s, n);"
    "stable(l, n); released(l, n); safe(e, n);"
    "up(s); store_life(s, l); store_begun(s); store_term(s): t; store_told(s, e); content(s, n, l); granting(s);"
    "disk_life(s, l); disk_term(s): t; disk_told(s, e); disk_content(s, n, l);"
    "grant(s, l); grant_term(s, l): t; grant_told(s, l): t; ack(s, l, n); ack_after(s, l, n);"
    "began(e); top: t; last: e; formed(e, s); vote(s, e, n); frozen(s, e); dead(e, n);"
    "store_told_term(s): t; disk_told_term(s): t;"
    "store_blank(s); disk_blank(s); store_used(s, n); disk_used(s, n); grant_blank(s, l); grant_used(s, l, n);"
    "grant_held(s, l, n, l); granted_blank(l, s); granted_used(l, s, n); granted_held(l, s, n, l);"
    "granted_told(l, s): t; wiped(s, e, n)"
)
AXIOMS: Final = {
    "zero is the least term": "all t. zero <= t",
    "least is the least number": "all n. least <= n",
    "beginnings meet": "all r, r2. some s. in_r(s, r) & in_r(s, r2)",
    "beginnings meet what keeps": "all r, k. some s. in_r(s, r) & in_k(s, k)",
    "what goes on meets beginnings": "rivals -> (all c, r. some s. in_c(s, c) & in_r(s, r))",
}
ALIVE: Final = "(registering(l) | active(l) | suspended(l))"


def _actions(text: SystemText) -> None:
    add = text.transitions

    def others(relation: str, variables: str = "l1") -> tuple[str, str]:
        return f"{relation}({variables})", f"{relation}({variables}) & l1 != l"

    ended = dict(
        [
            others("registering"),
            others("active"),
            others("suspended"),
            others("counts", "l1, s1"),
            others("acked", "l1, s1, n1"),
            others("stable", "l1, n1"),
            others("released", "l1, n1"),
        ]
    )
    ended["ack(s1, l1, n1)"] = "ack(s1, l1, n1) & l1 != l"
    ended["ack_after(s1, l1, n1)"] = "ack_after(s1, l1, n1) & l1 != l"
    add["Begin"] = (
        "l",
        (
            "!born(l) & l != nobody",
            "rivals | (all l2. !registering(l2) & !active(l2) & !suspended(l2))",
        ),
        {
            "born(l1)": "born(l1) | l1 = l",
            "registering(l1)": "registering(l1) | l1 = l",
            "claim(l1)": "if l1 = l then zero else claim(l1)",
            "granted_term(l1, s1)": "if l1 = l then zero else granted_term(l1, s1)",
        },
    )
    add["Stop"] = ("l", (ALIVE,), ended)
    add["Turn"] = (
        "l",
        ("rivals", ANNOUNCED),
        {
            "active(l1)": "active(l1) & l1 != l",
            "suspended(l1)": "suspended(l1) | l1 = l",
            "counts(l1, s1)": "counts(l1, s1) & l1 != l",
            "grant(s1, l1)": "grant(s1, l1) & l1 != l",
            "ack(s1, l1, n1)": "ack(s1, l1, n1) & l1 != l",
            "ack_after(s1, l1, n1)": "ack_after(s1, l1, n1) & l1 != l",
        },
    )
    _intervals(text)
    _requests(text)
    _announcements(text)
    _data(text)
    _answers(text)
    _faults(text)
    reviews(text, ended)


def _intervals(text: SystemText) -> None:
    add = text.transitions
    dropped = {"counts(l1, s1)": "counts(l1, s1) & !(l1 = l & dropped(s1))"}
    add["Wait"] = (
        "l c dropped(s)",
        (ALIVE, "active(l) -> (all s1. in_c(s1, c) -> counts(l, s1) & !dropped(s1))"),
        dropped,
    )
    add["Wait.suspended"] = (
        "l dropped(s)",
        ("active(l)",),
        {**dropped, "active(l1)": "active(l1) & l1 != l", "suspended(l1)": "suspended(l1) | l1 = l"},
    )
    add["Send"] = (
        "l n",
        ("active(l)", "first(l) <= n", "!sent(l, n)", "all m. first(l) <= m & m < n -> sent(l, m)"),
        {"sent(l1, n1)": "sent(l1, n1) | (l1 = l & n1 = n)"},
    )


def _requests(text: SystemText) -> None:
    granting = {"granting(s1)": "granting(s1) | s1 = s"}
    free = ("up(s)", "!granting(s)", "!grant(s, l)")
    raised = {"store_term(s1)": "if s1 = s & store_term(s) < claim(l) then claim(l) else store_term(s1)"}
    text.transitions["Ask"] = (
        "l s",
        (ALIVE, *free, "store_life(s, l)", "again(l) -> (all e1. store_told(s, e1) -> life(e1) != l)"),
        {**granting, **raised},
    )
    text.transitions["Ask.affirmed"] = (
        "l s e e2",
        (ALIVE, *free, "store_life(s, l)", "again(l) & now(l, e) & store_told(s, e2) & life(e2) = l"),
        {
            **granting,
            **raised,
            "store_told(s1, e1)": "(s1 != s & store_told(s1, e1)) | (s1 = s & e1 = e)",
            "store_told_term(s1)": "if s1 = s then term(e) else store_told_term(s1)",
        },
    )
    # Another life counts this store no more: a store grants a RegID only after the lease of the last grant (R1, R3).
    moved = {
        **granting,
        "store_life(s1, l1)": "(s1 != s & store_life(s1, l1)) | (s1 = s & l1 = l)",
        "store_term(s1)": "if s1 = s then t else store_term(s1)",
        "store_begun(s1)": "store_begun(s1) & s1 != s",
        "grant(s1, l1)": "grant(s1, l1) & s1 != s",
        "ack(s1, l1, n1)": "ack(s1, l1, n1) & s1 != s",
        "ack_after(s1, l1, n1)": "ack_after(s1, l1, n1) & s1 != s",
    }
    unheld = (
        ALIVE,
        "up(s)",
        "!store_life(s, l)",
        "store_term(s) < t & claim(l) <= t",
        "all l2. counts(l2, s) -> l2 = l",
    )
    unknown = "again(l) -> (all e1. store_told(s, e1) -> life(e1) != l)"
    text.transitions["Ask.moved"] = ("l s t", (*unheld, unknown), moved)
    # The store was told of no later life than this one, which goes on under a newer term.
    text.transitions["Ask.returned"] = (
        "l s t e e2",
        (*unheld, "again(l) & now(l, e) & store_told(s, e2) & life(e2) = l"),
        {
            **moved,
            "store_told(s1, e1)": "(s1 != s & store_told(s1, e1)) | (s1 = s & e1 = e)",
            "store_told_term(s1)": "if s1 = s then term(e) else store_told_term(s1)",
        },
    )


def _announcements(text: SystemText) -> None:
    open_ = ("active(l)", "now(l, e)", "up(s)", "store_life(s, l)", "!store_begun(s)")
    told = {
        "store_told(s1, e1)": "(s1 != s & store_told(s1, e1)) | (s1 = s & e1 = e)",
        "store_told_term(s1)": "if s1 = s then term(e) else store_told_term(s1)",
        "store_begun(s1)": "store_begun(s1) | s1 = s",
        "store_term(s1)": "if s1 = s & store_term(s) < term(e) then term(e) else store_term(s1)",
        # A store that ever lost its disk notes which numbers are used: what it held before is among them.
        "store_blank(s1)": "store_blank(s1) & s1 != s",
        "store_used(s1, n1)": (
            "(s1 != s & store_used(s1, n1))"
            " | (s1 = s & (store_blank(s) | store_used(s, least)) & (n1 < first(l) | sent(l, n1)))"
        ),
    }
    text.transitions["Inform.first"] = ("l s e", (*open_, "store_told_term(s) = zero"), told)
    text.transitions["Inform"] = ("l s e e2", (*open_, "store_told(s, e2) & life(e2) = l"), told)
    # Everything from the parting of the two histories on goes.
    text.transitions["Inform.cut"] = (
        "l s e e2 n l2 l3",
        (
            *open_,
            "store_told(s, e2) & life(e2) != l",
            "own(life(e2), n, l2) & own(l, n, l3) & l2 != l3 & l2 != nobody & l3 != nobody",
            "all m, l4. m < n -> (own(life(e2), m, l4) <-> own(l, m, l4))",
        ),
        {**told, "content(s1, n1, l1)": "content(s1, n1, l1) & (s1 != s | n1 < n)"},
    )


def _data(text: SystemText) -> None:
    open_ = ("up(s)", "store_life(s, l)", "store_begun(s) & store_told(s, e)", "!granting(s)")
    text.transitions["ToStore"] = (
        "l s e n",
        (*open_, "sent(l, n)", "all l2. !content(s, n, l2)"),
        {"content(s1, n1, l1)": "content(s1, n1, l1) | (s1 = s & n1 = n & l1 = l)"},
    )
    text.transitions["Fill"] = (
        "l s e filled(n)",
        (*open_, ANNOUNCED, "all n1, l2. filled(n1) -> sent(l, n1) & !content(s, n1, l2)"),
        {"content(s1, n1, l1)": "content(s1, n1, l1) | (s1 = s & l1 = l & filled(n1))"},
    )


def _answers(text: SystemText) -> None:
    synced = {
        "disk_life(s1, l1)": "(s1 != s & disk_life(s1, l1)) | (s1 = s & store_life(s1, l1))",
        "disk_term(s1)": "if s1 = s then store_term(s1) else disk_term(s1)",
        "disk_told(s1, e1)": "(s1 != s & disk_told(s1, e1)) | (s1 = s & store_told(s1, e1))",
        "disk_content(s1, n1, l1)": "(s1 != s & disk_content(s1, n1, l1)) | (s1 = s & content(s1, n1, l1))",
        "disk_told_term(s1)": "if s1 = s then store_told_term(s1) else disk_told_term(s1)",
        "disk_blank(s1)": "(s1 != s & disk_blank(s1)) | (s1 = s & store_blank(s1))",
        "disk_used(s1, n1)": "(s1 != s & disk_used(s1, n1)) | (s1 = s & store_used(s1, n1))",
        "vote(s1, e1, n1)": (
            "vote(s1, e1, n1) | (s1 = s & store_told(s1, e1) & content(s1, n1, life(e1)) & !frozen(s1, e1))"
        ),
    }
    text.transitions["Sync"] = ("s", ("up(s)", "!granting(s)"), synced)
    granted = {
        **synced,
        "granting(s1)": "granting(s1) & s1 != s",
        "grant(s1, l1)": "grant(s1, l1) | (s1 = s & l1 = l)",
        "grant_term(s1, l1)": "if s1 = s & l1 = l then store_term(s1) else grant_term(s1, l1)",
        "grant_told(s1, l1)": "if s1 = s & l1 = l then store_told_term(s) else grant_told(s1, l1)",
        "grant_blank(s1, l1)": "(!(s1 = s & l1 = l) & grant_blank(s1, l1)) | (s1 = s & l1 = l & store_blank(s))",
        "grant_used(s1, l1, n1)": (
            "(!(s1 = s & l1 = l) & grant_used(s1, l1, n1)) | (s1 = s & l1 = l & store_used(s, n1))"
        ),
        "grant_held(s1, l1, n1, l2)": (
            "(!(s1 = s & l1 = l) & grant_held(s1, l1, n1, l2)) | (s1 = s & l1 = l & content(s, n1, l2))"
        ),
        "ack_after(s1, l1, n1)": "ack_after(s1, l1, n1) & !(s1 = s & l1 = l)",
    }
    granting = "up(s) & granting(s) & store_life(s, l)"
    text.transitions["Sync.granted"] = ("s l", (granting,), granted)
    text.transitions["Sync.told"] = (
        "s l e told(n)",
        (granting, "store_begun(s) & store_told(s, e)", "all n1. told(n1) -> content(s, n1, l)"),
        {**granted, "ack(s1, l1, n1)": "ack(s1, l1, n1) | (s1 = s & l1 = l & told(n1))"},
    )
    _acknowledgements(text)
    _grants(text)


def _acknowledgements(text: SystemText) -> None:
    telling = (
        "up(s) & store_life(s, l) & store_begun(s) & store_told(s, e) & disk_told(s, e2)",
        "all n1. told(n1) -> content(s, n1, l) & disk_content(s, n1, l)",
    )
    text.transitions["Tell"] = (
        "s l e e2 told(n)",
        (*telling, "!grant(s, l)"),
        {"ack(s1, l1, n1)": "ack(s1, l1, n1) | (s1 = s & l1 = l & told(n1))"},
    )
    text.transitions["Tell.after"] = (
        "s l e e2 told(n)",
        (*telling, "grant(s, l)"),
        {"ack_after(s1, l1, n1)": "ack_after(s1, l1, n1) | (s1 = s & l1 = l & told(n1))"},
    )
    text.transitions["ToSource.acks"] = (
        "l s heard(n)",
        (
            ANNOUNCED,
            "!owes(l, s)",
            "all n1. heard(n1) -> ack(s, l, n1)",
            "all e1. suspended(l) & now(l, e1) -> claim(l) <= term(e1)",
        ),
        {"acked(l1, s1, n1)": "acked(l1, s1, n1) | (l1 = l & s1 = s & heard(n1))"},
    )


def _grants(text: SystemText) -> None:
    heard = {
        "counts(l1, s1)": "counts(l1, s1) | (l1 = l & s1 = s)",
        "granted_term(l1, s1)": "if l1 = l & s1 = s then grant_term(s, l) else granted_term(l1, s1)",
        "granted_blank(l1, s1)": (
            "(!(l1 = l & s1 = s) & granted_blank(l1, s1)) | (l1 = l & s1 = s & grant_blank(s, l))"
        ),
        "grant(s1, l1)": "grant(s1, l1) & !(s1 = s & l1 = l)",
        "ack(s1, l1, n1)": "(!(s1 = s & l1 = l) & ack(s1, l1, n1)) | (s1 = s & l1 = l & ack_after(s1, l1, n1))",
        "grant_used(s1, l1, n1)": "grant_used(s1, l1, n1) & !(s1 = s & l1 = l)",
        "grant_held(s1, l1, n1, l2)": "grant_held(s1, l1, n1, l2) & !(s1 = s & l1 = l)",
        "claim(l1)": "if l1 = l & !active(l) & claim(l) < grant_term(s, l) then grant_term(s, l) else claim(l1)",
    }
    lost = {"acked(l1, s1, n1)": "acked(l1, s1, n1) & !(l1 = l & s1 = s & lost(n1))"}
    another = (
        "suspended(l) -> grant_told(s, l) <= term(e)",
        (
            "suspended(l) & now(l, e) & granted_term(l, s) != zero ->"
            " grant_term(s, l) <= granted_term(l, s) | grant_term(s, l) <= term(e) | grant_term(s, l) <= claim(l)"
        ),
    )
    text.transitions["ToSource.unheard"] = (
        "l s",
        ("!registering(l) & !active(l) & !suspended(l)",),
        {"grant(s1, l1)": "grant(s1, l1) & !(s1 = s & l1 = l)"},
    )
    # A life that has not begun needs the report of a grant.
    reported = {
        "granted_told(l1, s1)": "if l1 = l & s1 = s then grant_told(s, l) else granted_told(l1, s1)",
        "granted_used(l1, s1, n1)": (
            "(!(l1 = l & s1 = s) & granted_used(l1, s1, n1)) | (l1 = l & s1 = s & grant_used(s, l, n1))"
        ),
        "granted_held(l1, s1, n1, l2)": (
            "(!(l1 = l & s1 = s) & granted_held(l1, s1, n1, l2)) | (l1 = l & s1 = s & grant_held(s, l, n1, l2))"
        ),
    }
    text.transitions["ToSource.grant"] = ("l s", ("registering(l)", "grant(s, l)"), {**heard, **reported})
    text.transitions["ToSource.proven"] = (
        "l s e lost(n)",
        (ANNOUNCED, "grant(s, l)", "now(l, e)", "again(l) -> grant_told(s, l) = term(e)", *another),
        {**heard, **lost, "owes(l1, s1)": "owes(l1, s1) & !(l1 = l & s1 = s)"},
    )
    text.transitions["ToSource.owing"] = (
        "l s e lost(n)",
        (ANNOUNCED, "grant(s, l)", "now(l, e)", "again(l) & grant_told(s, l) != term(e)", *another),
        {**heard, **lost, "owes(l1, s1)": "owes(l1, s1) | (l1 = l & s1 = s)"},
    )


def _faults(text: SystemText) -> None:
    text.transitions["Crash"] = (
        "s",
        ("up(s)",),
        {
            "up(s1)": "up(s1) & s1 != s",
            "granting(s1)": "granting(s1) & s1 != s",
            "grant(s1, l1)": "grant(s1, l1) & s1 != s",
            "ack(s1, l1, n1)": "ack(s1, l1, n1) & s1 != s",
            "ack_after(s1, l1, n1)": "ack_after(s1, l1, n1) & s1 != s",
        },
    )
    recovered = {
        "up(s1)": "up(s1) | s1 = s",
        "store_life(s1, l1)": "(s1 != s & store_life(s1, l1)) | (s1 = s & disk_life(s1, l1))",
        "store_term(s1)": "if s1 = s then disk_term(s1) else store_term(s1)",
        "store_told(s1, e1)": "(s1 != s & store_told(s1, e1)) | (s1 = s & disk_told(s1, e1))",
        "content(s1, n1, l1)": "(s1 != s & content(s1, n1, l1)) | (s1 = s & disk_content(s1, n1, l1))",
        "store_told_term(s1)": "if s1 = s then disk_told_term(s1) else store_told_term(s1)",
        "store_blank(s1)": "(s1 != s & store_blank(s1)) | (s1 = s & disk_blank(s1))",
        "store_used(s1, n1)": "(s1 != s & store_used(s1, n1)) | (s1 = s & disk_used(s1, n1))",
    }
    text.transitions["Restart"] = (
        "s",
        ("!up(s)", "all e1, l1. disk_told(s, e1) & disk_life(s, l1) -> life(e1) != l1 | term(e1) < disk_term(s)"),
        {**recovered, "store_begun(s1)": "store_begun(s1) & s1 != s"},
    )
    text.transitions["Restart.begun"] = (
        "s e l",
        ("!up(s)", "disk_told(s, e) & disk_life(s, l) & life(e) = l", "disk_term(s) <= term(e)"),
        {**recovered, "store_begun(s1)": "store_begun(s1) | s1 = s"},
    )
    # A store that lost its disk forgets the lease that it granted. So a disk is replaced when no life counts the store
    # any more, or only one process acts for the source.
    text.transitions["Wipe"] = (
        "s",
        ("!up(s)", "rivals -> (all l. !counts(l, s))"),
        {
            "disk_life(s1, l1)": "disk_life(s1, l1) & s1 != s",
            "disk_term(s1)": "if s1 = s then zero else disk_term(s1)",
            "disk_told(s1, e1)": "disk_told(s1, e1) & s1 != s",
            "disk_told_term(s1)": "if s1 = s then zero else disk_told_term(s1)",
            "disk_content(s1, n1, l1)": "disk_content(s1, n1, l1) & s1 != s",
            "disk_blank(s1)": "disk_blank(s1) | s1 = s",
            "disk_used(s1, n1)": "disk_used(s1, n1) & s1 != s",
            "wiped(s1, e1, n1)": "wiped(s1, e1, n1) | (s1 = s & vote(s, e1, n1))",
        },
    )


_EMPTY = (
    "born(l1); registering(l1); active(l1); suspended(l1); again(l1); known(l1); now(l1, e1); own(l1, n1, l2);"
    "sent(l1, n1); counts(l1, s1); owes(l1, s1); acked(l1, s1, n1); safe(e1, n1); stable(l1, n1); released(l1, n1);"
    "store_life(s1, l1); store_begun(s1); store_told(s1, e1); content(s1, n1, l1); granting(s1);"
    "disk_life(s1, l1); disk_told(s1, e1); disk_content(s1, n1, l1);"
    "grant(s1, l1); ack(s1, l1, n1); ack_after(s1, l1, n1);"
    "began(e1); vote(s1, e1, n1); formed(e1, s1); frozen(s1, e1); dead(e1, n1);"
    "store_blank(s1); disk_blank(s1); store_used(s1, n1); disk_used(s1, n1); grant_blank(s1, l1);"
    "grant_used(s1, l1, n1); grant_held(s1, l1, n1, l2); granted_blank(l1, s1); granted_used(l1, s1, n1);"
    "granted_held(l1, s1, n1, l2); wiped(s1, e1, n1)"
)
_ZERO = (
    "claim(l1); granted_term(l1, s1); store_term(s1); disk_term(s1); store_told_term(s1); disk_told_term(s1);"
    "grant_term(s1, l1); grant_told(s1, l1); granted_told(l1, s1); top"
)
NOTHING: Final = {
    **{head.strip(): "false" for head in _EMPTY.split(";")},
    **{head.strip(): "zero" for head in _ZERO.split(";")},
    "first(l1)": "least",
    "up(s1)": "true",
    "last": "last",
}
"""The initial state."""


def text() -> SystemText:
    told = SystemText("Stability", LETTERS, frozenset({"Term", "Number"}), CONSTANTS, VARIABLES, AXIOMS)
    told.initial.update(NOTHING)
    _actions(told)
    told.invariants.update(INVARIANTS)
    told.lemmas.update(LEMMAS)
    told.needs.update({name: tuple(known.split("; ")) for name, known in NEEDS.items()})
    told.consequences.update(PROPERTIES)
    return told


def stability() -> System:
    return text().read()
