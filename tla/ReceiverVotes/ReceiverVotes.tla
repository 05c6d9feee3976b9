---------------------------- MODULE ReceiverVotes -----------------------------
(* A receiver that returns to three stores, of which one may have lost its disk and another may lack messages.        *)
(*                                                                                                                    *)
(* In the code: the receiver is `core/receiver/endpoint.py` with `store_registrations.py`, `arrival.py` and           *)
(* `core/registration/ballot.py`; a store is `core/store/endpoint.py` with `grants.py` and `refill.py`. In the formal *)
(* design: 7.11, for receivers.                                                                                       *)
(*                                                                                                                    *)
(* The first life of the source has sent the numbers below Old and is over. The stores in Away missed all of it. The  *)
(* receiver has consumed the numbers below Acked, and the stores in Knows heard so. The application remembers nothing *)
(* when it dies. It consumes in order, and at once. A tick is the interval of everything: of retries, of registration *)
(* requests, of questions to stores without a vote.                                                                   *)
(*                                                                                                                    *)
(* Bounds that could hide an error: a registration is one step; a request and its answer are one step; a refill is    *)
(* one step; disks are synced after every step; a store that returns meets the source at once; nothing is sent while  *)
(* the receiver is there.                                                                                             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,   \* numbers that the source uses
    Old,        \* how many of them its first life sent
    Acked,      \* how many of these the receiver has consumed and acknowledged
    Knows,      \* the stores that know the receiver
    Away,       \* the stores that missed what the first life sent, and are down
    Votes,      \* who follows the rules of votes: "stores", "receiver"; as documented nobody does
    GiveUp,     \* ticks that a receiver waits for a vote, or asks for a message
    Stops,      \* how often a store may stop
    Wipes,      \* how often a disk may be replaced
    Returns,    \* how often the receiver may return
    Mutant      \* "none", or which rule is broken

VARIABLES
    source,  \* its current life, and the next number
    store,   \* of each: is it up, did it lose a disk, has the second life announced itself there; what it holds, and
             \* the first number that it knows to offer; whether it knows the receiver ("none", "new": without an
             \* acknowledgement, "old"), and the newest number that it takes for acknowledged
    rcv,     \* the receiver: see Idle
    read,    \* what the application has consumed, ever
    lost,    \* what it was told is lost, ever
    left     \* how often a store may still stop, a disk be replaced, and the receiver return

vars == <<source, store, rcv, read, lost, left>>

Ids == 1..3
Numbers == 0..(Messages - 1)
Below(n) == {m \in Numbers : m < n}
Marked == "stores" \in Votes
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
Enough(S) == Cardinality(S) >= 2

(* What a store offers: does it know an acknowledgement, its first number, the first number that it should have if    *)
(* all that it has is above (-1: it is not so), and whether it has a vote.                                            *)
NoGrant == [old |-> FALSE, low |-> -1, lacks |-> -1, vote |-> FALSE]

(* A receiver before its session: `reg` is the chart of each registration, `grants` what counting stores offered,     *)
(* `over` whether the first interval is, `wait` the ticks that it still waits for votes, `hasty` whether it waited    *)
(* enough. Of the session: can no later grant lower its start (`certain`), its start, the next number, what is held   *)
(* and what is lost ahead of that, what was acknowledged, and the age of each request (-1: not asked for).            *)
Idle ==
    [state |-> "DOWN", reg |-> [s \in Ids |-> "IDLE"], grants |-> [s \in Ids |-> NoGrant], over |-> FALSE,
     wait |-> 0, hasty |-> FALSE, certain |-> FALSE, start |-> 0, next |-> 0, held |-> {}, gone |-> {}, acked |-> -1,
     asked |-> [n \in Numbers |-> -1]]

Active == rcv.state = "ACTIVE"
Counts(r) == {s \in Ids : r.reg[s] \in {"REGISTERED", "RENEWING"}}
Registered(r) == {s \in Ids : r.reg[s] = "REGISTERED"}

-------------------------------------------------------------------------------
(* A session: the receiver, and what its application consumed and was told of. *)

Session(r) == [rcv |-> r, read |-> read, lost |-> lost]

RECURSIVE Drain(_)
Drain(d) ==
    LET n == d.rcv.next
    IN IF n \in d.rcv.held
       THEN Drain([d EXCEPT !.rcv.next = n + 1, !.rcv.held = @ \ {n}, !.rcv.acked = n, !.read = @ \cup {n}])
       ELSE IF n \in d.rcv.gone
       THEN Drain([d EXCEPT !.rcv.next = n + 1, !.rcv.gone = @ \ {n}, !.lost = @ \cup {n}])
       ELSE d

Lose(d, numbers) == Drain([d EXCEPT !.rcv.gone = @ \cup numbers])

Missing(r) == (r.next..(source.next - 1)) \ (r.held \cup r.gone)

Ask(d) ==  \* all that is missing is asked for, if anybody can be
    LET r == d.rcv
        Age(n) == IF r.state # "ACTIVE" \/ n \notin Missing(r) \/ Registered(r) = {} THEN -1
                  ELSE IF r.asked[n] = -1 THEN 0 ELSE r.asked[n]
    IN [d EXCEPT !.rcv.asked = [n \in Numbers |-> Age(n)]]

(* Votes and the start. *)

EveryoneVotes(r) ==
    \/ "receiver" \notin Votes
    \/ r.hasty
    \/ \E s \in Counts(r) : r.grants[s].old

Voters(r, everyone) ==
    LET found == {s \in Counts(r) : r.grants[s].vote}
    IN IF everyone \/ (~Enough(found) /\ Counts(r) = Ids) THEN Counts(r) ELSE found

Opened(r) ==
    LET olds == {s \in Counts(r) : r.grants[s].old}
        voters == Voters(r, EveryoneVotes(r))
        basis == IF olds # {} THEN olds ELSE IF voters # {} THEN voters ELSE Counts(r)
        lows == {r.grants[s].low : s \in basis}
        low == IF olds # {} THEN MaxOf(lows) ELSE MinOf(lows)
        lacks == {r.grants[s].lacks : s \in basis}
        all == olds = {} /\ "receiver" \in Votes /\ -1 \notin lacks /\ Mutant # "passed_over"
        start == IF all THEN MinOf(lacks \cup {low}) ELSE low
        begun == [r EXCEPT !.state = "ACTIVE", !.start = start, !.next = start, !.acked = start - 1,
                           !.certain = olds # {} \/ "receiver" \notin Votes, !.over = FALSE, !.wait = 0,
                           !.hasty = FALSE]
    IN Lose(Session(begun), IF all THEN Below(low) \ Below(start) ELSE {})

Review(r) ==
    IF r.state # "REGISTERING" THEN Session(r)
    ELSE IF Enough(Voters(r, EveryoneVotes(r))) /\ (Counts(r) = Ids \/ r.over) THEN Opened(r)
    ELSE IF r.wait = 0 /\ r.over /\ Enough(Counts(r)) THEN Session([r EXCEPT !.wait = GiveUp])
    ELSE Session(r)

Revise(r, grant) ==  \* a store that knows the receiver grants late
    LET late == ~r.certain /\ grant.old /\ Mutant # "late_ignored"
        sure == [r EXCEPT !.certain = grant.low > r.acked + 1 \/ grant.low < r.start]
        fresh == r.next = r.start /\ r.start > r.acked
        back == [sure EXCEPT !.start = grant.low, !.next = grant.low, !.acked = grant.low - 1]
    IN IF ~late THEN Session(r)
       ELSE IF grant.low >= r.start THEN Session(sure)
       ELSE IF fresh THEN Drain(Session(back))
       ELSE IF Mutant = "late_silent" THEN Session(sure)
       ELSE [Session(sure) EXCEPT !.lost = @ \cup (Below(r.start) \ Below(grant.low))]

(* Who does not count offers nothing, and after the start nobody's offer matters. *)
Tidy(r) ==
    LET offers == IF r.state = "REGISTERING" THEN Counts(r) ELSE {}
    IN [r EXCEPT !.grants = [s \in Ids |-> IF s \in offers THEN @[s] ELSE NoGrant]]

Step(d) ==
    LET after == Ask(d)
    IN rcv' = Tidy(after.rcv) /\ read' = after.read /\ lost' = after.lost

-------------------------------------------------------------------------------
(* Stores. *)

(* Who holds nothing when a life begins offers what that life sends. A store that restarts forgets that it lacks what *)
(* is below: a receiver begins at 0 there, and asks for it.                                                           *)
Met(one) ==
    [one EXCEPT !.met = TRUE, !.first = IF ~one.met /\ one.holds = {} THEN Old ELSE @]

Lacking(s) == Below(source.next) \ store[s].holds

Admitted(s) ==  \* a store that meets a receiver; a new one begins with all that should be there
    IF store[s].client # "none" THEN store[s]
    ELSE [store[s] EXCEPT !.client = "new", !.ack = IF Marked THEN -1 ELSE store[s].first - 1]

Grant(s) ==
    LET one == Admitted(s)
        above == Marked /\ one.client = "new" /\ one.ack + 1 < store[s].first
        unsure == Marked /\ one.client = "new" /\ (above \/ one.forgot) /\ Mutant # "lacking_votes"
    IN [old |-> one.client = "old", low |-> IF above THEN store[s].first ELSE one.ack + 1,
        lacks |-> IF above THEN one.ack + 1 ELSE -1, vote |-> ~unsure]

Acknowledged(one, number) ==
    IF ~one.up \/ one.client = "none" THEN one
    ELSE [one EXCEPT !.client = "old", !.ack = IF one.client = "old" THEN MaxOf({@, number}) ELSE number]

Acknowledge(r, before) ==  \* what was consumed, to all that count
    [s \in Ids |-> IF s \in Counts(r) /\ r.acked > before THEN Acknowledged(store[s], r.acked) ELSE store[s]]

-------------------------------------------------------------------------------
Init ==
    /\ source = [life |-> 1, next |-> Old]
    /\ store = [s \in Ids |->
                  [up |-> s \notin Away, forgot |-> FALSE, met |-> FALSE,
                   holds |-> IF s \in Away THEN {} ELSE Below(Old), first |-> 0,
                   client |-> IF s \in Knows THEN "old" ELSE "none", ack |-> IF s \in Knows THEN Acked - 1 ELSE -1]]
    /\ rcv = Idle
    /\ read = Below(Acked)
    /\ lost = {}
    /\ left = [stops |-> Stops, wipes |-> Wipes, returns |-> Returns]

Begin ==  \* the second life of the source finds what the first one sent
    /\ source.life = 1
    /\ \E s \in Ids : store[s].up /\ Below(Old) \subseteq store[s].holds
    /\ source' = [source EXCEPT !.life = 2]
    /\ store' = [s \in Ids |-> IF store[s].up THEN Met(store[s]) ELSE store[s]]
    /\ UNCHANGED <<rcv, read, lost, left>>

Send ==
    /\ source.life = 2 /\ source.next < Messages
    /\ rcv.state = "DOWN"
    /\ source' = [source EXCEPT !.next = @ + 1]
    /\ store' = [s \in Ids |-> IF store[s].up THEN [store[s] EXCEPT !.holds = @ \cup {source.next}] ELSE store[s]]
    /\ UNCHANGED <<rcv, read, lost, left>>

Refill(s) ==  \* everything that is lacking and that another store has
    LET found == Lacking(s) \cap UNION {store[t].holds : t \in {t \in Ids \ {s} : store[t].up}}
    IN /\ source.life = 2 /\ store[s].up /\ found # {}
       /\ store' = [store EXCEPT ![s].holds = @ \cup found, ![s].first = MinOf({@} \cup found)]
       /\ UNCHANGED <<source, rcv, read, lost, left>>

Stop(s) ==  \* the receiver notices
    /\ left.stops > 0 /\ store[s].up
    /\ store' = [store EXCEPT ![s].up = FALSE, ![s].first = 0]
    /\ left' = [left EXCEPT !.stops = @ - 1]
    /\ Step(Session([rcv EXCEPT !.reg[s] = IF @ = "REGISTERED" THEN "RENEWING" ELSE @]))
    /\ UNCHANGED source

Restart(s) ==
    /\ ~store[s].up
    /\ store' = [store EXCEPT ![s] = [(IF source.life = 2 THEN Met(@) ELSE @) EXCEPT !.up = TRUE]]
    /\ UNCHANGED <<source, rcv, read, lost, left>>

Replace(s) ==  \* an operator replaces the disk of a store that is down
    /\ left.wipes > 0 /\ ~store[s].up /\ ~store[s].forgot
    /\ store' = [store EXCEPT ![s] = [up |-> FALSE, forgot |-> TRUE, met |-> FALSE, holds |-> {}, first |-> 0,
                                           client |-> "none", ack |-> -1]]
    /\ left' = [left EXCEPT !.wipes = @ - 1]
    /\ UNCHANGED <<source, rcv, read, lost>>

