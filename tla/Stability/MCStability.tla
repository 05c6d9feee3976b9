----------------------------- MODULE MCStability -----------------------------
(* Bounds of the constants, for the checker.                                                                          *)
EXTENDS Stability

ASSUME Layout \in {"one", "two", "three", "backup", "one and one", "one and two", "three and one"}
ASSUME Inside \in {"quorum", "all", "all_active"}
ASSUME Between \in {"any", "majority", "all", "all_active"}
ASSUME Consensus \in {"highest", "majority", "lowest"}
ASSUME Repairs \subseteq {"every_group", "one_life", "holes", "vote"}
ASSUME Numbers \in Nat \ {0} /\ Flight \in Nat \ {0} /\ Lives \in Nat \ {0} /\ Crashes \in Nat
ASSUME Faults \subseteq {"slow", "lag", "lose", "late", "wipe", "replace", "rival"}
ASSUME Paths \in {"open", "apart", "away", "once", "return", "ring", "groups"}
ASSUME Memory \in Nat \ {0, 1}
ASSUME Mutant \in {"none", "ack_before_sync", "any_life", "present_quorum", "cut_low", "resume_at_newest",
                   "early_release", "own_count", "no_second_round", "no_proof", "cut_at_return", "forgotten_agrees",
                   "blank_votes", "few_vote", "held_only", "one_group_returns"}
=============================================================================
