"""A receiver: finds the sources of a topic, keeps a session with each, and hands messages to the application in order.

`async for message in receiver` acknowledges a message when its loop body has ended; `async for batch in
receiver.batches()` does the same for whole runs and costs nothing per message. What the application has in hand when it
leaves the loop is not acknowledged unless it says `consumed()`, or reads on. A callback `on_message` takes messages the
moment they are there, without a task in between; what it raises ends the deliveries, and the message is not
acknowledged.

When a life of the source is over, its session goes on to recover what is missing from the stores, and what it
delivered may still be consumed. The next life is joined once that is done, or after `DRAIN_SECONDS`. Then its session
inherits what waits in the inbox or is in hand (`succession`), so that the application gets each message once.

A life that is earlier than one whose session goes on is passed over (`precedence`). When a session ends, the receiver
looks at it again, no sooner than it would join a new life.
"""

import asyncio
import operator
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from stablecast.client.callbacks import Handover, tell
from stablecast.client.consumption import Consumption
from stablecast.client.early_runs import Early
from stablecast.client.errors import EndpointFailed, RegistrationFailed
from stablecast.client.inbox import Inbox
from stablecast.client.iteration import FIRST_BATCH, TURN_MESSAGES, Reader, Reading
from stablecast.client.join_plans import Plan
from stablecast.client.message import Batch, Message
from stablecast.client.precedence import PassedOver
from stablecast.client.session import Session, places_of
from stablecast.client.source_identity import SourceIdentity
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, RegistrationError
from stablecast.core.protocol.inputs import Gone, Lost, Reset
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.runtime.effect_execution import report
from stablecast.runtime.reliable_joiner import ReliableJoiner
from stablecast.runtime.source_strings import is_source_string, source_string
from stablecast.runtime.stream import Item
from stablecast.runtime.stream_joiner import Joiner
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.errors import WireError

if TYPE_CHECKING:
    from stablecast.client.context import Context

DRAIN_SECONDS = 1.0
"""How long a new life of a source waits until an earlier one is recovered and consumed."""

REJOIN_SECONDS = 0.2
"""Pause before a source whose address was given is looked for again."""

MAX_FINISHED = 16
"""Ended sessions that are not recovered or not consumed yet; of one more the oldest is given up."""

MAX_REG_ID = 0xFFFF_FFFF


@attrs.frozen
class RegIdRequest:
    """Which RegID at this store? (P-249) `source` is the source's transport, as `TCP:ip:port` or a source string."""

    store_index: int
    store: str
    source_reg_id: int
    source: str


