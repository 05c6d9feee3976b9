"""A receiver's process: sessions come and go as the client does it, and an application reads what they deliver."""

from collections.abc import Callable, Iterable, Sequence

import attrs

from stablecast.client.consumption import Consumption
from stablecast.client.message import Batch
from stablecast.client.precedence import PassedOver
from stablecast.client.source_identity import SourceIdentity
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, UnrecoverableLoss
from stablecast.core.protocol.inputs import Gone, Lost, Reset
from stablecast.core.protocol.messages import Deregistered, Message, Refused, Registered, Role, SourceInfo
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.receiver import ReceiverSession
from stablecast.core.registration.status import RegistrationStatus
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.sim.application import Application, payloads_of
from stablecast.lab.sim.coded_messages import NO_MESSAGE, Item
from stablecast.lab.sim.lossy_transport import Lossy
from stablecast.lab.sim.network import Network
from stablecast.lab.sim.process import Joiner, Process, serve
from stablecast.lab.sim.resolution import Found, Resolving
from stablecast.lab.sim.session import Session
from stablecast.lab.sim.setup import Leaving, Setup
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.lab.sim.virtual_time import Clock
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.resolution.udp.inputs import Resolved, Unresolved

DRAIN_NS = 300 * MILLISECOND
"""How long a new life of a source waits for the application to finish what an earlier one delivered."""


