---------------------------- MODULE MCWorkSharing ----------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS WorkSharing

ASSUME Messages \in Nat \ {0} /\ Turns \in Nat
ASSUME Faults \subseteq {"die", "pause", "slow"}
ASSUME Mutant \in {"none", "no_drain", "no_record", "two_holders", "early_ack", "deaf", "clings"}
=============================================================================
