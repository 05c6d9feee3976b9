--------------------------- MODULE TraceRecovery ---------------------------
(* Whether the steps that a recorded trace shows in one view are those of some run of the model.                      *)
(*                                                                                                                    *)
(* Sample is a sequence of steps, [before, action, after], as `stablecast.model.views` reads them from a trace; what  *)
(* a view is, is said there. Before the first of them anything may happen; between two of them anything that the view *)
(* does not see. That Unfinished is violated means that there is such a run.                                          *)
EXTENDS MCRecovery, TLC

CONSTANTS
    View,    \* "Recovery.receiver"
    Sample

VARIABLES
    who,  \* the first of the two numbers that are looked at
    at    \* how many steps were matched

-------------------------------------------------------------------------------
One(n) ==
    LET acked == IF n <= rcv.acked THEN " acked" ELSE ""
    IN CASE n < rcv.low          -> "before"
         [] n \in Skipped(rcv)   -> "lost" \o acked
         [] n \in rcv.done       -> "consumed" \o acked
         [] n \in Delivered(rcv) -> "delivered" \o acked
         [] OTHER                -> "open" \o acked

Shown == IF rcv.state = "ACTIVE" THEN One(who) \o ", " \o One(who + 1) ELSE "none"

Does(action) ==
    CASE action = "ToReceiver" -> \E s \in Stores : ToReceiver(s)
      [] action = "Consume"    -> \E n \in Numbers : Consume(n)
      [] action = "Tick"       -> Tick
      [] action = "Register"   -> \E s \in Stores : Register(s)
      [] action = "Crash"      -> \E s \in Stores : Crash(s)

-------------------------------------------------------------------------------
TraceInit == Init /\ who \in 1..(Messages - 1) /\ at = 0

Unseen == Next /\ UNCHANGED <<who, at>> /\ (at = 0 \/ Shown' = Shown)

Matched ==
    /\ at < Len(Sample)
    /\ Shown = Sample[at + 1].before
    /\ Does(Sample[at + 1].action)
    /\ UNCHANGED who
    /\ Shown' = Sample[at + 1].after
    /\ at' = at + 1

TraceNext == Unseen \/ Matched

Unfinished == at < Len(Sample)
=============================================================================
