"""Drive the core's machines for `tla/Recovery`: a receiver that dies and returns, and two stores.

The receiver is a whole `ReceiverSession`, each store a whole `StoreEndpoint` (`RecoveryStore`). The world adds what
the core leaves to its drivers: messages in flight, disks, time in ticks, and an application that consumes, dies and
forgets. The world remembers what that application received and consumed.

A registration is one action: the request arrives, its record is synced, and the answer arrives.

Drive one store of the world of `tla/Recovery`: a `StoreEndpoint`, its disk and its connections.

The store holds the messages of one source, which has sent them all. The model covers only what the store exchanges with
a receiver.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import AskLow, Client, Deliver, Effect, Notify, Send, SendStored, StoreEffect
from stablecast.core.protocol.events import RegistrationComplete, UnrecoverableLoss
from stablecast.core.protocol.inputs import Arrived, Consumed, Finish, LowChosen, ReceiverInput, Reset
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import OpenRequest
from stablecast.core.protocol.settings import AckMode, Ordering, OtrTimes, ReceiverConfig, RegistrationTimes, UseOtr
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import (
    LONG_NS,
    SOURCE_ID,
    WorldStore,
    data,
    disk_only,
    messages,
    numbers_of,
    registration,
)

STORES = (1, 2)
LIFE = 1
MESSAGE_BYTES = 100

_SOURCE = "source"


@attrs.frozen
class RecoveryConstants:
    """Hold the model's constants: spans in ticks, everything else in messages."""

    Messages: int
    Lacks1: frozenset[int]
    Lacks2: frozenset[int]
    Groups: int
    Order: str
    Acks: str
    Consensus: str
    Maximum: int
    Window: int
    GiveUp: int
    Room: int
    Repairs: frozenset[str]
    Faults: frozenset[str]

    def holds(self, store: int) -> list[int]:
        lacks = self.Lacks1 if store == 1 else self.Lacks2
        return [number for number in range(1, self.Messages + 1) if number not in lacks]


@attrs.define
class RecoveryStore:
    """Hold a store, and messages in flight to it and from it."""

    constants: RecoveryConstants
    number: int
    shared: SharedMachine[WorldStore]
    inbox: list[msg.ConsumptionAck | msg.RetransmitRequest] = attrs.field(factory=list)
    outbox: list[int] = attrs.field(factory=list)

    @classmethod
    def create(cls, constants: RecoveryConstants, number: int) -> "RecoveryStore":
        """Return a store that has received and synced its messages."""
        config = disk_only(address_of(number), Repair.ALL)
        process = WorldStore(config, StoreEndpoint.create(config))
        process.receive(Arrived(registration(LIFE, _SOURCE, "stream", number - 1)))
        process.receive(Arrived(source_info(constants)))
        for message in constants.holds(number):
            process.receive(data(LIFE, message, size=MESSAGE_BYTES))
        process.sync()
        return cls(constants, number, SharedMachine(process))

    @property
    def process(self) -> WorldStore:
        """The store; do not change it."""
        return self.shared.machine

    @property
    def up(self) -> bool:
        return self.process.machine is not None

    @property
    def acknowledged(self) -> int:
        """The receiver's acknowledgement in the store's memory, 0: none."""
        if self.process.machine is None:
            return 0
        return max(_acknowledged(one.client) for one in self.process.machine.status.clients.values())

    @property
    def durable(self) -> int:
        """The receiver's acknowledgement on disk, 0: none."""
        return max(map(_acknowledged, self.process.synced.clients.values()))

    def put(self, message: msg.Message) -> None:
        """Send a message to the store. A full queue drops it; registrations are an action of their own."""
        room = self.up and len(self.inbox) < self.constants.Room
        if room and isinstance(message, msg.ConsumptionAck | msg.RetransmitRequest):
            self.inbox.append(message)

    def forget_receiver(self) -> None:
        """Handle the end of the receiver. Its acknowledgements remain in flight."""
        self.inbox = [message for message in self.inbox if isinstance(message, msg.ConsumptionAck)]
        self.outbox = []

    def register(self, request: msg.Register, now: int) -> list[msg.Registered]:
        """Deliver a registration, sync it and return the answers."""
        self.hear(request, now)
        return self.sync(now)

    def hear(self, message: msg.Message, now: int) -> None:
        self._perform(self.shared.own().receive(Arrived(message), now))

    def sync(self, now: int) -> list[msg.Registered]:
        """Sync all writes; return the answers that waited for it."""
        return self._perform(self.shared.own().sync(now))

    def crash(self) -> None:
        """Lose connections and unsynced writes."""
        self.shared.own().end()
        self.inbox, self.outbox = [], []

    def restart(self, now: int) -> None:
        """Restart with the contents of the disk."""
        self.shared.own().restart(now, {SOURCE_ID: 1}, MESSAGE_BYTES)

    def _perform(self, effects: Sequence[StoreEffect]) -> list[msg.Registered]:
        """Put what the store sends from its disk on the way; return its answers to registrations."""
        for effect in effects:
            if isinstance(effect, SendStored):
                numbers = range(effect.first, effect.last + 1)
                self.outbox += numbers[: self.constants.Room - len(self.outbox)]
        return [message for message in messages(effects) if isinstance(message, msg.Registered)]