Return ==
    /\ source.life = 2 /\ left.returns > 0 /\ rcv.state = "DOWN"
    /\ rcv' = [Idle EXCEPT !.state = "REGISTERING", !.reg = [s \in Ids |-> "REGISTERING"]]
    /\ left' = [left EXCEPT !.returns = @ - 1]
    /\ UNCHANGED <<source, store, read, lost>>

Register(s) ==  \* the request, the sync, the grant, and the acknowledgement that the store may lack
    /\ rcv.state # "DOWN" /\ rcv.reg[s] # "REGISTERED"
    /\ store[s].up
    /\ LET r == [rcv EXCEPT !.reg[s] = "REGISTERED", !.grants[s] = Grant(s)]
           d == IF Active THEN Revise(r, Grant(s)) ELSE Review(r)
           again == Active /\ d.rcv.acked >= d.rcv.start
       IN /\ store' = [store EXCEPT ![s] = IF again THEN Acknowledged(Admitted(s), d.rcv.acked) ELSE Admitted(s)]
          /\ Step(d)
    /\ UNCHANGED <<source, left>>

Fetchable(r) == {n \in Numbers : r.asked[n] >= 0 /\ \E s \in Registered(r) : n \in store[s].holds}

Fetch ==  \* the first missing message that a registered store has
    /\ Active /\ Fetchable(rcv) # {}
    /\ LET n == MinOf(Fetchable(rcv))
           d == Drain(Session([rcv EXCEPT !.held = @ \cup {n}]))
       IN /\ store' = Acknowledge(d.rcv, rcv.acked)
          /\ Step(d)
    /\ UNCHANGED <<source, left>>

