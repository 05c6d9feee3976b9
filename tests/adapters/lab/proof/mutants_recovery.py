"""Break the rules by which a receiver begins, delivers, gives up and acknowledges, one at a time.

No configuration of a model belongs to them. The first is the defect for which the rule about votes was made: an emptied
store and one that was away decide that a receiver begins above stable messages.
"""

from collections.abc import Mapping
from typing import Final

from stablecast.lab.proof.system import SystemText
from tests.adapters.lab.proof.mutants import Mutant, both, guard_replaced, update_replaced


def _everybody_votes(text: SystemText) -> None:
    """Let every store decide that granted, whatever it lacks."""
    heads, guards, updates = text.transitions["Complete.votes"]
    changed = tuple(one.replace(" & votes(s1)", "").replace(" & votes(s)", "") for one in guards)
    assert changed != guards
    text.transitions["Complete.votes"] = (heads, changed, updates)


def _weaker_vote(part: str) -> Mutant:
    def change(text: SystemText) -> None:
        votes = text.transitions["Grant.new"][2]["votes(s1)"]
        assert part in votes
        update_replaced("Grant.new", "votes(s1)", votes.replace(part, ""))(text)

    broken = "votes are whole" if "m2" in part else "voters did not forget"
    return Mutant(change, "Grant.new", broken)


MUTANTS: Final[Mapping[str, Mutant]] = {
    "everybody votes": Mutant(_everybody_votes, "Complete.votes", "began above what is settled"),
    "a store without memory votes": _weaker_vote("kept(s) & !used(s, least) & "),
    "a store that was emptied and announced to votes": _weaker_vote("& !used(s, least) "),
    "a store that lacks messages votes": _weaker_vote(" & m2 = m"),
    "a store that lacks messages offers as if it had all": Mutant(
        update_replaced("Grant.new", "lacks(s1, n1)", None), "Grant.new", "offers are above what is gone"
    ),
    "a minority votes": Mutant(
        guard_replaced("Complete.votes", 2, "granted(s) & votes(s)"), "Complete.votes", "began above what is settled"
    ),
    "the highest offer of the voters counts": Mutant(
        guard_replaced("Complete.votes", 3, "granted(s) & votes(s)"), "Complete.votes", "began above what is settled"
    ),
    "the offer of the only store that knows is ignored": Mutant(
        guard_replaced("Complete.votes", 1), "Complete.votes", "counted stores owe nothing"
    ),
    "what all stores lack is passed over in silence": Mutant(
        both(
            update_replaced("Complete.lost", "lost(n1, l1)", None),
            update_replaced("Complete.lost", "over(n1)", "below(s, n1)"),
        ),
        "Complete.lost",
        "began above what is settled",
    ),
    "a start by votes is taken for certain": Mutant(
        update_replaced("Complete.votes", "certain", "true"), "Complete.votes", "certain by a store that knows"
    ),
    "a late grant takes nothing back": Mutant(
        guard_replaced("Late.above", 5), "Late.above", "counted stores owe nothing"
    ),
    "a late grant reports no loss": Mutant(
        update_replaced("Late.lost", "lost(n1, l1)", None), "Late.lost", "counted stores owe nothing"
    ),
    "a late grant lowers the start after delivery": Mutant(guard_replaced("Late.back", 5), "Late.back", "in order"),
    "delivery leaves a gap": Mutant(guard_replaced("Deliver", 2), "Deliver", "in order"),
    "a message is given up that a store has": Mutant(
        guard_replaced("GiveUp", 2, "all s1. in_k(s1, k) -> up(s1) & disk_life(s1, of)"), "GiveUp", "stable is kept"
    ),
    "one store decides that a message is lost": Mutant(
        update_replaced("GiveUp", "lacked(s1, n1, l1)", None), "GiveUp", "lost is nowhere"
    ),
    "delivery is acknowledged": Mutant(
        guard_replaced(
            "Acknowledge",
            3,
            "all m, l1. m <= n & own(of, m, l1) -> over(m) | handed(m) | consumed(m, l1) | lost(m, l1)",
        ),
        "Acknowledge",
        "said is settled",
    ),
    "an acknowledgement passes over what was never delivered": Mutant(
        guard_replaced("Acknowledge", 3), "Acknowledge", "said is settled"
    ),
    "a store is acknowledged to before its grant was judged": Mutant(
        guard_replaced("Acknowledge", 1), "Acknowledge", "said is settled"
    ),
    "an acknowledgement counts under a later life": Mutant(
        guard_replaced("Arrive", 0, "up(s)"), "Arrive", "acknowledged by history"
    ),
    "a later life keeps acknowledgements of numbers that it uses again": Mutant(
        update_replaced("Begin", "acked(s1, n1, l1)", None), "Begin", "acknowledged by history"
    ),
    "a majority of disks is lost": Mutant(guard_replaced("Replace", 3), "Replace", "a quorum is not gone"),
}
"""The broken rules by what they do."""
