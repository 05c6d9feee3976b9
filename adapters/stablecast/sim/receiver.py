"""A receiver's process: sessions driven as the client does it, and an application that consumes what they deliver."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

import attrs

from stablecast.core import effects as fx
from stablecast.core.events import (
    DeregistrationComplete,
    Event,
    RegistrationComplete,
    RegistrationSuccess,
    UnrecoverableLoss,
)
from stablecast.core.inputs import (
    Acknowledge,
    Arrived,
    Consumed,
    Data,
    Finish,
    Gone,
    History,
    Lost,
    LowChosen,
    ReceiverInput,
    RegIdChosen,
    Reset,
    Start,
    Withdraw,
)
from stablecast.core.messages import ConsumptionAck, Deregistered, Message, Refused, Registered, Role, SourceInfo
from stablecast.core.ranges import RangeSet
from stablecast.core.receiver import ReceiverSession
from stablecast.core.registration import Registration
from stablecast.core.settings import AckMode, ReceiverConfig
from stablecast.core.units import MILLISECOND
from stablecast.net.runs import Continuity, Tokens
from stablecast.sim.checkers import Checkers
from stablecast.sim.coding import NO_MESSAGE, Item, encode
from stablecast.sim.lossy import Lossy
from stablecast.sim.network import Network
from stablecast.sim.process import Driver, Joiner, Process, serve
from stablecast.sim.resolving import Found, Resolving
from stablecast.sim.setup import Leaving, Setup
from stablecast.sim.source import HESITATE_NS, PAYLOAD
from stablecast.sim.world import Clock
from stablecast.trace import Driven
from stablecast.trace.recording import Recorder
from stablecast.transports import codec
from stablecast.transports.fragments import Reassembly
from stablecast.transports.lbttcp import Run, payloads
from stablecast.transports.resolution.inputs import Resolved, Unresolved

DRAIN_NS = 300 * MILLISECOND
"""How long a new life of a source waits for the application to finish what an earlier one delivered."""

CONSUME_NS = 10 * MILLISECOND
"""What the application does with a run takes at most so long."""

ACKNOWLEDGE_SHARE = 0.5
"""How often an application that acknowledges itself does so after a run."""


@attrs.frozen
class Batch:
    """Messages from `first` on that the application has not consumed."""

    session: "Session"
    sender: int
    first: int
    count: int


class ReceiverProcess(Process):
    """One life of a receiver and its application."""

    def __init__(
        self,
        network: Network,
        receiver: str,
        name: str,
        config: ReceiverConfig,
        clock: Clock,
        checkers: Checkers,
        record: Callable[[ReceiverSession], Recorder | None],
        setup: Setup,
    ) -> None:
        """It has not started; `receiver` is whose process it is, `config` the template of its sessions."""
        super().__init__(network, name, config.reply_to.partition(":")[0], clock)
        self.receiver = receiver
        self.config = config
        self.checkers = checkers
        self.record = record
        self.lossy = setup.lossy
        self.hesitates = setup.leaving is Leaving.RECEIVER
        self.leaving = False
        self.resolving: Resolving | None = None
        self.sessions: dict[int, Session] = {}
        self._joiners: dict[str, Joiner] = {}
        self._plans: dict[str, Found] = {}
        self._finished: list[Session] = []
        self._history: dict[int, list[tuple[int, int]]] = {}
        self._queue: deque[Batch] = deque()

    def start(self) -> None:
        """Listen; sources will be found."""
        self.listen(self.config.reply_to, serve(self._on_items))

    def every_session(self) -> list["Session"]:
        """Those whose stream goes on, and those that wait for the application."""
        return [*self.sessions.values(), *self._finished]

    def registrations(self) -> Iterable[Registration]:
        """Those of all sessions."""
        return [held for session in self.every_session() for held in session.machine.enrollment.registrations.values()]

    def withdraw(self) -> None:
        """Deregister everywhere; what comes is taken, no source is looked for any more."""
        self.leaving = True
        self.checkers.receivers.on_leave(self.receiver, self.name)
        for session in self.every_session():
            session.driver.feed(Withdraw())

    @property
    def left(self) -> bool:
        """Whether no store knows it any more."""
        return self.leaving and all(session.left for session in self.every_session())

    def broken(self, event: Reset | Gone) -> None:
        """A connection broke."""
        for session in self.every_session():
            session.driver.feed(event)

    # Sources come and go.

    def found(self, where: Found) -> None:
        """A source listens there; join it once earlier lives' messages are done with, or after a while."""
        if self.leaving or where.transport in self._joiners or where.transport in self._plans:
            return
        self._plans[where.transport] = where
        self.world.after(DRAIN_NS, lambda: self.deliver(lambda: self._late(where)))
        self._settle()

    def _late(self, where: Found) -> None:
        if self._plans.get(where.transport) is where:
            self._join(where)

    def _join(self, where: Found) -> None:
        del self._plans[where.transport]

        def items(session_id: int, arrived: Sequence[Item]) -> None:
            self._on_stream(session_id, arrived, where)

        stream = Lossy(self, self.lossy, items, self._on_lost).take if self.lossy else items

        def ended(gone: bool) -> None:
            if gone:
                self._gone(where.transport)

        self._joiners[where.transport] = Joiner(self, where.transport, where.session_id, stream, ended)

    def _gone(self, transport: str) -> None:
        """The life that listened there is over; what it delivered may still be consumed and acknowledged."""
        self._joiners.pop(transport, None)
        for session in [session for session in self.sessions.values() if session.transport == transport]:
            del self.sessions[session.incarnation]
            self._finished.append(session)
        self._settle()
        if self.resolving is not None:
            self.resolving.feed(Unresolved(self.config.topic))

    def _settle(self) -> None:
        """Let go of finished sessions whose messages are all consumed; when none is left, join what waits."""
        for session in [session for session in self._finished if not session.waiting]:
            self._finished.remove(session)
            self._history.update(session.history())
            session.close()
        if not self._finished:
            for where in list(self._plans.values()):
                self._join(where)

    def _on_stream(self, session_id: int, items: Sequence[Item], where: Found) -> None:
        for item in items:
            if isinstance(item, Run):
                session = self.sessions.get(codec.join(session_id, item.topic_index))
                if session is not None:
                    session.on_run(item)
            elif isinstance(item, SourceInfo) and item.topic == self.config.topic:
                self._session_for(item, where).driver.feed(Arrived(item))

    def _on_lost(self, session_id: int, run: Run) -> None:
        """The transport gives a run up."""
        incarnation = codec.join(session_id, run.topic_index)
        session = self.sessions.get(incarnation)
        if session is not None:
            session.driver.feed(Lost(incarnation, run.first, run.count))

    def _session_for(self, info: SourceInfo, where: Found) -> "Session":
        session = self.sessions.get(info.incarnation)
        if session is None:
            config = attrs.evolve(self.config, incarnation=info.incarnation, source_request=where.request)
            session = self.sessions[info.incarnation] = Session(self, config, where.transport)
            for finished in self._finished:
                self._history.update(finished.history())
            if self.resolving is not None:
                self.resolving.feed(Resolved(self.config.topic))
            session.start(self._history)
            if self.leaving:
                session.driver.feed(Withdraw())
        return session

    def _on_items(self, items: Sequence[Item]) -> None:
        recovered: dict[int, list[codec.Recovered]] = {}
        for item in items:
            if isinstance(item, codec.Recovered):
                recovered.setdefault(item.session, []).append(item)
            else:
                assert not isinstance(item, NO_MESSAGE)
                self._on_control(item)
        for incarnation, messages in recovered.items():
            session = self.sessions.get(incarnation)
            if session is not None:
                session.on_recovered(messages)

    def _on_control(self, message: Message) -> None:
        session = self.sessions.get(message.incarnation)
        mine = not isinstance(message, Registered | Refused | Deregistered) or message.role is Role.RECEIVER
        if session is not None and mine:
            session.driver.feed(Arrived(message))

    # The application.

    def take(self, batch: Batch) -> None:
        """A run to consume, in its turn."""
        self._queue.append(batch)
        if len(self._queue) == 1:
            self._work()

    def _work(self) -> None:
        self.world.after(int(self.world.rng.random() * CONSUME_NS), lambda: self.deliver(self._consumed))

    def _consumed(self) -> None:
        batch = self._queue.popleft()
        session, last = batch.session, batch.first + batch.count - 1
        self.checkers.receivers.on_consumed(self.receiver, batch.sender, batch.first, last + 1)
        session.waiting -= batch.count
        session.driver.feed(Consumed(batch.first, last))
        session.acknowledge(last)
        if not session.waiting and session in self._finished:
            self._settle()
        if self._queue:
            self._work()


