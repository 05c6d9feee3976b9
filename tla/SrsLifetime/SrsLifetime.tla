----------------------------- MODULE SrsLifetime -----------------------------
(* Contexts that tell a resolution service (SRS) what they have and want, and are told what there is.                 *)
(*                                                                                                                    *)
(* In the code: the service is `resolution/srs/service.py` with `client.py`, `directory.py` and `session.py`; a       *)
(* context is `context.py` with `service_link.py` and `known_sources.py`. In the guide: resolution over TCP,          *)
(* potentially down sources, source and interest state lifetime.                                                      *)
(*                                                                                                                    *)
(* There is one topic. A context has at most one source of it, and at most one interest. A program that is started    *)
(* again is another context. Connections keep their order. One that its context has left may still hold what the      *)
(* context said (a former one), and what comes of it comes late. A wait before the next attempt may have any length.  *)
(* Time is in ticks, and passes when nothing is due and nothing is under way but on former connections.               *)
(*                                                                                                                    *)
(* Bounds that could hide an error: a context leaves a connection when the service has done with the one before;      *)
(* the service reads nothing while Room messages wait for a context; no patterns, one service.                        *)
EXTENDS Integers, Sequences

CONSTANTS
    Contexts,          \* how many
    Sources, Wants,    \* which of them begin with a source, and with an interest
    Heirs,             \* which of them begin when the one before has ended
    SourceLifetime,    \* ticks that sources stay potentially down (source-state-lifetime); 0: for ever
    InterestLifetime,  \* the same of interest
    Backoff,           \* ticks from a context's word that a transport is lost (SLR) to a look at its source
                       \* (source-leave-backoff)
    Grace,             \* ticks that a restarted service has to hear of everything again
    Keepalive,         \* ticks between keepalives; 0: there are none, and silence is never noticed
    Silence,           \* ticks of silence that break a connection
    Room,              \* messages that wait on a connection until an application waits, and the service
    Breaks,            \* how often connections break or hang, and the service restarts, together
    Faults,            \* what may happen: "break", "late" (what was said comes later), "hang", "restart", "die",
                       \* "away" (who has no connection may take time), "remove" (sources), "unwant", "lose" (transports)
    Mutant             \* "none", or which rule is broken

VARIABLES
    context,  \* each context: application, what it has and wants, its link, withdrawals not answered yet, whether it
              \* knows what the service of now names, and ticks left on its timers
    knows,    \* what each context knows of each source: "no", "cur" on this connection, or "old"
    wire,     \* the connection of each context, both directions; hung: nothing passes, nobody is told
    former,   \* what the service has still to read of the one before, and whether its end comes then
    client,   \* what the service keeps of each context: state, records, ticks since they are potentially down
    session,  \* the service's end of both connections, and ticks since it heard anything
    leave,    \* ticks until the service looks whether the source of a context is still there
    left      \* breaks that are left

vars == <<context, knows, wire, former, client, session, leave, left>>

Ids == 1..Contexts
None == -1
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
MaxAge == Max(SourceLifetime, InterestLifetime)
Timed(ticks) == IF Keepalive > 0 THEN ticks ELSE None

