---------------------------- MODULE MCSubscription ----------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Subscription

ASSUME Messages \in Nat \ {0} /\ Lives \in Nat \ {0, 1} /\ Proxies \subseteq 2..Lives
ASSUME Gone \subseteq 1..Messages /\ Crashes \in Nat /\ Breaks \in Nat
ASSUME Faults \subseteq {"back"}
ASSUME Mutant \in {"none", "confirms_lost", "acks_unread", "no_drop", "no_heritage", "no_memory", "waits_for_ever"}
=============================================================================
