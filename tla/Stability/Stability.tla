----------------------------- MODULE Stability -----------------------------
(* A source that numbers messages and lives several times, one life after the other, and the stores that keep them.   *)
(*                                                                                                                    *)
(* In the code: the source is `core/source/endpoint.py` with `registration_set.py`, `lineage.py`, `resume_point.py`,  *)
(* `stability.py` and `quorum.py`; a store is `core/store/endpoint.py` with `registry.py`, `repository.py`,           *)
(* `source_history.py`, `gap_filling.py` and `message_window.py`. In the guide: message stability, quorum/consensus,  *)
(* groups, and where a source resumes.                                                                                *)
(*                                                                                                                    *)
(* A store's disk keeps what was written before its last sync; a crash takes the rest. A stream keeps its order and   *)
(* may lose messages. An SRI is repeated so often that the present one may arrive at any time. What a store asks the  *)
(* source for is answered in one step. Numbers begin at 1 (in the code at 0); number 0 is none, life 0 is nobody.     *)
(*                                                                                                                    *)
(* Bounds that could hide an error: a store takes no data while a grant waits for its disk, and the connections that  *)
(* a crash breaks are noticed at once.                                                                                *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Layout,     \* the groups and their stores, see Sizes and GroupOf
    Inside,     \* which stores of a group must hold a message: "quorum", "all", "all_active" (ume_store_group)
    Between,    \* in which groups: "any", "majority", "all", "all_active"
    Consensus,  \* where a source resumes: "highest", "majority", "lowest"
    Repairs,    \* of the documented rules: "every_group", "one_life", "holes", "vote"
    Numbers,    \* messages are numbered up to here
    Flight,     \* messages that may be in flight
    Lives,      \* of the source
    Crashes,    \* of stores, in all
    Faults,     \* what else may go wrong: "slow" (requests, SRIs and answers take time), "lag" (the disks of several
                \* stores do), "lose" (data on a stream), "late" (what is under way outlives a life), "wipe" (of a disk),
                \* "replace" (a wipe while a quorum of the group has its memory),
                \* "rival" (a life is cut off from its stores, another process begins one, and the first comes back)
    Paths,      \* which stores a process reaches, see Connected: "open", "apart", "away", "once", "return", "ring",
                \* "groups"
    Memory,     \* a history names so many lives; older ones are forgotten
    Mutant      \* "none", or which rule is broken

VARIABLES
    source,   \* its life, whether it may send, where it resumed, the history of its lives; the count of lives that it
              \* wants stores to know (claim), its term, and whether that is a newer one than it began with (again)
    reg,      \* its registration with each store, and what the store granted
    window,   \* what it sent and has not released: acknowledged by whom, stable or not
    stream,   \* to each store: numbers under way
    back,     \* from each store: grants and acknowledgements under way
    store,    \* each store: what it knows of the source, and what it holds of each number: of which life
    disk,     \* what a crash leaves of that
    safe,     \* what was ever reported stable, as <<life, number>>
    crashes,  \* so far
    aside     \* the other process: its source, reg and window while it is cut off

vars == <<source, reg, window, stream, back, store, disk, safe, crashes, aside>>

Sizes ==  \* of the groups, as configured
    CASE Layout \in {"one", "backup"} -> <<1>> [] Layout = "two" -> <<2>> [] Layout = "three" -> <<3>>
      [] Layout = "one and one" -> <<1, 1>> [] Layout = "one and two" -> <<1, 2>>
      [] Layout = "three and one" -> <<3, 1>>
GroupOf ==  \* the group of each store
    CASE Layout = "one" -> <<1>> [] Layout \in {"two", "backup"} -> <<1, 1>> [] Layout = "three" -> <<1, 1, 1>>
      [] Layout = "one and one" -> <<1, 2>> [] Layout = "one and two" -> <<1, 2, 2>>
      [] Layout = "three and one" -> <<1, 1, 1, 2>>

Stores == DOMAIN GroupOf
Groups == DOMAIN Sizes
Range == 1..Numbers
Several == Len(Sizes) > 1 /\ Between \in {"any", "all_active"}

Max(a, b) == IF a > b THEN a ELSE b
Largest(S) == CHOOSE n \in S : \A m \in S : m <= n
Least(S) == CHOOSE n \in S : \A m \in S : m >= n
From(n, S) == Least({m \in n..(Numbers + 1) : m >= n /\ m \notin S})  \* the first number from n on that is not in S

-------------------------------------------------------------------------------
(* Groups. *)

Of(g, S) == {s \in S : GroupOf[s] = g}
Most(g, S) == 2 * Cardinality(Of(g, S)) > Sizes[g]
Every(g, S) == Cardinality(Of(g, S)) >= Sizes[g]
Lively(present) == {g \in Groups : Most(g, present)}

Across(met, lively) ==
    CASE Between = "any"        -> met # {}
      [] Between = "majority"   -> 2 * Cardinality(met) > Len(Sizes)
      [] Between = "all"        -> met = Groups
      [] Between = "all_active" -> lively # {} /\ lively \subseteq met

Registered(S) ==  \* enough stores to go on with
    Across({g \in Groups : IF Inside = "all" THEN Every(g, S) ELSE Most(g, S)}, Lively(S))

InGroup(g, held, present) ==
    CASE Mutant = "present_quorum" -> 2 * Cardinality(Of(g, held)) > Cardinality(Of(g, present))
      [] Inside = "quorum"         -> Most(g, held)
      [] Inside = "all"            -> Every(g, held)
      [] Inside = "all_active"     -> Most(g, held) /\ Of(g, present) \subseteq held

IsStable(held, present) == Across({g \in Groups : InGroup(g, held, present)}, Lively(present))

-------------------------------------------------------------------------------
(* Histories: lives and where each began, oldest first. *)

Began(life, first) == [life |-> life, first |-> first]
Continued(lives, life, first) ==
    LET Before(old) == old.first < first IN Append(SelectSeq(lives, Before), Began(life, first))

Forgotten == -1  \* stands for the lives before those that a history names
Remembered(lives) ==
    IF Len(lives) <= Memory THEN lives
    ELSE <<Began(Forgotten, lives[1].first)>> \o SubSeq(lives, Len(lives) - Memory + 2, Len(lives))

Owner(lives, n) ==
    LET before == {k \in DOMAIN lives : lives[k].first <= n} IN IF before = {} THEN 0 ELSE lives[Largest(before)].life

Agreed(ours, theirs) ==  \* up to there they agree: to the newest life that both name, because a life has one history
    LET named(lives) == {lives[k] : k \in DOMAIN lives}
        both == {one \in named(ours) \cap named(theirs) : one.life # Forgotten}
    IN IF both = {} THEN 1 ELSE Largest({one.first : one \in both})

Parting(ours, theirs) ==  \* the first number that they may ascribe to different lives, 0: none
    LET Differ(a, b) == IF Mutant = "forgotten_agrees" THEN Forgotten \notin {a, b} /\ a # b ELSE a # b \/ a = Forgotten
        differ == {n \in Agreed(ours, theirs)..(Numbers + 1) : LET a == Owner(ours, n)
                                                                   b == Owner(theirs, n)
                                                               IN a # 0 /\ b # 0 /\ Differ(a, b)}
    IN IF differ = {} THEN 0 ELSE Least(differ)

-------------------------------------------------------------------------------
(* The source. `here` is all of it that a step may change: source, reg, window, safe. *)

NoGrant == [high |-> 0, known |-> 0, blank |-> FALSE, term |-> 0, lives |-> <<>>, told |-> 0]
Counted(grant) ==  \* all that matters of it once a life has begun
    [NoGrant EXCEPT !.term = grant.term, !.blank = grant.blank]
Nobody(life, state) == [life |-> life, state |-> state, waited |-> FALSE, resume |-> 0, claim |-> 0, term |-> 0,
                        again |-> FALSE, lives |-> <<>>]
NoWindow == [trail |-> 0, next |-> 0, acked |-> [s \in Stores |-> {}], stable |-> {}]
With(state) == [s \in Stores |-> [state |-> state, grant |-> NoGrant, owes |-> FALSE]]
Absent(life) == [source |-> Nobody(life, "DOWN"), reg |-> With("none"), window |-> NoWindow]

Here == [source |-> source, reg |-> reg, window |-> window, safe |-> safe]
Become(here) == source' = here.source /\ reg' = here.reg /\ window' = here.window /\ safe' = here.safe

Running == source.state \in {"REGISTERING", "ACTIVE", "SUSPENDED"}
Announced == source.state \in {"ACTIVE", "SUSPENDED"}
Agrees == "one_life" \in Repairs /\ Mutant # "own_count"  \* a quorum must know the term before this life may send
Told == IF source.again THEN source.term ELSE 0  \* what a request says beside the claim
Counting(r) == {s \in Stores : r[s].state \in {"registered", "renewing"}}
Present(r) == {s \in Stores : r[s].state = "registered"}

Voters(r) ==  \* a store that lost its disk has no vote about older lives, unless nobody in its group can know better
    LET counting == Counting(r)
        whole == {s \in counting : ~r[s].grant.blank}
        nobody(g) == Mutant = "few_vote" \/ Of(g, Stores) \subseteq counting
        open == {g \in Groups : ~Most(g, whole) /\ nobody(g)}
    IN IF Mutant = "blank_votes" THEN counting ELSE whole \cup {s \in counting : GroupOf[s] \in open}

Judge(here) ==  \* what is stable now is safe, and copies go from the oldest on
    LET w == here.window
        held(n) == {s \in Stores : n \in w.acked[s]}
        stable == w.stable \cup {n \in w.trail..(w.next - 1) : IsStable(held(n), Present(here.reg))}
        gone == IF Mutant = "early_release" THEN UNION {w.acked[s] : s \in Stores} \cup stable ELSE stable
        trail == IF w.next = 0 THEN 0 ELSE From(w.trail, gone)
    IN [here EXCEPT !.safe = @ \cup {<<here.source.life, n>> : n \in stable \ w.stable},
                    !.window = [w EXCEPT !.trail = trail,
                                         !.acked = [s \in Stores |-> {n \in w.acked[s] : n >= trail}],
                                         !.stable = {n \in stable : n >= trail}]]

Quorum(numbers, size) ==  \* the highest number that a majority of a group reports or exceeds; numbers: by store
    LET reach(n) == Cardinality({s \in DOMAIN numbers : numbers[s] >= n})
    IN Largest({n \in {numbers[s] : s \in DOMAIN numbers} : 2 * reach(n) > size})

ResumePoint(r) ==
    LET heard == Voters(r)
        used(grant) == IF Mutant = "held_only" THEN grant.high ELSE Max(grant.high, grant.known)
        high == [s \in heard |-> used(r[s].grant)]
        all == {high[s] : s \in heard}
        agreed == {Quorum([s \in Of(g, heard) |-> high[s]], Sizes[g]) : g \in Lively(heard)}
    IN CASE Mutant = "resume_at_newest" -> Max(1, Largest(all))
         [] Consensus = "highest"       -> Largest(all) + 1
         [] Consensus = "lowest"        -> Least(all) + 1
         [] Consensus = "majority"      -> (IF agreed = {} THEN Least(all) ELSE Largest(agreed)) + 1

Resume(here) ==  \* the history of the newest life that any store tells of goes on
    LET r == here.reg
        heard == Voters(r)
        newest == Largest({r[s].grant.told : s \in heard})
        teller == Least({s \in heard : r[s].grant.told = newest})
        first == ResumePoint(r)
    IN [here EXCEPT !.source = [@ EXCEPT !.state = "ACTIVE", !.waited = FALSE, !.resume = first,
                                         !.term = Largest({r[s].grant.term : s \in heard}),
                                         !.lives = Continued(r[teller].grant.lives, here.source.life, first)],
                    !.reg = [s \in Stores |-> [r[s] EXCEPT !.grant = Counted(@)]],
                    !.window = [NoWindow EXCEPT !.trail = first, !.next = first]]

Renewing(state) == IF state = "registered" THEN "renewing" ELSE state

Return(here) ==  \* under a newer term if there is one: then nothing counts before a store shows that it was told of it
    IF here.source.claim <= here.source.term \/ ~Agrees THEN [here EXCEPT !.source.state = "ACTIVE"]
    ELSE [here EXCEPT !.source = [@ EXCEPT !.state = "ACTIVE", !.term = here.source.claim, !.again = TRUE],
                      !.reg = [s \in Stores |-> [here.reg[s] EXCEPT !.state = Renewing(@),
                                                                    !.owes = Mutant # "no_proof"]],
                      !.window.acked = IF Mutant = "no_proof" THEN @ ELSE [s \in Stores |-> {}]]

Review(here) ==
    LET counting == Counting(here.reg)
        enough == Registered(counting)
        informed == {s \in counting : here.reg[s].grant.term >= here.source.claim}
        settled == informed \cap Voters(here.reg)
        heard == "every_group" \notin Repairs \/ ~Several \/ \A g \in Groups : Most(g, settled)
        renewed == here.source.claim > here.source.term /\ Mutant # "one_group_returns"
        returns == Registered(settled) /\ (renewed => heard)  \* a newer term needs what a beginning needs
        complete == heard /\ Registered(settled) /\ (informed = Stores \/ here.source.waited)
        judged == Judge(here)
        state == here.source.state
        Recounted(one) == IF one.grant.blank THEN [one EXCEPT !.state = Renewing(@)] ELSE one
    IN CASE state = "ACTIVE" /\ ~enough        -> [judged EXCEPT !.source.state = "SUSPENDED",
                                                                  !.reg = [s \in Stores |-> Recounted(@[s])]]
         [] state = "SUSPENDED" /\ returns     -> Return(judged)
         [] state = "REGISTERING" /\ complete  -> Resume(here)
         [] OTHER                              -> judged

OnAcks(here, s, m) ==
    IF m.life # here.source.life /\ Mutant # "any_life" THEN here
    ELSE IF here.source.state = "SUSPENDED" /\ here.source.claim > here.source.term THEN here
    ELSE IF here.reg[s].owes THEN [here EXCEPT !.reg[s].state = Renewing(@)]
    ELSE LET sent == {n \in m.numbers : n >= here.window.trail /\ n < here.window.next}
         IN Judge([here EXCEPT !.window.acked[s] = @ \cup sent])

Agree(here, s, grant) ==  \* stores that count fewer lives than another are asked again
    LET r == [here.reg EXCEPT ![s] = [@ EXCEPT !.state = "registered", !.grant = grant]]
        term == IF Agrees THEN Max(here.source.claim, grant.term) ELSE 0
        fewer(t) == r[t].state = "registered" /\ r[t].grant.term < term
    IN [here EXCEPT !.source.claim = term,
                    !.reg = [t \in Stores |-> IF fewer(t) THEN [r[t] EXCEPT !.state = "renewing"] ELSE r[t]]]

OnGrant(here, s, m) ==
    IF m.life # here.source.life THEN here
    ELSE LET state == here.source.state
             mine == here.source
             known == here.reg[s].grant.term  \* 0: the store is heard for the first time
             owes == mine.again /\ m.grant.told # mine.term /\ Mutant # "no_proof"
             heard == [here EXCEPT !.reg[s] = [state |-> "registered", grant |-> Counted(m.grant), owes |-> owes],
                                   !.window.acked[s] = {n \in @ : n <= m.grant.high}]
             another == \/ m.grant.told > mine.term  \* the store was told of a later life
                        \/ known # 0 /\ m.grant.term > Largest({known, mine.term, mine.claim})  \* or has counted one
             over == [here EXCEPT !.source = Nobody(@.life, "DOWN"), !.reg = With("none"), !.window = NoWindow]
         IN CASE state = "REGISTERING"           -> Review(Agree(here, s, m.grant))
              [] state = "SUSPENDED" /\ another -> over
              [] state = "SUSPENDED" /\ Mutant # "no_second_round" -> Review(Agree(heard, s, Counted(m.grant)))
              [] OTHER                           -> Review(heard)

-------------------------------------------------------------------------------
(* A store. Each operator gives the store after an input; `told` are numbers that it acknowledges. *)

Blank == [n \in Range |-> 0]
Empty == [up |-> TRUE, blank |-> FALSE, known |-> 0, life |-> 0, term |-> 0, lives |-> <<>>, told |-> 0, resume |-> 0, trail |-> 1, content |-> Blank,
          synced |-> {}, lost |-> {}, acked |-> 0, high |-> 0, asked |-> FALSE, grant |-> FALSE, dirty |-> FALSE]
Down == [Empty EXCEPT !.up = FALSE]
Bare(s) == [group |-> GroupOf[s], blank |-> FALSE, known |-> 0, life |-> 0, term |-> 0, lives |-> <<>>, told |-> 0,
            content |-> Blank]

Held(st) == {n \in Range : st.content[n] # 0}
Newest(st) == IF Held(st) = {} THEN st.trail - 1 ELSE Largest(Held(st))
Missing(st) == {n \in Max(st.resume, st.trail)..st.high : n \notin Held(st) /\ n \notin st.lost}

Learn(st, high) ==  \* numbers up to high exist; what is missing is asked for
    LET knows == [st EXCEPT !.high = Max(@, Max(high, Newest(st)))] IN [knows EXCEPT !.asked = @ \/ Missing(knows) # {}]

Bottom(st) ==  \* from where on it is to be acknowledged; as documented no hole is passed over, whatever life left it
    LET low == Max(st.resume, st.trail)
        hole == From(st.trail, Held(st))
    IN IF "holes" \notin Repairs /\ hole < low THEN hole ELSE low

Reached(st) == From(st.acked, st.synced \cup st.lost)

Advance(st) ==  \* pass over what is newly synced or lost; tell the source
    [store |-> [st EXCEPT !.acked = Reached(st)],
     told |-> {n \in st.synced : n >= Max(st.acked, st.resume) /\ n < Reached(st)}]

OnAsk(st) ==
    LET mine == st.lives # <<>> /\ st.lives[Len(st.lives)].life = source.life  \* what it was told last is this life
        told == IF mine THEN Max(st.told, Told) ELSE st.told
    IN IF st.life = source.life
       THEN LET anew == [st EXCEPT !.term = Max(@, source.claim), !.told = told, !.lost = {}, !.grant = TRUE,
                                   !.dirty = TRUE]
            IN IF st.resume = 0 THEN anew ELSE Learn(anew, 0)
       ELSE [st EXCEPT !.life = source.life, !.term = Max(@ + 1, source.claim), !.told = told, !.resume = 0,
                       !.lost = {}, !.acked = 0, !.high = 0, !.asked = FALSE, !.grant = TRUE, !.dirty = TRUE]

Cut(st) ==  \* from where on a life that says where it begins has what is held removed
    LET parting == Parting(st.lives, source.lives)
        knew == \E k \in DOMAIN st.lives : st.lives[k] = Began(source.life, source.resume)
        home == knew /\ Mutant # "cut_at_return"  \* its own messages below the parting may be stable
    IN CASE "one_life" \notin Repairs -> Numbers + 1
         [] parting = 0 /\ knew       -> Numbers + 1
         [] parting = 0               -> source.resume
         [] home                      -> parting
         [] OTHER                     -> Least({parting, source.resume})

OnFirstInfo(st) ==  \* where this life begins: what other lives left there goes
    LET cut == IF Mutant = "cut_low" /\ Cut(st) <= Numbers THEN Cut(st) - 1 ELSE Cut(st)
        kept == [st EXCEPT !.resume = source.resume, !.term = Max(@, source.term), !.lives = Remembered(source.lives),
                           !.told = source.term, !.dirty = TRUE, !.synced = {n \in @ : n < cut},
                           !.blank = FALSE, !.known = IF st.blank \/ @ # 0 THEN window.next - 1 ELSE 0,
                           !.content = [n \in Range |-> IF n < cut THEN @[n] ELSE 0]]
        moved == IF Held(kept) = {} THEN [kept EXCEPT !.trail = source.resume] ELSE kept
        begun == [moved EXCEPT !.acked = Bottom(moved), !.high = source.resume - 1]
        step == Advance(begun)
    IN [step EXCEPT !.store = Learn(@, window.next - 1)]

OnInfo(st) == IF st.resume = 0 THEN OnFirstInfo(st) ELSE [store |-> Learn(st, window.next - 1), told |-> {}]

OnData(st, n) ==
    LET stored == [st EXCEPT !.content[n] = st.life, !.lost = @ \ {n}, !.dirty = TRUE]
        early == Mutant = "ack_before_sync"
        told == IF early THEN {n} ELSE {}
    IN CASE st.resume = 0      -> [store |-> st, told |-> {}]
         [] n \in Held(st)     -> [store |-> st, told |-> {n} \cap {m \in st.synced : m < st.acked}]
         [] n > Newest(st) + 1 -> [store |-> Learn(stored, n), told |-> told]
         [] OTHER              -> [store |-> [stored EXCEPT !.high = Max(@, n)], told |-> told]

OnFilled(st) ==  \* the source sends what it retains of what is missing; the rest is lost
    LET missing == Missing(st)
        step == Advance([st EXCEPT !.lost = @ \cup {n \in missing : n < window.trail}, !.asked = FALSE])
        sent == {n \in missing : n >= window.trail}
    IN [step EXCEPT !.store.content = [n \in Range |-> IF n \in sent THEN st.life ELSE @[n]],
                    !.store.dirty = @ \/ sent # {}]

OnSynced(st) ==  \* what came after it had been given up is told as well
    LET late == {n \in Held(st) \ st.synced : n >= st.resume /\ n < st.acked}
        synced == [st EXCEPT !.synced = Held(st), !.dirty = FALSE, !.grant = FALSE]
        step == Advance(synced)
    IN IF st.resume = 0 THEN [store |-> synced, told |-> {}] ELSE [step EXCEPT !.told = @ \cup late]

Durable(s, st) == [group |-> GroupOf[s], blank |-> st.blank, known |-> st.known, life |-> st.life, term |-> st.term,
                   lives |-> st.lives, told |-> st.told, content |-> st.content]

Recovered(kept) ==  \* another life may have followed that was never announced here: then the store waits for an SRI
    LET last == Len(kept.lives)
        promised == "one_life" \in Repairs /\ kept.told # 0 /\ kept.told < kept.term
        goes_on == last # 0 /\ kept.lives[last].life = kept.life /\ ~promised
        st == [Empty EXCEPT !.blank = kept.blank, !.known = kept.known,
                            !.life = kept.life, !.term = kept.term, !.lives = kept.lives, !.told = kept.told,
                            !.content = kept.content, !.synced = {n \in Range : kept.content[n] # 0}]
        known == [st EXCEPT !.resume = kept.lives[last].first]
        begun == [known EXCEPT !.acked = Bottom(known), !.high = known.resume - 1]
    IN IF ~goes_on THEN st ELSE Learn([begun EXCEPT !.acked = Reached(begun)], 0)

-------------------------------------------------------------------------------
Acks(life, numbers) == [kind |-> "acks", life |-> life, numbers |-> numbers]
Grant(st) ==
    [kind |-> "grant", life |-> st.life,
     grant |-> [high |-> Newest(st), known |-> IF st.known > Newest(st) THEN st.known ELSE 0, blank |-> st.blank,
                term |-> st.term, lives |-> st.lives, told |-> st.told]]

Tell(queue, life, numbers) ==  \* what a store acknowledges in a row arrives together
    LET last == queue[Len(queue)]
        joins == queue # <<>> /\ last.kind = "acks" /\ last.life = life
    IN CASE numbers = {} -> queue
         [] joins        -> [queue EXCEPT ![Len(queue)] = Acks(life, last.numbers \cup numbers)]
         [] OTHER        -> Append(queue, Acks(life, numbers))

Weak(s) == Paths # "once" \/ s = 1  \* there only the way to store 1 is slow, loses, and outlives a life
Slow(s) == "slow" \in Faults /\ Weak(s)
Quiet == \A s \in Stores : Slow(s) \/ back[s] = <<>>  \* the source has heard what it is told
Calm(S) == Quiet /\ ("lag" \in Faults \/ \A s \in S : ~store[s].dirty)  \* and these stores have synced

Granted(s) == \E k \in DOMAIN back[s] : back[s][k].kind = "grant" /\ back[s][k].life = source.life

Connected(s) ==  \* a path leads from the process that is looked at to the store
    LET again == aside.source.life > source.life  \* it was cut off while a later life began
        of(sets) == source.life = 0 \/ s \in sets[source.life]
    IN CASE Paths = "open"   -> TRUE
         [] Paths = "apart"  -> of(<<{1}, {1, 2}, {2, 3}, {1, 3}>>)
         [] Paths = "away"   -> of(<<{1, 3}, {1, 2}, {1, 2}, {1, 2}, {1, 2, 3}>>)
         [] Paths = "once"   -> again \/ of(<<{1, 2}, {1, 3}>>)
         [] Paths = "return" -> IF again THEN s # 1 \/ source.again ELSE of(<<{1, 2}, {1, 3}, {1, 2}>>)
         [] Paths = "ring"   -> IF again THEN s # 2 ELSE of(<<{1, 2}, {2, 3}, {1, 2}>>)
         [] Paths = "groups" -> IF again THEN s # 1 ELSE of(<<{1, 2, 4}, {1, 3, 4}>>)

Chosen(action, s) ==  \* the paths "groups" are about one failure: whatever has no part in it is left out
    LET later == source.life = 2
    IN Paths = "groups" =>
        CASE action = "Stop"    -> later /\ window.trail > source.resume
          [] action = "Send"    -> later \/ aside.source.life = 2
          [] action = "Crash"   -> s = 3 /\ later /\ source.state = "ACTIVE" /\ window.next = source.resume
          [] action = "Restart" -> ~later

Unanswered(s) ==  \* a request to the store is under way
    /\ Running
    /\ Connected(s)
    /\ reg[s].state \in {"asked", "renewing", "away"}
    /\ store[s].up
    /\ ~(store[s].grant /\ store[s].life = source.life) /\ ~Granted(s)
Open(s) ==  \* the store listens to the present stream
    store[s].up /\ Running /\ Connected(s) /\ store[s].life = source.life

Uninformed(s) == Open(s) /\ source.state = "ACTIVE" /\ store[s].resume = 0  \* only who may send announces itself
Prompt(S) == \A s \in S : Slow(s) \/ ~(Unanswered(s) \/ Uninformed(s))  \* they know what they must first

Take(s, step) ==
    /\ store' = [store EXCEPT ![s] = step.store]
    /\ back' = [back EXCEPT ![s] = Tell(@, store[s].life, step.told)]

Init ==
    /\ source = Nobody(0, "DOWN") /\ reg = With("none") /\ window = NoWindow
    /\ stream = [s \in Stores |-> <<>>] /\ back = [s \in Stores |-> <<>>]
    /\ store = [s \in Stores |-> Empty] /\ disk = [s \in Stores |-> Bare(s)]
    /\ safe = {} /\ crashes = 0 /\ aside = Absent(0)

Begin ==  \* a life begins: every store is asked
    /\ Calm(Stores)
    /\ ~Running
    /\ Max(source.life, aside.source.life) < Lives
    /\ Become([Here EXCEPT !.source = Nobody(Max(source.life, aside.source.life) + 1, "REGISTERING"),
                           !.reg = With("asked")])
    /\ UNCHANGED <<stream, back, store, disk, crashes, aside>>

Stop ==  \* it crashes
    /\ Quiet
    /\ Running
    /\ Paths = "once" => source.life = 2  \* there the first life is cut off
    /\ Paths = "away" => window.next > source.resume  \* there every life sends
    /\ Chosen("Stop", 0)
    /\ Become([Here EXCEPT !.source = Nobody(source.life, "DOWN"), !.reg = With("none"), !.window = NoWindow])
    /\ back' = [s \in Stores |-> IF "late" \in Faults /\ Weak(s) THEN back[s] ELSE <<>>]
    /\ stream' = [s \in Stores |-> IF "late" \in Faults /\ Weak(s) THEN stream[s] ELSE <<>>]
    /\ UNCHANGED <<store, disk, crashes, aside>>

Turn ==  \* all stores fall silent to the one process until their leases are over; the other is looked at
    /\ "rival" \in Faults
    /\ Calm(Stores)
    /\ source.state \in {"DOWN", "ACTIVE", "SUSPENDED"}
    /\ Announced \/ aside.source.state # "DOWN"
    /\ Paths \in {"once", "groups"} /\ aside.source.life # 0 => source.life = 2 /\ ~Running  \* one return, after a death
    /\ LET Away(state) == IF state \in {"registered", "renewing"} THEN "away" ELSE state
           left == IF ~Announced THEN Here
                   ELSE Judge([Here EXCEPT !.source.state = "SUSPENDED",
                                           !.reg = [s \in Stores |-> [reg[s] EXCEPT !.state = Away(@)]]])
       IN /\ Become([source |-> aside.source, reg |-> aside.reg, window |-> aside.window, safe |-> left.safe])
          /\ aside' = [source |-> left.source, reg |-> left.reg, window |-> left.window]
    /\ stream' = [s \in Stores |-> <<>>]
    /\ back' = [s \in Stores |-> <<>>]
    /\ UNCHANGED <<store, disk, crashes>>

Wait ==  \* a registration interval passes
    /\ Calm(Stores)
    /\ Running
    /\ Prompt(Stores)
    /\ (source.state = "REGISTERING" /\ ~source.waited) \/ \E s \in Stores : reg[s].state = "renewing"
    /\ Become(Review([Here EXCEPT !.source.waited = source.state = "REGISTERING",
                                  !.reg = [s \in Stores |-> IF reg[s].state = "renewing"
                                                            THEN [reg[s] EXCEPT !.state = "away"] ELSE reg[s]]]))
    /\ UNCHANGED <<stream, back, store, disk, crashes, aside>>

Send ==
    /\ Calm(Stores)
    /\ Prompt(Stores)
    /\ source.state = "ACTIVE"
    /\ window.next <= Numbers
    /\ Cardinality((window.trail..(window.next - 1)) \ window.stable) < Flight
    /\ Chosen("Send", 0)
    /\ window' = [window EXCEPT !.next = @ + 1]
    /\ stream' = [s \in Stores |-> IF Open(s) THEN Append(stream[s], window.next) ELSE stream[s]]
    /\ UNCHANGED <<source, reg, safe, back, store, disk, crashes, aside>>

Ask(s) ==  \* a request reaches a store, which joins the stream
    /\ Calm(Stores \ {s})
    /\ Unanswered(s)
    /\ Prompt(1..(s - 1))
    /\ store' = [store EXCEPT ![s] = OnAsk(@)]
    /\ stream' = [stream EXCEPT ![s] = IF store[s].life = source.life THEN @ ELSE <<>>]
    /\ UNCHANGED <<source, reg, window, safe, back, disk, crashes, aside>>

Inform(s) ==  \* an SRI tells a store something new
    /\ Calm(Stores \ {s})
    /\ Open(s)
    /\ source.state = "ACTIVE"
    /\ store[s].resume = 0 \/ store[s].high < window.next - 1
    /\ Prompt(IF store[s].resume = 0 THEN 1..(s - 1) ELSE Stores)
    /\ Take(s, OnInfo(store[s]))
    /\ UNCHANGED <<source, reg, window, safe, stream, disk, crashes, aside>>

ToStore(s) ==
    /\ Calm(Stores \ {s})
    /\ Prompt(Stores)
    /\ store[s].up
    /\ ~store[s].grant
    /\ stream[s] # <<>>
    /\ stream' = [stream EXCEPT ![s] = Tail(@)]
    /\ Take(s, OnData(store[s], Head(stream[s])))
    /\ UNCHANGED <<source, reg, window, safe, disk, crashes, aside>>

Lose(s) ==
    /\ Calm(Stores \ {s})
    /\ Prompt(Stores)
    /\ "lose" \in Faults /\ Weak(s)
    /\ stream[s] # <<>>
    /\ stream' = [stream EXCEPT ![s] = Tail(@)]
    /\ UNCHANGED <<source, reg, window, safe, back, store, disk, crashes, aside>>

Fill(s) ==
    /\ Calm(Stores \ {s})
    /\ Prompt(Stores)
    /\ Open(s)
    /\ Announced
    /\ ~store[s].grant
    /\ store[s].asked
    /\ Take(s, OnFilled(store[s]))
    /\ UNCHANGED <<source, reg, window, safe, stream, disk, crashes, aside>>

Sync(s) ==  \* everything written is durable; grants and acknowledgements that waited for it go
    /\ Quiet
    /\ store[s].up
    /\ store[s].dirty
    /\ LET st == store[s]
           step == OnSynced(st)
           told == Tell(back[s], st.life, step.told)
           granted == Append(told, Grant(step.store))
           again == {n \in step.store.synced : n >= st.resume /\ n < step.store.acked}
       IN /\ store' = [store EXCEPT ![s] = step.store]
          /\ back' = [back EXCEPT ![s] = IF st.grant THEN Tell(granted, st.life, again) ELSE told]
          /\ disk' = [disk EXCEPT ![s] = Durable(s, st)]
    /\ UNCHANGED <<source, reg, window, safe, stream, crashes, aside>>

ToSource(s) ==
    /\ back[s] # <<>>
    /\ back' = [back EXCEPT ![s] = Tail(@)]
    /\ LET m == Head(back[s])
       IN Become(IF ~Running THEN Here ELSE IF m.kind = "acks" THEN OnAcks(Here, s, m) ELSE OnGrant(Here, s, m))
    /\ UNCHANGED <<stream, store, disk, crashes, aside>>

Crash(s) ==  \* its connections break, and the source notices
    /\ Quiet
    /\ store[s].up
    /\ crashes < Crashes
    /\ Chosen("Crash", s)
    /\ crashes' = crashes + 1
    /\ store' = [store EXCEPT ![s] = Down]
    /\ stream' = [stream EXCEPT ![s] = <<>>]
    /\ back' = [back EXCEPT ![s] = <<>>]
    /\ Become(IF ~Running THEN Here
              ELSE Review([Here EXCEPT !.reg[s].state = IF @ = "registered" THEN "renewing" ELSE @]))
    /\ UNCHANGED <<disk, aside>>

Restart(s) ==
    /\ Calm(Stores \ {s})
    /\ ~store[s].up
    /\ Chosen("Restart", s)
    /\ store' = [store EXCEPT ![s] = Recovered(disk[s])]
    /\ UNCHANGED <<source, reg, window, safe, stream, back, disk, crashes, aside>>

Wipe(s) ==  \* somebody replaces a broken disk
    /\ Calm(Stores \ {s})
    /\ \/ "wipe" \in Faults
       \/ "replace" \in Faults /\ ~Most(GroupOf[s], {t \in Stores : disk[t].blank} \cup {s})
    /\ ~store[s].up
    /\ disk[s].life # 0
    /\ disk' = [disk EXCEPT ![s] = [Bare(s) EXCEPT !.blank = "vote" \in Repairs]]
    /\ UNCHANGED <<source, reg, window, safe, stream, back, store, crashes, aside>>

Next ==
    \/ Begin \/ Stop \/ Turn \/ Wait \/ Send
    \/ \E s \in Stores : \/ Ask(s) \/ Inform(s) \/ ToStore(s) \/ Lose(s) \/ Fill(s) \/ Sync(s) \/ ToSource(s)
                         \/ Crash(s) \/ Restart(s) \/ Wipe(s)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
OnDisk(message) == {s \in Stores : disk[s].content[message[2]] = message[1]}

Kept(message) ==  \* by the weakest reading of the rules: stores that come and go may strengthen them
    LET met == {g \in Groups : IF Inside = "all" THEN Every(g, OnDisk(message)) ELSE Most(g, OnDisk(message))}
    IN CASE Between = "majority" -> 2 * Cardinality(met) > Len(Sizes)
         [] Between = "all"      -> met = Groups
         [] OTHER                -> met # {}

StableByQuorum ==  \* S1: what this life was told is stable is on the disks of a quorum
    \A message \in safe : message[1] = source.life => Kept(message)

NoReuse ==  \* S2: no life uses a number again that was stable
    \A message \in safe : message[1] < source.life /\ source.resume # 0 => message[2] < source.resume

NoStableLost ==  \* S3: what was ever stable is on the disks of a quorum
    \A message \in safe : Kept(message)

NumbersUnique ==  \* S2 where an older life may come back: no number was stable for two lives
    \A one, other \in safe : one[2] = other[2] => one[1] = other[1]

Followed(s) ==  \* the store was told of a later life: what this one believes of it is out of date, and no longer counts
    disk[s].lives # <<>> /\ disk[s].lives[Len(disk[s].lives)].life # source.life

SyncedFirst ==  \* P1: what a store acknowledged is on its disk, of this life
    \A s \in Stores : Followed(s) \/ \A n \in window.acked[s] : disk[s].content[n] = source.life

NoDeadServed ==  \* S3: a store that knows where this life begins serves no dead message in place of a stable one
    \A s \in Stores : store[s].resume # 0 /\ store[s].life = source.life =>
        \A message \in safe : message[2] < store[s].resume => store[s].content[message[2]] \in {0, message[1]}

RetainedUntilSettled ==  \* C1: the source has a copy of everything that is not stable
    source.resume # 0 => \A n \in source.resume..(window.next - 1) : n >= window.trail \/ <<source.life, n>> \in safe
=============================================================================
