"""One portal of a router on sockets: its resolution, the streams it joins, its proxy sources, its request port."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import attrs

from stablecast.client import configured_options, source_discovery
from stablecast.client.transport_sessions import Transports
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.settings import SourceConfig
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver.combined_resolver import Combined
from stablecast.router.config import PortalConfig, UseQueries
from stablecast.router.proxy_stream import ProxyStream
from stablecast.router.unicast_port import MessagePeer
from stablecast.runtime import address, machine, ports, tls
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.origins import Origin
from stablecast.runtime.own_address import OwnAddress
from stablecast.runtime.policy import Right
from stablecast.runtime.request_port import Peer, RequestPort, content
from stablecast.runtime.stream import Item, StreamJoiner
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.codec.routed import Routed, delivered
from stablecast.transports.resolution.records import INSTANCE_BYTES, PORTAL_BYTES, SourceRecord
from stablecast.transports.resolution.srs.settings import ClientConfig
from stablecast.transports.resolution.udp.inputs import AddSource, Say
from stablecast.transports.resolution.udp.inputs import Wake as WakeInput
from stablecast.transports.resolution.udp.record_batches import share
from stablecast.transports.resolution.udp.settings import DomainOptions, RateLimit
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.forwarding import UnicastDrop, way_of
from stablecast.transports.routing.interest import UseTimes
from stablecast.transports.routing.portals import LISTEN_NS, PortalSettings
from stablecast.transports.routing.streams import Streams
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr_extended import USE, DomainRoute, Management, RemoteContexts, TopicRecord

if TYPE_CHECKING:
    from stablecast.resolver.srs_resolver import SrsResolver
    from stablecast.runtime.reliable_stream import ReliableJoiner

ROUTE_HEAD, ROUTE_BYTES = 16, 4
"""Bytes of a record of routes, and of each domain in it."""

MAX_ROUTE_DOMAINS = 250
"""Domains in one record of routes."""

REJOIN_SECONDS = 2.0
"""Wait before a source whose stream could not be joined is reported again."""

Feed = Callable[[ev.RouterInput], None]


@attrs.define
class JoinedSource:
    topic: str
    place: str
    joiner: "StreamJoiner | ReliableJoiner"


@attrs.define
class OpenedProxy:
    """A proxy source that sends: its stream, and its names on this hop."""

    stream: ProxyStream
    names: tuple[int, int]


class PortalContext:
    """One portal; `open` and `close` it. `number` is its place in the router."""

    def __init__(
        self, router: str, number: int, config: PortalConfig, feed: Feed, remark: Callable[[str, bool], None]
    ) -> None:
        """Prepare a portal of a router of this name; its inputs go to `feed`.

        Raises InterfaceError, and errors of its options.
        """
        self.number = number
        self.config = config
        self.resolution = config.resolution
        self._context = config.context
        self.interface = self._choose()
        self.instance = _instance(router, config.name)
        self.address = ""
        self.transports = Transports(self.interface)
        self._feed = feed
        self._remark = remark
        self._joined: dict[bytes, JoinedSource] = {}
        self._joined_of = Counter[str]()
        self._unjoined = 0
        self._proxies: dict[bytes, OpenedProxy] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._retries: dict[bytes, asyncio.TimerHandle] = {}
        self._next_index = machine.entropy.bits(31)
        self._found = Combined(self._on_found, on_gone=self._on_gone)
        self._udp: Resolver | None = None
        self._srs: SrsResolver | None = None
        self._reaches: tuple[int, ...] | None = None
        self._stack = AsyncExitStack()

    @property
    def settings(self) -> PortalSettings:
        config, times = self.config, self.config.times
        over_udp = self._over_udp
        return PortalSettings(
            config.name,
            config.domain,
            (self.instance,),
            config.cost,
            leased=over_udp,
            listen_ns=LISTEN_NS if over_udp else 0,  # A service tells of no other router.
            wake_ns=times.initial.duration_ns,
            wake_every_ns=times.initial.interval_ns,
            routes_ns=times.routes.longest_ns,
            routes_least_ns=times.routes.shortest_ns,
            deletion_ns=config.source_deletion_delay_ns,
            topic_uses=_use_times(times.topic_uses),
            pattern_uses=_use_times(times.pattern_uses),
            use_rate=RateLimit(times.topic_uses.rate.records, times.topic_uses.rate.bits),
            queue_bytes=config.max_queue_bytes,
            window=config.window.size,
            window_step=config.window.increment,
            inbound=config.inbound,
            outbound=config.outbound,
        )

    @property
    def _over_udp(self) -> bool:
        return self.resolution.udp and bool(self.resolution.relays or self.resolution.multicast)

    # ------------------------------------------------------------------------------------------------ life of a portal

    async def open(self) -> None:
        """Open the request port, and begin to resolve.

        Raises PortError, InterfaceError, AddressError, MisuseError, TlsError.
        """
        tls.require_right(Right.ROUTER, "", f"portal '{self.config.name}'")
        listening = self._listen(self.interface)
        self.pool = ConnectionPool(
            partial(self._failed, UnicastDrop.LINK_DOWN), partial(self._failed, UnicastDrop.REFUSED), self.interface
        )
        self.transports.origins = self.pool.origins
        async with AsyncExitStack() as stack:
            stack.callback(self.transports.close)
            port = self._port = RequestPort(listening, self._on_unicast, kind=MessagePeer)
            stack.push_async_callback(port.close)
            await port.start()
            stack.push_async_callback(self.pool.close)
            stack.push_async_callback(self._found.close)
            await self._resolve()
            own = OwnAddress(self.interface, self._choose, self._move, lambda: self._found.silent)
            stack.push_async_callback(own.close)
            own.follow()
            self._stack = stack.pop_all()

    def _choose(self) -> str:
        """Return the address of this host that the domain reaches; this may block. Raises InterfaceError."""
        return configured_options.interface_of(self._context) or source_discovery.interface_of(self.resolution)

    def _listen(self, interface: str) -> machine.Socket:
        """Return a socket for the request port. Raises PortError."""
        context = self._context
        if context.request_port:
            listening = ports.listen(interface, context.request_port, "request_tcp_port")
        else:
            listening = ports.listen_in_range(interface, context.ports)
        self.address = address.join(interface, listening.getsockname()[1])
        return listening

    async def _move(self, interface: str) -> None:
        """Go on at another address of this host: proxies are opened anew there, and sources joined again."""
        await self._port.move(self._listen(interface))
        self.interface = interface
        self.pool.move(interface)
        self._found.move(interface)
        self.transports.move(interface)
        self._reaches = None  # Services get the routes with the new address.
        for source in tuple(self._proxies):
            self._fail(source, "")
        for source, joined in tuple(self._joined.items()):
            self.leave(source)
            self._feed(ev.StreamEnded(source))
            self._look_again(joined.topic, joined.place)

    async def _resolve(self) -> None:
        settings = self.resolution
        listeners = Listeners(
            self._found.found,
            self._found.gone,
            remark=self._remark,
            service=self._on_service,
            interest=self._on_interest,
            overheard=self._on_overheard,
        )
        if self._over_udp:
            if settings.relays or settings.multicast is None:
                self._udp = await Resolver.start(
                    self.interface,
                    settings.relays,
                    listeners,
                    instance=self.instance,
                    config=settings.config,
                    unicast=settings.unicast,
                    ends=settings.ends,
                    router_of=self.config.domain,
                )
            else:
                self._udp = await Resolver.meet(
                    settings.multicast,
                    listeners,
                    instance=self.instance,
                    config=settings.config,
                    router_of=self.config.domain,
                )
            self._found.add([self._udp])
        if settings.services:
            from stablecast.resolver.srs_resolver import SrsResolver  # noqa: PLC0415 - portals over UDP do without it

            self._srs = await SrsResolver.start(
                self.interface,
                settings.services,
                listeners,
                instance=self.instance,
                config=ClientConfig(router=True, domains=DomainOptions(number=self.config.domain)),
                ends=settings.ends,
            )
            self._found.add([self._srs])

    @property
    def saying(self) -> bool:
        """Return whether advertisements still wait to leave."""
        return self._udp is not None and self._udp.saying

    async def close_proxies(self) -> None:
        """End all proxy sources with final advertisements, and wait until what was sent has left."""
        for source in tuple(self._proxies):
            self.close_proxy(source)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for source in (*self._joined, *self._retries):
            self.leave(source)
        await self.close_proxies()
        await self._stack.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    # ------------------------------------------------------------------------------------------------------ resolution

    def _on_overheard(self, packet: lbmr.AnyPacket | lbmr_extended.Packet) -> None:
        self._feed(ev.Overheard(self.number, packet))

    def _on_interest(self, query: lbmr.Query, on: bool) -> None:
        self._feed(ev.InterestTold(self.number, query, on))

    def _on_service(self, service: str, up: bool, reason: str) -> None:
        """Log a service that comes or goes: without it a portal is deaf (R-254)."""
        text = f"portal '{self.config.name}': service {service} "
        self._remark(
            text + ("is connected" if up else f"is not connected, and its domain is not heard: {reason}"), not up
        )

    def _on_found(self, topic: str, record: SourceRecord) -> None:
        self._feed(ev.SourceFound(self.number, topic, record))

    def _on_gone(self, topic: str, record: SourceRecord) -> None:
        self._feed(ev.SourceGone(self.number, topic, record))

    def want(self, effect: fx.Want) -> None:
        """Look for sources, or no longer. Raises MisuseError."""
        match effect.query:
            case lbmr.TopicQuery(name):
                (self._found.add_receiver if effect.on else self._found.remove_receiver)(name)
            case lbmr.WildcardQuery(kind, pattern):
                if effect.on:
                    self._found.add_pattern(pattern, kind)
                else:
                    self._found.remove_pattern(pattern)

    def wake(self, effect: fx.Wake) -> None:
        """Ask the contexts of the domain to repeat what they have stopped sending."""
        self._found.feed_names(WakeInput(effect.flags, effect.interval, effect.duration))

    def ask_use(self, effect: fx.AskUse) -> None:
        """Ask the domain who uses these topics and patterns."""
        records = (TopicRecord.of(query, USE) for query in effect.queries)
        most = self.resolution.config.datagrams.most_sent
        groups = share(((record, record.octets) for record in records), most)
        self._found.feed_names(Say(tuple(Management(records=group) for group in groups)))

    def tell_name(self, effect: fx.TellName) -> None:
        """Tell the domain where a store in another one is, or ask it for one."""
        self._found.feed_names(Say((RemoteContexts.of(effect.record),)))

    def announce(self, effect: fx.Announce) -> None:
        """Tell the domain which others are reached here."""
        if self._srs is not None and self._reaches != effect.domains:
            self._reaches = effect.domains  # A service keeps them; only changes are told.
            self._srs.reach(effect.domains, self.address)
        host, port = address.parse(self.address)
        domains = effect.domains[:MAX_ROUTE_DOMAINS]
        length = ROUTE_HEAD + ROUTE_BYTES * len(domains)
        route = DomainRoute(count=len(domains), address=host, port=port, length=length, domains=domains)
        self._found.feed_names(Say((route,)))

    # --------------------------------------------------------------------------------------------------------- streams

    def join(self, effect: fx.JoinSource) -> None:
        """Join the stream of a source. Raises PortError, AddressError, TlsError."""
        source, record = effect.source, effect.record
        self._stop_retry(source)

        def items(_: int, found: list[Item]) -> None:
            self._feed(ev.ItemsArrived(source, tuple(found)))

        def lost(one: Lost) -> None:
            if codec.split(one.session)[1] == record.index:
                self._feed(ev.NumbersLost(source, one.wire_first, one.count))

        def ended(gone: bool) -> None:
            if not gone:
                return
            # A stream that was left for another place may end later, and says nothing of that place.
            if source in self._joined and self._joined[source].joiner is joiner:
                self._forget(source)
                self._feed(ev.StreamEnded(source))
            self._look_again(effect.topic, record.address)

        receiving = self.config.receiving(effect.topic)
        # Receivers beyond the router see its proxies, so nobody but the portal can tell that a host is gone.
        joiner = self.transports.joiner(
            record.address, record.session_id, receiving, effect.topic, items, lost, ended, patient=False
        )
        self._joined[source] = JoinedSource(effect.topic, record.address, joiner)
        self._joined_of[effect.topic] += 1
        joiner.claim(record.index)
        self._found.resolved(effect.topic)

    def rejoin(self, effect: fx.JoinSource, error: StablecastError) -> None:
        """Report a source again later: descriptors may be scarce just now, and the resolver reports a source once."""
        self._unjoined += 1
        if self._unjoined.bit_count() == 1:
            what = f"portal '{self.config.name}' cannot join the source of '{effect.topic}': {error}"
            self._remark(f"{what} ({self._unjoined} so far)", True)
        found = ev.SourceFound(self.number, effect.topic, effect.record)
        self._retries[effect.source] = asyncio.get_running_loop().call_later(REJOIN_SECONDS, self._feed, found)

    def _look_again(self, topic: str, place: str) -> None:
        """Report a source again when it is found again, like a receiver that lost its stream."""
        self._found.lost(topic, place, others=topic in self._joined_of)

    def _forget(self, source: bytes) -> JoinedSource | None:
        joined = self._joined.pop(source, None)
        if joined is not None:
            self._joined_of[joined.topic] -= 1
            if not self._joined_of[joined.topic]:
                del self._joined_of[joined.topic]
        return joined

    def _stop_retry(self, source: bytes) -> None:
        retry = self._retries.pop(source, None)
        if retry is not None:
            retry.cancel()

    def leave(self, source: bytes) -> None:
        self._stop_retry(source)
        joined = self._forget(source)
        if joined is not None:
            self._spawn(joined.joiner.close())

    def open_proxy(self, effect: fx.OpenProxy, streams: Streams) -> None:
        """Open a proxy source, and advertise it in the next turn of the loop, when joiners are let in."""
        self._next_index = (self._next_index + 1) & 0xFFFF_FFFF
        source = effect.source
        config = SourceConfig(effect.topic, codec.join(machine.entropy.bits(32), self._next_index), "", "")
        prepared = self.transports.prepare(config, self.config.transport(effect.topic))
        proxy = ProxyStream(
            prepared.config.transport,
            partial(streams.greeting, self.number, source),
            partial(streams.standing, self.number, source),
            lambda held: self._feed(ev.ProxyHeld(self.number, source, held)),
            lambda why: self._fail(source, why),
        )
        names = codec.split(prepared.config.incarnation)
        try:
            proxy.stream = prepared.open(proxy)
        except BaseException:
            prepared.cancel()
            raise
        opened = self._proxies[source] = OpenedProxy(proxy, names)
        self._spawn(self._begin(effect, opened))

    async def _begin(self, effect: fx.OpenProxy, opened: OpenedProxy) -> None:
        stream, (session, index), record = opened.stream, opened.names, effect.record
        assert stream.stream is not None
        try:
            await stream.stream.start()
            if self._proxies.get(effect.source) is not opened:
                return  # It was closed meanwhile.
            self._feed(ev.ProxyOpened(self.number, effect.source, session, index, stream.most_bytes))
            self._found.add_source(
                AddSource(
                    effect.topic,
                    stream.place,
                    session,
                    index,
                    record.request_address,
                    record.persistent,
                    attrs.evolve(self.resolution.config.advertise, at_end=True),
                    effect.source,
                    record.cost,
                    record.hops,
                    record.domain,
                )
            )
        except (StablecastError, OSError) as error:
            self._fail(effect.source, str(error))

    def _fail(self, source: bytes, why: str) -> None:
        self.close_proxy(source)
        self._feed(ev.ProxyFailed(self.number, source, why))

    def close_proxy(self, source: bytes) -> None:
        """End a proxy source with a final advertisement."""
        opened = self._proxies.pop(source, None)
        if opened is not None:
            self._found.remove_source(*opened.names)
            assert opened.stream.stream is not None
            self._spawn(opened.stream.stream.close())

    def forward(self, effect: fx.Forward) -> None:
        """Send messages on the stream of a proxy. Raises what the transport raises."""
        opened = self._proxies.get(effect.source)
        if opened is not None and opened.stream.stream is not None:
            opened.stream.stream.write(effect.octets)

    # --------------------------------------------------------------------------------------------------------- unicast

    def _on_unicast(self, items: list[Item], peer: Peer) -> None:
        messages: list[Any] = items  # `MessagePeer` keeps bytes
        for octets in messages:
            way = way_of(octets)
            if not isinstance(way, UnicastDrop) and not (
                self.pool.origins.agree(peer.origin, Origin(way.origin.ip), way) and self._may_pass(octets, peer)
            ):
                way = UnicastDrop.FOREIGN
            elif isinstance(way, Routed) and isinstance(peer, MessagePeer):
                peer.note(way.destination)
            self._feed(ev.UnicastArrived(self.number, octets, way))

    def _may_pass(self, octets: bytes, peer: Peer) -> bool:
        """Return whether the policy lets a peer say this: in the other domain only this router is known."""
        if self.pool.origins.policy is None:
            return True
        try:
            items = StreamDecoder(series=True).feed(octets)
            found = [content(delivered(one)) for one in items if not isinstance(one, Run)]
        except WireError:
            return False
        return all(self.pool.origins.may_say(peer.origin, one, getattr(one, "topic", None)) for one in found)

    def send(self, effect: fx.SendUnicast) -> None:
        """Send one message to a request port of the domain, unless too much waits for it."""
        if self.pool.room(effect.address, len(effect.octets)):
            self.pool.send(effect.address, effect.octets)
        else:
            self._failed(UnicastDrop.BLOCKING, effect.address)

    def disconnect(self, effect: fx.Disconnect) -> None:
        """End the connections that carried messages to a domain, or to an address there."""
        self._port.disconnect(
            lambda peer: isinstance(peer, MessagePeer) and peer.carried(effect.domain, effect.address)
        )

    def _failed(self, reason: UnicastDrop, address: str) -> None:
        self._feed(ev.UnicastFailed(self.number, address, reason))


def _instance(router: str, portal: str) -> bytes:
    """Return a name for the context of a portal; its beginning tells a restarted router from a second one."""
    lasting = sha256(f"{router}\0{portal}".encode()).digest()[:PORTAL_BYTES]
    return lasting + machine.entropy.octets(INSTANCE_BYTES - PORTAL_BYTES)


def _use_times(times: UseQueries) -> UseTimes:
    return UseTimes(times.interval_ns, times.timeout_ns, times.tries)
