"""State the invariants of the system of `tla/Stability`, the lemmas of its transitions, and the guarantees.

Every line is a formula that holds in each reachable structure. Together they are inductive. `spec/proof.md` tells which
counterexamples to induction shaped them.
"""

from typing import Final

INVARIANTS: Final = {
    # Lives and epochs.
    "one state": "all l. !(registering(l) & active(l)) & !(registering(l) & suspended(l)) &"
    " !(active(l) & suspended(l))",
    "running is born": "all l. registering(l) | active(l) | suspended(l) -> born(l)",
    "nobody is not born": "!born(nobody)",
    "began is born": "all e. began(e) -> born(life(e))",
    "registering is new": "all l, e. registering(l) & began(e) -> life(e) != l",
    "now began": "all l, e. now(l, e) -> began(e) & life(e) = l",
    "one now": "all l, e, e2. now(l, e) & began(e2) & life(e2) = l -> term(e2) < term(e) | e2 = e",
    "one term": "all e, e2. began(e) & began(e2) & term(e) = term(e2) -> e = e2",
    "unborn knows nothing": "all l, s, n, e. !born(l) -> !counts(l, s) & !owes(l, s) & !acked(l, s, n) & !now(l, e)"
    " & !again(l) & !sent(l, n) & !store_life(s, l) & !disk_life(s, l) & !grant(s, l) & !ack(s, l, n)"
    " & !ack_after(s, l, n) & !content(s, n, l) & !disk_content(s, n, l)",
    "counts while running": "all l, s. counts(l, s) -> registering(l) | active(l) | suspended(l)",
    "registering is bare": "all l, s, n. registering(l) -> !again(l) & !owes(l, s) & !acked(l, s, n) & !sent(l, n)",
    "registering stores nothing": "all l, s, n. registering(l) ->"
    " !content(s, n, l) & !disk_content(s, n, l) & !ack(s, l, n) & !ack_after(s, l, n)",
    "own needs a beginning": "all l, n, l2. own(l, n, l2) -> !registering(l) & !registering(l2) & born(l) & born(l2)",
    "active has its claim": "all l, e. active(l) & now(l, e) -> claim(l) <= term(e)",
    "top began": "top = zero | (began(last) & term(last) = top)",
    "began has a term": "all e. began(e) -> zero < term(e)",
    "life has a term": "all s, l. (store_life(s, l) -> zero < store_term(s)) &"
    " (disk_life(s, l) -> zero < disk_term(s))",
    "grant has a term": "all s, l. (grant(s, l) -> zero < grant_term(s, l)) &"
    " (counts(l, s) -> zero < granted_term(l, s))",
    "told terms": "all s, l. store_told_term(s) <= top & disk_told_term(s) <= top & grant_told(s, l) <= top",
    "one epoch at first": "all e, e2. began(e) & began(e2) & life(e) = life(e2) & !again(life(e)) -> e = e2",
    "owners are earlier": "all e, e2, n. began(e) & began(e2) & own(life(e2), n, life(e)) & !again(life(e)) ->"
    " term(e) <= term(e2)",
    "began tops": "all e. began(e) -> term(e) <= top",
    "active is newest": "all l, e. active(l) & now(l, e) -> term(e) = top",
    "active is last": "all l. active(l) -> now(l, last)",
    "announced is now": "all l. active(l) | suspended(l) -> known(l)",
    "one at a time": "!rivals -> (all l, l2. (registering(l) | active(l) | suspended(l)) &"
    " (registering(l2) | active(l2) | suspended(l2)) -> l = l2)",
    "newest alone": "!rivals -> (all l, e. suspended(l) & now(l, e) -> term(e) = top)",
    "not again alone": "!rivals -> (all l. !again(l))",
    "active counts": "rivals -> (all l. active(l) -> (some r. all s. in_r(s, r) -> counts(l, s))"
    " | (some c. all s. in_c(s, c) -> counts(l, s)))",
    # Registrations.
    "one count": "all s, l, l2. counts(l, s) & counts(l2, s) -> l = l2",
    "one store life": "all s, l, l2. store_life(s, l) & store_life(s, l2) -> l = l2",
    "one disk life": "all s, l, l2. disk_life(s, l) & disk_life(s, l2) -> l = l2",
    "counted life": "all s, l, l2. counts(l, s) -> (disk_life(s, l2) | (up(s) & store_life(s, l2)) -> l2 = l)",
    "counted life remembered": "all s, l. counts(l, s) -> (disk_blank(s) | disk_life(s, l)) &"
    " (up(s) -> store_blank(s) | store_life(s, l))",
    "granted life": "all s, l. grant(s, l) -> disk_life(s, l) & store_life(s, l) & up(s)",
    "disk behind": "all s. up(s) -> disk_term(s) <= store_term(s)",
    "counted term": "all s, l. counts(l, s) -> granted_term(l, s) <= disk_term(s) |"
    " (!rivals & (disk_blank(s) | active(l) | suspended(l)))",
    "granted term": "all s, l. grant(s, l) -> grant_term(s, l) <= disk_term(s)",
    "claimed": "all s, l. registering(l) -> granted_term(l, s) <= claim(l)",
    # Terms.
    "formed began": "all e, s. formed(e, s) -> began(e)",
    "formed by quorum": "all e. began(e) -> (some r. all s. in_r(s, r) -> formed(e, s))",
    "formed disk": "all e, s. formed(e, s) & !disk_blank(s) -> term(e) <= disk_term(s)",
    "formed store": "all e, s. up(s) & formed(e, s) & !store_blank(s) -> term(e) <= store_term(s)",
    "formed disk other": "all e, s, l. formed(e, s) & !disk_blank(s) & disk_life(s, l) & life(e) != l ->"
    " term(e) < disk_term(s)",
    "formed store other": "all e, s, l. up(s) & formed(e, s) & !store_blank(s) & store_life(s, l) & life(e) != l ->"
    " term(e) < store_term(s)",
    "formed grant": "all e, s, l. formed(e, s) & grant(s, l) & !grant_blank(s, l) & life(e) != l ->"
    " term(e) < grant_term(s, l)",
    "formed counted": "all e, s, l. formed(e, s) & counts(l, s) & !granted_blank(l, s) & life(e) != l ->"
    " term(e) < granted_term(l, s)",
    "later is claimed": "all l, e, e2, s. suspended(l) & now(l, e) & counts(l, s) & formed(e2, s) &"
    " term(e) < term(e2) -> granted_term(l, s) <= claim(l)",
    # Histories.
    "one owner": "all l, n, l2, l3. own(l, n, l2) & own(l, n, l3) -> l2 = l3",
    "a history has owners": "all e, n. began(e) -> !own(life(e), n, nobody)",
    "own from the first": "all e, n. began(e) & first(life(e)) <= n -> own(life(e), n, life(e))",
    "sent in order": "all l, n, m. sent(l, n) & first(l) <= m & m < n -> sent(l, m)",
    "sent from the first": "all l, n. sent(l, n) -> first(l) <= n & known(l)",
    "began is known": "all e. began(e) -> known(life(e))",
    "known is begun": "all l. known(l) -> born(l) & !registering(l)",
    "history of an owner": "all l, l2, l3, n, m. own(l, n, l2) & m <= n & own(l, m, l3) -> own(l2, m, l3)",
    "history by an owner": "all l, l2, l3, n, m. own(l, n, l2) & m <= n & own(l2, m, l3) -> own(l, m, l3)",
    # Stores.
    "one store told": "all s, e, e2. store_told(s, e) & store_told(s, e2) -> e = e2",
    "one disk told": "all s, e, e2. disk_told(s, e) & disk_told(s, e2) -> e = e2",
    "told began": "all s, e. store_told(s, e) | disk_told(s, e) -> began(e)",
    "told has its term": "all s, e. (store_told(s, e) -> store_told_term(s) = term(e)) &"
    " (disk_told(s, e) -> disk_told_term(s) = term(e))",
    "untold is empty": "all s, n, l. (store_told_term(s) = zero -> !content(s, n, l)) &"
    " (disk_told_term(s) = zero -> !disk_content(s, n, l))",
    "told grows": "all s. up(s) -> disk_told_term(s) <= store_told_term(s)",
    "one content": "all s, n, l, l2. content(s, n, l) & content(s, n, l2) -> l = l2",
    "one disk content": "all s, n, l, l2. disk_content(s, n, l) & disk_content(s, n, l2) -> l = l2",
    "content by history": "all s, n, l, e. content(s, n, l) & store_told(s, e) -> own(life(e), n, l)",
    "disk by history": "all s, n, l, e. disk_content(s, n, l) & disk_told(s, e) -> own(life(e), n, l)",
    "begun was told": "all s, l, e. up(s) & store_begun(s) & store_life(s, l) & store_told(s, e) -> life(e) = l",
    "begun began": "all s, l. up(s) & store_begun(s) & store_life(s, l) -> known(l)",
    "granted told": "all s, l, e. grant(s, l) -> grant_told(s, l) <= disk_told_term(s) &"
    " (disk_told(s, e) -> grant_told(s, l) = term(e) | life(e) = l)",
    "counted told": "all s, l, e. suspended(l) & now(l, e) & counts(l, s) -> disk_told_term(s) <= term(e)"
    " & (up(s) -> store_told_term(s) <= term(e))",
    "granted told later": "all s, l, e. grant(s, l) & now(l, e) ->"
    " (term(e) < disk_told_term(s) -> disk_told_term(s) = grant_told(s, l)) &"
    " (term(e) < store_told_term(s) -> store_told_term(s) = grant_told(s, l))",
    "granted synced told": "all s, l, e. (grant(s, l) | counts(l, s)) & up(s) & store_told(s, e) & life(e) != l ->"
    " disk_told(s, e)",
    "granted synced": "all s, l, e, n, l2. (grant(s, l) | counts(l, s)) & up(s) & store_told(s, e) & life(e) != l ->"
    " (content(s, n, l2) <-> disk_content(s, n, l2))",
    # Votes.
    "frozen began": "all s, e. frozen(s, e) -> began(e) & term(e) < top",
    "frozen term": "all s, e. frozen(s, e) -> (disk_blank(s) | term(e) < disk_term(s)) &"
    " (up(s) -> store_blank(s) | term(e) < store_term(s))",
    "frozen is not begun": "all s, e, e2. up(s) & frozen(s, e) & store_life(s, life(e)) & store_told(s, e2) &"
    " term(e2) <= term(e) -> !store_begun(s)",
    "votes own": "all s, e, n. vote(s, e, n) -> began(e) & own(life(e), n, life(e))",
    "votes told": "all s, e, n. vote(s, e, n) -> (disk_blank(s) | term(e) <= disk_told_term(s)) &"
    " (up(s) -> store_blank(s) | term(e) <= store_told_term(s))",
    "votes on disk": "all s, e, n. vote(s, e, n) & disk_told(s, e) -> disk_content(s, n, life(e)) | wiped(s, e, n)",
    "votes in store": "all s, e, n. up(s) & vote(s, e, n) & store_told(s, e) ->"
    " content(s, n, life(e)) | wiped(s, e, n)",
    "disk votes": "all s, e, n. disk_told(s, e) & disk_content(s, n, life(e)) -> vote(s, e, n) | frozen(s, e)",
    "lost is dead": "all s, e, n. vote(s, e, n) & !disk_content(s, n, life(e)) -> dead(e, n) | wiped(s, e, n)",
    "cut is dead": "all s, e, n. up(s) & vote(s, e, n) & !content(s, n, life(e)) -> dead(e, n) | wiped(s, e, n)",
    "replaced is dead": "all e, e2, n. began(e) & began(e2) & term(e) < term(e2) & own(life(e), n, life(e)) &"
    " !own(life(e2), n, life(e)) -> dead(e, n)",
    "dead by quorum": "all e, n. dead(e, n) -> (some r. all s. in_r(s, r) -> frozen(s, e) & !vote(s, e, n))",
    # Stores that lost their disks.
    "blank is empty": "all s. disk_blank(s) -> disk_told_term(s) = zero",
    "blank store is empty": "all s. up(s) & store_blank(s) -> store_told_term(s) = zero & !store_begun(s)",
    "blank on disk first": "all s. up(s) & store_blank(s) -> disk_blank(s)",
    "granted blank": "all s, l. (grant(s, l) | counts(l, s)) & registering(l) & up(s) & disk_blank(s) ->"
    " store_blank(s)",
    "a grant has memory": "all s, l. grant(s, l) & !grant_blank(s, l) -> !disk_blank(s)",
    "counted has memory": "rivals -> (all s, l. counts(l, s) & !granted_blank(l, s) -> !disk_blank(s))",
    "wiped had a vote": "all s, e, n. wiped(s, e, n) -> vote(s, e, n)",
    "votes were sent": "all s, e, n. vote(s, e, n) -> sent(life(e), n)",
    "held was sent": "all s, n, l. (up(s) & content(s, n, l)) | disk_content(s, n, l) -> sent(l, n)",
    "used from below": "all s, n. (disk_used(s, n) -> disk_used(s, least)) &"
    " (store_used(s, n) -> store_used(s, least))",
    "wiped is used": "all s, e, n. wiped(s, e, n) -> (disk_blank(s) | disk_used(s, n) | dead(e, n)) &"
    " (up(s) -> store_blank(s) | store_used(s, n) | dead(e, n))",
    "a grant reports votes": "all s, l, e, n. grant(s, l) & registering(l) & !grant_blank(s, l) & vote(s, e, n) ->"
    " grant_used(s, l, n) | grant_held(s, l, n, life(e)) | dead(e, n)",
    "counted votes": "all s, l, e, n. counts(l, s) & registering(l) & !granted_blank(l, s) & vote(s, e, n) ->"
    " granted_used(l, s, n) | granted_held(l, s, n, life(e)) | dead(e, n)",
    "a grant tells of votes": "all s, l, e, n. grant(s, l) & registering(l) & !grant_blank(s, l) & vote(s, e, n) ->"
    " term(e) <= grant_told(s, l)",
    "counted votes told": "all s, l, e, n. counts(l, s) & registering(l) & !granted_blank(l, s) & vote(s, e, n) ->"
    " term(e) <= granted_told(l, s)",
    # Acknowledgements.
    "proven told": "all l, s, e. again(l) & !owes(l, s) & now(l, e) ->"
    " (disk_blank(s) | term(e) <= disk_told_term(s)) & (up(s) -> store_blank(s) | term(e) <= store_told_term(s))",
    "acks are votes": "all l, s, n, e. ack(s, l, n) & now(l, e) -> vote(s, e, n) | owes(l, s)",
    "later acks are votes": "all l, s, n, e. ack_after(s, l, n) & now(l, e) -> vote(s, e, n)"
    " | (again(l) & grant_told(s, l) != term(e))",
    "acked are votes": "all l, s, n, e. acked(l, s, n) & now(l, e) -> vote(s, e, n)",
    "released is stable": "all l, n. released(l, n) -> stable(l, n)",
    "safe by votes": "all e, n. safe(e, n) -> (some k. all s. in_k(s, k) -> vote(s, e, n))",
    "safe began": "all e, n. safe(e, n) -> began(e)",
}