Waits ==
    \/ rcv.state = "REGISTERING" /\ (~rcv.over \/ rcv.wait > 0)
    \/ \E s \in Ids : rcv.reg[s] = "RENEWING"
    \/ \E n \in Numbers : rcv.asked[n] >= 0

Tick ==  \* there was time to ask every registered store
    /\ Waits /\ Fetchable(rcv) = {}
    /\ LET silent == [rcv EXCEPT !.reg = [s \in Ids |-> IF @[s] = "RENEWING" THEN "UNRESPONSIVE" ELSE @[s]],
                                 !.over = rcv.state = "REGISTERING"]
           unsure == Counts(silent) \ Voters(silent, EveryoneVotes(rcv))
           Asked(s) == IF s \in unsure /\ silent.reg[s] = "REGISTERED" THEN "RENEWING" ELSE silent.reg[s]
           waited == IF rcv.wait = 0 THEN silent
                     ELSE IF rcv.wait = 1 THEN [silent EXCEPT !.wait = 0, !.hasty = TRUE]
                     ELSE [silent EXCEPT !.wait = @ - 1, !.reg = [s \in Ids |-> Asked(s)]]
           Older(n) == IF rcv.asked[n] < 0 THEN -1 ELSE IF Enough(Counts(silent)) THEN rcv.asked[n] + 1 ELSE 0
           older == [waited EXCEPT !.asked = [n \in Numbers |-> Older(n)]]
           d == Lose(Session(older), {n \in Numbers : older.asked[n] >= GiveUp})
       IN IF Active THEN Step(d) /\ store' = Acknowledge(d.rcv, rcv.acked)
          ELSE Step(Review(waited)) /\ UNCHANGED store
    /\ UNCHANGED <<source, left>>

