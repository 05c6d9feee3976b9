"""Rules of one endpoint's trace, judged from its inputs and effects alone, not by replay.

`evidence.rules.judges.ONE_TRACE` lists them. F1 stands in `flight_rule`, L2 in `progress_rule`, C1 and P2 in
`retention_rules`, R2 and R6 in `registration_rules`.

Receivers in arrival order deliver a number once, in any order. Where receivers set the pace (RPP) an acknowledged
message is at least kept, or went because all have consumed it. Numbers that the application acknowledges itself need
not be consumed, and may be lower than before. A rule takes the state before the trace from its first snapshot, and
keeps ranges, however long the trace.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import assert_never

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import MODULUS
from stablecast.core.protocol.effects import CacheMessages, Deliver, PersistClient, PersistMessages, Reclaim
from stablecast.core.protocol.events import RegistrationComplete, Stable, StableFlag, UnrecoverableLoss
from stablecast.core.protocol.inputs import Acknowledge, Consumed, Damaged, History, Persisted, Sent, Useless
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, Incarnation, Pace, Role, StableAck
from stablecast.core.protocol.settings import AckMode, Ordering, StoreConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.receiver.status import ReceiverStatus
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.flight_rule import FlightKept
from stablecast.evidence.trace.progress_rule import GoesOn
from stablecast.evidence.trace.quorums import Acknowledged, extended
from stablecast.evidence.trace.registration_rules import OneLifeOfContext, WrittenFirst
from stablecast.evidence.trace.retention_rules import RetainedUntilConsumed, RetainedUntilStable
from stablecast.evidence.trace.rule_protocol import EndpointRule, RuleHandlers

_HELD, _STABLE = int(StableFlag.STORE), int(StableFlag.STABLE)


@attrs.define
class StableByQuorum:
    """Rule S1, by the acknowledgements that arrived."""

    stores: Acknowledged
    name: str = "S1"

    def handlers(self) -> RuleHandlers:
        return {Sent: self.stores.on_sent, StableAck: self.stores.on_acked}, {
            RegistrationComplete: self.stores.on_complete,
            Stable: self._on_stable,
        }

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
    """Rule D1 for ordered delivery."""

    next: int | None
    passed: RangeSet
    name: str = "D1"

    def handlers(self) -> RuleHandlers:
        return {History: self._on_passed}, {
            RegistrationComplete: self._on_complete,
            Deliver: self._on_deliver,
            UnrecoverableLoss: self._on_passed,
        }

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "InOrder":
        return cls(receiver.next_number, _consumed_before(receiver.status))

    def _on_passed(self, event: History | UnrecoverableLoss) -> None:
        self.passed.add(event.first, event.last + 1)

    def _on_complete(self, event: RegistrationComplete) -> None:
        self.next = event.number

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
    """Rule D1 in arrival order; `passed` was delivered, or reported lost."""

    passed: RangeSet
    name: str = "D1"

    def handlers(self) -> RuleHandlers:
        return {}, {Deliver: self._on_deliver, UnrecoverableLoss: self._on_lost}

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "OnceEach":
        passed, reached = _handed_out(receiver.status), receiver.next_number or 0
        passed.add(min(reached, 0), reached)
        return cls(passed)

    def _on_lost(self, event: UnrecoverableLoss) -> None:
        self.passed.add(event.first, event.last + 1)

    def _on_deliver(self, effect: Deliver) -> str | None:
        again = self.passed.within(effect.first, effect.first + effect.count)
        self.passed.add(effect.first, effect.first + effect.count)
        return f"number {again[0][0]} is delivered, and was before or is reported lost" if again else None


@attrs.define
class NothingUnread:
    """Rule A1; `told` is the last acknowledged number at any store, which may not fall if it `rises`.

    `unseen` messages are for other shares of the topic: they may be acknowledged, and never confirmed. Earlier sessions
    `confirmed` some: these were not for others.
    """

    next: int
    consumed: RangeSet
    rises: bool
    told: int
    paces: bool = False
    divides: bool = False
    unseen: RangeSet = attrs.field(factory=RangeSet)
    confirmed: RangeSet = attrs.field(factory=RangeSet)
    delivered: bool = False
    in_order: bool = True
    floor: int = 0
    """Everything from here on must be consumed or lost; what lies below was acknowledged, or is not ours."""
    lost: RangeSet = attrs.field(factory=RangeSet)
    name: str = "A1"

    def handlers(self) -> RuleHandlers:
        return {
            History: self._on_history,
            Consumed: self._on_consumed,
            Acknowledge: self._on_acknowledge,
            Useless: self._on_lost,
        }, {
            RegistrationComplete: self._on_complete,
            UnrecoverableLoss: self._on_lost,
            Deliver: self._on_deliver,
            ConsumptionAck: self._on_told,
        }

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "NothingUnread":
        status = receiver.status
        consumed, acked = _consumed_before(status), status.acknowledged
        # A confirmation that a broken connection swallowed is repeated, from where delivery began.
        consumed.update((*status.consumed, (acked, acked + 1), *status.confirmable))
        # In arrival order delivered numbers may be above the next one.
        in_order = receiver.config.ordering is Ordering.ORDERED
        newest = None if in_order else _handed_out(status).last
        rises = receiver.config.ack_mode is not AckMode.EXPLICIT
        paces, divides = receiver.config.pace is not Pace.SOURCE, receiver.config.divides
        newest_known = max(receiver.next_number or 0, -1 if newest is None else newest + 1)
        began = receiver.next_number is not None
        return cls(
            newest_known, consumed, rises, acked, paces, divides, delivered=began, in_order=in_order, floor=newest_known
        )

    def _on_history(self, event: History) -> None:
        self.consumed.add(event.first, event.last + 1)
        if event.confirmed:
            self.confirmed.add(event.first, event.last + 1)
        elif self.divides:
            self.unseen.add(event.first, event.last + 1)
        for first, stop in self.confirmed:
            self.unseen.remove(first, stop)

    def _on_consumed(self, event: Consumed) -> str | None:
        self.consumed.add(event.first, event.last + 1)
        (self.unseen.add if event.unseen else self.unseen.remove)(event.first, event.last + 1)
        # What this session lost an earlier one may have delivered: the application has it in hand.
        never = self.lost.missing(max(event.first, self.next), event.last + 1)
        return f"number {never[-1][1] - 1} is consumed and was never delivered" if never else None

    def _on_lost(self, event: UnrecoverableLoss | Useless) -> None:
        self.lost.add(event.first, event.last + 1)

    def _on_complete(self, event: RegistrationComplete) -> None:
        self.floor = event.number
        if not self.delivered:  # What lies below, the session before delivered: the application has it in hand.
            self.next = event.number
        # A receiver that sets the pace acknowledges what lies below its start: no store shall keep that for it.
        if self.paces:
            self.consumed.add(event.number - 1, event.number)
            if (
                not self.delivered
            ):  # A store that grants late may take the start back, and that acknowledgement with it.
                self.told = min(self.told, event.number - 1)

    def _on_acknowledge(self, event: Acknowledge) -> None:
        if self.in_order:  # The application was handed everything below.
            self.floor = max(self.floor, event.number + 1)
        self.consumed.add(event.number if event.first is None else event.first, event.number + 1)

    def _on_deliver(self, effect: Deliver) -> None:
        stop = effect.first + effect.count
        self.next = max(self.next, stop)
        self.delivered = True

    def _on_told(self, ack: ConsumptionAck) -> str | None:
        number = extended(ack.number, self.consumed.last or 0)
        if ack.first != FROM_THE_START:
            first = number - (ack.number - ack.first) % MODULUS
            unread = self.consumed.missing(first, number + 1) or self.unseen.within(first, number + 1)
            return f"number {unread[0][0]} is confirmed and was never consumed" if unread else None
        before, self.told = self.told, max(self.told, number)
        if number not in self.consumed:
            return f"number {number} is acknowledged and was never consumed"
        if unread := self._unread(number):
            return f"number {number} is acknowledged, and number {unread[0][0]} was never consumed"
        return f"number {number} is acknowledged after number {before}" if number < before and self.rises else None

    def _unread(self, number: int) -> list[tuple[int, int]]:
        """Return what was neither consumed nor lost up to this number, and was not acknowledged before."""
        first, self.floor = self.floor, max(self.floor, number + 1)
        return [part for low, high in self.consumed.missing(first, number + 1) for part in self.lost.missing(low, high)]


@attrs.define
class SyncedFirst:
    """Rule P1; `written` has (ticket, incarnation, first, stop) until the sync.

    Messages that went before the trace began may be acknowledged again, and their sync is unknown. What cannot be read
    back must be synced again, unless it went before: `trails` has where the numbers of each RegID begin. `paced` are
    the lives of sources, by RegID, whose receivers set the pace: messages that are kept, or went, may be acknowledged.
    """

    written: list[tuple[int, int, int, int]]
    synced: dict[int, RangeSet]
    paced: dict[int, Incarnation]
    trails: dict[int, int] = attrs.field(factory=dict)
    lives: dict[int, set[Incarnation]] = attrs.field(factory=lambda: defaultdict(set))
    """The lives of each RegID, whose numbers may be damaged."""
    name: str = "P1"

    def handlers(self) -> RuleHandlers:
        return {Persisted: self._on_persisted, Damaged: self._on_damaged}, {
            PersistMessages: self._on_written,
            StableAck: self._on_acknowledged,
            PersistClient: self._on_client,
            CacheMessages: self._on_kept,
            Reclaim: self._on_reclaim,
        }

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "SyncedFirst":
        waiting = [(due.ticket, due.incarnation, due.first, due.stop) for due in store.status.waiting]
        synced: dict[int, RangeSet] = defaultdict(RangeSet)
        lives: dict[int, set[Incarnation]] = defaultdict(set)
        for reg_id, repository in store.status.repositories.items():
            for life, numbers in by_life(repository).items():
                synced[life].update(numbers)
                lives[reg_id].add(life)
            synced[repository.incarnation].add(0, repository.trail)
        trails = {reg_id: repository.trail for reg_id, repository in store.status.repositories.items()}
        paced = {reg_id: one.incarnation for reg_id, one in store.status.repositories.items() if one.terms.paced}
        for reg_id, life in paced.items():
            synced[life].update(store.status.repositories[reg_id].held)
        return cls(waiting, synced, paced, trails, lives)

    def _on_damaged(self, event: Damaged) -> None:
        for life in self.lives[event.source_reg_id]:
            self.synced[life].remove(max(event.first, self.trails.get(event.source_reg_id, 0)), event.last + 1)

    def _on_persisted(self, event: Persisted) -> None:
        waiting = []
        for ticket, incarnation, first, stop in self.written:
            if ticket <= event.ticket:
                self.synced[incarnation].add(first, stop)
            else:
                waiting.append((ticket, incarnation, first, stop))
        self.written = waiting

    def _on_written(self, effect: PersistMessages) -> None:
        self.lives[effect.source_reg_id].add(effect.incarnation)
        if self.paced and effect.incarnation in self.paced.values():
            self._on_kept(effect)
        else:
            first = effect.first
            self.written.append((effect.ticket, effect.incarnation, first, first + effect.count))

    def _on_kept(self, effect: PersistMessages | CacheMessages) -> None:
        self.synced[effect.incarnation].add(effect.first, effect.first + effect.count)

    def _on_reclaim(self, effect: Reclaim) -> None:
        self.trails[effect.source_reg_id] = effect.number
        if effect.source_reg_id in self.paced:
            self.synced[self.paced[effect.source_reg_id]].add(0, effect.number)

    def _on_client(self, effect: PersistClient) -> None:
        client = effect.client
        if client.role is Role.SOURCE and client.pace is Pace.RECEIVERS:
            self.paced[client.reg_id] = client.incarnation

    def _on_acknowledged(self, ack: StableAck) -> str | None:
        if ack.nack:
            return None
        synced = self.synced[ack.incarnation]
        first = extended(ack.first, synced.last or 0)
        stop = extended(ack.last, first) + 1
        if synced.contiguous_from(first) >= stop:
            return None
        missing = synced.missing(first, stop)
        return f"number {missing[0][0]} is acknowledged and was never synced" if missing else None


def _consumed_before(status: ReceiverStatus) -> RangeSet:
    """Return the numbers of any life that the application consumed in an earlier session."""
    consumed = status.known
    for held in status.lives.values():
        consumed.update(held)
    return consumed


def _handed_out(status: ReceiverStatus) -> RangeSet:
    """Return the numbers delivered or given up in arrival order; those before the registration are only held."""
    numbers = status.settled_ahead
    for first, stop in status.held:
        numbers.remove(first, stop)
    return numbers


def begin(machine: Endpoint) -> list[EndpointRule]:
    """Return the rules for a machine's trace from this state on."""
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
    """Return the numbers that count as synced, by the life that sent them; unknown senders count as the current life.

    Messages that go to memory first count from then on, as `CacheMessages` does.
    """
    terms = repository.terms
    counts = repository.synced if terms.written and not terms.write_delay_ns else repository.held
    lives: dict[int, RangeSet] = defaultdict(RangeSet)
    for life, first, stop in spans_of(repository):
        if numbers := counts.within(first, stop):
            lives[life].update(numbers)
    return dict(lives)


def spans_of(repository: RepositoryStatus) -> Iterator[tuple[int, int, int]]:
    """Yield each life that sent numbers to the repository, with its first number and the one after its last."""
    starts = [*repository.lives] or [(repository.incarnation, 0)]
    ends = [first for _, first in starts[1:]] + [repository.newest + 1]
    for (life, first), stop in zip([(starts[0][0], 0), *starts[1:]], ends, strict=True):
        yield life, first, stop


def may_pace(config: StoreConfig) -> bool:
    """Return whether a store lets sources do with less than a sync (RPP)."""
    kept = [rule.repository for rule in config.topics] + [config.repository]
    return any(one is not None and one.allow_rpp for one in kept)