_LATER: Final = {
    "nobody is active": "rivals -> (all l1. !active(l1))",
    "later than all": "all e1. began(e1) -> term(e1) < claim(l)",
    "later than the top": "top < claim(l)",
}
LEMMAS: Final = {
    "Resume": {
        **_LATER,
        "nothing has a vote": "all s1, e1, n1. in_r(s1, r) & began(e1) -> !vote(s1, e1, n1)",
    },
    "Resume.followed": {
        **_LATER,
        "what is excluded has no vote": "all s1, e1, n1. in_r(s1, r) & began(e1) & vote(s1, e1, n1) &"
        " (n <= n1 | !own(life(e0), n1, life(e1))) -> dead(e1, n1)",
    },
    "Return.renewed": _LATER,
    "Return": {
        "as new as all": "all e1. began(e1) -> term(e1) <= term(e)",
        "the newest": "e = last",
        "nobody is active": "rivals -> (all l1. !active(l1))",
    },
}

_FORMED: Final = "formed by quorum; formed counted; registering is new; claimed"
_BEGINNING: Final = ("Resume", "Resume.followed", "Return.renewed")
_COUNTING: Final = ("ToSource.grant", "ToSource.owing", "ToSource.proven", "ToSource.over", "Wait")
_WIPED: Final = (
    "wiped is used; wiped had a vote; votes own; votes were sent; replaced is dead; own from the first; now began;"
    " active is newest; began tops; one term; one owner; used from below"
)
NEEDS: Final = {
    "Resume.followed/nobody is active": "active counts; one count; one state",
    "Resume/nobody is active": "active counts; one count; one state",
    "Return/nobody is active": "active is last; now began; one state",
    "Return/the newest": "top began; began has a term; began tops; one term; now began",
    "Return.renewed/nobody is active": "active counts; one count; one state",
    "Return/as new as all": "began has a term; one now; now began; formed by quorum; formed counted; later is claimed;"
    " newest alone; began tops; grant has a term",
    "Return.renewed/later than all": "began has a term; one now; now began; formed by quorum; formed counted;"
    " later is claimed; began tops",
    "Return.renewed/dead by quorum": "now began; one now; one term; replaced is dead; dead by quorum; votes told;"
    " counted told; votes own; frozen began; counted has memory",
    "Resume/later than all": _FORMED,
    "Resume.followed/later than all": _FORMED,
    "Resume/later than the top": "top began; grant has a term; claimed",
    "Resume.followed/later than the top": "top began; grant has a term; claimed",
    **{f"{name}/active counts": "active counts; one state" for name in _COUNTING},
    **{f"{name}/formed by quorum": "formed by quorum; formed began" for name in _BEGINNING},
    **{f"{name}/wiped is used": _WIPED for name in ("Inform", "Inform.cut", "Inform.first")},
    "Inform.cut/cut is dead": "cut is dead; content by history; votes own; replaced is dead; history of an owner;"
    " history by an owner; one owner; a history has owners; own from the first; one store told; told began; now began;"
    " active is newest; began tops; one term",
    "Judge/safe by votes": "safe by votes; acked are votes",
    "Resume/nothing has a vote": "counted votes told; votes own; began has a term",
    "Resume/dead by quorum": "dead by quorum; votes own; registering is new; frozen began",
    "Resume.followed/what is excluded has no vote": "one term; replaced is dead; votes own; counted votes;"
    " counted votes told",
    "Resume.followed/dead by quorum": "dead by quorum; votes own; registering is new; frozen began",
    "Return.renewed/later acks are votes": "told terms; later acks are votes; now began",
}
"""The invariants that suffice for a condition, where the solvers take long with all of them."""

PROPERTIES: Final = {
    "safe is not dead": "all e, n. safe(e, n) -> !dead(e, n)",
    "safe is own": "all e, n. safe(e, n) -> own(life(e), n, life(e))",
    "StableByQuorum": "all e, n. safe(e, n) ->"
    " (some k. all s. in_k(s, k) -> disk_content(s, n, life(e)) | wiped(s, e, n))",
    "NumbersUnique": "all e, e2, n. safe(e, n) & safe(e2, n) -> life(e) = life(e2)",
    "NoReuse": "all e, e2, n. safe(e, n) & began(e2) & term(e) < term(e2) & first(life(e2)) <= n -> life(e) = life(e2)",
    "RetainedUntilSettled": "all l, n. released(l, n) -> stable(l, n)",
    "NoDeadServed": "all s, l, e, n, l2. active(l) & up(s) & store_life(s, l) & store_begun(s) & safe(e, n) &"
    " content(s, n, l2) & store_told(s, e) -> l2 = life(e)",
    "SyncedFirst": "all l, s, n, e, e2. acked(l, s, n) & now(l, e) & disk_told(s, e2) & life(e2) = l ->"
    " disk_content(s, n, l) | wiped(s, e, n)",
}
