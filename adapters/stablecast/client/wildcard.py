"""A wildcard receiver: it receives every topic that matches a pattern, at one place.

A source of a matching topic is found, and the wildcard receiver makes a receiver of that topic. All of them share one
delivery, so that the application iterates over the messages of all topics, or gets them by one callback. A topic that
has had no source for a while is left: its receiver is closed once its messages are consumed.

In one context a topic has one receiver. A topic with a receiver of its own belongs to that receiver, and a topic that
two patterns match belongs to the pattern that was added first. When the owner is closed, the other pattern gets the
topic.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from stablecast.client.advice import advised, log
from stablecast.client.argument_checks import checked_start
from stablecast.client.callbacks import RegIdRequest
from stablecast.client.delivery import Delivery, IteratedReceiver
from stablecast.client.message import Message
from stablecast.client.range_bounds import ReadBounds, ReceiverStart
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.receiver import Receiver, ReceiverContext
from stablecast.client.redelivery import Redelivery, why_unsettled
from stablecast.client.stored_sources import StoredSources
from stablecast.config.options import Value
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.transport_options import TransportConfig, split
from stablecast.config.wildcard_options import wildcard_notices, wildcard_options
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.subscription.consumption import Memories, returns
from stablecast.runtime.driver import report
from stablecast.transports.resolution.patterns import expression
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.settings import PatternOptions

MAX_PATTERN_TOPICS = 16_384
"""Topics that one wildcard receiver receives at one time. Further topics are passed over until others are left."""

AT_ONCE = 16
"""Topics whose receivers one turn of the loop makes. The others wait for the next turns, and streams go on between."""

OnTopicEvent = Callable[[str, Event], None]
RegIdOfTopic = Callable[[str, RegIdRequest], int]
StartOfTopic = Callable[[str, AskLow], int]
OnCreate = Callable[[str], Mapping[str, Value] | None]
OnDelete = Callable[[str], None]


class WildcardContext(ReceiverContext, Protocol):
    resolution: ResolutionSettings
    reads: RangeRoutes

    @property
    def resolves(self) -> bool:
        """Return whether sources and receivers are found by a resolver."""

    def options_of(
        self, scope: str, topic: str, given: Mapping[str, Value], session_id: int | None
    ) -> Mapping[str, Value]:
        """Return the options of an endpoint: those of the files, below those given. Raises like `Context.receiver`."""

    def template(self, session_id: int | None) -> ReceiverConfig:
        """Return the configuration of a receiver without a topic."""

    def add_pattern(self, pattern: str, query: PatternOptions) -> None:
        """Find the sources of all topics that match. Raises MisuseError."""

    def remove_pattern(self, pattern: str) -> None:
        """Stop finding the sources of a pattern."""

    def prepare_thread(self) -> None:
        """Ask the kernel for quick wake-ups when the context gets its first receiver."""


@attrs.frozen
class TopicCallbacks:
    """The callbacks of a wildcard receiver; each gets the topic first.

    Attributes:
        on_event: Called with every event of a topic's receiver.
        reg_id: Returns the RegID at a store (P-249).
        start_at: Returns the first extended number to deliver (P-421).
        on_create: Called before the receiver of a topic is made. It may return options for that receiver.
        on_delete: Called before the receiver of a topic is closed.
    """

    on_event: OnTopicEvent | None = None
    reg_id: RegIdOfTopic | None = None
    start_at: StartOfTopic | None = None
    on_create: OnCreate | None = None
    on_delete: OnDelete | None = None


@attrs.frozen
class Wildcard:
    """The configuration of a wildcard receiver.

    Attributes:
        pattern: The pattern, which is searched in topics and not anchored (C-13).
        receiver: The template of its receivers, without a topic.
        options: The options of its receivers, which those of files for a topic are below.
        session_id: The session id that the application gave.
        transport: The transports of its receivers.
        query: The options of the pattern's queries.
        auto_ack: False if the application settles each message.
        redelivery: What happens to messages that the application does not acknowledge.
        start: Where a receiver begins that no store knows; None: at the earliest message.
    """

    pattern: str
    receiver: ReceiverConfig
    options: Mapping[str, Value]
    session_id: int | None
    transport: TransportConfig = TransportConfig()
    query: PatternOptions = PatternOptions()
    auto_ack: bool = True
    redelivery: Redelivery | None = None
    start: ReadBounds | None = None


class WildcardReceiver(IteratedReceiver):
    """A receiver of all topics that match a pattern, made by `Context.receiver`; an iterator for one task.

    async for message in context.receiver(pattern="^orders[.]", session_id=7):
        print(message.topic, message.key, message.payload)

    Messages are acknowledged as those of a `Receiver` are. They come in order for each source.

    Attributes:
        pattern: The pattern.
        passed_over: How often a matching topic was not received: the bound was reached, `on_create` failed, or it
            returned unusable options.
    """

    def __init__(
        self,
        context: WildcardContext,
        add: Callable[[Receiver], None],
        forget: Callable[["WildcardReceiver"], None],
        settings: Wildcard,
        calls: TopicCallbacks,
        on_message: Callable[[Message], object] | None = None,
    ) -> None:
        """Make a wildcard receiver that knows no topics.

        It calls `add` with the receiver of each new topic, and `forget` when it is closed. Raises MisuseError for an
        unusable pattern.
        """
        self.pattern = settings.pattern
        self.settings = settings
        self.passed_over = 0
        self._expression = expression(settings.pattern, settings.query.kind)
        self._context = context
        self._add = add
        self._forget = forget
        self._calls = calls
        self._topics: dict[str, Receiver] = {}
        self._memories = Memories()
        self._closing: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, dict[object, SourceRecord | SourceInfo]] = {}
        self._room = AT_ONCE
        self._turn: asyncio.Handle | None = None
        self.stored: StoredSources | None = None
        self._closed = self._withdrawn = self._crowded = False
        patience = settings.receiver.ack_interval_ns / SECOND
        self._delivery = Delivery(
            f"wildcard receiver '{self.pattern}'",
            patience,
            on_message,
            shared=True,
            auto_ack=settings.auto_ack,
            redelivery=settings.redelivery,
            refusal=why_unsettled(settings.receiver),
            explicit=settings.receiver.ack_mode is AckMode.EXPLICIT,
            spans=context.spans,
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that are received now, in the order in which they were found."""
        return tuple(self._topics)

    def matches(self, topic: str) -> bool:
        """Return whether the pattern matches a topic."""
        return self._expression.search(topic) is not None

    async def close(self) -> None:
        """Acknowledge the consumed messages and leave all topics. Iteration ends."""
        if self._closed:
            return
        self._closed = True
        self._delivery.redeliverer.close()
        self._delivery.reader.close()
        if self.stored is not None:
            await self.stored.close()
        self._withdraw()
        self._forget(self)
        for topic in self.topics:
            self._delete(topic)
        while self._closing:
            await asyncio.gather(*self._closing)

    async def deregister(self) -> None:
        """Ask the stores of every source of every topic to forget their receivers, and wait until all have (P-589).

        Messages of the present sources are still delivered, but not acknowledged any more (P-588). No further sources
        are found. To register again, close this receiver and make another.
        """
        self._withdraw()
        await asyncio.gather(*(receiver.deregister() for receiver in self._topics.values()))

    # ---------------------------------------------------------------------------------------------------------- topics

    def look(self) -> None:
        """Find all sources of the pattern; known sources are reported again. Raises MisuseError."""
        self._context.add_pattern(self.pattern, self.settings.query)

    def _withdraw(self) -> None:
        """Stop to find sources of the pattern."""
        if not self._withdrawn:
            self._withdrawn = True
            self._waiting.clear()
            self._context.remove_pattern(self.pattern)

    def found(self, topic: str, record: SourceRecord) -> None:
        """Join a source of a matching topic. Make the topic's receiver first if there is none."""
        self._hear(topic, record)

    def on_stored(self, info: SourceInfo) -> None:
        """Receive what stores hold of a source of a matching topic."""
        self._hear(info.topic, info)

    def gone(self, topic: str, record: SourceRecord) -> None:
        """Forget a source that is gone before its topic had a receiver."""
        self._waiting.get(topic, {}).pop(_name(record), None)

    def _hear(self, topic: str, source: SourceRecord | SourceInfo) -> None:
        """Give a source to its topic's receiver, now or when a turn makes one. Its events keep their order."""
        if topic in self._topics or (not self._waiting and self._room > 0):
            self._take(topic, source)
        elif topic in self._waiting or self._has_room(topic):
            self._waiting.setdefault(topic, {})[_name(source)] = source

    def _take(self, topic: str, source: SourceRecord | SourceInfo) -> None:
        receiver = self._topics.get(topic) or self._create(topic)
        if receiver is None:
            return
        if isinstance(source, SourceInfo):
            receiver.on_stored(source)
        else:
            receiver.found(source.address, source.session_id, source.request_address, source.index, source.life)

    def _begin_turn(self) -> None:
        """Make receivers of topics that wait, the first ones first."""
        self._turn, self._room = None, AT_ONCE
        while self._waiting and self._room > 0:
            topic = next(iter(self._waiting))
            for source in self._waiting.pop(topic).values():
                self._take(topic, source)

    def _has_room(self, topic: str) -> bool:
        if len(self._topics) + len(self._waiting) < MAX_PATTERN_TOPICS:
            return True
        self._crowded = True
        self._pass_over(topic, f"the pattern has {MAX_PATTERN_TOPICS} topics already, use a narrower one")
        return False

    def leave(self, topic: str) -> None:
        """Close the receiver of a topic without sources, once its messages are consumed."""
        self._waiting.pop(topic, None)
        receiver = self._topics.get(topic)
        if receiver is not None:
            receiver.retire(partial(self._delete, topic))

    def _create(self, topic: str) -> Receiver | None:
        if self._closed or self._withdrawn or not self._has_room(topic):
            return None
        self._room -= 1
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._begin_turn)
        try:
            receiver = self._make(topic)
        except Exception as error:  # noqa: BLE001  # the application's callback may raise anything; it is reported
            if not isinstance(error, StablecastError):
                report(f"the on_create callback of wildcard receiver '{self.pattern}' failed", error)
            self._pass_over(topic, str(error))
            return None
        self._add(receiver)
        self._topics[topic] = receiver
        return receiver

    def _make(self, topic: str) -> Receiver:
        """Make the receiver of a topic. Raises what `on_create` raises, and StablecastError for its options."""
        calls, settings = self._calls, self.settings
        chosen = (calls.on_create and calls.on_create(topic)) or {}
        options = self._context.options_of("receiver", topic, {**settings.options, **chosen}, settings.session_id)
        transport, others = split(options, settings.transport)
        config = advised("receiver", attrs.evolve(settings.receiver, topic=topic), others, chosen)
        receiver = Receiver(
            self._context,
            config,
            calls.on_event and partial(calls.on_event, topic),
            calls.reg_id and partial(calls.reg_id, topic),
            checked_start(calls.start_at and partial(calls.start_at, topic)),
            delivery=self._delivery,
            memory=self._memories.of(config) if calls.start_at or not returns(config) else None,
        )
        receiver.transport = transport
        receiver.start = None if settings.start is None else ReceiverStart(settings.start, self._context.reads)
        return receiver

    def _pass_over(self, topic: str, reason: str) -> None:
        self.passed_over += 1
        if self.passed_over.bit_count() == 1:  # The 1st, 2nd, 4th ...: another host may make up any number of topics.
            log.warning("pattern '%s' ignores topic '%s': %s", self.pattern, topic, reason)

    def _delete(self, topic: str) -> None:
        receiver = self._topics.pop(topic)
        if self._calls.on_delete is not None:
            try:
                self._calls.on_delete(topic)
            except Exception as error:  # noqa: BLE001  # the application raised it; it is reported
                report(f"the on_delete callback of wildcard receiver '{self.pattern}' failed", error)
        closing = asyncio.get_running_loop().create_task(receiver.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        if self._crowded and not self._withdrawn:
            self._crowded = False
            self.look()  # There is room for a topic that was passed over.


def _name(source: SourceRecord | SourceInfo) -> object:
    if isinstance(source, SourceInfo):
        return source.incarnation
    return source.address, source.session_id, source.index, source.life


class Wildcards:
    """The wildcard receivers of one context, in the order in which they were added."""

    def __init__(self, context: WildcardContext, receivers: dict[str, Receiver], transport: TransportConfig) -> None:
        """Begin without any; `receivers` are those of the context by topic, and `transport` has its defaults."""
        self._context = context
        self._receivers = receivers
        self._transport = transport
        self._added: dict[str, WildcardReceiver] = {}

    def __iter__(self) -> Iterator[WildcardReceiver]:
        return iter(tuple(self._added.values()))

    def make(
        self,
        pattern: str,
        *,
        session_id: int | None = None,
        on_message: Callable[[Message], object] | None = None,
        options: Mapping[str, Value] | None = None,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        start: ReadBounds | None = None,
        stores: Sequence[str] = (),
        **callbacks: Any,
    ) -> WildcardReceiver:
        """Make a wildcard receiver, and find the sources of its topics. Raises like `Context.receiver`.

        `stores` are addresses that are asked for topics without a source. Then no resolver is needed.
        """
        context = self._context
        resolution = context.resolution.config
        if not resolution.cache.on:
            raise MisuseError("a pattern needs the cache of found sources: leave resolver_cache at 1")
        if pattern in self._added:
            raise MisuseError(f"this context has a receiver of the pattern '{pattern}': use that one")
        given = options or {}
        for notice in wildcard_notices(given):
            log.warning(notice)
        query, chosen = wildcard_options(resolution.patterns, given)
        transport, of_topics = split(chosen, self._transport)
        template = advised("receiver", context.template(session_id), of_topics)
        settings = Wildcard(pattern, template, chosen, session_id, transport, query, auto_ack, redelivery, start)
        calls = TopicCallbacks(**callbacks)
        wildcard = WildcardReceiver(context, self._add, self._forget, settings, calls, on_message)
        context.prepare_thread()
        self._added[pattern] = wildcard
        try:
            if context.resolves or not stores:
                wildcard.look()
        except BaseException:
            self._forget(wildcard)
            raise
        if stores:
            wildcard.stored = StoredSources(context.reads, "", stores, partial(self._on_stored, wildcard))
        return wildcard

    def _on_stored(self, wildcard: WildcardReceiver, info: SourceInfo) -> None:
        """Give a stored source to the pattern, if its topic belongs to that pattern."""
        owned = info.topic in self._receivers and info.topic not in wildcard.topics
        if self.matching(info.topic) is wildcard and not owned:
            wildcard.on_stored(info)

    def matching(self, topic: str) -> WildcardReceiver | None:
        """Return the wildcard receiver to which a topic without a receiver of its own belongs."""
        return next((wildcard for wildcard in self._added.values() if wildcard.matches(topic)), None)

    def abandoned(self, topic: str) -> None:
        """Leave a topic that has had no source for too long."""
        for wildcard in self:
            wildcard.leave(topic)

    def _add(self, receiver: Receiver) -> None:
        self._receivers[receiver.topic] = receiver

    def _forget(self, wildcard: WildcardReceiver) -> None:
        self._added.pop(wildcard.pattern, None)
