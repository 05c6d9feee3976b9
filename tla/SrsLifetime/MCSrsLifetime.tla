---------------------------- MODULE MCSrsLifetime ----------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS SrsLifetime

ASSUME Contexts \in 1..3 /\ Sources \subseteq Ids /\ Wants \subseteq Ids /\ Heirs \subseteq 2..Contexts
ASSUME SourceLifetime \in Nat /\ InterestLifetime \in Nat /\ Grace \in Nat \ {0} /\ Backoff \in Nat
ASSUME Keepalive = 0 \/ (Keepalive \in Nat /\ Silence \in Nat /\ Keepalive < Silence)
ASSUME Room \in Nat \ {0} /\ Breaks \in Nat
ASSUME Faults \subseteq {"break", "late", "hang", "restart", "die", "away", "remove", "unwant", "lose"}
ASSUME "hang" \in Faults => Keepalive > 0 /\ "restart" \notin Faults  \* a restart tells all that are connected
ASSUME "lose" \in Faults => Keepalive = 0  \* what is due at one instant would depend on what was planned first
ASSUME Mutant \in {"none", "both", "gone", "one_lifetime", "older_stays", "everybody", "unsaid", "said_again", "stale",
                   "trusting", "no_sweep", "mute", "any_loss"}
=============================================================================
