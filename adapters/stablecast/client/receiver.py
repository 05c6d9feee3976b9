"""A receiver: finds the sources of a topic, keeps a session with each, and hands messages to the application in order.

When a life of a source is over, its session recovers missing messages from the stores, and the application may still
consume the delivered ones. The receiver joins the next life once that is done, or after `DRAIN_SECONDS`. The session
with the next life inherits the messages that wait or are in hand (`succession`), so that the application gets each
message once.

A life that is earlier than one whose session goes on is passed over (`precedence`). When a session ends, the receiver
looks at it again, no sooner than it would join a new life.
"""

import asyncio
import operator
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs

from stablecast.client.batch import ArrivalTime
from stablecast.client.callbacks import RegIdRequest, notify
from stablecast.client.delivery import Delivery, IteratedReceiver
from stablecast.client.early_runs import EarlyRuns
from stablecast.client.errors import EndpointFailed, RegistrationFailed
from stablecast.client.event_details import EventDetails
from stablecast.client.loop_ownership import check_loop, uninterrupted
from stablecast.client.message import Message
from stablecast.client.range_bounds import ReceiverStart
from stablecast.client.redelivery import Redelivery, why_unsettled
from stablecast.client.session import ClientSession
from stablecast.client.stored_sources import STORED, StoredSources
from stablecast.client.transport_sessions import Transports
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import EndOfSource, Event, RegistrationError
from stablecast.core.protocol.inputs import Gone, Lost, Moved, Reset
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.subscription.consumption import Memories, ReceiverMemory, returns, who
from stablecast.core.subscription.precedence import PassedOver
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import report
from stablecast.runtime.source_strings import is_source_string, source_string
from stablecast.runtime.stream import Item, StreamJoiner
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.errors import WireError

if TYPE_CHECKING:
    from stablecast.client.measured_times import ContextTimes
    from stablecast.client.message_spans import MessageSpans
    from stablecast.runtime.reliable_stream import ReliableJoiner

DRAIN_SECONDS = 1.0
"""Seconds that a new life of a source waits until an earlier life is recovered and consumed."""

REJOIN_SECONDS = 0.2
"""Seconds before the receiver joins the given address of a source again."""

FAREWELL_SECONDS = 1.5
"""Seconds without an announcement after which a life is over whose end the resolver reported. Its last messages may
have been lost and be on their way again; and a source that lives announces itself every half second."""

MAX_FINISHED = 16
"""Ended sessions that are not recovered or not consumed yet. Beyond that, the oldest is given up."""

MAX_REG_ID = 0xFFFF_FFFF


class ReceiverContext(Protocol):
    """The services of a context that a receiver uses.

    Attributes:
        request_address: `ip:port` of the request port.
        pool: The connections to stores and sources.
        trace: The directory for traces, or None.
        oddities: How often each kind of malformed or unexpected input came.
        transports: The transports that receivers join.
        lives: The receiver that has a session with each life of a source.
        memories: What receivers have read in this run.
        times: What the context measures; None: nothing.
    """

    request_address: str
    pool: ConnectionPool
    trace: Path | None
    oddities: Counter[str]
    transports: Transports
    lives: "dict[int, Receiver]"
    memories: Memories
    times: "ContextTimes | None"

    @property
    def spans(self) -> "MessageSpans | None":
        """Return what makes the spans of OpenTelemetry; None if there are none now."""

    def forget_receiver(self, receiver: "Receiver") -> None:
        """Stop finding sources for a receiver that was closed."""

    def store_name(self, store: str) -> str:
        """Return the name of the store at an address, empty if it has none here."""

    def lost_source(self, topic: str, place: str, *, others: bool) -> None:
        """Look for the next life of the source that was joined at `place`; `others` of the topic are still joined."""

    def met_source(self, topic: str) -> None:
        """Stop looking for a source of the topic, because one announced itself."""


@attrs.frozen
class JoinPlan:
    """A stream to join, at the latest when `timer` fires."""

    transport: str
    session_id: int | None
    request: str
    timer: asyncio.TimerHandle


