"""The world of `tla/Rpp`: a source, a store with little room and receivers that set the pace, by the core's machines.

Source and store are whole endpoints. A receiver is no more than the number it has consumed, its registration, and its
acknowledgements. The world adds the stream to the store (data, SRI, what is sent again), acknowledgements of stability
that are under way, and the store's journal. What store and source ask each other is answered at once.

A message has one byte. Timers run where an action says so: a write delay is over, or a receiver was silent for long.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Self, TypeVar

import attrs

from stablecast.core.effects import (
    Broadcast,
    Client,
    Effect,
    Forget,
    PersistCached,
    PersistClient,
    PersistMessages,
    Reclaim,
    Resend,
    Send,
)
from stablecast.core.inputs import Arrived, Data, Persisted, Reset, Sent, Start
from stablecast.core.messages import (
    ConsumptionAck,
    Deregister,
    Deregistered,
    Keepalive,
    Message,
    Pace,
    Refused,
    Register,
    Registered,
    Role,
    SourceInfo,
    StableAck,
)
from stablecast.core.quorum import GroupRules
from stablecast.core.repairs import Repair
from stablecast.core.repository import Repository
from stablecast.core.settings import RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.core.units import SECOND
from stablecast.model.canonical import Fn, Value, record
from stablecast.model.clone import clone
from stablecast.model.errors import ModelError
from stablecast.model.explorer import Action, Invariant, State

SOURCE, STORE = "source:1", "store:1"
SOURCE_ID, RECEIVER_ID = 50, 70
"""RegIDs; receiver i has the second one plus i."""
NONE, UNKNOWN = -1, -2
NEVER_NS = 10**15
"""No timer of this length ever runs out."""
DELAY_NS = 1
SILENCE_NS = SECOND


MachineT = TypeVar("MachineT")


@attrs.frozen
class Shared(Generic[MachineT]):
    """A machine that copies of a world have in common until one of them changes it."""

    machine: MachineT

    def own(self) -> "Shared[MachineT]":
        """One to change."""
        return Shared(clone(self.machine))


@attrs.frozen
class Constants:
    """The model's constants."""

    Receivers: int
    Patient: frozenset[int]
    Messages: int
    Capacity: int
    Flight: int
    Delay: bool
    Lives: int
    Faults: frozenset[str]
    Repaired: bool

    @property
    def repairs(self) -> Repair:
        """The rules in force."""
        return Repair.ALL if self.Repaired else Repair.ALL & ~Repair.PACED


@attrs.frozen
class Journal:
    """What the store's disk keeps: its clients, the messages of its one source, and from where on."""

    clients: tuple[Client, ...] = ()
    messages: frozenset[int] = frozenset()
    trail: int = 0

    def of(self, reg_id: int) -> Client | None:
        """A client's newest state."""
        return next((client for client in self.clients if client.reg_id == reg_id), None)

    def after(self, effects: Sequence[Effect]) -> "Journal":
        """With what a store wants written; anything else is none of the disk's business."""
        clients = {client.reg_id: client for client in self.clients}
        messages, trail = set(self.messages), self.trail
        for effect in effects:
            match effect:
                case PersistClient():
                    clients[effect.client.reg_id] = effect.client
                case Forget():
                    clients.pop(effect.reg_id, None)
                case PersistMessages():
                    messages.update(range(effect.first, effect.first + effect.count))
                case PersistCached():
                    messages.update(range(effect.first, effect.last + 1))
                case Reclaim():
                    trail = effect.number
                    messages = {number for number in messages if number >= trail}
        return Journal(tuple(clients.values()), frozenset(messages), trail)


@attrs.define
class Reader:
    """A receiver: OUT, ASKING or IN; `since`: the next number of the source when it registered."""

    state: str = "OUT"
    consumed: int = NONE
    since: int = NONE


