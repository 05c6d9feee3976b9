"""Check the source, registrations and the final state from outside; `facts` is what the checkers observe."""

from collections.abc import Iterable
from typing import Protocol

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.events import Event, Oddity
from stablecast.core.registration.status import RegistrationStatus
from stablecast.evidence.trace.cross_rules import LOSSES, Suspect
from stablecast.evidence.trace.live_trace import LiveLedger
from stablecast.lab.sim.endpoint_configs import place_of
from stablecast.lab.sim.facts import Facts, Lives, without
from stablecast.lab.sim.receiver_checkers import ReceiverCheckers
from stablecast.lab.sim.setup import STORES
from stablecast.lab.sim.store_checkers import StoreCheckers


class RegisteringProcess(Protocol):
    name: str
    alive: bool
    frozen: bool

    def registrations(self) -> Iterable[RegistrationStatus]: ...


@attrs.define
class Checkers:
    """Check one world. `in_peace` (sent after all faults) and `forced` are by life."""

    facts: Facts
    ledger: LiveLedger
    stores: StoreCheckers
    receivers: ReceiverCheckers
    clients: list[RegisteringProcess] = attrs.field(factory=list)
    in_peace: Lives = attrs.field(factory=dict)
    forced: Lives = attrs.field(factory=dict)

    @classmethod
    def of(cls, facts: Facts) -> "Checkers":
        reading = ReceiverCheckers(facts)
        return cls(facts, LiveLedger(facts.report, place_of), StoreCheckers(facts, reading.ledgers), reading)

    # The source.

    def on_life(self, life: int, first: int) -> None:
        """Check that a new life, which sends from `first` on, reuses no stable number."""
        facts = self.facts
        facts.counts["lives"] += 1
        facts.order[life] = len(facts.begins)
        facts.begins[life] = first
        reused = [number for number in facts.stable if number >= first]
        if reused:
            facts.report("S2", f"life {life:#x} begins at {first}, number {max(reused)} is stable for an earlier one")

    def on_proxy(self, life: int) -> None:
        self.facts.counts["proxies"] += 1
        self.facts.order[life] = len(self.facts.begins) - 1
        self.facts.stand_ins.append(life)

    def on_sent(self, life: int, first: int, stop: int, large: Iterable[tuple[int, int]] = ()) -> None:
        """Record sent numbers; `large` are the first and last numbers of fragmented messages."""
        for low, high in large:
            self.facts.counts["cut"] += 1
            for number in range(low, high + 1):
                self.facts.large[life, number] = (low, high)
        self.facts.counts["sent"] += stop - first
        if self.facts.calm:
            self.in_peace.setdefault(life, RangeSet()).add(first, stop)

    def on_stable(self, life: int, first: int, stop: int, active: list[str]) -> None:
        """Check that enough stores hold messages that are reported stable, while the stores `active` are registered."""
        facts = self.facts
        facts.counts["stable"] += stop - first
        facts.on_claimed(life, stop)
        facts.stable_lives.setdefault(life, RangeSet()).add(first, stop)
        for number in range(first, stop):
            holders = facts.holders(life, number)
            if not facts.judge.stable(holders, active):
                if facts.had(life, number):
                    facts.excuse(life, number)
                    continue
                facts.report("S1", f"number {number} is called stable and synced at {holders}")
            if life in facts.forked:
                facts.excuse(life, number)
                continue
            if number not in facts.stable:
                facts.claimed[number] = facts.renewed.get(life, 0)
            other = facts.stable.setdefault(number, life)
            if other != life and facts.lost(life, number):
                # Its acknowledgements were late. What stores released since was the other life's message.
                facts.excuse(life, number)
            elif other != life:
                facts.report("S2", f"number {number} is stable for life {other:#x} and for life {life:#x}")

    def on_forced(self, life: int, first: int, stop: int) -> None:
        """Check that copies which a source gives up were forced out.

        A source gives up copies because of its own limits, or because they do not become stable in time. When all
        faults are over, only limits of stores can keep a message from becoming stable.
        """
        before = self.forced.get(life, RangeSet()).within(0, first)
        # A life of which nothing became stable has no such excuse: its stores acknowledge nothing.
        if before and self.facts.wiped and self.facts.stable_lives.get(life):
            self.forced[life].add(first, stop)
            return  # Stores that lost their disks still wait for copies that the source gave up meanwhile.
        settled = [lives[life] for lives in (self.facts.stable_lives, self.forced, self.facts.excused) if life in lives]
        unstable = without(self.in_peace.get(life, RangeSet()).within(first, stop), settled)
        self.forced.setdefault(life, RangeSet()).add(first, stop)
        if self.facts.setup.retained[1] or not self.facts.setup.rules.sizes:
            return
        for number in (number for low, high in unstable for number in range(low, high)):
            passed = self.stores.passed(number)
            left = [store for store in self.facts.disks if store not in passed]
            turn_over = self.facts.setup.turns and passed  # The store whose turn it is decides alone (P-502).
            if self.facts.judge.recoverable(left) and not turn_over:
                self.facts.report("L1", f"number {number} is given up, {' and '.join(left)} had room for it")
                return

    # Registrations.

    def on_registered(self, client: RegisteringProcess, store_index: int, reg_id: int) -> None:
        """Check that no other live client counts on a granted RegID."""
        self.facts.counts["registrations"] += 1
        for other in self.clients:
            if other is client or not other.alive or other.frozen:
                continue
            for held in other.registrations():
                request = held.request
                # An older copy may have forgotten a grant, and nobody noticed it yet.
                known = STORES[store_index] not in self.facts.undeclared
                if known and held.counts and request.store_index == store_index and request.reg_id == reg_id:
                    text = f"store {store_index} grants RegID {reg_id} to {client.name}, {other.name} counts on it"
                    self.facts.report("R1", text)

    # At the end, and for everybody.

    def at_the_end(self) -> None:
        """Check that all traces agree, and that every stable message is still recoverable."""
        facts = self.facts
        self.ledger.judge(self._promised)
        if facts.farewell:
            return
        for number, life in facts.stable.items():
            holders = facts.holders(life, number)
            # Before the other stores had it back, the only store that kept it may have let it go by a rule.
            released = facts.had(life, number) and self.stores.released(number)
            if not facts.judge.recoverable(holders) and not released:
                facts.report("S3", f"number {number} of life {life:#x} was stable and is left at {holders}")
                return

    def _promised(self, suspect: Suspect) -> bool:
        """Return whether what two traces deny each other was promised.

        The condition of "It is recoverable": between two refills a minority of the stores loses its disks. What a
        majority lost is excused, number by number, and only from the rules about loss.
        """
        excused = self.facts.excused.get(suspect.life)
        return suspect.rule not in LOSSES or excused is None or suspect.number not in excused

    def on_oddity(self, event: Event) -> None:
        """Count what machines drop."""
        if isinstance(event, Oddity):
            self.facts.counts[event.code] += 1
