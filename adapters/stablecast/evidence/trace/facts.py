"""Facts for the rules across endpoints: statements of a trace about other endpoints, as ranges of numbers.

| kind | of | statement | peer |
|---|---|---|---|
| member | source | store `peer` is number `last` of this life, in group `first` | store |
| asks | source | group `first` must have `last` holders; group -1: number of groups | |
| holds | source, receiver | it registered with RegID `first` | store |
| sent | source | numbers of this life | |
| acked | source | the store's acknowledgement arrived | store |
| stable | source | the rules of the groups are met | |
| turned | source | the store whose turn it is has it (round robin) | |
| held | store | synced, or kept in memory, or dropped within the rules | store |
| said | store | acknowledged | store |
| kept | store | at its start it had numbers up to `last` of the source of this life, which had RegID `first` | store |
| granted | store | it answered the registration of the source of this life with RegID `first` | store |
| reign | store | at its start this life of RegID `first` had ended before `last`; -1: it had not | store |
| cut | store | forgotten as the tail of an older life | store |
| forgot | store | it forgot the source that had RegID `first` | store |
| proxy, retired | store | a proxy starts or stops standing in for the source with RegID `first` | source |
| heard | store | a receiver's acknowledgement of everything up to `last` arrived | store/RegID |
| confirmed | receiver | it acknowledged everything up to `last` | store/RegID |
| delivered | receiver | handed to the application | |
| wrote | store | messages of this life were given to the disk or to memory | |
| reach | source | everything up to `last` of this life was sent | |
| announced | store, receiver | an SRI that arrived names `last` as the newest number of this life | |
| withdrew | source, store | this life asked to be deregistered, or the request arrived | |
| began | store | it knew `first` clients when its trace began | store |
| context | any | the endpoint `first` of the context `life` sent a registration, or one of it arrived | client |
| parted | store | its connection to an address broke, or nobody answered there | the address |
| asked | source, receiver | it asked a store for a registration under index `first` | store |
| spoke | any | it sent the registration, answer or request with the digest `first` | itself |
| listened | any | such a message arrived | its sender, or `#` and the index of a store |

Endpoints are named by the addresses at which they answer, lives by their incarnation. A frame begins with a snapshot,
so its facts need no other frame. Neighbours are joined, so a frame has a few rows, however many records.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Protocol, assert_never

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import RegistrationComplete, RegistrationSuccess, Stable, StableFlag
from stablecast.core.protocol.generations import MARK_BITS
from stablecast.core.protocol.inputs import Data, Gone, Input, Persisted, Reset, Sent
from stablecast.core.protocol.messages import (
    Address,
    ConsumptionAck,
    Deregister,
    Deregistered,
    Incarnation,
    Refusal,
    Refused,
    Register,
    Registered,
    RetransmitRequest,
    Role,
    SourceInfo,
    StableAck,
)
from stablecast.core.protocol.settings import StoreBehavior
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.endpoint_rules import by_life, may_pace, spans_of
from stablecast.evidence.trace.frames import LIMIT
from stablecast.evidence.trace.quorums import asked_for, both_extended, extended
from stablecast.transports.codec.domains import split_domain, without_domains

RANGES: Final = frozenset(("sent", "acked", "stable", "turned", "held", "said", "cut", "delivered", "wrote"))
"""Kinds of facts about the numbers from `first` to `last`."""

GROWING: Final = ("heard", "confirmed", "reach", "announced")
"""Kinds of facts about everything up to `last`."""

MAX_CONTROL: Final = 10_000
"""Different control messages of one frame that are compared between traces, in each direction."""

UNCOUNTED: Final = -1
"""The digest of a fact which says that an endpoint sent more messages than are compared."""

MAX_DIGESTS: Final = 4096
"""Digests that are remembered: each message is sent and arrives, and most are repeated."""

_DIGEST_BYTES: Final = 7
"""Bytes of a message's digest: it is a number of a fact."""

