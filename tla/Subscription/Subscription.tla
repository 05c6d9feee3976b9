----------------------------- MODULE Subscription ------------------------------
(* One receiver of a topic, and the lives of its source: which of them it follows, and what a session inherits.       *)
(*                                                                                                                    *)
(* In the code: the receiver is `core/subscription/subscription.py` with `precedence.py` and `consumption.py`. Each   *)
(* session is `core/receiver/endpoint.py` with `succession.py`. What the driver does of their effects is here. The    *)
(* stores are one quorum: they take messages of the newest life that began, answer its receivers only, and count      *)
(* what was consumed of what they hold.                                                                               *)
(*                                                                                                                    *)
(* A life may go on beside the next one: its process was cut off. It announces itself, sends nothing, and may come    *)
(* back if the next life is over and the stores hold nothing of it. A proxy is a life that sends nothing. A message   *)
(* that the stores lack when a life begins is dead: that life uses its number again.                                  *)
(*                                                                                                                    *)
(* Bounds that could hide an error: the stores hold one message of the first life; a registration is one step; one    *)
(* message at a time is not stored; a stream has no gap; all lives are of one source; a request asks for one message. *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,  \* numbers that the source uses
    Lives,     \* lives that begin, proxies included
    Proxies,   \* those that are proxies
    Gone,      \* numbers that the stores lose for good
    Crashes,   \* how often the receiver crashes
    Breaks,    \* how often a stream ends whose source lives
    Faults,    \* what may happen: "back" (a life comes back)
    Mutant     \* "none", or which rule is broken

VARIABLES
    src,     \* the current life, the newest term, and the newest message that is stored
    life,    \* of each life: is it up, its term (0: it has not begun), its first number, the newest one it sent, and
             \* the history that it announces
    at,      \* the next number on its stream; 0: the receiver has not joined it
    plan,    \* ticks until it is joined at the latest; 0: that is not planned
    bye,     \* ticks until it is left, because its end was reported; 0: it was not
    over,    \* its announcement, if it is passed over; term 0: it is not
    fol,     \* its session if it is followed, its newest announcement, the sessions that this one replaced, and its
             \* rival: the last of those that replaced it
    fin,     \* sessions that have ended and are not settled, in order
    ses,     \* all sessions of this run: see New
    inbox,   \* messages that wait: session, life and number
    hand,    \* whether the application has the first one in hand
    read,    \* messages (life and number) that it consumed in this run
    handed,  \* those that it was handed in this run
    lost,    \* those that it was told are lost in this run
    ever,    \* those that it consumed, or was told are lost, in any run
    acked,   \* how far the stores count the topic as consumed
    told,    \* what each life was told is consumed
    left     \* crashes and breaks that may still come

vars == <<src, life, at, plan, bye, over, fol, fin, ses, inbox, hand, read, handed, lost, ever, acked, told, left>>

Ids == 1..Lives
Numbers == 1..Messages
Sessions == 1..9  \* more than begin in a run
Drain == 2     \* ticks
Farewell == 3  \* ticks
Due == -1      \* no ticks are left
For_ever == Messages + 2

MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
NumbersOf(S) == {p[2] : p \in S}
LivesOf(S) == {p[1] : p \in S}

NoInfo == [term |-> 0, high |-> 0]
NoRival == [ses |-> 0, life |-> 0, term |-> 0]
NoFol == [ses |-> 0, term |-> 0, high |-> 0, replaced |-> {}, rival |-> NoRival]

(* A session: has its stream ended, who answers for its messages, its start, the next number, the first that is not   *)
(* history, the newest one known, what it asks for, what is held and what is known to be consumed ahead of `next`,    *)
(* what was acknowledged, what is consumed or lost above that, all that was lost, what was seen and what was          *)
(* consumed, by life. Of what it inherits: the messages, those consumed since, numbers that were delivered again,     *)
(* numbers that were lost before and of which lives, and such below its start.                                        *)
New(l) ==
    [life |-> l, state |-> "REGISTERING", ended |-> FALSE, heir |-> 0, start |-> 0, next |-> 0, origin |-> 0,
     high |-> 0, asked |-> 0, held |-> {}, known |-> {}, acked |-> -1, done |-> {}, skip |-> {}, miss |-> {},
     seen |-> {}, knows |-> {}, has |-> {}, used |-> {}, passed |-> {}, gone |-> {}, kin |-> {}, below |-> {}]
Blank == [New(0) EXCEPT !.state = "CLOSED"]

(* What a step of the receiver changes. *)
Now == [at |-> at, plan |-> plan, bye |-> bye, over |-> over, fol |-> fol, fin |-> fin, ses |-> ses, inbox |-> inbox,
        hand |-> hand, read |-> read, handed |-> handed, lost |-> lost, ever |-> ever, acked |-> acked, told |-> told]

-------------------------------------------------------------------------------
(* Histories. *)

Named(l) == {life[l].lives[i][1] : i \in DOMAIN life[l].lives}
FirstIn(l, x) ==
    LET S == {i \in DOMAIN life[l].lives : life[l].lives[i][1] = x}
    IN IF S = {} THEN -1 ELSE life[l].lives[MaxOf(S)][2]
Owner(l, n) ==
    LET S == {i \in DOMAIN life[l].lives : life[l].lives[i][2] <= n}
    IN IF S = {} THEN 0 ELSE life[l].lives[MaxOf(S)][1]
Outranks(term, l, other, k) == term > other /\ Named(l) \cap Named(k) # {}

Parting(l, x) ==  \* the first dead number of life x, by the history of life l
    IF x = l THEN For_ever
    ELSE MinOf({life[l].first} \cup
               {life[l].lives[i][2] : i \in {i \in DOMAIN life[l].lives :
                   life[l].lives[i][1] # x /\ life[l].lives[i][2] > FirstIn(l, x)}})

-------------------------------------------------------------------------------
(* A session. Operators take the receiver and the number of the session. *)

RECURSIVE EndOf(_, _)
EndOf(d, s) == IF d.ses[s].heir = 0 THEN s ELSE EndOf(d, d.ses[s].heir)

Waits(d, s) == \E i \in DOMAIN d.inbox : d.inbox[i][1] = s
Inbox(d) == {i \in DOMAIN d.inbox : i > 1 \/ ~d.hand}  \* not in hand

RECURSIVE Without(_, _, _)
Without(queue, i, bad) ==
    IF i > Len(queue) THEN <<>>
    ELSE (IF i \in bad THEN <<>> ELSE <<queue[i]>>) \o Without(queue, i + 1, bad)

Ask(d, s) ==
    LET r == d.ses[s]
        missing == {n \in r.next..Min(r.high, r.origin - 1) : n \notin r.held \cup r.known}
    IN [d EXCEPT !.ses[s].asked = IF r.state # "ACTIVE" \/ missing = {} THEN 0 ELSE MinOf(missing)]

Acknowledge(d, s) ==  \* the consumed prefix, to the stores; to the source what of it is not lost
    LET r == d.ses[s]
        Through(n) == \A m \in (r.acked + 1)..n : m \in r.done \cup r.skip \/ Mutant = "acks_unread"
        ends == {n \in IF Mutant = "acks_unread" THEN NumbersOf(r.seen) ELSE r.done : n > r.acked /\ Through(n)}
        end == MaxOf(ends)
        parts == ((r.acked + 1)..end) \ (IF Mutant = "confirms_lost" THEN {} ELSE r.miss)
    IN IF ends = {} \/ r.state # "ACTIVE" THEN d
       ELSE [d EXCEPT !.ses[s].acked = end,
                      !.ses[s].done = {n \in @ : n > end},
                      !.ses[s].skip = {n \in @ : n > end},
                      !.acked = IF r.life = src.cur THEN Max(@, Min(end, src.stored)) ELSE @,
                      !.told = IF life[r.life].up THEN @ \cup {<<r.life, n>> : n \in parts} ELSE @]

Consumed(d, s, n) ==  \* the machine learns that the application consumed a message
    LET r == d.ses[s]
        seen == {p \in r.seen : p[2] = n}
        noted == [d EXCEPT !.ses[s].knows = @ \cup seen]
    IN IF r.state = "CLOSED" THEN noted
       ELSE Acknowledge([noted EXCEPT !.ses[s].done = IF n > r.acked THEN @ \cup {n} ELSE @], s)

Useless(d, s, n) ==
    IF d.ses[s].state = "CLOSED" THEN d
    ELSE Acknowledge([d EXCEPT !.ses[s].skip = IF n > d.ses[s].acked THEN @ \cup {n} ELSE @,
                               !.ses[s].miss = @ \cup {n}], s)

Give(d, s, x, n) ==  \* message n of life x is new to the application
    LET r == d.ses[s]
        ahead == \E p \in r.has : p[2] >= n
        bad == {i \in Inbox(d) : d.inbox[i][3] >= n /\ d.inbox[i][1] # s /\ EndOf(d, d.inbox[i][1]) = s}
        dropped == IF ahead /\ Mutant # "no_drop" THEN bad ELSE {}
        gone == {<<d.inbox[i][2], d.inbox[i][3]>> : i \in dropped}
    IN [d EXCEPT !.inbox = Append(Without(@, 1, dropped), <<s, x, n>>), !.ses[s].has = @ \ gone]

Deliver(d, s, x, n) ==  \* the machine delivers message n of life x
    LET r == d.ses[s]
        held == <<x, n>> \in r.has /\ Mutant # "no_heritage"
        void == x \in r.kin /\ n \in r.gone
        told_ == [d EXCEPT !.ses[s].passed = IF held THEN @ \cup {n} ELSE @,
                           !.ses[s].gone = IF void THEN @ \ {n} ELSE @]
        given == IF held \/ void THEN told_ ELSE Give(told_, s, x, n)
        done == IF held /\ <<x, n>> \in r.used THEN Consumed(given, s, n) ELSE given
    IN IF r.heir # 0 THEN d
       ELSE IF void THEN Useless(done, s, n) ELSE done

RECURSIVE Drained(_, _)
Drained(d, s) ==
    LET r == d.ses[s]
        n == r.next
        on == [d EXCEPT !.ses[s].next = n + 1]
    IN IF n \in r.held
       THEN Drained(Deliver([on EXCEPT !.ses[s].held = @ \ {n}], s, CHOOSE x \in Ids : <<x, n>> \in r.seen, n), s)
       ELSE IF n \in r.known
       THEN Drained([on EXCEPT !.ses[s].known = @ \ {n}, !.ses[s].done = IF n > r.acked THEN @ \cup {n} ELSE @], s)
       ELSE d

Data(d, s, x, n) ==  \* message n of life x arrives, live or from the stores
    LET r == d.ses[s]
        first == life[r.life].first
        belongs == IF x = r.life THEN n >= first ELSE n < first
        knows == <<x, n>> \in r.knows
        learnt == [d EXCEPT !.ses[s].seen = @ \cup {<<x, n>>}, !.ses[s].high = Max(@, n),
                            !.ses[s].known = IF knows /\ n >= r.next THEN @ \cup {n} ELSE @]
        kept == [learnt EXCEPT !.ses[s].held = IF n >= r.next /\ ~knows /\ n \notin r.known THEN @ \cup {n} ELSE @]
        after == IF r.state = "ACTIVE" THEN Drained(kept, s) ELSE kept
    IN IF ~belongs THEN d
       ELSE Ask(IF knows THEN Acknowledge(after, s) ELSE after, s)

Lose(d, s, n) ==  \* all stores deny the message that is next
    LET r == d.ses[s]
        here == n \in NumbersOf(r.has)
        lose == r.heir = 0 /\ ~here
        skipped == [d EXCEPT !.ses[s].next = n + 1, !.ses[s].skip = @ \cup {n}, !.ses[s].miss = @ \cup {n},
                             !.ses[s].gone = IF r.heir = 0 THEN @ \ {n} ELSE @,
                             !.ses[s].passed = IF r.heir = 0 /\ here THEN @ \cup {n} ELSE @,
                             !.lost = IF lose THEN @ \cup {<<Owner(r.life, n), n>>} ELSE @,
                             !.ever = IF lose THEN @ \cup {<<Owner(r.life, n), n>>} ELSE @]
    IN Ask(Drained(skipped, s), s)

Begun(d, s) ==  \* the lowest number that the application got in this run, or waits; -1: none
    LET r == d.ses[s]
        all == r.knows \cup r.has
        firsts == {<<x, MinOf(NumbersOf({p \in all : p[1] = x}))>> : x \in LivesOf(all)}
        kept == {p[2] : p \in {p \in firsts : Owner(r.life, p[2]) = p[1]}}
        cut == {Parting(r.life, p[1]) : p \in {p \in firsts : p[1] \in Named(r.life) \ {r.life}}}
    IN IF kept # {} THEN MinOf(kept) ELSE IF cut # {} THEN MinOf(cut) ELSE -1

Granted(d, s) ==  \* the stores grant, so the session begins
    LET r == d.ses[s]
        high == Max(r.high, src.stored)
        begun == Begun(d, s)
        start == Min(IF begun = -1 THEN d.acked + 1 ELSE Max(d.acked + 1, Min(begun, high + 1)), high + 1)
        gone == r.gone \cup r.below
        on == [r EXCEPT !.state = "ACTIVE", !.high = high, !.start = start, !.next = start,
                        !.origin = Max(start, high + 1), !.acked = start - 1,
                        !.held = {n \in @ : n >= start}, !.known = {n \in @ : n >= start},
                        !.gone = {n \in gone : n >= start}, !.below = {n \in gone : n < start},
                        !.passed = {n \in NumbersOf(r.has) : n < start}]
    IN Ask(Drained([d EXCEPT !.ses[s] = on], s), s)

RECURSIVE Heirs(_, _, _)
Heirs(d, s, n) ==  \* those who answer for a message learn that it is consumed
    IF s = 0 THEN d
    ELSE LET r == d.ses[s]
             held == {p \in r.has : p[2] = n}
             used == [d EXCEPT !.ses[s].used = @ \cup held]
         IN Heirs(IF held # {} /\ n \in r.passed /\ r.state # "CLOSED" THEN Consumed(used, s, n) ELSE used, r.heir, n)

-------------------------------------------------------------------------------
(* The subscription. *)

Live(d, s) == \E l \in Ids : d.fol[l].ses = s

Closed(d, s) == [d EXCEPT !.ses[s].state = "CLOSED", !.ses[s].ended = TRUE, !.ses[s].asked = 0]

Inherited(d, s, earlier) ==  \* session s answers from now on for what the earlier ones delivered
    LET l == d.ses[s].life
        heired == [d EXCEPT !.ses = [i \in DOMAIN @ |-> IF i \in earlier THEN [@[i] EXCEPT !.heir = s] ELSE @[i]]]
        dead == {i \in Inbox(d) : EndOf(heired, d.inbox[i][1]) = s /\ d.inbox[i][3] >= Parting(l, d.inbox[i][2])}
        kept == Without(d.inbox, 1, dead)
        mine == {i \in DOMAIN kept : EndOf(heired, kept[i][1]) = s}
    IN IF earlier = {} THEN d
       ELSE [heired EXCEPT !.inbox = kept,
                           !.ses[s].has = {<<kept[i][2], kept[i][3]>> : i \in mine},
                           !.ses[s].gone = UNION {d.ses[e].skip : e \in earlier},
                           !.ses[s].kin = UNION {{d.ses[e].life} \cup LivesOf(d.ses[e].seen) : e \in earlier}]

Follow(d, l, info) ==  \* a session begins, and succeeds all others
    LET s == Len(d.ses) + 1
        old == d.fol[l].ses
        others == {e \in DOMAIN d.ses : (d.ses[e].state # "CLOSED" \/ Waits(d, e)) /\ d.ses[e].heir = 0}
        closed == IF old = 0 THEN d ELSE Closed(d, old)
        session == [New(l) EXCEPT !.high = info.high, !.knows = IF Mutant = "no_memory" THEN {} ELSE d.read]
        new == [ses |-> s, life |-> l, term |-> info.term]
        Rival(k) ==
            LET f == d.fol[k]
                last == IF f.rival.ses = 0 THEN f.ses ELSE f.rival.ses
            IN IF f.ses # 0 /\ last \in others /\ Live(d, last) THEN [f EXCEPT !.rival = new] ELSE f
        mine == [ses |-> s, term |-> info.term, high |-> info.high, replaced |-> others, rival |-> NoRival]
        begun == [closed EXCEPT !.ses = Append(@, session), !.over[l] = NoInfo,
                                !.fol = [k \in Ids |-> IF k = l THEN mine ELSE Rival(k)]]
    IN Inherited(begun, s, others)

Announced(d, l, info) ==
    LET f == d.fol[l]
        stays == IF d.bye[l] # 0 THEN [d EXCEPT !.bye[l] = Farewell] ELSE d
        back == f.rival.ses # 0 /\ Outranks(info.term, l, f.rival.term, f.rival.life)
        waits == d.over[l].term # 0 /\ d.plan[l] # 0
        passed == \E k \in Ids : d.fol[k].ses # 0 /\ Outranks(d.fol[k].term, k, info.term, l)
        newer == info.term >= f.term
        Known(k) ==
            LET g == stays.fol[k]
            IN IF ~newer THEN g
               ELSE IF k = l THEN [g EXCEPT !.term = info.term, !.high = info.high]
               ELSE IF g.rival.ses = f.ses THEN [g EXCEPT !.rival.term = info.term] ELSE g
    IN IF f.ses = 0 \/ back
       THEN IF waits \/ passed THEN [stays EXCEPT !.over[l] = info] ELSE Follow(stays, l, info)
       ELSE LET s == f.ses
                told_ == [stays EXCEPT !.fol = [k \in Ids |-> Known(k)],
                                       !.ses[s].high = IF newer THEN Max(@, info.high) ELSE @]
            IN Ask(told_, s)

Join(d, l) ==
    LET ready == [d EXCEPT !.plan[l] = 0]
    IN IF d.at[l] = 0 THEN [ready EXCEPT !.at[l] = life[l].sent + 1]
       ELSE IF d.over[l].term = 0 THEN ready
       ELSE Announced([ready EXCEPT !.over[l] = NoInfo], l, d.over[l])

RECURSIVE JoinAll(_, _)
JoinAll(d, wanted) ==
    IF wanted = {} THEN d ELSE LET l == MinOf(wanted) IN JoinAll(Join(d, l), wanted \ {l})

Review(d) == IF d.fin # <<>> THEN d ELSE JoinAll(d, {l \in Ids : d.plan[l] > 0})

Plan(d, l) == [d EXCEPT !.plan[l] = IF @ = 0 THEN Drain ELSE @]

RECURSIVE Ended(_, _)
Ended(d, lives) ==  \* the sessions with these lives end; if one replaced others in vain, they end and are met again
    IF lives = {} THEN d
    ELSE LET l == MinOf(lives)
             f == d.fol[l]
             ended == [d EXCEPT !.fol[l] = NoFol, !.fin = Append(@, f.ses), !.ses[f.ses].ended = TRUE]
             vain == d.ses[f.ses].state # "ACTIVE"
             again == {k \in Ids \ {l} : vain /\ d.fol[k].ses \in f.replaced /\ d.fol[k].ses # 0}
             planned == [ended EXCEPT !.plan = [k \in Ids |-> IF k \in again /\ @[k] = 0 THEN Drain ELSE @[k]],
                                      !.over = [k \in Ids |-> IF k \in again
                                                              THEN [term |-> d.fol[k].term, high |-> d.fol[k].high]
                                                              ELSE @[k]]]
         IN Ended(planned, (lives \ {l}) \cup again)

StreamEnded(d, l) ==
    LET gone == [d EXCEPT !.at[l] = 0, !.over[l] = NoInfo, !.plan[l] = IF d.over[l].term # 0 THEN 0 ELSE @]
        again == [gone EXCEPT !.plan = [k \in Ids |-> IF gone.over[k].term # 0 /\ @[k] = 0 THEN Drain ELSE @[k]]]
    IN Ended(again, IF d.fol[l].ses # 0 THEN {l} ELSE {})

Settled(d, s) ==
    LET r == d.ses[s]
    IN \/ r.heir # 0
       \/ ~Waits(d, s) /\ ~(r.state = "ACTIVE" /\ r.next <= r.high) /\ r.has \subseteq r.used

RECURSIVE CloseAll(_, _)
CloseAll(d, sessions) ==
    IF sessions = {} THEN d
    ELSE LET s == MinOf(sessions) IN CloseAll(Closed(d, s), sessions \ {s})

RECURSIVE Settle(_)
Settle(d) ==
    LET ready == {i \in DOMAIN d.fin : Settled(d, d.fin[i])}
        closed == CloseAll([d EXCEPT !.fin = Without(@, 1, ready)], {d.fin[i] : i \in ready})
    IN IF ready = {} THEN d ELSE Settle(Review(closed))

RECURSIVE Needed(_, _)
Needed(d, s) == IF s = 0 THEN {} ELSE {s} \cup Needed(d, d.ses[s].heir)

Tidy(d) ==  \* a session that nobody asks any more is forgotten
    LET owners == {s \in DOMAIN d.ses : d.ses[s].state # "CLOSED" \/ Waits(d, s)}
        needed == UNION {Needed(d, s) : s \in owners}
    IN [d EXCEPT !.ses = [s \in DOMAIN @ |-> IF s \in needed THEN @[s] ELSE Blank]]

Become(d) ==
    LET e == Tidy(Settle(d))
    IN /\ at' = e.at /\ plan' = e.plan /\ bye' = e.bye /\ over' = e.over /\ fol' = e.fol /\ fin' = e.fin
       /\ ses' = e.ses /\ inbox' = e.inbox /\ hand' = e.hand /\ read' = e.read /\ handed' = e.handed
       /\ lost' = e.lost /\ ever' = e.ever /\ acked' = e.acked /\ told' = e.told

-------------------------------------------------------------------------------
receiver == <<at, plan, bye, over, fol, fin, ses, inbox, hand, read, handed, lost, ever, acked, told>>

Clear == [l \in Ids |-> 0]

Init ==
    /\ src = [cur |-> 1, term |-> 1, stored |-> 1]
    /\ life = [l \in Ids |-> IF l = 1
                             THEN [up |-> TRUE, term |-> 1, first |-> 1, sent |-> 1, lives |-> <<<<1, 1>>>>]
                             ELSE [up |-> FALSE, term |-> 0, first |-> 0, sent |-> 0, lives |-> <<>>]]
    /\ at = Clear /\ plan = Clear /\ bye = Clear
    /\ over = [l \in Ids |-> NoInfo]
    /\ fol = [l \in Ids |-> NoFol]
    /\ fin = <<>> /\ ses = <<>> /\ inbox = <<>> /\ hand = FALSE
    /\ read = {} /\ handed = {} /\ lost = {} /\ ever = {}
    /\ acked = 0 /\ told = {}
    /\ left = [crashes |-> Crashes, breaks |-> Breaks]

(* The source and its stores. *)

Births == {l \in Ids : life[l].term = 0}
Cur == life[src.cur]

Begin ==  \* the next life, whether the one before is over or only cut off
    /\ Births # {}
    /\ LET l == MinOf(Births)
           first == src.stored + 1
           Older(one) == one[2] < first
           lives == Append(SelectSeq(Cur.lives, Older), <<l, first>>)
       IN /\ life' = [life EXCEPT ![l] = [up |-> TRUE, term |-> src.term + 1, first |-> first, sent |-> src.stored,
                                          lives |-> lives]]
          /\ src' = [src EXCEPT !.cur = l, !.term = @ + 1]
    /\ UNCHANGED <<receiver, left>>

Send ==
    /\ Cur.up /\ src.cur \notin Proxies /\ Cur.sent = src.stored /\ src.stored < Messages
    /\ life' = [life EXCEPT ![src.cur].sent = @ + 1]
    /\ UNCHANGED <<src, receiver, left>>

Store ==
    /\ Cur.up /\ src.stored < Cur.sent
    /\ src' = [src EXCEPT !.stored = @ + 1]
    /\ UNCHANGED <<life, receiver, left>>

ComesBack(l, ends) ==  \* the stores would take a cut-off life back, if the life `ends` were over
    /\ "back" \in Faults /\ l < src.cur /\ l # ends /\ life[l].up
    /\ src.stored < Cur.first
    /\ ~Cur.up \/ ends = src.cur

End(l) ==  \* somebody goes on
    /\ life[l].up
    /\ \/ Births # {}
       \/ l # src.cur /\ Cur.up
       \/ \E k \in Ids : ComesBack(k, l)
    /\ life' = [life EXCEPT ![l].up = FALSE]
    /\ UNCHANGED <<src, receiver, left>>

Return(l) ==
    /\ ComesBack(l, 0)
    /\ src' = [src EXCEPT !.cur = l, !.term = @ + 1]
    /\ life' = [life EXCEPT ![l].term = src.term + 1]
    /\ UNCHANGED <<receiver, left>>

(* The resolver and streams. *)

Found(l) ==
    /\ life[l].up /\ at[l] = 0 /\ plan[l] = 0
    /\ Become(Review(Plan(Now, l)))
    /\ UNCHANGED <<src, life, left>>

Withdraw(l) ==
    /\ ~life[l].up /\ (at[l] > 0 \/ plan[l] > 0) /\ bye[l] = 0
    /\ Become(Review(IF at[l] > 0 THEN [Now EXCEPT !.bye[l] = Farewell] ELSE [Now EXCEPT !.plan[l] = 0]))
    /\ UNCHANGED <<src, life, left>>

Announce(l) ==  \* of what came on the stream before
    /\ life[l].up /\ at[l] > 0
    /\ Become(Review(Announced(Now, l, [term |-> life[l].term, high |-> at[l] - 1])))
    /\ UNCHANGED <<src, life, left>>

Close(l) ==  \* before its last message arrives, or after it
    /\ ~life[l].up /\ at[l] > 0
    /\ Become(Review(StreamEnded(Now, l)))
    /\ UNCHANGED <<src, life, left>>

Break(l) ==
    /\ life[l].up /\ at[l] > 0 /\ left.breaks > 0
    /\ left' = [left EXCEPT !.breaks = @ - 1]
    /\ Become(Review(StreamEnded(Now, l)))
    /\ UNCHANGED <<src, life>>

Hear(l) ==
    /\ at[l] > 0 /\ fol[l].ses # 0 /\ at[l] <= life[l].sent
    /\ Become(Data([Now EXCEPT !.at[l] = @ + 1], fol[l].ses, l, at[l]))
    /\ UNCHANGED <<src, life, left>>

(* Stores and the receiver. *)

Answers(s) == s \in DOMAIN ses /\ ses[s].state # "CLOSED" /\ ses[s].life = src.cur
Fetchable(s) == Answers(s) /\ ses[s].asked > 0 /\ ses[s].asked <= src.stored

Register(s) ==
    /\ Answers(s) /\ ses[s].state = "REGISTERING"
    /\ Become(Granted(Now, s))
    /\ UNCHANGED <<src, life, left>>

Fetch(s) ==
    /\ Fetchable(s) /\ ses[s].asked \notin Gone
    /\ Become(Data(Now, s, Owner(src.cur, ses[s].asked), ses[s].asked))
    /\ UNCHANGED <<src, life, left>>

Deny(s) ==
    /\ Fetchable(s) /\ ses[s].asked \in Gone
    /\ Become(Lose(Now, s, ses[s].asked))
    /\ UNCHANGED <<src, life, left>>

RECURSIVE Part(_, _)
Part(d, lives) ==  \* streams are left whose end was reported
    IF lives = {} THEN d
    ELSE LET l == MinOf(lives)
             over_ == [d EXCEPT !.bye[l] = 0]
         IN Part(IF d.at[l] = 0 THEN over_ ELSE StreamEnded(over_, l), lives \ {l})

Tick ==
    /\ \E l \in Ids : plan[l] > 0 \/ bye[l] > 0
    /\ LET Less(f, due) == [l \in Ids |-> IF f[l] > 1 THEN f[l] - 1 ELSE IF f[l] = 1 THEN due ELSE 0]
           older == [Now EXCEPT !.plan = Less(@, 0), !.bye = Less(@, Due)]
           joined == JoinAll(older, IF Mutant = "waits_for_ever" THEN {} ELSE {l \in Ids : plan[l] = 1})
       IN Become(Review(Part(joined, {l \in Ids : joined.bye[l] = Due})))
    /\ UNCHANGED <<src, life, left>>

(* The application. *)

Take ==
    /\ ~hand /\ inbox # <<>>
    /\ Become([Now EXCEPT !.hand = TRUE, !.handed = @ \cup {<<inbox[1][2], inbox[1][3]>>}])
    /\ UNCHANGED <<src, life, left>>

Consume ==
    /\ hand
    /\ LET one == inbox[1]
           message == <<one[2], one[3]>>
           rest == [Now EXCEPT !.inbox = Tail(@), !.hand = FALSE, !.read = @ \cup {message}, !.ever = @ \cup {message}]
       IN Become(Heirs(Consumed(rest, one[1], one[3]), ses[one[1]].heir, one[3]))
    /\ UNCHANGED <<src, life, left>>

Crash ==  \* and a new run begins, which knows nothing
    /\ left.crashes > 0
    /\ left' = [left EXCEPT !.crashes = @ - 1]
    /\ at' = Clear /\ plan' = Clear /\ bye' = Clear
    /\ over' = [l \in Ids |-> NoInfo]
    /\ fol' = [l \in Ids |-> NoFol]
    /\ fin' = <<>> /\ ses' = <<>> /\ inbox' = <<>> /\ hand' = FALSE
    /\ read' = {} /\ handed' = {} /\ lost' = {}
    /\ UNCHANGED <<src, life, ever, acked, told>>

Next ==
    \/ Begin \/ Send \/ Store \/ Tick \/ Take \/ Consume \/ Crash
    \/ \E l \in Ids : End(l) \/ Return(l) \/ Found(l) \/ Withdraw(l) \/ Announce(l) \/ Close(l) \/ Break(l) \/ Hear(l)
    \/ \E s \in Sessions : Register(s) \/ Fetch(s) \/ Deny(s)

Spec == Init /\ [][Next]_vars

CutOffEnds == \E l \in Ids : l # src.cur /\ ~ComesBack(l, 0) /\ End(l)

Fairness ==
    /\ WF_vars(Store) /\ WF_vars(Take) /\ WF_vars(Consume) /\ WF_vars(Tick) /\ WF_vars(CutOffEnds)
    /\ WF_vars(~Cur.up /\ Begin) /\ WF_vars(\E l \in Ids : Return(l))
    /\ \A l \in Ids : WF_vars(Found(l)) /\ WF_vars(Announce(l)) /\ WF_vars(Close(l)) /\ WF_vars(Hear(l))
    /\ \A s \in Sessions : WF_vars(Register(s)) /\ WF_vars(Fetch(s)) /\ WF_vars(Deny(s))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
Once ==  \* D1: in a run no message is handed over twice, and none that was reported lost
    [][Take => <<inbox[1][2], inbox[1][3]>> \notin handed \cup lost]_vars

Order ==  \* D1: and those of a life are handed over in order
    [][Take => \A p \in handed : p[1] = inbox[1][2] => p[2] < inbox[1][3]]_vars

NothingUnread ==  \* A1: what the stores count as consumed was consumed, or reported lost
    \A n \in 1..acked : <<Owner(src.cur, n), n>> \in ever

NothingFalse ==  \* A1: what a source was told is consumed was consumed, and was not lost
    \A p \in told : <<Owner(p[1], p[2]), p[2]>> \in ever /\ <<Owner(p[1], p[2]), p[2]>> \notin lost

Served ==  \* L1: every message that stays available is consumed in the end
    \A n \in Numbers : <>[](n <= src.stored => <<Owner(src.cur, n), n>> \in ever)
=============================================================================
