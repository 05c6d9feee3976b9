"""What must hold in one endpoint's trace whatever code made it: judged from inputs and effects alone, not by replay.

| rule | of | says |
|---|---|---|
| S1 | source | a number is reported stable only after stability acks for it from as many stores as the groups ask for |
| D1 | receiver | numbers are delivered in order, none twice, and passed over only when lost or consumed before |
| A1 | receiver | nothing is consumed that was not delivered, or acknowledged that was not consumed, or taken back |
| F1 | source | a source that blocks has no more in flight than its flight size (`stablecast.trace.flight`) |
| C1 | source | what is let go is stable, or forced out (`stablecast.trace.keeping`) |
| P1 | store | a number is acknowledged only after `Persisted` covered it, or when it is for the memory only |
| P1 | store | a registration is granted only after `Persisted` covered it (`stablecast.trace.granting`) |
| P2 | store | a store that receivers pace lets go of what those who block have consumed (`stablecast.trace.keeping`) |

Receivers that deliver in arrival order deliver a number once, whatever the order. Where receivers set the pace (RPP)
what is acknowledged is at least kept, or went because all have consumed it. What the application acknowledges itself
need not be consumed, and may be less than before. A rule learns from the snapshot that the trace starts with what was
so before, and keeps ranges, however long the trace. What it does not watch it is not asked about.
"""

from typing import Any, ClassVar, Protocol, assert_never

import attrs

from stablecast.core.effects import CacheMessages, Deliver, PersistClient, PersistMessages, Reclaim
from stablecast.core.events import RegistrationComplete, Stable, StableFlag, UnrecoverableLoss
from stablecast.core.inputs import Acknowledge, Consumed, History, Persisted, Sent
from stablecast.core.messages import ConsumptionAck, Incarnation, Pace, Role, StableAck
from stablecast.core.ranges import RangeSet
from stablecast.core.receiver import ReceiverSession
from stablecast.core.settings import AckMode, Ordering, StoreConfig
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.repository import Repository
from stablecast.trace.converter import Endpoint
from stablecast.trace.flight import FlightKept
from stablecast.trace.granting import WrittenFirst
from stablecast.trace.keeping import RetainedUntilConsumed, RetainedUntilStable
from stablecast.trace.quorums import Acknowledged, extended


class Rule(Protocol):
    """One rule and what it remembers."""

    @property
    def name(self) -> str:
        """What violations call it."""

    @property
    def hears(self) -> tuple[type, ...]:
        """The inputs it is about, or messages that arrive; it is not asked about others."""

    @property
    def tells(self) -> tuple[type, ...]:
        """The effects it is about, or messages that are sent and events that are told."""

    def on_input(self, event: Any) -> str | None:
        """Takes an input or message of `hears`; returns what is wrong with it."""

    def on_effect(self, effect: Any) -> str | None:
        """Takes an effect, message or event of `tells`; returns what is wrong with it."""


_HELD, _STABLE = int(StableFlag.STORE), int(StableFlag.STABLE)


