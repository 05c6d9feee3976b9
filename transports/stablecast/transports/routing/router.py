"""A router between domains: joins interest, sources and portals into one machine.

A topic that one domain wants is looked for in all others. A source that is found there is joined, once, and repeated by
a proxy source in each domain that wants its topic. Messages keep their numbers, lengths and order; a gap stays a gap,
which receivers close at the stores. No portal waits for another: what one cannot take waits there, within its bound.

A source is known by its OTID. One without it is never repeated, because nobody could tell its copies from each other.

A portal first listens. If another router is in its domain, it says so and stands aside: with two routers between the
same domains each message would arrive twice. It takes part as soon as the other one is silent for long enough.
"""

from collections import OrderedDict
from collections.abc import Iterable
from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.routed import Routed
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.records import SourceRecord, sender_of
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.access import properties_of
from stablecast.transports.routing.duplicates import NumberWindow
from stablecast.transports.routing.forwarding import Forwarding, UnicastDrop
from stablecast.transports.routing.names import answers, question
from stablecast.transports.routing.portals import EVERYTHING, Drop, Portal, PortalSettings, Standing
from stablecast.transports.routing.proxies import ProxySource, RoutedSource, RoutedSources, distance, told
from stablecast.transports.routing.streams import Streams
from stablecast.transports.wire import lbmr, lbmr_extended

MAX_SOURCES = 131_072
"""Sources that a router knows; further ones are counted and not repeated."""

RETRY_NS = 5_000_000_000
"""Time until a proxy source that could not be opened is tried again, in nanoseconds."""

AT_ONCE = 16
"""Sources of which one turn opens or closes proxies. The others wait for the next turns, and streams go on between."""


class Matter(IntEnum):
    """The reasons for a look at something."""

    LISTENED = 0
    RIVAL = 1
    ROUTES = 2
    LOST = 3
    RETRY = 4


DueItem = tuple[Matter, int, bytes]
"""A reason, a portal, and an OTID, where they matter."""


