"""Simulate a receiver's process: sessions as the client runs them, and an application that consumes messages."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from stablecast.client import session as client
from stablecast.client.batch import ArrivalTime, Batch
from stablecast.client.redelivery import Redeliverer
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.events import Event, RegistrationComplete, RegistrationSuccess, UnrecoverableLoss
from stablecast.core.protocol.inputs import Gone, Lost, LowChosen, ReceiverInput, Reset
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.subscription.consumption import Consumption
from stablecast.core.subscription.precedence import PassedOver
from stablecast.core.subscription.source_identity import SourceIdentity
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.sim.application import SimulatedApplication, payloads_of
from stablecast.lab.sim.lossy_transport import Lossy
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import NO_MESSAGE, Item, VirtualDriver, VirtualJoiner, VirtualProcess, encode, serve
from stablecast.lab.sim.resolution import FoundSource, ProcessResolution
from stablecast.lab.sim.setup import Leaving, WorldSetup
from stablecast.lab.sim.source import HESITATE_NS
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.virtual_time import VirtualClock
from stablecast.runtime.driver import Driven
from stablecast.transports import codec
from stablecast.transports.codec.fragments import FragmentReassembly
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.resolution.udp.inputs import Resolved, Unresolved

T = TypeVar("T")

DRAIN_NS = 300 * MILLISECOND
"""Longest time in ns that a new life of a source waits until the application has consumed an earlier life's messages.
"""


class ClientDriver(VirtualDriver[ReceiverInput, fx.ReceiverEffect]):
    """Offer what the client's session needs of its driver (`runtime.driver`).

    `before` runs at the end of each turn of the event loop that fed an input, and before a timer.
    """

    def __init__(
        self,
        process: "ReceiverProcess",
        driven: Driven[ReceiverInput, fx.ReceiverEffect],
        perform: Callable[[fx.ReceiverEffect], None],
        before: Callable[[], None],
    ) -> None:
        """Pass the machine's effects to `perform`."""
        super().__init__(process, driven, perform)
        self._before = before
        self._unseen = driven.recorder is None
        self._settling = False

    @property
    def idle(self) -> bool:
        """True if no input is in progress and inputs are not recorded."""
        return self._unseen and not (self._busy or self._closed)

    def feed(self, event: ReceiverInput) -> None:
        """Feed one input and run `before` at the end of the turn."""
        super().feed(event)
        self.settle_soon()

    def feed_all(self, events: Iterable[ReceiverInput]) -> None:
        """Feed several inputs in order."""
        for event in events:
            self.feed(event)

    def during(self, act: Callable[[T], None], what: T) -> None:
        """Perform what follows from a query of the machine as if it were an effect. Call it only while `idle`."""
        self._busy = True
        act(what)
        self._drain()
        self._busy = False
        self.rearm()

    def settle_soon(self) -> None:
        """Run `before` at the end of the turn."""
        if self._settling or self._closed:
            return
        self._settling = True
        self._process.world.after(0, lambda: self._process.deliver(self._settle))

    def _settle(self) -> None:
        self._settling = False
        if not self._closed:
            self._before()

    def _tick(self) -> None:
        self._before()
        super()._tick()