(* To the service; `source` and `want` are of a full exchange, `of` are the sources whose transport was lost. *)
Say(kind) == [kind |-> kind, source |-> FALSE, want |-> FALSE, of |-> {}]
All(c) == [Say("all") EXCEPT !.source = c.has /\ Mutant # "mute", !.want = c.wants]
(* From the service, about sources. *)
Word(kind, of) == [kind |-> kind, of |-> of]

NoSession == [state |-> "none", age |-> None]
NoClient == [state |-> "none", source |-> FALSE, want |-> FALSE, age |-> None]
NoWire == [there |-> <<>>, back |-> <<>>, hung |-> FALSE]
Over == [there |-> <<>>, ends |-> FALSE]
Idle == [app |-> "new", has |-> FALSE, wants |-> FALSE, link |-> "WAITING", stale |-> 0, settled |-> "none",
         sweep |-> None, keepalive |-> None, silence |-> None]
Begun(i) == [Idle EXCEPT !.app = "up", !.has = i \in Sources, !.wants = i \in Wants]
Nothing == [j \in Ids |-> "no"]

Up(i) == context[i].app = "up"
Told(c) == c.link \in {"EXCHANGING", "CURRENT"}
Clear(i) == former[i] = Over /\ session[i].old.state = "none"

-------------------------------------------------------------------------------
(* The service. *)

SourceSpan == IF Mutant = "one_lifetime" THEN InterestLifetime ELSE SourceLifetime
IsOver(span, age) == span > 0 /\ age >= span

Normal(c) == [c EXCEPT !.age = IF c.state = "CURRENT" \/ ~(c.source \/ c.want) THEN None ELSE @]

Lapse(c) ==
    LET source == c.source /\ ~IsOver(SourceSpan, c.age)
        want == c.want /\ ~IsOver(InterestLifetime, c.age)
    IN IF c.state = "DOWN" /\ ~source /\ ~want THEN NoClient ELSE Normal([c EXCEPT !.source = source, !.want = want])

Down(c) == [c EXCEPT !.state = "DOWN", !.age = IF c.state = "CURRENT" THEN 0 ELSE @]
Lost(c) == Lapse(IF Mutant = "gone" THEN [Down(c) EXCEPT !.source = FALSE] ELSE Down(c))

Hears(i, c) == /\ c[i].want \/ Mutant = "everybody"
               /\ session[i].now.state = "told"
               /\ ~wire[i].hung

(* The wires when the clients have become c; i hears `answer` besides, as far as its connection goes. *)
Tells(c, w, again) ==
    [k \in Ids |->
        LET up == {j \in Ids \ {k} : c[j].source /\ (~client[j].source \/ j \in again)}
            down == {j \in Ids \ {k} : client[j].source /\ ~c[j].source}
            word == IF up # {} THEN <<Word("up", up)>> ELSE IF down # {} THEN <<Word("down", down)>> ELSE <<>>
        IN IF Hears(k, c) THEN [w[k] EXCEPT !.back = @ \o word] ELSE w[k]]

Answer(w, i, from, word) == IF from = "now" /\ ~w[i].hung THEN [w EXCEPT ![i].back = Append(@, word)] ELSE w

Registered == [state |-> "registered", age |-> Timed(0)]

ReadHello(i, from, w) ==
    IF from = "old" /\ session[i].now.state # "none"  \* it is late
    THEN /\ former' = [former EXCEPT ![i] = Over]
         /\ wire' = w
         /\ UNCHANGED <<client, session, leave>>
    ELSE LET c == client[i]
         IN /\ client' = [client EXCEPT ![i] = Normal([c EXCEPT !.state = "ANNOUNCING",
                                                                 !.age = IF c.state = "CURRENT" THEN 0 ELSE @])]
            /\ session' = [session EXCEPT ![i][from] = Registered,
                                          ![i].old = IF from = "old" THEN Registered
                                                     ELSE IF Mutant = "both" THEN @ ELSE NoSession]
            /\ former' = [former EXCEPT ![i] = IF from = "old" THEN [@ EXCEPT !.there = Tail(@)]
                                               ELSE IF session[i].old.state # "none" THEN Over ELSE @]
            /\ wire' = Answer(w, i, from, Word("hello", {}))
            /\ leave' = leave

Others(i) == {j \in Ids \ {i} : client[j].source}

(* The client after a message, and what is answered. *)
After(c, m) ==
    CASE m.kind = "all" ->
            LET stays == Mutant = "older_stays"
            IN [state |-> "CURRENT", source |-> m.source \/ (stays /\ c.source), want |-> m.want \/ (stays /\ c.want),
                age |-> None]
      [] m.kind = "sir" -> [c EXCEPT !.source = TRUE]
      [] m.kind = "sdr" -> [c EXCEPT !.source = FALSE]
      [] m.kind = "rir" -> [c EXCEPT !.want = TRUE]
      [] m.kind = "rdr" -> [c EXCEPT !.want = FALSE]
      [] OTHER          -> c

