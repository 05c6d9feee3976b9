------------------------------- MODULE MCRpp -------------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Rpp

ASSUME Receivers \in 1..3 /\ Patient \subseteq Ids
ASSUME Messages \in Nat /\ Capacity \in Nat \ {0} /\ Flight \in Nat \ {0} /\ Lives \in Nat \ {0}
ASSUME Flight <= Capacity \/ Mutant = "no_capacity_check"  \* else the store refuses the source
ASSUME Delay \in BOOLEAN /\ Repaired \in BOOLEAN
ASSUME Faults \subseteq {"leave", "expire", "die", "crash"}
ASSUME Mutant \in {"none", "fastest", "nobody_blocks", "before_sync", "whatever_room", "stays_paused", "not_looked_at",
                   "from_the_start", "no_capacity_check", "documented"}
=============================================================================
