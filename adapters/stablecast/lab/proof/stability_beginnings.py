"""State how a source of the system of `tla/Stability` begins a life, goes on with one, and counts stable messages."""

from typing import Final

from stablecast.lab.proof.system import SystemText

ANNOUNCED: Final = "(active(l) | suspended(l))"
LOST: Final = "(began(e1) & life(e1) != l & own(life(e1), n1, life(e1)) & !own(l, n1, life(e1)))"


def reviews(text: SystemText, ended: dict[str, str]) -> None:
    """Add the transitions of a source that reviews its registrations; `ended` are the updates of a life that ends."""
    text.transitions["ToSource.over"] = ("l s", ("suspended(l)", "grant(s, l)"), ended)
    text.transitions["Judge"] = (
        "l e n k",
        (ANNOUNCED, "now(l, e)", "all s. in_k(s, k) -> acked(l, s, n)"),
        {
            "safe(e1, n1)": "safe(e1, n1) | (e1 = e & n1 = n)",
            "stable(l1, n1)": "stable(l1, n1) | (l1 = l & n1 = n)",
        },
    )
    text.transitions["Judge.released"] = (
        "l n",
        (ANNOUNCED, "stable(l, n)"),
        {"released(l1, n1)": "released(l1, n1) | (l1 = l & n1 = n)"},
    )
    _beginnings(text)


def _beginnings(text: SystemText) -> None:
    begun = {
        "began(e1)": "began(e1) | e1 = e",
        "top": "claim(l)",
        "last": "e",
        "formed(e1, s1)": "formed(e1, s1) | (e1 = e & counts(l, s1) & claim(l) <= granted_term(l, s1))",
        "frozen(s1, e1)": (
            "frozen(s1, e1) | (counts(l, s1) & claim(l) <= granted_term(l, s1) & began(e1) & life(e1) != l)"
        ),
        "active(l1)": "active(l1) | l1 = l",
        "known(l1)": "known(l1) | l1 = l",
        "now(l1, e1)": "(l1 != l & now(l1, e1)) | (l1 = l & e1 = e)",
    }
    enough = (
        "registering(l)",
        "!began(e) & life(e) = l & term(e) = claim(l)",
        "all s1. in_r(s1, r) -> counts(l, s1) & claim(l) <= granted_term(l, s1) & !granted_blank(l, s1)",
        "all s1, m1. counts(l, s1) & !granted_blank(l, s1) & granted_used(l, s1, m1) -> m1 < n",
        "all s1, m1, l1. counts(l, s1) & !granted_blank(l, s1) & granted_held(l, s1, m1, l1) -> m1 < n",
    )
    resumed = {
        **begun,
        "granted_told(l1, s1)": "if l1 = l then zero else granted_told(l1, s1)",
        "granted_used(l1, s1, n1)": "granted_used(l1, s1, n1) & l1 != l",
        "granted_held(l1, s1, n1, l2)": "granted_held(l1, s1, n1, l2) & l1 != l",
        "registering(l1)": "registering(l1) & l1 != l",
        "first(l1)": "if l1 = l then n else first(l1)",
    }
    text.transitions["Resume"] = (
        "l e r n",
        (*enough, "n = least", "all s1. counts(l, s1) & !granted_blank(l, s1) -> granted_told(l, s1) = zero"),
        {
            **resumed,
            "own(l1, n1, l2)": "(l1 != l & own(l1, n1, l2)) | (l1 = l & l2 = l)",
            "dead(e1, n1)": "dead(e1, n1) | (began(e1) & own(life(e1), n1, life(e1)))",
        },
    )
    text.transitions["Resume.followed"] = (
        "l e r n s e0",
        (
            *enough,
            "counts(l, s) & !granted_blank(l, s) & began(e0) & granted_told(l, s) = term(e0)",
            "all s1. counts(l, s1) & !granted_blank(l, s1) -> granted_told(l, s1) <= term(e0)",
        ),
        {
            **resumed,
            "own(l1, n1, l2)": (
                "(l1 != l & own(l1, n1, l2)) | (l1 = l & n1 < n & own(life(e0), n1, l2)) | (l1 = l & n <= n1 & l2 = l)"
            ),
            "dead(e1, n1)": (
                "dead(e1, n1) | (began(e1) & own(life(e1), n1, life(e1)) & (n <= n1 | !own(life(e0), n1, life(e1))))"
            ),
        },
    )
    _returns(text, begun)


def _returns(text: SystemText, begun: dict[str, str]) -> None:
    settled = "counts(l, s1) & claim(l) <= granted_term(l, s1) & !granted_blank(l, s1)"
    text.transitions["Return"] = (
        "l e c",
        ("suspended(l)", "now(l, e)", "claim(l) <= term(e)", f"all s1. in_c(s1, c) -> {settled}"),
        {"active(l1)": "active(l1) | l1 = l", "suspended(l1)": "suspended(l1) & l1 != l"},
    )
    text.transitions["Return.renewed"] = (
        "l e e0 r",
        (
            "rivals",
            "suspended(l)",
            "now(l, e0) & term(e0) < claim(l)",
            "!began(e) & life(e) = l & term(e) = claim(l)",
            f"all s1. in_r(s1, r) -> {settled}",
        ),
        {
            **begun,
            "suspended(l1)": "suspended(l1) & l1 != l",
            "again(l1)": "again(l1) | l1 = l",
            "owes(l1, s1)": "owes(l1, s1) | l1 = l",
            "acked(l1, s1, n1)": "acked(l1, s1, n1) & l1 != l",
            "dead(e1, n1)": f"dead(e1, n1) | {LOST}",
        },
    )