@attrs.define
class StableByQuorum:
    """S1."""

    stores: Acknowledged
    name: str = "S1"
    hears: ClassVar[tuple[type, ...]] = (Sent, StableAck)
    tells: ClassVar[tuple[type, ...]] = (RegistrationComplete, Stable)

    def on_input(self, event: Sent | StableAck) -> str | None:
        """Counts what is sent and acknowledged."""
        self.stores.take(event)
        return None

    def on_effect(self, effect: RegistrationComplete | Stable) -> str | None:
        """Judges stability, and learns where this life begins."""
        if isinstance(effect, Stable):
            return self._judge(effect, int(effect.flags))
        self.stores.next = effect.number
        return None

    def _judge(self, stable: Stable, flags: int) -> str | None:
        stop = stable.last + 1
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
    hears: ClassVar[tuple[type, ...]] = (History,)
    tells: ClassVar[tuple[type, ...]] = (Deliver, RegistrationComplete, UnrecoverableLoss)

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "InOrder":
        """From here on."""
        return cls(receiver.window.next, _consumed_before(receiver))

    def on_input(self, event: History) -> str | None:
        """Remembers what the application consumed in earlier sessions."""
        self.passed.add(event.first, event.last + 1)
        return None

    def on_effect(self, effect: Deliver | RegistrationComplete | UnrecoverableLoss) -> str | None:
        """Judges deliveries."""
        match effect:
            case Deliver():
                return self._judge(effect.first, effect.first + effect.count)
            case RegistrationComplete():
                self.next = effect.number
            case UnrecoverableLoss():
                self.passed.add(effect.first, effect.last + 1)
        return None

    def _judge(self, first: int, stop: int) -> str | None:
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
    hears: ClassVar[tuple[type, ...]] = ()
    tells: ClassVar[tuple[type, ...]] = (Deliver, UnrecoverableLoss)

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "OnceEach":
        """From here on."""
        window = receiver.window
        passed = _handed_out(receiver)
        passed.add(min(window.next or 0, 0), window.next or 0)
        return cls(passed)

    def on_input(self, _: object) -> str | None:
        """Nothing."""
        return None

    def on_effect(self, effect: Deliver | UnrecoverableLoss) -> str | None:
        """Judges deliveries."""
        if isinstance(effect, UnrecoverableLoss):
            self.passed.add(effect.first, effect.last + 1)
            return None
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
    hears: ClassVar[tuple[type, ...]] = (History, Consumed, Acknowledge)
    tells: ClassVar[tuple[type, ...]] = (Deliver, ConsumptionAck)

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "NothingUnread":
        """From here on."""
        window = receiver.window
        consumed = _consumed_before(receiver)
        for first, stop in (*window.consumed, (window.acked, window.acked + 1)):
            consumed.add(first, stop)
        # In arrival order what was delivered may be ahead of what is next.
        newest = _handed_out(receiver).last if receiver.config.ordering is Ordering.ARRIVAL else None
        rises = receiver.config.ack_mode is not AckMode.EXPLICIT
        return cls(max(window.next or 0, -1 if newest is None else newest + 1), consumed, rises, window.acked)

    def on_input(self, event: History | Consumed | Acknowledge) -> str | None:
        """Judges what the application consumes."""
        match event:
            case Consumed():
                self.consumed.add(event.first, event.last + 1)
                if event.last >= self.next:
                    return f"number {event.last} is consumed and was never delivered"
            case History():
                self.consumed.add(event.first, event.last + 1)
            case Acknowledge():
                self.consumed.add(event.number, event.number + 1)
        return None

    def on_effect(self, effect: Deliver | ConsumptionAck) -> str | None:
        """Judges acknowledgements."""
        match effect:
            case Deliver():
                self.next = max(self.next, effect.first + effect.count)
            case ConsumptionAck():
                number = extended(effect.number, self.consumed.last or 0)
                before, self.told = self.told, max(self.told, number)
                if number not in self.consumed:
                    return f"number {number} is acknowledged and was never consumed"
                if number < before and self.rises:
                    return f"number {number} is acknowledged after number {before}"
        return None


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
    hears: ClassVar[tuple[type, ...]] = (Persisted,)
    tells: ClassVar[tuple[type, ...]] = (PersistMessages, StableAck, PersistClient, CacheMessages, Reclaim)

    @classmethod
    def begin(cls, store: StoreEndpoint) -> "SyncedFirst":
        """From here on."""
        waiting = [(due.ticket, due.incarnation, due.first, due.stop) for due in store.tickets.waiting]
        synced: dict[int, RangeSet] = {}
        for repository in store.repositories.values():
            for life, numbers in by_life(repository).items():
                for first, stop in numbers:
                    synced.setdefault(life, RangeSet()).add(first, stop)
            synced.setdefault(repository.incarnation, RangeSet()).add(0, repository.trail)
        paced = {reg_id: one.incarnation for reg_id, one in store.repositories.items() if one.terms.paced}
        for reg_id, life in paced.items():
            for first, stop in store.repositories[reg_id].held:
                synced.setdefault(life, RangeSet()).add(first, stop)
        return cls(waiting, synced, paced)

    def on_input(self, event: Persisted) -> str | None:
        """Learns what has reached the disk."""
        waiting = []
        for ticket, incarnation, first, stop in self.written:
            if ticket <= event.ticket:
                self._of(incarnation).add(first, stop)
            else:
                waiting.append((ticket, incarnation, first, stop))
        self.written = waiting
        return None

    def on_effect(self, effect: PersistMessages | StableAck | PersistClient | CacheMessages | Reclaim) -> str | None:
        """Judges stability acknowledgements."""
        match effect:
            case StableAck():
                return None if effect.nack else self._judge(effect)
            case PersistMessages() if not self.paced or effect.incarnation not in self.paced.values():
                first = effect.first
                self.written.append((effect.ticket, effect.incarnation, first, first + effect.count))
            case PersistMessages() | CacheMessages():
                self._of(effect.incarnation).add(effect.first, effect.first + effect.count)
            case Reclaim():
                if effect.source_reg_id in self.paced:
                    self._of(self.paced[effect.source_reg_id]).add(0, effect.number)
            case PersistClient(client=client) if client.role is Role.SOURCE and client.pace is Pace.RECEIVERS:
                self.paced[client.reg_id] = client.incarnation
        return None

    def _judge(self, ack: StableAck) -> str | None:
        synced = self._of(ack.incarnation)
        first = extended(ack.first, synced.last or 0)
        missing = synced.missing(first, extended(ack.last, first) + 1)
        return f"number {missing[0][0]} is acknowledged and was never synced" if missing else None

    def _of(self, incarnation: int) -> RangeSet:
        synced = self.synced.get(incarnation)
        if synced is None:
            synced = self.synced[incarnation] = RangeSet()
        return synced


