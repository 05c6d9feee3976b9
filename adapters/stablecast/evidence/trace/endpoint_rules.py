"""What must hold in one endpoint's trace whatever code made it: judged from inputs and effects alone, not by replay.

| rule | of | says |
|---|---|---|
| S1 | source | a number is reported stable only after stability acks for it from as many stores as the groups ask for |
| D1 | receiver | numbers are delivered in order, none twice, and passed over only when lost or consumed before |
| A1 | receiver | nothing is consumed that was not delivered, or acknowledged that was not consumed, or taken back |
| F1 | source | a source that blocks has no more in flight than its flight size (`flight_rule`) |
| L1 | source | a source that waits for its transport, or for credit, goes on (`progress_rule`) |
| C1 | source | what is let go is stable, or forced out (`retention_rules`) |
| P1 | store | a number is acknowledged only after `Persisted` covered it, or when it is for the memory only |
| P1 | store | a registration is granted only after `Persisted` covered it (`grant_rule`) |
| R1 | store | a RegID does not go to and fro between two lives of one context (`holder_rule`) |
| P2 | store | a store that receivers pace lets go of what those who block have consumed (`retention_rules`) |

Receivers that deliver in arrival order deliver a number once, whatever the order. Where receivers set the pace (RPP)
what is acknowledged is at least kept, or went because all have consumed it. What the application acknowledges itself
need not be consumed, and may be less than before. A rule learns from the snapshot that the trace starts with what was
so before, and keeps ranges, however long the trace. What it does not watch it is not asked about.
"""

from collections.abc import Mapping
from typing import assert_never

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol.effects import CacheMessages, Deliver, PersistClient, PersistMessages, Reclaim
from stablecast.core.protocol.events import RegistrationComplete, Stable, StableFlag, UnrecoverableLoss
from stablecast.core.protocol.inputs import Acknowledge, Consumed, History, Persisted, Sent
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, Incarnation, Pace, Role, StableAck
from stablecast.core.protocol.settings import AckMode, Ordering, StoreConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.receiver.status import ReceiverStatus
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.flight_rule import FlightKept
from stablecast.evidence.trace.grant_rule import WrittenFirst
from stablecast.evidence.trace.holder_rule import OneLifeOfContext
from stablecast.evidence.trace.progress_rule import GoesOn
from stablecast.evidence.trace.quorums import Acknowledged, extended
from stablecast.evidence.trace.retention_rules import RetainedUntilConsumed, RetainedUntilStable
from stablecast.evidence.trace.rule_protocol import Ask, Rule

_HELD, _STABLE = int(StableFlag.STORE), int(StableFlag.STABLE)


@attrs.define
class StableByQuorum:
    """S1."""

    stores: Acknowledged
    name: str = "S1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What is sent and acknowledged."""
        return {Sent: self.stores.on_sent, StableAck: self.stores.on_acked}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """Where this life begins, and what is stable."""
        return {RegistrationComplete: self.stores.on_complete, Stable: self._on_stable}

    def _on_stable(self, stable: Stable) -> str | None:
        stop, flags = stable.last + 1, int(stable.flags)
        held = not flags & _HELD or self.stores.holds(stable.store_index, stable.first, stop)
        if held and not (flags & _STABLE and self.stores.lacking(stable.first, stop)):
            return None
        for first, holders in self.stores.pieces(stable.first, stop):
            if flags & _HELD and stable.store_index not in holders:
                return f"number {first} is reported as held by store {stable.store_index}, which never acknowledged it"
            if flags & _STABLE and not self.stores.suffice(holders):
                return f"number {first} is reported stable, and acknowledged by stores {holders} only"
        return None


@attrs.define
class InOrder:
    """D1."""

    next: int | None
    passed: RangeSet
    name: str = "D1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What the application consumed in earlier sessions."""
        return {History: self._on_passed}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """Where it begins, what is delivered and what is lost."""
        return {
            RegistrationComplete: self._on_complete,
            Deliver: self._on_deliver,
            UnrecoverableLoss: self._on_passed,
        }

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "InOrder":
        """From here on."""
        return cls(receiver.next_number, _consumed_before(receiver.status))

    def _on_passed(self, event: History | UnrecoverableLoss) -> str | None:
        self.passed.add(event.first, event.last + 1)
        return None

    def _on_complete(self, event: RegistrationComplete) -> str | None:
        self.next = event.number
        return None

    def _on_deliver(self, effect: Deliver) -> str | None:
        first = effect.first
        stop = first + effect.count
        expected, self.next = self.next, stop
        if stop <= first:
            return f"nothing is delivered at number {first}"
        if expected is None or first == expected:
            return None
        if first < expected:
            return f"number {first} is delivered after number {expected - 1}"
        missing = self.passed.missing(expected, first)
        return f"number {missing[0][0]} is passed over and was neither lost nor consumed before" if missing else None


