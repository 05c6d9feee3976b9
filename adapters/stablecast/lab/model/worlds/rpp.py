"""Drive the core's machines for `tla/Rpp`: a source, a store with little room, and receivers that set the pace.

Source and store are whole endpoints. A receiver is only the number it has consumed, its registration and its
acknowledgements. The world adds the stream to the store (data, SRI, retransmissions), stability acknowledgements in
flight, and the store's journal. Requests between store and source are answered at once.

A message has one byte. Timers run where an action says so: a write delay is over, or a receiver was silent for too
long.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

import attrs

from stablecast.core.protocol.effects import Broadcast, Effect, Resend, Send
from stablecast.core.protocol.inputs import Arrived, Data, Persisted, Reset, Sent, Start
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregistered,
    Keepalive,
    Message,
    Pace,
    Refused,
    Registered,
    SourceInfo,
    StableAck,
)
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.errors import ModelError
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.worlds.rpp_parts import (
    DELAY_NS,
    NONE,
    RECEIVER_ID,
    SILENCE_NS,
    SOURCE,
    SOURCE_ID,
    STORE,
    UNKNOWN,
    PacedJournal,
    PacedReceiver,
    RppConstants,
    farewell,
    new_source,
    receiver_request,
    store_config,
)
from stablecast.lab.model.worlds.shared import known_constants, numbers_of


@attrs.define
class RppWorld:
    """Drive one source, one store and its receivers. `told` are acknowledgements in flight to the source."""

    constants: RppConstants
    sender: SharedMachine[SourceEndpoint]
    keeper: SharedMachine[StoreEndpoint] | None
    readers: list[PacedReceiver]
    up: bool = True
    queue: list[Data | SourceInfo] = attrs.field(factory=list)
    told: list[StableAck] = attrs.field(factory=list)
    written: PacedJournal = attrs.field(factory=PacedJournal)
    disk: PacedJournal = attrs.field(factory=PacedJournal)
    crashed: bool = False
    stable: set[int] = attrs.field(factory=set)
    before: Fn | None = None
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """Return the initial state: the source is registered and has announced where it begins; no receiver exists.

        Raises:
            ModelError: the store refuses the source.
        """
        known = RppConstants(**known_constants(constants))
        store = StoreEndpoint.create(store_config(known))
        world = cls(
            known,
            SharedMachine(new_source(known, 1)),
            SharedMachine(store),
            [PacedReceiver() for _ in range(known.Receivers)],
        )
        world._tell_source(Start())
        world.do(("Sync",))
        if world.source.state is not SourceState.ACTIVE:
            raise ModelError("the store has less room than the source's flight")
        for action in (("ToStore",), ("Sync",)):
            world.do(action)
        return world

    @property
    def source(self) -> SourceEndpoint:
        """The newest life of the source, running or not; do not change it."""
        return self.sender.machine

    @property
    def store(self) -> StoreEndpoint | None:
        """The store while it is up; do not change it."""
        return None if self.keeper is None else self.keeper.machine

    def _own_source(self) -> SourceEndpoint:
        self.sender = self.sender.own()
        return self.sender.machine

    def _own_store(self) -> StoreEndpoint:
        assert self.keeper is not None
        self.keeper = self.keeper.own()
        return self.keeper.machine

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        """Yield the enabled actions."""
        if self._news():
            yield ("ToSource",)
        if "die" in self.constants.Faults and self.up:
            yield ("Die",)
        if self.store is None:
            yield ("Restart",)
        else:
            yield from self._store_actions(self.store)
        for number, reader in enumerate(self.readers, 1):
            yield from self._reader_actions(number, reader)

    def _store_actions(self, store: StoreEndpoint) -> Iterator[Action]:
        if self._may_send():
            yield ("Send",)
        if self.queue:
            yield ("ToStore",)
        if self._kept.delayed:
            yield ("Write",)
        if self.written != self.disk or waiting(store) or granting(store) or self._asking():
            yield ("Sync",)
        if not self.up and self.source.config.incarnation < self.constants.Lives:
            yield ("Return",)
        if "crash" in self.constants.Faults and not self.crashed and self._source_state() in ("ACTIVE", "DOWN"):
            yield ("Crash",)

    def _reader_actions(self, number: int, reader: PacedReceiver) -> Iterator[Action]:
        faults = self.constants.Faults
        heard = UNKNOWN if self.store is None else acknowledged(self.store, number)
        begun = self.store is not None and self._kept.resume_point is not None
        if reader.state == "OUT" and begun:
            yield ("Join", number)
        if reader.state == "IN" and self.store is not None and "leave" in faults:
            yield ("Leave", number)
        known = reader.state != "ASKING" and heard != UNKNOWN
        if "expire" in faults and known and not self._kept.delayed:
            yield ("Expire", number)
        if reader.state == "IN" and reader.consumed + 1 < self._next():
            yield ("Consume", number)
        if reader.state == "IN" and begun and heard < reader.consumed:
            yield ("Ack", number)

    def do(self, action: Action) -> None:
        """Perform an action of the model."""
        name, *parameters = action
        if parameters:
            self._reader_action(name, parameters[0], self.readers[parameters[0] - 1])
            return
        match name:
            case "Die":
                self.before, self.up, self.told = self._window(), False, []
            case "Return":
                self.sender, self.up = (
                    SharedMachine(new_source(self.constants, self.source.config.incarnation + 1)),
                    True,
                )
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
                self._store_action(name)

    def _reader_action(self, name: str, number: int, reader: PacedReceiver) -> None:
        match name:
            case "Consume":
                reader.consumed += 1
            case "Ack":
                ack = ConsumptionAck(self._kept.incarnation, SOURCE_ID, RECEIVER_ID + number, reader.consumed)
                self._tell_store(ack)
            case "Join":
                reader.state, reader.since = "ASKING", self._next()
                pace = Pace.NON_BLOCKING if number in self.constants.Patient else Pace.RECEIVERS
                self._tell_store(receiver_request(number, self._kept.incarnation, pace))
            case "Leave":
                self.readers[number - 1] = PacedReceiver()
                self._tell_store(farewell(number, self._kept.incarnation))
            case _:
                self.readers[number - 1] = PacedReceiver()
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
            store.receive(Persisted(store.status.newest_ticket), self.now)
        self._perform_store(store)

    def _send(self) -> None:
        source = self._own_source()
        number, life = source.next_number, source.config.incarnation
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
        self.readers = [PacedReceiver() if reader.state == "ASKING" else reader for reader in self.readers]

    def _restart(self) -> None:
        """Restart with the contents of the disk; then a running source notices that its connection broke."""
        store = StoreEndpoint.create(store_config(self.constants))
        extents = [(SOURCE_ID, number, 1, 1) for number in sorted(self.disk.messages)]
        store.recover(self.disk.clients, extents, {SOURCE_ID: self.disk.trail}, self.now)
        self.keeper = SharedMachine(store)
        self._perform_store(store)
        if self.up:
            self._tell_source(Reset(STORE))

    def _expire(self, reg_id: int) -> None:
        """End a receiver's state lifetime; every other client sends a keepalive."""
        store = self._own_store()
        self.now += 2 * SILENCE_NS
        for other, known in sorted(store.status.clients.items()):
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
        """Run the store's due timers, then perform its effects."""
        due = store.status.repository_due
        if due is not None and due <= self.now:
            store.handle_timeout(self.now)
        effects = store.take_effects()
        self.written = self.written.after(effects)
        for effect in effects:
            if isinstance(effect, Send):
                self._answer(effect.to, effect.message)

    def _answer(self, to: str, message: Message) -> None:
        """Deliver a message of the store."""
        if to != SOURCE:
            if isinstance(message, Registered):
                reader = self.readers[int(to.removeprefix("receiver:")) - 1]
                reader.state, reader.consumed = "IN", signed(message.low) - 1
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
        """Perform the source's effects."""
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
        """Handle a new life: receivers lose what they had from `low` on, and none of it is stable."""
        self.before = None
        self.stable = {number for number in self.stable if number < low}
        for reader in self.readers:
            reader.consumed, reader.since = min(reader.consumed, low - 1), min(reader.since, low)

    # The model's variables.

    def abstract(self) -> State:
        """Return the model's variables."""
        numbers = range(1, self.constants.Receivers + 1)
        return {
            "source": self._source_of(),
            "queue": tuple(map(item, self.queue)),
            "acks": frozenset(self._news()),
            "store": seen(self.store, numbers),
            "written": written(self.written, numbers),
            "disk": written(self.disk, numbers),
            "receiver": tuple(self._reader(number, reader) for number, reader in enumerate(self.readers, 1)),
            "crashed": self.crashed,
            "stable": frozenset(self.stable),
        }

    @property
    def _kept(self) -> RepositoryStatus:
        """The store's only repository."""
        assert self.store is not None
        return self.store.status.repositories[SOURCE_ID]

    def _source_state(self) -> str:
        """Return the state of the source in the model. A registered source that waits for an answer is renewing."""
        if not self.up:
            return "DOWN"
        if self.source.state is not SourceState.ACTIVE:
            return "ASKING"
        return "ACTIVE" if self.source.status.registrations[0].present else "RENEWING"

    def _window(self) -> Fn:
        """Return what the newest life that could send has sent."""
        if self.before is not None:
            return self.before
        stop = self.source.next_number
        unsettled = numbers_of(self.source.status.settled.missing(self.source.oldest_number, stop))
        return record(low=self.source.resume_point, next=stop, open=unsettled)

    def _source_of(self) -> Fn:
        life = self.source.config.incarnation
        return record(state=self._source_state(), life=life, **self._window())

    def _next(self) -> int:
        return int(self._window()["next"])

    def _may_send(self) -> bool:
        source = self.source
        credit = source.credit_bytes
        return self.up and source.can_send and bool(credit) and source.next_number < self.constants.Messages

    def _news(self) -> set[int]:
        """Return the acknowledged numbers in flight that are news to the source."""
        told = {number for ack in self.told for number in range(ack.first, ack.last + 1)}
        return {number for number in told if number in self._window()["open"]}

    def _asking(self) -> bool:
        return any(reader.state == "ASKING" for reader in self.readers)

    def _reader(self, number: int, reader: PacedReceiver) -> Fn:
        blocks = number not in self.constants.Patient
        return record(state=reader.state, blocks=blocks, consumed=reader.consumed, since=reader.since)


