------------------------------ MODULE MCRouter ------------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS Router

ASSUME Size \in 3..4 /\ Links \subseteq Every /\ Dear \subseteq Links /\ Weak \subseteq Links
ASSUME Wants \subseteq Receivers /\ Lives \in Nat \ {0}
ASSUME Breaks \in Nat /\ Turns \in Nat /\ Messages \in Nat /\ Room \in Nat
ASSUME Faults \subseteq {"slow", "differ"}
ASSUME Mutant \in {"none", "any_path", "older_record", "own_tie", "not_passed_on", "kept_interest",
                   "any_link", "no_window", "new_window", "unsaid_end", "early_forgotten", "half_exchange",
                   "lost_stays"}
=============================================================================