def _consumed_before(receiver: ReceiverSession) -> RangeSet:
    """Numbers that the application consumed in an earlier session, of whatever life of the source."""
    consumed = receiver.window.known.copy()
    for held in receiver.lives.consumed.values():
        for first, stop in held:
            consumed.add(first, stop)
    return consumed


def _handed_out(receiver: ReceiverSession) -> RangeSet:
    """In arrival order: numbers that are delivered or given up. What came before the registration is only held."""
    numbers = receiver.window.have.copy()
    for held in receiver.window.held:
        numbers.remove(held.first, held.stop)
    return numbers


def begin(machine: Endpoint) -> list[Rule]:
    """Returns the rules that a machine's trace is judged by, from this state on."""
    match machine:
        case SourceEndpoint():
            flight = [FlightKept.begin(machine)] if FlightKept.judges(machine) else []
            stores = Acknowledged.begin(machine)
            return [StableByQuorum(stores), *flight, RetainedUntilStable.begin(machine, stores)]
        case ReceiverSession():
            in_order = machine.config.ordering is Ordering.ORDERED
            return [InOrder.begin(machine) if in_order else OnceEach.begin(machine), NothingUnread.begin(machine)]
        case StoreEndpoint():
            paced = [RetainedUntilConsumed.begin(machine)] if may_pace(machine.config) else []
            return [SyncedFirst.begin(machine), WrittenFirst.begin(machine), *paced]
        case _:
            assert_never(machine)


def by_life(repository: Repository) -> dict[int, RangeSet]:
    """What counts as synced, by the life that sent it; what no life is known of counts as the current one's.

    What goes to memory first counts from then on, as `CacheMessages` does.
    """
    counts = (
        repository.window.synced
        if repository.terms.written and not repository.terms.write_delay_ns
        else repository.held
    )
    starts = [*repository.life.lives] or [(repository.incarnation, 0)]
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
