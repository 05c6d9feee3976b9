----------------------------- MODULE MCRecovery -----------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Recovery

ASSUME Messages \in Nat \ {0}
ASSUME Lacks1 \subseteq Numbers /\ Lacks2 \subseteq Numbers
ASSUME Groups \in 1..2 /\ Order \in {"ordered", "arrival"} /\ Acks \in {"immediate", "batched"}
ASSUME Consensus \in {"lowest", "majority", "highest"}
ASSUME Maximum \in 0..Messages /\ Window \in Nat \ {0} /\ GiveUp \in Nat \ {0} /\ Room \in Nat \ {0}
ASSUME Repairs \subseteq {"prefix", "every_group"}
ASSUME Faults \subseteq {"die", "close", "lose", "miss", "slow", "crash", "restart"}
ASSUME Mutant \in {"none", "ahead", "unread", "newest", "cautious", "any_group", "no_retry"}
=============================================================================