@attrs.define
class World:
    """See the module. `told`: acknowledgements under way to the source."""

    constants: Constants
    sender: Shared[SourceEndpoint]
    keeper: Shared[StoreEndpoint] | None
    readers: list[Reader]
    up: bool = True
    queue: list[Data | SourceInfo] = attrs.field(factory=list)
    told: list[StableAck] = attrs.field(factory=list)
    written: Journal = attrs.field(factory=Journal)
    disk: Journal = attrs.field(factory=Journal)
    crashed: bool = False
    stable: set[int] = attrs.field(factory=set)
    before: Fn | None = None
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """The initial state: the source is registered, the store knows where it begins, and no receiver has come.

        Raises:
            ModelError: If the store refuses the source.
        """
        known = Constants(**{name: value for name, value in constants.items() if name != "Mutant"})  # type: ignore[arg-type]
        store = StoreEndpoint.create(_store_config(known))
        world = cls(known, Shared(_source(known, 1)), Shared(store), [Reader() for _ in range(known.Receivers)])
        world._tell_source(Start())
        world.do(("Sync",))
        if world.source.state is not SourceState.ACTIVE:
            raise ModelError("the store has less room than the source's flight")
        for action in (("ToStore",), ("Sync",)):
            world.do(action)
        return world

    @property
    def source(self) -> SourceEndpoint:
        """The newest life of the source, whether it has ended or not; not to be changed."""
        return self.sender.machine

    @property
    def store(self) -> StoreEndpoint | None:
        """The store while it is up; not to be changed."""
        return None if self.keeper is None else self.keeper.machine

    def _own_source(self) -> SourceEndpoint:
        self.sender = self.sender.own()
        return self.sender.machine

    def _own_store(self) -> StoreEndpoint:
        assert self.keeper is not None
        self.keeper = self.keeper.own()
        return self.keeper.machine

    # What can happen.

    def actions(self) -> Iterator[Action]:
        """In the order of the model's `Next`."""
        up = self.store is not None
        if up and self._may_send():
            yield ("Send",)
        if up and self.queue:
            yield ("ToStore",)
        if self._news():
            yield ("ToSource",)
        if up and self._kept.window.delayed:
            yield ("Write",)
        if up and (self.written != self.disk or self._kept_waiting() or self._granting() or self._asking()):
            yield ("Sync",)
        for number, reader in enumerate(self.readers, 1):
            yield from self._reader_actions(number, reader)
        if "die" in self.constants.Faults and self.up:
            yield ("Die",)
        if up and not self.up and self.source.config.incarnation < self.constants.Lives:
            yield ("Return",)
        if not up:
            yield ("Restart",)
        elif "crash" in self.constants.Faults and not self.crashed and self._source_state() in ("ACTIVE", "DOWN"):
            yield ("Crash",)

    def _reader_actions(self, number: int, reader: Reader) -> Iterator[Action]:
        faults = self.constants.Faults
        acknowledged = UNKNOWN if self.store is None else self._acknowledged(number)
        begun = self.store is not None and self._kept.resume_point is not None
        if reader.state == "OUT" and begun:
            yield ("Join", number)
        if reader.state == "IN" and self.store is not None and "leave" in faults:
            yield ("Leave", number)
        known = reader.state != "ASKING" and acknowledged != UNKNOWN
        if "expire" in faults and known and not self._kept.window.delayed:
            yield ("Expire", number)
        if reader.state == "IN" and reader.consumed + 1 < self._next():
            yield ("Consume", number)
        if reader.state == "IN" and begun and acknowledged < reader.consumed:
            yield ("Ack", number)

    def do(self, action: Action) -> None:
        """Let it happen."""
        name, *parameters = action
        if parameters:
            (number,) = parameters
            assert isinstance(number, int)
            self._reader_action(str(name), number, self.readers[number - 1])
            return
        match name:
            case "Die":
                self.before, self.up, self.told = self._window(), False, []
            case "Return":
                self.sender, self.up = Shared(_source(self.constants, self.source.config.incarnation + 1)), True
                self._tell_source(Start())
            case "Send":
                self._send()
            case "ToSource":
                self._to_source()
            case "Crash":
                self._crash()
            case "Restart":
                self._restart()
            case _:
                self._store_action(str(name))

    def _reader_action(self, name: str, number: int, reader: Reader) -> None:
        match name:
            case "Consume":
                reader.consumed += 1
            case "Ack":
                ack = ConsumptionAck(self._kept.incarnation, SOURCE_ID, RECEIVER_ID + number, reader.consumed)
                self._tell_store(ack)
            case "Join":
                reader.state, reader.since = "ASKING", self._next()
                self._tell_store(self._request(number))
            case "Leave":
                self.readers[number - 1] = Reader()
                self._tell_store(self._farewell(number))
            case _:
                self.readers[number - 1] = Reader()
                self._expire(RECEIVER_ID + number)

    def _store_action(self, name: str) -> None:
        store = self._own_store()
        if name == "ToStore":
            event = self.queue.pop(0)
            store.receive(event if isinstance(event, Data) else Arrived(event), self.now)
        elif name == "Write":
            self.now += DELAY_NS
            store.handle_timeout(self.now)
        else:
            self.disk = self.written
            store.receive(Persisted(store.tickets.last), self.now)
        self._perform_store(store)

    def _send(self) -> None:
        source = self._own_source()
        number, life = source.window.next, source.config.incarnation
        source.receive(Sent(number, 1, 1), self.now)
        self.queue.append(Data(life, life, number, 1, 1, recovered=False, token=0))
        self._perform_source(source.take_effects())

    def _to_source(self) -> None:
        self.stable |= self._news()
        source = self._own_source()
        for ack in self.told:
            source.receive(Arrived(ack), self.now)
        self._perform_source(source.take_effects())
        self.told = []

    def _crash(self) -> None:
        self.keeper, self.written, self.crashed = None, self.disk, True
        self.queue, self.told = [], []
        self.readers = [Reader() if reader.state == "ASKING" else reader for reader in self.readers]

    def _restart(self) -> None:
        """What the disk kept is looked at; then a source that is there notices that its connection broke."""
        store = StoreEndpoint.create(_store_config(self.constants))
        extents = [(SOURCE_ID, number, 1, 1) for number in sorted(self.disk.messages)]
        store.recover(self.disk.clients, extents, {SOURCE_ID: self.disk.trail}, self.now)
        self.keeper = Shared(store)
        self._perform_store(store)
        if self.up:
            self._tell_source(Reset(STORE))

    def _expire(self, reg_id: int) -> None:
        """A receiver's state lifetime is over; everybody else gives a sign of life."""
        store = self._own_store()
        self.now += 2 * SILENCE_NS
        for other, known in sorted(store.clients.records.items()):
            if other != reg_id:
                client = known.client
                store.receive(Arrived(Keepalive(client.role, client.incarnation, other, False, 0)), self.now)
        store.handle_timeout(self.now)
        self._perform_store(store)

    # Effects.

    def _tell_store(self, message: Message) -> None:
        store = self._own_store()
        store.receive(Arrived(message), self.now)
        self._perform_store(store)

    def _perform_store(self, store: StoreEndpoint) -> None:
        """Let the store do what is due at once, then do what it wants."""
        due = store.registry.agenda.next()
        if due is not None and due <= self.now:
            store.handle_timeout(self.now)
        effects = store.take_effects()
        self.written = self.written.after(effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._answer(effect.to, effect.message)

    def _answer(self, to: str, message: Message) -> None:
        """What the store says."""
        if to != SOURCE:
            if isinstance(message, Registered):
                reader = self.readers[int(to.removeprefix("receiver:")) - 1]
                reader.state, reader.consumed = "IN", _signed(message.low) - 1
            assert isinstance(message, Registered | Deregistered)
        elif not self.up or message.incarnation != self.source.config.incarnation:
            return
        elif isinstance(message, StableAck):
            self.told.append(message)
        else:
            assert not isinstance(message, Refused) or self.constants.Flight > self.constants.Capacity
            self._tell_source(Arrived(message))

    def _tell_source(self, event: Start | Arrived | Reset) -> None:
        source = self._own_source()
        began = source.state is SourceState.REGISTERING
        source.receive(event, self.now)
        if began and source.state is SourceState.ACTIVE:
            self._resumed(source.resume_point)
        self._perform_source(source.take_effects())

    def _perform_source(self, effects: Sequence[Effect]) -> None:
        """Do what the source wants."""
        life = self.source.config.incarnation
        for effect in effects:
            match effect:
                case Send(to=to) if to == STORE:
                    self._tell_store(effect.message)
                case Broadcast():
                    assert isinstance(effect.message, SourceInfo)
                    self.queue.append(effect.message)
                case Resend():
                    numbers = range(effect.first, effect.last + 1)
                    self.queue += [Data(life, life, number, 1, 1, recovered=True, token=0) for number in numbers]

    def _resumed(self, low: int) -> None:
        """Another life begins: what receivers had of the one before from there on is gone, and nothing of it stable."""
        self.before = None
        self.stable = {number for number in self.stable if number < low}
        for reader in self.readers:
            reader.consumed, reader.since = min(reader.consumed, low - 1), min(reader.since, low)

    # Clients.

    def _request(self, number: int) -> Register:
        return Register(
            role=Role.RECEIVER,
            store_index=0,
            generation=1,
            reg_id=RECEIVER_ID + number,
            incarnation=self._kept.incarnation,
            source_reg_id=SOURCE_ID,
            topic="topic",
            session_id=0,
            reply_to=f"receiver:{number}",
            transport="",
            activity_timeout_ms=0,
            state_lifetime_ms=0,
            pace=Pace.NON_BLOCKING if number in self.constants.Patient else Pace.RECEIVERS,
        )

    def _farewell(self, number: int) -> Deregister:
        request = self._request(number)
        return Deregister(
            request.role,
            request.store_index,
            request.generation,
            request.reg_id,
            request.incarnation,
            request.source_reg_id,
            request.reply_to,
        )

    # What the model sees.

    def abstract(self) -> State:
        """The model's variables."""
        return {
            "source": self._source_of(),
            "queue": tuple(map(_message, self.queue)),
            "acks": frozenset(self._news()),
            "store": self._store(),
            "written": self._journal(self.written),
            "disk": self._journal(self.disk),
            "receiver": tuple(self._reader(number, reader) for number, reader in enumerate(self.readers, 1)),
            "crashed": self.crashed,
            "stable": frozenset(self.stable),
        }

    @property
    def _kept(self) -> Repository:
        """The store's only repository."""
        assert self.store is not None
        return self.store.repositories[SOURCE_ID]

    def _source_state(self) -> str:
        """A source that counts and waits for an answer renews its registration."""
        if not self.up:
            return "DOWN"
        if self.source.state is not SourceState.ACTIVE:
            return "ASKING"
        return "ACTIVE" if self.source.enrollment.registrations[0].present else "RENEWING"

    def _window(self) -> Fn:
        """What the newest life that could send has sent."""
        if self.before is not None:
            return self.before
        window = self.source.window
        stop = window.next
        unsettled = frozenset(n for first, last in window.settled.missing(window.trail, stop) for n in range(first, last))
        return record(low=self.source.resume_point, next=stop, open=unsettled)

    def _source_of(self) -> Fn:
        life = self.source.config.incarnation
        return record(state=self._source_state(), life=life, **dict(_named(self._window())))

    def _next(self) -> int:
        stop = self._window()["next"]
        assert isinstance(stop, int)
        return stop

    def _may_send(self) -> bool:
        source = self.source
        credit = source.credit_bytes
        return self.up and source.can_send and bool(credit) and source.window.next < self.constants.Messages

    def _news(self) -> set[int]:
        """What the source is about to hear and does not know."""
        told = {number for ack in self.told for number in range(ack.first, ack.last + 1)}
        unsettled = self._window()["open"]
        assert isinstance(unsettled, frozenset)
        return {number for number in told if number in unsettled}

    def _acknowledged(self, number: int) -> int:
        assert self.store is not None
        known = self.store.clients.records.get(RECEIVER_ID + number)
        return UNKNOWN if known is None else known.client.acknowledged

    def _kept_waiting(self) -> frozenset[int]:
        """Numbers that the disk was given and has not reported."""
        assert self.store is not None
        runs = [due for due in self.store.tickets.waiting if due.generation < 0 and due.farewell is None]
        return frozenset(number for run in runs for number in range(run.first, run.stop))

    def _granting(self) -> bool:
        assert self.store is not None
        life = self._kept.incarnation
        waiting = self.store.tickets.waiting
        return any(
            due.generation >= 0 and due.reg_id == SOURCE_ID and due.incarnation == life for due in waiting
        )

    def _asking(self) -> bool:
        return any(reader.state == "ASKING" for reader in self.readers)

    def _store(self) -> Fn:
        numbers = range(1, self.constants.Receivers + 1)
        if self.store is None:
            none = dict.fromkeys(("held", "synced", "delayed", "waiting", "lost", "wanted"), frozenset[Value]())
            flags = dict.fromkeys(("up", "asked", "paused", "granting"), False)
            rec = (UNKNOWN,) * self.constants.Receivers
            return record(life=0, low=NONE, trail=0, acked=0, high=NONE, rec=rec, **none, **flags)
        kept = self._kept
        window, filling, begun = kept.window, kept.filling, kept.resume_point is not None
        requests = filling.requests
        asked = [(request.start, request.stop) for request in requests.asked]
        return record(
            up=True,
            life=kept.incarnation,
            low=NONE if kept.resume_point is None else kept.resume_point,
            trail=kept.trail,
            held=_numbers(kept.held),
            synced=_numbers(kept.synced),
            delayed=_numbers((run.first, run.stop) for run in window.delayed),
            waiting=self._kept_waiting(),
            acked=kept.acked if begun else 0,
            high=NONE if filling.high is None else filling.high,
            lost=_numbers(kept.lost),
            wanted=_numbers([*requests.wanted, *asked]),
            asked=filling.asked_at is not None,
            paused=filling.paused,
            granting=self._granting(),
            rec=tuple(self._acknowledged(number) for number in numbers),
        )

    def _reader(self, number: int, reader: Reader) -> Fn:
        blocks = number not in self.constants.Patient
        return record(state=reader.state, blocks=blocks, consumed=reader.consumed, since=reader.since)

    def _journal(self, journal: Journal) -> Fn:
        client = journal.of(SOURCE_ID)
        if client is None:
            return record(life=0)
        known = [journal.of(RECEIVER_ID + number) for number in range(1, self.constants.Receivers + 1)]
        return record(
            life=client.incarnation,
            low=next((first for life, first in client.lives if life == client.incarnation), NONE),
            freed=client.freed,
            trail=journal.trail,
            messages=journal.messages,
            rec=tuple(UNKNOWN if reader is None else reader.acknowledged for reader in known),
        )


def _numbers(ranges: Iterator[tuple[int, int]] | Sequence[tuple[int, int]]) -> frozenset[Value]:
    return frozenset(number for first, stop in ranges for number in range(first, stop))


def _named(fields: Fn) -> Iterator[tuple[str, Value]]:
    yield from ((str(name), value) for name, value in fields.pairs)


def _message(item: Data | SourceInfo) -> Fn:
    if isinstance(item, Data):
        return record(kind="data", life=item.incarnation, number=item.wire_first, again=item.recovered)
    return record(kind="info", life=item.incarnation, low=item.low, high=_signed(item.high))


def _signed(wire: int) -> int:
    """The few numbers of a model are small; one below 0 is 32 ones on a message."""
    return wire if wire < 1 << 31 else wire - (1 << 32)


def _source(constants: Constants, life: int) -> SourceEndpoint:
    config = SourceConfig(
        "topic",
        life,
        SOURCE,
        f"stream:{life}",
        (StoreSpec(STORE, SOURCE_ID),),
        GroupRules((1,)),
        flight_messages=0,
        flight_bytes=constants.Flight,
        stability_timeout_ns=0,
        sri_maximum=1,
        pace=Pace.RECEIVERS,
        repairs=constants.repairs,
    )
    return SourceEndpoint.create(config)


def _store_config(constants: Constants) -> StoreConfig:
    kept = RepositoryConfig(
        size_threshold=0,
        size_limit=0,
        disk_limit=constants.Capacity,
        allow_rpp=True,
        write_delay_ns=DELAY_NS if constants.Delay else 0,
        source_activity_ns=NEVER_NS,
        receiver_activity_ns=SILENCE_NS,
    )
    return StoreConfig(
        STORE,
        1,
        repository=kept,
        check_ns=1,
        keepalive_ns=0,
        retry_ns=NEVER_NS,
        give_up_ns=NEVER_NS,
        repairs=constants.repairs,
    )


def _owed(state: State) -> Iterator[Value]:
    """What is stable and was offered to receivers that block; after a crash, what was sent since they registered."""
    stable, receivers = state["stable"], state["receiver"]
    assert isinstance(stable, frozenset)
    assert isinstance(receivers, tuple)
    for receiver in receivers:
        assert isinstance(receiver, Fn)
        consumed, since = receiver["consumed"], receiver["since"] if state["crashed"] else 0
        assert isinstance(consumed, int)
        assert isinstance(since, int)
        if receiver["blocks"] and receiver["state"] == "IN":
            yield from (number for number in stable if isinstance(number, int) and number >= max(since, consumed + 1))


def _part(state: State, variable: str, field: str) -> Value:
    whole = state[variable]
    assert isinstance(whole, Fn)
    return whole[field]


def _within(owed: Iterator[Value], numbers: Value) -> bool:
    assert isinstance(numbers, frozenset)
    return all(number in numbers for number in owed)


def _kept(state: State) -> bool:
    """P2: what is stable stays at the store until every registered receiver that blocks has consumed it."""
    return not _part(state, "store", "up") or _within(_owed(state), _part(state, "store", "held"))


def _synced(state: State) -> bool:
    """P1: and it is on disk."""
    return _within(_owed(state), _part(state, "disk", "messages"))


INVARIANTS: Mapping[str, Invariant] = {"Kept": _kept, "Synced": _synced}
