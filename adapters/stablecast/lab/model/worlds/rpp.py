"""Drive the core's machines for `tla/Rpp`: a source, a store with little room, and receivers that set the pace.

Source and store are whole endpoints. A receiver is only the number it has consumed, its registration and its
acknowledgements. The world adds the stream to the store (data, SRI, retransmissions), stability acknowledgements in
flight, and the store's journal. Requests between store and source are answered at once.

A message has one byte. Timers run where an action says so: a write delay is over, or a receiver was silent for too
long.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Broadcast, Effect, Resend, Send
from stablecast.core.protocol.inputs import Arrived, Data, Reset, Sent, Start
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.model.canonical import Fn, ModelError, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import SOURCE_ID, WorldJournal, WorldStore, data, numbers_of
from stablecast.lab.model.worlds import rpp_parts as parts


@attrs.define
class RppWorld:
    """Drive one source, one store and its receivers. `told` are acknowledgements in flight to the source."""

    constants: parts.RppConstants
    sender: SharedMachine[SourceEndpoint]
    keeper: SharedMachine[WorldStore]
    readers: list[parts.PacedReceiver]
    up: bool = True
    queue: list[Data | msg.SourceInfo] = attrs.field(factory=list)
    told: list[msg.StableAck] = attrs.field(factory=list)
    crashed: bool = False
    stable: set[int] = attrs.field(factory=set)
    before: Fn | None = None
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: the source is registered and has announced where it begins; no receiver exists.

        Raises:
            ModelError: the store refuses the source.
        """
        known = parts.RppConstants(**constants)
        config = parts.store_config(known)
        process = WorldStore(config, StoreEndpoint.create(config))
        readers = [parts.PacedReceiver() for _ in range(known.Receivers)]
        world = cls(known, SharedMachine(parts.new_source(known, 1)), SharedMachine(process), readers)
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
        return self.keeper.machine.machine

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
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
        process = self.keeper.machine
        if process.written != process.synced or waiting(store) or process.granting or self._asking():
            yield ("Sync",)
        if not self.up and self.source.config.incarnation < self.constants.Lives:
            yield ("Return",)
        if "crash" in self.constants.Faults and not self.crashed and self._source_state() in ("ACTIVE", "DOWN"):
            yield ("Crash",)

    def _reader_actions(self, number: int, reader: parts.PacedReceiver) -> Iterator[Action]:
        faults = self.constants.Faults
        heard = parts.UNKNOWN if self.store is None else acknowledged(self.store, number)
        begun = self.store is not None and self._kept.resume_point is not None
        if reader.state == "OUT" and begun:
            yield ("Join", number)
        if reader.state == "IN" and self.store is not None and "leave" in faults:
            yield ("Leave", number)
        known = reader.state != "ASKING" and heard != parts.UNKNOWN
        if "expire" in faults and known and not self._kept.delayed:
            yield ("Expire", number)
        if reader.state == "IN" and reader.consumed + 1 < self._next():
            yield ("Consume", number)
        if reader.state == "IN" and begun and heard < reader.consumed:
            yield ("Ack", number)

    def do(self, action: Action) -> None:
        name, *parameters = action
        if parameters:
            self._reader_action(name, parameters[0], self.readers[parameters[0] - 1])
            return
        match name:
            case "Die":
                self.before, self.up, self.told = self._window(), False, []
            case "Return":
                self.sender = SharedMachine(parts.new_source(self.constants, self.source.config.incarnation + 1))
                self.up = True
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

    def _reader_action(self, name: str, number: int, reader: parts.PacedReceiver) -> None:
        match name:
            case "Consume":
                reader.consumed += 1
            case "Ack":
                ack = msg.ConsumptionAck(self._kept.incarnation, SOURCE_ID, parts.RECEIVER_ID + number, reader.consumed)
                self._tell_store(ack)
            case "Join":
                reader.state, reader.since = "ASKING", self._next()
                pace = msg.Pace.NON_BLOCKING if number in self.constants.Patient else msg.Pace.RECEIVERS
                self._tell_store(parts.receiver_request(number, self._kept.incarnation, pace))
            case "Leave":
                self.readers[number - 1] = parts.PacedReceiver()
                self._tell_store(parts.farewell(number, self._kept.incarnation))
            case _:
                self.readers[number - 1] = parts.PacedReceiver()
                self._expire(parts.RECEIVER_ID + number)

    def _store_action(self, name: str) -> None:
        process = self.keeper.own()
        if name == "ToStore":
            event = self.queue.pop(0)
            effects = process.receive(event if isinstance(event, Data) else Arrived(event), self.now)
        elif name == "Write":
            self.now += parts.DELAY_NS
            effects = process.perform(self.now)
        else:
            effects = process.sync(self.now)
        self._perform_store(effects)

    def _send(self) -> None:
        source = self.sender.own()
        number, life = source.next_number, source.config.incarnation
        source.receive(Sent(number, 1, 1), self.now)
        self.queue.append(data(life, number, size=1))
        self._perform_source(source.take_effects())

    def _to_source(self) -> None:
        self.stable |= self._news()
        source = self.sender.own()
        for ack in self.told:
            source.receive(Arrived(ack), self.now)
        self._perform_source(source.take_effects())
        self.told = []

    def _crash(self) -> None:
        self.keeper.own().end()
        self.queue, self.told, self.crashed = [], [], True
        self.readers = [parts.PacedReceiver() if reader.state == "ASKING" else reader for reader in self.readers]

    def _restart(self) -> None:
        """Restart with the contents of the disk; then a running source notices that its connection broke."""
        process = self.keeper.own()
        self._perform_store(process.restart(self.now, {SOURCE_ID: process.synced.trail}, size=1))
        if self.up:
            self._tell_source(Reset(parts.STORE))

    def _expire(self, reg_id: int) -> None:
        """End a receiver's state lifetime; every other client sends a keepalive."""
        process = self.keeper.own()
        store = process.running
        self.now += 2 * parts.SILENCE_NS
        for other, known in sorted(store.status.clients.items()):
            if other != reg_id:
                client = known.client
                store.receive(Arrived(msg.Keepalive(client.role, client.incarnation, other, False, 0)), self.now)
        store.handle_timeout(self.now)
        self._perform_store(process.perform(self.now))

    # Effects.

    def _tell_store(self, message: msg.Message) -> None:
        self._perform_store(self.keeper.own().receive(Arrived(message), self.now))

    def _perform_store(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._answer(effect.to, effect.message)

    def _answer(self, to: str, message: msg.Message) -> None:
        if to != parts.SOURCE:
            if isinstance(message, msg.Registered):
                reader = self.readers[int(to.removeprefix("receiver:")) - 1]
                reader.state, reader.consumed = "IN", serial.extend(message.low, 0) - 1
            assert isinstance(message, msg.Registered | msg.Deregistered)
        elif not self.up or message.incarnation != self.source.config.incarnation:
            return
        elif isinstance(message, msg.StableAck):
            self.told.append(message)
        else:
            assert not isinstance(message, msg.Refused) or self.constants.Flight > self.constants.Capacity
            self._tell_source(Arrived(message))

    def _tell_source(self, event: Start | Arrived | Reset) -> None:
        source = self.sender.own()
        began = source.state is SourceState.REGISTERING
        source.receive(event, self.now)
        if began and source.state is SourceState.ACTIVE:
            self._resumed(source.resume_point)
        self._perform_source(source.take_effects())

    def _perform_source(self, effects: Sequence[Effect]) -> None:
        life = self.source.config.incarnation
        for effect in effects:
            match effect:
                case Send(to=to) if to == parts.STORE:
                    self._tell_store(effect.message)
                case Broadcast():
                    assert isinstance(effect.message, msg.SourceInfo)
                    self.queue.append(effect.message)
                case Resend():
                    numbers = range(effect.first, effect.last + 1)
                    self.queue += [data(life, number, recovered=True, size=1) for number in numbers]

    def _resumed(self, low: int) -> None:
        """Handle a new life: receivers lose what they had from `low` on, and none of it is stable."""
        self.before = None
        self.stable = {number for number in self.stable if number < low}
        for reader in self.readers:
            reader.consumed, reader.since = min(reader.consumed, low - 1), min(reader.since, low)

    # The model's variables.

    def abstract(self) -> State:
        numbers = range(1, self.constants.Receivers + 1)
        process = self.keeper.machine
        return {
            "source": self._source_of(),
            "queue": tuple(map(item, self.queue)),
            "acks": frozenset(self._news()),
            "store": seen(process, numbers),
            "written": written(process.written if self.store is not None else process.synced, numbers),
            "disk": written(process.synced, numbers),
            "receiver": tuple(self._reader(number, reader) for number, reader in enumerate(self.readers, 1)),
            "crashed": self.crashed,
            "stable": frozenset(self.stable),
        }

    @property
    def _kept(self) -> RepositoryStatus:
        kept = self.keeper.machine.repository
        assert kept is not None
        return kept

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

    def _reader(self, number: int, reader: parts.PacedReceiver) -> Fn:
        blocks = number not in self.constants.Patient
        return record(state=reader.state, blocks=blocks, consumed=reader.consumed, since=reader.since)


def acknowledged(store: StoreEndpoint, number: int) -> int:
    """Return what a store knows of a receiver's acknowledgement."""
    known = store.status.clients.get(parts.RECEIVER_ID + number)
    return parts.UNKNOWN if known is None else known.client.acknowledged


def waiting(store: StoreEndpoint) -> frozenset[Value]:
    """Return the numbers that wait for the disk."""
    runs = [due for due in store.status.waiting if due.generation < 0 and due.farewell is None]
    return numbers_of((run.first, run.stop) for run in runs)


def seen(process: WorldStore, receivers: Iterable[int]) -> Fn:
    store, kept = process.machine, process.repository
    if store is None or kept is None:
        none = dict.fromkeys(("held", "synced", "delayed", "waiting", "owed", "lost", "wanted"), frozenset[Value]())
        flags = dict.fromkeys(("up", "asked", "paused", "granting"), False)
        rec = tuple(parts.UNKNOWN for _ in receivers)
        return record(life=0, low=parts.NONE, trail=0, acked=0, high=parts.NONE, rec=rec, **none, **flags)
    low = kept.resume_point
    return record(
        up=True,
        life=kept.incarnation,
        low=parts.NONE if low is None else low,
        trail=kept.trail,
        held=numbers_of(kept.held),
        synced=numbers_of(kept.synced),
        delayed=numbers_of(kept.delayed),
        waiting=waiting(store),
        owed=numbers_of(kept.owed),
        acked=0 if low is None else kept.acked,
        high=parts.NONE if kept.high is None else kept.high,
        lost=numbers_of(kept.lost),
        wanted=numbers_of(kept.requested),
        asked=kept.late_join is not None,
        paused=kept.paused,
        granting=process.granting,
        rec=tuple(acknowledged(store, number) for number in receivers),
    )


def written(journal: WorldJournal, receivers: Iterable[int]) -> Fn:
    client = journal.source
    assert client is not None
    known = [journal.clients.get(parts.RECEIVER_ID + number) for number in receivers]
    return record(
        life=client.incarnation,
        low=next((first for life, first in client.lives if life == client.incarnation), parts.NONE),
        freed=client.freed,
        trail=journal.trail,
        messages=frozenset(journal.messages),
        rec=tuple(parts.UNKNOWN if reader is None else reader.acknowledged for reader in known),
    )


def item(way: Data | msg.SourceInfo) -> Fn:
    if isinstance(way, Data):
        return record(kind="data", life=way.incarnation, number=way.wire_first, again=way.recovered)
    return record(kind="info", life=way.incarnation, low=way.low, high=serial.extend(way.high, 0))