Reply(i, m) ==
    CASE m.kind = "all" -> <<Word("told", IF m.want THEN Others(i) ELSE {})>>
      [] m.kind = "rir" -> IF Others(i) = {} THEN <<>> ELSE <<Word("up", Others(i))>>
      [] m.kind = "rdr" -> <<Word("rdr", {})>>
      [] m.kind = "ping" -> <<Word("pong", {})>>
      [] OTHER -> <<>>

ReadRecord(i, m, from, w) ==
    LET c == [client EXCEPT ![i] = After(@, m)]
        again == IF m.kind = "all" /\ m.source /\ Mutant = "said_again" THEN {i} ELSE {}
        told == Tells(c, w, again)
        reply == IF from = "now" /\ ~w[i].hung THEN Reply(i, m) ELSE <<>>
    IN /\ client' = c
       /\ wire' = [told EXCEPT ![i].back = @ \o reply]
       /\ session' = [session EXCEPT ![i][from].age = Timed(0),
                                     ![i][from].state = IF m.kind = "all" THEN "told" ELSE @]
       /\ former' = IF from = "old" THEN [former EXCEPT ![i].there = Tail(@)] ELSE former
       /\ leave' = [j \in Ids |-> IF j \in m.of /\ client[j].source
                                  THEN (IF leave[j] = None THEN Backoff ELSE leave[j]) ELSE leave[j]]

Read(i, m, from, w) == IF m.kind = "hello" THEN ReadHello(i, from, w) ELSE ReadRecord(i, m, from, w)

HasRoom == \A k \in Ids : Len(wire[k].back) < Room

-------------------------------------------------------------------------------
(* A context leaves its connection. Where nothing is late the service is told at once, and what was said is lost. *)

Unlinked(c) == [c EXCEPT !.link = "WAITING", !.stale = 0, !.sweep = None, !.keepalive = None, !.silence = None]
Aged(k) == [j \in Ids |-> IF k[j] = "cur" THEN "old" ELSE k[j]]

Leave(i) ==
    LET late == "late" \in Faults
        keep == wire[i].hung \/ late
        lost == ~keep /\ session[i].now.state # "none"
        c == IF lost THEN [client EXCEPT ![i] = Lost(@)] ELSE client
        gone == [wire EXCEPT ![i] = NoWire]
    IN /\ former' = [former EXCEPT ![i] = IF late /\ ~wire[i].hung THEN [there |-> wire[i].there, ends |-> TRUE] ELSE Over]
       /\ session' = [session EXCEPT ![i] = [now |-> NoSession, old |-> IF keep THEN session[i].now ELSE NoSession]]
       /\ client' = c
       /\ wire' = IF Mutant = "unsaid" THEN gone ELSE Tells(c, gone, {})
       /\ leave' = leave

-------------------------------------------------------------------------------
Init ==
    /\ context = [i \in Ids |-> IF i \in Heirs THEN Idle ELSE Begun(i)]
    /\ knows = [i \in Ids |-> Nothing]
    /\ wire = [i \in Ids |-> NoWire]
    /\ former = [i \in Ids |-> Over]
    /\ client = [i \in Ids |-> NoClient]
    /\ session = [i \in Ids |-> [now |-> NoSession, old |-> NoSession]]
    /\ leave = [i \in Ids |-> None]
    /\ left = Breaks

Begin(i) ==
    /\ i \in Heirs /\ context[i].app = "new" /\ context[i - 1].app = "dead"
    /\ context' = [context EXCEPT ![i] = Begun(i)]
    /\ UNCHANGED <<knows, wire, former, client, session, leave, left>>

