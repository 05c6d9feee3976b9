"""Perform the effects of a subscription and its sessions, for the world of `tla/Subscription`.

What `client/subscriber.py` and `client/session.py` do with sockets and an inbox is here with plain values, so that the
explorer can copy a world. Objects that refer to each other are made for one action, and end with it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import attrs

from stablecast.core.protocol import effects as rx
from stablecast.core.protocol import inputs
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.events import RegistrationComplete, UnrecoverableLoss
from stablecast.core.protocol.settings import AckMode, OtrTimes, ReceiverConfig, RegistrationTimes, UseOtr
from stablecast.core.receiver import ReceiverSession, ReceiverState
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.subscription import Subscription
from stablecast.core.subscription.succession import Inheritance, Succession
from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.store_process import LONG_NS, numbers_of

STORE = "store"
SOURCE_REG_ID = 1
SESSION_ID = 7


@attrs.frozen
class Message:
    """A message that waits for the application: its session, the life that sent it, and its number."""

    owner: int
    life: int
    number: int


@attrs.define
class Kept:
    """Hold what sources, stores and application learned. Messages are (life, number).

    Attributes:
        sessions: How many sessions there were in this run.
        inbox: The messages that wait; the first one is in hand if `hand`.
        read: What the application consumed in this run; `handed`: was handed; `lost`: was told is lost.
        ever: What it consumed, or was told is lost, in any run.
        acked: How far the stores count the topic as consumed.
        told: What each life was told is consumed, as (life, number).
    """

    sessions: int = 0
    inbox: list[Message] = attrs.field(factory=list)
    hand: bool = False
    read: set[tuple[int, int]] = attrs.field(factory=set)
    handed: set[tuple[int, int]] = attrs.field(factory=set)
    lost: set[tuple[int, int]] = attrs.field(factory=set)
    ever: set[tuple[int, int]] = attrs.field(factory=set)
    acked: int = 0
    told: set[tuple[int, int]] = attrs.field(factory=set)

    def crash(self) -> None:
        """Forget what a process knows."""
        self.sessions, self.inbox, self.hand = 0, [], False
        self.read, self.handed, self.lost = set(), set(), set()

    def take(self) -> None:
        """Hand the first message over."""
        self.hand = True
        self.handed.add((self.inbox[0].life, self.inbox[0].number))


@attrs.define
class SessionNode:
    """A session with the life of a source. `heir`: the session that answers for its messages, 0: itself does."""

    name: int
    life: int
    shared: SharedMachine[ReceiverSession]
    heir: int = 0
    ended: bool = False
    closed: bool = False
    inherited: Inheritance | None = None

    @property
    def machine(self) -> ReceiverSession:
        """The machine; do not change it."""
        return self.shared.machine

    @property
    def registers(self) -> bool:
        """True while the session asks the stores for their grant."""
        return self.machine.state is ReceiverState.REGISTERING

    @property
    def asked(self) -> int:
        """The number that the session asks the stores for, 0: none."""
        return next((one.start for one in self.machine.status.asked), 0)

    @property
    def request(self) -> int:
        """The name of that request."""
        return self.machine.status.asked[0].tries[-1][0]

    def abstract(self) -> Fn:
        """Return the session as the model has it."""
        status = self.machine.status
        inherited = self.inherited or Inheritance()
        return record(
            life=self.life,
            state="CLOSED" if self.closed else self.machine.state.name,
            ended=self.ended,
            heir=self.heir,
            start=self.machine.start_number,
            next=status.next or 0,
            origin=status.origin,
            high=status.newest or 0,
            asked=0 if self.closed else self.asked,
            held=frozenset(first for first, _ in status.held),
            known=numbers_of(status.known),
            acked=status.acknowledged,
            done=numbers_of(status.consumed),
            skip=numbers_of(status.skipped),
            miss=numbers_of(status.missed),
            seen=_pairs(status.arrived),
            knows=_pairs(status.lives),
            has=_pairs(inherited.delivered),
            used=_pairs(inherited.consumed),
            passed=numbers_of(inherited.passed),
            gone=numbers_of(inherited.lost),
            kin=frozenset(inherited.lives),
            below=numbers_of(inherited.below),
        )


def _pairs(lives: dict[int, Any]) -> frozenset[Any]:
    return frozenset((life, number) for life, ranges in lives.items() for number in numbers_of(ranges))


class World(Protocol):
    """What the sessions ask of their world."""

    now: int

    def join(self, life: int) -> None:
        """Join a stream."""

    def leave(self, life: int) -> None:
        """Leave a stream."""

    def acknowledge(self, life: int, number: int) -> None:
        """Acknowledge to the stores."""

    def confirm(self, life: int, first: int, last: int) -> None:
        """Confirm to a source."""

    def owner(self, life: int, number: int) -> int:
        """Return whose message it is."""


class Session:
    """A session during one action: its node, and its place among the others."""

    def __init__(self, node: SessionNode, every: "Sessions") -> None:
        """Refer to the machine; the places of others are set later."""
        self.node, self.every = node, every
        self.events: deque[inputs.ReceiverInput] = deque()
        self.busy = False
        self.succession = Succession(node.machine, self.feed, every, inherited=node.inherited)

    def feed(self, event: inputs.ReceiverInput) -> None:
        """Feed one input, and then those that come of its effects."""
        if self.node.closed:
            return
        self.events.append(event)
        if self.busy:
            return
        self.busy = True
        while self.events:
            machine = self.succession.machine = self.node.shared.own()
            machine.receive(self.events.popleft(), self.every.world.now)
            for effect in machine.take_effects():
                self._perform(effect)
        self.busy = False

    def _perform(self, effect: rx.ReceiverEffect) -> None:
        node, place, world = self.node, self.succession, self.every.world
        stopped = place.heir is not None
        match effect:
            case rx.AskLow():
                self.feed(inputs.LowChosen(place.low(effect, effect.low)))
            case rx.Deliver():
                numbers = (effect.first, effect.first + effect.count)
                ((life, _),) = ((one, 0) for one, seen in node.machine.status.arrived.items() if seen.within(*numbers))
                for first, stop in () if stopped else place.fresh(life, *numbers):
                    self.every.kept.inbox += [Message(node.name, life, number) for number in range(first, stop)]
            case rx.Send(to=to, message=msg.ConsumptionAck() as ack):
                if to == STORE:
                    world.acknowledge(node.life, ack.number)
                else:
                    world.confirm(node.life, ack.first, ack.number)
            case rx.Notify(event=RegistrationComplete() as event):
                place.begin(event.number)
            case rx.Notify(event=UnrecoverableLoss() as event):
                for first, stop in () if stopped else place.lost(event.first, event.last + 1):
                    lost = {(world.owner(node.life, number), number) for number in range(first, stop)}
                    self.every.kept.lost |= lost
                    self.every.kept.ever |= lost

    @property
    def waits(self) -> bool:
        """True while the application has messages to consume."""
        return any(one.owner == self.node.name for one in self.every.kept.inbox)

    @property
    def settled(self) -> bool:
        """True if the session may end."""
        if self.succession.heir is not None:
            return True
        recovering = self.node.machine.state is ReceiverState.ACTIVE and self.node.machine.recovering
        return not (self.waits or recovering) and self.succession.settled

    def report(self) -> ev.Report:
        """Return what the application consumed by now."""
        machine = self.node.machine
        answers, confirmed = self.succession.heir is None, list(machine.status.confirmable)
        history = self.succession.consumed()
        return ev.Report(self.node.name, self.node.life, machine.info, history, answers, confirmed)

    def dropped(self, count: int) -> None:
        """Note that delivered messages will not be consumed: the inbox shows it."""

    def consumed(self, number: int) -> None:
        """Note that the application consumed a message."""
        if self.node.closed:
            self.node.shared.own().record_consumed(number, number + 1)
            self.succession.machine = self.node.machine
        else:
            self.feed(inputs.Consumed(number, number))
        if self.succession.heir is not None:
            self.succession.on_consumed(number, number + 1)
        elif self.node.closed:
            self.every.feed(ev.Remember(self.report()))


@attrs.frozen(eq=False)
class Waiting:
    """A waiting message as `Succession` knows it."""

    owner: Session
    incarnation: int
    message: Message


class Sessions:
    """The receiver during one action: it performs what its machines decide."""

    def __init__(self, machine: Subscription, nodes: dict[int, SessionNode], kept: Kept, world: World) -> None:
        """Connect the sessions as their nodes say."""
        self.machine, self.nodes, self.kept, self.world = machine, nodes, kept, world
        self.events: deque[ev.SubscriptionInput] = deque()
        self.busy = False
        self.every = {name: Session(node, self) for name, node in nodes.items()}
        for name, node in nodes.items():
            if node.heir:
                self.every[name].succession.heir = self.every[node.heir].succession

    # The inbox, for `Succession`.

    def unconsumed(self) -> Iterator[tuple[Waiting, int, int]]:
        """Yield the messages that are not consumed."""
        for one in self.kept.inbox:
            yield Waiting(self.every[one.owner], one.life, one), one.number, one.number + 1

    def drop(self, bounds: Callable[[Any], tuple[int, int] | None]) -> list[tuple[Waiting, int, int]]:
        """Drop the messages in bounds that were not handed over yet."""
        dropped = []
        for waiting, number, stop in [*self.unconsumed()][1 if self.kept.hand else 0 :]:
            meant = bounds(waiting)
            if meant is not None and meant[0] <= number < meant[1]:
                dropped.append((waiting, number, stop))
        gone = [waiting.message for waiting, _, _ in dropped]
        self.kept.inbox = [one for one in self.kept.inbox if one not in gone]
        return dropped

    # The machine.

    def feed(self, event: ev.SubscriptionInput) -> None:
        """Feed one input to the subscription, and then those that come of its effects."""
        self.events.append(event)
        if not self.busy:
            self._work()

    def timeout(self) -> None:
        """Let time pass."""
        self.machine.handle_timeout(self.world.now)
        self._work()

    def _work(self) -> None:
        self.busy = True
        self._perform()
        while self.events:
            self.machine.receive(self.events.popleft(), self.world.now)
            self._perform()
        self.busy = False

    def tell(self, name: int, event: inputs.ReceiverInput) -> None:
        """Feed one input to a session."""
        self.every[name].feed(event)

    def consume(self) -> None:
        """Let the application consume what it has in hand."""
        one = self.kept.inbox.pop(0)
        self.kept.hand = False
        self.kept.read.add((one.life, one.number))
        self.kept.ever.add((one.life, one.number))
        self.every[one.owner].consumed(one.number)

    def settle(self) -> None:
        """Report the ended sessions that may be closed, and forget those that nobody refers to."""
        while settled := tuple(self._settled()):
            self.feed(ev.Settled(settled))
        for name, session in self.every.items():
            node = self.nodes[name]
            node.inherited = session.succession.inherited
            heir = session.succession.heir
            node.heir = next((other for other, one in self.every.items() if one.succession is heir), 0)
        for name in [name for name in self.nodes if name not in self._needed()]:
            del self.nodes[name]

    def _needed(self) -> set[int]:
        """Return the sessions that go on, those of waiting messages, and those that answer for them."""
        ways = [name for name, node in self.nodes.items() if not node.closed]
        ways += [one.owner for one in self.kept.inbox]
        needed: set[int] = set()
        while ways:
            name = ways.pop()
            needed.add(name)
            ways += [self.nodes[name].heir] if self.nodes[name].heir else []
        return needed

    def _settled(self) -> Iterable[int]:
        done = (one.session for one in self.machine.finished)
        return [name for name in done if self.every[name].settled]

    def _perform(self) -> None:
        for effect in self.machine.take_effects():
            match effect:
                case fx.JoinStream(place=place):
                    self.world.join(int(place.transport))
                case fx.LeaveStream(transport=transport):
                    self.world.leave(int(transport))
                case fx.BeginSession():
                    self._begin(effect.info)
                case fx.StartSession():
                    self._start(effect)
                case fx.Inform(session=name):
                    session = self.every[name]
                    session.feed(inputs.Arrived(effect.info))
                    if session.succession.due:
                        session.succession.inherit()
                case fx.EndSession(session=name):
                    session = self.every[name]
                    session.node.ended = True
                    session.feed(inputs.Gone(source_address(session.node.life)))
                    vain = session.node.machine.state is not ReceiverState.ACTIVE
                    self.feed(ev.SessionEnded(name, vain))
                case fx.CloseSession(session=name):
                    session = self.every[name]
                    session.feed(inputs.Finish())
                    session.node.closed = session.node.ended = True
                    self.feed(ev.Remember(session.report()))

    def _begin(self, info: msg.SourceInfo) -> None:
        life = info.incarnation
        self.kept.sessions += 1
        name = self.kept.sessions
        before = [one for one in self.every.values() if one.waits or not one.node.closed]
        self.nodes[name] = SessionNode(name, life, SharedMachine(ReceiverSession.create(_config(life))))
        self.every[name] = Session(self.nodes[name], self)
        self.feed(ev.Begun(life, name, tuple(one.report() for one in before)))

    def _start(self, effect: fx.StartSession) -> None:
        session = self.every[effect.session]
        session.succession.earlier = [self.every[name].succession for name in effect.earlier]
        for life, ranges in effect.history.items():
            for first, stop in ranges:
                session.feed(inputs.History(life, first, stop - 1))
        for first, stop in effect.confirmed:
            session.feed(inputs.History(session.node.life, first, stop - 1, confirmed=True))
        session.feed(inputs.Start())


def source_address(life: int) -> str:
    """Return where a life takes confirmations."""
    return f"source:{life}"


def _config(life: int) -> ReceiverConfig:
    return ReceiverConfig(
        "topic",
        life,
        "receiver",
        session_id=SESSION_ID,
        times=RegistrationTimes(LONG_NS, LONG_NS, LONG_NS),
        window=1,
        retry_ns=LONG_NS,
        give_up_ns=LONG_NS,
        otr=OtrTimes(use=UseOtr.OFF),
        ack_mode=AckMode.IMMEDIATE,
    )


BLANK = record(
    life=0,
    state="CLOSED",
    ended=False,
    acked=-1,
    **dict.fromkeys(("heir", "start", "next", "origin", "high", "asked"), 0),
    **dict.fromkeys(("held", "known", "done", "skip", "miss", "seen", "knows"), frozenset[Value]()),
    **dict.fromkeys(("has", "used", "passed", "gone", "kin", "below"), frozenset[Value]()),
)
"""A session that nobody asks any more, as the model has it."""
