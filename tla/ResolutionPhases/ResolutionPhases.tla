--------------------------- MODULE ResolutionPhases ---------------------------
(* A source that advertises itself, a receiver that asks for it, and a network between them: resolution over UDP.     *)
(*                                                                                                                    *)
(* In the code: the source's side is `resolution/advertiser.py`, the receiver's `querier.py`; the turns of both are   *)
(* `schedule.py` with `phases.py`. In the guide: initial, sustaining and quiescent phase.                             *)
(*                                                                                                                    *)
(* Time is in ticks, the grid on which turns stand is one tick wide, and a turn comes when it is due. A datagram      *)
(* arrives within its tick, or it is lost: those of both contexts while they are parted, any other one if "lose" is   *)
(* among the faults. A query is answered at once.                                                                     *)
(*                                                                                                                    *)
(* Bounds that could hide an error: one source, one receiver, one topic; no limits, so that no turn is held back.     *)
EXTENDS Integers

CONSTANTS
    First, Longest,      \* intervals of the initial phase: the first one, and where they stop to double; 0: no such phase
    Initial,             \* length of the initial phase in ticks
    Sustain,             \* interval of the sustaining phase; 0: no such phase
    SourceSustaining,    \* length of the source's sustaining phase; 0: it never ends
    ReceiverSustaining,  \* the same of the receiver's
    UntilResolved,       \* whether a receiver with a session stops asking (after the initial phase)
    Enough,              \* known sources at which asking stops: 1, or 2 for never
    FinalWord,           \* whether the end of a source is advertised
    Faults,              \* what may happen: "part", "lose", "end" (of the source), "leave" (of the receiver), "break" (of
                         \* the session)
    Mutant               \* "none", or which rule is broken

VARIABLES
    source,    \* the source's turns: phase, ticks to the next one, intervals before and after it, ticks to the phase's end
    receiver,  \* the receiver's
    known,     \* whether the receiver was told of the source, and has not lost it
    joined,    \* whether it has a session
    cached,    \* whether its context remembers the source
    parted     \* whether nothing passes between the contexts

vars == <<source, receiver, known, joined, cached, parted>>

None == -1
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

Away == [phase |-> "AWAY", due |-> None, gap |-> 0, interval |-> 0, ends |-> None]
Silent(t) == [t EXCEPT !.phase = "QUIESCENT", !.due = None]

-------------------------------------------------------------------------------
(* Turns. `length` is that of the sustaining phase. What a quiet topic remembers of intervals does not matter.        *)

Ends(length) == IF length > 0 THEN length ELSE None
HasInitial == First > 0 /\ Longest > 0
HasSustaining == Sustain > 0
Interval == Max(Sustain, 1)

Quiet == [phase |-> "QUIESCENT", due |-> None, gap |-> 0, interval |-> 0, ends |-> None]

Sustaining(length, answered) ==
    [phase |-> "SUSTAINING", due |-> IF answered THEN Interval ELSE 0, gap |-> Interval, interval |-> Interval,
     ends |-> Ends(length)]

Begin(length) ==
    IF HasInitial THEN [phase |-> "INITIAL", due |-> 0, gap |-> 0, interval |-> Max(First, 1), ends |-> Ends(Initial)]
    ELSE IF HasSustaining THEN Sustaining(length, FALSE)
    ELSE Quiet

Asked(t, length, answered) ==
    CASE t.phase = "QUIESCENT" -> IF HasSustaining /\ Mutant # "deaf" THEN Sustaining(length, answered) ELSE t
      [] t.phase = "SUSTAINING" -> Sustaining(length, answered)
      [] t.phase = "INITIAL" -> IF answered THEN t
                                ELSE [t EXCEPT !.due = 0,
                                               !.interval = IF t.gap > 0 /\ t.due > t.gap \div 2 THEN t.gap ELSE @]
      [] OTHER -> t

(* The turn was taken, which was due now. The end of the phase is looked at then: the turn that is planned comes.     *)
Advance(t) ==
    LET longest == Max(Longest, Max(First, 1))
    IN [t EXCEPT !.gap = t.interval, !.due = t.interval,
                 !.interval = IF t.phase = "INITIAL" /\ @ < longest THEN Min(2 * @, longest) ELSE @]

IsOver(t) == t.ends # None /\ t.ends <= 0 /\ Mutant # "endless"

Taken(t, length) ==
    IF ~IsOver(t) THEN Advance(t)
    ELSE IF t.phase = "INITIAL" /\ HasSustaining
         THEN Advance([t EXCEPT !.phase = "SUSTAINING", !.interval = Interval, !.ends = Ends(length)])
         ELSE Quiet

Enoughs == Enough = 1

(* A receiver that has what it needs does not ask. *)
Rests(t, has) == IF UntilResolved /\ has /\ t.phase = "SUSTAINING" /\ Mutant # "restless" THEN Quiet ELSE t

