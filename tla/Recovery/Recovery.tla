------------------------------ MODULE Recovery ------------------------------
(* A receiver that dies and returns, and gets from two stores what it has not read.                                   *)
(*                                                                                                                    *)
(* In the code: the receiver is `core/receiver/endpoint.py` with `delivery_window.py`, `request_window.py`,           *)
(* `recovery.py`, `first_number.py`, `store_registrations.py` and `consumption_acks.py`; a store is                   *)
(* `core/store/endpoint.py`, of which only a receiver's record and the retransmission service matter here. In the     *)
(* guide: receiver recovery, low sequence number, request window, consumption acknowledgements.                       *)
(*                                                                                                                    *)
(* The source has sent Messages numbers and says no more. The application remembers nothing when it dies; what the    *)
(* stores know of its acknowledgements decides where it goes on. A tick is the interval of everything: of retries, of *)
(* acknowledgements, of registration requests. Requests and acknowledgements to a store keep their order, and so do   *)
(* its answers; either may be lost.                                                                                   *)
(*                                                                                                                    *)
(* Bounds that could hide an error: two stores, a registration is one step and is not lost, nothing is sent while the *)
(* receiver recovers, and what finds no room among the Room messages under way is lost.                               *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,   \* how many there are; the first is number 1
    Lacks1,     \* what store 1 does not hold
    Lacks2,     \* and store 2
    Groups,     \* 1: the stores are one group of two; 2: two groups of one, of which any is enough
    Order,      \* "ordered" or "arrival" (ordered_delivery)
    Acks,       \* "immediate" or "batched" (ume_use_ack_batching)
    Consensus,  \* "lowest", "majority" or "highest" (ume_consensus_sequence_number_behavior of the receiver)
    Maximum,    \* messages that a receiver goes back at most, 0: all (retransmit_request_maximum)
    Window,     \* messages asked for at a time (retransmit_request_outstanding_maximum)
    GiveUp,     \* ticks from the first request for a message until it is lost
    Room,       \* messages that one direction of a connection holds
    Repairs,    \* "prefix" (formal design, 7.7), "every_group" (7.2)
    Faults,     \* what may happen: "die" or "close" (a receiver), "lose" (on the way to a store), "miss" (from it),
                \* "slow" (what is under way takes ticks), "crash" (a store), "restart" (it returns)
    Mutant      \* "none", or which rule is broken

VARIABLES
    rcv,      \* the receiver: see Idle
    store,    \* each store: is it up; what it takes for acknowledged, in memory and on disk
    toStore,  \* what is under way to each store: acknowledgements and requests
    toRcv,    \* and back: numbers of messages
    read,     \* what the application has consumed, ever
    lost      \* what it was told is lost, ever

vars == <<rcv, store, toStore, toRcv, read, lost>>

Numbers == 1..Messages
Stores == 1..2
Has(s) == Numbers \ IF s = 1 THEN Lacks1 ELSE Lacks2

Abs(n) == IF n < 0 THEN -n ELSE n
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
Quorum(size) == (size \div 2) + 1

(* A receiver before its session: `reg` is the chart of each registration, `said` what each store knew to be          *)
(* acknowledged, `over` whether the first interval is. Of the session: its first number, the highest acknowledgement  *)
(* it could have known then, what the application was told in this order (a loss is a negative number), what is held  *)
(* and what is lost ahead of that, what the application is done with, what was acknowledged, whether an               *)
(* acknowledgement is due; what is to be asked for, what was (with its age), and whose turn it is.                    *)
Idle ==
    [state |-> "DOWN", reg |-> <<"IDLE", "IDLE">>, said |-> <<0, 0>>, over |-> FALSE,
     low |-> 0, best |-> 0, told |-> <<>>, held |-> {}, gone |-> {}, done |-> {}, acked |-> 0, due |-> FALSE,
     wanted |-> {}, asked |-> <<>>, turn |-> 0]

Counts(r) == {s \in Stores : r.reg[s] \in {"REGISTERED", "RENEWING"}}
Settled(r) == {Abs(r.told[k]) : k \in DOMAIN r.told}
Delivered(r) == {r.told[k] : k \in DOMAIN r.told} \cap Numbers
Skipped(r) == {n \in Numbers : \E k \in DOMAIN r.told : r.told[k] = -n}
Behind(r) == \E n \in r.low..Messages : n \notin Settled(r)

Enough(S) == IF Groups = 1 THEN S = Stores ELSE S # {}
MayGiveUp(r) ==  \* every group has a quorum only with both stores
    IF "every_group" \in Repairs /\ Mutant # "any_group" THEN Counts(r) = Stores ELSE Enough(Counts(r))

-------------------------------------------------------------------------------
(* A receiver's step: the receiver after it, and what it says. *)

Stay(r) == [rcv |-> r, says |-> <<>>]
Say(to, kind, first, last) == [to |-> to, kind |-> kind, first |-> first, last |-> last]
Then(step, Next(_)) ==
    LET next == Next(step.rcv) IN [rcv |-> next.rcv, says |-> step.says \o next.says]

(* Delivery. *)

RECURSIVE Drain(_)
Drain(r) ==
    LET n == r.low + Len(r.told)
    IN IF n \in r.held THEN Drain([r EXCEPT !.told = Append(@, n), !.held = @ \ {n}])
       ELSE IF n \in r.gone THEN Drain([r EXCEPT !.told = Append(@, -n), !.gone = @ \ {n}])
       ELSE r

Take(r, n) ==
    IF n < r.low \/ n \in Settled(r) \cup r.held THEN r
    ELSE IF Order = "arrival" \/ Mutant = "ahead" THEN [r EXCEPT !.told = Append(@, n)]
    ELSE Drain([r EXCEPT !.held = @ \cup {n}, !.gone = @ \ {n}])

Lose(r, n) ==
    IF n \in Settled(r) \cup r.held THEN r
    ELSE IF Order = "arrival" THEN [r EXCEPT !.told = Append(@, -n)]
    ELSE Drain([r EXCEPT !.gone = @ \cup {n}])

RECURSIVE LoseAll(_, _, _)
LoseAll(r, first, last) == IF first > last THEN r ELSE LoseAll(Lose(r, first), first + 1, last)

(* Requests: as much as the window allows is asked for, of the registered stores in turn. *)

Targets(r) ==
    LET Is(s) == r.reg[s] = "REGISTERED"
    IN SelectSeq(<<1, 2>>, Is)

Of(targets, turn) == targets[(turn % Len(targets)) + 1]

RECURSIVE Outstanding(_)
Outstanding(asked) ==
    IF asked = <<>> THEN 0 ELSE 1 + Head(asked).last - Head(asked).first + Outstanding(Tail(asked))

Without(asked, n) ==  \* the parts of requests that are still open when n is settled
    LET Parts(q) == IF n < q.first \/ q.last < n THEN <<q>>
                    ELSE (IF q.first < n THEN <<[q EXCEPT !.last = n - 1]>> ELSE <<>>)
                      \o (IF n < q.last THEN <<[q EXCEPT !.first = n + 1]>> ELSE <<>>)
        RECURSIVE All(_)
        All(open) == IF open = <<>> THEN <<>> ELSE Parts(Head(open)) \o All(Tail(open))
    IN All(asked)

RECURSIVE AskMore(_, _)
AskMore(step, targets) ==
    LET r == step.rcv
        room == Window - Outstanding(r.asked)
    IN IF room = 0 \/ r.wanted = {} THEN step
       ELSE LET first == MinOf(r.wanted)
                last == MaxOf({n \in first..(first + room - 1) : first..n \subseteq r.wanted})
                turn == (r.turn + 1) % 2
                asked == [first |-> first, last |-> last, turn |-> turn, age |-> 0]
            IN AskMore([rcv |-> [r EXCEPT !.wanted = @ \ first..last, !.turn = turn, !.asked = Append(@, asked)],
                        says |-> Append(step.says, Say(Of(targets, turn), "ask", first, last))],
                       targets)

Ask(r) ==
    LET targets == Targets(r)
    IN IF r.state # "ACTIVE" \/ ~Behind(r) THEN Stay(r)
       ELSE IF targets = <<>>
       THEN Stay([r EXCEPT !.asked = <<>>,
                           !.wanted = @ \cup UNION {r.asked[k].first..r.asked[k].last : k \in DOMAIN r.asked}])
       ELSE AskMore(Stay(r), targets)

AskAgain(r, open) ==  \* what a tick left open; there is room for all of it
    LET targets == Targets(r)
        turned == [k \in DOMAIN open |-> [open[k] EXCEPT !.turn = (@ + 1) % 2]]
        Said(q) == Say(Of(targets, q.turn), "ask", q.first, q.last)
    IN IF targets = <<>> THEN Ask([r EXCEPT !.asked = open])
       ELSE Then([rcv |-> [r EXCEPT !.asked = turned], says |-> [k \in DOMAIN turned |-> Said(turned[k])]], Ask)

(* Acknowledgements: of the prefix that is consumed or lost, never of a loss alone; as documented, of the highest. *)

Leaps == "prefix" \notin Repairs /\ (Order = "arrival" \/ Acks = "immediate")

End(r) ==
    LET ready == IF Mutant = "unread" THEN Delivered(r) ELSE r.done
        ends == {n \in ready : n > r.acked /\ (Leaps \/ (r.acked + 1)..n \subseteq ready \cup Skipped(r))}
    IN MaxOf(ends \cup {r.acked})

Tell(r, s) == Say(s, "ack", r.acked, r.acked)

Acknowledge(r) ==
    LET end == End(r)
        Is(s) == s \in Counts(r)
        to == SelectSeq(<<1, 2>>, Is)
        after == [r EXCEPT !.acked = end, !.due = FALSE]
    IN [rcv |-> after, says |-> IF end = r.acked THEN <<>> ELSE [k \in DOMAIN to |-> Tell(after, to[k])]]

PassLosses(r) ==  \* in arrival order: numbers were consumed before one below them was lost
    IF Order # "arrival" \/ Leaps \/ End(r) = r.acked THEN Stay(r)
    ELSE IF Acks = "immediate" THEN Acknowledge(r)
    ELSE Stay([r EXCEPT !.due = TRUE])

(* The start: where the stores say, by consensus. *)

Majority(S, r) ==  \* what a quorum of these stores knows to be acknowledged, or more
    MaxOf({r.said[s] : s \in {s \in S : Cardinality({t \in S : r.said[t] >= r.said[s]}) >= Quorum(Cardinality(S))}})

Known(r) ==
    LET knowing == {s \in Counts(r) : r.said[s] > 0}
        said == {r.said[s] : s \in knowing}
    IN IF knowing = {} THEN 0
       ELSE CASE Mutant = "newest"      -> Messages
              [] Mutant = "cautious"    -> MinOf(said)
              [] Consensus = "lowest"   -> MinOf(said)
              [] Consensus = "highest"  -> MaxOf(said)
              [] Consensus = "majority" -> IF Groups = 1 THEN Majority(knowing, r)
                                           ELSE MaxOf({Majority({s}, r) : s \in knowing})

Begin(r) ==
    LET known == Known(r)
        low == IF Maximum = 0 THEN known + 1 ELSE MaxOf({known + 1, Messages - Maximum})
    IN [r EXCEPT !.state = "ACTIVE", !.over = FALSE, !.said = <<0, 0>>, !.low = low, !.acked = low - 1,
                 !.best = MaxOf({r.said[s] : s \in Counts(r)}), !.wanted = low..Messages]

Review(r) ==
    IF r.state = "REGISTERING" /\ Enough(Counts(r)) /\ (Counts(r) = Stores \/ r.over) THEN Begin(r) ELSE r

-------------------------------------------------------------------------------
(* The world. *)

RECURSIVE PutAll(_, _, _)
PutAll(queues, says, up) ==  \* what finds no room, or no store, is lost
    IF says = <<>> THEN queues
    ELSE LET m == Head(says)
             fits == m.to \in up /\ Len(queues[m.to]) < Room
             sent == [kind |-> m.kind, first |-> m.first, last |-> m.last]
         IN PutAll(IF fits THEN [queues EXCEPT ![m.to] = Append(@, sent)] ELSE queues, Tail(says), up)

Up == {s \in Stores : store[s].up}

(* With nothing to ask for it is nobody's turn, and who does not count has said nothing. *)
Tidy(r) ==
    [r EXCEPT !.turn = IF r.wanted = {} /\ r.asked = <<>> THEN 0 ELSE @,
              !.said = [s \in Stores |-> IF s \in Counts(r) THEN @[s] ELSE 0]]

Step(step, there, up) ==
    /\ rcv' = Tidy(step.rcv)
    /\ toStore' = PutAll(there, step.says, up)
    /\ lost' = lost \cup Skipped(step.rcv)

Init ==
    /\ rcv = Idle
    /\ store = [s \in Stores |-> [up |-> TRUE, ack |-> 0, disk |-> 0]]
    /\ toStore = [s \in Stores |-> <<>>]
    /\ toRcv = [s \in Stores |-> <<>>]
    /\ read = {}
    /\ lost = {}

Start ==
    /\ rcv.state = "DOWN"
    /\ rcv' = [Idle EXCEPT !.state = "REGISTERING", !.reg = <<"REGISTERING", "REGISTERING">>]
    /\ UNCHANGED <<store, toStore, toRcv, read, lost>>

Register(s) ==  \* the request reaches the store, which syncs before it answers, and the answer arrives
    /\ rcv.state # "DOWN"
    /\ rcv.reg[s] # "REGISTERED"
    /\ store[s].up
    /\ store' = [store EXCEPT ![s].disk = store[s].ack]
    /\ LET r == [rcv EXCEPT !.reg[s] = "REGISTERED", !.said[s] = IF rcv.state = "ACTIVE" THEN 0 ELSE store[s].ack]
           again == rcv.state = "ACTIVE" /\ rcv.acked >= rcv.low
       IN Step(Then([rcv |-> Review(r), says |-> IF again THEN <<Tell(r, s)>> ELSE <<>>], Ask), toStore, Up)
    /\ UNCHANGED <<toRcv, read>>

ToStore(s) ==
    /\ toStore[s] # <<>>
    /\ LET m == Head(toStore[s])
           mine(n) == n \in Has(s)
           answers == SelectSeq([k \in 1..(1 + m.last - m.first) |-> m.first + k - 1], mine)
           fitting == SubSeq(answers, 1, MinOf({Len(answers), Room - Len(toRcv[s])}))
       IN IF m.kind = "ack"
          THEN /\ store' = [store EXCEPT ![s].ack = IF Mutant = "last_ack" THEN m.first ELSE MaxOf({@, m.first})]
               /\ UNCHANGED toRcv
          ELSE /\ toRcv' = [toRcv EXCEPT ![s] = @ \o fitting]
               /\ UNCHANGED store
    /\ toStore' = [toStore EXCEPT ![s] = Tail(@)]
    /\ UNCHANGED <<rcv, read, lost>>

ToReceiver(s) ==
    /\ toRcv[s] # <<>>
    /\ toRcv' = [toRcv EXCEPT ![s] = Tail(@)]
    /\ LET n == Head(toRcv[s])
           r == Take(rcv, n)
           again == Acks = "batched" /\ n \in rcv.done  \* a duplicate of what is consumed
       IN Step(Ask([r EXCEPT !.wanted = @ \ {n}, !.asked = Without(@, n), !.due = @ \/ again]), toStore, Up)
    /\ UNCHANGED <<store, read>>

Consume(n) ==
    /\ n \in Delivered(rcv) \ rcv.done
    /\ read' = read \cup {n}
    /\ LET r == [rcv EXCEPT !.done = @ \cup {n}]
       IN Step(IF Acks = "immediate" \/ Leaps THEN Acknowledge(r) ELSE Stay([r EXCEPT !.due = TRUE]), toStore, Up)
    /\ UNCHANGED <<store, toRcv>>

Tick ==
    /\ \/ rcv.asked # <<>> \/ rcv.due
       \/ rcv.state = "REGISTERING" /\ ~rcv.over
       \/ \E s \in Stores : rcv.reg[s] = "RENEWING"
    /\ "slow" \in Faults \/ \A s \in Stores : toStore[s] = <<>> /\ toRcv[s] = <<>>
    /\ LET r == [rcv EXCEPT !.reg = [s \in Stores |-> IF @[s] = "RENEWING" THEN "UNRESPONSIVE" ELSE @[s]],
                            !.over = rcv.state = "REGISTERING"]
           Older(q) == [q EXCEPT !.age = IF MayGiveUp(r) THEN @ + 1 ELSE 0]
           old == [k \in DOMAIN r.asked |-> Older(r.asked[k])]
           Young(q) == q.age < GiveUp
           RECURSIVE GiveUpAll(_, _)
           GiveUpAll(d, k) == IF k > Len(old) THEN d
                              ELSE GiveUpAll(IF Young(old[k]) THEN d ELSE LoseAll(d, old[k].first, old[k].last), k + 1)
           again == IF Mutant = "no_retry" THEN <<>> ELSE SelectSeq(old, Young)
           Request(d) == AskAgain(Review(GiveUpAll([d EXCEPT !.asked = <<>>], 1)), again)
       IN Step(Then(Then(IF r.due THEN Acknowledge(r) ELSE Stay(r), Request), PassLosses), toStore, Up)
    /\ UNCHANGED <<store, toRcv, read>>

Acknowledgements(queue) ==
    LET Is(m) == m.kind = "ack" IN SelectSeq(queue, Is)

Over(there) ==  \* what the receiver has said is under way; nobody waits for answers
    /\ rcv' = Idle
    /\ toStore' = [s \in Stores |-> Acknowledgements(there[s])]
    /\ toRcv' = [s \in Stores |-> <<>>]
    /\ UNCHANGED <<store, read, lost>>

Die ==
    /\ "die" \in Faults
    /\ rcv.state # "DOWN"
    /\ Over(toStore)

Close ==  \* the application ends the session: what it consumed is acknowledged now
    /\ "close" \in Faults
    /\ rcv.state = "ACTIVE"
    /\ Over(PutAll(toStore, Acknowledge(rcv).says, Up))

Lost(s) ==
    /\ "lose" \in Faults
    /\ toStore[s] # <<>>
    /\ toStore' = [toStore EXCEPT ![s] = Tail(@)]
    /\ UNCHANGED <<rcv, store, toRcv, read, lost>>

Missed(s) ==
    /\ "miss" \in Faults
    /\ toRcv[s] # <<>>
    /\ toRcv' = [toRcv EXCEPT ![s] = Tail(@)]
    /\ UNCHANGED <<rcv, store, toStore, read, lost>>

Sync(s) ==
    /\ store[s].up
    /\ store[s].disk # store[s].ack
    /\ store' = [store EXCEPT ![s].disk = store[s].ack]
    /\ UNCHANGED <<rcv, toStore, toRcv, read, lost>>

Crash(s) ==  \* connections break with all that is in them, and the receiver hears of it
    /\ "crash" \in Faults
    /\ store[s].up
    /\ store' = [store EXCEPT ![s] = [up |-> FALSE, ack |-> 0, disk |-> @.disk]]
    /\ toRcv' = [toRcv EXCEPT ![s] = <<>>]
    /\ LET r == [rcv EXCEPT !.reg[s] = IF @ = "REGISTERED" THEN "RENEWING" ELSE @]
       IN Step(Ask(r), [toStore EXCEPT ![s] = <<>>], Up \ {s})
    /\ UNCHANGED read

Restart(s) ==
    /\ "restart" \in Faults
    /\ ~store[s].up
    /\ store' = [store EXCEPT ![s].up = TRUE, ![s].ack = store[s].disk]
    /\ UNCHANGED <<rcv, toStore, toRcv, read, lost>>

Next ==
    \/ Start \/ Tick \/ Die \/ Close
    \/ \E n \in Numbers : Consume(n)
    \/ \E s \in Stores : \/ Register(s) \/ ToStore(s) \/ ToReceiver(s) \/ Lost(s) \/ Missed(s)
                         \/ Sync(s) \/ Crash(s) \/ Restart(s)

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ WF_vars(Tick)
    /\ \A n \in Numbers : WF_vars(Consume(n))
    /\ \A s \in Stores : WF_vars(Register(s)) /\ WF_vars(ToStore(s)) /\ WF_vars(ToReceiver(s)) /\ WF_vars(Sync(s))
                         /\ WF_vars(Restart(s))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
Active == rcv.state = "ACTIVE"

InOrder ==  \* D1: in a session every number is told once, and with ordered delivery in its turn
    \A k \in DOMAIN rcv.told :
        IF Order = "ordered" THEN Abs(rcv.told[k]) = rcv.low + k - 1
        ELSE \A j \in DOMAIN rcv.told : Abs(rcv.told[j]) = Abs(rcv.told[k]) => j = k

NoGap ==  \* D1: what a session begins behind was read before, or the application was told that it is lost
    Active => 1..(rcv.low - 1) \subseteq read \cup lost

NothingUnread ==  \* A1: what a store takes for acknowledged was read, or the application was told that it is lost
    \A s \in Stores : 1..store[s].ack \subseteq read \cup lost

NoRepeat ==  \* A2: what one of the stores that answered knows to be acknowledged is not delivered again
    Active => rcv.low > rcv.best

Sought ==  \* D2: nothing is lost that a store holds, if nothing under way is and GiveUp leaves time to ask every store
    \A n \in lost : \A s \in Stores : n \notin Has(s)

Served ==  \* L1: who returns gets everything, or hears that it is lost, or dies
    rcv.state = "REGISTERING" ~> rcv.state = "DOWN" \/ (Active /\ ~Behind(rcv))
=============================================================================
