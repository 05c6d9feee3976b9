----------------------------- MODULE MCStability -----------------------------
(* Bounds of the constants, for the checker; four lives of which no two after each other reach the                   *)
(* same stores; and two processes that reach different ones.                                                          *)
EXTENDS Stability

ASSUME Layout \in {"one", "two", "three", "backup", "one and one", "one and two"}
ASSUME Inside \in {"quorum", "all", "all_active"}
ASSUME Between \in {"any", "majority", "all", "all_active"}
ASSUME Consensus \in {"highest", "majority", "lowest"}
ASSUME Repairs \subseteq {"every_group", "one_life", "holes"}
ASSUME Numbers \in Nat \ {0} /\ Flight \in Nat \ {0} /\ Lives \in Nat \ {0} /\ Crashes \in Nat
ASSUME Faults \subseteq {"slow", "lag", "lose", "late", "wipe", "rival"}
ASSUME Mutant \in {"none", "ack_before_sync", "any_life", "present_quorum", "cut_low", "resume_at_newest",
                   "early_release", "own_count", "no_second_round", "no_proof"}

Reach == <<{1}, {1, 2}, {2, 3}, {1, 3}>>
Apart == source.life # 0 => \A s \in Stores : store[s].life = source.life => s \in Reach[source.life]

Rivals ==
    LET first == source.life = 1 /\ aside.source.life = 0  \* it has stores 1 and 2, and sends nothing
        again == source.life = 1 /\ aside.source.life = 2   \* it comes back with 1 and 3, when the second has crashed
    IN /\ store[1].life # 2                                \* the second has stores 2 and 3, and tells 3 nothing
       /\ store[2].life = 1 => store[2].term = 1
       /\ store[3].life # 3                                \* the third has stores 1 and 2
       /\ store[3].life = 1 => again \/ source.life = 3
       /\ store[3].life = 2 => store[3].told = 0
       /\ first \/ source.life = 2 => window.next <= 1
       /\ again => aside.source.state = "DOWN"
       /\ source.life = 2 => aside.source.life = 1
       /\ source.life = 3 => aside.source.state = "DOWN" /\ safe # {}
=============================================================================