Die(i) ==
    /\ "die" \in Faults /\ Up(i) /\ i + 1 \in Heirs /\ Clear(i)
    /\ context' = [context EXCEPT ![i] = [Idle EXCEPT !.app = "dead"]]
    /\ knows' = [knows EXCEPT ![i] = Nothing]
    /\ left' = left
    /\ IF context[i].link = "WAITING" THEN UNCHANGED <<wire, former, client, session, leave>> ELSE Leave(i)

(* What an application does: the service is told if it has been told the rest. *)
Does(i, c, message) ==
    /\ Up(i)
    /\ Told(context[i]) => Len(wire[i].there) < Room
    /\ context' = [context EXCEPT ![i] = c]
    /\ wire' = IF Told(c) /\ ~wire[i].hung THEN [wire EXCEPT ![i].there = Append(@, Say(message))] ELSE wire
    /\ UNCHANGED <<former, client, session, leave, left>>

Add(i) == /\ i \in Sources /\ ~context[i].has
          /\ Does(i, [context[i] EXCEPT !.has = TRUE], "sir") /\ knows' = knows
Remove(i) == /\ "remove" \in Faults /\ context[i].has
             /\ Does(i, [context[i] EXCEPT !.has = FALSE], "sdr") /\ knows' = knows
Want(i) == /\ i \in Wants /\ ~context[i].wants
           /\ Does(i, [context[i] EXCEPT !.wants = TRUE], "rir") /\ knows' = knows
Unwant(i) ==
    /\ "unwant" \in Faults /\ context[i].wants
    /\ Does(i, [context[i] EXCEPT !.wants = FALSE, !.stale = IF Told(context[i]) THEN @ + 1 ELSE @], "rdr")
    /\ knows' = [knows EXCEPT ![i] = Nothing]

Lose(i) ==  \* a receiver has lost the transport of what it knows; every service is told
    /\ "lose" \in Faults /\ Up(i) /\ context[i].wants /\ Told(context[i]) /\ ~wire[i].hung
    /\ Len(wire[i].there) < Room
    /\ LET of == {j \in Ids : knows[i][j] # "no"}
       IN /\ of # {}
          /\ wire' = [wire EXCEPT ![i].there = Append(@, [Say("slr") EXCEPT !.of = of])]
    /\ UNCHANGED <<context, knows, former, client, session, leave, left>>

Connect(i) ==
    /\ Up(i) /\ context[i].link = "WAITING"
    /\ context' = [context EXCEPT ![i].link = "REGISTERING", ![i].keepalive = Timed(Keepalive),
                                  ![i].silence = Timed(Silence)]
    /\ wire' = [wire EXCEPT ![i] = [NoWire EXCEPT !.there = <<Say("hello")>>]]
    /\ UNCHANGED <<knows, former, client, session, leave, left>>

ToService(i) ==
    /\ wire[i].there # <<>> /\ HasRoom
    /\ Read(i, Head(wire[i].there), "now", [wire EXCEPT ![i].there = Tail(@)])
    /\ UNCHANGED <<context, knows, left>>

FromFormer(i) ==  \* what comes late, and at last the end
    /\ former[i] # Over /\ HasRoom
    /\ IF former[i].there # <<>>
       THEN Read(i, Head(former[i].there), "old", wire)
       ELSE LET c == [client EXCEPT ![i] = IF session[i].old.state = "none" THEN @ ELSE Lost(@)]
            IN /\ client' = c
               /\ wire' = IF Mutant = "unsaid" THEN wire ELSE Tells(c, wire, {})
               /\ session' = [session EXCEPT ![i].old = NoSession]
               /\ former' = [former EXCEPT ![i] = Over]
               /\ leave' = leave
    /\ UNCHANGED <<context, knows, left>>

Swept(k) == IF Mutant = "no_sweep" THEN k ELSE [j \in Ids |-> IF k[j] = "old" THEN "no" ELSE k[j]]

