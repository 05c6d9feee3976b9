"""A context: one request port, one pool of connections and one resolver for its sources and receivers."""

import asyncio
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import attrs

from stablecast.client import configured_options, source_discovery
from stablecast.client.advice import (
    advise_of_pattern,
    advise_of_relations,
    advise_of_topic,
    advise_of_transport,
    advised,
)
from stablecast.client.argument_checks import (
    Claim,
    check_callback,
    check_claims,
    check_group,
    check_list,
    check_session_id,
    check_topic_name,
    checked_start,
    claims_of,
)
from stablecast.client.callbacks import RegIdRequest
from stablecast.client.errors import Closed
from stablecast.client.group_receiver import GroupReceiver, GroupSettings, Sources
from stablecast.client.loop_ownership import OPEN, check_loop, uninterrupted, watch_forks
from stablecast.client.measured_times import ContextTimes
from stablecast.client.message import Message, timestamp
from stablecast.client.message_division import MessageKey
from stablecast.client.named_stores import NamedStores, StoreHosts
from stablecast.client.parcel import Annotation
from stablecast.client.presence import presence_topic
from stablecast.client.range_bounds import Bound, ReadBounds, ReceiverStart
from stablecast.client.range_inquiry import RangeRoutes, StoredTopics, placed, stored
from stablecast.client.range_reader import (
    PATIENCE_SECONDS,
    MissingRange,
    RangeReader,
    ReadOptions,
)
from stablecast.client.receiver import Receiver
from stablecast.client.redelivery import Redelivery
from stablecast.client.request_inputs import RequestInputs
from stablecast.client.source import Source
from stablecast.client.source_discovery import Advertise, OnEvent
from stablecast.client.stored_sources import StoredSources
from stablecast.client.transport_sessions import Transports, checked
from stablecast.client.wildcard import (
    OnCreate,
    OnDelete,
    OnTopicEvent,
    RegIdOfTopic,
    StartOfTopic,
    WildcardReceiver,
    Wildcards,
)
from stablecast.config import profiles
from stablecast.config.client_configuration import NO_FILES, ClientConfiguration
from stablecast.config.option_names import SAFE
from stablecast.config.options import Value, apply
from stablecast.config.resolution_options import ResolutionSettings, own
from stablecast.config.stores import store_spec
from stablecast.config.transport_options import TransportConfig, split
from stablecast.core.errors import ConfigError, MisuseError
from stablecast.core.protocol import messages
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Event, NoSource, ReceiverGone, Reclaimed
from stablecast.core.protocol.inputs import Gone, Located, Reset
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreSpec
from stablecast.core.sharing.division import DEFAULT_SHARES
from stablecast.core.subscription.consumption import Memories
from stablecast.evidence.trace import TraceError
from stablecast.resolver.combined_resolver import Combined, Wait
from stablecast.runtime import address, machine, ports, tls
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.event_loop import limit_scarcity_reports
from stablecast.runtime.own_address import OwnAddress
from stablecast.runtime.policy import Right
from stablecast.runtime.request_port import RequestPort
from stablecast.runtime.source_strings import ports_of
from stablecast.runtime.wakeup_latency import courtesy, short_slices
from stablecast.transports import codec
from stablecast.transports.codec.domains import absolute, local
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.settings import PatternOptions, QueryOptions

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from stablecast.client.message_spans import MessageSpans

Options = Mapping[str, Value]
CALLBACKS = ("on_event", "reg_id", "start_at", "on_message", "on_create", "on_delete")
"""Arguments of `Context.receiver` that are called in the event loop."""

NOT_SHARED = frozenset({"session_id", "reg_id", "start_at", "on_message", "hot_failover"})
"""Arguments of `Context.receiver` that a member of a group does not have."""

REGISTRATION_SECONDS = 30.0
"""Seconds that `Context.source` waits for enough stores by default."""


@attrs.frozen
class ReceiverPlan:
    """The configuration of a receiver of one topic, and how it finds its sources.

    Attributes:
        config: The template of its sessions.
        where: The place of the only source; None asks the resolver.
        stores: The stores to ask for sources that do not run.
        query: The options of its queries.
        transport: The settings of transports.
    """

    config: ReceiverConfig
    where: str | None
    stores: tuple[str, ...]
    query: QueryOptions
    transport: TransportConfig