def acknowledged(store: StoreEndpoint, number: int) -> int:
    """Return what a store knows of a receiver's acknowledgement."""
    known = store.status.clients.get(RECEIVER_ID + number)
    return UNKNOWN if known is None else known.client.acknowledged


def waiting(store: StoreEndpoint) -> frozenset[Value]:
    """Return the numbers that wait for the disk."""
    runs = [due for due in store.status.waiting if due.generation < 0 and due.farewell is None]
    return numbers_of((run.first, run.stop) for run in runs)


def granting(store: StoreEndpoint) -> bool:
    """Return whether the source's registration waits for the disk."""
    wanted = (SOURCE_ID, store.status.repositories[SOURCE_ID].incarnation)
    return any(due.generation >= 0 and (due.reg_id, due.incarnation) == wanted for due in store.status.waiting)


def seen(store: StoreEndpoint | None, receivers: Iterable[int]) -> Fn:
    """Return the store's variables; None: it is down."""
    if store is None:
        none = dict.fromkeys(("held", "synced", "delayed", "waiting", "owed", "lost", "wanted"), frozenset[Value]())
        flags = dict.fromkeys(("up", "asked", "paused", "granting"), False)
        rec = tuple(UNKNOWN for _ in receivers)
        return record(life=0, low=NONE, trail=0, acked=0, high=NONE, rec=rec, **none, **flags)
    kept = store.status.repositories[SOURCE_ID]
    low = kept.resume_point
    return record(
        up=True,
        life=kept.incarnation,
        low=NONE if low is None else low,
        trail=kept.trail,
        held=numbers_of(kept.held),
        synced=numbers_of(kept.synced),
        delayed=numbers_of(kept.delayed),
        waiting=waiting(store),
        owed=numbers_of(kept.owed),
        acked=0 if low is None else kept.acked,
        high=NONE if kept.high is None else kept.high,
        lost=numbers_of(kept.lost),
        wanted=numbers_of(kept.requested),
        asked=kept.late_join is not None,
        paused=kept.paused,
        granting=granting(store),
        rec=tuple(acknowledged(store, number) for number in receivers),
    )


def written(journal: PacedJournal, receivers: Iterable[int]) -> Fn:
    """Return a journal's variables."""
    client = journal.of(SOURCE_ID)
    assert client is not None
    known = [journal.of(RECEIVER_ID + number) for number in receivers]
    return record(
        life=client.incarnation,
        low=next((first for life, first in client.lives if life == client.incarnation), NONE),
        freed=client.freed,
        trail=journal.trail,
        messages=journal.messages,
        rec=tuple(UNKNOWN if reader is None else reader.acknowledged for reader in known),
    )


def item(way: Data | SourceInfo) -> Fn:
    """Return an item of the stream."""
    if isinstance(way, Data):
        return record(kind="data", life=way.incarnation, number=way.wire_first, again=way.recovered)
    return record(kind="info", life=way.incarnation, low=way.low, high=signed(way.high))


def signed(wire: int) -> int:
    """Return a wire number as a signed one: numbers below 0 travel as 32-bit values."""
    return wire if wire < 1 << 31 else wire - (1 << 32)
