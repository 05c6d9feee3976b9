----------------------------- MODULE WorkSharing -----------------------------
(* Two members of a group that share a topic: a share is claimed, drained, recorded and released.                     *)
(*                                                                                                                    *)
(* In the code: a member is `sharing/member.py` with `division.py`; its share is `share.py`. What the driver does of  *)
(* the effects is here: it asks for messages, waits until they are settled, and for what the stores recorded. The     *)
(* stores are one quorum: whom it granted the share, and how far that was acknowledged. `Registration` shows that     *)
(* they grant it to one at a time, `Recovery` that the next one begins behind what was acknowledged.                  *)
(*                                                                                                                    *)
(* Members may miss each other at any time. No time is told: a lease may end at any time, the share is free after it. *)
(*                                                                                                                    *)
(* Bounds that could hide an error: one share, two members; no claim is contested.                                    *)
EXTENDS Integers

CONSTANTS
    Messages,  \* how many messages the share has
    Turns,     \* how often a member misses one that lives
    Faults,    \* what may happen: "die" (a member), "pause" (a lease ends), "slow" (the stores do not record in time)
    Mutant     \* "none", or which rule is broken

VARIABLES
    share,   \* of each member: its state of the share
    knows,   \* whether it counts the other one
    up,      \* whether it lives
    leased,  \* whether its lease goes on
    work,    \* the message that its application has in work; 0: none
    at,      \* what it consumed of the share, or found acknowledged when it was granted
    holder,  \* the member that the stores granted the share; 0: none
    acked,   \* how far consumption is recorded at the stores
    times,   \* how often each message was processed, up to twice
    left,    \* remaining turns
    failed   \* whether a member or the stores failed

vars == <<share, knows, up, leased, work, at, holder, acked, times, left, failed>>

Members == {1, 2}
Other(m) == 3 - m
Owner == 2  \* whose share it is when both know each other

Max(a, b) == IF a > b THEN a ELSE b

(* What the division makes of a share in state `s`, of a member that counts the other one or not. *)
Reviewed(m, s, counts) ==
    IF counts /\ m # Owner
    THEN CASE s = "CLAIMING" -> "CLOSING"
           [] s = "HELD" -> IF Mutant = "no_drain" THEN "CLOSING" ELSE "DRAINING"
           [] OTHER -> s
    ELSE IF s = "RELEASED" THEN "CLAIMING" ELSE s

Becomes(m, s) == share' = [share EXCEPT ![m] = Reviewed(m, s, knows[m])]

Init ==
    /\ share = [m \in Members |-> "CLAIMING"]
    /\ knows = [m \in Members |-> FALSE]
    /\ up = [m \in Members |-> TRUE]
    /\ leased = [m \in Members |-> FALSE]
    /\ work = [m \in Members |-> 0]
    /\ at = [m \in Members |-> 0]
    /\ holder = 0 /\ acked = 0
    /\ times = [n \in 1..Messages |-> 0]
    /\ left = Turns
    /\ failed = FALSE

Meet(m) ==  \* an announcement arrives
    /\ up[m] /\ up[Other(m)] /\ ~knows[m]
    /\ knows' = [knows EXCEPT ![m] = TRUE]
    /\ share' = [share EXCEPT ![m] = Reviewed(m, @, TRUE)]
    /\ UNCHANGED <<up, leased, work, at, holder, acked, times, left, failed>>

Miss(m) ==  \* the other one was silent for too long, or has ended
    /\ up[m] /\ knows[m]
    /\ up[Other(m)] => left > 0
    /\ Mutant = "deaf" => up[Other(m)]
    /\ left' = IF up[Other(m)] THEN left - 1 ELSE left
    /\ knows' = [knows EXCEPT ![m] = FALSE]
    /\ share' = [share EXCEPT ![m] = Reviewed(m, @, FALSE)]
    /\ UNCHANGED <<up, leased, work, at, holder, acked, times, failed>>

Grant(m) ==  \* the stores grant a claim, and tell how far the share was acknowledged
    /\ up[m] /\ share[m] = "CLAIMING"
    /\ holder = 0 \/ Mutant = "two_holders"
    /\ holder' = m
    /\ leased' = [leased EXCEPT ![m] = TRUE]
    /\ at' = [at EXCEPT ![m] = acked]
    /\ Becomes(m, "HELD")
    /\ UNCHANGED <<knows, up, work, acked, times, left, failed>>

Hands(m) == share[m] = "HELD" /\ leased[m]

Hand(m) ==  \* the application gets a message
    /\ up[m] /\ Hands(m) /\ work[m] = 0 /\ at[m] < Messages
    /\ work' = [work EXCEPT ![m] = at[m] + 1]
    /\ UNCHANGED <<share, knows, up, leased, at, holder, acked, times, left, failed>>

