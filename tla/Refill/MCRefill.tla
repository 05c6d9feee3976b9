------------------------------ MODULE MCRefill ------------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Refill

ASSUME Stores \in 1..3 /\ Messages \in Nat /\ Lives \in Nat /\ Stops \in Nat /\ Wipes \in Nat
ASSUME Healing \in BOOLEAN /\ Careful \in BOOLEAN
ASSUME Mutant \in {"none", "any_life", "blank_votes", "recent", "unsynced"}
=============================================================================
