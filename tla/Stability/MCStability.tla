----------------------------- MODULE MCStability -----------------------------
(* Bounds of the constants, for the checker; and four lives of which no two after each other reach the same stores. *)
EXTENDS Stability

ASSUME Layout \in {"one", "two", "three", "backup", "one and one", "one and two"}
ASSUME Inside \in {"quorum", "all", "all_active"}
ASSUME Between \in {"any", "majority", "all", "all_active"}
ASSUME Consensus \in {"highest", "majority", "lowest"}
ASSUME Repairs \subseteq {"every_group", "one_life", "holes"}
ASSUME Numbers \in Nat \ {0} /\ Flight \in Nat \ {0} /\ Lives \in Nat \ {0} /\ Crashes \in Nat
ASSUME Faults \subseteq {"slow", "lag", "lose", "late", "wipe"}
ASSUME Mutant \in {"none", "ack_before_sync", "any_life", "present_quorum", "cut_low", "resume_at_newest",
                   "early_release", "own_count"}

Reach == <<{1}, {1, 2}, {2, 3}, {1, 3}>>
Apart == source.life # 0 => \A s \in Stores : store[s].life = source.life => s \in Reach[source.life]
=============================================================================
