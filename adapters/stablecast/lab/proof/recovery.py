"""State where a receiver begins, what it delivers and what it acknowledges, as a system upon that of Refill.

The stores, lives and disks are those of `refill`, and a receiver is added to them. It registers with the stores of a
life, begins by their grants, delivers in order, reports losses, and acknowledges. A store knows the receiver once it
has an acknowledgement of it. Receivers do not depend on each other, so one stands for any number.

`of`: the life of the session, or `nobody`. `granted`, `old`, `votes`, `below` and `lacks` are what the grants told,
however old they are: `old(s)` that s knows the receiver, `below(s,n)` that number n is below the start that s offers,
`lacks(s,n)` that s should have n below its offer. `counted(s)`: s gets acknowledgements of the session. `over(n)`: the
session began above n. `certain`: no later grant may lower the start. `said(s,l,n)`: an acknowledgement of a session of
life l, up to number n, is on its way to s.

The others are history:

* `known`: a store that knew the receiver told the session where to begin.
* `freed(s,n,l)`: a rule let s release the message. Apart from that it counts as held.
* `skipped(s,n,l)`: a session began above the message, and counted s. That store did not know the receiver, or one that
  knew it had told where to begin.
* `lacked(s,n,l)`: s told that it lacks the message. `bare(s,n,l)`: the message was stable then, and s had not lost its
  disk since it was whole.
* `enrolled(s)`: s got an acknowledgement of the receiver when the first message of all was stable. `tried`: some did.
  `before(s)`: s was enrolled when the session began to register. `again`: a session began by votes, although a quorum
  was enrolled before.
"""

from typing import Final

import attrs

from stablecast.lab.proof import refill
from stablecast.lab.proof.system import System, SystemText

VARIABLES: Final = refill.declared(
    "of: l; begun; certain; known; granted(s); old(s); votes(s); below(s, n); lacks(s, n); counted(s);"
    "over(n); handed(n); knows(s); said(s, l, n); acked(s, n, l); consumed(n, l); lost(n, l);"
    "freed(s, n, l); skipped(s, n, l); lacked(s, n, l); bare(s, n, l); enrolled(s); before(s); tried; again"
)
NOWHERE: Final = "(some k. (all s. in_k(s, k) -> freed(s, n, l) | lacked(s, n, l)))"
"""A quorum has the message n of life l no more: a rule released it, or the store told that it lacks it."""
LET_GO: Final = f"({NOWHERE} & (some s. freed(s, n, l)))"
"""A quorum has the message no more, and a rule released it at some store. Nobody is told of that."""
_ASKED: Final = ("of != nobody", "up(s) & disk_life(s, of)")
_WAITING: Final = ("of != nobody & !begun", "all s1. granted(s1) -> !old(s1)")
_LOWEST: Final = "granted(s){and_s} & (all s1, n. granted(s1){and_s1} & below(s, n) -> below(s1, n))"


def _registration(text: SystemText) -> None:
    """Add a run's registration with the stores of the life that sends."""
    add = text.transitions
    add["Register"] = ("", ("of = nobody", "now != nobody"), {"of": "now", "before(s1)": "enrolled(s1)"})
    add["Grant.old"] = (
        "s",
        (*_ASKED, "!begun", "knows(s)"),
        {
            "granted(s1)": "granted(s1) | s1 = s",
            "old(s1)": "old(s1) | s1 = s",
            "below(s1, n1)": "(s1 != s & below(s1, n1)) | (s1 = s & (some l1. acked(s, n1, l1)))",
        },
    )
    # All that the store has is at m or above. From m2 on it should have more: no rule released that.
    add["Grant.new"] = (
        "s m m2",
        (
            *_ASKED,
            "!begun",
            "!knows(s)",
            "all n1, l1. holds(s, n1, l1) -> m <= n1 | freed(s, n1, l1)",
            "m2 <= m & (all n1, l1. n1 < m2 & own(of, n1, l1) -> freed(s, n1, l1))",
        ),
        {
            "granted(s1)": "granted(s1) | s1 = s",
            "old(s1)": "old(s1) & s1 != s",
            "below(s1, n1)": "(s1 != s & below(s1, n1)) | (s1 = s & n1 < m)",
            "lacks(s1, n1)": "(s1 != s & lacks(s1, n1)) | (s1 = s & m2 <= n1 & n1 < m)",
            "votes(s1)": "(s1 != s & votes(s1)) | (s1 = s & kept(s) & !used(s, least) & m2 = m)",
            "lacked(s1, n1, l1)": "lacked(s1, n1, l1) | (s1 = s & m2 <= n1 & n1 < m & own(of, n1, l1))",
            "bare(s1, n1, l1)": (
                "bare(s1, n1, l1) | (s1 = s & n1 < m & stable(n1, l1) & own(of, n1, l1) & !gone(s) & !freed(s, n1, l1))"
            ),
        },
    )