@attrs.define
class OnceEach:
    """D1 in arrival order. `passed` was delivered, or reported lost."""

    passed: RangeSet
    name: str = "D1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """Nothing."""
        return {}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """What is delivered and what is lost."""
        return {Deliver: self._on_deliver, UnrecoverableLoss: self._on_lost}

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "OnceEach":
        """From here on."""
        passed, reached = _handed_out(receiver.status), receiver.next_number or 0
        passed.add(min(reached, 0), reached)
        return cls(passed)

    def _on_lost(self, event: UnrecoverableLoss) -> str | None:
        self.passed.add(event.first, event.last + 1)
        return None

    def _on_deliver(self, effect: Deliver) -> str | None:
        again = self.passed.within(effect.first, effect.first + effect.count)
        self.passed.add(effect.first, effect.first + effect.count)
        return f"number {again[0][0]} is delivered, and was before or is reported lost" if again else None


@attrs.define
class NothingUnread:
    """A1. `told` is what was acknowledged last, to whomever; where it `rises` it may not fall."""

    next: int
    consumed: RangeSet
    rises: bool
    told: int
    name: str = "A1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What the application consumes, and consumed before."""
        return {History: self._on_history, Consumed: self._on_consumed, Acknowledge: self._on_acknowledge}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """What is delivered, and acknowledgements."""
        return {Deliver: self._on_deliver, ConsumptionAck: self._on_told}

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "NothingUnread":
        """From here on."""
        status = receiver.status
        consumed, acked = _consumed_before(status), status.acknowledged
        # A confirmation that a broken connection swallowed is repeated, from where delivery began.
        for first, stop in (*status.consumed, (acked, acked + 1), *status.confirmable):
            consumed.add(first, stop)
        # In arrival order what was delivered may be ahead of what is next.
        newest = _handed_out(status).last if receiver.config.ordering is Ordering.ARRIVAL else None
        rises = receiver.config.ack_mode is not AckMode.EXPLICIT
        return cls(max(receiver.next_number or 0, -1 if newest is None else newest + 1), consumed, rises, acked)

    def _on_history(self, event: History) -> str | None:
        self.consumed.add(event.first, event.last + 1)
        return None

    def _on_consumed(self, event: Consumed) -> str | None:
        self.consumed.add(event.first, event.last + 1)
        return f"number {event.last} is consumed and was never delivered" if event.last >= self.next else None

    def _on_acknowledge(self, event: Acknowledge) -> str | None:
        self.consumed.add(event.number if event.first is None else event.first, event.number + 1)
        return None

    def _on_deliver(self, effect: Deliver) -> str | None:
        stop = effect.first + effect.count
        self.next = max(self.next, stop)
        return None

    def _on_told(self, ack: ConsumptionAck) -> str | None:
        number = extended(ack.number, self.consumed.last or 0)
        if ack.first != FROM_THE_START:
            unread = self.consumed.missing(number - (ack.number - ack.first) % MODULUS, number + 1)
            return f"number {unread[0][0]} is confirmed and was never consumed" if unread else None
        before, self.told = self.told, max(self.told, number)
        if number not in self.consumed:
            return f"number {number} is acknowledged and was never consumed"
        return f"number {number} is acknowledged after number {before}" if number < before and self.rises else None