def address_of(store: int) -> str:
    return str(store)


def source_info(constants: RecoveryConstants) -> msg.SourceInfo:
    """Return the source's SRI, which names its stores and says that everything is sent."""
    sizes = (2,) if constants.Groups == 1 else (1, 1)
    stores = tuple(
        msg.StoreEntry(store - 1, (store - 1) % len(sizes), address_of(store), SOURCE_ID, 0) for store in STORES
    )
    return msg.SourceInfo(LIFE, "topic", 0, 1, constants.Messages, _SOURCE, sizes, False, stores)


def _acknowledged(client: Client) -> int:
    return client.acknowledged if client.role is msg.Role.RECEIVER and client.has_acknowledged else 0


TICK_NS = MILLISECOND
SESSION_ID = 7

_REPAIRS = {"prefix": Repair.PREFIX, "every_group": Repair.EVERY_GROUP}


@attrs.define
class ConsumerRecord:
    """Hold what the application of this session received (a loss as a negative number) and consumed.

    `read` and `lost` cover all sessions. `low` is where the session began, and `best` the highest acknowledgement that
    a store knew then.
    """

    told: list[int] = attrs.field(factory=list)
    done: set[int] = attrs.field(factory=set)
    read: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    low: int = 0
    best: int = 0


@attrs.define
class RecoveryWorld:
    constants: RecoveryConstants
    nodes: dict[int, RecoveryStore]
    shared: SharedMachine[ReceiverSession] | None = None
    application: ConsumerRecord = attrs.field(factory=ConsumerRecord)
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: everything is stored, and no receiver was ever there."""
        known = RecoveryConstants(**constants)
        return cls(known, {store: RecoveryStore.create(known, store) for store in STORES})

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        faults = self.constants.Faults
        session = self.shared.machine if self.shared else None
        if session is None:
            yield ("Start",)
        else:
            if self._something_waits(session) and ("slow" in faults or not self._under_way()):
                yield ("Tick",)
            if "die" in faults:
                yield ("Die",)
            if "close" in faults and session.state is ReceiverState.ACTIVE:
                yield ("Close",)
        told, done = self.application.told, self.application.done
        yield from (("Consume", number) for number in sorted(told) if number > 0 and number not in done)
        for store, node in self.nodes.items():
            if session is not None and node.up and _registration(session, store) != "REGISTERED":
                yield ("Register", store)
            yield from ((name, store) for name in _store_actions(node, faults))

    def _something_waits(self, session: ReceiverSession) -> bool:
        """Return whether a tick would change anything but the clock."""
        registering = session.state is ReceiverState.REGISTERING and not session.status.first_interval_over
        waits = registering or session.status.ack_due or session.status.asked
        return bool(waits) or any(_registration(session, store) == "RENEWING" for store in STORES)

    def _under_way(self) -> bool:
        return any(node.inbox or node.outbox for node in self.nodes.values())

    def do(self, action: Action) -> None:
        name, *parameters = action
        number = parameters[0] if parameters else 0
        if number and name != "Consume":
            self._do_at_store(name, self.nodes[number])
            return
        match name:
            case "Start":
                self.shared = SharedMachine(ReceiverSession.create(_config(self.constants)))
                self._tell(Arrived(source_info(self.constants)))
            case "Tick":
                self.now += TICK_NS
                session = self._running.own()
                session.handle_timeout(self.now)
                self._perform(session)
            case "Consume":
                self.application.done.add(number)
                self.application.read |= {number}
                self._tell(Consumed(number, number))
            case "Close":
                self._tell(Finish())
                self._end()
            case _:
                self._end()

    def _do_at_store(self, name: str, node: RecoveryStore) -> None:
        match name:
            case "Register":
                request = self._running.machine.status.registrations[node.number - 1].request
                for answer in node.register(request, self.now):
                    self._tell(Arrived(answer))
            case "ToStore":
                node.hear(node.inbox.pop(0), self.now)
            case "ToReceiver":
                self._tell(data(LIFE, node.outbox.pop(0), recovered=True, size=MESSAGE_BYTES))
            case "Lost":
                node.inbox.pop(0)
            case "Missed":
                node.outbox.pop(0)
            case "Sync":
                node.sync(self.now)
            case "Restart":
                node.restart(self.now)
            case _:
                node.crash()
                if self.shared is not None:
                    self._tell(Reset(address_of(node.number)))

    def _end(self) -> None:
        """End the session; the application forgets everything."""
        self.shared = None
        self.application = ConsumerRecord(read=self.application.read, lost=self.application.lost)
        for node in self.nodes.values():
            node.forget_receiver()

    @property
    def _running(self) -> SharedMachine[ReceiverSession]:
        assert self.shared is not None
        return self.shared

    def _tell(self, event: ReceiverInput) -> None:
        session = self._running.own()
        session.receive(event, self.now)
        self._perform(session)

    def _perform(self, session: ReceiverSession) -> None:
        """Perform the receiver's effects. The application has no wish where to begin."""
        application = self.application
        effects: list[Effect] = [*session.take_effects()]
        while effects:
            effect = effects.pop(0)
            match effect:
                case AskLow():
                    session.receive(LowChosen(effect.low), self.now)
                    effects += session.take_effects()
                case Deliver():
                    application.told += range(effect.first, effect.first + effect.count)
                case Send():
                    self.nodes[int(effect.to)].put(effect.message)
                case Notify(event=UnrecoverableLoss() as loss):
                    numbers = range(loss.first, loss.last + 1)
                    application.told += [-number for number in numbers]
                    application.lost |= frozenset(numbers)
                case Notify(event=RegistrationComplete() as complete):
                    application.low = complete.number
                    application.best = max(_said(session, store) for store in STORES)

    # The model's variables.

    def abstract(self) -> State:
        nodes = self.nodes.values()
        return {
            "rcv": _DOWN if self.shared is None else self._receiver(self.shared.machine),
            "store": tuple(record(up=node.up, ack=node.acknowledged, disk=node.durable) for node in nodes),
            "toStore": tuple(tuple(map(_message, node.inbox)) for node in nodes),
            "toRcv": tuple(tuple(node.outbox) for node in nodes),
            "read": self.application.read,
            "lost": self.application.lost,
        }

    def _receiver(self, session: ReceiverSession) -> Fn:
        application, status = self.application, session.status
        active = session.state is ReceiverState.ACTIVE
        return record(
            state=session.state.name,
            reg=tuple(_registration(session, store) for store in STORES),
            said=tuple(0 if active else _said(session, store) for store in STORES),
            over=not active and status.first_interval_over,
            low=application.low,
            best=application.best,
            told=tuple(application.told),
            held=numbers_of(status.held),
            gone=numbers_of(status.lost),
            done=frozenset(application.done),
            acked=status.acknowledged if active else 0,
            due=status.ack_due,
            wanted=numbers_of(status.wanted),
            asked=tuple(self._asked(asked) for asked in status.asked),
            turn=0 if status.turn is None else status.turn % len(STORES),
        )

    def _asked(self, asked: OpenRequest) -> Fn:
        age = (self.now - asked.since) // TICK_NS
        return record(first=asked.start, last=asked.stop - 1, turn=asked.turn % len(STORES), age=age)