class Receiver(IteratedReceiver):
    """A receiver of one topic, made by `Context.receiver`; an asynchronous iterator of messages, for one task.

    async for message in context.receiver("orders", session_id=7):
        print(message.key, message.payload)

    The receiver acknowledges a message when the loop asks for the next one. A message in hand when the loop is left is
    not acknowledged, unless the application calls `message.consumed()`: the next loop begins with it. `batches()` does
    the same for runs of messages, without cost per message. The callback `on_message` of
    `Context.receiver` gets each message at once, without a task in between.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is a choice of the application
        self,
        context: ReceiverContext,
        config: ReceiverConfig,
        on_event: Callable[[Event], None] | None,
        reg_id: Callable[[RegIdRequest], int] | None,
        start_at: Callable[[fx.AskLow], int] | None,
        on_message: Callable[[Message], object] | None = None,
        delivery: Delivery | None = None,
        hot_failover: bool = False,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        deduplicate: bool = False,
        memory: ReceiverMemory | None = None,
    ) -> None:
        """Make a receiver of `config.topic`; `config` is the template of its sessions.

        `delivery` takes the messages of several receivers to the application; None makes one for this receiver alone.
        `memory` has what was read in this run; None: what the context remembers, unless `start_at` says where to begin.
        """
        self.topic = config.topic
        self.config = config
        self._context = context
        self._on_event, self._reg_id, self._start_at = on_event, reg_id, start_at
        self.transport = TransportConfig()
        self.start: ReceiverStart | None = None
        self.stored: StoredSources | None = None
        self._static: str | None = None
        self._rejoin: asyncio.TimerHandle | None = None
        self._joiners: dict[str, StreamJoiner | ReliableJoiner] = {}
        self._indexes: dict[str, set[int]] = {}
        self._early = EarlyRuns()
        self._sessions: dict[int, ClientSession] = {}
        self._finished: list[ClientSession] = []
        if memory is None:
            memory = context.memories.of(config) if returns(config) and start_at is None else ReceiverMemory()
        self._memory, self._consumption, self._identity = memory, memory.consumption, memory.identity
        self._plans: dict[str, JoinPlan] = {}
        self._farewells: dict[int, asyncio.TimerHandle] = {}
        self._passed_over: PassedOver[JoinPlan] = PassedOver()
        if hot_failover and config.ack_mode is AckMode.EXPLICIT:
            raise MisuseError("a hot-failover receiver acknowledges by itself: switch ume_explicit_ack_only off")
        if delivery is None:
            missed = self.on_notify if hot_failover else None
            delivery = Delivery(
                f"receiver '{self.topic}'",
                config.ack_interval_ns / SECOND,
                on_message,
                missed=missed,
                numbers=self._memory.hot,
                auto_ack=auto_ack,
                redelivery=redelivery,
                refusal=why_unsettled(config),
                deduplicate=deduplicate,
                explicit=config.ack_mode is AckMode.EXPLICIT,
                spans=context.spans,
            )
        self._delivery, self._hot = delivery, delivery.hot
        self.redeliverer = delivery.redeliverer
        self._loop = asyncio.get_running_loop()
        self.arrival, self._reporting = ArrivalTime(), ""
        self.inbox, self.deliver = delivery.inbox, delivery.deliver
        delivery.add(self)
        self._emptied: Callable[[], None] | None = None
        self._paused = self._closed = self._met = False

    def __repr__(self) -> str:
        """Return the topic, the sources and the state, for debugging."""
        sources = ", ".join(session.source_name for session in self._sessions.values())
        state = "closed" if self._closed else f"from {sources}" if sources else "no source yet"
        return f"<Receiver '{self.topic}', {state}>"

    @property
    def unconsumed(self) -> int:
        """Return the number of messages that were delivered and that the application has not consumed."""
        return sum(session.waiting for session in (*self._sessions.values(), *self._finished))

    async def close(self) -> None:
        """Acknowledge the consumed messages and leave all sources. Iteration ends."""
        if self._closed:
            return
        check_loop(self._loop, f"receiver '{self.topic}'")
        self._closed = True
        self._delivery.remove(self)
        if self._rejoin is not None:
            self._rejoin.cancel()
        for timer in (*(plan.timer for plan in self._plans.values()), *self._farewells.values()):
            timer.cancel()
        for joiner in self._joiners.values():
            joiner.abandon()
        if self.start is not None:
            self.start.close()
        for session in (*self._sessions.values(), *self._finished):
            session.close()
            self._remember(session)
            self._forget_life(session.incarnation)
        self._context.memories.keep(self.config, self._memory)
        self._context.forget_receiver(self)
        await uninterrupted(self._leave_streams())

    async def _leave_streams(self) -> None:
        if self.stored is not None:
            await self.stored.close()
        for joiner in tuple(self._joiners.values()):
            await joiner.close()

    async def deregister(self) -> None:
        """Ask the stores of every source to forget this receiver, and wait until all have (P-584).

        Messages are still delivered, but not acknowledged any more (P-588). The receiver asks a store that is away
        again until it answers. It registers again with the stores of a life that begins later.
        """
        check_loop(self._loop, f"receiver '{self.topic}'")
        self._context.memories.forget(self.config)
        await asyncio.gather(*(session.deregister() for session in self._sessions.values()))

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        for session in (*self._sessions.values(), *self._finished):
            session.disown()

    def resume(self) -> None:
        """Read the joined streams again, because the inbox has room."""
        self._paused = False
        for joiner in self._joiners.values():
            joiner.resume()

    # ------------------------------------------------------------------------------------------------ lives of sources

    def join(self, transport: str) -> None:
        """Join the source whose place is given, and join there again whenever its life ends."""
        self._static = transport
        self.found(transport, None, "")

    def found(self, transport: str, session_id: int | None, request: str, index: int | None = None) -> None:
        """Join the source at `transport` once the messages of ended lives are consumed, or after `DRAIN_SECONDS`.

        With its topic index, the items of other topics of its session are not looked at.
        """
        self._emptied = None
        if index is not None:
            self._indexes.setdefault(transport, set()).add(index)
            if transport in self._joiners:
                self._joiners[transport].claim(index)
        if self._closed or transport in self._joiners or transport in self._plans:
            return
        self._plan(transport, session_id, request)
        self._settle()

    def withdrawn(self, transport: str, session_id: int, index: int) -> None:
        """Leave a source whose end was announced, once it has been silent for `FAREWELL_SECONDS`.

        A session that sources share goes on after one of them ended. Over TCP the connection reports the end, after the
        last message.
        """
        if not is_source_string(transport):
            return
        if transport in self._joiners:
            self._farewell(codec.join(session_id, index), transport)
        elif transport in self._plans:
            indexes = self._indexes.get(transport, set())
            indexes.discard(index)
            if not indexes:
                self._plans.pop(transport).timer.cancel()

    def _farewell(self, incarnation: int, transport: str) -> None:
        if (earlier := self._farewells.pop(incarnation, None)) is not None:
            earlier.cancel()
        later = asyncio.get_running_loop().call_later
        self._farewells[incarnation] = later(FAREWELL_SECONDS, self._leave, incarnation, transport)

    def _leave(self, incarnation: int, transport: str) -> None:
        """End the session of a life, and leave its stream unless another source of this topic sends on it."""
        self._farewells.pop(incarnation, None)
        if transport not in self._joiners:
            return
        session = self._sessions.get(incarnation)
        indexes = self._indexes.get(transport, set())
        indexes.discard(codec.split(incarnation)[1])
        others = any(one.transport == transport for one in self._sessions.values() if one is not session)
        if not (indexes or others):
            self._joiners[transport].abandon()
            self._gone(transport)
        elif session is not None:
            self._end(session)
            self._settle()

    def retire(self, emptied: Callable[[], None]) -> None:
        """Call `emptied` once all messages are recovered and consumed, unless a source is found before."""
        self._emptied = emptied
        self._settle()

    def _plan(self, transport: str, session_id: int | None, request: str) -> None:
        timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._join, transport)
        self._plans[transport] = JoinPlan(transport, session_id, request, timer)

    def _join(self, transport: str) -> None:
        plan = self._plans.pop(transport)
        plan.timer.cancel()
        if transport in self._joiners:
            for info, met in self._passed_over.remove(transport):
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
                self._delivery.reader.fail(error, error)
            return
        self._joiners[transport] = joiner
        for index in self._indexes.get(transport, ()):
            joiner.claim(index)
        if self._paused:
            joiner.pause()

    def _gone(self, transport: str) -> None:
        """End the sessions of the life at `transport`. They may still recover, and their messages may be consumed."""
        self._joiners.pop(transport, None)
        self._indexes.pop(transport, None)
        if self._passed_over.remove(transport) and transport in self._plans:
            self._plans.pop(transport).timer.cancel()
        for session in [session for session in self._sessions.values() if session.transport == transport]:
            self._end(session)
        for met in self._passed_over.places().values():
            if met.transport not in self._plans:
                self._plan(met.transport, met.session_id, met.request)
        self._settle()
        if self._static is None:
            self._context.lost_source(self.topic, transport, others=bool(self._sessions))
        else:
            loop = asyncio.get_running_loop()
            self._rejoin = loop.call_later(REJOIN_SECONDS, self.found, transport, None, "")

    def _end(self, session: ClientSession) -> None:
        del self._sessions[session.incarnation]
        self._finished.append(session)
        self.on_notify(EndOfSource(self.topic, source_string(session.transport)), session.transport)
        for other in session.end():
            if self._sessions.get(other.incarnation) is other and other.info is not None:  # Its stream is still joined.
                self._end(other)
                if other.transport not in self._plans:
                    self._plan(other.transport, codec.split(other.incarnation)[0], other.config.source_request)
                self._passed_over.add(other.info, self._plans[other.transport])

    def on_consumed(self, session: ClientSession) -> None:
        """Join waiting lives if the application has consumed all messages of the last ended session."""
        if session in self._finished:
            self._settle()
        else:  # It was given up while its messages waited: no other call remembers what was consumed since.
            self._remember(session)

    def _settle(self) -> None:
        """Close ended sessions that are recovered and consumed. When none is left, join the lives that wait."""
        too_many = len(self._finished) - MAX_FINISHED
        for place, session in enumerate(tuple(self._finished)):
            if session.settled or place < too_many:
                self._finished.remove(session)
                self._remember(session)
                session.close()
                if not self._of(session.incarnation):
                    self._forget_life(session.incarnation)
                    if self._hot is not None:
                        self._hot.leave(session.incarnation)
        if not self._finished and not self._closed:
            for transport in list(self._plans):
                if transport in self._plans:  # A session that begins settles, too.
                    self._join(transport)
            if self._emptied is not None and not (self._joiners or self._sessions):
                emptied, self._emptied = self._emptied, None
                emptied()

    def _forget_life(self, incarnation: int) -> None:
        if self._context.lives.get(incarnation) is self:  # Else another receiver of this topic has it by now.
            del self._context.lives[incarnation]

    def owns(self, session: object) -> bool:
        """Return whether messages of a session are for this receiver: others may deliver to the same inbox."""
        return isinstance(session, ClientSession) and who(session.config) == who(self.config)

    def _remember(self, session: ClientSession) -> None:
        """Note the consumed messages, so that no later session delivers them again."""
        history = session.history()
        self._identity.learn(session.info, history)
        self._consumption.add(history)

    def _on_stream(self, plan: JoinPlan, session_id: int, items: list[Item]) -> None:
        self.arrival.ns = machine.clock.wall_ns()
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

    def _on_info(self, info: SourceInfo, session_id: int, plan: JoinPlan) -> None:
        """Process the announcement of a life."""
        if info.incarnation in self._farewells:
            self._farewell(info.incarnation, plan.transport)
        session = self._session_for(info, session_id, plan)
        if session is not None:
            session.on_message(info)
            for run in self._early.remove(session.incarnation):
                session.on_run(run)

    def on_stored(self, info: SourceInfo) -> None:
        """Begin a session with a source that only stores know, unless a source has announced itself."""
        if self._closed or not all(session.transport.startswith(STORED) for session in self._sessions.values()):
            return
        timer = asyncio.get_running_loop().call_later(0, lambda: None)
        place = f"{STORED}{info.incarnation:016x}"
        self._on_info(info, codec.split(info.incarnation)[0], JoinPlan(place, None, info.request, timer))
        self._context.lost_source(self.topic, place, others=False)

    def _on_lost(self, lost: Lost) -> None:
        session = self._sessions.get(lost.session)
        if session is not None:
            session.receive(lost)

    def _session_for(self, info: SourceInfo, session_id: int, plan: JoinPlan) -> ClientSession | None:
        before = self._sessions.get(info.incarnation)
        if before is not None and not before.comes_back(info):
            if not any(place.startswith(STORED) for place in (before.transport, plan.transport)):
                self._follow(before, plan.transport)
            return before
        known = any(other.transport == plan.transport for other in self._sessions.values() if other is not before)
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
            # Descriptors or room on the disk may be scarce just now. That must not end a receiver that works.
            session = ClientSession(
                self, config, self._context.pool, self._context.trace, plan.transport, later=self._met
            )
        except StablecastError as error:
            self._delivery.reader.fail(error, error)
            return None
        self._met = True
        if self._context.times is not None:
            self._context.times.measure_session(session)
        if not plan.transport.startswith(STORED):  # A source runs, so what the stores said is over.
            for other in [known for known in self._sessions.values() if known.transport.startswith(STORED)]:
                self._end(other)
        owners = filter(self.owns, self._delivery.owners())
        others = dict.fromkeys((*owners, *self._finished, *self._sessions.values()))
        for other in others:
            self._remember(other)
        if before is not None:  # It delivers no more: the new session goes on.
            before.close()
        related = self._identity.begin(info, self._sessions)
        self._sessions[info.incarnation] = session
        self._context.lives[info.incarnation] = self
        if self._hot is not None:
            self._hot.numbers.join(info.incarnation)
        self._passed_over.drop(info.incarnation)
        self._context.met_source(self.topic)
        heirless = [other for other in others if other.succession.heir is None]
        earlier = [other for other in heirless if self._identity.same(other.incarnation, info.incarnation)]
        session.start(self._consumption.history(related), earlier)
        return session

    def _follow(self, session: ClientSession, transport: str) -> None:
        """Note the place of a life, which moves with its host, and leave the stream at its last one."""
        left, session.transport = session.transport, transport
        if left == transport:
            return
        if (farewell := self._farewells.pop(session.incarnation, None)) is not None:
            farewell.cancel()
        if left in self._joiners and all(one.transport != left for one in self._sessions.values()):
            self._joiners.pop(left).abandon()
            self._indexes.pop(left, None)

    async def move(self) -> None:
        """Go on at the context's new address, which stores and sources learn."""
        for session in (*self._sessions.values(), *self._finished):
            session.receive(Moved(self._context.request_address))

    def on_inherited(self) -> None:
        """Close ended sessions whose messages another session now answers for."""
        self._settle()

    # ------------------------------------------------------------------------------------- questions to the application

    def choose_reg_id(self, question: fx.AskRegId, transport: str) -> int | None:
        """Return the RegID to ask a store for; None if the callback failed, so that the store is not asked."""
        asked = self._reg_id
        if asked is None:
            return 0
        request = RegIdRequest(question.store_index, question.store, question.source_reg_id, source_string(transport))
        try:
            chosen = operator.index(asked(request))
            if not 0 <= chosen <= MAX_REG_ID:
                raise ValueError(f"{chosen} is not a number from 0 to {MAX_REG_ID}")  # noqa: TRY301  # judged below
        except Exception as error:  # noqa: BLE001  # the application raised it; it is reported
            self._fail("reg_id", question.store_index, question.store, error)
            return None
        return chosen

    def choose_low(self, question: fx.AskLow, session: ClientSession) -> int | None:
        """Return the first number to deliver; None if the callback failed, or if the stores are asked first."""
        if self.start is not None:
            memory = self._memory
            goes_on = any(self._identity.same(session.incarnation, life) for life in memory.begun)
            memory.begun = (*memory.begun[-MAX_FINISHED:], session.incarnation)
            return question.low if goes_on else self.start.number(question, session)
        if self._start_at is None:
            return question.low
        try:
            return operator.index(self._start_at(question))
        except Exception as error:  # noqa: BLE001  # the application raised it; it is reported
            self._fail("start_at", 0, "", error)
            return None

    def _fail(self, callback: str, store_index: int, store: str, error: Exception) -> None:
        """Report that a callback failed: as an event, to the event loop, and to the task that iterates."""
        text = f"the {callback} callback of receiver '{self.topic}' failed: {type(error).__name__}: {error}"
        self._delivery.reader.fail(RegistrationFailed(text), error)
        report(text, error)
        self.on_notify(RegistrationError(store_index, store, text))

    def fail(self, what: str, error: Exception) -> None:
        """End deliveries, because a session could not do what its machine decided, and report the cause.

        An application that iterates gets the messages delivered before, and then EndpointFailed.
        """
        text = f"receiver '{self.topic}' ended: {what} failed: {type(error).__name__}: {error}; make a new receiver"
        report(text, error)
        self._delivery.reader.fail(EndpointFailed(text), error)

    def details(self, event: Event) -> EventDetails:
        """Return more facts about an event: names, the session id, and during its `on_event` call the source."""
        store = getattr(event, "store", "")
        name = self._context.store_name(store) if store else ""
        return EventDetails(store, name, self.config.session_id, self._reporting)

    def on_notify(self, event: Event, source: str = "") -> None:
        """Report an event to the application; `source` is the place of the source that it is about."""
        self._reporting = source_string(source) if source else ""
        notify(self._on_event, event, f"receiver '{self.topic}'")
        self._reporting = ""

    def on_control(self, message: ControlMessage) -> None:
        """Pass a control message from the request port to its session."""
        for session in self._of(message.incarnation):
            session.on_message(message)

    def stores_of(self, incarnation: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of a life of a source, or of the store with an index."""
        return [store for session in self._of(incarnation) for store in session.stores(index)]

    def on_recovered(self, incarnation: int, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Pass retransmissions from the request port to their session."""
        self.arrival.ns = machine.clock.wall_ns()
        for session in self._of(incarnation):
            session.on_recovered(messages)

    def on_broken(self, event: Reset | Gone) -> None:
        """Notify all sessions that a store's connection broke."""
        for session in (*self._sessions.values(), *self._finished):
            session.receive(event)

    def _of(self, incarnation: int) -> list[ClientSession]:
        """Return the sessions with this life: usually one."""
        live = self._sessions.get(incarnation)
        return [session for session in self._finished if session.incarnation == incarnation] + ([live] if live else [])