Settle(m) ==  \* it has processed it
    /\ up[m] /\ work[m] # 0
    /\ times' = [times EXCEPT ![work[m]] = IF @ < 2 THEN @ + 1 ELSE @]
    /\ at' = [at EXCEPT ![m] = work[m]]
    /\ work' = [work EXCEPT ![m] = 0]
    /\ UNCHANGED <<share, knows, up, leased, holder, acked, left, failed>>

Consumed(m) == IF Mutant = "early_ack" /\ work[m] # 0 THEN work[m] ELSE at[m]

Ack(m) ==  \* an acknowledgement reaches the stores, also a late one
    /\ up[m] /\ share[m] \in {"HELD", "DRAINING", "RECORDING"} /\ Consumed(m) > acked
    /\ acked' = Consumed(m)
    /\ UNCHANGED <<share, knows, up, leased, work, at, holder, times, left, failed>>

Drained(m) ==  \* the application has settled what it had
    /\ up[m] /\ share[m] = "DRAINING" /\ work[m] = 0
    /\ Becomes(m, "RECORDING")
    /\ UNCHANGED <<knows, up, leased, work, at, holder, acked, times, left, failed>>

Recorded(m) ==  \* the stores show it, or do not answer in time; of a lost share nothing is asked
    /\ up[m] /\ share[m] = "RECORDING"
    /\ acked >= at[m] \/ ~leased[m] \/ "slow" \in Faults \/ Mutant = "no_record"
    /\ failed' = (failed \/ (acked < at[m] /\ Mutant # "no_record"))
    /\ Becomes(m, "CLOSING")
    /\ UNCHANGED <<knows, up, leased, work, at, holder, acked, times, left>>

Closed(m) ==  \* nobody listens at the share's address any more, so the stores free it
    /\ up[m] /\ share[m] = "CLOSING"
    /\ holder' = IF holder = m THEN 0 ELSE holder
    /\ leased' = [leased EXCEPT ![m] = FALSE]
    /\ at' = [at EXCEPT ![m] = 0]
    /\ Becomes(m, "RELEASED")
    /\ UNCHANGED <<knows, up, work, acked, times, left, failed>>

Expire(m) ==  \* the process was stopped, or cut off from the stores: its lease ends
    /\ "pause" \in Faults /\ leased[m]
    /\ leased' = [leased EXCEPT ![m] = FALSE]
    /\ failed' = TRUE
    /\ UNCHANGED <<share, knows, up, work, at, holder, acked, times, left>>

Free(m) ==  \* after the lease the stores free the share
    /\ holder = m /\ ~leased[m]
    /\ holder' = 0
    /\ UNCHANGED <<share, knows, up, leased, work, at, acked, times, left, failed>>

Lose(m) ==  \* the member sees that its lease is over
    /\ up[m] /\ share[m] = "HELD" /\ ~leased[m] /\ Mutant # "clings"
    /\ Becomes(m, "DRAINING")
    /\ UNCHANGED <<knows, up, leased, work, at, holder, acked, times, left, failed>>

Die(m) ==  \* its ports refuse, so the stores free the share
    /\ "die" \in Faults /\ up[m] /\ up[Other(m)]
    /\ up' = [up EXCEPT ![m] = FALSE]
    /\ share' = [share EXCEPT ![m] = "RELEASED"]
    /\ knows' = [knows EXCEPT ![m] = FALSE]
    /\ leased' = [leased EXCEPT ![m] = FALSE]
    /\ work' = [work EXCEPT ![m] = 0]
    /\ at' = [at EXCEPT ![m] = 0]
    /\ holder' = IF holder = m THEN 0 ELSE holder
    /\ failed' = TRUE
    /\ UNCHANGED <<acked, times, left>>

Next ==
    \E m \in Members :
        \/ Meet(m) \/ Miss(m) \/ Grant(m) \/ Hand(m) \/ Settle(m) \/ Ack(m) \/ Drained(m) \/ Recorded(m) \/ Closed(m)
        \/ Expire(m) \/ Free(m) \/ Lose(m) \/ Die(m)

Spec == Init /\ [][Next]_vars

Fairness ==
    \A m \in Members :
        /\ WF_vars(Meet(m)) /\ WF_vars(~up[Other(m)] /\ Miss(m)) /\ WF_vars(Grant(m)) /\ WF_vars(Hand(m))
        /\ WF_vars(Settle(m)) /\ WF_vars(Ack(m)) /\ WF_vars(Drained(m)) /\ WF_vars(Recorded(m)) /\ WF_vars(Closed(m))
        /\ WF_vars(Free(m)) /\ WF_vars(Lose(m))

LiveSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
OneOwner ==  \* G1: at most one member hands out the messages of a share
    ~(Hands(1) /\ Hands(2))

NothingLost ==  \* G2: what is acknowledged for the group was processed
    \A n \in 1..Messages : n <= acked => times[n] > 0

Once ==  \* G3: while no member and no store fails, each message is processed once
    ~failed => \A n \in 1..Messages : times[n] <= 1

Served ==  \* G4: while a member lives, each message is processed in the end
    <>(\A n \in 1..Messages : times[n] > 0)
===============================================================================