def _completion(text: SystemText) -> None:
    """Add the rules by which a session begins."""
    add = text.transitions
    begun = {
        "begun": "true",
        "over(n1)": "below(s, n1)",
        "counted(s1)": "granted(s1)",
        "skipped(s1, n1, l1)": ("skipped(s1, n1, l1) | (granted(s1) & !old(s1) & below(s, n1) & own(of, n1, l1))"),
    }
    # The highest acknowledgement is right, and no store may know better.
    add["Complete.old"] = (
        "s",
        ("of != nobody & !begun", "granted(s) & old(s)"),
        {
            **begun,
            "certain": "true",
            "known": "true",
            "skipped(s1, n1, l1)": "skipped(s1, n1, l1) | (granted(s1) & below(s, n1) & own(of, n1, l1))",
        },
    )
    add["Complete.votes"] = (
        "k s",
        (
            *_WAITING,
            "all s1. in_k(s1, k) -> granted(s1) & votes(s1)",
            _LOWEST.format(and_s=" & votes(s)", and_s1=" & votes(s1)"),
        ),
        {
            **begun,
            "certain": "false",
            "known": "false",
            "again": "again | (some k2. (all s2. in_k(s2, k2) -> before(s2)))",
        },
    )
    # A store that became silent counts no more. It may grant again.
    add["Leave"] = (
        "s",
        ("of != nobody",),
        {"granted(s1)": "granted(s1) & s1 != s", "counted(s1)": "counted(s1) & s1 != s"},
    )
    # All stores of a group answered, or the wait is over: then all grants decide.
    everybody = ("all s1. in_k(s1, k) -> granted(s1)", _LOWEST.format(and_s="", and_s1=""))
    add["Complete.all"] = (
        "k s s2",
        (*_WAITING, *everybody, "granted(s2) & (all n. !lacks(s2, n))"),
        {**begun, "certain": "false", "known": "false"},
    )
    add["Complete.lost"] = (
        "k s",
        (*_WAITING, *everybody),
        {
            **begun,
            "certain": "false",
            "known": "false",
            "over(n1)": "below(s, n1) & !(some s2. granted(s2) & lacks(s2, n1))",
            "lost(n1, l1)": (
                "lost(n1, l1) | (below(s, n1) & own(of, n1, l1) & (some s2. granted(s2) & lacks(s2, n1)))"
            ),
        },
    )


def _late_grants(text: SystemText) -> None:
    """Add the grants that come after the session began."""
    add, late = text.transitions, (*_ASKED, "begun & !counted(s)")
    counted = {"counted(s1)": "counted(s1) | s1 = s"}
    skipping = {
        **counted,
        "skipped(s1, n1, l1)": "skipped(s1, n1, l1) | (s1 = s & over(n1) & own(of, n1, l1))",
    }
    above = "all n. over(n) -> (some l1. acked(s, n, l1))"
    add["Late.new"] = ("s", (*late, "!knows(s)"), skipping)
    basis = {**skipping, "skipped(s1, n1, l1)": "skipped(s1, n1, l1) | (s1 = s & known & over(n1) & own(of, n1, l1))"}
    add["Late.certain"] = ("s", (*late, "knows(s)", "certain"), basis)
    add["Late.above"] = ("s", (*late, "knows(s)", "!certain", above), counted)
    add["Late.higher"] = ("s", (*late, "knows(s)", "!certain", above), {**counted, "certain": "true", "known": "true"})
    add["Late.back"] = (
        "s",
        (*late, "knows(s)", "!certain", "all n. !handed(n)"),
        {**counted, "certain": "true", "known": "true", "over(n1)": "over(n1) & (some l1. acked(s, n1, l1))"},
    )
    add["Late.lost"] = (
        "s",
        (*late, "knows(s)", "!certain"),
        {
            **counted,
            "certain": "true",
            "known": "true",
            "lost(n1, l1)": "lost(n1, l1) | (over(n1) & own(of, n1, l1) & !acked(s, n1, l1))",
        },
    )


