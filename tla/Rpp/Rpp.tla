-------------------------------- MODULE Rpp --------------------------------
(* Receiver-paced persistence (RPP): one source, one store with little room, and the receivers that set the pace.     *)
(*                                                                                                                    *)
(* In the code: the source is a whole `core/source/endpoint.py`, the store a whole `core/store/endpoint.py` with      *)
(* `repository.py`, `receiver_pacing.py`, `message_window.py` and `gap_filling.py`. In the guide: receiver-paced      *)
(* persistence, flight size, delivery.                                                                                *)
(*                                                                                                                    *)
(* A message has a number and one byte. The stream (data, SRI, what is sent again) keeps its order; what store and    *)
(* source ask each other is answered within a step; acknowledgements of stability are under way until they are heard. *)
(* The store writes to its disk; what is not synced is lost in a crash.                                               *)
(*                                                                                                                    *)
(* Bounds that could hide an error: one store; a sync makes everything durable, a crash loses all that is not; the    *)
(* store crashes once, and not while a registration is under way; a receiver acknowledges when the store can hear it. *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Receivers,  \* how many
    Patient,    \* those of them that do not block (ume_receiver_paced_persistence 2)
    Messages,   \* numbers that the source uses
    Capacity,   \* messages that the store has room for (repository-disk-file-size-limit)
    Flight,     \* messages that the source has under way at most (ume_flight_size_bytes)
    Delay,      \* whether the store delays its writes (repository-disk-write-delay)
    Lives,      \* how often the source may be started
    Faults,     \* what may happen: "leave" (a receiver deregisters), "expire" (its state lifetime ends), "die" (the
                \* source ends), "crash" (the store does)
    Repaired,   \* whether the repaired rules are in force (formal design, 7.8), or the documented ones
    Mutant      \* "none", or which rule is broken

VARIABLES
    source,    \* may it send; its life, the first number of that and the next one; what is not settled yet ("open")
    queue,     \* what is under way to the store
    acks,      \* numbers of which the source is about to hear that they are stable, and does not know yet
    store,     \* see `Down`
    written,   \* the store's journal as it will be once synced
    disk,      \* and as it would be found after a crash
    receiver,  \* of each: is it registered, does it block, the newest number that it has consumed, and the first one
               \* that was sent when it registered
    crashed,   \* whether the store did
    stable     \* numbers that a source has called stable

vars == <<source, queue, acks, store, written, disk, receiver, crashed, stable>>

Ids == 1..Receivers
None == -1
Unknown == -2  \* the store does not know this receiver

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Least(set) == CHOOSE n \in set : \A m \in set : n <= m
Greatest(set) == CHOOSE n \in set : \A m \in set : m <= n
From(set, n) == {m \in set : m >= n}

-------------------------------------------------------------------------------
(* What happens in the store. A step carries the store, its journal and the acknowledgements that it sends.           *)

Down ==
    [up |-> FALSE,
     life |-> 0,         \* of the source that is registered
     low |-> None,       \* the first number of that life, once the SRI has told it
     trail |-> 0,        \* the oldest number that may be kept
     held |-> {},        \* numbers kept
     synced |-> {},      \* of them those on disk
     delayed |-> {},     \* of them those not given to the disk yet
     waiting |-> {},     \* numbers of which the disk was told and has not reported back
     owed |-> {},        \* of them those let go unwritten: acknowledged when the disk knows
     acked |-> 0,        \* the next number to acknowledge
     high |-> None,      \* the newest number that is known to exist
     lost |-> {},        \* numbers given up
     wanted |-> {},      \* numbers asked of the source
     asked |-> FALSE,    \* whether the source was asked what it still has
     paused |-> FALSE,   \* whether there is no room for more
     granting |-> FALSE, \* whether a grant to the source waits for the disk
     rec |-> [i \in Ids |-> Unknown]]  \* the newest number that each receiver acknowledged

Empty == [life |-> 1, low |-> 0, freed |-> 0, trail |-> 0, messages |-> {}, rec |-> [i \in Ids |-> Unknown]]

Begin == [s |-> store, w |-> written, acks |-> {}]

Lead(s) == IF s.held = {} THEN s.trail - 1 ELSE Greatest(s.held)

Needs(s, who) == {s.rec[i] + 1 : i \in {j \in who : s.rec[j] # Unknown}}

Floor(s, stop) ==  \* below this all have consumed what comes before `stop`
    IF Mutant = "fastest" THEN Min(stop, Greatest(Needs(s, Ids) \cup {0}))
    ELSE Least(Needs(s, Ids) \cup {stop})

Required(s, stop) ==  \* below this those have who block
    Least(Needs(s, IF Mutant = "nobody_blocks" THEN {} ELSE Ids \ Patient) \cup {stop})

HasRoom(s) == Cardinality(s.held) + Flight <= Capacity

Missing(s) == (Max(s.low, s.trail)..s.high) \ (s.held \cup s.lost)

Acknowledged(x, from, to) ==  \* tell the source of what is stable there
    LET s == x.s
        Told(m) == IF m < s.trail THEN m \notin s.lost \cup s.owed ELSE m \in s.synced
        n == {m \in Max(from, s.low)..(Min(to, s.acked) - 1) : Told(m)}
    IN IF s.low = None THEN x ELSE [x EXCEPT !.acks = @ \cup n]

RECURSIVE Contiguous(_, _)
Contiguous(n, set) == IF n \in set THEN Contiguous(n + 1, set) ELSE n

Acknowledge(x) ==  \* tell it of what is newly stable, while there is room for a flight
    LET s == x.s
        known == IF Mutant = "before_sync" THEN s.held ELSE s.synced
        to == Contiguous(s.acked, known \cup s.lost)
        may == HasRoom(s) \/ Mutant = "whatever_room"
        told == [x EXCEPT !.s.acked = to, !.acks = IF Mutant = "before_sync" THEN @ \cup s.acked..(to - 1) ELSE @]
    IN IF s.low # None /\ to > s.acked /\ may THEN Acknowledged(told, s.acked, to) ELSE x

Learn(x, high) ==  \* numbers up to `high` exist
    LET s == [x.s EXCEPT !.high = Max(@, high)]
        asks == ~s.asked /\ ~s.paused /\ s.wanted = {} /\ Missing(s) # {}
    IN IF s.low = None THEN x ELSE [x EXCEPT !.s = [s EXCEPT !.asked = @ \/ asks]]

LetGo(x, n) ==  \* everything below n goes; what was withheld of it is stable now
    LET s == x.s
        gone == s.trail..(n - 1)
        unwritten == From(gone, s.acked) \ s.synced
        owed == IF Repaired /\ s.low # None /\ Mutant # "documented" THEN unwritten ELSE {}
        less == [x EXCEPT !.s = [s EXCEPT !.trail = n, !.held = From(@, n), !.synced = From(@, n),
                                          !.delayed = From(@, n), !.wanted = @ \ gone,
                                          !.waiting = @ \cup owed, !.owed = @ \cup owed,
                                          !.acked = IF s.low = None THEN 0 ELSE Max(@, n)],
                          !.w.trail = n, !.w.messages = From(@, n)]
        told == Acknowledged(less, Max(s.acked, s.trail), n)
        open == [told EXCEPT !.s.paused = IF Mutant = "stays_paused" THEN @ ELSE FALSE]
    IN IF ~Repaired THEN told
       ELSE IF Mutant = "not_looked_at" THEN Learn(open, n - 1) ELSE Acknowledge(Learn(open, n - 1))

Settle(x) ==  \* let go of what all have consumed; if there is still no room, of what only the patient need
    LET stop == Lead(x.s) + 1
        floor == Floor(x.s, stop)
        y == IF floor > x.s.trail THEN LetGo(x, floor) ELSE x
        s == y.s
        short == Flight - (Capacity - Cardinality(s.held))
        Enough(n) == Cardinality({m \in s.held : m < n}) >= Min(short, Cardinality(s.held))
        crowded == Least({n \in s.trail..(Lead(s) + 1) : Enough(n)})
        n == Min(crowded, Required(s, stop))
    IN IF ~HasRoom(s) /\ n > s.trail THEN LetGo(y, n) ELSE y

Refuse(x, n) ==  \* there is no room: it is asked for again when there is; as documented it is lost
    IF Repaired
    THEN Learn([x EXCEPT !.s.paused = TRUE, !.s.asked = FALSE, !.s.wanted = {}], n)
    ELSE Acknowledge([x EXCEPT !.s.lost = @ \cup {n}])

Store(x, n) ==
    [x EXCEPT !.s.held = @ \cup {n}, !.s.lost = @ \ {n},
              !.s.delayed = IF Delay THEN @ \cup {n} ELSE @,
              !.s.waiting = IF Delay THEN @ ELSE @ \cup {n},
              !.w.messages = IF Delay THEN @ ELSE @ \cup {n}]

Keep(x, n, again) ==
    LET got == [x EXCEPT !.s.wanted = @ \ {n}]
        kept == IF n \in x.s.held THEN Acknowledged(got, n, n + 1)
                ELSE IF Cardinality(x.s.held) < Capacity THEN Store(got, n) ELSE Refuse(got, n)
        seen == IF Mutant = "before_sync" THEN Acknowledge(kept) ELSE kept
    IN Settle(IF n > Lead(x.s) + 1 \/ again THEN Learn(seen, n - 1) ELSE seen)

OnData(x, m) ==
    LET s == x.s
        n == m.number
    IN CASE s.low = None \/ n < s.low \/ m.life # s.life -> x
         [] n < s.trail                                  -> Acknowledged(x, n, n + 1)
         [] n < Floor(s, n + 1)                          -> LetGo(x, n + 1)
         [] OTHER                                        -> Keep(x, n, m.again)

Noted(w, s) == [w EXCEPT !.life = s.life, !.low = s.low, !.freed = s.trail]  \* the source's record

OnInfo(x, m) ==
    LET s == x.s
        begun == [s EXCEPT !.low = m.low, !.acked = Max(m.low, s.trail), !.high = Max(Lead(s), m.low - 1)]
        learnt == Learn(Acknowledge([x EXCEPT !.s = begun]), m.high)
        Cut(i) == IF s.rec[i] >= m.low THEN m.low - 1 ELSE s.rec[i]
        Back(i) == IF s.rec[i] >= m.low THEN m.low - 1 ELSE x.w.rec[i]
        cut == Settle([learnt EXCEPT !.s.rec = [i \in Ids |-> Cut(i)], !.w.rec = [i \in Ids |-> Back(i)]])
    IN CASE m.life # s.life -> x
         [] s.low # None    -> Learn(x, m.high)
         [] OTHER           -> [cut EXCEPT !.w = Noted(@, cut.s)]

-------------------------------------------------------------------------------
(* The source, and the end of every step of the store: the source answers what it is asked, and acknowledgements are  *)
(* on their way.                                                                                                      *)

Sends(state) == state \in {"ACTIVE", "RENEWING"}

Retained(src) == IF src.open = {} THEN src.next ELSE Least(src.open)

Data(src, n, again) == [kind |-> "data", life |-> src.life, number |-> n, again |-> again]
Info(src) == [kind |-> "info", life |-> src.life, low |-> src.low, high |-> src.next - 1]

RECURSIVE Again(_, _)
Again(src, numbers) ==
    IF numbers = {} THEN <<>>
    ELSE <<Data(src, Least(numbers), TRUE)>> \o Again(src, numbers \ {Least(numbers)})

Answers(x, src) == x.s.asked /\ Sends(src.state) /\ src.life = x.s.life

Answered(x, src) ==  \* the source has told what it still has; the rest is lost
    IF ~Answers(x, src) THEN x
    ELSE LET s == x.s
             low == Retained(src)
         IN Acknowledge([x EXCEPT !.s.asked = FALSE, !.s.lost = @ \cup {n \in Missing(s) : n < low},
                                  !.s.wanted = From(Missing(s), low)])

Resent(x, src) == IF Answers(x, src) THEN Again(src, From(Missing(x.s), Retained(src))) ELSE <<>>

Heard(x, src) == IF Sends(src.state) /\ src.life = x.s.life THEN (acks \cup x.acks) \cap src.open ELSE {}

After(x, src, under_way) ==
    LET y == Answered(x, src)
    IN /\ store' = y.s
       /\ written' = y.w
       /\ acks' = Heard(y, src)
       /\ queue' = under_way \o Resent(x, src)
       /\ source' = src

Away(i) == [state |-> "OUT", blocks |-> i \notin Patient, consumed |-> None, since |-> None]

-------------------------------------------------------------------------------
Init ==
    /\ source = [state |-> "ACTIVE", life |-> 1, low |-> 0, next |-> 0, open |-> {}]
    /\ queue = <<>>
    /\ acks = {}
    /\ store = [Down EXCEPT !.up = TRUE, !.life = 1, !.low = 0]
    /\ written = Empty
    /\ disk = Empty
    /\ receiver = [i \in Ids |-> Away(i)]
    /\ crashed = FALSE
    /\ stable = {}

Send ==
    /\ Sends(source.state)
    /\ store.up
    /\ source.next < Messages
    /\ source.next - Retained(source) < Flight
    /\ source' = [source EXCEPT !.next = @ + 1, !.open = @ \cup {source.next}]
    /\ queue' = Append(queue, Data(source, source.next, FALSE))
    /\ UNCHANGED <<acks, store, written, disk, receiver, crashed, stable>>

ToStore ==
    /\ store.up
    /\ queue # <<>>
    /\ LET m == Head(queue)
       IN After(IF m.kind = "data" THEN OnData(Begin, m) ELSE OnInfo(Begin, m), source, Tail(queue))
    /\ UNCHANGED <<disk, receiver, crashed, stable>>

ToSource ==
    /\ acks # {}
    /\ source' = [source EXCEPT !.open = @ \ acks]
    /\ stable' = stable \cup acks
    /\ acks' = {}
    /\ UNCHANGED <<queue, store, written, disk, receiver, crashed>>

Write ==  \* the delay is over
    /\ store.up
    /\ store.delayed # {}
    /\ LET s == store
           x == [Begin EXCEPT !.s.delayed = {}, !.s.waiting = @ \cup s.delayed, !.w.messages = @ \cup s.delayed]
       IN After(Learn(x, s.high), source, queue)
    /\ UNCHANGED <<disk, receiver, crashed, stable>>

Granted(x, src) ==  \* a grant waited for the disk: the source resumes, or goes on
    IF ~x.s.granting \/ src.life # x.s.life THEN src
    ELSE CASE src.state = "ASKING"   -> [state |-> "ACTIVE", life |-> src.life, low |-> Lead(x.s) + 1,
                                         next |-> Lead(x.s) + 1, open |-> {}]
           [] src.state = "RENEWING" -> [src EXCEPT !.state = "ACTIVE"]
           [] OTHER                  -> src

Sync ==
    /\ store.up
    /\ written # disk \/ store.waiting # {} \/ store.granting \/ \E i \in Ids : receiver[i].state = "ASKING"
    /\ LET s == store
           x == [Begin EXCEPT !.s.synced = @ \cup (s.held \cap s.waiting), !.s.waiting = {}, !.s.owed = {}]
           fresh == IF s.low = None THEN {} ELSE From(s.waiting, s.low)
           due(n) == n < s.acked /\ IF n < s.trail THEN n \notin s.lost ELSE n \in x.s.synced
           back == [x EXCEPT !.acks = {n \in fresh : due(n)}]
           told == IF fresh = {} THEN x ELSE Acknowledge(back)
           again == Acknowledge(told)
           all == IF s.granting THEN Acknowledged(again, 0, again.s.acked) ELSE told
           src == Granted(all, source)
           resumed == source.state = "ASKING" /\ src.state = "ACTIVE"
           anew == [all EXCEPT !.s.granting = FALSE]
           says == IF src.state # source.state THEN <<Info(src)>> ELSE <<>>
           To(i) == LET r == receiver[i]
                        in == IF r.state = "ASKING" THEN [r EXCEPT !.state = "IN", !.consumed = s.rec[i]] ELSE r
                    IN IF resumed THEN [in EXCEPT !.consumed = Min(@, src.low - 1), !.since = Min(@, src.low)] ELSE in
       IN /\ After(anew, src, queue \o says)
          /\ receiver' = [i \in Ids |-> To(i)]
          /\ stable' = IF resumed THEN {n \in stable : n < src.low} ELSE stable
          /\ disk' = all.w
    /\ UNCHANGED crashed

Join(i) ==  \* a receiver registers: it begins where not all have consumed
    /\ receiver[i].state = "OUT"
    /\ store.up
    /\ store.low # None
    /\ LET known == store.rec[i] # Unknown
           rec == IF known THEN store.rec[i] ELSE IF Mutant = "from_the_start" THEN None ELSE store.trail - 1
           w == IF known THEN written ELSE Noted(written, store)
       IN After([Begin EXCEPT !.s.rec[i] = rec, !.w = [w EXCEPT !.rec[i] = rec]], source, queue)
    /\ receiver' = [receiver EXCEPT ![i] = [Away(i) EXCEPT !.state = "ASKING", !.since = source.next]]
    /\ UNCHANGED <<disk, crashed, stable>>

Gone(i) ==
    /\ After(Settle([Begin EXCEPT !.s.rec[i] = Unknown, !.w.rec[i] = Unknown]), source, queue)
    /\ receiver' = [receiver EXCEPT ![i] = Away(i)]
    /\ UNCHANGED <<disk, crashed, stable>>

Leave(i) ==
    /\ "leave" \in Faults
    /\ receiver[i].state = "IN"
    /\ store.up
    /\ Gone(i)

Expire(i) ==  \* silent for long: that it is, or was before the store crashed; nothing else is due then
    /\ "expire" \in Faults
    /\ receiver[i].state # "ASKING"
    /\ store.up
    /\ store.rec[i] # Unknown
    /\ store.delayed = {}
    /\ Gone(i)

Consume(i) ==
    /\ receiver[i].state = "IN"
    /\ receiver[i].consumed + 1 < source.next
    /\ receiver' = [receiver EXCEPT ![i].consumed = @ + 1]
    /\ UNCHANGED <<source, queue, acks, store, written, disk, crashed, stable>>

Ack(i) ==
    /\ receiver[i].state = "IN"
    /\ store.up
    /\ store.low # None
    /\ store.rec[i] < receiver[i].consumed
    /\ LET n == receiver[i].consumed
       IN After(Settle([Begin EXCEPT !.s.rec[i] = n, !.w.rec[i] = n]), source, queue)
    /\ UNCHANGED <<disk, receiver, crashed, stable>>

Die ==
    /\ "die" \in Faults
    /\ source.state # "DOWN"
    /\ source' = [source EXCEPT !.state = "DOWN"]
    /\ acks' = {}
    /\ UNCHANGED <<queue, store, written, disk, receiver, crashed, stable>>

Return ==  \* another life registers; nothing is taken of it before it says where it resumes
    /\ source.state = "DOWN"
    /\ source.life < Lives
    /\ store.up
    /\ LET life == source.life + 1
           s == [store EXCEPT !.life = life, !.low = None, !.acked = 0, !.high = None, !.lost = {}, !.wanted = {},
                              !.asked = FALSE, !.paused = FALSE, !.granting = TRUE, !.owed = {}]
       IN After([Begin EXCEPT !.s = s, !.w = Noted(written, s)],
                [source EXCEPT !.state = "ASKING", !.life = life], queue)
    /\ UNCHANGED <<disk, receiver, crashed, stable>>

Crash ==
    /\ "crash" \in Faults
    /\ ~crashed
    /\ source.state \notin {"ASKING", "RENEWING"}
    /\ store' = Down
    /\ written' = disk
    /\ queue' = <<>>
    /\ acks' = {}
    /\ receiver' = [i \in Ids |-> IF receiver[i].state = "ASKING" THEN Away(i) ELSE receiver[i]]
    /\ crashed' = TRUE
    /\ UNCHANGED <<source, disk, stable>>

Restart ==  \* what the disk kept is looked at, then a source that is there registers again
    /\ ~store.up
    /\ LET trail == Max(disk.trail, IF Repaired THEN disk.freed ELSE 0)
           held == From(disk.messages, trail)
           found == [Down EXCEPT !.up = TRUE, !.life = disk.life, !.low = disk.low, !.trail = trail, !.held = held,
                                 !.synced = held, !.rec = disk.rec]
           begun == IF found.low = None THEN found
                    ELSE [found EXCEPT !.acked = Max(found.low, trail), !.high = Max(Lead(found), found.low - 1)]
           settled == Settle([Begin EXCEPT !.s = begun])
           up == Learn(settled, settled.s.high)
           there == Answered(up, source)
           renewed == [there EXCEPT !.s.lost = {}, !.s.granting = TRUE, !.w = Noted(@, there.s)]
       IN IF source.state = "ACTIVE"
          THEN After(Learn(renewed, renewed.s.high), [source EXCEPT !.state = "RENEWING"], Resent(up, source))
          ELSE After(up, source, <<>>)
    /\ UNCHANGED <<disk, receiver, crashed, stable>>

Next ==
    \/ Send \/ ToStore \/ ToSource \/ Write \/ Sync
    \/ \E i \in Ids : Join(i) \/ Leave(i) \/ Expire(i) \/ Consume(i) \/ Ack(i)
    \/ Die \/ Return \/ Crash \/ Restart

Spec == Init /\ [][Next]_vars

Fairness ==  \* nobody has to join, to leave or to end
    /\ WF_vars(ToStore) /\ WF_vars(ToSource) /\ WF_vars(Write) /\ WF_vars(Sync) /\ WF_vars(Return) /\ WF_vars(Restart)
    /\ \A i \in Ids : WF_vars(Consume(i)) /\ WF_vars(Ack(i))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
(* What a receiver is owed: what is stable and was offered to it. A crash may take a store's knowledge of what it let go
   before it was on disk; then only what was sent since the receiver registered is sure.                              *)
Owed(i) ==
    IF receiver[i].state = "IN" /\ receiver[i].blocks
    THEN {n \in stable : n > receiver[i].consumed /\ (crashed => n >= receiver[i].since)}
    ELSE {}

PacedRetention ==  \* P2: what is stable stays at the store until every registered receiver that blocks has consumed it
    store.up => \A i \in Ids : Owed(i) \subseteq store.held

SyncedFirst ==  \* P1: and it is on disk
    \A i \in Ids : Owed(i) \subseteq disk.messages

Room ==  \* P3: what the flight allows finds room; only what a restart left may be in the way
    /\ Cardinality(store.held) <= Capacity
    /\ ~crashed /\ source.life = 1 => ~store.paused /\ store.lost = {}

Quiet ==
    /\ queue = <<>> /\ acks = {} /\ written = disk /\ store.waiting = {} /\ store.delayed = {}
    /\ source.state = "ACTIVE" /\ store.low # None

Settled ==  \* P4: no acknowledgement is withheld for ever: when nothing is under way and there is room, all is settled
    Quiet /\ HasRoom(store) => source.open = {}

NoReuse ==  \* S2: no stable number is used by another life
    [][stable \subseteq stable']_vars

Progress ==  \* P5: as long as receivers consume, what is sent is settled in the end, unless its source ends
    \A n \in 0..(Messages - 1) : n \in source.open ~> n \notin source.open \/ source.state = "DOWN"
=============================================================================