_DOWN = record(
    state="DOWN",
    reg=("IDLE", "IDLE"),
    said=(0, 0),
    told=(),
    asked=(),
    **dict.fromkeys(("low", "best", "acked", "turn"), 0),
    **dict.fromkeys(("over", "due"), False),
    **dict.fromkeys(("held", "gone", "done", "wanted"), frozenset[Value]()),
)


def _store_actions(node: RecoveryStore, faults: frozenset[str]) -> Iterator[str]:
    """Yield the actions of a store that do not depend on the receiver."""
    if node.inbox:
        yield "ToStore"
        if "lose" in faults:
            yield "Lost"
    if node.outbox:
        yield "ToReceiver"
        if "miss" in faults:
            yield "Missed"
    if node.acknowledged != node.durable and node.up:
        yield "Sync"
    if "crash" in faults and node.up:
        yield "Crash"
    if "restart" in faults and not node.up:
        yield "Restart"


def _registration(session: ReceiverSession, store: int) -> str:
    return session.status.registrations[store - 1].state.name


def _said(session: ReceiverSession, store: int) -> int:
    """Return the acknowledgement that a registered store reported to the receiver, 0: none."""
    registration = session.status.registrations[store - 1]
    granted = registration.granted
    return granted.low - 1 if registration.counts and granted is not None and granted.old else 0


def _message(message: msg.ConsumptionAck | msg.RetransmitRequest) -> Fn:
    if isinstance(message, msg.ConsumptionAck):
        return record(kind="ack", first=message.number, last=message.number)
    return record(kind="ask", first=message.first, last=message.last)


def _config(constants: RecoveryConstants) -> ReceiverConfig:
    repairs = Repair.ALL & ~(Repair.PREFIX | Repair.EVERY_GROUP)
    for name in constants.Repairs:
        repairs |= _REPAIRS[name]
    return ReceiverConfig(
        "topic",
        LIFE,
        "receiver",
        session_id=SESSION_ID,
        times=RegistrationTimes(TICK_NS, LONG_NS, LONG_NS),
        consensus=Consensus[constants.Consensus.upper()],
        request_maximum=constants.Maximum,
        window=constants.Window,
        retry_ns=TICK_NS,
        give_up_ns=constants.GiveUp * TICK_NS,
        ordering=Ordering[constants.Order.upper()],
        otr=OtrTimes(use=UseOtr.OFF),
        ack_mode=AckMode[constants.Acks.upper()],
        ack_interval_ns=TICK_NS,
        repairs=repairs,
    )
