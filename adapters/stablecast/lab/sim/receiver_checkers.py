"""Outside checkers of the receivers: what is delivered, lost and acknowledged, judged by what the application knows."""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.sim.facts import Facts, Lives, without
from stablecast.lab.sim.setup import RECEIVERS


@attrs.define
class Session:
    """What one session of one process was told to deliver, from `begin` on. `next` is behind the newest of it.

    `acknowledged` is the highest number that it acknowledged.
    """

    order: int
    history: Lives
    begin: int | None = None
    next: int = 0
    delivered: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    acknowledged: int = -1

    def passed(self, first: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [first, stop) that may not be passed over: neither lost nor consumed before."""
        return without([(first, stop)], [self.lost, *self.history.values()])


@attrs.define
class Run:
    """What one process of a receiver got: `delivered` to its inbox, by sessions, and `handed` to its application.

    `lost` is what the application was told of. `order`: that of the newest life it heard of.
    """

    delivered: Lives = attrs.field(factory=dict)
    handed: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    order: int = 0


@attrs.define
class Ledger:
    """What one receiver consumed, whatever processes it had: its application's own memory.

    `excused` was let go while nobody had to keep it for this receiver. `began` is where its sessions began at latest.
    """

    consumed: Lives = attrs.field(factory=dict)
    lost: RangeSet = attrs.field(factory=RangeSet)
    excused: RangeSet = attrs.field(factory=RangeSet)
    began: int | None = None
    last: Session | None = None

    def passed(self, life: int) -> RangeSet:
        """What an acknowledgement may speak for: what it consumed of one life, lost, or need not have had."""
        known = self.consumed.get(life, RangeSet()).copy()
        for start, stop in [*self.lost, (0, self.began or 0)]:
            known.add(start, stop)
        return known


@attrs.define
class Reading:
    """Watches the receivers. `leaving` are processes that deregistered: they are promised nothing."""

    facts: Facts
    ledgers: dict[str, Ledger] = attrs.field(factory=lambda: {receiver: Ledger() for receiver in RECEIVERS})
    sessions: dict[tuple[str, int], Session] = attrs.field(factory=dict)
    runs: dict[str, Run] = attrs.field(factory=dict)
    leaving: list[str] = attrs.field(factory=list)

    def on_session(self, receiver: str, process: str, life: int, history: dict[int, list[tuple[int, int]]]) -> None:
        """A process begins a session with a life; it says what it consumed before."""
        lives = {other: RangeSet(list(ranges)) for other, ranges in history.items()}
        session = Session(self.facts.order.get(life, 0), lives)
        self.sessions[process, life] = self.ledgers[receiver].last = session
        run = self.runs.setdefault(process, Run())
        run.order = max(run.order, session.order)

    def on_begin(self, receiver: str, process: str, life: int, number: int) -> None:
        """The session will deliver from `number` on: nothing stable below may be unknown to the application."""
        session, ledger = self.sessions[process, life], self.ledgers[receiver]
        session.begin = session.next = number
        ledger.began = max(ledger.began or 0, number)
        for low, high, sender in self.missed(receiver, number, self.runs[process].delivered):
            if self.facts.order[sender] <= session.order:
                text = f"{process} begins at {number}, {low}..{high - 1} of life {sender:#x} it never had"
                self.facts.report("D1", text)

    def on_delivered(self, process: str, life: int, sender: int, first: int, found: list[tuple[int, int]]) -> None:
        """Messages reach the application; `found` is what their payloads say of them."""
        facts, session, stop = self.facts, self.sessions[process, life], first + len(found)
        facts.counts["delivered"] += len(found)
        what = f"{process} delivers {first}..{stop - 1} of life {sender:#x}"
        if found != [(sender, serial.wire(number)) for number in range(first, stop)]:
            facts.report("D1", f"{what} with payloads of others")
        if session.begin is None and (process in self.leaving or not facts.setup.rules.sizes):
            session.begin = session.next = 0 if facts.setup.arrival else first
        if session.begin is None or first < session.begin:
            facts.report("D1", f"{what}, it begins at {session.begin}")
        elif facts.setup.arrival:
            self._check_once(session, what, first, stop)
        else:
            self._check_order(session, self.runs[process], what, first)
        if sender in session.history and session.history[sender].within(first, stop):
            facts.report("D1", f"{what} again")
        for number in range(first, stop):
            owner = facts.stable.get(number, sender)
            if owner != sender and facts.order[owner] <= session.order:
                facts.report("D1", f"{process} delivers {number} of life {sender:#x}, that of {owner:#x} is stable")
        session.delivered.setdefault(sender, RangeSet()).add(first, stop)
        self.runs[process].delivered.setdefault(sender, RangeSet()).add(first, stop)
        session.next = max(session.next, stop)

    def on_handed(self, process: str, sender: int, first: int, stop: int) -> None:
        """An application takes messages from its inbox: in one run of the program each once, and in order."""
        facts, run = self.facts, self.runs[process]
        handed = run.handed.setdefault(sender, RangeSet())
        what = f"the application of {process} is handed {first}..{stop - 1} of life {sender:#x}"
        if handed.within(first, stop):
            facts.report("D1", f"{what} twice in one run")
        elif handed.last is not None and first <= handed.last and not facts.setup.arrival:
            facts.report("D1", f"{what} after {handed.last}")
        # In turns two lives may have stores of their own: a receiver cannot tell that they are of one source (P-505).
        for number in range(first, stop) if not facts.setup.turns else ():
            owner = facts.stable.get(number, sender)
            if owner != sender and facts.order[owner] <= run.order:
                facts.report("D1", f"{what}, that of {owner:#x} is stable")
        handed.add(first, stop)

    def _check_order(self, session: Session, run: Run, what: str, first: int) -> None:
        if first < session.next:
            self.facts.report("D1", f"{what}, {session.next} was next")
        known = [*run.delivered.values(), run.lost]  # Other sessions delivered it, or told of its loss.
        for low, high in without(session.passed(session.next, first), known):
            self.facts.report("D1", f"{what}, {low}..{high - 1} were passed over and not reported lost")

    def _check_once(self, session: Session, what: str, first: int, stop: int) -> None:
        for told in (session.lost, *session.delivered.values()):
            if told.within(first, stop):
                self.facts.report("D1", f"{what}, some of it was delivered or reported lost before")

    def on_consumed(self, receiver: str, sender: int, first: int, stop: int) -> None:
        """The application is done with messages."""
        self.ledgers[receiver].consumed.setdefault(sender, RangeSet()).add(first, stop)

    def on_given_up_run(self, process: str, life: int, first: int, stop: int) -> None:
        """A session gives messages up."""
        self.facts.counts["lost"] += stop - first
        self.sessions[process, life].lost.add(first, stop)

    def on_loss(self, receiver: str, process: str, life: int, first: int, stop: int) -> None:
        """A loss is reported to the application."""
        session, run = self.sessions[process, life], self.runs[process]
        run.lost.add(first, stop)
        if process in self.leaving:
            return
        for low, high, sender in self.missed(receiver, stop):
            if high > first and self.facts.order[sender] <= session.order:
                text = f"{process} reports {max(low, first)}..{high - 1} of life {sender:#x} lost, which are stable"
                self.facts.report("S3", text)
        self.ledgers[receiver].lost.add(first, stop)

    def on_given_up(self, receiver: str, process: str, life: int, sender: int, number: int, *, told: bool) -> None:
        """A piece is of no use: that of a message that is all stable, and nothing of it lost, would have been.

        The application is told, unless the message began before the session did. Who leaves is promised nothing.
        """
        facts, ledger, session = self.facts, self.ledgers[receiver], self.sessions[process, life]
        facts.counts["pieces given up"] += 1
        first, last = facts.large[sender, number]
        begun = session.begin is not None and session.begin <= first
        promised = begun and process not in self.leaving and facts.whole(sender, number)
        gone = ledger.lost.within(first, last + 1) or ledger.excused.within(first, last + 1)  # Limits let go of parts.
        if promised and not gone:
            facts.report("S3", f"{process} gives up {number} of {first}..{last} of life {sender:#x}, which is stable")
        if begun and not told:
            facts.report("D1", f"{process} passes {number} of {first}..{last} of life {sender:#x} over without a word")
        session.lost.add(number, number + 1)
        ledger.lost.add(number, number + 1)

    def on_leave(self, receiver: str, process: str) -> None:
        """A process deregisters its receiver: nothing is kept for it any more."""
        self.leaving.append(process)
        self.ledgers[receiver].began = None

    def on_consumption_ack(self, receiver: str, process: str, life: int, wire: int) -> None:
        """A receiver acknowledges everything up to a number."""
        session = self.sessions[process, life]
        consumed = self.ledgers[receiver].consumed
        number = serial.extend(wire, session.next)
        if session.begin is None:
            self.facts.report("A1", f"{process} acknowledges {number} before it began")
            return
        before, session.acknowledged = session.acknowledged, max(session.acknowledged, number)
        if number < before and self.facts.setup.ack_mode is not AckMode.EXPLICIT:
            self.facts.report("A1", f"{process} acknowledges {number} after {before}")
        done = [session.lost, *session.history.values()]
        for sender, delivered in self.runs[process].delivered.items():
            ours = consumed.get(sender, RangeSet())
            done.append(RangeSet([part for low, high in delivered for part in ours.within(low, high)]))
        for low, high in without([(session.begin, number + 1)], done):
            self.facts.report("A1", f"{process} acknowledges {number}, {low}..{high - 1} are not consumed")

    def missed(
        self, receiver: str, stop: int | None = None, waiting: Lives | None = None
    ) -> list[tuple[int, int, int]]:
        """The stable messages (below `stop`) that a receiver misses, as first, stop, life.

        What its process has in its inbox may be `waiting`. The receiver neither consumed them nor reported them lost,
        and they were to be kept for it. Pieces of a message that is not all stable are none.
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
