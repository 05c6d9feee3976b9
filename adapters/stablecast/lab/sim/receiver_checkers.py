"""Check what receivers deliver, report lost and acknowledge, against what their applications consumed."""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.lab.sim.facts import Facts, Lives, without
from stablecast.lab.sim.setup import RECEIVERS


@attrs.define
class SessionLedger:
    """Hold what one session of one process gave up, and where it is: `next` follows the newest delivered number."""

    order: int
    begin: int | None = None
    next: int = 0
    lost: RangeSet = attrs.field(factory=RangeSet)


@attrs.define
class ProcessLedger:
    """Hold what one process delivered to its inbox and `handed` to its application.

    `lost` is what was reported to the application. `order` is that of the newest life it knows, and `term` the highest
    one that it heard of.
    """

    delivered: Lives = attrs.field(factory=dict)
    handed: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    order: int = 0
    term: int = 0


@attrs.define
class ReceiverLedger:
    """Hold what one receiver consumed over all its processes.

    `excused` was deleted while no store had to keep it for this receiver.
    """

    consumed: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    excused: RangeSet = attrs.field(factory=RangeSet)
    last: SessionLedger | None = None


@attrs.define
class ReceiverCheckers:
    """Check the receivers. `leaving` are processes that deregistered and are promised nothing."""

    facts: Facts
    ledgers: dict[str, ReceiverLedger] = attrs.field(
        factory=lambda: {receiver: ReceiverLedger() for receiver in RECEIVERS}
    )
    sessions: dict[tuple[str, int], SessionLedger] = attrs.field(factory=dict)
    runs: dict[str, ProcessLedger] = attrs.field(factory=dict)
    leaving: list[str] = attrs.field(factory=list)

    def on_session(self, receiver: str, process: str, life: int) -> None:
        session = SessionLedger(self.facts.order.get(life, 0))
        self.sessions[process, life] = self.ledgers[receiver].last = session
        run = self.runs.setdefault(process, ProcessLedger())
        run.order = max(run.order, session.order)

    def on_told(self, process: str, term: int) -> None:
        run = self.runs.setdefault(process, ProcessLedger())
        run.term = max(run.term, term)

    def on_begin(self, receiver: str, process: str, life: int, number: int) -> None:
        """Check that a session which begins at `number` skips no stable message."""
        session = self.sessions[process, life]
        session.begin = session.next = number
        for low, high, sender in self.missed(receiver, number, self.runs[process].delivered):
            if self.facts.order[sender] <= session.order:
                text = f"{process} begins at {number}, {low}..{high - 1} of life {sender:#x} it never had"
                self.facts.report("D1", text)

    def on_delivered(self, process: str, life: int, sender: int, first: int, found: list[tuple[int, int]]) -> None:
        """Check delivered messages; `found` are sender and number of each payload."""
        facts, session, stop = self.facts, self.sessions[process, life], first + len(found)
        facts.counts["delivered"] += len(found)
        what = f"{process} delivers {first}..{stop - 1} of life {sender:#x}"
        if found != [(sender, serial.wire(number)) for number in range(first, stop)]:
            facts.report("D1", f"{what} with payloads of others")
        if session.begin is None and (process in self.leaving or not facts.setup.rules.sizes):
            session.begin = session.next = 0 if facts.setup.arrival else first
        if session.begin is None or first < session.begin:
            facts.report("D1", f"{what}, it begins at {session.begin}")
        for number in range(first, stop):
            owner = facts.stable.get(number, sender)
            if owner != sender and self._known(self.runs[process], session.order, sender, number):
                facts.report("D1", f"{process} delivers {number} of life {sender:#x}, that of {owner:#x} is stable")
        self.runs[process].delivered.setdefault(sender, RangeSet()).add(first, stop)
        session.next = max(session.next, stop)

    def on_handed(self, process: str, sender: int, first: int, stop: int) -> None:
        """Check that one run of a program is handed each message once, and in order."""
        facts, run = self.facts, self.runs[process]
        handed = run.handed.setdefault(sender, RangeSet())
        what = f"the application of {process} is handed {first}..{stop - 1} of life {sender:#x}"
        late = handed.last is not None and first <= handed.last
        if handed.within(first, stop):
            facts.report("D1", f"{what} twice in one run")
        elif late and not (facts.setup.arrival or self._in_turn(process, first)):
            facts.report("D1", f"{what} after {handed.last}")
        # In turns two lives may have stores of their own: a receiver cannot know that they are one source's (P-505).
        for number in range(first, stop) if not facts.setup.turns else ():
            owner = facts.stable.get(number, sender)
            if owner != sender and self._known(run, run.order, sender, number) and not facts.strangers(sender, owner):
                facts.report("D1", f"{what}, that of {owner:#x} is stable")
        handed.add(first, stop)

    def _known(self, run: ProcessLedger, order: int, sender: int, number: int) -> bool:
        """Return whether a process knows that a stable number is not that of `sender`, whose message it has.

        A life may come back behind a later one of which nothing was stable, and use its numbers. The guarantees say
        nothing about a message that was never stable. So the process may have it until an announcement has the term in
        which the life came back, or a later one.
        """
        owner = self.facts.order[self.facts.stable[number]]
        if owner < self.facts.order[sender]:
            return run.term >= self.facts.claimed[number]
        return owner <= order

    def _in_turn(self, process: str, number: int) -> bool:
        """Return whether a session gave a message up in round robin, while the store that has it was away.

        The guarantees say nothing about such a message. It may return with its store, in a life that shares no store
        with the one that gave it up.
        """
        mine = [session for (who, _), session in self.sessions.items() if who == process]
        return self.facts.setup.turns and any(number in session.lost for session in mine)

    def on_consumed(self, receiver: str, sender: int, first: int, stop: int) -> None:
        self.ledgers[receiver].consumed.setdefault(sender, RangeSet()).add(first, stop)

    def on_given_up_run(self, process: str, life: int, first: int, stop: int) -> None:
        self.facts.counts["lost"] += stop - first
        self.sessions[process, life].lost.add(first, stop)

    def on_loss(self, receiver: str, process: str, life: int, first: int, stop: int) -> None:
        """Check that messages which are reported lost were not stable."""
        session, run = self.sessions[process, life], self.runs[process]
        run.lost.add(first, stop)
        if process in self.leaving:
            return
        for low, high, sender in self.missed(receiver, stop):
            parts = range(max(low, first), high)
            there = [number for number in parts if not self.facts.out_of_reach(life, sender, number)]
            if there and self.facts.order[sender] <= session.order:
                text = f"{process} reports {there[0]}..{there[-1]} of life {sender:#x} lost, which are stable"
                self.facts.report("S3", text)
        self.ledgers[receiver].lost.add(first, stop)

    def on_given_up(self, receiver: str, process: str, life: int, sender: int, number: int, *, told: bool) -> None:
        """Check a fragment that a session gives up: a message that is stable must be delivered whole.

        A loss is reported, unless the message began before the session did. A leaving receiver is promised nothing.
        """
        facts, ledger, session = self.facts, self.ledgers[receiver], self.sessions[process, life]
        facts.counts["pieces given up"] += 1
        first, last = facts.large[sender, number]
        begun = session.begin is not None and session.begin <= first
        promised = begun and process not in self.leaving and facts.whole(sender, number)
        # Limits deleted parts of the message.
        gone = ledger.lost.within(first, last + 1) or ledger.excused.within(first, last + 1)
        if promised and not gone:
            facts.report("S3", f"{process} gives up {number} of {first}..{last} of life {sender:#x}, which is stable")
        if begun and not told:
            facts.report("D1", f"{process} passes {number} of {first}..{last} of life {sender:#x} over without a word")
        session.lost.add(number, number + 1)
        ledger.lost.add(number, number + 1)

    def on_leave(self, process: str) -> None:
        """Record that a process deregisters its receiver, so that nothing is kept for it."""
        self.leaving.append(process)

    def on_told_consumed(self, receiver: str, process: str, first: int, stop: int) -> None:
        """Check that a session is told only what its application really consumed."""
        consumed, delivered = self.ledgers[receiver].consumed, self.runs[process].delivered
        ours = [
            RangeSet([part for low, high in numbers for part in consumed.get(sender, RangeSet()).within(low, high)])
            for sender, numbers in delivered.items()
        ]
        for low, high in without([(first, stop)], ours):
            self.facts.report("A1", f"{process} calls {first}..{stop - 1} consumed, {low}..{high - 1} are not")

    def missed(
        self, receiver: str, stop: int | None = None, waiting: Lives | None = None
    ) -> list[tuple[int, int, int]]:
        """Return the stable messages (below `stop`) that a receiver lacks, as first, stop, life.

        They are neither consumed, reported lost nor excused. Messages in the inbox may be `waiting`. Fragments of a
        message that is not all stable do not count.
        """
        ledger = self.ledgers[receiver]
        found = []
        for life, numbers in self.facts.stable_lives.items():
            known = [ledger.consumed.get(life, RangeSet()), ledger.lost, ledger.excused]
            known += [waiting[life]] if waiting is not None and life in waiting else []
            for first, end in numbers:
                last = end if stop is None else min(end, stop)
                if first < last:
                    found += [(low, high, life) for low, high in without([(first, last)], known)]
        if not self.facts.large:
            return found
        return [
            (number, number + 1, life)
            for low, high, life in found
            for number in range(low, high)
            if self.facts.whole(life, number)
        ]