class Context:
    """The shared part of sources and receivers. Use it inside `async with`; leaving closes them all.

    async with Context(resolver=["127.0.0.1:15380"]) as context:
        source = await context.source("orders", stores=["127.0.0.1:14567"])
        receiver = context.receiver("orders", session_id=7)

    A context belongs to the event loop in which it was opened.

    Attributes:
        request_address: `ip:port` of the request port, empty before the context is open.
        oddities: How often each kind of malformed or unexpected input came, by kind.
        on_event: Called in the event loop with the events of the context, which are `ReceiverGone` of each of its
            sources (P-338). The `on_event` of that source gets the event, too. None calls nothing.
        prompt: False keeps the context from asking the kernel for quick wake-ups. Set it before the context is used.
    """

    def __init__(  # noqa: PLR0913 - keywords only, each of which has a default
        self,
        *,
        resolver: Sequence[str] = (),
        resolver_service: Sequence[str] = (),
        resolution: ResolutionSettings | None = None,
        interface: str = "",
        session_id: int = 0,
        store_names: Mapping[str, str] | None = None,
        profile: str = SAFE,
        trace: Path | None = None,
        configuration: ClientConfiguration = NO_FILES,
        tracer_provider: "TracerProvider | None" = None,
        metrics: bool = False,
    ) -> None:
        """Configure a context; `async with` opens it.

        Args:
            resolver: Addresses `ip:port` of lbmrd relays. Sources and receivers find each other through them.
            resolver_service: Addresses `host:port` of resolver services (SRS), which work over TCP. Use them instead of
                relays or beside them.
            resolution: More settings of both, and multicast: the result of `stablecast.client.resolution`.
            interface: The IPv4 address of this host that peers connect to. By default it is the address that faces the
                relays, the services or the multicast groups, and 127.0.0.1 without any of them.
            session_id: The default session id of sources and receivers (P-243); 0 means none.
            store_names: The address `[domain:]ip:port` of each store that sources know by name (P-203); see `locate`.
            profile: The defaults of options: `safe`, or those documented for `5.3` or `6.17`.
            trace: A directory for traces. The variable STABLECAST_TRACE in the environment does the same.
            configuration: The options of files, which all arguments override; see `from_config`.
            tracer_provider: Makes the spans of OpenTelemetry. None: that which the program has set, if any, when a
                source or receiver is made. A `NoOpTracerProvider` switches spans off.
            metrics: Whether to measure how long messages and the event loop wait, for `metrics()`. Without it nothing
                is measured, and nothing is slower.

        Raises:
            AddressError: An address is malformed.
            MisuseError: One text stands for a list of addresses, or the session id is none.
            OptionError: There is no such profile, or an option has a wrong value.
            InterfaceError: No interface of this host matches a configured one.
            ConfigError: The range of request ports is empty.
        """
        check_list("resolver", resolver)
        check_list("resolver_service", resolver_service)
        check_session_id(session_id)
        self.configuration = configuration
        settings, self.config = configured_options.of_context(configuration, resolution, resolver, resolver_service)
        self.resolution = source_discovery.plan(settings, resolver, resolver_service)
        self._named = interface
        self.interface = address.check_ip(self._choose())
        self.resolver_port = 0
        self._defaults = profiles.profile(profile)
        self.session_id = session_id
        self.store_names = {name: address.canonical(at) for name, at in (store_names or {}).items()}
        self.trace = trace
        self.on_event: Callable[[ReceiverGone], None] | None = None
        self._tracer_provider = tracer_provider
        self.times: ContextTimes | None = ContextTimes() if metrics else None
        self.prompt = True
        self._courtesy = courtesy()
        self.oddities: Counter[str] = Counter()
        self.request_address = ""
        self._context_id = machine.entropy.bits(64)
        self._next_index = machine.entropy.bits(31)
        self.transports = Transports(self.interface)
        self._sources: dict[int, Source] = {}
        self._claimed: dict[Claim, Source] = {}
        self._receivers: dict[str, Receiver] = {}
        self._wildcards = Wildcards(self, self._receivers, self._defaults.transport)
        self.abandoned = self._wildcards.abandoned
        self.lives: dict[int, Receiver] = {}
        self.memories = Memories()
        self._resolver: Combined | None = None
        self._names: NamedStores | None = None
        self._hosts = StoreHosts(self.locate)
        self.reads = RangeRoutes()
        self._open = False
        self._owns_interpreter = machine.process.owns_interpreter()
        self._closing = AsyncExitStack()

    def _choose(self) -> str:
        """Return the address of this host that peers reach, by the rules of `interface`; this may block."""
        own = self._named or configured_options.interface_of(self.config)
        return own or source_discovery.interface_of(self.resolution)

    @classmethod
    def from_config(cls, *files: str | Path, **arguments: Any) -> "Context":
        """Make a context from option files, XML and TOML; arguments and errors are those of `configured_options`."""
        return configured_options.from_config(cls, *files, **arguments)

    async def __aenter__(self) -> "Context":
        """Open the request port and start resolution. Raises PortError, InterfaceError, MisuseError if open already."""
        if self._open:
            raise MisuseError("the context is open already: make another Context")
        self._loop = asyncio.get_running_loop()
        machine.process.raise_descriptor_limit()
        limit_scarcity_reports(self._loop)
        if self.config.request_port:
            listening = ports.listen(self.interface, self.config.request_port, "request_tcp_port")
        else:
            listening = ports.listen_in_range(self.interface, self.config.ports)
        self.request_address = address.join(self.interface, listening.getsockname()[1])
        self.pool = ConnectionPool(
            lambda peer: self._on_broken(Reset(peer)), lambda peer: self._on_broken(Gone(peer)), self.interface
        )
        self.pool.origins.oddities = self.oddities
        self.transports.origins = self.pool.origins
        self.pool.routing.here = self.request_address
        self.reads.open(self.pool, self.request_address)
        async with AsyncExitStack() as stack:
            stack.callback(self.transports.close)
            inputs = RequestInputs(self._sources, self.lives, self.oddities, self.reads, self.pool.routing)
            port = self._port = RequestPort(listening, inputs.on_items, inputs.on_left)
            stack.push_async_callback(port.close)
            await port.start()
            stack.push_async_callback(self.pool.close)
            stack.push_async_callback(self._hosts.close)
            self._resolver = await source_discovery.start(
                self, self._on_found, self._on_gone, self._context_id.to_bytes(8), stack
            )
            lost_after = self.resolution.config.names.activity_timeout
            self._names = NamedStores(self._resolver, self._hosts, self.store_names, lost_after)
            stack.callback(self._names.close)
            own = OwnAddress(self.interface, self._choose, self._move, lambda: _silent(self._resolver))
            stack.push_async_callback(own.close)
            own.follow()
            self._closing = stack.pop_all()
        if self.times is not None:
            self.times.begin(self._loop)
            self._closing.callback(self.times.close)
        self._open = True
        watch_forks()
        OPEN.add(self)
        return self

    async def _move(self, interface: str) -> None:
        """Go on at another address of this host: streams, request port, registrations and advertisements follow."""
        within = (self.config.request_port,) * 2 if self.config.request_port else self.config.ports
        listening = ports.listen_in_range(interface, within)
        self.interface = interface
        self.request_address = address.join(interface, listening.getsockname()[1])
        await self._port.move(listening)
        self.pool.move(interface)
        self.pool.routing.here = self.request_address
        self.reads.open(self.pool, self.request_address)
        if self._resolver is not None:
            self._resolver.move(interface)
        self.transports.move(interface)
        for source in list(self._sources.values()):
            source.move(self.request_address, await self.transports.moved(source))
            if self._resolver is not None:
                self._resolver.remove_source(*codec.split(source.config.incarnation))
            source_discovery.announce(self._resolver, source.config, source.place, source.advertise)
        for receiver in list(self._receivers.values()):
            await receiver.move()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def spans(self) -> "MessageSpans | None":
        """Return what makes the spans of OpenTelemetry; None if the program has set no tracer provider."""
        # A program that traces has imported this module. Others need not even have the package.
        if self._tracer_provider is None and "opentelemetry.trace" not in sys.modules:
            return None
        from stablecast.client.message_spans import spans_of  # noqa: PLC0415

        return spans_of(self._tracer_provider)

    def metrics(self) -> str:
        """Return the figures of all sources and receivers as OpenMetrics, of the content type `METRICS_TYPE`.

        Histograms have the time until messages are stable, until the application has consumed them, until missing ones
        are recovered, and the lag of the event loop. Each bucket has the newest message as its example. Gauges have the
        messages that are not stable, and those that are not consumed. Raises MisuseError without `metrics=True`.
        """
        if self.times is None:
            raise MisuseError("this context does not measure: make it with Context(metrics=True)")
        return self.times.text(self._sources.values(), self._receivers.values())

    def __repr__(self) -> str:
        state = f"open at {self.request_address}" if self._open else "closed" if self.request_address else "not open"
        sources = sorted({source.topic for source in self._sources.values()})
        return f"<Context {state}, sources {sources}, receivers {sorted(self._receivers)}>"

    def __del__(self) -> None:
        """Warn of a context that nobody closed; its sockets end with it, without a last acknowledgement."""
        # A simulated process that was killed closes nothing, and its memory is freed after it.
        if getattr(self, "_open", False) and self._owns_interpreter:
            text = f"unclosed context at {self.request_address}: use it inside 'async with', or await context.close()"
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        self._open = False
        for source in self._sources.values():
            source.disown()
        for receiver in self._receivers.values():
            receiver.disown()

    async def close(self) -> None:
        """Close receivers, sources and connections. Messages that were sent before are written first."""
        if not self._open:
            return
        check_loop(self._loop, "the context")
        self._open = False
        OPEN.discard(self)
        await uninterrupted(self._close())

    async def _close(self) -> None:
        async with self._closing as stack:
            for source in self._sources.values():
                stack.push_async_callback(source.close)
            for receiver in self._receivers.values():
                stack.push_async_callback(receiver.close)
            for reader in self.reads.readers:
                stack.push_async_callback(reader.close)
            for wildcard in self._wildcards:  # They close their receivers first.
                stack.push_async_callback(wildcard.close)

    async def source(  # noqa: PLR0913 - each is a choice of its own
        self,
        topic: str,
        *,
        stores: Sequence[str] = (),
        session_id: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_forced_reclaim: Callable[[Reclaimed], None] | None = None,
        within: float | None = REGISTRATION_SECONDS,
        wait: bool = True,
        timestamps: bool = False,
        options: Options | None = None,
    ) -> Source:
        """Make a source and wait until it may send.

        Args:
            topic: The topic.
            stores: `[domain:]ip:port[:regid]` or the name of each store (P-212). Without any, the source only streams.
            session_id: Replaces RegIDs. None uses the session id of the context, 0 means none.
            on_event: Called in the event loop with every event of the source (`stablecast.core.protocol.events`).
            on_forced_reclaim: Called with each `Reclaimed` event whose messages were dropped by force, before
                `on_event` is (P-660). The guide keeps it for older programs; `on_event` gets the same event.
            within: Seconds to wait for enough stores; None waits for ever.
            wait: False returns at once. `send` then waits for the stores; or `await source.registered()`.
            timestamps: Send the time with each message, as its property `JMSTimestamp`; see `Message.sent_at`.
            options: Documented options by name, for example `{"ume_flight_size": 2000}`.

        Raises:
            RegistrationFailed: Too few stores registered the source in time. The source is closed.
            ConfigError: Two options contradict each other.
            MisuseError: The topic cannot be encoded, the context has too many sources, or another source of this
                context claims the same session id for this topic, or the same RegID at a store.
            OptionError, AddressError, StoreListError: An option or address is wrong.
            PortError, TraceError: No port is free, or the trace cannot be written.
            TlsError: The policy of the certificates does not let this process be a source of the topic.
            Closed: The context is not open.
        """
        self._check_open()
        check_topic_name(topic)
        tls.require_right(Right.SOURCE, topic, f"source '{topic}'")
        check_list("stores", stores)
        check_session_id(session_id)
        check_callback("on_event", on_event)
        advise_of_topic(topic)
        options = self.options_of("source", topic, given := options or {}, session_id, stores)
        advertise, options = own(self.resolution.config.advertise, options)
        transport, options = split(options, self._defaults.transport)
        config = advised("source", self._source_config(topic, stores, session_id), options, given)
        advise_of_transport(transport, self.resolution)
        advise_of_relations(config)
        annotations = [timestamp] if timestamps else []
        source = await self._start(config, on_event, advertise, transport, annotations, self.spans)
        source.on_forced_reclaim = on_forced_reclaim
        if wait:
            try:
                await source.registered(within)
            except BaseException:
                await source.close()
                raise
        return source

    async def host(
        self, config: SourceConfig, on_event: OnEvent | None = None, transport: TransportConfig | None = None
    ) -> Source:
        """Make a source of this configuration and return without waiting. Raises like `source`.

        The context fills in the incarnation, its own id and the request address.
        """
        self._check_open()
        given: dict[str, Any] = {
            "incarnation": self._new_life(),
            "context": self._context_id,
            "reply_to": self.request_address,
        }
        config = attrs.evolve(config, **given)
        return await self._start(config, on_event, None, transport or TransportConfig())

    async def _start(
        self,
        config: SourceConfig,
        on_event: OnEvent | None,
        advertise: Advertise,
        transport: TransportConfig,
        annotations: Sequence[Annotation] = (),
        spans: "MessageSpans | None" = None,
    ) -> Source:
        assert self._names is not None
        own = self.pool.routing.domain
        stores = (attrs.evolve(store, address=local(store.address, own)) for store in config.stores)
        config = attrs.evolve(config, stores=tuple(stores)) if own else config
        check_claims(config, self._claimed)
        prepared = self.transports.prepare(config, transport)
        config = prepared.config
        try:
            source = Source(config, self.pool, on_event, self.trace, annotations, spans)
        except (TraceError, ConfigError):
            prepared.cancel()
            raise
        source.courtesy = self._courtesy if self.prompt else None
        if self.times is not None:
            self.times.measure_source(source)
        source.on_receiver_gone = self._on_receiver_gone
        self._sources[config.incarnation] = source
        self._claimed |= dict.fromkeys(claims_of(config), source)
        source.on_close = lambda: self._forget_source(config.incarnation)
        try:
            source.stream = prepared.open(source)
            await source.start(source.stream)
            source.advertise = advertise
            self._names.add(source)
            source_discovery.announce(self._resolver, config, source.place, advertise)
        except BaseException:
            await source.close()
            raise
        return source

    @overload
    def receiver(
        self,
        topic: str,
        *,
        source: str | None = None,
        session_id: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        reg_id: Callable[[RegIdRequest], int] | None = None,
        stores: Sequence[str] = (),
        start: Bound = None,
        start_at: Callable[[AskLow], int] | None = None,
        on_message: Callable[[Message], object] | None = None,
        hot_failover: bool = False,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        deduplicate: bool = False,
        options: Options | None = None,
    ) -> Receiver: ...

    @overload
    def receiver(
        self,
        topic: str,
        *,
        group: str,
        shares: int = DEFAULT_SHARES,
        key: MessageKey = None,
        source: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        stores: Sequence[str] = (),
        start: Bound = None,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        deduplicate: bool = False,
        options: Options | None = None,
    ) -> GroupReceiver: ...

    @overload
    def receiver(
        self,
        *,
        pattern: str,
        session_id: int | None = None,
        on_event: OnTopicEvent | None = None,
        reg_id: RegIdOfTopic | None = None,
        stores: Sequence[str] = (),
        start: Bound = None,
        start_at: StartOfTopic | None = None,
        on_message: Callable[[Message], object] | None = None,
        on_create: OnCreate | None = None,
        on_delete: OnDelete | None = None,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        options: Options | None = None,
    ) -> WildcardReceiver: ...

    def receiver(  # noqa: D417  # the overloads name the other arguments
        self, topic: str = "", *, pattern: str | None = None, group: str | None = None, **arguments: Any
    ) -> Receiver | WildcardReceiver | GroupReceiver:
        """Make a receiver of a topic, or of all topics that match a pattern. It joins every source that it finds.

        Args:
            topic: The topic.
            pattern: A pattern of PCRE instead, which may match anywhere in a topic. Then `on_event`, `reg_id` and
                `start_at` get the topic before their other argument.
            group: The name of a group whose members divide the messages of the topic among themselves. Each message
                goes to one member, and to another one if that member dies before it acknowledged. Not with
                `session_id`, `reg_id`, `start_at`, `on_message` and `hot_failover`.
            shares: The number of parts of the topic that the members divide, the same for all of them; further
                members wait.
            key: The name of a property, or a function of a message that returns bytes, a str or an int. Messages of
                one key go to one member, in order. None divides by number.
            source: The place of the only source to join, `ip:port` or a source string. None asks the resolver.
            session_id: Replaces RegIDs. None uses the session id of the context, 0 means none.
            on_event: Called in the event loop with every event of the receiver.
            reg_id: Returns the RegID for each store when there is no session id; 0 lets the store choose (P-249). If it
                raises, the receiver does not register with that store, and iterating raises RegistrationFailed.
            stores: The stores of the topic. If no source announces itself within a second, the receiver gets from them
                what they hold, and acknowledges to them. A pattern gets all matching topics of the stores.
            start: Where a receiver begins that no store knows: a number, a `datetime`, `last(100)`, "earliest" or
                "latest". It is remembered under the session id. Not with `start_at`.
            start_at: Returns the first extended number to deliver (P-421); return `low` for the default. If it raises,
                nothing is delivered, and iterating raises RegistrationFailed.
            on_message: Called in the event loop with every message; then the receiver cannot be iterated. It is faster
                than iterating. A message is consumed when the call returns. If a call raises, deliveries end, and
                that message and all later ones are not acknowledged.
            on_create: Called with a topic before a pattern's receiver of it is made. It may return options for that
                receiver.
            on_delete: Called with a topic before a pattern's receiver of it is closed.
            hot_failover: Deliver each hot number once, whichever source of the topic brings it first (`hot_number` of
                `Source.send`). Not for receivers that acknowledge explicitly, and not for patterns.
            auto_ack: False keeps each message unacknowledged until the application calls its `ack`, or leaves
                `async with message`. Several messages may then be in work at a time.
            redelivery: What happens to messages that the application does not acknowledge, or fails to process in
                `async with message` or `on_message`.
            deduplicate: Give the application one message of each id (`id` of `Source.send`), among the newest 10,000.
                Not for patterns, and without effect beside `hot_failover`.
            options: Documented options by name, for example `{"ume_use_ack_batching": 0}`.

        Raises:
            MisuseError: There is neither a resolver nor a source address, the context has a receiver of this topic or
                pattern, the topic cannot be encoded, the pattern is malformed or could take too long, or
                `hot_failover` meets explicit acknowledgement.
            OptionError, AddressError: An option or address is wrong.
            TlsError: The policy of the certificates does not let this process be a receiver of the topic.
            Closed: The context is not open.
        """
        self._check_open()
        check_session_id(arguments.get("session_id"))
        for name in CALLBACKS:
            check_callback(name, arguments.get(name))
        if group is not None:
            if pattern is not None:
                raise MisuseError("a group shares one topic: give no pattern with it")
            return self._member(topic, group, **arguments)
        for name in ("shares", "key"):
            if name in arguments:
                raise MisuseError(f"{name} divides a topic among the members of a group: name the group")
        if pattern is None:
            return self._receiver(topic, **arguments)
        if topic or "source" in arguments:
            raise MisuseError("a pattern finds topics and sources: give neither topic nor source with it")
        given = arguments.get("options") or {}
        arguments["options"] = configured_options.of_pattern(self.configuration, pattern, given)
        arguments |= _whence(arguments)
        arguments["stores"] = self._places(arguments["stores"])
        advise_of_pattern(pattern)
        return self._wildcards.make(pattern, **arguments)

    def _receiver(  # noqa: PLR0913 - each is a choice of its own
        self,
        topic: str,
        *,
        source: str | None = None,
        session_id: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        reg_id: Callable[[RegIdRequest], int] | None = None,
        stores: Sequence[str] = (),
        start: Bound = None,
        start_at: Callable[[AskLow], int] | None = None,
        on_message: Callable[[Message], object] | None = None,
        hot_failover: bool = False,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        deduplicate: bool = False,
        options: Mapping[str, Value] | None = None,
    ) -> Receiver:
        bounds = _whence({"stores": stores, "start": start, "start_at": start_at})["start"]
        plan = self._plan(topic, source, stores, session_id, options)
        receiver = Receiver(
            self,
            plan.config,
            on_event,
            reg_id,
            checked_start(start_at),
            on_message,
            hot_failover=hot_failover,
            auto_ack=auto_ack,
            redelivery=redelivery,
            deduplicate=deduplicate,
        )
        receiver.transport = plan.transport
        receiver.start = None if bounds is None else ReceiverStart(bounds, self.reads)
        self.prepare_thread()
        self._receivers[topic] = receiver
        if plan.where is not None:
            receiver.join(plan.where)
        elif self._resolver is not None:
            self._resolver.add_receiver(topic, plan.query)
        if plan.stores:
            receiver.stored = StoredSources(self.reads, topic, plan.stores, receiver.on_stored)
        return receiver

    def _member(
        self,
        topic: str,
        group: str,
        *,
        shares: int = DEFAULT_SHARES,
        key: MessageKey = None,
        source: str | None = None,
        stores: Sequence[str] = (),
        start: Bound = None,
        options: Options | None = None,
        **arguments: Any,
    ) -> GroupReceiver:
        """Make a member of a group. Raises like `receiver`."""
        if alone := sorted(NOT_SHARED & arguments.keys()):
            raise MisuseError(f"a group has session ids of its own and is read in a loop: leave out {', '.join(alone)}")
        check_group(group, shares, key)
        check_topic_name(topic)
        check_topic_name(presence_topic(group, topic))
        settings = GroupSettings(group, shares, key)
        plan = self._plan(topic, source, stores, 0, options)
        bounds = None if start is None else ReadBounds.of(start, None)
        sources = Sources(plan.where, plan.stores, bounds, plan.transport)
        member = GroupReceiver(self, plan.config, settings, sources, **arguments)
        self.prepare_thread()
        # The context uses what both kinds have: sources found and gone, broken connections, and closing.
        self._receivers[topic] = cast("Receiver", member)
        if plan.where is None and self._resolver is not None:
            self._resolver.add_receiver(topic, plan.query)
        return member

    def _plan(
        self, topic: str, source: str | None, stores: Sequence[str], session_id: int | None, options: Options | None
    ) -> "ReceiverPlan":
        """Return the configuration of a receiver of one topic. Raises like `receiver`."""
        check_topic_name(topic)
        check_list("stores", stores)
        tls.require_right(Right.RECEIVER, topic, f"receiver '{topic}'")
        self._check_single(topic)
        places = self._places(stores)
        if source is None and self._resolver is None and not places:
            raise MisuseError(
                "no way to find a source: give Context(resolver=...), receiver(source=...) or stores=[...]"
            )
        template = attrs.evolve(self.template(session_id), topic=topic)
        where = None if source is None else checked(source)
        given = options or {}
        options = self.options_of("receiver", topic, given, session_id)
        query, options = own(self.resolution.config.query, options)
        transport, options = split(options, self._defaults.transport)
        config = advised("receiver", template, options, given)
        return ReceiverPlan(config, where, places, query, transport)

    @property
    def resolves(self) -> bool:
        """Return whether sources and receivers are found by a resolver."""
        return self._resolver is not None

    @property
    def request_ports(self) -> tuple[int, int]:
        """Return the range of request ports."""
        return self.config.ports

    def reader(  # noqa: PLR0913 - each is a choice of its own
        self,
        topic: str,
        *,
        stores: Sequence[str],
        sources: Collection[int] | None = None,
        since: Bound = None,
        until: Bound = None,
        follow: bool = False,
        patience: float = PATIENCE_SECONDS,
        quorum: int | None = None,
        times: bool = False,
        stable: bool = True,
        new: bool = False,
        on_hole: Callable[[MissingRange], None] | None = None,
    ) -> RangeReader:
        """Make a reader of messages that stores hold. It registers nowhere and acknowledges nothing.

        async with context.reader("orders", stores=stores, since=last(100)) as reader:
            async for message in reader:
                print(message.payload)

        Args:
            topic: The topic.
            stores: `ip:port` or the name of each store that the sources use. Every number is read from any that has it.
            sources: Only the sources with these session ids, or these lives (incarnations); None reads all.
            since: The first number, a `datetime`, `last(100)`, "latest", or "earliest", which is the default.
            until: The number or the `datetime` before which the reader ends; None: the stable end as of now.
            follow: Go on with messages that become stable later, until the number `until`, or until it is closed.
            patience: Seconds to wait for a store that is away, at the begin and when only that store has a message.
            quorum: The stores that must have synced a message; None: the rule of its source over its configured stores.
            times: Ask the stores when each message came (`came_at` of a message).
            stable: False reads what is not stable as well. With a number `until`, below which everything is known to be
                stable, each message is read from any store that has it, even if the other stores are behind.
            new: The topic may be new. Otherwise opening a reader of a topic that no store holds raises `TopicUnknown`.
            on_hole: Called in the event loop with each range that is missing; `reader.holes` has them as well.

        Raises:
            MisuseError: The topic cannot be encoded, or a bound or option makes no sense.
            AddressError, StoreListError: A store is malformed.
            Closed: The context is not open.
        """
        self._check_open()
        check_topic_name(topic)
        places = self._places(stores)
        wanted = None if sources is None else frozenset(sources)
        bounds = ReadBounds.of(since, until)
        groups = self._groups(topic)
        options = ReadOptions(bounds, places, wanted, follow, patience, quorum, times, stable, groups, new, on_hole)
        return RangeReader(self.reads, topic, options)

    async def stored(
        self, topic: str = "", *, stores: Sequence[str], patience: float = PATIENCE_SECONDS
    ) -> tuple[StoredTopics, list[str]]:
        """Return what stores hold of a topic, by default of all topics, and the stores that do not answer in time.

        Raises AddressError, StoreListError; MisuseError without stores; Closed if the context is not open.
        """
        self._check_open()
        places = self._places(stores)
        if not places:
            raise MisuseError("there is no store to ask: give stores=[...]")
        return await stored(self.reads, topic, places, patience, self._groups(topic))

    def _groups(self, topic: str) -> GroupRules:
        """Return the behaviours of a source's groups of stores, as the configuration has them."""
        found = self.configuration.of_endpoint("source", topic or None)
        chosen = {name: value for name, value in found.items() if name in configured_options.BEHAVIORS}
        return apply("source", self._defaults.source, chosen).groups

    def _places(self, stores: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of stores, each once. Raises AddressError, StoreListError."""
        places = (self.store_names.get(text) or placed(text) for text in stores)
        return tuple(dict.fromkeys(local(place, self.pool.routing.domain) for place in places))

    def _check_single(self, topic: str) -> None:
        """Raise MisuseError if the context has a receiver of this topic, or of a pattern that matches it."""
        if topic in self._receivers:
            raise MisuseError(
                f"this context has a receiver of '{topic}': use that one, or make another Context with a session id of "
                "its own"
            )
        if (owner := self._wildcards.matching(topic)) is not None:
            raise MisuseError(
                f"the pattern '{owner.pattern}' of this context receives '{topic}': read it there, make its receiver "
                "before the pattern's, or make another Context with a session id of its own"
            )

    def add_pattern(self, pattern: str, query: PatternOptions) -> None:
        """Find the sources of all topics that match; sources that are known are reported again. Raises MisuseError."""
        if self._resolver is None:
            raise MisuseError("no way to find sources: give Context(resolver=...)")
        self._resolver.add_pattern(pattern, query.kind, query)

    def remove_pattern(self, pattern: str) -> None:
        """Stop finding the sources of a pattern."""
        if self._resolver is not None:
            self._resolver.remove_pattern(pattern)

    def prepare_thread(self) -> None:
        """Ask the kernel for quick wake-ups when the context gets its first receiver."""
        if self.prompt and not self._receivers:
            short_slices()

    def locate(self, name: str, where: str) -> None:
        """Set the address `[domain:]ip:port` of the store with this name; sources that use it move there (P-207).

        Raises AddressError.
        """
        found = self.store_names[name] = address.canonical(where)
        for source in self._sources.values():
            source.receive(Located(name, found))

    def forget_receiver(self, receiver: Receiver) -> None:
        """Stop finding sources for a receiver that was closed."""
        if self._receivers.get(receiver.topic) is not receiver:
            return  # A pattern has met the topic again already.
        del self._receivers[receiver.topic]
        if self._resolver is not None:
            self._resolver.remove_receiver(receiver.topic)

    def store_name(self, store: str) -> str:
        """Return the name of the store at an address, empty if it has none here."""
        return next((name for name, where in self.store_names.items() if where == store), "")

    def lost_source(self, topic: str, place: str, *, others: bool) -> None:
        """Look for the next life of the source that was joined at `place`; `others` of the topic are still joined."""
        if self._resolver is not None:
            self._resolver.lost(topic, place, others=others)

    def no_source(self, topic: str, queries: int) -> None:
        """Report to the receiver of the topic that this many queries found no source."""
        receiver = self._receivers.get(topic)
        if receiver is not None:
            receiver.on_notify(NoSource(topic, queries))

    def met_source(self, topic: str) -> None:
        """Stop looking for a source of the topic, because one announced itself."""
        if self._resolver is not None:
            self._resolver.resolved(topic)

    def unresolved(self) -> list[Wait]:
        """Return the topics whose receivers have no source: seconds and probable reason, the longest wait first."""
        return [] if self._resolver is None else self._resolver.waiting()

    def request_resolution(self, interval: float = 1.0, duration: float = 5.0) -> None:
        """Ask all contexts to advertise and query again, every `interval` seconds for `duration` seconds (T26)."""
        if self._resolver is not None:
            self._resolver.wake(source_discovery.EVERYTHING, interval, duration)

    def ports(self) -> dict[str, list[int]]:
        """Return the ports that this context uses, by protocol, as `stablecast capture` wants them."""
        places = (self.request_address, *(source.place for source in self._sources.values()))
        return {"lbmr": [self.resolver_port] if self.resolver_port else [], **ports_of(places)}

    def _forget_source(self, incarnation: int) -> None:
        source = self._sources.pop(incarnation, None)
        for claim in () if source is None else claims_of(source.config):
            if self._claimed.get(claim) is source:
                del self._claimed[claim]
        if source is not None and self._names is not None:
            self._names.remove(source)
        if source is not None and self._resolver is not None:
            self._resolver.remove_source(*codec.split(incarnation))

    # ---------------------------------------------------------------------------------------------------------- inputs

    def _on_found(self, topic: str, record: SourceRecord) -> None:
        if record.domain:
            request = local(absolute(record.request_address, record.domain), self.pool.routing.domain)
            record = attrs.evolve(record, request_address=request)
        receiver = self._receivers.get(topic)
        if receiver is not None:
            receiver.found(record.address, record.session_id, record.request_address, record.index, record.life)
        elif (wildcard := self._wildcards.matching(topic)) is not None:
            wildcard.found(topic, record)

    def _on_gone(self, topic: str, record: SourceRecord) -> None:
        receiver = self._receivers.get(topic)
        if receiver is not None:
            receiver.withdrawn(record.address, record.session_id, record.index, record.life)
        elif (wildcard := self._wildcards.matching(topic)) is not None:
            wildcard.gone(topic, record)

    def _on_receiver_gone(self, event: ReceiverGone) -> None:
        """Report that a receiver is gone as an event of the context."""
        if self.on_event is not None:
            self.on_event(event)

    def _on_broken(self, event: Reset | Gone) -> None:
        self._hosts.lost(event.address)
        self.reads.on_broken(event.address)
        for source in list(self._sources.values()):
            source.receive(event)
        for receiver in list(self._receivers.values()):
            receiver.on_broken(event)

    # --------------------------------------------------------------------------------------------------- configuration

    def template(self, session_id: int | None) -> ReceiverConfig:
        """Return the configuration of a receiver without a topic."""
        return attrs.evolve(
            self._defaults.receiver,
            reply_to=self.request_address,
            session_id=self.session_id if session_id is None else session_id,
            context=self._context_id,
        )

    def _source_config(self, topic: str, stores: Sequence[str], session_id: int | None) -> SourceConfig:
        session = self.session_id if session_id is None else session_id
        specs = tuple(StoreSpec(name=text) if text in self.store_names else store_spec(text) for text in stores)
        defaults = self._defaults.source
        return attrs.evolve(
            defaults,
            topic=topic,
            incarnation=self._new_life(),
            reply_to=self.request_address,
            stores=specs,
            groups=attrs.evolve(defaults.groups, sizes=(len(specs),)) if specs else defaults.groups,
            session_id=session,
            context=self._context_id,
        )

    def options_of(
        self, scope: str, topic: str, given: Options, session_id: int | None, stores: Sequence[str] = ()
    ) -> Options:
        """Return the options of an endpoint: those of the files, below those given. Raises like `source`."""
        session = self.session_id or None if session_id is None else session_id
        return configured_options.of_endpoint(
            self.configuration, scope, topic, given, stores=stores, session_id=session, binds=self.config.binds
        )

    def _new_life(self) -> messages.Incarnation:
        """Return an incarnation that is unique. Stores rely on the order: later lives have higher indexes."""
        self._next_index = (self._next_index + 1) & 0xFFFF_FFFF
        return codec.join(machine.entropy.bits(32), self._next_index)

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("the context is not open: use it inside 'async with'")
        check_loop(self._loop, "the context")


def _silent(resolver: Combined | None) -> bool:
    return resolver is not None and resolver.silent


def _whence(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stores of a receiver, and its start as bounds, None if it has none. Raises MisuseError."""
    stores, start = given.get("stores") or (), given.get("start")
    check_list("stores", stores)
    bounds = ReadBounds.of(start, None)
    if start is not None and given.get("start_at") is not None:
        raise MisuseError("start and start_at both say where the receiver begins: give one of them")
    return {"stores": stores, "start": None if start is None else bounds}