Die ==
    /\ rcv.state # "DOWN"
    /\ rcv' = Idle
    /\ UNCHANGED <<source, store, read, lost, left>>

Next ==
    \/ Begin \/ Send \/ Return \/ Fetch \/ Tick \/ Die
    \/ \E s \in Ids : Refill(s) \/ Stop(s) \/ Restart(s) \/ Replace(s) \/ Register(s)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
Settled == read \cup lost

NoGap ==  \* D1: what a session begins behind was read before, or the application was told that it is lost
    Active => Below(rcv.start) \subseteq Settled

Told ==  \* D1: so was what a store that knows the receiver takes for unread, once it has granted
    Active => \A s \in Registered(rcv) :
        store[s].client = "old" => (store[s].ack + 1)..(rcv.start - 1) \subseteq Settled

(* A store without marks takes for acknowledged what it never offered, if it does not know the receiver of old.       *)
NothingUnread ==  \* A1: what a store takes for acknowledged was read, or the application was told that it is lost
    \A s \in Ids : Marked \/ (s \in Knows /\ ~store[s].forgot) => Below(store[s].ack + 1) \subseteq Settled

Patient ==  \* D2: what may be at a store that does not answer is lost only after as many ticks as for any message
    [][\A n \in lost' \ lost :
        IF Active THEN rcv.asked[n] = GiveUp - 1 \/ n < rcv.start  \* a late grant showed it to be missing
        ELSE rcv.wait = 1 \/ rcv.hasty \/ Counts(rcv') = Ids]_vars
=============================================================================
