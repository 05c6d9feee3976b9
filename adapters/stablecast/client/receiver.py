"""A receiver of a topic: it joins streams, keeps sessions, and hands messages to the application in order.

Which lives of its sources it follows, and what each session inherits, decides `stablecast.core.subscription`.
"""

import asyncio
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Union

import attrs

from stablecast.client.batch import ArrivalTime
from stablecast.client.callbacks import RegIdRequest, notify
from stablecast.client.delivery import Delivery, IteratedReceiver
from stablecast.client.errors import EndpointFailed, RegistrationFailed
from stablecast.client.event_details import EventDetails
from stablecast.client.loop_ownership import check_loop, uninterrupted
from stablecast.client.message import Message
from stablecast.client.observer import session_watches
from stablecast.client.range_bounds import ReceiverStart
from stablecast.client.redelivery import Redelivery, why_unsettled
from stablecast.client.session import ClientSession
from stablecast.client.stored_sources import StoredSources
from stablecast.client.subscriber import Subscriber
from stablecast.client.transport_sessions import Transports
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import AskLow, AskRegId
from stablecast.core.protocol.events import Event, RegistrationError
from stablecast.core.protocol.inputs import Moved
from stablecast.core.protocol.messages import Incarnation, SourceInfo
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import Memories, ReceiverMemory, returns, who
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import MAX_FINISHED, Subscription
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import UntracedDriver, describe, report
from stablecast.runtime.source_strings import is_source_string, source_string
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run

if TYPE_CHECKING:
    from stablecast.client.measured_times import ContextTimes
    from stablecast.client.message_spans import MessageSpans
    from stablecast.runtime.reliable_stream import ReliableJoiner
    from stablecast.runtime.stream import StreamJoiner

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


Joiner = Union["StreamJoiner", "ReliableJoiner"]