class Receiver:
    """Made by `Context.receiver`; an asynchronous iterator of messages, for one task."""

    def __init__(
        self,
        context: "Context",
        config: ReceiverConfig,
        on_event: Callable[[Event], None] | None,
        reg_id: Callable[[RegIdRequest], int] | None,
        start_at: Callable[[fx.AskLow], int] | None,
        on_message: Callable[[Message], object] | None = None,
    ) -> None:
        """A receiver of `config.topic`; `config` is the template of its sessions."""
        self.topic = config.topic
        self.config = config
        self._context = context
        self._on_event = on_event
        self._reg_id = reg_id
        self._start_at = start_at
        self.transport = TransportConfig()
        self._static: str | None = None
        self._rejoin: asyncio.TimerHandle | None = None
        self._joiners: dict[str, Joiner | ReliableJoiner] = {}
        self._early = Early()
        self._sessions: dict[int, Session] = {}
        self._finished: list[Session] = []
        self._consumption = Consumption()
        self._identity = SourceIdentity()
        self._plans: dict[str, Plan] = {}
        self._passed_over: PassedOver[Plan] = PassedOver()
        self.inbox: Inbox[Batch] = Inbox(self._read_on)
        self.deliver, refusal = self.inbox.put, ""
        patience = config.ack_interval_ns / SECOND
        if on_message is not None:
            self.deliver = Handover(on_message, f"receiver '{self.topic}'", self.inbox, patience).deliver
            refusal = f"receiver '{self.topic}' gives its messages to on_message: it cannot be iterated, too"
        self._reader = Reader(self.inbox, patience, self.topic, refusal)
        self._alone = Reading(self._reader)
        self._paused = False
        self._closed = False

    async def __aenter__(self) -> "Receiver":
        """The receiver itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Acknowledge what was consumed and leave; nothing is left running."""
        if self._closed:
            return
        self._closed = True
        self._reader.close()
        if self._rejoin is not None:
            self._rejoin.cancel()
        for plan in self._plans.values():
            plan.timer.cancel()
        for joiner in self._joiners.values():
            joiner.abandon()
        for session in (*self._sessions.values(), *self._finished):
            session.close()
        self._context.forget_receiver(self)
        for joiner in tuple(self._joiners.values()):
            await joiner.close()

    async def deregister(self) -> None:
        """Ask the stores of every source to forget this receiver, and wait until all have (P-584).

        Messages are still delivered, and nothing is acknowledged any more (P-588). A store that is away is asked again
        until it answers; a life of a source that begins later is registered with again.
        """
        await asyncio.gather(*(session.deregister() for session in self._sessions.values()))

    # Reading.

    def __aiter__(self) -> Reading:
        """Begin a loop over messages, in order for each source; it goes on where the loop before was left.

        The message in hand is consumed when the next one is asked for. A message that was in hand when a loop was left
        is consumed when another loop goes on. The loop ends when the receiver is closed. It raises RegistrationFailed
        when `reg_id` or `start_at` raised or returned nothing usable, and MisuseError while another task reads.
        """
        return self._reader.claim()

    async def __anext__(self) -> Message:
        """Return the next message, as a loop does."""
        self._reader.check()
        return await self._alone.__anext__()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield runs of messages; a run is consumed when the next one is asked for. Ends and raises like the iterator.

        The first run of a loop is one message. Each next one may be twice as long, up to what came together.
        """
        reading, most = self._reader.claim(), FIRST_BATCH
        while (batch := await reading.batch(most)) is not None:
            yield batch
            most = min(2 * most, 2 * TURN_MESSAGES)

    def _read_on(self) -> None:
        self._paused = False
        for joiner in self._joiners.values():
            joiner.resume()

    # Sources come and go.

    def join(self, transport: str) -> None:
        """The source's stream is always to be found at `transport`."""
        self._static = transport
        self.found(transport, None, "")

    def found(self, transport: str, session_id: int | None, request: str) -> None:
        """A source of the topic listens at `transport`; join it once earlier lives' messages are done with."""
        if self._closed or transport in self._joiners or transport in self._plans:
            return
        self._plan(transport, session_id, request)
        self._settle()

    def _plan(self, transport: str, session_id: int | None, request: str) -> None:
        timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._join, transport)
        self._plans[transport] = Plan(transport, session_id, request, timer)

    def _join(self, transport: str) -> None:
        plan = self._plans.pop(transport)
        plan.timer.cancel()
        if transport in self._joiners:
            for info, met in self._passed_over.take(transport):
                self._on_info(info, codec.split(info.incarnation)[0], met)
            return
        items = partial(self._on_stream, plan)

        def ended(gone: bool) -> None:
            if gone:
                self._gone(transport)

        place = (transport, plan.session_id, self.transport)
        try:
            joiner = self._context.transports.joiner(*place, items, self._on_lost, ended)
        except StablecastError as error:
            if self._static is None:
                self._context.transports.pass_over(transport, error)
            else:
                self._reader.fail(error, error)
            return
        self._joiners[transport] = joiner
        if self._paused:
            joiner.pause()

    def _gone(self, transport: str) -> None:
        """The life that listened there is over."""
        self._joiners.pop(transport, None)
        if self._passed_over.take(transport) and transport in self._plans:
            self._plans.pop(transport).timer.cancel()
        for session in [session for session in self._sessions.values() if session.transport == transport]:
            del self._sessions[session.incarnation]
            session.ended = True
            self._finished.append(session)
        for met in self._passed_over.places().values():
            if met.transport not in self._plans:
                self._plan(met.transport, met.session_id, met.request)
        self._settle()
        if self._static is None:
            self._context.lost_source(self.topic, transport, others=bool(self._sessions))
        else:
            loop = asyncio.get_running_loop()
            self._rejoin = loop.call_later(REJOIN_SECONDS, self.found, transport, None, "")

    def on_consumed(self, session: Session) -> None:
        """The application is done with all of an ended session; a waiting new life may begin if it was the last."""
        if session in self._finished:
            self._settle()
        else:  # It was given up while its messages waited: no other call remembers what was consumed since.
            self._remember(session)

    def _settle(self) -> None:
        """Let go of sessions that have delivered everything, all of it consumed; when none is left, join what waits."""
        too_many = len(self._finished) - MAX_FINISHED
        for place, session in enumerate(tuple(self._finished)):
            if session.settled or place < too_many:
                self._finished.remove(session)
                self._remember(session)
                session.close()
        if not self._finished and not self._closed:
            for transport in list(self._plans):
                if transport in self._plans:  # A session that begins settles, too.
                    self._join(transport)

    def _remember(self, session: Session) -> None:
        """What the application consumed is not delivered to it again in a later session."""
        history = session.history()
        self._identity.learn(session.incarnation, session.places, history)
        self._consumption.add(history)

    def _on_stream(self, plan: Plan, session_id: int, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Run):
                session = self._sessions.get(session_id << TOPIC_BITS | item.topic_index)
                if session is None:
                    self._early.keep(session_id, item)
                else:
                    session.on_run(item)
                continue
            try:
                message = codec.decode(item)
            except WireError:
                self._context.oddities["malformed-on-stream"] += 1
                continue
            if isinstance(message, SourceInfo) and message.topic == self.topic:
                self._on_info(message, session_id, plan)
        if self.inbox.full and not self._paused:
            self._paused = True
            for joiner in self._joiners.values():
                joiner.pause()

    def _on_info(self, info: SourceInfo, session_id: int, plan: Plan) -> None:
        """A life of a source announces itself."""
        session = self._session_for(info, session_id, plan)
        if session is not None:
            session.on_message(info)
            for run in self._early.take(session.incarnation):
                session.on_run(run)

    def _on_lost(self, lost: Lost) -> None:
        session = self._sessions.get(lost.session)
        if session is not None:
            session.receive(lost)

    def _session_for(self, info: SourceInfo, session_id: int, plan: Plan) -> Session | None:
        session = self._sessions.get(info.incarnation)
        if session is not None:
            return session
        known = any(session.transport == plan.transport for session in self._sessions.values())
        if (known and not is_source_string(plan.transport)) or codec.split(info.incarnation)[0] != session_id:
            self._context.oddities["foreign-source-on-stream"] += 1
            return None
        waits = info.incarnation in self._passed_over and plan.transport in self._plans
        if waits or any(other.outranks(info) for other in self._sessions.values()):
            self._passed_over.add(info, plan)
            return None
        config = attrs.evolve(
            self.config,
            incarnation=info.incarnation,
            reply_to=self._context.request_address,
            source_request=plan.request or info.request,
        )
        try:
            session = Session(self, config, self._context.pool, self._context.trace, plan.transport)
        except StablecastError as error:
            self._reader.fail(error, error)
            return None
        owners = {batch.owner: None for batch, _, _ in self.inbox.unconsumed() if isinstance(batch.owner, Session)}
        others = dict.fromkeys((*owners, *self._finished, *self._sessions.values()))
        for other in others:
            self._remember(other)
        related = self._identity.begin(info.incarnation, places_of(info), self._sessions)
        self._sessions[info.incarnation] = session
        self._passed_over.drop(info.incarnation)
        self._context.met_source(self.topic)
        session.start(
            self._consumption.history(related),
            [other for other in others if other.succession.heir is None and other.shares_source(info)],
        )
        return session

    def on_inherited(self) -> None:
        """A session answers for what others delivered, or that is consumed: those that have ended may go."""
        self._settle()

    # What a session asks of the application.

    def choose_reg_id(self, question: fx.AskRegId, transport: str) -> int | None:
        """The RegID to ask for at a store; None if the application cannot say: then it is not registered there."""
        asked = self._reg_id
        if asked is None:
            return 0
        request = RegIdRequest(question.store_index, question.store, question.source_reg_id, source_string(transport))
        try:
            chosen = operator.index(asked(request))
            if not 0 <= chosen <= MAX_REG_ID:
                raise ValueError(f"{chosen} is not a number from 0 to {MAX_REG_ID}")  # noqa: TRY301  # judged below
        except Exception as error:  # noqa: BLE001  # it is the application's, and reported
            self._fail("reg_id", question.store_index, question.store, error)
            return None
        return chosen

    def choose_low(self, question: fx.AskLow) -> int | None:
        """Where to start; None if the application cannot say: then nothing is delivered."""
        if self._start_at is None:
            return question.low
        try:
            return operator.index(self._start_at(question))
        except Exception as error:  # noqa: BLE001  # it is the application's, and reported
            self._fail("start_at", 0, "", error)
            return None

    def _fail(self, callback: str, store_index: int, store: str, error: Exception) -> None:
        """The application did not answer: an event, a report, and an exception for whoever waits for messages."""
        text = f"the {callback} callback of receiver '{self.topic}' failed: {type(error).__name__}: {error}"
        self._reader.fail(RegistrationFailed(text), error)
        report(text, error)
        self.on_notify(RegistrationError(store_index, store, text))

    def fail(self, what: str, error: Exception) -> None:
        """End deliveries, because a session could not do what its machine decided.

        An application that iterates gets what was delivered before, and then EndpointFailed. The cause is reported in
        any case.
        """
        text = f"receiver '{self.topic}' ended: {what} failed: {type(error).__name__}: {error}; make a new receiver"
        report(text, error)
        self._reader.fail(EndpointFailed(text), error)

    def on_notify(self, event: Event) -> None:
        """Tell the application."""
        tell(self._on_event, event, f"receiver '{self.topic}'")

    def on_control(self, message: ControlMessage) -> None:
        """A control message that came to the request port for one of the sessions."""
        for session in self._of(message.incarnation):
            session.on_message(message)

    def on_recovered(self, incarnation: int, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Retransmissions that came to the request port."""
        for session in self._of(incarnation):
            session.on_recovered(messages)

    def on_broken(self, event: Reset | Gone) -> None:
        """A store's connection broke."""
        for session in (*self._sessions.values(), *self._finished):
            session.receive(event)

    def _of(self, incarnation: int) -> list[Session]:
        """The sessions with this life, if any: normally one."""
        live = self._sessions.get(incarnation)
        return [session for session in self._finished if session.incarnation == incarnation] + ([live] if live else [])
