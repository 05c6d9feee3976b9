--------------------------- MODULE MCReceiverVotes ---------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS ReceiverVotes

ASSUME Messages \in Nat \ {0} /\ Old \in 1..Messages /\ Acked \in 0..Old
ASSUME Knows \subseteq Ids \ Away /\ Away \subseteq Ids
ASSUME Votes \subseteq {"stores", "receiver"} /\ GiveUp \in Nat \ {0}
ASSUME Stops \in Nat /\ Wipes \in Nat /\ Returns \in Nat
ASSUME Mutant \in {"none", "lacking_votes", "passed_over", "late_ignored", "late_silent"}
=============================================================================