class Receiver(IteratedReceiver, Subscriber[ClientSession]):
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
        start_at: Callable[[AskLow], int] | None,
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
        if memory is None:
            memory = context.memories.of(config) if returns(config) and start_at is None else ReceiverMemory()
        self._memory = memory
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
        self._emptied: Callable[[], None] = lambda: None
        self._met = False
        self._follow(memory, machine.clock.wall_ns)

    def __repr__(self) -> str:
        sources = ", ".join(session.source_name for session in self._sessions.values())
        state = "closed" if self._closed else f"from {sources}" if sources else "no source yet"
        return f"<Receiver '{self.topic}', {state}>"

    @property
    def unconsumed(self) -> int:
        """Return the number of messages that were delivered and that the application has not consumed."""
        # A session that ended is no longer one of the receiver's once another one answers for its messages.
        return sum(session.waiting for session in dict.fromkeys((*self.every_session, *self._owners())))

    async def close(self) -> None:
        """Acknowledge the consumed messages and leave all sources. Iteration ends."""
        if self._closed:
            return
        check_loop(self._loop, f"receiver '{self.topic}'")
        self._closed = True
        self._delivery.remove(self)
        joiners = tuple(self._joiners.values())
        if self.start is not None:
            self.start.close()
        self.feed(ev.Leave())
        self._context.memories.keep(self.config, self._memory)
        self._context.forget_receiver(self)
        await uninterrupted(self._leave_streams(joiners))

    async def _leave_streams(self, joiners: Sequence[Joiner]) -> None:
        if self.stored is not None:
            await self.stored.close()
        for joiner in joiners:
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
        for session in self.every_session:
            session.disown()

    def resume(self) -> None:
        """Read the joined streams again, because the inbox has room."""
        self._paused = False
        for joiner in self._joiners.values():
            joiner.resume()

    # ------------------------------------------------------------------------------------------------ lives of sources

    def join(self, transport: str) -> None:
        """Join the source whose place is given, and join there again whenever its life ends."""
        self.feed(ev.Found(Place(transport, shared=is_source_string(transport), static=True)))

    def found(
        self,
        transport: str,
        session_id: int | None,
        request: str,
        index: int | None = None,
        life: Incarnation | None = None,
    ) -> None:
        """Join a source once the messages of ended lives are consumed, or after a while.

        With its topic index, the items of other topics of its session are not looked at. `life` is that of the source
        where it is; None: its session and index name it, because no router repeats it here.
        """
        hop = None if index is None or session_id is None else codec.join(session_id, index)
        if life is None or hop is None:
            life = hop
        else:
            self.names.learn(transport, hop, life, self._sessions)
        self.feed(ev.Found(Place(transport, session_id, request, is_source_string(transport)), life))

    def withdrawn(self, transport: str, session_id: int, index: int, life: Incarnation | None = None) -> None:
        """Leave a source whose end was announced, once it has been silent for a while; `life` as in `found`.

        A session that sources share goes on after one of them ended. Over TCP the connection reports the end, after the
        last message.
        """
        if is_source_string(transport):
            self.feed(ev.Withdrawn(transport, codec.join(session_id, index) if life is None else life))

    def retire(self, emptied: Callable[[], None]) -> None:
        """Call `emptied` once all messages are recovered and consumed, unless a source is found before."""
        self._emptied = emptied
        self.feed(ev.Retire())

    def owns(self, session: object) -> bool:
        """Return whether messages of a session are for this receiver: others may deliver to the same inbox."""
        return isinstance(session, ClientSession) and who(session.config) == who(self.config)

    async def move(self) -> None:
        """Go on at the context's new address, which stores and sources learn."""
        for session in self.every_session:
            session.receive(Moved(self._context.request_address))

    def _drive(self, machine: Subscription) -> Callable[[ev.SubscriptionInput], None]:
        return UntracedDriver(machine, self._perform, lambda effect, error: self.fail(describe(effect), error)).feed

    def _perform(self, effect: fx.SubscriptionEffect) -> None:
        super()._perform(effect)
        match effect:
            case fx.StartSession(session=session):
                self._context.lives[session.incarnation] = self
                self._context.met_source(self.topic)
                if self._hot is not None:
                    self._hot.numbers.join(session.incarnation)
            case fx.CloseSession(session=session):
                known = self._context.lives.get(session.incarnation)
                over = self._closed or not self._of(session.incarnation)  # Else another session has this life.
                if known is self and over:
                    del self._context.lives[session.incarnation]
                if self._hot is not None and over and not self._closed:
                    self._hot.leave(session.incarnation)
            case fx.Look():
                self._context.lost_source(self.topic, effect.transport, others=effect.others)
            case fx.Retired():
                self._emptied()

    def _make(self, info: SourceInfo, place: Place) -> ClientSession:
        context = self._context
        config = attrs.evolve(
            self.config,
            incarnation=info.incarnation,
            reply_to=context.request_address,
            source_request=place.request or info.request,
        )
        session = ClientSession(self, config, context.pool, context.trace, place.transport, later=self._met)
        self._met = True
        if context.times is not None:
            context.times.measure_session(session)
        for watch in session_watches:
            watch(session)
        return session

    def _open(self, place: Place, items: Callable[[int, Any], None], ended: Callable[[bool], None]) -> Joiner:
        where = (place.transport, place.session_id, self.transport, self.topic)
        return self._context.transports.joiner(*where, items, self._on_lost, ended)

    def _refused(self, place: Place | None, error: StablecastError) -> None:
        if place is None or place.static:
            self._delivery.reader.fail(error, error)
        else:
            self._context.transports.pass_over(place.transport, error)

    def _owners(self) -> Iterable[ClientSession]:
        return filter(self.owns, self._delivery.owners())

    def _decode(self, item: Item) -> object:
        assert not isinstance(item, Run)
        return self._context.pool.routing.known_here(codec.decode(item))

    def _count(self, oddity: str) -> None:
        self._context.oddities[oddity] += 1

    def _pause(self) -> None:
        self._paused = True
        for joiner in self._joiners.values():
            joiner.pause()

    # ------------------------------------------------------------------------------------- questions to the application

    def choose_reg_id(self, question: AskRegId, transport: str) -> int | None:
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

    def choose_low(self, question: AskLow, session: ClientSession) -> int | None:
        """Return the first number to deliver; None if the callback failed, or if the stores are asked first."""
        if self.start is not None:
            memory = self._memory
            goes_on = any(memory.identity.same(session.incarnation, life) for life in memory.begun)
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

    def stores_of(self, incarnation: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of a life of a source, or of the store with an index."""
        return [store for session in self._of(incarnation) for store in session.stores(index)]