def _delivery(text: SystemText) -> None:
    """Add delivery, losses and acknowledgements."""
    add = text.transitions
    add["Deliver"] = (
        "n l",
        (
            "begun & of != nobody",
            "own(of, n, l) & sent(l, n) & !over(n)",
            "all m, l1. m < n & own(of, m, l1) -> over(m) | handed(m) | consumed(m, l1) | lost(m, l1)",
        ),
        {"handed(n1)": "handed(n1) | n1 = n"},
    )
    add["Consume"] = (
        "n l",
        ("begun & of != nobody", "handed(n) & own(of, n, l)"),
        {"consumed(n1, l1)": "consumed(n1, l1) | (n1 = n & l1 = l)"},
    )
    # Stores of a quorum were asked for a message for long enough, and none of them has it.
    add["GiveUp"] = (
        "n l k",
        (
            "begun & of != nobody",
            "own(of, n, l) & !handed(n)",
            "all s1. in_k(s1, k) -> up(s1) & disk_life(s1, of) & (holds(s1, n, l) -> freed(s1, n, l))",
        ),
        {
            "lost(n1, l1)": "lost(n1, l1) | (n1 = n & l1 = l)",
            "lacked(s1, n1, l1)": "lacked(s1, n1, l1) | (in_k(s1, k) & n1 = n & l1 = l)",
            "bare(s1, n1, l1)": (
                "bare(s1, n1, l1) | (in_k(s1, k) & n1 = n & l1 = l & stable(n, l) & !gone(s1) & !freed(s1, n, l))"
            ),
        },
    )
    add["Acknowledge"] = (
        "s n",
        (
            "begun & of != nobody",
            "counted(s)",
            "up(s)",
            "all m, l1. m <= n & own(of, m, l1) -> over(m) | consumed(m, l1) | lost(m, l1)",
        ),
        {"said(s1, l1, n1)": "said(s1, l1, n1) | (s1 = s & l1 = of & n1 = n)"},
    )
    # It may take long, and counts only where the life of its session is current. The receiver may be gone by then.
    add["Arrive"] = (
        "s l n",
        ("up(s) & disk_life(s, l)", "said(s, l, n)"),
        {
            "knows(s1)": "knows(s1) | s1 = s",
            "acked(s1, n1, l1)": "acked(s1, n1, l1) | (s1 = s & n1 <= n & own(l, n1, l1))",
            "enrolled(s1)": "enrolled(s1) | (s1 = s & (some l1. stable(least, l1)))",
            "tried": "tried | (some l1. stable(least, l1))",
        },
    )


def _interruptions(text: SystemText) -> None:
    """Add what is forgotten, and the end of a run."""
    add = text.transitions
    # A store that stops may forget acknowledgements that were not on its disk.
    add["Forget"] = ("s n", (), {"acked(s1, n1, l1)": "acked(s1, n1, l1) & (s1 != s | n1 < n)"})
    add["Release"] = (
        "s l n",
        ("up(s) & disk_life(s, l)",),
        {"freed(s1, n1, l1)": "freed(s1, n1, l1) | (s1 = s & n1 < n & own(l, n1, l1))"},
    )
    add["Crash"] = (
        "",
        ("of != nobody",),
        {
            "of": "nobody",
            "begun": "false",
            "granted(s1)": "false",
            "old(s1)": "false",
            "counted(s1)": "false",
            "handed(n1)": "false",
        },
    )


def _stores(text: SystemText) -> None:
    """Let the transitions of Refill change what stores know of the receiver."""
    follows = "((n1 < n & own(now, n1, l1)) | (n <= n1 & l1 = l))"
    emptied = {
        "counted(s1)": "counted(s1) & s1 != s",
        "knows(s1)": "knows(s1) & s1 != s",
        "acked(s1, n1, l1)": "acked(s1, n1, l1) & s1 != s",
        "skipped(s1, n1, l1)": "skipped(s1, n1, l1) & s1 != s",
    }
    begun = {"acked(s1, n1, l1)": f"acked(s1, n1, l1) & (!up(s1) | {follows})"}
    more = {
        "Begin": begun,
        "Begin.all": begun,
        "Join": {"acked(s1, n1, l1)": "acked(s1, n1, l1) & (s1 != s | own(now, n1, l1))"},
        # A store that stops loses what is on its way to it.
        "Stop": {"said(s1, l1, n1)": "said(s1, l1, n1) & s1 != s"},
        "Replace": emptied,
        "Replace.early": emptied,
    }
    for name, updates in more.items():
        heads, guards, before = text.transitions[name]
        text.transitions[name] = (heads, guards, {**before, **updates})


