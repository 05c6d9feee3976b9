--------------------------- MODULE ResolutionPhases ---------------------------
(* A source that advertises itself, a receiver that asks for it, and a network between them: resolution over UDP.     *)
(*                                                                                                                    *)
(* In the code: the source's side is `resolution/udp/advertiser.py`, the receiver's `querier.py`; the turns of both   *)
(* are `schedule.py` with `phases.py`. In the guide: initial, sustaining and quiescent phase.                         *)
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
Quiet == [Away EXCEPT !.phase = "QUIESCENT", !.due = IF Mutant = "murmur" THEN 3 ELSE None]

-------------------------------------------------------------------------------
(* Turns. `length` is that of the sustaining phase. What a quiet topic remembers of intervals does not matter.        *)

Ends(length) == IF length > 0 THEN length ELSE None
HasInitial == First > 0 /\ Longest > 0
HasSustaining == Sustain > 0
Interval == Max(Sustain, 1)

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

IsOver(t) == t.ends = 0

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

Passes(fate) == IF fate = "heard" THEN ~parted ELSE parted \/ "lose" \in Faults

Create(fate) ==  \* a source is advertised once when it is made, then through its phases
    /\ ~IsThere /\ ~joined /\ Passes(fate)
    /\ source' = Begin(SourceSustaining)
    /\ IF fate = "heard" THEN Hears(receiver) ELSE UNCHANGED <<receiver, known, cached>>
    /\ UNCHANGED <<joined, parted>>

SourceTurn(fate) ==
    /\ source.due = 0 /\ Passes(fate)
    /\ source' = Taken(source, SourceSustaining)
    /\ IF fate = "heard" THEN Hears(receiver) ELSE UNCHANGED <<receiver, known, cached>>
    /\ UNCHANGED <<joined, parted>>

End(fate) ==  \* without a final word nobody is told
    /\ "end" \in Faults /\ IsThere /\ (IF FinalWord THEN Passes(fate) ELSE fate = "lost")
    /\ source' = Away
    /\ IF fate = "heard"
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
    /\ CASE outcome = "lost" -> Passes("lost") \/ ~IsThere
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

Miss ==  \* a source that was found and cannot be joined is doubtful, too
    /\ known /\ ~joined /\ ~(IsThere /\ ~parted)
    /\ known' = FALSE /\ cached' = FALSE
    /\ receiver' = Asked(receiver, ReceiverSustaining, FALSE)
    /\ UNCHANGED <<source, joined, parted>>

Part ==
    /\ "part" \in Faults
    /\ parted' = ~parted
    /\ source' = IF Mutant = "keen" /\ parted THEN Asked(source, SourceSustaining, FALSE) ELSE source
    /\ UNCHANGED <<receiver, known, joined, cached>>

Tick ==
    /\ source.due # 0 /\ receiver.due # 0
    /\ joined => IsThere  \* the end of a session is noticed
    /\ known => joined  \* what is found is joined, or not to be joined
    /\ LET Older(t) == IF t.due = None THEN t
                       ELSE [t EXCEPT !.due = @ - 1, !.ends = IF @ = None THEN None ELSE Max(@ - 1, 0)]
       IN source' = Older(source) /\ receiver' = Older(receiver)
    /\ UNCHANGED <<known, joined, cached, parted>>

Next ==
    \/ \E fate \in {"heard", "lost"} : Create(fate) \/ SourceTurn(fate) \/ End(fate)
    \/ \E outcome \in {"lost", "asked", "answered"} : ReceiverTurn(outcome)
    \/ Want \/ Leave \/ Join \/ Break \/ Miss \/ Part \/ Tick

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ WF_vars(SourceTurn("heard")) /\ WF_vars(SourceTurn("lost")) /\ WF_vars(Join) /\ WF_vars(Break) /\ WF_vars(Miss)
    /\ \A outcome \in {"lost", "answered"} : WF_vars(ReceiverTurn(outcome))
    /\ WF_vars(Tick)

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
Silent ==  \* Q1: who is quiet plans no turn, and who is not plans one
    \A t \in {source, receiver} : t.phase \in {"AWAY", "QUIESCENT"} <=> t.due = None

Unasked ==  \* Q2: who is quiet speaks again only if a source is asked for, a receiver has lost what it had
    [][/\ source.phase = "QUIESCENT" /\ source' # source => receiver.due = 0 \/ source' = Away
       /\ receiver.phase = "QUIESCENT" /\ receiver' # receiver => (known /\ ~known') \/ (joined /\ ~joined') \/ receiver' = Away
      ]_vars

Answered ==  \* Q3: a receiver that has what it needs does not ask past the initial phase
    /\ UntilResolved /\ known /\ joined => receiver.phase # "SUSTAINING"
    /\ Enoughs /\ known => receiver.phase = "QUIESCENT"

NotDeaf ==  \* Q4: a source and a receiver that could hear each other do not both wait for a word
    ~(source.phase = "QUIESCENT" /\ receiver.phase = "QUIESCENT" /\ ~known /\ ~parted)

Found ==  \* Q5: those who can hear each other in the end find each other
    <>[](IsThere /\ Wanted /\ ~parted) => []<>joined
=============================================================================