PATIENCE: Final = 10
"""Election intervals for which two proxies may stand in for one source."""

PAUSE_NS: Final = SECOND
"""Wait of a source's oldest message for stability that `verify` mentions, ns."""

_STABLE: Final = int(StableFlag.STABLE)

ALL_GROUPS: Final = -1
"""Replaces a group in the fact that gives the number of groups asked for."""


@attrs.define
class Fact:
    """A row; `record` is the first record that states it, `time` that record's clock in ns; ranges are inclusive."""

    kind: str
    record: int
    time: int
    life: Incarnation
    peer: str
    first: int
    last: int

    def goes_on(self, first: int, last: int) -> bool:
        """Return whether this fact, made longer, also covers the range of a fact of the same kind, life and peer."""
        if self.kind in GROWING:
            return last >= self.last
        return self.kind in RANGES and first == self.last + 1


Take = Callable[[Any, Any, "Book"], None]
"""Note the facts in the subject of a record (`stablecast.evidence.trace.frame_judge`), given with the record itself."""

FactHandlers = tuple[Mapping[type, Take], Mapping[type, Take]]
"""Handlers by class: of inputs and arriving messages; of effects, sent messages and events."""


class Gatherer(Protocol):
    """Collector of the facts in one frame's records, which come in order."""

    def handlers(self) -> FactHandlers:
        """Return the handlers by class; records of other classes have no facts."""


@attrs.frozen
class StabilityPause:
    """A time (ns) in which the oldest message of a source, `number`, was not stable; `record` ended it."""

    number: int
    began: int
    ended: int
    record: int


@attrs.define
class Book:
    """The facts of one frame; `record` and `time` are those of the current record."""

    facts: list[Fact] = attrs.field(factory=list)
    pauses: list[StabilityPause] = attrs.field(factory=list)
    record: int = 0
    time: int = 0
    newest: dict[tuple[str, Incarnation, str], Fact] = attrs.field(factory=dict)

    def note(self, kind: str, life: Incarnation, first: int, last: int, peer: str = "") -> None:
        """Add a fact, or extend the newest one of its kind, life and peer. Ignore impossible ranges.

        An address is noted without the number of a domain: its own process, and those near it, know it without.
        """
        peer = split_domain(peer)[1]
        before = self.newest.get((kind, life, peer))
        if before is not None and before.last + 1 == first <= last < LIMIT and kind in RANGES:
            before.last = last
            return
        if not (-LIMIT < first < LIMIT and -LIMIT < last < LIMIT) or (kind in RANGES and first > last):
            return
        if before is not None and before.goes_on(first, last):
            before.last = last
            return
        fact = self.newest[kind, life, peer] = Fact(kind, self.record, self.time, life, peer, first, last)
        self.facts.append(fact)

    def taken(self) -> tuple[list[Fact], list[StabilityPause]]:
        """Return the facts and pauses, and begin anew with the same record."""
        found = self.facts, self.pauses
        self.facts, self.pauses, self.newest = [], [], {}
        return found


@lru_cache(MAX_DIGESTS)
def digest_of(message: object) -> int:
    """Return a number that differs for different messages, or for other values with different texts."""
    return int.from_bytes(sha256(repr(message).encode()).digest()[:_DIGEST_BYTES], "big")