class Recipient:
    """What a session asks of the client's receiver."""

    def __init__(self, process: "ReceiverProcess") -> None:
        """Of a process that has an inbox."""
        self.inbox = process.inbox
        self.speaker: Session | None = None
        self._process = process
        self._reading = process.checkers.receivers

    def deliver(self, batch: Batch) -> None:
        """A session hands messages over: they wait in the inbox."""
        assert isinstance(batch.owner, Session)
        for first, _, found in payloads_of(batch):
            who = (self._process.name, batch.owner.incarnation, batch.incarnation)
            self._reading.on_delivered(*who, first, found)
        self.inbox.put(batch)

    def choose_reg_id(self, _: fx.AskRegId, __: str) -> int:
        """The store is to choose it."""
        return 0

    def choose_low(self, question: fx.AskLow) -> int:
        """Begin where the stores say."""
        return question.low

    def on_notify(self, event: Event) -> None:
        """The application hears of a loss."""
        if isinstance(event, UnrecoverableLoss):
            assert self.speaker is not None
            who = (self._process.receiver, self._process.name, self.speaker.incarnation)
            self._reading.on_loss(*who, event.first, event.last + 1)

    def on_consumed(self, session: Session) -> None:
        """The application is done with all of an ended session."""
        self._process.on_consumed(session)

    def on_inherited(self) -> None:
        """A session answers for what earlier ones delivered."""
        self._process.on_inherited()


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
        self._passed_over: PassedOver[Found] = PassedOver()
        self._finished: list[Session] = []
        self._consumption = Consumption()
        self._identity = SourceIdentity()
        explicit = config.ack_mode is AckMode.EXPLICIT
        self._application = Application(self, receiver, checkers, setup.habit, config.context, explicit=explicit)
        self.inbox = self._application.inbox
        self.recipient = Recipient(self)

    def start(self) -> None:
        """Listen; sources will be found."""
        self.listen(self.config.reply_to, serve(self._on_items))

    def every_session(self) -> list["Session"]:
        """Those whose stream goes on, and those that wait for the application."""
        return [*self.sessions.values(), *self._finished]

    def registrations(self) -> Iterable[RegistrationStatus]:
        """Those of all sessions."""
        return [held for session in self.every_session() for held in session.machine.status.registrations.values()]

    def withdraw(self) -> None:
        """Deregister everywhere; what comes is taken, no source is looked for any more."""
        self.leaving = True
        self.checkers.receivers.on_leave(self.receiver, self.name)
        for session in self.every_session():
            session.withdraw()

    @property
    def left(self) -> bool:
        """Whether no store knows it any more."""
        return self.leaving and all(session.left for session in self.every_session())

    def broken(self, event: Reset | Gone) -> None:
        """A connection broke."""
        for session in self.every_session():
            session.receive(event)

    # Sources come and go.

    def found(self, where: Found) -> None:
        """A source listens there; join it once earlier lives' messages are done with, or after a while."""
        if self.leaving or where.transport in self._joiners or where.transport in self._plans:
            return
        self._plan(where)
        self._settle()

    def _plan(self, where: Found) -> None:
        self._plans[where.transport] = where
        self.world.after(DRAIN_NS, lambda: self.deliver(lambda: self._late(where)))

    def _late(self, where: Found) -> None:
        if self._plans.get(where.transport) is where:
            self._join(where)

    def _join(self, where: Found) -> None:
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

        self._joiners[where.transport] = Joiner(self, where.transport, where.session_id, stream, ended)

    def _gone(self, transport: str) -> None:
        """The life that listened there is over; what it delivered may still be consumed and acknowledged."""
        self._joiners.pop(transport, None)
        if self._passed_over.remove(transport):
            self._plans.pop(transport, None)
        for session in [session for session in self.sessions.values() if session.transport == transport]:
            del self.sessions[session.incarnation]
            session.ended = True
            self._finished.append(session)
        for place in self._passed_over.places().values():
            if place.transport not in self._plans:
                self._plan(place)
        self._settle()
        if self.resolving is not None:
            self.resolving.feed(Unresolved(self.config.topic))

    def _settle(self) -> None:
        """Let go of finished sessions that are settled; when none is left, join what waits."""
        for session in [session for session in self._finished if session.settled]:
            self._finished.remove(session)
            self._remember(session)
            session.close()
        if not self._finished:
            for where in list(self._plans.values()):
                if self._plans.get(where.transport) is where:  # A session that begins settles, too.
                    self._join(where)

    def _on_stream(self, session_id: int, items: Sequence[Item], where: Found) -> None:
        for item in items:
            if isinstance(item, Run):
                session = self.sessions.get(codec.join(session_id, item.topic_index))
                if session is not None:
                    session.on_run(item)
            elif isinstance(item, SourceInfo) and item.topic == self.config.topic:
                self._on_info(item, where)

    def _on_lost(self, session_id: int, run: Run) -> None:
        """The transport gives a run up."""
        incarnation = codec.join(session_id, run.topic_index)
        session = self.sessions.get(incarnation)
        if session is not None:
            session.receive(Lost(incarnation, run.first, run.count))

    def _on_info(self, info: SourceInfo, where: Found) -> None:
        session = self._session_for(info, where)
        if session is not None:
            session.on_message(info)

    def _session_for(self, info: SourceInfo, where: Found) -> "Session | None":
        session = self.sessions.get(info.incarnation)
        if session is None:
            waits = info.incarnation in self._passed_over and where.transport in self._plans
            if waits or any(other.outranks(info) for other in self.sessions.values()):
                self.checkers.facts.counts["passed over"] += 1
                self._passed_over.add(info, where)
                return None
            self._passed_over.drop(info.incarnation)
            config = attrs.evolve(self.config, incarnation=info.incarnation, source_request=where.request)
            session = Session(self, config, where.transport)
            owners = [batch.owner for batch, _, _ in self.inbox.unconsumed() if isinstance(batch.owner, Session)]
            others = list(dict.fromkeys((*owners, *self._finished, *self.sessions.values())))
            for other in others:
                self._remember(other)
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

    def _on_control(self, message: Message) -> None:
        session = self.sessions.get(message.incarnation)
        mine = not isinstance(message, Registered | Refused | Deregistered) or message.role is Role.RECEIVER
        if session is not None and mine:
            session.on_message(message)

    def on_consumed(self, session: Session) -> None:
        """The application is done with all of an ended session."""
        if session in self._finished:
            self._settle()

    def on_inherited(self) -> None:
        """A session answers for what earlier ones delivered: those that have ended may go."""
        self._settle()

    def _remember(self, session: Session) -> None:
        """What the application consumed is not delivered to it again in a later session."""
        history = session.history()
        self._identity.learn(session.info, history)
        self._consumption.add(history)