class WatchedReassembly(FragmentReassembly):
    """Reassemble messages as the client does, and report the numbers that were passed over."""

    def __init__(self, on_passed: Callable[[list[tuple[int, int]], list[tuple[int, int]]], None]) -> None:
        """Call `on_passed` with the passed ranges, and with those of them that are reported as lost."""
        super().__init__()
        self._on_passed = on_passed

    def take_passed(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the passed ranges and the lost ranges, as `FragmentReassembly` does."""
        self.check_invariants()
        passed, lost = super().take_passed()
        self._on_passed(passed, lost)
        return passed, lost


class SimulatedSession(client.ClientSession):
    """Run a session with one life of the source."""

    def __init__(self, process: "ReceiverProcess", config: ReceiverConfig, transport: str) -> None:
        """Prepare a session; `start` begins it."""
        self._process = process
        self._reading = process.checkers.receivers
        self._senders: dict[int, int] = {}
        receiver: Any = process.recipient
        pool: Any = process.pool
        super().__init__(receiver, config, pool, None, transport)
        self._pieces = WatchedReassembly(self._on_passed)
        if process.lossy:
            self._stream = None  # The lossy transport reports its losses itself.

    def _drive(self, machine: ReceiverSession, _: Path | None) -> Any:
        driven: Driven[ReceiverInput, fx.ReceiverEffect] = Driven(machine, self._process.record(machine))
        return ClientDriver(self._process, driven, self._perform, self._before_timer)

    @property
    def machine(self) -> ReceiverSession:
        """The machine that this session drives."""
        return self._machine

    @property
    def left(self) -> bool:
        """True if the session deregistered and no store knows it any more."""
        return self._left.is_set()

    def start(self, history: dict[int, list[tuple[int, int]]], earlier: Any = ()) -> None:
        """Begin with the history that the application consumed in earlier sessions."""
        self._reading.on_session(self._process.receiver, self._process.name, self.incarnation, history)
        super().start(history, earlier)

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        match effect:
            case fx.Send():
                if isinstance(effect.message, msg.ConsumptionAck):
                    self._judge(effect.message)
                self._process.pool.send(effect.to, encode(effect.message))
            case fx.AskLow() if self._process.hesitates:
                chosen = LowChosen(self.succession.low(effect, effect.low))
                world, process = self._process.world, self._process
                delay = int(world.rng.random() * HESITATE_NS)
                world.after(delay, lambda: process.deliver(lambda: self.receive(chosen)))
            case _:
                super()._perform(effect)

    def _judge(self, ack: msg.ConsumptionAck) -> None:
        who = (self._process.receiver, self._process.name, self.incarnation)
        if ack.first == msg.FROM_THE_START:
            self._reading.on_consumption_ack(*who, ack.number)
        else:
            self._reading.on_confirmation(*who, ack.first, ack.number)

    def _on_notify(self, event: Event) -> None:
        process = self._process
        process.recipient.speaker = self
        match event:
            case RegistrationSuccess():
                process.checkers.on_registered(process, event.store_index, event.reg_id)
            case RegistrationComplete():
                self._reading.on_begin(process.receiver, process.name, self.incarnation, event.number)
            case UnrecoverableLoss():
                self._reading.on_given_up_run(process.name, self.incarnation, event.first, event.last + 1)
            case _:
                process.checkers.on_oddity(event)
        super()._on_notify(event)

    def _assemble(self, run: Run, effect: fx.Deliver, sender: int) -> None:
        self._senders |= dict.fromkeys(range(effect.first, effect.first + effect.count), sender)
        super()._assemble(run, effect, sender)

    def _on_passed(self, passed: list[tuple[int, int]], lost: list[tuple[int, int]]) -> None:
        self._process.recipient.speaker = self
        told = RangeSet(lost)
        for first, stop in passed:
            for number in range(first, stop):
                who = (self._process.receiver, self._process.name, self.incarnation, self._senders.pop(number))
                self._reading.on_given_up(*who, number, told=number in told)


class Recipient:
    """Offer what a session needs of the client's receiver."""

    def __init__(self, process: "ReceiverProcess") -> None:
        """Belong to a process that has an inbox."""
        self.inbox = process.inbox
        self.arrival = ArrivalTime()
        refusal = "the simulated application consumes messages in order"
        self.redeliverer = Redeliverer(self.inbox, self.inbox.put, None, refusal, lambda *_: None)
        self.speaker: SimulatedSession | None = None
        self._process = process
        self._reading = process.checkers.receivers

    def deliver(self, batch: Batch) -> None:
        """Put a session's messages into the inbox."""
        assert isinstance(batch.owner, SimulatedSession)
        for first, _, found in payloads_of(batch):
            who = (self._process.name, batch.owner.incarnation, batch.incarnation)
            self._reading.on_delivered(*who, first, found)
        self.inbox.put(batch)

    def choose_reg_id(self, _: fx.AskRegId, __: str) -> int:
        """Let the store choose the RegID."""
        return 0

    def choose_low(self, question: fx.AskLow, _: object) -> int:
        """Begin at the number that the stores report."""
        return question.low

    def on_notify(self, event: Event, source: str = "") -> None:
        """Report a loss to the application."""
        if isinstance(event, UnrecoverableLoss):
            assert self.speaker is not None
            who = (self._process.receiver, self._process.name, self.speaker.incarnation)
            self._reading.on_loss(*who, event.first, event.last + 1)

    def on_consumed(self, session: SimulatedSession) -> None:
        """Handle that the application consumed all of an ended session."""
        self._process.on_consumed(session)

    def on_inherited(self) -> None:
        """Handle that a session acknowledges for earlier ones."""
        self._process.on_inherited()


class ReceiverProcess(VirtualProcess):
    """Run one receiver process with its application."""

    def __init__(
        self,
        network: VirtualNetwork,
        receiver: str,
        name: str,
        config: ReceiverConfig,
        clock: VirtualClock,
        checkers: Checkers,
        record: Callable[[ReceiverSession], Recorder | None],
        setup: WorldSetup,
    ) -> None:
        """Prepare the process `name` of `receiver`; `config` is the template of its sessions."""
        super().__init__(network, name, config.reply_to.partition(":")[0], clock)
        self.receiver = receiver
        self.config = config
        self.checkers = checkers
        self.record = record
        self.lossy = setup.lossy
        self.hesitates = setup.leaving is Leaving.RECEIVER
        self.leaving = False
        self.resolving: ProcessResolution | None = None
        self.sessions: dict[int, SimulatedSession] = {}
        self._joiners: dict[str, VirtualJoiner] = {}
        self._plans: dict[str, FoundSource] = {}
        self._passed_over: PassedOver[FoundSource] = PassedOver()
        self._finished: list[SimulatedSession] = []
        self._consumption = Consumption()
        self._identity = SourceIdentity()
        explicit = config.ack_mode is AckMode.EXPLICIT
        self._application = SimulatedApplication(
            self, receiver, checkers, setup.habit, config.context, explicit=explicit
        )
        self.inbox = self._application.inbox
        self.recipient = Recipient(self)

    def start(self) -> None:
        """Listen on the request port."""
        self.listen(self.config.reply_to, serve(self._on_items))

    def every_session(self) -> list["SimulatedSession"]:
        """Return the sessions with a live stream and those that wait for the application."""
        return [*self.sessions.values(), *self._finished]

    def registrations(self) -> Iterable[RegistrationStatus]:
        """Return the registrations of all sessions."""
        return [held for session in self.every_session() for held in session.machine.status.registrations.values()]

    def withdraw(self) -> None:
        """Deregister every session, and join no further sources."""
        self.leaving = True
        self.checkers.receivers.on_leave(self.receiver, self.name)
        for session in self.every_session():
            session.withdraw()

    @property
    def left(self) -> bool:
        """True if no store knows the receiver any more."""
        return self.leaving and all(session.left for session in self.every_session())

    def broken(self, event: Reset | Gone) -> None:
        """Pass the event to every session."""
        for session in self.every_session():
            session.receive(event)

    # Sources come and go.

    def found(self, where: FoundSource) -> None:
        """Join a source once the application has consumed earlier lives' messages, or after `DRAIN_NS`."""
        if self.leaving or where.transport in self._joiners or where.transport in self._plans:
            return
        self._plan(where)
        self._settle()

    def _plan(self, where: FoundSource) -> None:
        self._plans[where.transport] = where
        self.world.after(DRAIN_NS, lambda: self.deliver(lambda: self._late(where)))

    def _late(self, where: FoundSource) -> None:
        if self._plans.get(where.transport) is where:
            self._join(where)

    def _join(self, where: FoundSource) -> None:
        del self._plans[where.transport]
        if where.transport in self._joiners:
            for info, place in self._passed_over.remove(where.transport):
                self._on_info(info, place)
            return

        def items(session_id: int, arrived: Sequence[Item]) -> None:
            self._on_stream(session_id, arrived, where)

        stream = Lossy(self, self.lossy, items, self._on_lost).take if self.lossy else items

        def ended(gone: bool) -> None:
            if gone:
                self._gone(where.transport)

        self._joiners[where.transport] = VirtualJoiner(self, where.transport, where.session_id, stream, ended)

    def _gone(self, transport: str) -> None:
        """End the sessions of a life. Its delivered messages may still be consumed and acknowledged."""
        self._joiners.pop(transport, None)
        if self._passed_over.remove(transport):
            self._plans.pop(transport, None)
        for session in [session for session in self.sessions.values() if session.transport == transport]:
            self._end(session)
        for place in self._passed_over.places().values():
            if place.transport not in self._plans:
                self._plan(place)
        self._settle()
        if self.resolving is not None:
            self.resolving.feed(Unresolved(self.config.topic))

    def _end(self, session: client.ClientSession) -> None:
        ended = self.sessions.pop(session.incarnation)
        self._finished.append(ended)
        for other in session.end():
            if self.sessions.get(other.incarnation) is other and other.info is not None:
                self._end(other)
                life = other.config
                where = FoundSource(other.transport, codec.split(life.incarnation)[0], life.source_request)
                self._passed_over.add(other.info, where)

    def _settle(self) -> None:
        """Close finished sessions that are settled. When none is left, join the sources that wait."""
        for session in [session for session in self._finished if session.settled]:
            self._finished.remove(session)
            self._remember(session)
            session.close()
        if not self._finished:
            for where in list(self._plans.values()):
                if self._plans.get(where.transport) is where:  # A session that begins settles others, too.
                    self._join(where)

    def _on_stream(self, session_id: int, items: Sequence[Item], where: FoundSource) -> None:
        for item in items:
            if isinstance(item, Run):
                session = self.sessions.get(codec.join(session_id, item.topic_index))
                if session is not None:
                    session.on_run(item)
            elif isinstance(item, msg.SourceInfo) and item.topic == self.config.topic:
                self.checkers.receivers.on_told(self.name, item.term)
                self._on_info(item, where)

    def _on_lost(self, session_id: int, run: Run) -> None:
        """Report a run that the transport gave up."""
        incarnation = codec.join(session_id, run.topic_index)
        session = self.sessions.get(incarnation)
        if session is not None:
            session.receive(Lost(incarnation, run.first, run.count))

    def _on_info(self, info: msg.SourceInfo, where: FoundSource) -> None:
        session = self._session_for(info, where)
        if session is not None:
            session.on_message(info)

    def _session_for(self, info: msg.SourceInfo, where: FoundSource) -> "SimulatedSession | None":
        before = session = self.sessions.get(info.incarnation)
        if before is not None and before.comes_back(info):
            session = None
        if session is None:
            waits = info.incarnation in self._passed_over and where.transport in self._plans
            if waits or any(other.outranks(info) for other in self.sessions.values()):
                self.checkers.facts.counts["passed over"] += 1
                self._passed_over.add(info, where)
                return None
            self._passed_over.drop(info.incarnation)
            config = attrs.evolve(self.config, incarnation=info.incarnation, source_request=where.request)
            session = SimulatedSession(self, config, where.transport)
            owners = [
                batch.owner for batch, _, _ in self.inbox.unconsumed() if isinstance(batch.owner, SimulatedSession)
            ]
            others = list(dict.fromkeys((*owners, *self._finished, *self.sessions.values())))
            for other in others:
                self._remember(other)
            if before is not None:
                before.close()
            self._identity.begin(info, self.sessions)
            self.sessions[info.incarnation] = session
            if self.resolving is not None:
                self.resolving.feed(Resolved(self.config.topic))
            heirless = [other for other in others if other.succession.heir is None]
            earlier = [other for other in heirless if self._identity.same(other.incarnation, info.incarnation)]
            session.start(self._consumption.history(), earlier)
            if self.leaving:
                session.withdraw()
        return session

    def _on_items(self, items: Sequence[Item]) -> None:
        recovered: dict[int, list[codec.Recovered | codec.RecoveredRun]] = {}
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

    def _on_control(self, message: msg.Message) -> None:
        session = self.sessions.get(message.incarnation)
        mine = (
            not isinstance(message, msg.Registered | msg.Refused | msg.Deregistered)
            or message.role is msg.Role.RECEIVER
        )
        if session is not None and mine:
            session.on_message(message)

    def on_consumed(self, session: SimulatedSession) -> None:
        """Close sessions whose messages are all consumed."""
        if session in self._finished:
            self._settle()

    def on_inherited(self) -> None:
        """Close ended sessions whose acknowledgements a successor has inherited."""
        self._settle()

    def _remember(self, session: SimulatedSession) -> None:
        """Record what the application consumed, so that a later session does not deliver it again."""
        history = session.history()
        self._identity.learn(session.info, history)
        self._consumption.add(history)