@attrs.define
class ControlFacts:
    """The control messages of an endpoint in one frame, each once; `name` is the address at which others find it."""

    name: Address
    spoken: set[int] = attrs.field(factory=set)
    listened: set[int] = attrs.field(factory=set)

    def on_sent(self, message: Any, effect: fx.Effect, book: Book) -> None:
        if not isinstance(effect, fx.Send):
            return
        if isinstance(message, Register | Deregister):  # A store that returned may have another address for each.
            book.note("asked", message.incarnation, message.store_index, message.store_index, effect.to)
        if isinstance(message, Register):
            self._note_context(message, book)
        digest = digest_of(without_domains(message))
        if digest not in self.spoken and len(self.spoken) <= MAX_CONTROL:
            self.spoken.add(digest)
            told = digest if len(self.spoken) <= MAX_CONTROL else UNCOUNTED
            book.note("spoke", message.incarnation, told, told, self.name)

    def on_answer(self, message: Any, _: Input, book: Book) -> None:
        """Note an answer of a store, unless a daemon without room gave it: its traced machine never got the request."""
        if isinstance(message, Refused) and message.reason is Refusal.INCOMPATIBLE:
            return
        self._listen(message, f"#{message.store_index}", book)

    def on_request(self, message: Any, _: Input, book: Book) -> None:
        """Note a message whose sender is named in it."""
        if isinstance(message, Register):
            self._note_context(message, book)
        self._listen(message, message.reply_to, book)

    def _note_context(self, message: Register, book: Book) -> None:
        """Note which endpoint of a context registers: a context has several, one after the other or at once.

        Endpoints of one client in several processes have the same number if they register in the same way.
        """
        endpoint = digest_of((message.role, message.incarnation, message.topic, message.session_id, message.reg_id))
        book.note("context", message.context, endpoint, endpoint, message.reply_to)

    def _listen(self, message: Any, sender: str, book: Book) -> None:
        digest = digest_of(without_domains(message))
        if digest not in self.listened and len(self.listened) < MAX_CONTROL:
            self.listened.add(digest)
            book.note("listened", message.incarnation, digest, digest, sender)


@attrs.define
class SourceFacts:
    """Facts of a source; `stores` are the known addresses of its stores, by index.

    While the source registers with one of them at another address (`moving`), the origin of its acknowledgements is
    unknown. In `turns` (round robin) two lives may have stores of their own, and neither is right. Then a stable number
    is no fact for other lives.
    """

    life: Incarnation
    next: int
    stores: dict[int, Address]
    groups: dict[int, int]
    control: ControlFacts
    turns: bool = False
    moving: set[int] = attrs.field(factory=set)
    awaited: tuple[int, int] | None = None
    """The oldest message that is not stable, and since when (ns); None: every message is, or the stores are none."""

    def handlers(self) -> FactHandlers:
        answers = dict.fromkeys((Registered, Refused, Deregistered), self.control.on_answer)
        return {Sent: self._on_sent, StableAck: self._on_acked, **answers}, {
            Stable: self._on_stable,
            Register: self._on_asking,
            Deregister: self._on_withdrawing,
            RegistrationSuccess: self._on_registered,
            RegistrationComplete: self._on_complete,
        }

    @classmethod
    def begin(cls, source: SourceEndpoint, book: Book, *, fresh: bool) -> "SourceFacts":
        """Start in this state; `fresh`: no earlier frame of the trace stated the configuration."""
        config = source.config
        stores = {index: one.address for index, one in enumerate(config.stores) if one.address}
        stores |= {index: held.address for index, held in source.status.registrations.items() if held.address}
        groups, enough = asked_for(config)
        by_store = {store: group for group, (stores_of, _) in enumerate(groups) for store in stores_of}
        control, turns = ControlFacts(config.reply_to), config.behavior is StoreBehavior.RR
        facts = cls(config.incarnation, source.next_number, stores, by_store, control, turns)
        if fresh and stores:
            for group, (_, needed) in enumerate(groups):
                book.note("asks", facts.life, group, needed)
            book.note("asks", facts.life, ALL_GROUPS, enough)
            for index in sorted(stores):
                facts._note_member(index, book)
        return facts

    def _note_member(self, index: int, book: Book) -> None:
        book.note("member", self.life, self.groups[index], index, self.stores[index])

    def _on_sent(self, event: Sent, _: Input, book: Book) -> None:
        self.next = event.first + event.count
        book.note("sent", self.life, event.first, self.next - 1)
        book.note("reach", self.life, -1, self.next - 1)
        if self.awaited is None and self.stores:
            self.awaited = event.first, book.time

    def _on_acked(self, ack: StableAck, _: Input, book: Book) -> None:
        if ack.nack or ack.incarnation != self.life or ack.store_index in self.moving:
            return
        if (peer := self.stores.get(ack.store_index)) is not None:
            book.note("acked", self.life, *both_extended(ack.first, ack.last, self.next), peer)

    def _on_stable(self, event: Stable, _: fx.Effect, book: Book) -> None:
        if int(event.flags) & _STABLE:
            book.note("turned" if self.turns else "stable", self.life, event.first, event.last)
            if self.awaited is not None and event.last >= self.awaited[0]:
                number, since = self.awaited
                if book.time - since > PAUSE_NS:
                    book.pauses.append(StabilityPause(number, since, book.time, book.record))
                self.awaited = None if event.last + 1 >= self.next else (event.last + 1, book.time)

    def _on_asking(self, request: Register, effect: fx.Effect, book: Book) -> None:
        self.control.on_sent(request, effect, book)
        index = request.store_index
        if isinstance(effect, fx.Send) and self.stores.get(index) not in (None, effect.to):
            self.moving.add(index)

    def _on_withdrawing(self, request: Deregister, effect: fx.Effect, book: Book) -> None:
        self.control.on_sent(request, effect, book)
        book.note("withdrew", request.incarnation, 0, 0)

    def _on_complete(self, event: RegistrationComplete, _: fx.Effect, book: Book) -> None:
        self.next = event.number
        book.note("reach", self.life, -1, self.next - 1)

    def _on_registered(self, success: RegistrationSuccess, _: fx.Effect, book: Book) -> None:
        book.note("holds", self.life, success.reg_id, success.reg_id, success.store)
        self.moving.discard(success.store_index)
        if success.store_index in self.groups and self.stores.get(success.store_index) != success.store:
            self.stores[success.store_index] = success.store
            self._note_member(success.store_index, book)


