--------------------------- MODULE MCProxyElection ---------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS ProxyElection

ASSUME Stores \in 1..3 /\ Values \in 1..3 /\ Lives \in 1..3
ASSUME Repaired \in BOOLEAN /\ Quorum \in BOOLEAN
ASSUME Faults \subseteq {"suspect"}
ASSUME Mutant \in {"none", "own_ended", "any_life", "theft", "no_stop", "refused_counts", "alone", "few"}
=============================================================================
