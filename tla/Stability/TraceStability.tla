--------------------------- MODULE TraceStability ---------------------------
(* Whether the steps that a recorded trace shows in one view are those of some run of the model.                      *)
(*                                                                                                                    *)
(* Sample is a sequence of steps, [before, action, after], as `stablecast.model.views` reads them from a trace; what  *)
(* a view is, is said there. Before the first of them anything may happen; between two of them anything that the view *)
(* does not see. That Unfinished is violated means that there is such a run.                                          *)
EXTENDS MCStability, TLC

CONSTANTS
    View,    \* "Stability.source" or "Stability.store"
    Sample

VARIABLES
    who,  \* the store (for a source: any) and the number that is looked at
    at    \* how many steps were matched

-------------------------------------------------------------------------------
StoreShown(s, n) ==
    LET st == store[s]
        place == IF st.resume = 0 THEN "asked" ELSE IF n < st.resume THEN "old" ELSE "new"
        held == IF st.content[n] = 0 THEN "" ELSE IF st.content[n] = st.life THEN " mine" ELSE " older"
        synced == IF n \in st.synced THEN " synced" ELSE ""
        told == IF n \in st.synced /\ st.resume # 0 /\ n >= st.resume /\ n < st.acked THEN " told" ELSE ""
    IN place \o held \o synced \o told

RECURSIVE HeldBy(_, _)
HeldBy(holders, g) ==
    LET one == ToString(Cardinality(Of(g, holders))) \o " of " \o ToString(Sizes[g])
    IN IF g = Len(Sizes) THEN one ELSE one \o " and " \o HeldBy(holders, g + 1)

SourceShown(n) ==
    CASE source.state \notin {"ACTIVE", "SUSPENDED"} -> "none"
      [] n < source.resume                           -> "before"
      [] n >= window.next                            -> IF n = window.next THEN "next" ELSE "later"
      [] <<source.life, n>> \in safe                 -> "stable"
      [] n < window.trail                            -> "dropped"
      [] OTHER -> "sent, held by " \o HeldBy({s \in Stores : n \in window.acked[s]}, 1)

Shown == IF View = "Stability.store" THEN StoreShown(who[1], who[2]) ELSE SourceShown(who[2])

Heard(m) ==
    LET late == IF m.life = source.life THEN "" ELSE "late "
    IN "ToSource(" \o late \o (IF m.kind = "acks" THEN "acks" ELSE "grant") \o ")"

Does(action) ==
    LET s == who[1]
    IN CASE action = "Ask"     -> Ask(s)
         [] action = "Inform"  -> Inform(s)
         [] action = "ToStore" -> ToStore(s)
         [] action = "Fill"    -> Fill(s)
         [] action = "Sync"    -> Sync(s)
         [] action = "Send"    -> Send
         [] action = "Wait"    -> Wait
         [] action = "Crash"   -> \E t \in Stores : Crash(t)
         [] OTHER              -> \E t \in Stores : back[t] # <<>> /\ Heard(Head(back[t])) = action /\ ToSource(t)

-------------------------------------------------------------------------------
TraceInit == Init /\ who \in Stores \X Range /\ at = 0

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