-------------------------------------------------------------------------------
IsThere == source.phase # "AWAY"
Wanted == receiver.phase # "AWAY"

(* The receiver's context hears of the source. *)
Hears(t) ==
    /\ cached' = TRUE
    /\ IF Wanted
       THEN /\ known' = TRUE
            /\ receiver' = IF ~known /\ Enoughs THEN Quiet ELSE t
       ELSE UNCHANGED known /\ receiver' = t

Init ==
    /\ source = Away
    /\ receiver = Away
    /\ known = FALSE /\ joined = FALSE /\ cached = FALSE
    /\ parted = FALSE

Passes(heard) == IF heard THEN ~parted ELSE parted \/ "lose" \in Faults

Create(heard) ==  \* a source is advertised once when it is made, then through its phases
    /\ ~IsThere /\ ~joined /\ ~cached /\ Passes(heard)
    /\ source' = Begin(SourceSustaining)
    /\ IF heard THEN Hears(receiver) ELSE UNCHANGED <<receiver, known, cached>>
    /\ UNCHANGED <<joined, parted>>

SourceTurn(heard) ==
    /\ source.due = 0 /\ Passes(heard)
    /\ source' = Taken(source, SourceSustaining)
    /\ IF heard THEN Hears(receiver) ELSE UNCHANGED <<receiver, known, cached>>
    /\ UNCHANGED <<joined, parted>>

End(heard) ==  \* without a final word nobody is told
    /\ "end" \in Faults /\ IsThere /\ (IF FinalWord THEN Passes(heard) ELSE ~heard)
    /\ source' = Away
    /\ IF heard
       THEN /\ cached' = FALSE /\ known' = FALSE
            /\ receiver' = IF known THEN Asked(receiver, ReceiverSustaining, FALSE) ELSE receiver
       ELSE UNCHANGED <<receiver, known, cached>>
    /\ UNCHANGED <<joined, parted>>

Want ==  \* what is remembered is reported at once
    /\ ~Wanted
    /\ receiver' = IF cached /\ Enoughs THEN Quiet ELSE Begin(ReceiverSustaining)
    /\ known' = cached
    /\ UNCHANGED <<source, joined, cached, parted>>

Leave ==
    /\ "leave" \in Faults /\ Wanted
    /\ receiver' = Away
    /\ known' = FALSE /\ joined' = FALSE
    /\ UNCHANGED <<source, cached, parted>>

(* A query: it is lost, it is heard and its answer is lost, or it is answered. *)
ReceiverTurn(outcome) ==
    /\ receiver.due = 0
    /\ CASE outcome = "lost" -> Passes(FALSE) \/ ~IsThere
         [] outcome = "asked" -> ~parted /\ IsThere /\ "lose" \in Faults
         [] outcome = "answered" -> ~parted /\ IsThere
    /\ LET taken == Rests(Taken(receiver, ReceiverSustaining), joined)
       IN IF outcome = "answered" THEN Hears(taken) ELSE receiver' = taken /\ UNCHANGED <<known, cached>>
    /\ source' = IF outcome = "lost" THEN source ELSE Asked(source, SourceSustaining, TRUE)
    /\ UNCHANGED <<joined, parted>>

Join ==  \* a source that was found is joined
    /\ known /\ ~joined /\ IsThere /\ ~parted
    /\ joined' = TRUE
    /\ receiver' = Rests(receiver, TRUE)
    /\ UNCHANGED <<source, known, cached, parted>>

Break ==  \* the session is lost: what was known is doubtful
    /\ joined
    /\ ~IsThere \/ "break" \in Faults
    /\ joined' = FALSE /\ known' = FALSE /\ cached' = FALSE
    /\ receiver' = IF Mutant = "lazy" THEN receiver ELSE Asked(receiver, ReceiverSustaining, FALSE)
    /\ UNCHANGED <<source, parted>>

Part ==
    /\ "part" \in Faults
    /\ parted' = ~parted
    /\ UNCHANGED <<source, receiver, known, joined, cached>>

Tick ==
    /\ source.due # 0 /\ receiver.due # 0
    /\ ~(joined /\ ~IsThere)
    /\ LET Older(t) == IF t.due = None THEN t
                       ELSE [t EXCEPT !.due = @ - 1, !.ends = IF @ = None THEN None ELSE @ - 1]
       IN source' = Older(source) /\ receiver' = Older(receiver)
    /\ UNCHANGED <<known, joined, cached, parted>>

Next ==
    \/ \E heard \in BOOLEAN : Create(heard) \/ SourceTurn(heard) \/ End(heard)
    \/ \E outcome \in {"lost", "asked", "answered"} : ReceiverTurn(outcome)
    \/ Want \/ Leave \/ Join \/ Break \/ Part \/ Tick

Spec == Init /\ [][Next]_vars
=============================================================================