class Session:
    """A session with one life of the source."""

    def __init__(self, process: ReceiverProcess, config: ReceiverConfig, transport: str) -> None:
        """It has not started."""
        self.incarnation = config.incarnation
        self.transport = transport
        self.waiting = 0
        self.left = False
        self.machine = ReceiverSession.create(config)
        self._process = process
        self._tokens = Tokens()
        self._stream = Continuity()
        self._checkers = process.checkers
        self._receiver = process.receiver
        self._newest = self._acknowledged = -1
        self._pieces = Reassembly()
        self._senders: dict[int, int] = {}
        driven: Driven[ReceiverInput, fx.ReceiverEffect] = Driven(self.machine, process.record(self.machine))
        self.driver = Driver(process, driven, self._perform)

    def start(self, history: dict[int, list[tuple[int, int]]]) -> None:
        """Begin, knowing what the application consumed in earlier sessions."""
        self._checkers.receivers.on_session(self._receiver, self._process.name, self.incarnation, history)
        for incarnation, ranges in history.items():
            for first, stop in ranges:
                self.driver.feed(History(incarnation, first, stop - 1))
        self.driver.feed(Start())

    def history(self) -> dict[int, list[tuple[int, int]]]:
        """What was consumed, by the life that sent it."""
        return {incarnation: list(ranges) for incarnation, ranges in self.machine.lives.consumed.items()}

    def close(self) -> None:
        """The last acknowledgement, then nothing."""
        self.driver.feed(Finish())
        self.driver.close()

    def on_run(self, run: Run) -> None:
        """Live data."""
        incarnation = self.incarnation
        token = self._tokens.keep(run, incarnation)
        lost = None if self._process.lossy else self._stream.check(incarnation, run)
        self.driver.feed(Data(incarnation, incarnation, run.first, run.count, run.payload_bytes, False, token))
        if lost is not None:
            self.driver.feed(lost)

    def on_recovered(self, messages: list[codec.Recovered]) -> None:
        """Retransmissions."""
        for data in self._tokens.keep_recovered(messages):
            self.driver.feed(data)

    def acknowledge(self, last: int) -> None:
        """An application that acknowledges itself does so now and then, and whenever it is done with everything."""
        if self._process.config.ack_mode is not AckMode.EXPLICIT:
            return
        if self._process.world.rng.random() < ACKNOWLEDGE_SHARE or not self.waiting:
            number = last if self.waiting else self._newest
            self._acknowledged = max(self._acknowledged, number)
            self.driver.feed(Acknowledge(number))

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        match effect:
            case fx.Send():
                if isinstance(effect.message, ConsumptionAck):
                    self._on_acknowledge(effect.message)
                self._process.pool.send(effect.to, encode(effect.message))
            case fx.Deliver():
                run, sender = self._tokens.use(effect.token, effect.done)
                self._on_delivered(run, sender, effect)
            case fx.Discard():
                self._tokens.drop(effect.token)
            case fx.AskRegId():
                self.driver.feed(RegIdChosen(effect.store_index, 0))
            case fx.AskLow():
                self._choose(effect.low)
            case fx.Notify():
                self._on_notify(effect.event)
            case _:
                assert_never(effect)

    def _on_delivered(self, run: Run, sender: int, effect: fx.Deliver) -> None:
        if run.chained:
            self._senders |= dict.fromkeys(range(effect.first, effect.first + effect.count), sender)
            self._pieces.floor = self.machine.window.start
            wholes = self._pieces.take(run.block, effect.skip, effect.count, effect.first, effect.recovered)
            self._pass()
            for whole in wholes:
                self._hand_over(sender, whole.first, list(PAYLOAD.iter_unpack(whole.payload)))
            return
        if self._pieces.partials:
            self._pieces.settle(effect.first, effect.first + effect.count)
            self._pass()
        found = [PAYLOAD.unpack(payload) for payload in payloads(run.block, effect.skip, effect.count)]
        self._hand_over(sender, effect.first, found)

    def _hand_over(self, sender: int, first: int, found: list[tuple[int, int]]) -> None:
        self.waiting += len(found)
        self._newest = max(self._newest, first + len(found) - 1)
        self._checkers.receivers.on_delivered(self._process.name, self.incarnation, sender, first, found)
        self._process.take(Batch(self, sender, first, len(found)))

    def _pass(self) -> None:
        """Pieces that no message will come of."""
        self._pieces.check_invariants()
        passed, lost = self._pieces.take_passed()
        told = RangeSet(lost)
        for first, stop in passed:
            for number in range(first, stop):
                who = (self._receiver, self._process.name, self.incarnation, self._senders.pop(number))
                self._checkers.receivers.on_given_up(*who, number, told=number in told)
            self.driver.feed(Consumed(first, stop - 1))
            if first <= self._acknowledged:
                self.driver.feed(Acknowledge(min(stop - 1, self._acknowledged), first))

    def _choose(self, low: int) -> None:
        """Where to begin; applications of those who may leave meanwhile take their time."""
        process = self._process
        if process.hesitates:
            delay = int(process.world.rng.random() * HESITATE_NS)
            process.world.after(delay, lambda: process.deliver(lambda: self.driver.feed(LowChosen(low))))
        else:
            self.driver.feed(LowChosen(low))

    def _on_acknowledge(self, ack: ConsumptionAck) -> None:
        self._checkers.receivers.on_consumption_ack(self._receiver, self._process.name, self.incarnation, ack.number)

    def _on_notify(self, event: Event) -> None:
        match event:
            case RegistrationSuccess():
                self._checkers.on_registered(self._process, event.store_index, event.reg_id)
            case RegistrationComplete():
                self._checkers.receivers.on_begin(self._receiver, self._process.name, self.incarnation, event.number)
            case UnrecoverableLoss():
                self._checkers.receivers.on_loss(
                    self._receiver, self._process.name, self.incarnation, event.first, event.last + 1
                )
                self._pieces.lose(event.first, event.last + 1)
                self._pass()
            case DeregistrationComplete():
                self.left = True
            case _:
                self._checkers.on_oddity(event)
