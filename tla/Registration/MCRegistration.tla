--------------------------- MODULE MCRegistration ---------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Registration

ASSUME Clients \in 1..3
ASSUME /\ Interval \in Nat \ {0} /\ Probe \in Nat \ {0} /\ Silence \in Nat \ {0}
       /\ Lease \in 1..7  \* a margin of an eighth is a tick at most up to here
       /\ Lifetime \in Nat
ASSUME Room \in Nat \ {0} /\ Writes \in Nat \ {0}
ASSUME Shared \subseteq 1..Clients
ASSUME Faults \subseteq {"slow", "lag", "break", "drop", "die", "crash"}
ASSUME Mutant \in {"none", "any_generation", "no_lease", "lease_from_answer", "steal", "answer_before_sync",
                   "restart_forgets", "restart_inactive", "take_turns"}
=============================================================================