Learn(i, of) ==  \* what was said before a withdrawal was answered is not taken for current
    LET c == context[i]
    IN IF c.wants /\ (c.stale = 0 \/ Mutant = "stale")
       THEN [j \in Ids |-> IF j \in of THEN "cur" ELSE knows[i][j]] ELSE knows[i]

ToClient(i) ==
    /\ wire[i].back # <<>>
    /\ LET m == Head(wire[i].back)
           c == [context[i] EXCEPT !.silence = Timed(Silence)]
           trusted == c.settled = "this"
           Is(to, known, says) ==
               /\ context' = [context EXCEPT ![i] = to]
               /\ knows' = [knows EXCEPT ![i] = known]
               /\ wire' = [wire EXCEPT ![i].back = Tail(@), ![i].there = @ \o says]
       IN CASE m.kind = "hello" ->
                  Is([c EXCEPT !.link = "EXCHANGING",
                               !.settled = IF @ = "none" \/ Mutant = "trusting" THEN "this" ELSE @], knows[i], <<All(c)>>)
            [] m.kind = "told" ->
                  Is([c EXCEPT !.link = "CURRENT", !.sweep = IF trusted THEN @ ELSE Grace],
                     IF trusted THEN Swept(Learn(i, m.of)) ELSE Learn(i, m.of), <<>>)
            [] m.kind = "up" -> Is(c, Learn(i, m.of), <<>>)
            [] m.kind = "down" -> Is(c, [j \in Ids |-> IF j \in m.of THEN "no" ELSE knows[i][j]], <<>>)
            [] m.kind = "rdr" -> Is([c EXCEPT !.stale = @ - 1], knows[i], <<>>)
            [] m.kind = "pong" -> Is(c, knows[i], <<>>)
    /\ UNCHANGED <<former, client, session, leave, left>>

Due(i) == Up(i) /\ 0 \in {context[i].sweep, context[i].silence, context[i].keepalive}

ContextTimer(i) ==
    /\ Due(i)
    /\ left' = left
    /\ LET c == IF context[i].sweep = 0 THEN [context[i] EXCEPT !.sweep = None, !.settled = "this"] ELSE context[i]
       IN IF c.silence = 0
          THEN /\ context' = [context EXCEPT ![i] = Unlinked(c)]
               /\ knows' = [knows EXCEPT ![i] = Aged(@)]
               /\ Leave(i)
          ELSE /\ context' = [context EXCEPT ![i] = [c EXCEPT !.keepalive = IF @ = 0 THEN Keepalive ELSE @]]
               /\ knows' = [knows EXCEPT ![i] = IF context[i].sweep = 0 THEN Swept(@) ELSE @]
               /\ wire' = IF c.keepalive = 0 /\ ~wire[i].hung
                          THEN [wire EXCEPT ![i].there = Append(@, Say("ping"))] ELSE wire
               /\ UNCHANGED <<former, client, session, leave>>

HasLapsed(c) == c.age # None /\ ((c.source /\ IsOver(SourceSpan, c.age)) \/ (c.want /\ IsOver(InterestLifetime, c.age)))
IsSilent(s) == Keepalive > 0 /\ s.age = Silence
Silent(i) == IsSilent(session[i].now) \/ IsSilent(session[i].old)
ServiceDue == \E i \in Ids : Silent(i) \/ HasLapsed(client[i]) \/ leave[i] = 0