@attrs.define
class StoreFacts:
    """Facts of a store; `waiting` has ticket, RegID, life and range, `kept` the numbers of each source's lives."""

    address: Address
    paced: bool
    control: ControlFacts
    waiting: list[tuple[int, int, Incarnation, int, int]]
    kept: dict[int, dict[Incarnation, RangeSet]] = attrs.field(
        factory=lambda: defaultdict(lambda: defaultdict(RangeSet))
    )
    newest: dict[Incarnation, int] = attrs.field(factory=dict)

    def handlers(self) -> FactHandlers:
        asking = dict.fromkeys((Register, RetransmitRequest), self.control.on_request)
        answers = dict.fromkeys((Refused, Deregistered), self.control.on_sent)
        return {
            Persisted: self._on_persisted,
            ConsumptionAck: self._on_heard,
            SourceInfo: self._on_announced,
            Reset: self._on_parted,
            Gone: self._on_parted,
            Deregister: self._on_withdrawing,
            **asking,
        }, {
            **answers,
            Registered: self._on_granted,
            fx.PersistMessages: self._on_written,
            StableAck: self._on_acknowledged,
            fx.CacheMessages: self._on_cached,
            fx.Cut: self._on_cut,
            fx.Forget: self._on_forgotten,
            fx.StartProxy: self._on_proxy,
            fx.StopProxy: self._on_retired,
        }

    @classmethod
    def begin(cls, store: StoreEndpoint, book: Book, *, fresh: bool) -> "StoreFacts":
        """Start in this state; `fresh`: no earlier frame of the trace stated what the store has."""
        waiting = [(due.ticket, due.reg_id, due.incarnation, due.first, due.stop) for due in store.status.waiting]
        address = store.config.address
        facts = cls(address, may_pace(store.config), ControlFacts(address), waiting)
        if fresh:
            starts = store.status.generation >> MARK_BITS
            book.note("began", 0, len(store.status.clients), starts, address)
        for reg_id, repository in store.status.repositories.items():
            lives = by_life(repository)
            facts.kept[reg_id].update(lives)
            facts.newest[repository.incarnation] = repository.newest
            if not fresh:
                continue
            for life in sorted({repository.incarnation, *lives, *(one for one, _ in repository.lives)}):
                book.note("kept", life, reg_id, repository.newest, facts.address)
            *ended, current = spans_of(repository)
            for life, first, stop in (*ended, current):  # What it let go it had before.
                book.note("held", life, first, min(stop, repository.trail) - 1, facts.address)
            for life, stop in [(life, stop) for life, _, stop in ended] + [(current[0], -1)] * bool(ended):
                book.note("reign", life, reg_id, stop, facts.address)
            for life, numbers in lives.items():
                for first, stop in numbers:
                    book.note("held", life, first, stop - 1, facts.address)
        return facts

    def _on_persisted(self, event: Persisted, _: Input, book: Book) -> None:
        due, self.waiting = self.waiting, []
        for one in due:
            if one[0] > event.ticket:
                self.waiting.append(one)
            else:
                self._keep(*one[1:], book)

    def _on_heard(self, ack: ConsumptionAck, _: Input, book: Book) -> None:
        number = extended(ack.number, max(self.newest.get(ack.incarnation, 0), 0))
        book.note("heard", ack.incarnation, -1, number, f"{self.address}/{ack.receiver_reg_id}")

    def _on_announced(self, info: SourceInfo, _: Input, book: Book) -> None:
        book.note("announced", info.incarnation, -1, _newest_of(info, self.newest.get(info.incarnation, 0)))

    def _on_parted(self, event: Reset | Gone, _: Input, book: Book) -> None:
        book.note("parted", 0, 0, 0, event.address)

    def _on_granted(self, answer: Registered, effect: fx.Effect, book: Book) -> None:
        self.control.on_sent(answer, effect, book)
        if answer.role is Role.SOURCE:
            book.note("granted", answer.incarnation, answer.reg_id, answer.reg_id, self.address)

    def _on_withdrawing(self, request: Deregister, event: Input, book: Book) -> None:
        self.control.on_request(request, event, book)
        if request.role is Role.SOURCE:
            book.note("withdrew", request.incarnation, 0, 0)

    def _keep(self, reg_id: int, life: Incarnation, first: int, stop: int, book: Book) -> None:
        self.kept[reg_id][life].add(first, stop)
        book.note("held", life, first, stop - 1, self.address)

    def _on_written(self, effect: fx.PersistMessages, _: fx.Effect, book: Book) -> None:
        first, stop = effect.first, effect.first + effect.count
        book.note("wrote", effect.incarnation, first, stop - 1)
        self.waiting.append((effect.ticket, effect.source_reg_id, effect.incarnation, first, stop))
        self.newest[effect.incarnation] = stop - 1

    def _on_cached(self, effect: fx.CacheMessages, _: fx.Effect, book: Book) -> None:
        stop = effect.first + effect.count
        self.newest[effect.incarnation] = stop - 1
        book.note("wrote", effect.incarnation, effect.first, stop - 1)
        self._keep(effect.source_reg_id, effect.incarnation, effect.first, stop, book)

    def _on_cut(self, effect: fx.Cut, _: fx.Effect, book: Book) -> None:
        for life, numbers in self.kept.get(effect.source_reg_id, {}).items():
            for first, stop in numbers.remove(effect.number, (numbers.last or 0) + 1):
                book.note("cut", life, first, stop - 1, self.address)

    def _on_forgotten(self, effect: fx.Forget, _: fx.Effect, book: Book) -> None:
        if effect.role is Role.SOURCE:
            self.kept.pop(effect.reg_id, None)
            book.note("forgot", 0, effect.reg_id, effect.reg_id, self.address)

    def _on_proxy(self, effect: fx.StartProxy, _: fx.Effect, book: Book) -> None:
        reg_id = effect.source_reg_id
        book.note("proxy", effect.election.life, reg_id, reg_id, _source_name(effect))

    def _on_retired(self, effect: fx.StopProxy, _: fx.Effect, book: Book) -> None:
        book.note("retired", 0, effect.source_reg_id, effect.source_reg_id)

    def _on_acknowledged(self, ack: StableAck, _: fx.Effect, book: Book) -> None:
        if ack.nack:
            return
        first, last = both_extended(ack.first, ack.last, self.newest.get(ack.incarnation, 0))
        book.note("said", ack.incarnation, first, last, self.address)
        if self.paced:
            book.note("held", ack.incarnation, first, last, self.address)


