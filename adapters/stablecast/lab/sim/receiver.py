"""Simulate a receiver's process: sessions as the client runs them, and an application that consumes messages."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from stablecast.client import session as client
from stablecast.client.batch import ArrivalTime, Batch
from stablecast.client.redelivery import Redeliverer
from stablecast.client.subscriber import Subscriber
from stablecast.core.errors import StablecastError
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import AskLow, AskRegId, Deliver, ReceiverEffect, Send
from stablecast.core.protocol.events import Event, RegistrationComplete, RegistrationSuccess, UnrecoverableLoss
from stablecast.core.protocol.inputs import Acknowledge, Consumed, Data, Gone, Lost, LowChosen, ReceiverInput, Reset
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import ReceiverMemory
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import Subscription
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.lab.sim.application import SimulatedApplication, payloads_of
from stablecast.lab.sim.lossy_transport import Lossy
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import NO_MESSAGE, Item, VirtualDriver, VirtualJoiner, VirtualProcess, encode, serve
from stablecast.lab.sim.resolution import ProcessResolution
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

SHORT: Final = -1
"""The token of runs that the client delivers without asking the machine."""


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


class SessionDriver(VirtualDriver[ReceiverInput, ReceiverEffect]):
    """Drive a session, and say what it delivers the short way, which gives the machine no input."""

    def __init__(
        self,
        process: VirtualProcess,
        driven: Driven[ReceiverInput, ReceiverEffect],
        trace: LiveTrace,
        perform: Callable[[ReceiverEffect], None],
        before: Callable[[], None],
        on_told: Callable[[int, int], None],
    ) -> None:
        """Drive the machine that is `driven`, whose steps go to the trace; `on_told` gets what counts as consumed."""
        super().__init__(process, driven, perform, before)
        self._trace = trace
        self._on_told = on_told

    def feed(self, event: ReceiverInput) -> None:
        """Feed one input; check what it says of the application."""
        if isinstance(event, Consumed):
            self._on_told(event.first, event.last + 1)
        elif isinstance(event, Acknowledge):
            self._on_told(event.number if event.first is None else event.first, event.number + 1)
        super().feed(event)

    @property
    def idle(self) -> bool:
        """True if no input is in progress, and none goes to a file."""
        return self._trace.recorder is None and not (self._busy or self._closed)

    def during(self, act: Callable[[T], None], what: T) -> None:
        """Perform a delivery, and judge it as if the machine had been asked."""
        assert isinstance(what, Batch)
        life, first, count = what.incarnation, what.first, what.count
        self._trace.record(
            Data(life, life, first, count, 0, recovered=False, token=SHORT),
            self._process.now(),
            (Deliver(SHORT, 0, count, first, recovered=False, done=True),),
        )
        super().during(act, what)


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

    def __repr__(self) -> str:
        """Return the same text in each run, because transcripts name sessions."""
        return f"<session with {self.incarnation}>"

    def _drive(self, machine: ReceiverSession, _: Path | None) -> Any:
        trace = self._process.follow(machine)
        driven: Driven[ReceiverInput, ReceiverEffect] = Driven(machine, trace)
        told = partial(self._reading.on_told_consumed, self._process.receiver, self._process.name)
        return SessionDriver(self._process, driven, trace, self._perform, self._before_timer, told)

    @property
    def machine(self) -> ReceiverSession:
        return self._machine

    @property
    def left(self) -> bool:
        """True if the session deregistered and no store knows it any more."""
        return self._left.is_set()

    def start(self, history: dict[int, list[tuple[int, int]]], earlier: Any = (), confirmed: Any = ()) -> None:
        """Begin with the history that the application consumed in earlier sessions."""
        self._reading.on_session(self._process.receiver, self._process.name, self.incarnation)
        super().start(history, earlier, confirmed)

    def _perform(self, effect: ReceiverEffect) -> None:
        match effect:
            case Send():
                self._process.pool.send(effect.to, encode(effect.message))
            case AskLow() if self._process.hesitates:
                chosen = LowChosen(self.succession.low(effect, effect.low))
                world, process = self._process.world, self._process
                delay = int(world.rng.random() * HESITATE_NS)
                world.after(delay, lambda: process.deliver(lambda: self.receive(chosen)))
            case _:
                super()._perform(effect)

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

    def _assemble(self, run: Run, effect: Deliver, sender: int) -> None:
        self._senders |= dict.fromkeys(range(effect.first, effect.first + effect.count), sender)
        super()._assemble(run, effect, sender)

    def _on_passed(self, passed: list[tuple[int, int]], lost: list[tuple[int, int]]) -> None:
        self._process.recipient.speaker = self
        told = RangeSet(lost)
        for first, stop in passed:
            for number in range(first, stop):
                who = (self._process.receiver, self._process.name, self.incarnation, self._senders.pop(number))
                self._reading.on_given_up(*who, number, told=number in told)


class Recipient(Subscriber[SimulatedSession]):
    """The receiver of a process, as the client drives it."""

    def __init__(self, process: "ReceiverProcess") -> None:
        self.topic = process.config.topic
        self.inbox = process.inbox
        self.arrival = ArrivalTime()
        refusal = "the simulated application consumes messages in order"
        self.redeliverer = Redeliverer(self.inbox, self.inbox.put, None, refusal, lambda *_: None)
        self.speaker: SimulatedSession | None = None
        self._process = process
        self._reading = process.checkers.receivers
        self._follow(ReceiverMemory(), process.now)

    def deliver(self, batch: Batch) -> None:
        """Put a session's messages into the inbox."""
        assert isinstance(batch.owner, SimulatedSession)
        for first, _, found in payloads_of(batch):
            who = (self._process.name, batch.owner.incarnation, batch.incarnation)
            self._reading.on_delivered(*who, first, found)
        self.inbox.put(batch)

    def choose_reg_id(self, _: AskRegId, __: str) -> int:
        """Let the store choose the RegID."""
        return 0

    def choose_low(self, question: AskLow, _: object) -> int:
        """Begin at the number that the stores report."""
        return question.low

    def on_notify(self, event: Event, source: str = "") -> None:
        if isinstance(event, UnrecoverableLoss):
            assert self.speaker is not None
            who = (self._process.receiver, self._process.name, self.speaker.incarnation)
            self._reading.on_loss(*who, event.first, event.last + 1)

    @property
    def live(self) -> dict[int, SimulatedSession]:
        """The sessions with a live stream, by life."""
        return self._sessions

    def _drive(self, machine: Subscription) -> Callable[[ev.SubscriptionInput], None]:
        driver: VirtualDriver[Any, Any] = VirtualDriver(self._process, Driven[Any, Any](machine), self._perform)

        def feed(event: ev.SubscriptionInput) -> None:
            if isinstance(event, ev.Announced):
                self._reading.on_told(self._process.name, event.info.term)
            driver.feed(event)

        return feed

    def _perform(self, effect: fx.SubscriptionEffect) -> None:
        super()._perform(effect)
        process = self._process
        match effect:
            case fx.StartSession():
                if process.leaving:
                    effect.session.withdraw()
                if process.resolving is not None:
                    process.resolving.feed(Resolved(self.topic))
            case fx.Look() if process.resolving is not None:
                process.resolving.feed(Unresolved(self.topic))

    def _make(self, info: msg.SourceInfo, place: Place) -> SimulatedSession:
        config = attrs.evolve(self._process.config, incarnation=info.incarnation, source_request=place.request)
        return SimulatedSession(self._process, config, place.transport)

    def _open(self, place: Place, items: Callable[[int, Any], None], ended: Callable[[bool], None]) -> VirtualJoiner:
        process = self._process

        def lost(session_id: int, run: Run) -> None:
            self._on_lost(Lost(codec.join(session_id, run.topic_index), run.first, run.count))

        stream = Lossy(process, process.lossy, items, lost).take if process.lossy else items
        assert place.session_id is not None
        return VirtualJoiner(process, place.transport, place.session_id, stream, ended)

    def _refused(self, _: Place | None, error: StablecastError) -> None:
        raise error

    def _owners(self) -> Iterable[SimulatedSession]:
        return (batch.owner for batch, _, _ in self.inbox.unconsumed() if isinstance(batch.owner, SimulatedSession))