@attrs.define
class SyncedFirst:
    """P1. `written` is what waits for its ticket: (ticket, incarnation, first, stop).

    What had to go before the trace began may be acknowledged again, and nobody knows any more that it was synced.
    `paced` are the lives of sources, by RegID, whose receivers set the pace: what is kept may be acknowledged, and what
    went.
    """

    written: list[tuple[int, int, int, int]]
    synced: dict[int, RangeSet]
    paced: dict[int, Incarnation]
    name: str = "P1"

    @property
    def hears(self) -> Mapping[type, Ask]:
        """What has reached the disk."""
        return {Persisted: self._on_persisted}

    @property
    def tells(self) -> Mapping[type, Ask]:
        """What is kept, what goes, and stability acknowledgements."""
        return {
            PersistMessages: self._on_written,
            StableAck: self._on_acknowledged,
            PersistClient: self._on_client,
            CacheMessages: self._on_kept,
            Reclaim: self._on_reclaim,
        }

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "SyncedFirst":
        """From here on."""
        waiting = [(due.ticket, due.incarnation, due.first, due.stop) for due in store.status.waiting]
        synced: dict[int, RangeSet] = {}
        for repository in store.status.repositories.values():
            for life, numbers in by_life(repository).items():
                for first, stop in numbers:
                    synced.setdefault(life, RangeSet()).add(first, stop)
            synced.setdefault(repository.incarnation, RangeSet()).add(0, repository.trail)
        paced = {reg_id: one.incarnation for reg_id, one in store.status.repositories.items() if one.terms.paced}
        for reg_id, life in paced.items():
            for first, stop in store.status.repositories[reg_id].held:
                synced.setdefault(life, RangeSet()).add(first, stop)
        return cls(waiting, synced, paced)

    def _on_persisted(self, event: Persisted) -> str | None:
        waiting = []
        for ticket, incarnation, first, stop in self.written:
            if ticket <= event.ticket:
                self._of(incarnation).add(first, stop)
            else:
                waiting.append((ticket, incarnation, first, stop))
        self.written = waiting
        return None

    def _on_written(self, effect: PersistMessages) -> str | None:
        if self.paced and effect.incarnation in self.paced.values():
            return self._on_kept(effect)
        first = effect.first
        self.written.append((effect.ticket, effect.incarnation, first, first + effect.count))
        return None

    def _on_kept(self, effect: PersistMessages | CacheMessages) -> str | None:
        self._of(effect.incarnation).add(effect.first, effect.first + effect.count)
        return None

    def _on_reclaim(self, effect: Reclaim) -> str | None:
        if effect.source_reg_id in self.paced:
            self._of(self.paced[effect.source_reg_id]).add(0, effect.number)
        return None

    def _on_client(self, effect: PersistClient) -> str | None:
        client = effect.client
        if client.role is Role.SOURCE and client.pace is Pace.RECEIVERS:
            self.paced[client.reg_id] = client.incarnation
        return None

    def _on_acknowledged(self, ack: StableAck) -> str | None:
        if ack.nack:
            return None
        synced = self._of(ack.incarnation)
        first = extended(ack.first, synced.last or 0)
        stop = extended(ack.last, first) + 1
        if synced.contiguous_from(first) >= stop:
            return None
        missing = synced.missing(first, stop)
        return f"number {missing[0][0]} is acknowledged and was never synced" if missing else None

    def _of(self, incarnation: int) -> RangeSet:
        synced = self.synced.get(incarnation)
        if synced is None:
            synced = self.synced[incarnation] = RangeSet()
        return synced


def _consumed_before(status: ReceiverStatus) -> RangeSet:
    """Numbers that the application consumed in an earlier session, of whatever life of the source."""
    consumed = status.known
    for held in status.lives.values():
        for first, stop in held:
            consumed.add(first, stop)
    return consumed


def _handed_out(status: ReceiverStatus) -> RangeSet:
    """In arrival order: numbers that are delivered or given up. What came before the registration is only held."""
    numbers = status.settled_ahead
    for first, stop in status.held:
        numbers.remove(first, stop)
    return numbers


def begin(machine: Endpoint) -> list[Rule]:
    """Returns the rules that a machine's trace is judged by, from this state on."""
    match machine:
        case SourceEndpoint():
            flight = FlightKept.begin(machine) if FlightKept.judges(machine) else None
            stores = Acknowledged.begin(machine)
            waits = GoesOn.begin(machine, stores, flight)
            kept = [] if flight is None else [flight]
            return [StableByQuorum(stores), *kept, RetainedUntilStable.begin(machine, stores), waits]
        case ReceiverSession():
            in_order = machine.config.ordering is Ordering.ORDERED
            return [InOrder.begin(machine) if in_order else OnceEach.begin(machine), NothingUnread.begin(machine)]
        case StoreEndpoint():
            paced = [RetainedUntilConsumed.begin(machine)] if may_pace(machine.config) else []
            return [SyncedFirst.begin(machine), WrittenFirst.begin(machine), OneLifeOfContext.begin(machine), *paced]
        case _:
            assert_never(machine)


def by_life(repository: RepositoryStatus) -> dict[int, RangeSet]:
    """What counts as synced, by the life that sent it; what no life is known of counts as the current one's.

    What goes to memory first counts from then on, as `CacheMessages` does.
    """
    terms = repository.terms
    counts = repository.synced if terms.written and not terms.write_delay_ns else repository.held
    starts = [*repository.lives] or [(repository.incarnation, 0)]
    lives: dict[int, RangeSet] = {}
    ends = [first for _, first in starts[1:]] + [repository.newest + 1]
    for (life, first), stop in zip([(starts[0][0], 0), *starts[1:]], ends, strict=True):
        for low, high in counts.within(first, stop):
            lives.setdefault(life, RangeSet()).add(low, high)
    return lives


def may_pace(config: StoreConfig) -> bool:
    """Whether a store lets sources do with less than a sync (RPP)."""
    kept = [rule.repository for rule in config.topics] + [config.repository]
    return any(one is not None and one.allow_rpp for one in kept)
