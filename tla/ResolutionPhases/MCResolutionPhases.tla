------------------------- MODULE MCResolutionPhases -------------------------
(* Bounds of the constants, for the checker. *)
EXTENDS ResolutionPhases

ASSUME First \in Nat /\ Longest \in Nat /\ Initial \in Nat \ {0} /\ Sustain \in Nat
ASSUME SourceSustaining \in Nat /\ ReceiverSustaining \in Nat
ASSUME UntilResolved \in BOOLEAN /\ Enough \in 1..2 /\ FinalWord \in BOOLEAN
ASSUME Faults \subseteq {"part", "lose", "end", "leave", "break"}
ASSUME Mutant \in {"none", "murmur", "lazy", "deaf", "restless", "keen"}
=============================================================================