IsLost(i) ==  \* its transport was lost, and so is its connection
    leave[i] = 0 /\ client[i].source /\ (client[i].state # "CURRENT" \/ Mutant = "any_loss")

ServiceTimer ==
    /\ ServiceDue
    /\ LET Quiet(s) == IF IsSilent(s) THEN NoSession ELSE s
           Left(i) == IF IsLost(i) THEN [client[i] EXCEPT !.source = FALSE] ELSE client[i]
           c == [i \in Ids |-> IF Silent(i) THEN Lost(client[i]) ELSE Lapse(Left(i))]
       IN /\ client' = c
          /\ session' = [i \in Ids |-> [now |-> Quiet(session[i].now), old |-> Quiet(session[i].old)]]
          /\ leave' = [i \in Ids |-> IF leave[i] = 0 THEN None ELSE leave[i]]
          /\ wire' = IF Mutant = "unsaid" THEN wire ELSE Tells(c, wire, {})
    /\ UNCHANGED <<context, knows, former, left>>

Fault(name) == name \in Faults /\ left > 0 /\ left' = left - 1

Break(i) ==
    /\ Fault("break")
    /\ Up(i) /\ context[i].link # "WAITING" /\ ~wire[i].hung /\ Clear(i)
    /\ context' = [context EXCEPT ![i] = Unlinked(@)]
    /\ knows' = [knows EXCEPT ![i] = Aged(@)]
    /\ Leave(i)

Hang(i) ==
    /\ Fault("hang")
    /\ Up(i) /\ context[i].link # "WAITING" /\ ~wire[i].hung /\ Clear(i)
    /\ wire' = [wire EXCEPT ![i] = [NoWire EXCEPT !.hung = TRUE]]
    /\ UNCHANGED <<context, knows, former, client, session, leave>>

Restart ==  \* the service forgets everything; whoever is connected hears of it
    /\ Fault("restart")
    /\ context' = [i \in Ids |-> [(IF Up(i) THEN Unlinked(context[i]) ELSE context[i]) EXCEPT
                                      !.settled = IF @ = "this" THEN "other" ELSE @]]
    /\ knows' = [i \in Ids |-> Aged(knows[i])]
    /\ wire' = [i \in Ids |-> NoWire]
    /\ former' = [i \in Ids |-> Over]
    /\ client' = [i \in Ids |-> NoClient]
    /\ session' = [i \in Ids |-> [now |-> NoSession, old |-> NoSession]]
    /\ leave' = [i \in Ids |-> None]

Tick ==
    /\ ~ServiceDue
    /\ \A i \in Ids : /\ ~Due(i)
                      /\ wire[i].there = <<>> /\ wire[i].back = <<>>
                      /\ Up(i) => "away" \in Faults \/ wire[i].hung \/ context[i].link = "CURRENT"
    /\ LET Less(ticks) == IF ticks = None THEN None ELSE ticks - 1
           More(ticks, most) == IF ticks = None THEN None ELSE Min(ticks + 1, most)
           Older(s) == [s EXCEPT !.age = More(@, Silence)]
       IN /\ context' = [i \in Ids |-> [context[i] EXCEPT !.sweep = Less(@), !.silence = Less(@), !.keepalive = Less(@)]]
          /\ client' = [i \in Ids |-> [client[i] EXCEPT !.age = More(@, MaxAge)]]
          /\ session' = [i \in Ids |-> [now |-> Older(session[i].now), old |-> Older(session[i].old)]]
          /\ leave' = [i \in Ids |-> Less(leave[i])]
    /\ UNCHANGED <<knows, wire, former, left>>

Next ==
    \/ \E i \in Ids : \/ Begin(i) \/ Die(i) \/ Add(i) \/ Remove(i) \/ Want(i) \/ Unwant(i) \/ Lose(i)
                      \/ Connect(i) \/ ToService(i) \/ FromFormer(i) \/ ToClient(i) \/ ContextTimer(i)
                      \/ Break(i) \/ Hang(i)
    \/ ServiceTimer \/ Restart \/ Tick

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ \A i \in Ids : /\ WF_vars(Connect(i)) /\ WF_vars(ToService(i)) /\ WF_vars(FromFormer(i)) /\ WF_vars(ToClient(i))
                      /\ WF_vars(ContextTimer(i))
    /\ WF_vars(ServiceTimer) /\ WF_vars(Tick)

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
IsTold(i) == session[i].now.state = "told" /\ ~wire[i].hung

