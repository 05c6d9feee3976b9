---------------------------- MODULE ProxyElection ----------------------------
(* Which store stands in for a source that fell silent.                                                               *)
(*                                                                                                                    *)
(* In the code: `core/store/proxy_election.py`, one machine for each store, beside the record that the store keeps of *)
(* the source (`clients.py`, `client_lifetime.py`). In the guide: proxy sources. A proxy registers like a source,     *)
(* with a token; stores talk about the election by these registrations alone.                                         *)
(*                                                                                                                    *)
(* There is no time: a wait may end whenever it runs. Whoever lives may register anywhere at any time, and again;     *)
(* what was under way when it ended may still come, late, or never.                                                   *)
(*                                                                                                                    *)
(* Bounds that could hide an error: a store draws each of its Values once; stores do not restart; who was thought     *)
(* silent does not speak up again without registering. Every store has state of the source.                           *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Stores,    \* how many
    Values,    \* token values that a store may draw: 1..Values
    Lives,     \* lives of the source
    Repaired,  \* FALSE: as documented. Any proxy moves the RegID, and values alone are compared
    Quorum,    \* a proxy needs a quorum of stores
    Faults,    \* "suspect": who lives may be thought silent
    Mutant     \* "none", or which rule is broken

VARIABLES
    store,   \* each store: the chart's state; the token it holds to (`holder`); whose registration it has (`by`) and
             \* whether that one is active; the newest life of the source it knows; values of its proxies that ended;
             \* whether it was told that its proxy has a quorum
    proxy,   \* each store's own proxy: its token, or None
    granted, \* each store's own proxy: where it was let in, if that is asked for
    source,  \* the source: its life, and whether it lives
    late     \* registrations under way whose sender has ended, each with the store they are for

vars == <<store, proxy, granted, source, late>>

Ids == 1..Stores
None == [value |-> 0, of |-> 0, life |-> 0]
Token(value, of, life) == [value |-> value, of |-> of, life |-> life]
Source(life) == Token(0, 0, life)  \* a registration of the source itself carries no token

Lower(t, u) ==
    t.value < u.value \/ (Repaired /\ t.value = u.value /\ t.of < u.of)
Same(t, u) == t.value = u.value /\ t.of = u.of

Standing(s) == s.state \in {"STANDING", "SERVING"}
Majority(stores) == 2 * Cardinality(stores) > Stores

-------------------------------------------------------------------------------
(* One store after an input. Its proxy runs as long as it stands. *)

Ended(s) == IF Standing(s) THEN s.ended \cup {s.holder.value} ELSE s.ended
Learnt(s, life) == IF life > s.life THEN life ELSE s.life

Returned(s, life) ==
    [s EXCEPT !.state = "WATCHING", !.holder = None, !.ended = Ended(s), !.life = Learnt(s, life), !.backed = FALSE]
Silenced(s) ==
    IF s.state \in {"WAITING", "STANDING"} THEN s
    ELSE [s EXCEPT !.state = "WAITING", !.holder = None, !.ended = Ended(s), !.backed = FALSE]
Following(s, t) ==
    [s EXCEPT !.state = "FOLLOWING", !.holder = t, !.ended = Ended(s), !.life = Learnt(s, t.life), !.backed = FALSE]
Settled(s) ==  \* our proxy registered here, or has a quorum: is that all it needs?
    IF s.by = s.holder /\ (~Quorum \/ s.backed \/ Mutant = "alone") THEN [s EXCEPT !.state = "SERVING"] ELSE s

Admits(i, t) ==
    LET s == store[i]
        mine == t.of = i /\ t.value \in s.ended
        over == Repaired /\ t.life < s.life
    IN /\ ~(mine /\ Mutant # "own_ended")
       /\ CASE s.state = "WATCHING" -> ~Repaired \/ Mutant = "theft"
            [] s.state = "WAITING" -> ~over \/ Mutant = "any_life"
            [] OTHER -> Same(t, s.holder) \/ Lower(t, s.holder)  \* stores may differ in which life was the last

Registered(i, t) ==
    LET s == [store[i] EXCEPT !.by = t, !.active = TRUE]
    IN IF t.of = 0 THEN Returned(s, t.life)
       ELSE IF Standing(s) /\ Same(t, s.holder) THEN Settled(s)
       ELSE Following(s, t)

(* Store i becomes s, for it let `who` in: if its proxy ends by that, what it had under way is late. *)
Become(i, s, rest, who) ==
    LET stops == proxy[i] # None /\ ~(Standing(s) /\ Same(s.holder, proxy[i])) /\ Mutant # "no_stop"
    IN /\ store' = [store EXCEPT ![i] = s]
       /\ proxy' = IF stops THEN [proxy EXCEPT ![i] = None] ELSE proxy
       /\ granted' = [j \in Ids |-> IF j = i /\ stops THEN {}
                                    ELSE IF Quorum /\ who # None /\ proxy[j] = who THEN granted[j] \cup {i}
                                    ELSE granted[j]]
       /\ late' = IF stops THEN rest \cup {[token |-> proxy[i], to |-> j] : j \in Ids} ELSE rest

-------------------------------------------------------------------------------
Fresh == [state |-> "WATCHING", holder |-> None, by |-> Source(1), active |-> TRUE, life |-> 1, ended |-> {},
          backed |-> FALSE]

Init ==
    /\ store = [i \in Ids |-> Fresh]
    /\ proxy = [i \in Ids |-> None]
    /\ granted = [i \in Ids |-> {}]
    /\ source = [life |-> 1, up |-> TRUE]
    /\ late = {}

Living(t) == IF t.of = 0 THEN source.up /\ source.life = t.life ELSE proxy[t.of] = t

Silent(i) ==  \* the activity timeout of whoever has the RegID at this store is over
    /\ store[i].active
    /\ ~Living(store[i].by) \/ "suspect" \in Faults
    /\ Become(i, Silenced([store[i] EXCEPT !.active = FALSE]), late, None)
    /\ UNCHANGED source

Stand(i, value) ==  \* its turn has come
    /\ store[i].state = "WAITING"
    /\ value \notin store[i].ended
    /\ LET t == Token(value, i, store[i].life)
       IN /\ store' = [store EXCEPT ![i] = [@ EXCEPT !.state = "STANDING", !.holder = t]]
          /\ proxy' = [proxy EXCEPT ![i] = t]
    /\ UNCHANGED <<granted, source, late>>

WaitsAnew(i) ==
    LET s == store[i]
    IN Become(i, [s EXCEPT !.state = "WAITING", !.holder = None, !.ended = Ended(s), !.backed = FALSE], late, None)

GiveUp(i) ==  \* its proxy did not get what it needs in time, or is over: a store has counted a later life
    /\ Standing(store[i])
    /\ WaitsAnew(i)
    /\ UNCHANGED source

Gain(i) ==  \* its proxy is registered with a quorum of stores
    /\ Quorum /\ Standing(store[i]) /\ ~store[i].backed
    /\ Majority(granted[i]) \/ Mutant = "few"
    /\ store' = [store EXCEPT ![i] = Settled([@ EXCEPT !.backed = TRUE])]
    /\ UNCHANGED <<proxy, granted, source, late>>

Lapse(i) ==  \* and is so no more: stores may be cut off from it
    /\ Standing(store[i]) /\ store[i].backed
    /\ IF store[i].state = "SERVING" THEN WaitsAnew(i)
       ELSE store' = [store EXCEPT ![i].backed = FALSE] /\ UNCHANGED <<proxy, granted, late>>
    /\ UNCHANGED source

Arrive(i, t) ==
    LET message == [token |-> t, to |-> i]
        s == store[i]
        admitted == IF t.of = 0 THEN ~(s.active /\ s.by.of = 0 /\ s.by # t)  \* T6: one life after the other
                    ELSE Admits(i, t)
    IN /\ IF admitted
          THEN Become(i, Registered(i, t), late \ {message}, t)
          ELSE /\ late' = late \ {message}
               /\ store' = IF Mutant = "refused_counts" THEN [store EXCEPT ![i].by = t] ELSE store
               /\ UNCHANGED <<proxy, granted>>
       /\ UNCHANGED source

Proxy(i, of, value, life) ==  \* the registration of a proxy reaches store i
    LET t == Token(value, of, life)
    IN /\ proxy[of] = t \/ [token |-> t, to |-> i] \in late
       /\ Arrive(i, t)

Original(i, life) ==  \* the registration of the source itself
    /\ (source.up /\ source.life = life) \/ [token |-> Source(life), to |-> i] \in late
    /\ Arrive(i, Source(life))

Lose(i) ==  \* nothing of what is late for this store comes any more
    /\ \E m \in late : m.to = i
    /\ late' = {m \in late : m.to # i}
    /\ UNCHANGED <<store, proxy, granted, source>>

Die ==
    /\ source.up
    /\ source' = [source EXCEPT !.up = FALSE]
    /\ late' = late \cup {[token |-> Source(source.life), to |-> i] : i \in Ids}
    /\ UNCHANGED <<store, proxy, granted>>

Return ==
    /\ ~source.up
    /\ source.life < Lives
    /\ source' = [life |-> source.life + 1, up |-> TRUE]
    /\ UNCHANGED <<store, proxy, granted, late>>

Next ==
    \/ \E i \in Ids : \/ Silent(i) \/ GiveUp(i) \/ Gain(i) \/ Lapse(i) \/ Lose(i)
                      \/ \E value \in 1..Values : Stand(i, value)
                      \/ \E of \in Ids, value \in 1..Values, life \in 1..Lives : Proxy(i, of, value, life)
                      \/ \E life \in 1..Lives : Original(i, life)
    \/ Die \/ Return

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
NoTheft ==  \* E1: while the source lives and has registered at a store, no proxy has its RegID there
    "suspect" \in Faults \/ \A i \in Ids :
        source.up /\ store[i].life = source.life => store[i].by = Source(source.life) /\ store[i].state = "WATCHING"

OwnProxy ==  \* E2: a store runs a proxy exactly while it stands, and that one
    \A i \in Ids : IF Standing(store[i]) THEN proxy[i] = store[i].holder ELSE proxy[i] = None

Agreed ==  \* E3: the token that a store holds to is that of the registration it has
    \A i \in Ids : store[i].state \in {"SERVING", "FOLLOWING"} => store[i].by = store[i].holder

OneRemains ==  \* E4: of two proxies that stand, one at least gives way when it hears of the other
    \A i, j \in Ids : i # j /\ Standing(store[i]) /\ Standing(store[j]) =>
        Lower(store[i].holder, store[j].holder) \/ Lower(store[j].holder, store[i].holder)

NotOver ==  \* E5: no store that waits follows a proxy of a life that it knows to be over
    [][\A i \in Ids : store[i].state = "WAITING" /\ store'[i].state = "FOLLOWING" =>
        store'[i].holder.life = store'[i].life]_vars

NotBack ==  \* E6: a store never follows a proxy of its own
    \A i \in Ids : store[i].state = "FOLLOWING" => store[i].holder.of # i

Backed ==  \* E7: where a quorum is required, no proxy serves that a quorum of stores did not let in
    Quorum => \A i \in Ids : store[i].state = "SERVING" => Majority(granted[i])
=============================================================================