@attrs.define
class ReceiverFacts:
    """Facts of a receiver; `senders` has the life that sent each run that arrived in this frame."""

    life: Incarnation
    control: ControlFacts
    senders: dict[int, Incarnation] = attrs.field(factory=dict)
    next: int = 0

    def handlers(self) -> FactHandlers:
        answers = dict.fromkeys((Registered, Refused, Deregistered), self.control.on_answer)
        asking = dict.fromkeys((Register, Deregister, RetransmitRequest), self.control.on_sent)
        return {Data: self._on_data, SourceInfo: self._on_announced, **answers}, {
            **asking,
            fx.Deliver: self._on_deliver,
            ConsumptionAck: self._on_confirming,
            RegistrationSuccess: self._on_registered,
        }

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "ReceiverFacts":
        config = receiver.config
        return cls(config.incarnation, ControlFacts(config.reply_to), next=receiver.next_number or 0)

    def _on_data(self, event: Data, _: Input, __: Book) -> None:
        self.senders[event.token] = event.incarnation

    def _on_announced(self, info: SourceInfo, _: Input, book: Book) -> None:
        book.note("announced", info.incarnation, -1, _newest_of(info, self.next))

    def _on_deliver(self, effect: fx.Deliver, _: fx.Effect, book: Book) -> None:
        first = effect.first
        self.next = first + effect.count
        life = self.senders.get(effect.token)
        if life is not None:
            book.note("delivered", life, first, self.next - 1)

    def _on_confirming(self, ack: ConsumptionAck, effect: fx.Send, book: Book) -> None:
        number = extended(ack.number, self.next)
        book.note("confirmed", ack.incarnation, -1, number, f"{effect.to}/{ack.receiver_reg_id}")

    def _on_registered(self, success: RegistrationSuccess, _: fx.Effect, book: Book) -> None:
        self.next = max(self.next, success.number)
        book.note("holds", self.life, success.reg_id, success.reg_id, success.store)