Kept ==  \* N1: a service that was told all has what the context has, nothing else
    \A i \in Ids : IsTold(i) /\ wire[i].there = <<>> =>
        client[i].state = "CURRENT" /\ client[i].source = context[i].has /\ client[i].want = context[i].wants

OneConnection ==  \* N2: a context is registered on one connection
    \A i \in Ids : session[i].now.state = "none" \/ session[i].old.state = "none"

OnlyWanted ==  \* N3: nobody is told of sources who does not want them; what was said before follows no answer
    \A i \in Ids : \A n \in DOMAIN wire[i].back :
        wire[i].back[n].of # {} =>
            client[i].want \/ \E k \in DOMAIN wire[i].back : k > n /\ wire[i].back[k].kind = "rdr"

(* What a context takes for current when it has read everything; FALSE if something of it was no news. *)
RECURSIVE View(_, _, _)
View(known, stale, words) ==
    IF words = <<>> THEN [known |-> known, news |-> TRUE]
    ELSE LET m == Head(words)
             after == CASE m.kind = "up" -> IF stale = 0 THEN known \cup m.of ELSE known
                        [] m.kind = "told" -> IF stale = 0 THEN m.of ELSE {}
                        [] m.kind = "down" -> known \ m.of
                        [] OTHER -> known
             news == CASE m.kind = "up" -> stale > 0 \/ m.of \cap known = {}
                       [] m.kind = "down" -> stale > 0 \/ m.of \subseteq known
                       [] OTHER -> TRUE
             rest == View(after, IF m.kind = "rdr" THEN stale - 1 ELSE stale, Tail(words))
         IN [rest EXCEPT !.news = @ /\ news]

Seen(i) == View({j \in Ids : knows[i][j] = "cur"}, context[i].stale, wire[i].back)
Listens(i) == IsTold(i) /\ context[i].wants /\ client[i].want
              /\ \A n \in DOMAIN wire[i].there : wire[i].there[n].kind # "rdr"

Informed ==  \* N4: who wants them is told of exactly the sources that the service has
    \A i \in Ids : Listens(i) => Seen(i).known = {j \in Ids \ {i} : client[j].source}

Once ==  \* N5: of each change once
    \A i \in Ids : Listens(i) => Seen(i).news

(* N6: what a service was told goes when its context says so, or when it was potentially down for its lifetime, or    *)
(* still is a while after its transport was lost.                                                                     *)
Says(queue, kind, IsLeft(_)) == queue # <<>> /\ (Head(queue).kind = kind \/ (Head(queue).kind = "all" /\ IsLeft(Head(queue))))
NotBefore ==
    [][\A i \in Ids :
          LET NoSource(m) == ~m.source
              NoWant(m) == ~m.want
              Said(kind, IsLeft(_)) == Says(wire[i].there, kind, IsLeft) \/ Says(former[i].there, kind, IsLeft)
          IN /\ client[i].source /\ ~client'[i].source =>
                    \/ IsOver(SourceLifetime, client[i].age) \/ Said("sdr", NoSource) \/ Restart
                    \/ leave[i] = 0 /\ client[i].state # "CURRENT"
             /\ client[i].want /\ ~client'[i].want =>
                    IsOver(InterestLifetime, client[i].age) \/ Said("rdr", NoWant) \/ Restart]_vars

Steady ==  \* N7: a service that restarts takes nothing away that comes back in time
    [][\A i, j \in Ids : knows[i][j] # "no" /\ knows'[i][j] = "no" => ~context[j].has \/ ~context'[i].wants]_vars

Found ==  \* N8: who stays connected as often as it takes finds a source that stays
    \A i, j \in Ids : i # j => (<>[](context[i].wants /\ context[j].has) => <>[](knows[i][j] = "cur"))

Forgotten ==  \* N9: and forgets one that does not
    \A i, j \in Ids : i # j => (<>[](~context[j].has) => <>[](knows[i][j] = "no"))
=============================================================================