_SETTLED: Final = "consumed(n, l) | lost(n, l)"
INVARIANTS: Final = {
    "a session is of a born life": "of = nobody | born(of)",
    "what began is of a life": "begun -> of != nobody",
    "handed in a session": "all n. handed(n) -> begun",
    "granted in a session": "all s. granted(s) -> of != nobody",
    # These judge what grants told.
    "old is true": (
        f"!begun -> (all n, l. own(of, n, l) & (some s. granted(s) & old(s) & below(s, n)) -> {_SETTLED} | {LET_GO})"
    ),
    "votes are whole": "all s, n. granted(s) & !old(s) & votes(s) -> !lacks(s, n)",
    "offers are above what is gone": (
        "all s, n, l. granted(s) & !old(s) & below(s, n) & own(of, n, l)"
        " -> freed(s, n, l) | (lacks(s, n) & lacked(s, n, l))"
    ),
    "voters did not forget": "all s. granted(s) & !old(s) & votes(s) -> !before(s)",
    "enrolled before": "all s. before(s) -> enrolled(s)",
    "enrolled is known": "all s. enrolled(s) -> knows(s) | !kept(s) | used(s, least)",
    "enrolled after the first": "all s. enrolled(s) -> tried",
    "the first is stable": "tried -> (some l. stable(least, l))",
    # The session.
    "certain by a store that knows": "begun & certain -> known",
    "began above what is settled": (f"begun -> (all n, l. over(n) & own(of, n, l) -> {_SETTLED} | {LET_GO})"),
    "counted stores owe nothing": (
        f"begun -> (all s, n, l. counted(s) & over(n) & own(of, n, l) -> {_SETTLED} | skipped(s, n, l))"
    ),
    "in order": (
        "begun -> (all n, m, l. handed(n) & m < n & own(of, m, l) -> over(m) | handed(m) | consumed(m, l) | lost(m, l))"
    ),
    # The stores.
    "said by a born life": "all s, l, n. said(s, l, n) -> born(l) & up(s)",
    "said is settled": (
        f"all s, l2, m, n, l. said(s, l2, m) & n <= m & own(l2, n, l) -> {_SETTLED} | skipped(s, n, l)"
    ),
    "acknowledged by history": "all s, n, l, l2. acked(s, n, l) & disk_life(s, l2) -> own(l2, n, l)",
    "acknowledged is settled": f"all s, n, l. acked(s, n, l) -> {_SETTLED} | skipped(s, n, l)",
    "skipped is let go": f"all n, l. (some s. skipped(s, n, l)) -> {_SETTLED} | {LET_GO}",
    "lost is nowhere": f"all n, l. lost(n, l) -> consumed(n, l) | {NOWHERE}",
    "bare is stable": "all s, n, l. bare(s, n, l) -> stable(n, l)",
    "never a second start": "!again",
    # Refill has this, too. It is stronger here: the quorum never denied the message while it had its disks.
    "stable is kept": "careful & healing -> (all n, l. stable(n, l) -> (some k. all s. in_k(s, k) ->"
    " (disk_holds(s, n, l) | gone(s)) & !bare(s, n, l)))",
}
_MET: Final = f"handed(m) | consumed(m, l) | lost(m, l) | {LET_GO.replace('(s, n, l)', '(s, m, l)')}"
PROPERTIES: Final = {
    "NoGap": f"begun -> (all n, m, l. handed(n) & m < n & own(of, m, l) -> {_MET})",
    "NoStableMissed": f"begun & of = now -> (all n, m, l. handed(n) & m < n & stable(m, l) -> {_MET})",
    "AcknowledgedIsConsumed": f"all s, n, l. acked(s, n, l) & !skipped(s, n, l) -> {_SETTLED}",
    "PassedOverIsLetGo": f"all n, l. (some s. acked(s, n, l)) -> {_SETTLED} | {LET_GO}",
    "LostIsNowhere": f"all n, l. lost(n, l) -> consumed(n, l) | {NOWHERE}",
    "NoKeptIsLost": "careful & healing -> (all n, l, k. some s. in_k(s, k) & !bare(s, n, l))",
    "Continues": "!again",
}
_EMPTY = (
    "begun; certain; known; granted(s1); old(s1); votes(s1); below(s1, n1); lacks(s1, n1); counted(s1);"
    "over(n1); handed(n1); knows(s1); said(s1, l1, n1); acked(s1, n1, l1); consumed(n1, l1); lost(n1, l1);"
    "freed(s1, n1, l1); skipped(s1, n1, l1); lacked(s1, n1, l1); bare(s1, n1, l1); enrolled(s1); before(s1);"
    "tried; again"
)
NOTHING: Final = {**{head.strip(): "false" for head in _EMPTY.split(";")}, "of": "nobody"}
"""The initial state of the receiver."""


def text() -> SystemText:
    base = refill.text()
    told = attrs.evolve(base, name="Recovery", variables={**base.variables, **VARIABLES})
    told.initial.update(NOTHING)
    _registration(told)
    _completion(told)
    _late_grants(told)
    _delivery(told)
    _interruptions(told)
    _stores(told)
    told.invariants.update(INVARIANTS)
    told.consequences = dict(PROPERTIES)
    return told


def recovery() -> System:
    return text().read()
