"""The world of `tla/Recovery`: a receiver that dies and returns, and two stores, by the core's own machines.

The receiver is a whole `ReceiverSession`, each store a whole `StoreEndpoint` (`recovery_store`). The world adds what
the core leaves to its drivers: what is under way between them, disks, time in ticks, and an application that consumes,
dies and forgets. The world remembers what that application was told and has read.

A registration is one action: the request reaches the store, its record is synced, the answer arrives.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import AskLow, Deliver, Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationComplete, UnrecoverableLoss
from stablecast.core.protocol.inputs import Arrived, Consumed, Data, Finish, LowChosen, ReceiverInput, Reset
from stablecast.core.protocol.messages import ConsumptionAck, RetransmitRequest
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Asked
from stablecast.core.protocol.settings import AckMode, Ordering, OtrTimes, ReceiverConfig, RegistrationTimes, UseOtr
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import Shared
from stablecast.lab.model.explorer import Action, Invariant, State
from stablecast.lab.model.worlds.recovery_store import (
    LIFE,
    MESSAGE_BYTES,
    NEVER_NS,
    STORES,
    Constants,
    Node,
    address_of,
    source_info,
)

TICK_NS = MILLISECOND
SESSION_ID = 7

_REPAIRS = {"prefix": Repair.PREFIX, "every_group": Repair.EVERY_GROUP}


@attrs.define
class Application:
    """Of this session: what it was told, a loss as a negative number, and is done with. Ever: what it read, and lost.

    `low` is where the session began, `best` the highest acknowledgement that a store knew of then.
    """

    told: list[int] = attrs.field(factory=list)
    done: set[int] = attrs.field(factory=set)
    read: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    low: int = 0
    best: int = 0


@attrs.define
class World:
    """See the module."""

    constants: Constants
    nodes: dict[int, Node]
    shared: Shared[ReceiverSession] | None = None
    application: Application = attrs.field(factory=Application)
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """The initial state: everything is stored, and no receiver was ever there."""
        known = Constants(**{name: value for name, value in constants.items() if name != "Mutant"})  # type: ignore[arg-type]
        return cls(known, {store: Node.create(known, store) for store in STORES})

    # What can happen.

    def actions(self) -> Iterator[Action]:
        """In the order of the model's `Next`."""
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
        """Whether a tick would change anything but the clock."""
        registering = session.state is ReceiverState.REGISTERING and not session.status.first_interval_over
        waits = registering or session.status.ack_due or session.status.asked
        return bool(waits) or any(_registration(session, store) == "RENEWING" for store in STORES)

    def _under_way(self) -> bool:
        return any(node.inbox or node.outbox for node in self.nodes.values())

    def do(self, action: Action) -> None:
        """Let it happen."""
        name, *parameters = action
        number = parameters[0] if parameters else 0
        assert isinstance(number, int)
        if number and name != "Consume":
            self._do_at_store(str(name), self.nodes[number])
            return
        match name:
            case "Start":
                self.shared = Shared(ReceiverSession.create(_config(self.constants)))
                self._tell(Arrived(source_info(self.constants)))
            case "Tick":
                self.now += TICK_NS
                session = self._session()
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

    def _do_at_store(self, name: str, node: Node) -> None:
        match name:
            case "Register":
                assert self.shared is not None
                request = self.shared.machine.status.registrations[node.number - 1].request
                for answer in node.register(request, self.now):
                    self._tell(Arrived(answer))
            case "ToStore":
                node.hear(node.inbox.pop(0), self.now)
            case "ToReceiver":
                self._tell(Data(LIFE, LIFE, node.outbox.pop(0), 1, MESSAGE_BYTES, True, 1))
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
        """The session is over, and the application remembers nothing."""
        self.shared = None
        self.application = Application(read=self.application.read, lost=self.application.lost)
        for node in self.nodes.values():
            node.forget_receiver()

    def _session(self) -> ReceiverSession:
        """The receiver's machine, to let it do something."""
        assert self.shared is not None
        self.shared = self.shared.own()
        return self.shared.machine

    def _tell(self, event: ReceiverInput) -> None:
        session = self._session()
        session.receive(event, self.now)
        self._perform(session)

    def _perform(self, session: ReceiverSession) -> None:
        """Do what the receiver wants. The application has no wish where to start."""
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

    # What the model sees.

    def abstract(self) -> State:
        """The model's variables."""
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
            held=_members(status.held),
            gone=_members(status.lost),
            done=frozenset(application.done),
            acked=status.acknowledged if active else 0,
            due=status.ack_due,
            wanted=_members(status.wanted),
            asked=tuple(self._asked(asked) for asked in status.asked),
            turn=0 if status.turn is None else status.turn % len(STORES),
        )

    def _asked(self, asked: Asked) -> Fn:
        age = (self.now - asked.since) // TICK_NS
        return record(first=asked.start, last=asked.stop - 1, turn=asked.turn % len(STORES), age=age)


