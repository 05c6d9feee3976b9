------------------------------- MODULE Router -------------------------------
(* Linked routers, and a domain beside each: a source in domain 1, and receivers in the others.                       *)
(*                                                                                                                    *)
(* In the code: `transports/routing/router.py`, with `network.py`, `network_map.py`, `link.py`, `sources.py` and      *)
(* `streams.py`. In the guide: routes, interest and proxies of the router. Ours are the records that are flooded,     *)
(* the trees, and the names of paths.                                                                                 *)
(*                                                                                                                    *)
(* There is one topic. The name of a path is the path: its routers, from that of the domain on. A link keeps the      *)
(* order of what is said on it. The portal of a router that leads to its domain is called by the router's own number. *)
(* At the beginning all links are up and receivers of Wants are served, or everybody has a map of its own.            *)
(*                                                                                                                    *)
(* Bounds that could hide an error: what one step says on a link arrives at once; nothing happens while more than     *)
(* Room of these are under way; no sign of life is asked for; routers do not end, and none is forgotten; a queue      *)
(* takes everything; a proxy opens at once; sources say nothing but data.                                             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Size,      \* how many routers
    Links,     \* the links, each called by its two routers, such as 12
    Dear,      \* those that cost twice as much
    Weak,      \* those that break
    Breaks,    \* how often they break
    Wants,     \* the domains that have a receiver at the beginning
    Turns,     \* how often receivers come or leave
    Lives,     \* how often the source begins
    Messages,  \* how many each life sends
    Room,      \* how much is under way when something happens
    Faults,    \* what may happen: "slow" (timers end while something is under way), "differ" (maps, at the beginning)
    Mutant     \* "none", or which rule is broken

VARIABLES
    map,     \* each router's map: the newest record of each router
    way,     \* its path from each domain; none: it is not reached
    link,    \* its links: whether they count, and what both sides told: paths, interest, sources
    table,   \* the lives of the source that it knows: where each comes in, by which exits it leaves, and what passed
    remote,  \* the domains behind links whose interest counts
    held,    \* whether interest is held whose way is no more
    want,    \* the domains that have a receiver
    source,  \* the life of the source, what it has sent, and which lives the portal there has found
    wire,    \* what is under way on links, by both ends
    alive,   \* the links that are connected
    got,     \* what the receiver of each domain has got
    breaks, turns  \* what is left of them

vars == <<map, way, link, table, remote, held, want, source, wire, alive, got, breaks, turns>>

Routers == 1..Size
Home == 1
Receivers == Routers \ {Home}
Ids == 1..Lives
Of(r, s) == IF r < s THEN 10 * r + s ELSE 10 * s + r
Every == {Of(r, s) : <<r, s>> \in {<<a, b>> \in Routers \X Routers : a # b}}
Peers(r) == {s \in Routers \ {r} : Of(r, s) \in Links}

-------------------------------------------------------------------------------
(* Maps and trees. *)

Cost(p) == Len(p) + Cardinality({i \in 1..(Len(p) - 1) : Of(p[i], p[i + 1]) \in Dear})
IsLower(p, q) == \E i \in 1..Len(p) : (\A k \in 1..(i - 1) : p[k] = q[k]) /\ p[i] < q[i]

RECURSIVE PathsFrom(_, _)
PathsFrom(edges, p) ==  \* all that begin so
    {p} \cup UNION {PathsFrom(edges, Append(p, s)) : s \in {s \in Routers : Of(p[Len(p)], s) \in edges
                                                                            /\ \A i \in 1..Len(p) : p[i] # s}}

(* The tree of a domain in a network, as router `by` calculates it: the path to each router. *)
Calculated(by, edges, d) ==
    LET every == PathsFrom(edges, <<d>>)
        Wins(p, q) == IF Mutant = "own_tie" /\ by = 2 THEN IsLower(q, p) ELSE IsLower(p, q)
        Best(p, q) == Cost(p) < Cost(q) \/ (Cost(p) = Cost(q) /\ Wins(p, q))
    IN [r \in Routers |->
            LET mine == {p \in every : p[Len(p)] = r}
            IN IF mine = {} THEN <<>> ELSE CHOOSE p \in mine : \A q \in mine \ {p} : Best(p, q)]

Trees == [by \in Routers |-> [edges \in SUBSET Links |-> [d \in Routers |-> Calculated(by, edges, d)]]]

Edges(m) == {l \in Links : \A r, s \in Routers : r < s /\ l = 10 * r + s => r \in m[s].to /\ s \in m[r].to}
TreesOf(m, by) == Trees[by][Edges(m)]  \* two routers are joined if both say so

IsPrefix(p, q) == Len(p) <= Len(q) /\ SubSeq(q, 1, Len(p)) = p

-------------------------------------------------------------------------------
(* What is said. *)

Record(n, m) == [kind |-> "record", of |-> n, gen |-> m[n].gen, to |-> m[n].to]
Interest(d, on) == [kind |-> "interest", domain |-> d, on |-> on]
Source(i, on) == [kind |-> "source", life |-> i, on |-> on]
Mark(i, n) == [kind |-> "mark", life |-> i, number |-> n]
Data(i, n, by) == [kind |-> "data", life |-> i, number |-> n, by |-> by]

NoLink == [state |-> "none", paths |-> [d \in Routers |-> <<>>], hears |-> {}, told |-> {}, offers |-> {}, taken |-> {}]
Unknown == [at |-> 0, there |-> FALSE, joined |-> FALSE, high |-> 0, exits |-> {}, passed |-> [e \in Routers |-> {}]]

-------------------------------------------------------------------------------
(* One step of a router, R: its part of the variables, its trees, and what it says. *)

Begin(r) == [me |-> r, map |-> map[r], way |-> way[r], tree |-> TreesOf(map[r], r), link |-> link[r],
             table |-> table[r], remote |-> remote[r], held |-> held[r], want |-> want[r], found |-> source.found,
             got |-> got[r], out |-> [s \in Routers |-> <<>>]]

Has(R, s) == R.link[s].state # "none"
Up(R, s) == R.link[s].state = "up"
Say(R, s, said) == [R EXCEPT !.out[s] = IF Has(R, s) THEN @ \o said ELSE @]
SayAll(R, except, said) ==
    [R EXCEPT !.out = [s \in Routers |-> IF Has(R, s) /\ s # except THEN @[s] \o said ELSE @[s]]]

Enters(R, d, s) ==  \* what comes from a domain comes by this link
    LET p == R.way[d] IN Len(p) > 1 /\ p[Len(p) - 1] = s /\ Up(R, s)
IsChild(R, d, s) == Up(R, s) /\ R.way[d] # <<>> /\ R.tree[d][s] = Append(R.way[d], s)
Wanting(R) == R.remote \cup (IF R.want THEN {R.me} ELSE {})
IsWanted(R) == Wanting(R) \ {Home} # {}
Leads(R, e) ==  \* what the source sends must leave so
    IF e = R.me THEN R.want /\ R.me # Home
    ELSE Up(R, e) /\ R.way[Home] # <<>> /\ \E d \in R.remote : IsPrefix(Append(R.way[Home], e), R.tree[Home][d])

Accepts(R, s) ==  \* both sides think that the source comes by this link to this router
    /\ Enters(R, Home, s)
    /\ Append(R.link[s].paths[Home], R.me) = R.way[Home] \/ Mutant = "any_path"

(* Sources. *)

Settle(R, i) ==  \* open and close exits, and forget what nobody wants
    LET c == R.table[i]
        leads == {e \in Routers : e # c.at /\ Leads(R, e)}
        opens == IF c.there THEN leads \ c.exits ELSE {}
        closes == c.exits \ leads
        exits == (c.exits \ closes) \cup opens
        said(e) == IF e = R.me THEN <<>>
                   ELSE IF e \in opens THEN <<Source(i, TRUE)>> \o (IF c.high = 0 THEN <<>> ELSE <<Mark(i, c.high)>>)
                   ELSE IF e \in closes /\ Mutant # "unsaid_end" THEN <<Source(i, FALSE)>> ELSE <<>>
    IN IF c.at = 0 THEN R
       ELSE [R EXCEPT !.table[i] = IF exits = {} /\ ~IsWanted(R) THEN Unknown
                                   ELSE [c EXCEPT !.exits = exits, !.joined = c.there /\ exits # {},
                                                  !.passed = [e \in Routers |-> IF e \in opens \cup closes THEN {} ELSE @[e]]],
                      !.out = [e \in Routers |-> @[e] \o said(e)]]

RECURSIVE SettleFrom(_, _)
SettleFrom(R, i) == IF i > Lives THEN R ELSE SettleFrom(Settle(R, i), i + 1)
SettleAll(R) == SettleFrom(R, 1)

Close(R, i, of) ==  \* close these exits of a source
    [R EXCEPT !.table[i].exits = @ \ of, !.table[i].passed = [e \in Routers |-> IF e \in of THEN {} ELSE @[e]],
              !.out = [e \in Routers |-> IF e \in of \cap R.table[i].exits /\ e # R.me /\ Mutant # "unsaid_end"
                                         THEN Append(@[e], Source(i, FALSE)) ELSE @[e]]]

Move(R, i, e) ==  \* a source comes in elsewhere; its exits stay
    LET C == Close(R, i, IF Mutant = "new_window" THEN Routers ELSE {e})
    IN Settle([C EXCEPT !.table[i].at = e, !.table[i].there = TRUE], i)

Find(R, i, e) ==
    LET c == R.table[i]
    IN IF c.at = 0
       THEN IF IsWanted(R) THEN Settle([R EXCEPT !.table[i] = [Unknown EXCEPT !.at = e, !.there = TRUE]], i) ELSE R
       ELSE IF c.at = e THEN Settle([R EXCEPT !.table[i].there = TRUE], i)
       ELSE IF ~c.there \/ ~Enters(R, Home, c.at) THEN Move(R, i, e) ELSE R

Lose(R, i, e) ==
    LET c == R.table[i]
    IN IF c.at = e /\ c.there
       THEN [R EXCEPT !.table[i] = IF c.exits = {} THEN Unknown ELSE [c EXCEPT !.there = FALSE, !.joined = FALSE]]
       ELSE R

RECURSIVE FindEach(_, _), LoseEach(_, _), Each(_)
Each(set) ==  \* pairs of link and life, in order
    IF set = {} THEN <<>>
    ELSE LET one == CHOOSE a \in set : \A b \in set : a[1] < b[1] \/ (a[1] = b[1] /\ a[2] <= b[2])
         IN <<one>> \o Each(set \ {one})
FindEach(R, list) == IF list = <<>> THEN R ELSE FindEach(Find(R, Head(list)[2], Head(list)[1]), Tail(list))
LoseEach(R, list) == IF list = <<>> THEN R ELSE LoseEach(Lose(R, Head(list)[2], Head(list)[1]), Tail(list))

Offer(R) ==  \* take up what was told before it was wanted
    FindEach(R, Each({p \in Routers \X Ids : p[2] \in R.link[p[1]].taken /\ R.table[p[2]].at = 0}))

(* Interest. *)

Tell(R) ==  \* look for the topic, and tell links which domains want it, as far as that has changed
    LET now(s) == {d \in Wanting(R) : IF Mutant = "any_link" THEN Up(R, s) ELSE IsChild(R, d, s)}
        said(s) == LET changed == {d \in Routers : (d \in now(s)) # (d \in R.link[s].told)}
                       from[d \in 1..(Size + 1)] ==
                           IF d > Size THEN <<>>
                           ELSE (IF d \in changed THEN <<Interest(d, d \in now(s))>> ELSE <<>>) \o from[d + 1]
                   IN from[1]
    IN [R EXCEPT !.out = [s \in Routers |-> IF Has(R, s) THEN @[s] \o said(s) ELSE @[s]],
                 !.link = [s \in Routers |-> IF Has(R, s) THEN [@[s] EXCEPT !.told = now(s)] ELSE @[s]],
                 !.found = IF R.me = Home /\ ~IsWanted(R) THEN {} ELSE @]

New(R) == LET T == Tell(R) IN SettleAll(IF Mutant = "early_forgotten" THEN T ELSE Offer(T))
Ended(R) == SettleAll(Tell(R))

Counts(R, d, s) == IF Mutant = "any_link" THEN Has(R, s) ELSE Enters(R, d, s)

Hear(R, s, d, on) ==
    IF (d \in R.link[s].hears) = on THEN R
    ELSE LET H == [R EXCEPT !.link[s].hears = IF on THEN @ \cup {d} ELSE @ \ {d}]
         IN IF ~Counts(R, d, s) \/ (d \in R.remote) = on THEN H
            ELSE IF on THEN New([H EXCEPT !.remote = @ \cup {d}]) ELSE Ended([H EXCEPT !.remote = @ \ {d}])

Heard(R) == {d \in Routers : \E s \in Routers : d \in R.link[s].hears /\ Counts(R, d, s)}

(* Decide everything anew. The link `new` has been told nothing yet; 0: there is none. *)
Reconsider(R, new) ==
    LET to == {s \in Routers : Up(R, s)}
        m == IF to = R.map[R.me].to THEN R.map ELSE [R.map EXCEPT ![R.me] = [gen |-> @.gen + 1, to |-> to]]
        A == IF m = R.map THEN R ELSE SayAll([R EXCEPT !.map = m], 0, <<Record(R.me, m)>>)
        tree == TreesOf(m, R.me)
        w == [d \in Routers |-> tree[d][R.me]]
        paths(s) == {[domain |-> d, path |-> w[d]] : d \in {d \in Routers : w[d] # IF s = new THEN <<>> ELSE R.way[d]}}
        said(s) == IF paths(s) = {} THEN <<>>
                   ELSE <<[kind |-> "paths", of |-> paths(s)]>>
        B == [A EXCEPT !.tree = tree, !.way = w,
                       !.out = [s \in Routers |-> IF Has(R, s) THEN @[s] \o said(s) ELSE @[s]]]
        C == [B EXCEPT !.held = @ \/ B.remote \ Heard(B) # {}, !.remote = @ \cup Heard(B)]
        fresh == {p \in Routers \X Ids : p[2] \in C.link[p[1]].offers \ C.link[p[1]].taken /\ Accepts(C, p[1])}
        over == {p \in Routers \X Ids : p[2] \in C.link[p[1]].taken /\ ~Accepts(C, p[1])}
        D == [C EXCEPT !.link = [s \in Routers |-> [@[s] EXCEPT !.taken = IF Accepts(C, s) THEN C.link[s].offers ELSE {}]]]
        E == LoseEach(FindEach(D, Each(fresh)), Each(over))
    IN SettleAll(Offer(Tell(E)))

(* What a link brings. *)

IsNewer(R, m) == IF Mutant = "older_record" THEN m.gen >= R.map[m.of].gen - 1 /\ Record(m.of, R.map) # m
                 ELSE m.gen > R.map[m.of].gen

Told(R, s, i, on) ==
    IF on
    THEN LET T == [R EXCEPT !.link[s].offers = @ \cup {i}]
         IN IF Accepts(R, s) THEN Find([T EXCEPT !.link[s].taken = @ \cup {i}], i, s) ELSE T
    ELSE LET T == [R EXCEPT !.link[s].offers = @ \ {i}, !.link[s].taken = @ \ {i}]
         IN IF i \in R.link[s].taken THEN Lose(T, i, s) ELSE T

Max(a, b) == IF a > b THEN a ELSE b

Repeat(R, m) ==  \* each number leaves by each exit once
    LET i == m.life
        new == {e \in R.table[i].exits : m.number \notin R.table[i].passed[e] \/ Mutant = "no_window"}
        said == Data(i, m.number, Append(m.by, R.me))
    IN [R EXCEPT !.table[i].high = Max(@, m.number),
                 !.table[i].passed = [e \in Routers |-> IF e \in new THEN @[e] \cup {m.number} ELSE @[e]],
                 !.out = [e \in Routers |-> IF e \in new \ {R.me} THEN Append(@[e], said) ELSE @[e]],
                 !.got = IF R.me \in new THEN Append(@, <<i, m.number>>) ELSE @]

PassOn(R, m) ==  \* a mark
    [R EXCEPT !.table[m.life].high = Max(@, m.number),
              !.out = [e \in Routers |-> IF e \in R.table[m.life].exits \ {R.me} THEN Append(@[e], m) ELSE @[e]]]

Comes(R, m, from) == R.table[m.life].at = from /\ R.table[m.life].joined

RECURSIVE Read(_, _, _)
Read(R, s, said) ==
    IF said = <<>> THEN R
    ELSE LET m == Head(said)
             next == CASE m.kind = "record" ->
                            IF m.of = R.me \/ ~IsNewer(R, m) THEN R
                            ELSE LET L == [R EXCEPT !.map[m.of] = [gen |-> m.gen, to |-> m.to]]
                                 IN IF Mutant = "not_passed_on" THEN L ELSE SayAll(L, s, <<m>>)
                       [] m.kind = "paths" ->
                            LET At(d) == {p \in m.of : p.domain = d}
                            IN [R EXCEPT !.link[s].paths = [d \in Routers |-> IF At(d) = {} THEN @[d]
                                                                             ELSE (CHOOSE p \in At(d) : TRUE).path]]
                       [] m.kind = "interest" -> Hear(R, s, m.domain, m.on)
                       [] m.kind = "source" -> Told(R, s, m.life, m.on)
                       [] m.kind = "data" -> IF Comes(R, m, s) THEN Repeat(R, m) ELSE R
                       [] m.kind = "mark" -> IF Comes(R, m, s) THEN PassOn(R, m) ELSE R
         IN Read(next, s, Tail(said))

Changes(R, said) ==  \* whether ways may have changed
    \E k \in DOMAIN said : said[k].kind = "paths" \/ (said[k].kind = "record" /\ said[k].of # R.me /\ IsNewer(R, said[k]))

ReadAll(R, s, said) ==
    LET A == Read(R, s, said) IN IF Changes(R, said) THEN Reconsider(A, 0) ELSE A

RECURSIVE Records(_, _)
Records(m, set) ==
    IF set = {} THEN <<>> ELSE LET n == CHOOSE a \in set : \A b \in set : a <= b IN <<Record(n, m)>> \o Records(m, set \ {n})

LinkBegins(R, s) ==
    LET known == IF Mutant = "half_exchange" THEN <<>> ELSE Records(R.map, Routers \ {R.me})
        A == [R EXCEPT !.link[s] = [NoLink EXCEPT !.state = "begun"]]
    IN Reconsider(Say(A, s, <<Record(R.me, R.map)>> \o known), s)

LinkEnds(R, s) ==
    LET A == [R EXCEPT !.link[s] = NoLink,
                       !.table = [i \in Ids |-> [@[i] EXCEPT !.exits = @ \ {s}, !.passed[s] = {}]]]
    IN LoseEach(Reconsider(A, 0), Each({s} \X R.link[s].taken))

-------------------------------------------------------------------------------
(* Actions. *)

(* The variables after a step of a router, when `w` is under way besides. *)
Put(R, w) ==
    /\ map' = [map EXCEPT ![R.me] = R.map]
    /\ way' = [way EXCEPT ![R.me] = R.way]
    /\ link' = [link EXCEPT ![R.me] = R.link]
    /\ table' = [table EXCEPT ![R.me] = R.table]
    /\ remote' = [remote EXCEPT ![R.me] = R.remote]
    /\ held' = [held EXCEPT ![R.me] = R.held]
    /\ want' = [want EXCEPT ![R.me] = R.want]
    /\ got' = [got EXCEPT ![R.me] = R.got]
    /\ wire' = [w EXCEPT ![R.me] = [s \in Routers |-> IF R.out[s] = <<>> \/ Of(R.me, s) \notin alive THEN @[s]
                                                      ELSE Append(@[s], R.out[s])]]

Ends == {e \in Routers \X Routers : Of(e[1], e[2]) \in Links /\ e[1] # e[2]}
Under == Cardinality(UNION {{<<e, k>> : k \in DOMAIN wire[e[1]][e[2]]} : e \in Ends})
Calm == Under <= Room
Silent == \A e \in Ends : wire[e[1]][e[2]] = <<>>
Late == Silent \/ ("slow" \in Faults /\ Calm)

Want(d) ==  \* a receiver begins, or the last one leaves
    /\ Calm /\ turns > 0 /\ ~want[d]
    /\ turns' = turns - 1
    /\ LET R == New([Begin(d) EXCEPT !.want = TRUE]) IN Put(R, wire) /\ source' = source
    /\ UNCHANGED <<alive, breaks>>

Leave(d) ==
    /\ Calm /\ turns > 0 /\ want[d]
    /\ turns' = turns - 1
    /\ LET R == Ended([Begin(d) EXCEPT !.want = FALSE, !.got = <<>>]) IN Put(R, wire) /\ source' = source
    /\ UNCHANGED <<alive, breaks>>

Looks == remote[Home] # {}

Resolve ==  \* the portal beside the source finds it
    /\ Calm /\ Looks /\ source.life \notin source.found
    /\ source' = [source EXCEPT !.found = @ \cup {source.life}]
    /\ Put(Find(Begin(Home), source.life, Home), wire)
    /\ UNCHANGED <<alive, breaks, turns>>

Gone(i) ==  \* and hears of the end of an earlier life
    /\ Calm /\ i \in source.found /\ i # source.life
    /\ source' = [source EXCEPT !.found = @ \ {i}]
    /\ Put(Lose(Begin(Home), i, Home), wire)
    /\ UNCHANGED <<alive, breaks, turns>>

Restart ==  \* the source begins again, as another one
    /\ Calm /\ source.life < Lives
    /\ source' = [source EXCEPT !.life = @ + 1, !.sent = 0]
    /\ UNCHANGED <<map, way, link, table, remote, held, want, wire, alive, got, breaks, turns>>

Send ==  \* its router hears it if it has joined it
    /\ Calm /\ source.sent < Messages
    /\ source' = [source EXCEPT !.sent = @ + 1]
    /\ LET m == Data(source.life, source.sent + 1, <<>>)
           R == Begin(Home)
       IN Put(IF Comes(R, m, Home) THEN Repeat(R, m) ELSE R, wire)
    /\ UNCHANGED <<alive, breaks, turns>>

Hello == <<[kind |-> "hello"]>>

Deliver(r, s) ==  \* s reads what one step of r has said
    /\ wire[r][s] # <<>>
    /\ LET said == Head(wire[r][s])
           R == IF said = Hello THEN LinkBegins(Begin(s), r) ELSE ReadAll(Begin(s), r, said)
       IN /\ Put(R, [wire EXCEPT ![r][s] = Tail(@)])
          /\ source' = IF s = Home THEN [source EXCEPT !.found = R.found] ELSE source
    /\ UNCHANGED <<alive, breaks, turns>>

Cut(l) ==  \* what is under way is lost
    /\ Calm /\ breaks > 0 /\ l \in alive \cap Weak
    /\ breaks' = breaks - 1
    /\ alive' = alive \ {l}
    /\ wire' = [r \in Routers |-> [s \in Routers |-> IF r # s /\ Of(r, s) = l THEN <<>> ELSE wire[r][s]]]
    /\ UNCHANGED <<map, way, link, table, remote, held, want, source, got, turns>>

Step(R) ==
    /\ Put(R, wire)
    /\ source' = IF R.me = Home THEN [source EXCEPT !.found = R.found] ELSE source
    /\ UNCHANGED <<alive, breaks, turns>>

Notice(r, s) ==  \* one end hears of it
    /\ Calm /\ Of(r, s) \notin alive /\ link[r][s].state # "none"
    /\ Step(LinkEnds(Begin(r), s))

Connect(l) ==  \* both ends have heard of it
    /\ Calm /\ l \in Weak \ alive
    /\ \A e \in Ends : Of(e[1], e[2]) = l => link[e[1]][e[2]].state = "none"
    /\ alive' = alive \cup {l}
    /\ wire' = [r \in Routers |-> [s \in Routers |-> IF r # s /\ Of(r, s) = l THEN <<Hello>> ELSE wire[r][s]]]
    /\ UNCHANGED <<map, way, link, table, remote, held, want, source, got, breaks, turns>>

Steady(r, s) ==  \* a link counts from now on
    /\ Calm /\ link[r][s].state = "begun"
    /\ Step(Reconsider([Begin(r) EXCEPT !.link[s].state = "up"], 0))

Hold(r) ==  \* interest was held for long enough
    /\ Late /\ held[r]
    /\ LET R == [Begin(r) EXCEPT !.held = FALSE]
           over == IF Mutant = "kept_interest" THEN {} ELSE R.remote \ Heard(R)
       IN Step(IF over = {} THEN R ELSE Ended([R EXCEPT !.remote = @ \ over]))

End(r, i) ==  \* a lost source was not found again in time
    /\ Late /\ table[r][i].at # 0 /\ ~table[r][i].there /\ Mutant # "lost_stays"
    /\ LET R == Close(Begin(r), i, Routers) IN Step([R EXCEPT !.table[i] = Unknown])

Next ==
    \/ \E d \in Receivers : Want(d) \/ Leave(d)
    \/ Resolve \/ Restart \/ Send
    \/ \E i \in Ids : Gone(i)
    \/ \E r, s \in Routers : Deliver(r, s) \/ Notice(r, s) \/ Steady(r, s)
    \/ \E l \in Links : Cut(l) \/ Connect(l)
    \/ \E r \in Routers : Hold(r) \/ \E i \in Ids : End(r, i)

-------------------------------------------------------------------------------
(* The beginning. *)

Full == [n \in Routers |-> [gen |-> 0, to |-> Peers(n)]]

(* All is settled when each router r has the map m[r], and everybody has been told what the others think. *)
Settled(m) ==
    LET tree == [r \in Routers |-> TreesOf(m[r], r)]
        w == [r \in Routers |-> [d \in Routers |-> tree[r][d][r]]]
        Child(r, d, s) == s \in Peers(r) /\ w[r][d] # <<>> /\ tree[r][d][s] = Append(w[r][d], s)
        Behind(r, s) == Child(r, Home, s) /\ \E d \in Wants \ {r} : IsPrefix(tree[r][Home][s], tree[r][Home][d])
        Taken(r, s) == /\ s \in Peers(r) /\ Behind(s, r)
                       /\ Len(w[r][Home]) > 1 /\ w[r][Home][Len(w[r][Home]) - 1] = s
                       /\ w[r][Home] = Append(w[s][Home], r) \/ Mutant = "any_path"
        Exits(r) == {s \in Peers(r) : Behind(r, s)} \cup (Wants \cap {r})
        Joins(r) == (r = Home /\ Exits(r) # {}) \/ \E s \in Routers : Taken(r, s)
    IN /\ map = m
       /\ way = w
       /\ link = [r \in Routers |-> [s \in Routers |->
              IF s \notin Peers(r) THEN NoLink
              ELSE [state |-> "up", paths |-> w[s], hears |-> {d \in Wants : Child(s, d, r)},
                    told |-> {d \in Wants : Child(r, d, s)}, offers |-> IF Behind(s, r) THEN {1} ELSE {},
                    taken |-> IF Taken(r, s) THEN {1} ELSE {}]]]
       /\ table = [r \in Routers |-> [i \in Ids |->
              IF i > 1 \/ ~Joins(r) THEN Unknown
              ELSE [Unknown EXCEPT !.at = IF r = Home THEN Home ELSE CHOOSE s \in Routers : Taken(r, s),
                                   !.there = TRUE, !.joined = TRUE, !.exits = Exits(r)]]]
       /\ remote = [r \in Routers |-> {d \in Wants \ {r} : \E s \in Peers(r) : Child(s, d, r)}]
       /\ source = [life |-> 1, sent |-> 0, found |-> IF Wants = {} THEN {} ELSE {1}]

(* A map of everybody's own: a chain of all routers. Router 1 thinks that it is in the order of their numbers. *)
Orders == {p \in [Routers -> Routers] : p[1] = Home /\ \A a, b \in Routers : a # b => p[a] # p[b]}
Chain(p) == [n \in Routers |-> [gen |-> 0, to |-> {s \in Routers : \E k \in 1..(Size - 1) : {p[k], p[k + 1]} = {n, s}}]]
Guesses == {g \in [Routers -> Orders] : \A k \in Routers : g[Home][k] = k}

Init ==
    /\ IF "differ" \in Faults THEN \E g \in Guesses : Settled([r \in Routers |-> Chain(g[r])]) ELSE Settled([r \in Routers |-> Full])
    /\ held = [r \in Routers |-> FALSE]
    /\ want = [r \in Routers |-> r \in Wants]
    /\ wire = [r \in Routers |-> [s \in Routers |-> <<>>]]
    /\ alive = Links
    /\ got = [r \in Routers |-> <<>>]
    /\ breaks = Breaks /\ turns = Turns

Spec == Init /\ [][Next]_vars

Fairness ==
    /\ \A r, s \in Routers : WF_vars(Deliver(r, s)) /\ WF_vars(Notice(r, s)) /\ WF_vars(Steady(r, s))
    /\ \A r \in Routers : WF_vars(Hold(r)) /\ \A i \in Ids : WF_vars(End(r, i))
    /\ \A l \in Links : WF_vars(Connect(l))
    /\ WF_vars(Resolve) /\ \A i \in Ids : WF_vars(Gone(i))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
IsUp(r, s) == Of(r, s) \in alive /\ link[r][s].state = "up" /\ link[s][r].state = "up"

RECURSIVE Spread(_)
Spread(set) ==
    LET more == set \cup {s \in Routers : \E r \in set : r # s /\ IsUp(r, s)} IN IF more = set THEN set ELSE Spread(more)
Reached(r) == Spread({r})

Rests ==  \* everything has been said, read and waited for
    /\ Silent
    /\ \A e \in Ends : LET state == link[e[1]][e[2]].state IN state # "begun" /\ (Of(e[1], e[2]) \notin alive => state = "none")
    /\ \A r \in Routers : ~held[r] /\ \A i \in Ids : table[r][i].at # 0 => table[r][i].there
    /\ source.found = IF Looks THEN {source.life} ELSE {}

NoCircle ==  \* B1: no message is under way to a router that it has passed
    \A e \in Ends : \A k \in DOMAIN wire[e[1]][e[2]] : \A n \in DOMAIN wire[e[1]][e[2]][k] :
        LET m == wire[e[1]][e[2]][k][n] IN m.kind = "data" => \A i \in DOMAIN m.by : m.by[i] # e[2]

OwnPath ==  \* B2: what a router is about to take has come by the path that it thinks of
    \A e \in Ends : wire[e[1]][e[2]] # <<>> =>
        LET said == Head(wire[e[1]][e[2]])
            Taken(m) == m.kind = "data" /\ table[e[2]][m.life].at = e[1] /\ table[e[2]][m.life].joined
        IN \A n \in DOMAIN said : Taken(said[n]) => Append(said[n].by, e[2]) = way[e[2]][Home]

Once ==  \* B3: a receiver gets no message twice, and those of a life in order
    \A d \in Routers : \A k, n \in DOMAIN got[d] :
        k < n /\ got[d][k][1] = got[d][n][1] => got[d][k][2] < got[d][n][2]

SameTrees ==  \* B4: routers with the same map think the same of each other's paths
    \A r, s \in Routers : r # s /\ map[r] = map[s] => \A d \in Routers : way[s][d] = TreesOf(map[r], r)[d][s]

Agreed ==  \* B5: at rest who reaches each other has the same map of each other
    Rests => \A r \in Routers : \A s \in Reached(r) : \A n \in Reached(r) : map[r][n] = map[s][n]

InterestEnds ==  \* B6: at rest a router knows of interest where a receiver is that it reaches, and of no other
    Rests => \A r \in Routers : remote[r] = {d \in Reached(r) \ {r} : want[d]}

SourceEnds ==  \* B7: at rest nobody repeats a life of the source that is over, or one that nobody wants
    Rests => \A r \in Routers : \A i \in Ids :
        table[r][i].at # 0 => i = source.life /\ \E d \in Reached(r) : want[d]

RECURSIVE Carries(_, _)
Carries(r, d) ==  \* what r has of the source comes to the receiver in domain d
    LET c == table[r][source.life]
    IN c.joined /\ \E e \in c.exits : IF e = r THEN d = r ELSE table[e][source.life].at = r /\ Carries(e, d)

Served ==  \* B8: at rest what the source sends comes to every receiver that can be reached
    Rests => \A d \in Reached(Home) : want[d] => Carries(Home, d)

ComesToRest ==  \* B9: the network comes to rest whenever it is left alone for long enough
    []<>Rests
=============================================================================