def _newest_of(info: SourceInfo, near: int) -> int:
    """Return the full newest number of an SRI; -1 if the life has sent nothing since number 0."""
    return -1 if not info.low and info.high == serial.wire(-1) else extended(info.high, near)


def gatherer(machine: Endpoint, book: Book, *, fresh: bool) -> Gatherer:
    """Return the collector of the facts of a machine's trace from this state on."""
    match machine:
        case SourceEndpoint():
            return SourceFacts.begin(machine, book, fresh=fresh)
        case StoreEndpoint():
            return StoreFacts.begin(machine, book, fresh=fresh)
        case ReceiverSession():
            return ReceiverFacts.begin(machine)
        case _:
            assert_never(machine)


def identity(machine: Endpoint) -> tuple[Address, Incarnation, int]:
    """Return an endpoint's address, its life or its source's, and how long two proxies may overlap there (ns)."""
    match machine:
        case StoreEndpoint():
            return machine.config.address, 0, PATIENCE * machine.config.proxy_interval_ns
        case SourceEndpoint() | ReceiverSession():
            return machine.config.reply_to, machine.config.incarnation, 0
        case _:
            assert_never(machine)


def _source_name(proxy: fx.StartProxy) -> str:
    """Return a name that is the same at every store that knows the source."""
    named = ((split_domain(one.address)[1], one) for one in sorted(proxy.stores, key=lambda one: one.index))
    stores = ",".join(f"{address}={one.source_reg_id}" for address, one in named)
    return f"{proxy.topic}/{proxy.session_id}/{stores}"