_DOWN = record(
    state="DOWN",
    reg=("IDLE", "IDLE"),
    said=(0, 0),
    over=False,
    low=0,
    best=0,
    told=(),
    held=frozenset(),
    gone=frozenset(),
    done=frozenset(),
    acked=0,
    due=False,
    wanted=frozenset(),
    asked=(),
    turn=0,
)


def _store_actions(node: Node, faults: frozenset[str]) -> Iterator[str]:
    """What can happen at a store, whatever the receiver does."""
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


def _members(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(number for start, stop in ranges for number in range(start, stop))


def _registration(session: ReceiverSession, store: int) -> str:
    return session.status.registrations[store - 1].state.name


def _said(session: ReceiverSession, store: int) -> int:
    """What a store that counts has told us that we acknowledged, 0: nothing."""
    registration = session.status.registrations[store - 1]
    granted = registration.granted
    return granted.low - 1 if registration.counts and granted is not None and granted.old else 0


def _message(message: ConsumptionAck | RetransmitRequest) -> Fn:
    if isinstance(message, ConsumptionAck):
        return record(kind="ack", first=message.number, last=message.number)
    return record(kind="ask", first=message.first, last=message.last)


def _config(constants: Constants) -> ReceiverConfig:
    repairs = Repair.ALL & ~(Repair.PREFIX | Repair.EVERY_GROUP)
    for name in constants.Repairs:
        repairs |= _REPAIRS[name]
    return ReceiverConfig(
        "topic",
        LIFE,
        "receiver",
        session_id=SESSION_ID,
        times=RegistrationTimes(TICK_NS, NEVER_NS, NEVER_NS),
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


def _in_order(state: State) -> bool:
    """D1: every number is told once."""
    told = [abs(number) for number in _numbers(_field(state["rcv"], "told"))]
    return len(told) == len(set(told))


def _no_gap(state: State) -> bool:
    """D1: what a session begins behind was read before, or the application was told that it is lost."""
    (low,) = _numbers((_field(state["rcv"], "low"),))
    return _settled(state) >= set(range(1, low))


def _nothing_unread(state: State) -> bool:
    """A1: what a store takes for acknowledged was read, or the application was told that it is lost."""
    stores = state["store"]
    assert isinstance(stores, tuple)
    return all(_settled(state) >= set(range(1, ack + 1)) for ack in _numbers(_field(store, "ack") for store in stores))


def _no_repeat(state: State) -> bool:
    """A2: what one of the stores that answered knows to be acknowledged is not delivered again."""
    receiver = state["rcv"]
    low, best = _numbers((_field(receiver, "low"), _field(receiver, "best")))
    return _field(receiver, "state") != "ACTIVE" or low > best


def _settled(state: State) -> set[int]:
    return {*_numbers(state["read"]), *_numbers(state["lost"])}


def _field(value: Value, name: str) -> Value:
    assert isinstance(value, Fn)
    return value[name]


def _numbers(values: Value | Iterable[Value]) -> list[int]:
    assert isinstance(values, Iterable)
    return [value for value in values if isinstance(value, int)]


INVARIANTS: Mapping[str, Invariant] = {"InOrder": _in_order}
"""What holds under the documented rules, too."""

PROMISES: Mapping[str, Invariant] = {
    **INVARIANTS,
    "NoGap": _no_gap,
    "NothingUnread": _nothing_unread,
    "NoRepeat": _no_repeat,
}
"""What holds under the repaired rules and the consensus `highest`, without a request maximum."""
