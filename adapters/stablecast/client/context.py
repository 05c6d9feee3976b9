"""A context: one request port, one pool of connections, one resolver, shared by its sources and receivers."""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import attrs

from stablecast.client import source_discovery
from stablecast.client.advice import advise_of_options, advise_of_relations, advise_of_transport, transport_of
from stablecast.client.errors import Closed
from stablecast.client.message import Message
from stablecast.client.receiver import Receiver, RegIdRequest
from stablecast.client.reg_id_claims import check_claims
from stablecast.client.request_routes import audience
from stablecast.client.source import Source
from stablecast.client.source_discovery import Advertise, OnEvent
from stablecast.client.transport_sessions import Transports, checked
from stablecast.config import profiles
from stablecast.config.option_names import SAFE
from stablecast.config.options import ConfigT, Value, apply
from stablecast.config.resolution_options import ResolutionSettings, own
from stablecast.config.stores import store_spec
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import ConfigError, MisuseError
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.inputs import Arrived, Departed, Gone, Located, Reset
from stablecast.core.protocol.messages import Incarnation, ReceiverAlive
from stablecast.core.protocol.messages import Message as ControlMessage
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.evidence.trace import TraceError
from stablecast.resolver.combined_resolver import Combined, Wait
from stablecast.runtime import address, ports
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.request_port import Peer, RequestPort
from stablecast.runtime.source_strings import ports_of
from stablecast.runtime.stream import Item
from stablecast.runtime.wakeup_latency import courtesy, short_slices
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, Series
from stablecast.transports.resolution.records import SourceRecord, check_topic
from stablecast.transports.wire.errors import WireError

REGISTRATION_SECONDS = 30.0
"""How long `source` waits for enough stores unless told otherwise."""


