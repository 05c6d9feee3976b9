"""The resolution of one context over UDP: source side, receiver side, names of stores, and the carrier.

Relays forward to all other contexts, and not back. So each side of the context hears the other side directly, and own
datagrams that return from a multicast group are dropped. A context with nothing to resolve sends and receives nothing.
It joins the group, or sends keepalives to relays, from its first source, receiver or name on (T-215).

The context of a router's portal takes part from the begin. It says in each packet that it is a router's, and which
domain this is. It reports all that others say, and does not resolve its own sources: they are those of other domains.
As soon as a context hears a router, it takes leave of topics and patterns that it no longer wants (R-038), and it
answers whether it still uses them (R-031).
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.transports.resolution.records import ENDED_TTL, check_instance, proof_of
from stablecast.transports.resolution.udp import effects, inputs
from stablecast.transports.resolution.udp.advertiser import FINALS, Advertiser
from stablecast.transports.resolution.udp.carriers import Carrier, Relays
from stablecast.transports.resolution.udp.known_domains import KnownDomains
from stablecast.transports.resolution.udp.phases import Phase
from stablecast.transports.resolution.udp.querier import Querier
from stablecast.transports.resolution.udp.record_batches import share
from stablecast.transports.resolution.udp.settings import SAFE, ResolutionConfig
from stablecast.transports.resolution.udp.store_names import StoreNames
from stablecast.transports.wire import lbmr, lbmr_extended
from stablecast.transports.wire.errors import WireError

_REQUEST = lbmr.ResolutionRequest


@attrs.define
class ContextCounters:
    """Counters of a context, in datagrams.

    Attributes:
        own: Own datagrams that came back.
        foreign: Datagrams of kinds without meaning here.
        malformed: Datagrams with malformed parts; their other records were used.
        unusable: Advertisements of wanted topics on transports that receivers cannot join.
    """

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    own: int = 0
    foreign: int = 0
    malformed: int = 0
    unknown_sender: int = 0
    oversized: int = 0
    unusable: int = 0


@attrs.define
class ResolutionContext:
    """Resolution machine of one context.

    Attributes:
        instance: The 8 bytes that name the context.
        carrier: The carrier of its datagrams.
        router: Whether it is the context of a router's portal.
        domains: The domain of its resolution, by a router's records (T-203), and the routes to others.
        wakes: Requests that wake other contexts: the next one, the last one, and their content.
    """

    instance: bytes
    carrier: Carrier
    config: ResolutionConfig
    advertiser: Advertiser
    querier: Querier
    names: StoreNames
    router: bool = False
    domains: KnownDomains = attrs.field(factory=KnownDomains)
    trailer: tuple[lbmr.PacketOption, ...] = attrs.field(init=False)
    wakes: list[tuple[int, int, inputs.Wake]] = attrs.field(factory=list, init=False)
    counted: ContextCounters = attrs.field(factory=ContextCounters, init=False)
    outbox: list[effects.ContextEffect] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._write_trailer()

    def _write_trailer(self) -> None:
        kind = lbmr.SourceType.GATEWAY if self.router else lbmr.SourceType.APPLICATION
        self.trailer = lbmr.standard_options(self.instance, kind, domain=self.domains.told)

    @property
    def domain(self) -> int:
        """Return the number of this context's domain; 0 if it is not known."""
        return self.domains.number

    @property
    def routed(self) -> bool:
        """Return whether a router was heard."""
        return self.domains.router_at is not None

    @classmethod
    def create(
        cls,
        instance: bytes,
        carrier: Carrier,
        config: ResolutionConfig = SAFE,
        *,
        router: bool = False,
        domain: int = 0,
    ) -> "ResolutionContext":
        """Return the machine of a context that is named by 8 bytes, or of a router's portal in `domain`.

        Raises MisuseError for another length.
        """
        check_instance(instance)
        return cls(
            instance,
            carrier,
            config,
            Advertiser(instance, config.advertise, config.limits, config.datagrams.most_sent, FINALS if router else 1),
            Querier(config.query, config.patterns, config.limits, config.cache, config.datagrams.most_sent),
            StoreNames(instance, config.names),
            router,
            KnownDomains(attrs.evolve(config.domains, number=domain) if domain else config.domains),
        )

    @classmethod
    def over_relays(
        cls,
        instance: bytes,
        relays: Sequence[str],
        config: ResolutionConfig = SAFE,
        *,
        router: bool = False,
        domain: int = 0,
    ) -> "ResolutionContext":
        """Return the machine of a context that uses the relays at these addresses.

        Raises:
            MisuseError: If there is no relay, or too many, or `instance` has another length.
        """
        check_instance(instance)
        seeded = Seeded(int.from_bytes(instance))
        carrier = Relays(tuple(dict.fromkeys(relays)), config.relays, seeded)
        return cls.create(instance, carrier, config, router=router, domain=domain)

    def receive(self, event: inputs.ContextInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If a source, topic, pattern or name cannot be sent on the wire, exists already, or exceeds a
                bound.
        """
        match event:
            case inputs.DatagramArrived():
                self._on_datagram(event, now)
            case inputs.AddSource():
                self.advertiser.receive(self.domains.of_source(event), now)
            case inputs.RemoveSource():
                self._remove_source(event, now)
            case inputs.AddName() | inputs.AskName() | inputs.ForgetName() | inputs.NameAlive():
                self.names.receive(event, now)
            case inputs.Wake():
                self.wakes.append((now, now + event.duration, event))
            case inputs.FollowRoutes():
                self.domains.followed = True
            case inputs.Say(bodies):
                self._take_part(now)
                self._say(bodies, now)
            case inputs.RemoveReceiver() | inputs.RemovePattern():
                self._take_leave(event, now)
                self.querier.receive(event, now)
            case _:
                self.querier.receive(event, now)  # It asserts that all inputs are handled.
        self._take_part(now)
        self._wake_others(now)
        self._forward(now)

    def handle_timeout(self, now: int) -> None:
        """Perform what is due in carrier, sides and names."""
        self.carrier.handle_timeout(now)
        self.advertiser.handle_timeout(now)
        self.querier.handle_timeout(now)
        self.names.handle_timeout(now)
        told = self.domains.told
        self.domains.handle_timeout(now)
        if self.domains.told != told:
            self._write_trailer()
        self._wake_others(now)
        self._forward(now)
        self._take_part(now)

    def next_timeout(self) -> int | None:
        first = soonest(
            self.carrier.next(),
            self.advertiser.next_timeout(),
            self.querier.next_timeout(),
            self.names.next_timeout(),
            self.domains.next_timeout(),
        )
        return soonest(first, *(due for due, _, _ in self.wakes)) if self.wakes else first

    def take_effects(self) -> list[effects.ContextEffect]:
        taken, self.outbox = self.outbox, []
        return taken

    def counters(self) -> dict[str, int]:
        cache = self.querier.cache
        return {
            **attrs.asdict(attrs.evolve(self.counted, unusable=self.querier.unusable)),
            "cached": len(cache),
            "cache_dropped": cache.dropped,
            "cache_expired": cache.expired,
            "unresolved": sum(interest.since is not None for interest in self.querier.interests.values()),
        }

    def why(self, topic: str) -> str:
        """Return why a wanted topic may have no live session, as far as is known here."""
        interest = self.querier.interests.get(topic)
        if interest is None:
            return "no receiver wants it"
        if interest.known:
            return f"{len(interest.known)} sources are known, none could be joined"
        if interest.missed:
            return f"the source at {interest.missed} was found, and refuses connections or is gone"
        if complaint := self.carrier.complaint():
            return complaint
        if self.querier.rounds.phase(topic) is Phase.QUIESCENT:
            return "resolution is quiescent: queries have stopped"
        return f"{interest.unanswered} queries, no source answered"

    # Input from the network.

    def _on_datagram(self, event: inputs.DatagramArrived, now: int) -> None:
        self.counted.received += 1
        self.counted.received_bytes += len(event.data)
        if not self.carrier.accepts(event.sender):
            self.counted.unknown_sender += 1
            return
        if len(event.data) > self.config.datagrams.most_received:
            self._on_oversized(event)
            return
        try:
            reading = lbmr.decode_partly(event.data)
        except WireError:
            if lbmr.is_foreign(event.data):
                self._on_foreign(event, now)
            else:
                self.counted.malformed += 1
            return
        # Multicast returns own datagrams, and each side has heard the other side already.
        if self._is_own(reading.packet.options):
            self.counted.own += 1
            return
        self.counted.malformed += reading.fault is not None
        self.carrier.on_heard(event.sender, now)
        if proof := proof_of(reading.packet):
            self.carrier.on_answer(event.sender, proof)
        self._on_packet(reading.packet, now)

    def _on_foreign(self, event: inputs.DatagramArrived, now: int) -> None:
        """Handle a packet of the kinds that only routers and their neighbours send."""
        try:
            packet = lbmr_extended.decode(event.data)
        except WireError:
            self.counted.foreign += 1
            return
        if self._is_own(packet.options):
            self.counted.own += 1
            return
        self.carrier.on_heard(event.sender, now)
        by_router = self._learn_domain(packet.options, now)
        if self.router:
            self.outbox.append(effects.Overheard(packet))
            return
        match packet.body:
            case lbmr_extended.Management(records=records):
                self._answer_use(records, now)
            case lbmr_extended.DomainRoute(domains=domains, address=host, port=port) if by_router:
                self.domains.route(domains, f"{host}:{port}", now)
            case lbmr_extended.RemoteContexts(records=remote) if by_router:
                for record in remote:
                    self.names.heard_of(record, self.domains.number, now)
            case _:
                self.counted.foreign += 1

    def _on_packet(self, packet: lbmr.AnyPacket, now: int) -> None:
        self._learn_domain(packet.options, now)
        if self.router:
            self.outbox.append(effects.Overheard(packet))
        match packet:
            case lbmr.Packet():
                self.advertiser.receive(inputs.RecordsReceived(packet), now)
                self.querier.receive(inputs.RecordsReceived(packet), now)
            case lbmr.ContextInfo():
                self.names.heard(packet, now)
            case lbmr.ResolutionRequest(flags=flags):
                self._wake_up(flags, now)
            case _:
                assert_never(packet)

    def _on_oversized(self, event: inputs.DatagramArrived) -> None:
        self.counted.oversized += 1
        if self.counted.oversized == 1:
            most = self.config.datagrams.most_received
            fault = f"a datagram of {len(event.data)} bytes from {event.sender} is dropped, because it exceeds {most}"
            self.outbox.append(
                effects.Remark(f"{fault}: set the same resolver_datagram_max_size everywhere", warning=True)
            )

    def _is_own(self, trailer: Iterable[lbmr.PacketOption]) -> bool:
        return any(isinstance(option, lbmr.SourceId) and option.source_id == self.instance for option in trailer)

    def _learn_domain(self, trailer: Iterable[lbmr.PacketOption], now: int) -> bool:
        """Learn the domain of a sender, and return whether it is a router."""
        domain, router = 0, False
        for option in trailer:
            match option:
                case lbmr.LocalDomain():
                    domain = option.domain
                case lbmr.SourceType():
                    router = option.source_type == lbmr.SourceType.GATEWAY
        if domain or router:
            told = self.domains.told
            self.domains.heard(domain, router, now)
            if self.domains.told != told:
                self._write_trailer()
        return router

    def _wake_up(self, flags: int, now: int) -> None:
        if flags & _REQUEST.ADVERTISEMENTS:
            self.advertiser.wake(now)
        topics, patterns = bool(flags & _REQUEST.QUERIES), bool(flags & _REQUEST.PATTERN_QUERIES)
        self.querier.wake(now, topics=topics, patterns=patterns)
        queries, names = bool(flags & _REQUEST.NAME_QUERIES), bool(flags & _REQUEST.NAMES)
        self.names.wake(now, queries=queries, names=names)

    # Output to the network.

    def _take_part(self, now: int) -> None:
        """Start or stop the carrier, depending on whether there is something to resolve."""
        forced = self.config.relays.force_alive or self.config.domains.number or self.domains.followed
        busy = bool(self.router or self.advertiser or self.querier or self.names or self.wakes or forced)
        if busy and not self.carrier.running:
            self.carrier.start(now)
            self.outbox.append(effects.Listen(on=True))
        elif not busy and self.carrier.running and not self.advertiser.singles:
            self._forward(now)
            self.carrier.stop()
            self.outbox.append(effects.Listen(on=False))
        kind = lbmr.PacketKind.SOURCE_ALIVE if self.advertiser else lbmr.PacketKind.RECEIVER_ALIVE
        for address in self.carrier.take_keepalives(now):
            proof = self.carrier.proof(address)
            trailer = self.trailer if proof is None else (*self.trailer, lbmr.SourceId(source_id=proof))
            self._send(address, lbmr.Packet(kind, (), (), trailer), now)
        self.outbox += self.carrier.take_remarks()

    def _remove_source(self, event: inputs.RemoveSource, now: int) -> None:
        """Remove a source. Own receivers learn its end at once."""
        tir = self.advertiser.find(event)
        self.advertiser.receive(event, now)
        if tir is not None:
            self._hear_ourselves((attrs.evolve(tir, ttl=ENDED_TTL),), now)

    def _forward(self, now: int) -> None:
        """Send the records of each side, and feed them to the other side, until both are quiet."""
        for said in self.advertiser.take_effects():
            self._transmit(said, now)
            self._hear_ourselves(said.advertisements, now)
        for effect in (*self.querier.take_effects(), *self.names.take_effects()):
            self._perform(effect, now)
        self.outbox += self.domains.take_effects()

    def _perform(self, effect: effects.QuerierEffect | effects.NameEffect, now: int) -> None:
        match effect:
            case effects.Transmit():
                self._transmit(effect, now)
                for query in effect.queries:
                    self._hear_ourselves(self.advertiser.advertised(query), now)
                for found in self.querier.take_effects():
                    self._perform(found, now)
            case effects.Tell(packet):
                if isinstance(packet, lbmr_extended.RemoteContexts):
                    self._say((packet,), now)
                else:
                    self._send(self.carrier.pick(now), attrs.evolve(packet, options=self.trailer), now)
            case _:
                self.outbox.append(effect)

    def _take_leave(self, event: inputs.RemoveReceiver | inputs.RemovePattern, now: int) -> None:
        """Tell routers that this context no longer wants a topic or a pattern."""
        if not self.routed or self.router:
            return
        query: lbmr.Query | None
        if isinstance(event, inputs.RemovePattern):
            query = None if (found := self.querier.patterns.get(event.pattern)) is None else found.query
        else:
            query = lbmr.TopicQuery(event.topic)
        if query is not None and self.querier.wants(query):
            leave = lbmr_extended.TopicRecord.of(query, lbmr_extended.LEAVE)
            self._say((lbmr_extended.Management(records=(leave,)),), now)

    def _answer_use(self, records: Sequence[lbmr_extended.TopicRecord], now: int) -> None:
        """Tell a router which of these topics and patterns this context still wants."""
        used = [
            record.answer
            for record in records
            if record.type == lbmr_extended.USE and not record.answers and self.querier.wants(record.query)
        ]
        most = self.config.datagrams.most_sent
        groups = share(((record, record.octets) for record in used), most)
        self._say([lbmr_extended.Management(records=group) for group in groups], now)

    def _say(self, bodies: Iterable[lbmr_extended.Body], now: int) -> None:
        for body in bodies:
            self._send(self.carrier.pick(now), lbmr_extended.Packet(body, self.trailer), now)

    def _hear_ourselves(self, tirs: tuple[lbmr.Advertisement, ...], now: int) -> None:
        if self.router:
            return
        packet = lbmr.Packet(lbmr.PacketKind.NORMAL, (), tirs, self.trailer)
        self.querier.receive(inputs.RecordsReceived(packet), now)

    def _transmit(self, said: effects.Transmit, now: int) -> None:
        pattern = said.queries and isinstance(said.queries[0], lbmr.WildcardQuery)
        kind = lbmr.PacketKind.WILDCARD if pattern else lbmr.PacketKind.NORMAL
        packet = lbmr.Packet(kind, said.queries, said.advertisements, self.trailer)
        self._send(self.carrier.pick(now), packet, now)

    def _wake_others(self, now: int) -> None:
        waiting = []
        for due, ends, wake in self.wakes:
            if now < due:
                waiting.append((due, ends, wake))
                continue
            request = _REQUEST(flags=wake.flags, options=self.trailer)
            self._send(self.carrier.pick(now), request, now)
            if wake.interval and now + wake.interval <= ends:
                waiting.append((now + wake.interval, ends, wake))
        self.wakes = waiting

    def _send(self, to: str, packet: lbmr.AnyPacket | lbmr_extended.Packet, now: int) -> None:
        data = lbmr_extended.encode(packet) if isinstance(packet, lbmr_extended.Packet) else lbmr.encode(packet)
        self.counted.sent += 1
        self.counted.sent_bytes += len(data)
        self.carrier.sent(to, now)
        self.outbox.append(effects.SendDatagram(to, data))
