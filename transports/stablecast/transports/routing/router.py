"""A router between domains: joins interest, sources and portals into one machine.

A topic that one domain wants is looked for in all others. A source that is found there is joined, once, and repeated by
a proxy source in each domain that wants its topic. Messages keep their numbers, lengths and order; a gap stays a gap,
which receivers close at the stores. No portal waits for another: what one cannot take waits there, within its bound.

A source is known by its OTID. One without it is never repeated, because nobody could tell its copies from each other.

A portal first listens. If another router is in its domain, it says so and stands aside: with two routers between the
same domains each message would arrive twice. It takes part as soon as the other one is silent for long enough.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.identity import find
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.routed import Routed, destination_of
from stablecast.transports.reliable import high_water_marks
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.records import sender_of
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.forwarding import Forwarding, Onward, UnicastDrop
from stablecast.transports.routing.interest import DomainInterest
from stablecast.transports.routing.link import Link
from stablecast.transports.routing.losses import Losses
from stablecast.transports.routing.names import answer, answers, question
from stablecast.transports.routing.network import DueItem, Matter, Network
from stablecast.transports.routing.network_map import MAX_DOMAIN
from stablecast.transports.routing.portals import EVERYTHING, Portal, PortalSettings, Standing
from stablecast.transports.routing.proxies import RoutedSource, RoutedSources
from stablecast.transports.routing.sources import Sources
from stablecast.transports.routing.streams import Streams
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Sri, TopicIdx

ALONE = MAX_DOMAIN + 1
"""The node of a router that has no links, in which nobody else sees it."""


@attrs.define
class Router:
    """The machine of one router; use `create`.

    Attributes:
        turned: When this turn began: the last timeout that was handled, in nanoseconds.
    """

    portals: list[Portal]
    forwarding: Forwarding
    node: int = ALONE
    name: str = ""
    table: RoutedSources = attrs.field(factory=RoutedSources, init=False)
    agenda: KeyedDeadlines[DueItem] = attrs.field(factory=KeyedDeadlines, init=False)
    outbox: list[fx.RouterEffect] = attrs.field(factory=list, init=False)
    streams: Streams = attrs.field(init=False)
    network: Network = attrs.field(init=False)
    sources: Sources = attrs.field(init=False)
    losses: Losses = attrs.field(init=False)
    turned: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.streams = Streams(self.portals, self.table, self.outbox)
        self.network = Network(self.node, self.name, self.portals, self.agenda, self.outbox)
        self.sources = Sources(self.portals, self.network, self.streams, self.table, self.agenda, self.outbox)
        self.losses = Losses(self.portals, self.network, self.agenda, self.outbox)

    @classmethod
    def create(cls, portals: Iterable[PortalSettings], now: int, node: int = ALONE, name: str = "") -> "Router":
        """Return the machine of a router with these portals, which listen first.

        `node` is its place in a network: random, above all numbers of domains, and another one for each life.
        """
        machine = cls([Portal(one) for one in portals], Forwarding({}), node, name)
        for number, portal in enumerate(machine.portals):
            if portal.settings.domain:
                machine.agenda.arm((Matter.LISTENED, number, b""), now + portal.settings.listen_ns)
        return machine

    def receive(self, event: ev.RouterInput, now: int) -> None:
        """Feed one input. What peers send raises nothing."""
        match event:
            case ev.ItemsArrived(source, items):
                self.streams.on_items(source, items)
            case ev.UnicastArrived(portal, octets, way):
                self._on_unicast(portal, octets, way)
            case ev.Overheard(portal, packet):
                self._on_packet(portal, packet, now)
            case ev.InterestTold(portal, query, on):
                self._on_interest(portal, query, on, now)
            case ev.SourceFound(portal, topic, record):
                self.sources.on_found(portal, topic, record, now)
            case ev.SourceGone(portal, _, record):
                self.sources.on_gone(portal, record, now)
            case ev.NumbersLost(source, first, count):
                self.streams.on_lost(source, first, count)
            case ev.StreamEnded(source):
                self.sources.on_ended(source, now)
            case ev.ProxyOpened():
                self.sources.on_opened(event)
            case ev.ProxyFailed():
                self.sources.on_failed(event, now)
            case ev.ProxyHeld(portal, source, held):
                self.streams.on_held(portal, source, held=held)
            case ev.UnicastFailed(portal, address, reason):
                self.portals[portal].counted.unicast_dropped[reason] += 1
                if reason is UnicastDrop.REFUSED:
                    self.losses.on_refused(portal, address)
                else:
                    self.losses.on_failed(portal, address, now)
            case _:
                self._on_link_event(event, now)

    def handle_timeout(self, now: int) -> None:
        """Perform what is due: questions, routes, the ends of lost sources, and what the turns before have left."""
        self.turned = now
        self.sources.begin_turn()
        while self.sources.room > 0 and (item := self.agenda.pop(now)) is not None:
            matter, number, origin = item
            self._look_at(matter, number, origin, now)
        for number, portal in enumerate(self.portals):
            if portal.forwards:
                asked, ended = portal.interest.handle_timeout(now)
                if asked:
                    self.outbox.append(fx.AskUse(number, tuple(asked)))
                for query in ended:
                    self._on_unwanted(query)

    def next_timeout(self) -> int | None:
        asking = [portal.interest.next_timeout() for portal in self.portals if portal.forwards]
        return soonest(self.agenda.next(), self.turned if self.sources.unsettled else None, *asking)

    def take_effects(self) -> list[fx.RouterEffect]:
        effects = self.outbox[:]
        self.outbox.clear()  # in place, because the streams append to this list
        return effects

    def _look_at(self, matter: Matter, number: int, origin: bytes, now: int) -> None:
        match matter:
            case Matter.LISTENED:
                self._begin(number, now)
            case Matter.RIVAL:
                self._look_for_rival(number, now)
            case Matter.ROUTES:
                self._announce(number, now)
            case Matter.LOST:
                self.sources.end_lost(origin)
            case Matter.RETRY:
                self.sources.settle(origin)
            case Matter.ALIVE:
                self.network.look(number, now)
            case Matter.STEADY:
                if self.network.join(number):
                    self._reconsider(now)
            case Matter.HELD:
                for query in self.network.let_go():
                    self._on_unwanted(query)
            case Matter.LEASE:
                self._reconsider(now)
            case Matter.UNDELIVERED:
                self.losses.look(number, origin.decode(), now)
            case _:
                assert_never(matter)

    # ------------------------------------------------------------------------------------------------------ interest

    def _on_packet(self, number: int, packet: lbmr.AnyPacket | lbmr_extended.Packet, now: int) -> None:
        instance, router = sender_of(packet.options)
        if router:
            self._on_router(number, instance, now)
            return  # What another router asks for, it asks on behalf of others.
        if isinstance(packet, lbmr.Packet):
            for query in packet.queries:
                self._on_wanted(number, query, instance, now)
        elif isinstance(packet, lbmr_extended.Packet) and isinstance(packet.body, lbmr_extended.Management):
            for record in packet.body.records:
                if record.type == lbmr_extended.USE and record.answers:
                    self._on_wanted(number, record.query, instance, now)
                elif record.type == lbmr_extended.LEAVE:
                    self._on_left(number, record.query, instance, now)
        if self.portals[number].forwards:
            self._on_names(number, packet, now)

    def _on_names(self, number: int, packet: lbmr.AnyPacket | lbmr_extended.Packet, now: int) -> None:
        """Ask the other domains for the store that this one looks for, and tell them where its own stores are."""
        domain = self.portals[number].settings.domain
        if isinstance(packet, lbmr.ContextInfo) and packet.flags & lbmr.ContextInfo.QUERY and packet.name:
            self._on_name(number, lm.NameTold(packet.name, domain, True), now)
            return
        for told in answers(packet, domain):
            self._on_name(number, told, now)

    def _on_name(self, number: int, told: lm.NameTold, now: int) -> None:
        """Pass on a question or an answer about a name, to domains and along the tree of the domain that it is from."""
        if told.asks and not self.portals[number].names.ask(told.name, now):
            return
        children = self.network.children(told.domain)
        for place, portal in enumerate(self.portals):
            if place == number or not (portal.forwards and (portal.settings.domain or place in children)):
                continue
            if not (portal.names.admits(now) if told.asks else portal.names.wants(told.name, now)):
                continue
            if portal.link is None:
                self.outbox.append(fx.TellName(place, question(told.name) if told.asks else answer(told)))
            else:
                self.outbox.append(fx.LinkSend(place, lm.encode(told)))

    def _on_interest(self, number: int, query: lbmr.Query, on: bool, now: int) -> None:
        interest = self.portals[number].interest
        if on and interest.tell(query):
            self._on_new_of(number, query, now)
        elif not on and interest.ends(query):
            self._on_unwanted(query)

    def _on_wanted(self, number: int, query: lbmr.Query, holder: bytes, now: int) -> None:
        portal = self.portals[number]
        if not portal.interest.heard(query, holder, now):
            if query not in portal.interest.wanted and portal.interest.refused.bit_count() == 1:
                self._remark(f"domain {portal.settings.domain} wants {query}, which no source can have")
            return
        self._on_new_of(number, query, now)

    def _on_new_of(self, number: int, query: lbmr.Query, now: int) -> None:
        if self.portals[number].forwards:
            self._on_new(self.portals[number].interest, query, now)

    def _on_new(self, interest: DomainInterest, query: lbmr.Query, now: int) -> None:
        """Look for a symbol that a domain wants from now on, and repeat what is known."""
        self._want(query)
        if isinstance(query, lbmr.TopicQuery):
            self._offer(lambda _: (query.name,), now)
        else:
            self._offer(
                lambda link: [
                    topic for topic in link.topics if query in interest.wanted and interest.means(query, topic)
                ],
                now,
            )
        for source in self._meant(interest, query):
            self.sources.settle(source.origin)

    def _offer(self, topics: Callable[[Link], Iterable[str]], now: int) -> None:
        """Take up sources that links repeat here, and that were not wanted or not accepted when they were told."""
        for found in self.network.offered(topics):
            if found.record.origin not in self.table.sources:
                self.sources.on_found(found.portal, found.topic, found.record, now)

    def _on_left(self, number: int, query: lbmr.Query, holder: bytes, now: int) -> None:
        if self.portals[number].interest.left(query, holder, now):
            self._on_unwanted(query)

    def _on_unwanted(self, query: lbmr.Query) -> None:
        """Handle the end of the interest of one domain in a symbol."""
        self._want(query)
        topics = [query.name] if isinstance(query, lbmr.TopicQuery) else list(self.table.topics)
        for source in self.table.of(topics):
            self.sources.settle(source.origin)

    def _want(self, query: lbmr.Query) -> None:
        """Look for a topic or a pattern in each domain if another one wants it, and tell links of those that do."""
        wanting = {domain for domain, interest in self.network.interests() if query in interest.wanted}
        for number, portal in enumerate(self.portals):
            domain = portal.settings.domain
            wanted = bool(domain) and portal.forwards and bool(wanting - {domain})
            if wanted != (query in portal.wants):
                if wanted:
                    portal.wants[query] = None
                else:
                    del portal.wants[query]
                self.outbox.append(fx.Want(number, query, wanted))
        self.network.tell(query)

    def _meant(self, interest: DomainInterest, query: lbmr.Query) -> list[RoutedSource]:
        """Return the sources whose topics a wanted symbol of a domain means."""
        if query not in interest.wanted:
            return []
        if isinstance(query, lbmr.TopicQuery):
            return self.table.of((query.name,))
        return self.table.of([topic for topic in self.table.topics if interest.means(query, topic)])

    # --------------------------------------------------------------------------------------------------------- links

    def _on_link_event(self, event: ev.LinkBegun | ev.LinkArrived | ev.LinkHeld | ev.LinkEnded, now: int) -> None:
        match event:
            case ev.LinkArrived(portal, items):
                self._on_link(portal, items, now)
            case ev.LinkBegun(portal, node, name):
                if self.network.begin(portal, node, name, now):
                    self._reconsider(now)
            case ev.LinkHeld(portal, held):
                self.streams.on_link_held(portal, held=held)
            case ev.LinkEnded(portal, reason):
                self._on_link_ended(portal, reason, now)
            case _:
                assert_never(event)

    def _on_link(self, number: int, items: Iterable[Run | lbmc.Message], now: int) -> None:
        """Handle what a link brought. What cannot be understood ends it."""
        link = self.portals[number].link
        if link is None:
            return
        link.heard_at = now
        changed = False
        try:
            for item in items:
                if isinstance(item, Run):
                    self._on_stream(number, link.indexes.get(item.topic_index), item)
                elif (way := destination_of(item)) is not None:
                    self._on_unicast(number, lbmc.encode(item), way)
                elif (told := lm.decode(item)) is not None:
                    changed |= self._on_told(number, told, now)
                else:
                    topic = find(item, TopicIdx)
                    indexes = {index: None for index, _ in high_water_marks.marks(item)}
                    for index in indexes if topic is None else (topic.tidx,):
                        origin = link.indexes.get(index)
                        if origin is not None and find(item, Sri) is not None:
                            link.info[origin] = item
                        self._on_stream(number, origin, item)
        except WireError as error:
            self.outbox.append(fx.LinkDrop(number, f"malformed: {error}"))
        if changed:
            self._reconsider(now)

    def _on_stream(self, number: int, origin: bytes | None, item: Run | lbmc.Message) -> None:
        """Handle an item of a source, which must come by the entry of its tree."""
        source = None if origin is None else self.table.sources.get(origin)
        if source is not None and source.portal == number and source.joined is not None:
            self.streams.on_items(source.origin, (item,))
        elif isinstance(item, Run):
            self.portals[number].counted.stray += item.count

    def _on_told(self, number: int, told: lm.LinkMessage, now: int) -> bool:
        """Handle what the other side tells, and return whether ways may have changed."""
        match told:
            case lm.InterestTold():
                changed = self.network.hear(number, told)
                if changed is not None and changed[1]:
                    self._on_new(changed[0], told.query, now)
                elif changed is not None:
                    self._on_unwanted(told.query)
            case lm.SourceTold():
                for event in self.network.note(number, told):
                    self.receive(event, now)
            case lm.MessageLost(domain, address):
                if self.network.enters(domain, number):
                    self.losses.tell(domain, address)
            case lm.NameTold():
                if self.network.enters(told.domain, number):
                    self._on_name(number, told, now)
            case _:
                return self.network.receive(number, told, now)
        return False

    def _on_link_ended(self, number: int, reason: str, now: int) -> None:
        link = self.portals[number].link
        if link is None:
            return
        self._remark(f"portal '{self.portals[number].settings.name}' has lost router '{link.name}': {reason}")
        gone = self.network.end(number, now)
        self.sources.unlink(number)
        self._reconsider(now)
        for event in gone:
            self.receive(event, now)

    # ------------------------------------------------------------------------------------------------------- unicast

    def _on_unicast(self, number: int, octets: bytes, way: Routed | UnicastDrop) -> None:
        portal = self.portals[number]
        counted = portal.counted
        counted.unicast_received += 1
        onward = way if isinstance(way, UnicastDrop) else self._route(number, octets, way)
        if isinstance(onward, UnicastDrop):
            counted.unicast_dropped[onward] += 1
            return
        self.portals[onward.portal].counted.unicast_sent += 1
        self.outbox.append(fx.SendUnicast(onward.portal, onward.address, onward.octets))

    def _route(self, number: int, octets: bytes, way: Routed) -> Onward | UnicastDrop:
        """Return where a message goes. Over a link it must come from a domain whose tree it has followed."""
        origin = way.origin.domain
        came = self.portals[number].settings.domain or (origin if self.network.enters(origin, number) else 0)
        return self.forwarding.route(came, octets, way, self.network.onward(origin, way.destination.domain))

    # ------------------------------------------------------------------------------------- portals and other routers

    def _begin(self, number: int, now: int) -> None:
        """Take part in a domain, in which no other router was heard."""
        portal = self.portals[number]
        if portal.standing is not Standing.LISTENS:
            return
        portal.standing = Standing.FORWARDS
        settings = portal.settings
        self.forwarding.portals[settings.domain] = number
        if settings.leased and settings.wake_ns:
            self.outbox.append(fx.Wake(number, EVERYTHING, settings.wake_every_ns, settings.wake_ns))
        self._reconsider(now)

    def _on_router(self, number: int, instance: bytes, now: int) -> None:
        """Handle a sign of another router, or of another portal of this one, in the domain of a portal."""
        portal = self.portals[number]
        own = next((one for one in self.portals if instance in one.settings.instances), None)
        if own is portal:
            return
        if self._stays(number, own, instance):
            return
        portal.rival_until = now + portal.settings.rival_ns
        self.agenda.arm((Matter.RIVAL, number, b""), portal.rival_until)
        if portal.standing is Standing.STANDS_ASIDE:
            return
        whom = f"portal '{own.settings.name}' of this router" if own else f"another router ({instance.hex()})"
        portal.rival, portal.standing = whom, Standing.STANDS_ASIDE
        self._remark(
            f"portal '{portal.settings.name}' does not forward: {whom} is in domain {portal.settings.domain} already, "
            "and two would repeat each message twice; stop one of them"
        )
        self.forwarding.portals.pop(portal.settings.domain, None)
        self._reconsider(now)

    def _stays(self, number: int, own: Portal | None, instance: bytes) -> bool:
        """Return whether a portal forwards beside another one that it hears, which then stands aside."""
        portal = self.portals[number]
        if own is not None:
            return self.portals.index(own) > number
        # Two that forward already did not hear each other for a while: both decide alike.
        return portal.forwards and any(ours < instance for ours in portal.settings.instances)

    def _look_for_rival(self, number: int, now: int) -> None:
        portal = self.portals[number]
        if portal.standing is not Standing.STANDS_ASIDE:
            return
        if now < portal.rival_until:
            self.agenda.arm((Matter.RIVAL, number, b""), portal.rival_until)
            return
        self.outbox.append(
            Remark(f"portal '{portal.settings.name}' forwards from now on: {portal.rival} is silent", warning=True)
        )
        portal.rival, portal.standing = "", Standing.LISTENS
        self._begin(number, now)

    def _reconsider(self, now: int) -> None:
        """Decide everything anew, because a portal began or ceased to forward, or the network has changed."""
        for event in self.network.refresh(now):
            self.receive(event, now)
        self.losses.compare()
        for query in self.network.queries():
            self._want(query)
        self._offer(lambda link: link.topics, now)
        self.sources.reconsider()
        for number, portal in enumerate(self.portals):
            if portal.forwards and portal.settings.domain:
                least = now if portal.announced_at is None else portal.announced_at + portal.settings.routes_least_ns
                self.agenda.arm((Matter.ROUTES, number, b""), max(now, least))

    def _announce(self, number: int, now: int) -> None:
        portal = self.portals[number]
        if not portal.forwards:
            return
        beside = [one for one in self.portals if one is not portal and one.forwards and one.settings.domain]
        portal.announced_at = now
        others = (*(one.settings.domain for one in beside), *self.network.domains())
        self.outbox.append(fx.Announce(number, others))
        self.agenda.arm((Matter.ROUTES, number, b""), now + portal.settings.routes_ns)

    def _remark(self, text: str) -> None:
        self.outbox.append(Remark(text, warning=True))