class Context:
    """What sources and receivers share, for use inside `async with`; leaving closes them and leaves nothing running."""

    def __init__(
        self,
        *,
        resolver: Sequence[str] = (),
        resolver_service: Sequence[str] = (),
        resolution: ResolutionSettings | None = None,
        interface: str = "127.0.0.1",
        session_id: int = 0,
        store_names: Mapping[str, str] | None = None,
        profile: str = SAFE,
        trace: Path | None = None,
    ) -> None:
        """Describe a context.

        Args:
            resolver: Addresses `ip:port` of the lbmrd relays through which sources and receivers find each other.
            resolver_service: Addresses `host:port` of the services (SRS) that do the same over TCP, instead or as well.
            resolution: More about both, and multicast: see `stablecast.client.source_discovery`.
            interface: The address of this host that peers connect to.
            session_id: The session id of sources and receivers that name none (P-243).
            store_names: Where stores are that sources know by name, `ip:port` each (P-203); see `locate`.
            profile: Which defaults options have: `safe`, or those documented for `5.3` or `6.17`.
            trace: A directory for traces; STABLECAST_TRACE in the environment means the same.

        Raises:
            AddressError: An address that is none.
            OptionError: There is no such profile.
        """
        self.interface = address.check_ip(interface)
        self.resolution = source_discovery.plan(resolution, resolver, resolver_service)
        self.resolver_port = 0
        self._defaults = profiles.profile(profile)
        self.session_id = session_id
        self.store_names = {name: address.join(*address.parse(at)) for name, at in (store_names or {}).items()}
        self.trace = trace
        self.prompt = (
            True  # False before it is used: the kernel is asked for nothing (`stablecast.runtime.wakeup_latency`)
        )
        self._courtesy = courtesy()
        self.oddities: Counter[str] = Counter()
        self.request_address = ""
        self._context_id = secrets.randbits(64)
        self._next_index = secrets.randbits(31)
        self.transports = Transports(self.interface)
        self._sources: dict[int, Source] = {}
        self._receivers: dict[str, Receiver] = {}
        self._resolver: Combined | None = None
        self._open = False
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> "Context":
        """Open the request port and meet the resolver. Raises PortError, InterfaceError."""
        if self._open:
            raise MisuseError("the context is open already: make another Context")
        listening = ports.listen_in_range(self.interface, ports.REQUEST_PORTS)
        self.request_address = address.join(self.interface, listening.getsockname()[1])
        self.pool = ConnectionPool(
            lambda peer: self._on_broken(Reset(peer)), lambda peer: self._on_broken(Gone(peer)), self.interface
        )
        async with AsyncExitStack() as stack:
            stack.callback(self.transports.close)
            port = RequestPort(listening, self._on_items, self._on_left)
            stack.push_async_callback(port.close)
            await port.start()
            stack.push_async_callback(self.pool.close)
            self._resolver = await source_discovery.start(self, self._on_found, self._context_id.to_bytes(8), stack)
            self._closing = stack.pop_all()
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Close receivers and sources, let their last words out, and hang up."""
        if not self._open:
            return
        self._open = False
        async with self._closing as stack:
            for source in self._sources.values():
                stack.push_async_callback(source.close)
            for receiver in self._receivers.values():
                stack.push_async_callback(receiver.close)

    async def source(
        self,
        topic: str,
        *,
        stores: Sequence[str] = (),
        session_id: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        within: float | None = REGISTRATION_SECONDS,
        wait: bool = True,
        options: Mapping[str, Value] | None = None,
    ) -> Source:
        """Make a source and wait until it may send.

        Args:
            topic: Its topic.
            stores: `ip:port[:regid]` or the name of each store (P-212); none makes a streaming source.
            session_id: Stands for the RegIDs; None takes the context's, 0 means none.
            on_event: Called with every event of the source (`stablecast.core.protocol.events`).
            within: Seconds to wait for enough stores; None waits for ever.
            wait: False returns at once; `await source.registered()` waits.
            options: Documented options by name, for example `{"ume_flight_size": 2000}`.

        Raises:
            RegistrationFailed: Not enough stores granted in time.
            ConfigError: Options that do not go together.
            MisuseError: A topic that cannot be written on the wire, one source too many, or a source that lives in this
                context has the same RegIDs: the same session id for this topic, or a RegID at the same store.
            OptionError, AddressError, StoreListError: A wrong option or address.
            PortError, TraceError: No port to listen at, no place for the trace.
        """
        self._check_open()
        check_topic(topic)
        advertise, options = own(self.resolution.config.advertise, options or {})
        transport, options = transport_of(options, self._defaults.transport)
        config = self._with("source", self._source_config(topic, stores, session_id), options)
        advise_of_transport(transport, self.resolution)
        advise_of_relations(config)
        source = await self._start(config, on_event, advertise, transport)
        if wait:
            try:
                await source.registered(within)
            except BaseException:
                await source.close()
                raise
        return source

    async def host(self, config: SourceConfig, on_event: OnEvent | None = None) -> Source:
        """Make a source of this configuration; its life, context and addresses are filled in. Raises like `source`."""
        self._check_open()
        config = attrs.evolve(
            config, incarnation=self._new_life(), context=self._context_id, reply_to=self.request_address
        )
        return await self._start(config, on_event, None, TransportConfig())

    async def _start(
        self, config: SourceConfig, on_event: OnEvent | None, advertise: Advertise, transport: TransportConfig
    ) -> Source:
        """A source that listens, is found, and registers."""
        check_claims(config, [source.config for source in self._sources.values() if not source.over])
        berth = self.transports.berth(config, transport)
        config = berth.config
        try:
            source = Source(config, self.pool, on_event, self.trace)
        except (TraceError, ConfigError):
            berth.give_up()
            raise
        source.courtesy = self._courtesy if self.prompt else None
        self._sources[config.incarnation] = source
        source.on_close = lambda: self._forget_source(config.incarnation)
        try:
            source.stream = berth.stream(source)
            await source.start(source.stream)
            source_discovery.locate(self._resolver, source, self.store_names)
            source_discovery.announce(self._resolver, config, source.place, advertise)
        except BaseException:
            await source.close()
            raise
        return source

    def receiver(
        self,
        topic: str,
        *,
        source: str | None = None,
        session_id: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        reg_id: Callable[[RegIdRequest], int] | None = None,
        start_at: Callable[[AskLow], int] | None = None,
        on_message: Callable[[Message], object] | None = None,
        options: Mapping[str, Value] | None = None,
    ) -> Receiver:
        """Make a receiver of a topic.

        Args:
            topic: Its topic.
            source: Where the source's data is joined, `ip:port` or a source string; None asks the resolver.
            session_id: Stands for the RegIDs; None takes the context's, 0 means none.
            on_event: Called with every event of the receiver.
            reg_id: Asked for the RegID at each store when there is no session id; 0 lets the store choose (P-249). If
                it raises, the receiver does not register with that store; iterating raises RegistrationFailed.
            start_at: Asked for the first number to deliver (P-421); returning `low` unchanged means no wish. If it
                raises, nothing is delivered; iterating raises RegistrationFailed.
            on_message: Called with every message as it comes, instead of iterating: quicker. A message is consumed
                when the call has returned. If it raises, no more messages come and none of these is acknowledged.
            options: Documented options by name, for example `{"ume_use_ack_batching": 0}`.

        Raises:
            MisuseError: There is neither a resolver nor a source address, or the context has a receiver of this topic,
                or the topic cannot be written on the wire.
            OptionError, AddressError: A wrong option or address.
        """
        self._check_open()
        check_topic(topic)
        if topic in self._receivers:
            raise MisuseError(
                f"this context has a receiver of '{topic}': use that one, or make another Context with a session id of "
                "its own"
            )
        if source is None and self._resolver is None:
            raise MisuseError("nothing says where sources are: give Context(resolver=...) or receiver(source=...)")
        template = attrs.evolve(
            self._defaults.receiver,
            topic=topic,
            reply_to=self.request_address,
            session_id=self.session_id if session_id is None else session_id,
            context=self._context_id,
        )
        where = None if source is None else checked(source)
        query, options = own(self.resolution.config.query, options or {})
        transport, options = transport_of(options, self._defaults.transport)
        receiver = Receiver(self, self._with("receiver", template, options), on_event, reg_id, start_at, on_message)
        receiver.transport = transport
        if self.prompt and not self._receivers:
            short_slices()
        self._receivers[topic] = receiver
        if where is None:
            assert self._resolver is not None
            self._resolver.add_receiver(topic, query)
        else:
            receiver.join(where)
        return receiver

    def locate(self, name: str, where: str) -> None:
        """The store of this name is at `where` (`ip:port`) now; sources that know it so move there (P-207).

        Raises AddressError.
        """
        found = self.store_names[name] = address.join(*address.parse(where))
        for source in self._sources.values():
            source.receive(Located(name, found))

    # What sources and receivers tell.

    def forget_receiver(self, receiver: Receiver) -> None:
        """It was closed."""
        self._receivers.pop(receiver.topic, None)
        if self._resolver is not None:
            self._resolver.remove_receiver(receiver.topic)

    def lost_source(self, topic: str, place: str, *, others: bool) -> None:
        """The life of a source that was joined at `place` is over: look for the next; `others` of its topic live."""
        if self._resolver is None:
            return
        if others:
            self._resolver.lost(topic, place)
        else:
            self._resolver.unresolved(topic)

    def met_source(self, topic: str) -> None:
        """A life of a source greeted: no need to ask for one."""
        if self._resolver is not None:
            self._resolver.resolved(topic)

    def unresolved(self) -> list[Wait]:
        """The topics whose receivers wait for a source: how long, and why as far as is known; longest first."""
        return [] if self._resolver is None else self._resolver.waiting()

    def request_resolution(self, interval: float = 1.0, duration: float = 5.0) -> None:
        """Ask all contexts to speak again of what went quiet, every `interval` for `duration` seconds (T26)."""
        if self._resolver is not None:
            self._resolver.wake(source_discovery.EVERYTHING, interval, duration)

    def ports(self) -> dict[str, list[int]]:
        """The ports that this context uses, by protocol: for captures."""
        places = (self.request_address, *(source.place for source in self._sources.values()))
        return {"lbmr": [self.resolver_port] if self.resolver_port else [], **ports_of(places)}

    def _forget_source(self, incarnation: int) -> None:
        source = self._sources.pop(incarnation, None)
        if source is not None and self._resolver is not None:
            self._resolver.remove_source(*codec.split(incarnation))

    # What arrives.

    def _on_found(self, topic: str, record: SourceRecord) -> None:
        receiver = self._receivers.get(topic)
        if receiver is not None:
            receiver.found(record.address, record.session_id, record.request_address)

    def _on_left(self, peer: Peer) -> None:
        """A connection ended: the receivers that kept in touch over it are gone (P-338)."""
        for context in peer.contexts:
            for source in list(self._sources.values()):
                source.receive(Departed(context))

    def _on_items(self, items: list[Item], peer: Peer) -> None:
        recovered: dict[int, list[codec.Recovered | codec.RecoveredRun]] = {}
        for item in items:
            if isinstance(item, Run):
                self.oddities["data-on-request-port"] += 1
                continue
            try:
                if item.kind in codec.RECOVERED_KINDS:
                    again = codec.decode_series(item) if isinstance(item, Series) else codec.decode_recovered(item)
                    recovered.setdefault(again.session, []).append(again)
                else:
                    message = codec.decode(item)
                    if isinstance(message, ReceiverAlive):
                        peer.alive(message.context)
                    self._route(message)
            except WireError:
                self.oddities["malformed-on-request-port"] += 1
        for incarnation, messages in recovered.items():
            for receiver in self._receivers.values():
                receiver.on_recovered(incarnation, messages)

    def _route(self, message: ControlMessage) -> None:
        to_source, to_receiver = audience(message)
        source = self._sources.get(message.incarnation)
        if to_source and source is not None:
            source.receive(Arrived(message))
        if to_receiver:
            for receiver in self._receivers.values():
                receiver.on_control(message)

    def _on_broken(self, event: Reset | Gone) -> None:
        for source in list(self._sources.values()):
            source.receive(event)
        for receiver in list(self._receivers.values()):
            receiver.on_broken(event)

    # Helpers.

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

    def _with(self, scope: str, config: ConfigT, options: Mapping[str, Value] | None) -> ConfigT:
        """The configuration with these options. Raises OptionError, AddressError, StoreListError."""
        advise_of_options(scope, options or {})
        return apply(scope, config, options or {})

    def _new_life(self) -> Incarnation:
        """The life of a source that nobody else has. Stores rely on the order: later lives have higher indexes."""
        self._next_index = (self._next_index + 1) & 0xFFFF_FFFF
        return codec.join(secrets.randbits(32), self._next_index)

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("the context is not open: use it inside 'async with'")
