------------------------------- MODULE Refill -------------------------------
(* Refill: stores that were away, or lost their disks, get from the others what became stable meanwhile.              *)
(*                                                                                                                    *)
(* In the code: each store is a whole `core/store/endpoint.py` with `refill.py`, `refill_service.py`,                 *)
(* `source_history.py` and `gap_filling.py`. The source is the world's: it registers, announces each life, and        *)
(* retains nothing, so that only other stores can help.                                                               *)
(*                                                                                                                    *)
(* A message is a number and the life that sent it. A store writes what comes; what is not synced is lost when it     *)
(* stops. A store asks all others in one step for everything that it lacks.                                           *)
(*                                                                                                                    *)
(* Bounds that could hide an error: a registration and its announcement are one step; disks are replaced one by one.  *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Stores,     \* how many
    Messages,   \* numbers that the source uses
    Lives,      \* how often the source may begin
    Stops,      \* how often a store may stop
    Wipes,      \* how often a disk may be replaced
    Healing,    \* whether stores refill
    Careful,    \* whether the operator replaces a disk only while no other store lacks anything
    Mutant      \* "none", or which rule is broken

VARIABLES
    source,  \* the current life, its next number, and the first number of each life so far
    store,   \* of each: is it up, has the current life announced itself there since, and what it holds of each number
    disk,    \* of each: the life that registered, its history, what is durable, whether the store remembers, and the
             \* newest number that it knows to be used
    stable,  \* pairs of a number and the life that sent it: what became stable
    left     \* how often a store may still stop, and a disk be replaced

vars == <<source, store, disk, stable, left>>

Ids == 1..Stores
Numbers == 0..(Messages - 1)
Nothing == [n \in Numbers |-> 0]
Majority(set) == 2 * Cardinality(set) > Stores
Max(set) == CHOOSE n \in set : \A m \in set : m <= n

Down == [up |-> FALSE, joined |-> FALSE, holds |-> Nothing]
Empty == [life |-> 0, history |-> <<>>, holds |-> Nothing, kept |-> FALSE, known |-> -1]

-------------------------------------------------------------------------------
(* Histories: the first number of each life. A number belongs to the newest life that began at or below it.           *)
Owner(history, n) ==
    LET lives == {l \in DOMAIN history : history[l] <= n}
    IN IF lives = {} THEN 0 ELSE Max(lives)

(* The first number that two histories ascribe to different lives. A store that knows a life knows its history.       *)
Parted(ours, theirs) ==
    LET common == {l \in DOMAIN ours : l \in DOMAIN theirs /\ ours[l] = theirs[l]}
        agreed == IF common = {} THEN 0 ELSE Max({ours[l] : l \in common})
        apart == {n \in agreed..Messages :
                     Owner(ours, n) # Owner(theirs, n) /\ Owner(ours, n) # 0 /\ Owner(theirs, n) # 0}
    IN IF apart = {} THEN Messages ELSE CHOOSE n \in apart : \A m \in apart : n <= m

Newest(holds) == Max({-1} \cup {n \in Numbers : holds[n] # 0})
Holding(holds) == {n \in Numbers : holds[n] # 0}

-------------------------------------------------------------------------------
(* What a store knows that it lacks: what the current life announced, or what its disk shows to have been sent.       *)
Lacks(i) ==
    LET history == disk[i].history
        found == Max({Newest(store[i].holds), history[Len(history)] - 1})
        low == IF Mutant = "recent" THEN history[Len(history)] ELSE 0
        announced == IF store[i].joined THEN low..(source.next - 1) ELSE low..found
    IN IF ~store[i].up \/ disk[i].life = 0 THEN {} ELSE announced \ Holding(store[i].holds)

(* A peer answers for the life that is current there. What it holds of a number is what the number's life sent.       *)
Answers(i, j) == j # i /\ store[j].up /\ (disk[j].life = disk[i].life \/ Mutant = "any_life")

Offered(i, n) == {j \in Ids : Answers(i, j) /\ store[j].holds[n] # 0}

Whole(i) ==  \* nothing is lacking there, and all of it is on disk
    /\ store[i].up /\ store[i].joined
    /\ Lacks(i) = {} \/ ~Healing
    /\ Mutant = "unsynced" \/ disk[i].holds = store[i].holds

Reported ==  \* what the stores that have synced it let the source call stable
    {<<n, source.life>> : n \in {m \in Numbers :
        /\ source.life # 0 /\ m >= source.history[source.life]
        /\ Majority({i \in Ids : disk'[i].life = source.life /\ disk'[i].holds[m] = source.life})}}

-------------------------------------------------------------------------------
(* A life registers with a store and announces where it began: the store cuts what other lives left.                  *)
Announced(i, life, next, history) ==
    LET first == history[life]
        known == life \in DOMAIN disk[i].history
        parted == Parted(disk[i].history, history)
        again == disk[i].life = life  \* it goes on there
        cut == IF again THEN Messages ELSE IF known \/ parted < first THEN parted ELSE first
        kept == [n \in Numbers |-> IF n < cut THEN store[i].holds[n] ELSE 0]
    IN [store |-> [up |-> TRUE, joined |-> TRUE, holds |-> kept],
        disk |-> [life |-> life, history |-> history, holds |-> kept, kept |-> TRUE,
                  known |-> IF ~disk[i].kept \/ (~again /\ disk[i].known >= 0) THEN next - 1 ELSE disk[i].known]]

Voters == {i \in Ids : store[i].up /\ (disk[i].kept \/ Mutant = "blank_votes")}
Up == {i \in Ids : store[i].up}

Begin ==  \* another life of the source: a majority of the stores that remember answers, or all stores do
    /\ source.life < Lives
    /\ Majority(Voters) \/ Up = Ids
    /\ LET first == 1 + Max({-1} \cup {Newest(store[i].holds) : i \in Up} \cup {disk[i].known : i \in Up})
           life == source.life + 1
           history == Append(source.history, first)
           there == [i \in Ids |-> Announced(i, life, first, history)]
       IN /\ source' = [life |-> life, next |-> first, history |-> history]
          /\ store' = [i \in Ids |-> IF store[i].up THEN there[i].store ELSE store[i]]
          /\ disk' = [i \in Ids |-> IF store[i].up THEN there[i].disk ELSE disk[i]]
    /\ UNCHANGED <<stable, left>>

Join(i) ==  \* the current life finds a store that returned
    /\ source.life # 0 /\ store[i].up /\ ~store[i].joined
    /\ LET there == Announced(i, source.life, source.next, source.history)
           holds == [n \in Numbers |-> IF there.store.holds[n] # 0 THEN there.store.holds[n] ELSE 0]
       IN /\ store' = [store EXCEPT ![i] = [there.store EXCEPT !.holds = holds]]
          /\ disk' = [disk EXCEPT ![i] = there.disk]
    /\ stable' = stable \cup Reported
    /\ UNCHANGED <<source, left>>

Send ==  \* to the stores that are there
    /\ source.life # 0 /\ source.next < Messages
    /\ LET n == source.next
       IN store' = [i \in Ids |-> IF store[i].joined THEN [store[i] EXCEPT !.holds[n] = source.life] ELSE store[i]]
    /\ source' = [source EXCEPT !.next = @ + 1]
    /\ UNCHANGED <<disk, stable, left>>

Sync(i) ==
    /\ store[i].up /\ disk[i].holds # store[i].holds
    /\ disk' = [disk EXCEPT ![i].holds = store[i].holds]
    /\ stable' = stable \cup Reported
    /\ UNCHANGED <<source, store, left>>

Refill(i) ==  \* everything that is lacking and that a peer has
    LET found == {n \in Lacks(i) : Offered(i, n) # {}}
        of(n) == CHOOSE l \in {store[j].holds[n] : j \in Offered(i, n)} : TRUE
        mine == {n \in found : Mutant = "any_life" \/ of(n) = Owner(disk[i].history, n)}
    IN /\ Healing /\ mine # {}
       /\ store' = [store EXCEPT ![i].holds = [n \in Numbers |-> IF n \in mine THEN of(n) ELSE @[n]]]
       /\ UNCHANGED <<source, disk, stable, left>>

Stop(i) ==
    /\ left.stops > 0 /\ store[i].up
    /\ store' = [store EXCEPT ![i] = Down]
    /\ left' = [left EXCEPT !.stops = @ - 1]
    /\ UNCHANGED <<source, disk, stable>>

Start(i) ==
    /\ ~store[i].up
    /\ store' = [store EXCEPT ![i] = [up |-> TRUE, joined |-> FALSE, holds |-> disk[i].holds]]
    /\ UNCHANGED <<source, disk, stable, left>>

Replace(i) ==  \* an operator replaces the disk of a store that is down
    /\ left.wipes > 0 /\ ~store[i].up /\ disk[i] # Empty
    /\ Careful => \A j \in Ids \ {i} : Whole(j)
    /\ disk' = [disk EXCEPT ![i] = Empty]
    /\ left' = [left EXCEPT !.wipes = @ - 1]
    /\ UNCHANGED <<source, store, stable>>

-------------------------------------------------------------------------------
Init ==
    /\ source = [life |-> 0, next |-> 0, history |-> <<>>]
    /\ store = [i \in Ids |-> [up |-> TRUE, joined |-> FALSE, holds |-> Nothing]]
    /\ disk = [i \in Ids |-> [Empty EXCEPT !.kept = TRUE]]
    /\ stable = {}
    /\ left = [stops |-> Stops, wipes |-> Wipes]

Next ==
    \/ Begin \/ Send
    \/ \E i \in Ids : Join(i) \/ Sync(i) \/ Refill(i) \/ Stop(i) \/ Start(i) \/ Replace(i)

Spec == Init /\ [][Next]_vars

Fairness ==  \* nobody has to send, to stop, to begin another life or to replace a disk
    \A i \in Ids : WF_vars(Join(i)) /\ WF_vars(Sync(i)) /\ WF_vars(Refill(i)) /\ WF_vars(Start(i))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
NoStableLost ==  \* H1: between two refills a minority of the disks may be lost, for ever
    \A one \in stable : \E i \in Ids : disk[i].holds[one[1]] = one[2]

Healed ==  \* H2: a store that lacks nothing holds everything that is stable
    \A i \in Ids : store[i].joined /\ Healing /\ Lacks(i) = {} =>
        \A one \in stable : store[i].holds[one[1]] = one[2]

NoDead ==  \* H3: what was cut does not come back
    \A i \in Ids : store[i].joined =>
        \A n \in Numbers : store[i].holds[n] \in {0, Owner(source.history, n)}

NoReuse ==  \* S2: no life uses a number again that is stable
    [][source'.life # source.life => \A one \in stable : one[1] < source'.next]_vars

Converges ==  \* H4: every store is whole in the end
    <>[](\A i \in Ids : store[i].joined => \A one \in stable : disk[i].holds[one[1]] = one[2])
=============================================================================