class ReceiverProcess(VirtualProcess):
    def __init__(
        self,
        network: VirtualNetwork,
        receiver: str,
        name: str,
        config: ReceiverConfig,
        clock: VirtualClock,
        checkers: Checkers,
        follow: Callable[[ReceiverSession], LiveTrace],
        setup: WorldSetup,
    ) -> None:
        """Prepare the process `name` of `receiver`; `config` is the template of its sessions."""
        super().__init__(network, name, config.reply_to.partition(":")[0], clock)
        self.receiver = receiver
        self.config = config
        self.checkers = checkers
        self.follow = follow
        self.lossy = setup.lossy
        self.hesitates = setup.leaving is Leaving.RECEIVER
        self.leaving = False
        self.resolving: ProcessResolution | None = None
        explicit = config.ack_mode is AckMode.EXPLICIT
        self._application = SimulatedApplication(
            self, receiver, checkers, setup.habit, config.context, explicit=explicit
        )
        self.inbox = self._application.inbox
        self.recipient = Recipient(self)

    def start(self) -> None:
        self.listen(self.config.reply_to, serve(self._on_items))

    @property
    def sessions(self) -> dict[int, SimulatedSession]:
        return self.recipient.live

    def registrations(self) -> Iterable[RegistrationStatus]:
        return [
            held for session in self.recipient.every_session for held in session.machine.status.registrations.values()
        ]

    def withdraw(self) -> None:
        """Deregister every session, and join no further sources."""
        self.leaving = True
        self.checkers.receivers.on_leave(self.name)
        for session in self.recipient.every_session:
            session.withdraw()

    @property
    def left(self) -> bool:
        """True if no store knows the receiver any more."""
        return self.leaving and all(session.left for session in self.recipient.every_session)

    def broken(self, event: Reset | Gone) -> None:
        self.recipient.on_broken(event)

    def found(self, place: Place) -> None:
        """Join a source, unless the receiver leaves."""
        if not self.leaving:
            self.recipient.feed(ev.Found(place))

    def _on_items(self, items: Sequence[Item]) -> None:
        recovered: dict[int, list[codec.Recovered | codec.RecoveredRun]] = {}
        for item in items:
            if isinstance(item, codec.Recovered):
                recovered.setdefault(item.session, []).append(item)
            else:
                assert not isinstance(item, NO_MESSAGE)
                self._on_control(item)
        for incarnation, messages in recovered.items():
            self.recipient.on_recovered(incarnation, messages)

    def _on_control(self, message: msg.Message) -> None:
        match message:
            case msg.Registered() | msg.Refused() | msg.Deregistered() if message.role is not msg.Role.RECEIVER:
                return
        self.recipient.on_control(message)
