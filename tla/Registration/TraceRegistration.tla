------------------------- MODULE TraceRegistration -------------------------
(* Whether the steps that a recorded trace shows in one view are those of some run of the model.                      *)
(*                                                                                                                    *)
(* Sample is a sequence of steps, [before, action, after], as `stablecast.model.views` reads them from a trace; what  *)
(* a view is, is said there. Before the first of them anything may happen; between two of them anything that the view *)
(* does not see. That Unfinished is violated means that there is such a run.                                          *)
EXTENDS MCRegistration, TLC

CONSTANTS
    View,    \* "Registration.client"
    Sample

VARIABLES
    who,  \* the client that is looked at
    at    \* how many steps were matched

-------------------------------------------------------------------------------
Shown == IF client[who].state \in {"RENEWING", "UNRESPONSIVE"} THEN "AWAY" ELSE client[who].state

Word(kind) ==
    CASE kind = "grant" -> "grant" [] kind = "refuse" -> "refusal" [] kind = "alive" -> "sign" [] OTHER -> "question"

Heard(m) == "ToClient(" \o (IF m.fresh THEN "" ELSE "late ") \o Word(m.kind) \o ")"

Does(action) ==
    CASE action = "Start"       -> Start(who)
      [] action = "ToStore"     -> ToStore(who)
      [] action = "ClientTimer" -> ClientTimer(who)
      [] action = "Break"       -> Break(who)
      [] OTHER                  -> toClient[who] # <<>> /\ Heard(Head(toClient[who])) = action /\ ToClient(who)

-------------------------------------------------------------------------------
TraceInit == Init /\ who \in Ids /\ at = 0

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
