---------------------------- MODULE Registration ----------------------------
(* Sources that want one registration ID (RegID) at one store.                                                        *)
(*                                                                                                                    *)
(* In the code: a client is `core/registration/store_registration.py` inside `core/registration/registration_set.py`; *)
(* the store is `core/store/endpoint.py` with `clients.py`, `client_lifetime.py` and `sync_tickets.py`. In the guide: *)
(* registration, activity timeout and state lifetime.                                                                 *)
(*                                                                                                                    *)
(* Time is in ticks and passes only when nothing is due; what is due at one instant happens in any order. A client    *)
(* believes in a grant for Lease ticks from the sending of its request, the store's activity timeout is one tick      *)
(* longer: that tick stands for the margin that clocks of different rate need. Connections keep their order; what     *)
(* finds no room in one is lost, and a connection may break with all that is in it.                                   *)
(*                                                                                                                    *)
(* Clients in Shared are lives of one context: sources that one process made of one topic, at one address. Of these   *)
(* the later one, with the higher number, takes the RegID at once; an earlier one is refused like a stranger. One     *)
(* that dies was closed; its process goes on, so the address refuses nothing.                                         *)
(*                                                                                                                    *)
(* Bounds that could hide an error: clients do not come back under another life; a queue holds Room messages; the     *)
(* store is asked nothing while Writes of its writes are unsynced.                                                    *)
EXTENDS Integers, Sequences

CONSTANTS
    Clients,   \* how many
    Interval,  \* ticks from a request to the next (ume_registration_interval)
    Probe,     \* ticks from a sign of life to the question for another
    Silence,   \* ticks without one until the store counts as silent (ume_store_activity_timeout)
    Lease,     \* ticks that a client believes in a grant, from the sending of its request
    Lifetime,  \* ticks that the store keeps a silent client's state (source state lifetime); 0: as long as it is active
    Room,      \* messages that one direction of a connection holds
    Writes,    \* writes of the store's disk that may be unsynced
    Shared,    \* the clients that are lives of one context
    Faults,    \* what may go wrong: "slow" (whatever is under way takes time), "lag" (only answers do), "break",
               \* "drop", "die", "crash"
    Mutant     \* "none", or which rule is broken

VARIABLES
    client,    \* each client: state of the chart; ticks left on its timers; age of its request and of its probe
    toStore,   \* each client's connection, towards the store
    toClient,  \* and back
    store,     \* is it up; who holds the RegID, is he active, how long silent; ticks to the next check of timeouts
    unsynced,  \* the store's writes that a crash would lose, each with the answer that waits for it
    disk       \* who holds the RegID in the store's journal

vars == <<client, toStore, toClient, store, unsynced, disk>>

Ids == 1..Clients
None == -1
Activity == Lease + 1

Replaces(i, j) == {i, j} \subseteq Shared /\ i > j  \* i is a later life of the context of j

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b

(* Messages. An ask, grant or refusal is fresh while it belongs to the client's newest attempt: the generation of the *)
(* code counts attempts, and nothing but equality with the newest one matters.                                        *)
Message(kind, fresh) == [kind |-> kind, fresh |-> fresh]
Asking == Message("ask", TRUE)
Probing == Message("probe", TRUE)
Alive == Message("alive", TRUE)

Late(queue) ==
    [k \in DOMAIN queue |->
        IF queue[k].kind \in {"ask", "grant", "refuse"} THEN [queue[k] EXCEPT !.fresh = FALSE] ELSE queue[k]]

Put(queue, message) == IF Len(queue) < Room THEN Append(queue, message) ELSE queue

RECURSIVE PutAll(_, _)
PutAll(queue, messages) ==
    IF messages = <<>> THEN queue ELSE PutAll(Put(queue, Head(messages)), Tail(messages))

-------------------------------------------------------------------------------
(* A client. Each operator gives the client after an input, what it says, and whether it began a new attempt.         *)

Stay(c) == [client |-> c, says |-> <<>>, anew |-> FALSE]

Ask(c, state) ==
    [client |-> [c EXCEPT !.state = state, !.asked = 0, !.retry = Interval, !.probe = None, !.silence = None,
                          !.probed = None],
     says |-> <<Asking>>, anew |-> TRUE]

OnGrant(c, fresh) ==
    IF ~fresh /\ Mutant # "any_generation" THEN Stay(c)
    ELSE IF c.state = "REGISTERED" THEN Stay([c EXCEPT !.silence = Silence])
    ELSE IF c.asked >= Lease THEN Ask(c, c.state)
    ELSE Stay([c EXCEPT !.state = "REGISTERED", !.retry = None, !.probe = Probe, !.silence = Silence,
                        !.lease = IF Mutant = "lease_from_answer" THEN Lease ELSE Lease - c.asked,
                        !.asked = 0, !.probed = None])

OnRefusal(c, fresh) ==
    IF ~fresh \/ c.state = "REGISTERED" THEN Stay(c)
    ELSE Stay([c EXCEPT !.state = IF @ = "RENEWING" THEN "UNRESPONSIVE" ELSE @, !.retry = Interval])

OnAlive(c) ==
    IF c.state # "REGISTERED" THEN Stay(c)
    ELSE IF c.probed = None THEN Stay([c EXCEPT !.silence = Silence])
    ELSE Stay([c EXCEPT !.silence = Silence, !.lease = Lease - c.probed, !.probed = None, !.probe = Probe])

OnQuestion(c) ==
    [client |-> IF c.state = "REGISTERED" THEN [c EXCEPT !.silence = Silence] ELSE c,
     says |-> <<Alive>>, anew |-> FALSE]

OnBroken(c) == IF c.state = "REGISTERED" THEN Ask(c, "RENEWING") ELSE Stay(c)

Hear(c, m) ==
    CASE m.kind = "grant"  -> OnGrant(c, m.fresh)
      [] m.kind = "refuse" -> OnRefusal(c, m.fresh)
      [] m.kind = "alive"  -> OnAlive(c)
      [] m.kind = "probe"  -> OnQuestion(c)

(* Timers that are due at one instant run in this order.                                                              *)
Then(step, Next(_)) ==
    LET next == Next(step.client)
    IN [client |-> next.client, says |-> step.says \o next.says, anew |-> step.anew \/ next.anew]

OnRetry(c) ==
    [client |-> [c EXCEPT !.state = IF @ = "RENEWING" THEN "UNRESPONSIVE" ELSE @, !.retry = Interval],
     says |-> <<Asking>>, anew |-> FALSE]

OnProbeDue(c) == [client |-> [c EXCEPT !.probed = 0], says |-> <<Probing>>, anew |-> FALSE]

OnExpired(c) ==
    CASE Mutant = "no_lease"     -> Stay(c)
      [] c.state = "REGISTERED"  -> Ask(c, "UNRESPONSIVE")
      [] c.state = "RENEWING"    -> Stay([c EXCEPT !.state = "UNRESPONSIVE"])
      [] OTHER                   -> Stay(c)

Due(c) == 0 \in {c.retry, c.probe, c.silence, c.lease}

OnTimer(c) ==
    LET Disarm(left) == IF left = 0 THEN None ELSE left
        idle == [c EXCEPT !.retry = Disarm(@), !.probe = Disarm(@), !.silence = Disarm(@), !.lease = Disarm(@)]
        Retry(d) == IF c.retry = 0 THEN OnRetry(d) ELSE Stay(d)
        Ping(d) == IF c.probe = 0 THEN OnProbeDue(d) ELSE Stay(d)
        Hush(d) == IF c.silence = 0 THEN OnBroken(d) ELSE Stay(d)
        Expire(d) == IF c.lease = 0 THEN OnExpired(d) ELSE Stay(d)
    IN Then(Then(Then(Retry(idle), Ping), Hush), Expire)

Older(c) ==
    LET Less(left) == IF left = None THEN None ELSE left - 1
    IN [c EXCEPT !.retry = Less(@), !.probe = Less(@), !.silence = Less(@), !.lease = Less(@),
                 !.asked = IF c.state \in {"REGISTERING", "RENEWING", "UNRESPONSIVE"} THEN Min(@ + 1, Lease) ELSE 0,
                 !.probed = IF @ = None THEN None ELSE @ + 1]

(* Client i takes a step; its queues are `there` and `back` before it speaks.                                         *)
Step(i, step, there, back) ==
    /\ client' = [client EXCEPT ![i] = step.client]
    /\ toStore' = [toStore EXCEPT ![i] = PutAll(IF step.anew THEN Late(there) ELSE there, step.says)]
    /\ toClient' = [toClient EXCEPT ![i] = IF step.anew THEN Late(back) ELSE back]
    /\ unsynced' = IF step.anew
                   THEN [k \in DOMAIN unsynced |->
                            IF unsynced[k].holder = i THEN [unsynced[k] EXCEPT !.fresh = FALSE] ELSE unsynced[k]]
                   ELSE unsynced

Running(i) == client[i].state \notin {"IDLE", "DEAD"}

Fresh == [state |-> "IDLE", retry |-> None, probe |-> None, silence |-> None, lease |-> None, asked |-> 0,
          probed |-> None]
Dead == [Fresh EXCEPT !.state = "DEAD"]

-------------------------------------------------------------------------------
(* The store.                                                                                                         *)

Down == [up |-> FALSE, holder |-> 0, active |-> FALSE, age |-> 0, check |-> None]
Empty == [Down EXCEPT !.up = TRUE]
Holds(i, check) == [up |-> TRUE, holder |-> i, active |-> TRUE, age |-> 0, check |-> IF check = None THEN 1 ELSE check]

Write(i, fresh) == Append(unsynced, [holder |-> i, fresh |-> fresh])

OnAsk(i, fresh) ==
    LET follows == Replaces(i, store.holder) \/ (Mutant = "take_turns" /\ {i, store.holder} \subseteq Shared)
        taken == store.holder \notin {0, i} /\ store.active /\ ~follows /\ Mutant # "steal"
    IN IF taken
       THEN /\ toClient' = [toClient EXCEPT ![i] = Put(@, Message("refuse", fresh)),
                                            ![store.holder] = Put(@, Probing)]
            /\ UNCHANGED <<store, unsynced>>
       ELSE /\ store' = Holds(i, store.check)
            /\ unsynced' = Write(i, fresh)
            /\ toClient' = IF Mutant = "answer_before_sync"
                           THEN [toClient EXCEPT ![i] = Put(@, Message("grant", fresh))] ELSE toClient

OnSign(i, asks) ==
    /\ unsynced' = unsynced
    /\ IF store.holder = i /\ store.active
       THEN /\ store' = [store EXCEPT !.age = 0]
            /\ toClient' = IF asks THEN [toClient EXCEPT ![i] = Put(@, Alive)] ELSE toClient
       ELSE UNCHANGED <<store, toClient>>

-------------------------------------------------------------------------------
Init ==
    /\ client = [i \in Ids |-> Fresh]
    /\ toStore = [i \in Ids |-> <<>>]
    /\ toClient = [i \in Ids |-> <<>>]
    /\ store = Empty
    /\ unsynced = <<>>
    /\ disk = 0

Start(i) ==
    /\ client[i].state = "IDLE"
    /\ Step(i, Ask(client[i], "REGISTERING"), toStore[i], toClient[i])
    /\ UNCHANGED <<store, disk>>

ToStore(i) ==  \* the store reads a message; a store that is down refuses the connection, and the client hears of it
    /\ toStore[i] # <<>>
    /\ UNCHANGED disk
    /\ IF store.up
       THEN LET m == Head(toStore[i])
            IN /\ Len(unsynced) < Writes
               /\ toStore' = [toStore EXCEPT ![i] = Tail(@)]
               /\ UNCHANGED client
               /\ IF m.kind = "ask" THEN OnAsk(i, m.fresh) ELSE OnSign(i, m.kind = "probe")
       ELSE /\ Step(i, OnBroken(client[i]), Tail(toStore[i]), toClient[i])
            /\ UNCHANGED store

ToClient(i) ==  \* a dead client's address refuses the connection, and the store hears of it
    /\ toClient[i] # <<>>
    /\ UNCHANGED disk
    /\ IF client[i].state = "DEAD"
       THEN /\ toClient' = [toClient EXCEPT ![i] = Tail(@)]
            /\ store' = IF store.up /\ store.holder = i /\ i \notin Shared
                        THEN [store EXCEPT !.active = FALSE] ELSE store
            /\ UNCHANGED <<client, toStore, unsynced>>
       ELSE /\ Step(i, Hear(client[i], Head(toClient[i])), toStore[i], Tail(toClient[i]))
            /\ UNCHANGED store

ClientTimer(i) ==
    /\ Running(i)
    /\ Due(client[i])
    /\ Step(i, OnTimer(client[i]), toStore[i], toClient[i])
    /\ UNCHANGED <<store, disk>>

Break(i) ==  \* a broken connection takes along what was in it
    /\ "break" \in Faults
    /\ Running(i)
    /\ Step(i, OnBroken(client[i]), <<>>, <<>>)
    /\ UNCHANGED <<store, disk>>

Drop(i) ==  \* the same, and nobody is told
    /\ "drop" \in Faults
    /\ toStore[i] # <<>> \/ toClient[i] # <<>>
    /\ toStore' = [toStore EXCEPT ![i] = <<>>]
    /\ toClient' = [toClient EXCEPT ![i] = <<>>]
    /\ UNCHANGED <<client, store, unsynced, disk>>

Die(i) ==
    /\ "die" \in Faults
    /\ Running(i)
    /\ client' = [client EXCEPT ![i] = Dead]
    /\ toStore' = [toStore EXCEPT ![i] = <<>>]
    /\ UNCHANGED <<toClient, store, unsynced, disk>>

StoreTimer ==
    /\ store.up
    /\ store.check = 0
    /\ LET active == store.active /\ store.age < Activity
           over == ~active /\ store.age >= Max(Activity, Lifetime)
       IN /\ store' = IF over THEN Empty ELSE [store EXCEPT !.active = active, !.check = 1]
          /\ unsynced' = IF over THEN Write(0, FALSE) ELSE unsynced
    /\ UNCHANGED <<client, toStore, toClient, disk>>

Sync ==  \* everything written is durable; the answers that waited for it go
    /\ unsynced # <<>>
    /\ disk' = unsynced[Len(unsynced)].holder
    /\ unsynced' = <<>>
    /\ LET Answers(i) == LET Mine(write) == write.holder = i /\ store.holder = i
                             writes == SelectSeq(unsynced, Mine)
                         IN [k \in DOMAIN writes |-> Message("grant", writes[k].fresh)]
       IN toClient' = IF Mutant = "answer_before_sync" THEN toClient
                      ELSE [i \in Ids |-> PutAll(toClient[i], Answers(i))]
    /\ UNCHANGED <<client, toStore, store>>

Crash ==
    /\ "crash" \in Faults
    /\ store.up
    /\ store' = Down
    /\ unsynced' = <<>>
    /\ UNCHANGED <<client, toStore, toClient, disk>>

Restart ==  \* timers start anew
    /\ ~store.up
    /\ store' = IF disk = 0 \/ Mutant = "restart_forgets" THEN Empty
                ELSE IF Mutant = "restart_inactive" THEN [Holds(disk, None) EXCEPT !.active = FALSE]
                ELSE Holds(disk, None)
    /\ UNCHANGED <<client, toStore, toClient, unsynced, disk>>

Tick ==
    /\ \A i \in Ids : ~Due(client[i])
    /\ store.check # 0
    /\ "slow" \in Faults \/ (unsynced = <<>> /\ \A i \in Ids : toStore[i] = <<>>)
    /\ {"slow", "lag"} \cap Faults # {} \/ \A i \in Ids : toClient[i] = <<>>
    /\ client' = [i \in Ids |-> Older(client[i])]
    /\ store' = IF store.holder = 0 THEN store ELSE [store EXCEPT !.age = @ + 1, !.check = @ - 1]
    /\ UNCHANGED <<toStore, toClient, unsynced, disk>>

Next ==
    \/ \E i \in Ids : \/ Start(i) \/ ToStore(i) \/ ToClient(i) \/ ClientTimer(i)
                      \/ Break(i) \/ Drop(i) \/ Die(i)
    \/ StoreTimer \/ Sync \/ Crash \/ Restart \/ Tick

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ \A i \in Ids : WF_vars(Start(i)) /\ WF_vars(ToStore(i)) /\ WF_vars(ToClient(i)) /\ WF_vars(ClientTimer(i))
    /\ WF_vars(StoreTimer) /\ WF_vars(Sync) /\ WF_vars(Restart) /\ WF_vars(Tick)

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
Believes(i) == client[i].state \in {"REGISTERED", "RENEWING"}

OneHolder ==  \* R1: no two contexts believe in the RegID; of one context a life that was replaced may for a while
    \A i, j \in Ids : Believes(i) /\ Believes(j) => i = j \/ {i, j} \subseteq Shared

Kept ==  \* R2: who believes in it holds it in the store's journal, or was replaced there
    \A i \in Ids : Believes(i) => disk = i \/ Replaces(disk, i)

Inside ==  \* R3: a client's lease is over before the store's activity timeout
    \A i \in Ids : Believes(i) /\ store.up => /\ store.holder = i \/ Replaces(store.holder, i)
                                              /\ store.active
                                              /\ client[i].lease + store.age <= Lease

NoReturn ==  \* R6: of one context's lives an earlier one never gets the RegID back from a later one that is active
    [][store.up /\ store.active /\ store'.up => ~Replaces(store.holder, store'.holder)]_vars

Granted ==  \* R4: who asks is registered in the end, or has died
    \A i \in Ids : client[i].state = "REGISTERING" ~> client[i].state \in {"REGISTERED", "DEAD"}

Handed ==  \* R5: when the holder has died, a client that goes on asking takes his place
    \A i, j \in Ids : i # j /\ client[i].state = "DEAD" /\ client[j].state = "REGISTERING" ~>
                          client[j].state \in {"REGISTERED", "DEAD"}
=============================================================================