@attrs.define
class Router:
    """The machine of one router; use `create`.

    Attributes:
        unsettled: The sources whose proxies are opened or closed in the next turns.
        room: Sources whose proxies this turn may still open or close.
        turned: When this turn began: the last timeout that was handled, in nanoseconds.
    """

    portals: list[Portal]
    forwarding: Forwarding
    table: RoutedSources = attrs.field(factory=RoutedSources, init=False)
    agenda: KeyedDeadlines[DueItem] = attrs.field(factory=KeyedDeadlines, init=False)
    outbox: list[fx.RouterEffect] = attrs.field(factory=list, init=False)
    streams: Streams = attrs.field(init=False)
    beyond: int = attrs.field(default=0, init=False)
    unsettled: OrderedDict[bytes, None] = attrs.field(factory=OrderedDict, init=False)
    room: int = attrs.field(default=AT_ONCE, init=False)
    turned: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.streams = Streams(self.portals, self.table, self.outbox)

    @classmethod
    def create(cls, portals: Iterable[PortalSettings], now: int) -> "Router":
        """Return the machine of a router with these portals, which listen first."""
        machine = cls([Portal(one) for one in portals], Forwarding({}))
        for number, portal in enumerate(machine.portals):
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
                self._on_interest(portal, query, on)
            case ev.SourceFound(portal, topic, record):
                self._on_found(portal, topic, record, now)
            case ev.SourceGone(portal, _, record):
                self._on_gone(portal, record, now)
            case ev.NumbersLost(source, first, count):
                self.streams.on_lost(source, first, count)
            case ev.StreamEnded(source):
                self._on_ended(source, now)
            case ev.ProxyOpened():
                self._on_opened(event)
            case ev.ProxyFailed():
                self._on_failed(event, now)
            case ev.ProxyHeld(portal, source, held):
                self.streams.on_held(portal, source, held=held)
            case ev.UnicastFailed(portal, _, reason):
                self.portals[portal].counted.unicast_dropped[reason] += 1
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Perform what is due: questions, routes, the ends of lost sources, and what the turns before have left."""
        self.room, self.turned = AT_ONCE, now
        while self.unsettled and self.room > 0:
            self._settle_now(self.unsettled.popitem(last=False)[0])
        while self.room > 0 and (item := self.agenda.pop(now)) is not None:
            matter, number, origin = item
            match matter:
                case Matter.LISTENED:
                    self._begin(number, now)
                case Matter.RIVAL:
                    self._look_for_rival(number, now)
                case Matter.ROUTES:
                    self._announce(number, now)
                case Matter.LOST:
                    self._end_lost(origin)
                case Matter.RETRY:
                    self._settle(origin)
                case _:
                    assert_never(matter)
        for number, portal in enumerate(self.portals):
            if portal.forwards:
                asked, ended = portal.interest.handle_timeout(now)
                if asked:
                    self.outbox.append(fx.AskUse(number, tuple(asked)))
                for query in ended:
                    self._on_unwanted(number, query)

    def next_timeout(self) -> int | None:
        asking = [portal.interest.next_timeout() for portal in self.portals if portal.forwards]
        return soonest(self.agenda.next(), self.turned if self.unsettled else None, *asking)

    def take_effects(self) -> list[fx.RouterEffect]:
        effects = self.outbox[:]
        self.outbox.clear()  # in place, because the streams append to this list
        return effects

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
        portal = self.portals[number]
        others = [(place, one) for place, one in enumerate(self.portals) if place != number and one.forwards]
        if isinstance(packet, lbmr.ContextInfo) and packet.flags & lbmr.ContextInfo.QUERY and packet.name:
            if portal.names.ask(packet.name, now):
                asked = [place for place, one in others if one.names.admits(now)]
                self.outbox += (fx.TellName(place, question(packet.name)) for place in asked)
            return
        for name, record in answers(packet, portal.settings.domain):
            self.outbox += (fx.TellName(place, record) for place, one in others if one.names.wants(name, now))

    def _on_interest(self, number: int, query: lbmr.Query, on: bool) -> None:
        interest = self.portals[number].interest
        if on and interest.tell(query):
            self._on_new(number, query)
        elif not on and interest.ends(query):
            self._on_unwanted(number, query)

    def _on_wanted(self, number: int, query: lbmr.Query, holder: bytes, now: int) -> None:
        portal = self.portals[number]
        if not portal.interest.heard(query, holder, now):
            if query not in portal.interest.wanted and portal.interest.refused.bit_count() == 1:
                self._remark(f"domain {portal.settings.domain} wants {query}, which no source can have")
            return
        self._on_new(number, query)

    def _on_new(self, number: int, query: lbmr.Query) -> None:
        """Look for a symbol that a domain wants from now on, and repeat what is known."""
        if self.portals[number].forwards:
            self._want(query)
            for source in self._meant(number, query):
                self._settle(source.origin)

    def _on_left(self, number: int, query: lbmr.Query, holder: bytes, now: int) -> None:
        if self.portals[number].interest.left(query, holder, now):
            self._on_unwanted(number, query)

    def _on_unwanted(self, number: int, query: lbmr.Query) -> None:
        """Handle the end of the interest of one domain in a symbol."""
        self._want(query)
        topics = [query.name] if isinstance(query, lbmr.TopicQuery) else list(self.table.topics)
        for source in self.table.of(topics):
            self._settle(source.origin)

    def _want(self, query: lbmr.Query) -> None:
        """Look for a topic or a pattern in each domain if another one wants it."""
        for number, portal in enumerate(self.portals):
            wanted = portal.forwards and any(
                query in other.interest.wanted
                for place, other in enumerate(self.portals)
                if place != number and other.forwards
            )
            if wanted != (query in portal.wants):
                if wanted:
                    portal.wants[query] = None
                else:
                    del portal.wants[query]
                self.outbox.append(fx.Want(number, query, wanted))

    def _meant(self, number: int, query: lbmr.Query) -> list[RoutedSource]:
        """Return the sources whose topics a wanted symbol of a domain means."""
        interest = self.portals[number].interest
        if query not in interest.wanted:
            return []
        if isinstance(query, lbmr.TopicQuery):
            return self.table.of((query.name,))
        return self.table.of([topic for topic in self.table.topics if interest.means(query, topic)])

    def _is_wanted(self, number: int, topic: str) -> bool:
        """Return whether another domain than that of a portal wants a topic."""
        return any(
            place != number and other.forwards and other.interest.matches(topic)
            for place, other in enumerate(self.portals)
        )

    # ------------------------------------------------------------------------------------------------------- sources

    def _on_found(self, number: int, topic: str, record: SourceRecord, now: int) -> None:
        portal = self.portals[number]
        if not record.origin:
            portal.counted.unidentified += 1
            if portal.counted.unidentified.bit_count() == 1:
                self._remark(
                    f"the source of '{topic}' at {record.address} is not repeated: it has no OTID; "
                    "its program is older than routers"
                )
            return
        source = self.table.sources.get(record.origin)
        if source is not None and source.portal != number:
            proxy = source.proxies.get(number)
            if proxy is None or proxy.names != (record.session_id, record.index):
                source.elsewhere[number] = record
                if source.record is None or distance(record) < distance(source.record):
                    self._move_entry(source, now)
            return
        if source is None:
            if not portal.forwards or not self._is_wanted(number, topic):
                return
            if len(self.table) == MAX_SOURCES:
                self.beyond += 1
                return
            source = RoutedSource(record.origin, topic, number)
            self.table.add(source)
        source.record = record
        self.agenda.stop((Matter.LOST, 0, record.origin))
        self._settle(record.origin)

    def _on_gone(self, number: int, record: SourceRecord, now: int) -> None:
        source = self.table.sources.get(record.origin)
        if source is None:
            return
        if source.portal == number and source.record and source.record.name == record.name:
            self._lose(source, now)
        elif number in source.elsewhere and source.elsewhere[number].name == record.name:
            del source.elsewhere[number]

    def _on_ended(self, origin: bytes, now: int) -> None:
        source = self.table.sources.get(origin)
        if source is not None and source.joined is not None:
            source.joined = None
            self._lose(source, now)

    def _lose(self, source: RoutedSource, now: int) -> None:
        """Let the proxies of a source end soon, unless it is found again; go on at once where it is known besides."""
        source.record = None
        if source.elsewhere:
            self._move_entry(source, now)
        elif source.proxies:
            delay = self.portals[source.portal].settings.deletion_ns
            self.agenda.arm((Matter.LOST, 0, source.origin), now + delay)
            self.outbox += source.move()
        else:
            self.table.remove(source)

    def _move_entry(self, source: RoutedSource, now: int) -> None:
        """Take the nearest of the other places of a source for its entry; it is not repeated in that domain any more.

        A service may know the proxy of a router that died longer than the router that comes next needs to find it.
        """
        number = source.nearest
        record = source.elsewhere.pop(number)
        others = dict(source.elsewhere)
        if source.record is not None:
            others[source.portal] = source.record
        self.agenda.stop((Matter.LOST, 0, source.origin))
        self._close_all(source)
        self.table.remove(source)
        self._on_found(number, source.topic, record, now)
        moved = self.table.sources.get(source.origin)
        if moved is not None:
            moved.elsewhere = others

    def _end_lost(self, origin: bytes) -> None:
        source = self.table.sources.get(origin)
        if source is not None and source.record is None:
            self._close_all(source)
            self.table.remove(source)

    def _settle(self, origin: bytes) -> None:
        """Open and close the proxies of a source as its topic is wanted: in this turn if it has room, or soon."""
        if self.room > 0 and origin not in self.unsettled:
            self._settle_now(origin)
        else:
            self.unsettled[origin] = None

    def _settle_now(self, origin: bytes) -> None:
        """Open and close the proxies of a source, join or leave it, and forget it if no domain wants it any more."""
        source = self.table.sources.get(origin)
        if source is None:
            return
        before = len(self.outbox)
        record = source.record
        for number, portal in enumerate(self.portals):
            wanted = (
                number != source.portal
                and portal.forwards
                and self.portals[source.portal].forwards
                and portal.interest.matches(source.topic)
            )
            if wanted and number not in source.proxies and record is not None and self._passes(source, record, number):
                self._open(source, record, number)
            elif not wanted and number in source.proxies:
                self._close(source, number)
        self.outbox += source.move()
        self.room -= len(self.outbox) > before
        if not source.proxies and not self._is_wanted(source.portal, source.topic):
            # What becomes of it is not reported any more.
            self.agenda.stop((Matter.LOST, 0, origin))
            self.table.remove(source)

    def _passes(self, source: RoutedSource, record: SourceRecord, number: int) -> bool:
        properties = properties_of(source.topic, record)
        return self.portals[source.portal].lets_in(properties) and self.portals[number].lets_out(properties)

    def _open(self, source: RoutedSource, record: SourceRecord, number: int) -> None:
        settings, entry = self.portals[number].settings, self.portals[source.portal].settings
        source.proxies[number] = ProxySource(number, NumberWindow(settings.window, settings.window_step))
        self.outbox.append(fx.OpenProxy(number, source.origin, source.topic, told(record, entry)))

    def _close(self, source: RoutedSource, number: int) -> None:
        del source.proxies[number]
        self.portals[number].queues.forget(source.origin)
        self.agenda.stop((Matter.RETRY, number, source.origin))
        self.outbox.append(fx.CloseProxy(number, source.origin))

    def _close_all(self, source: RoutedSource) -> None:
        self.room -= 1
        for number in tuple(source.proxies):
            self._close(source, number)
        self.outbox += source.move()

    def _on_opened(self, event: ev.ProxyOpened) -> None:
        source = self.table.sources.get(event.source)
        proxy = None if source is None else source.proxies.get(event.portal)
        if proxy is not None:
            proxy.names, proxy.most_bytes = (event.session, event.index), event.most_bytes

    def _on_failed(self, event: ev.ProxyFailed, now: int) -> None:
        source = self.table.sources.get(event.source)
        if source is None or event.portal not in source.proxies:
            return
        portal = self.portals[event.portal]
        if event.reason:
            portal.counted.unopened += 1
            portal.counted.dropped[Drop.ERROR] += 1
            if portal.counted.unopened.bit_count() == 1:
                what = f"portal '{portal.settings.name}' cannot repeat the source of '{source.topic}': {event.reason}"
                self._remark(f"{what} ({portal.counted.unopened} so far)")
        del source.proxies[event.portal]
        portal.queues.forget(source.origin)
        self.outbox += source.move()
        self.agenda.arm((Matter.RETRY, event.portal, source.origin), now + RETRY_NS)

    # ------------------------------------------------------------------------------------------------------- unicast

    def _on_unicast(self, number: int, octets: bytes, way: Routed | UnicastDrop) -> None:
        portal = self.portals[number]
        counted = portal.counted
        counted.unicast_received += 1
        onward = way if isinstance(way, UnicastDrop) else self.forwarding.route(portal.settings.domain, octets, way)
        if isinstance(onward, UnicastDrop):
            counted.unicast_dropped[onward] += 1
            return
        self.portals[onward.portal].counted.unicast_sent += 1
        self.outbox.append(fx.SendUnicast(onward.portal, onward.address, onward.octets))

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
        """Decide everything anew, because a portal began or ceased to forward."""
        for query in {query: None for portal in self.portals for query in (*portal.interest.wanted, *portal.wants)}:
            self._want(query)
        for source in tuple(self.table.sources.values()):
            if self.portals[source.portal].forwards:
                self._settle(source.origin)
            else:
                self._close_all(source)
                self.table.remove(source)
        for number, portal in enumerate(self.portals):
            if portal.forwards:
                least = now if portal.announced_at is None else portal.announced_at + portal.settings.routes_least_ns
                self.agenda.arm((Matter.ROUTES, number, b""), max(now, least))

    def _announce(self, number: int, now: int) -> None:
        portal = self.portals[number]
        if not portal.forwards:
            return
        others = (one.settings.domain for one in self.portals if one is not portal and one.forwards)
        portal.announced_at = now
        self.outbox.append(fx.Announce(number, tuple(others)))
        self.agenda.arm((Matter.ROUTES, number, b""), now + portal.settings.routes_ns)

    def _remark(self, text: str) -> None:
        self.outbox.append(Remark(text, warning=True))
