"""The sources of a router: where each of them comes in, and the proxies by which it is repeated.

A source comes in through one portal, the nearest of those that have found it, and leaves through all that must have it.
When its entry moves, the proxies stay: they have the windows of numbers, and receivers notice nothing.
"""

from collections import OrderedDict

import attrs

from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.access import properties_of
from stablecast.transports.routing.duplicates import NumberWindow
from stablecast.transports.routing.link_messages import SourceTold
from stablecast.transports.routing.network import DueItem, Matter, Network
from stablecast.transports.routing.portals import Drop, Portal
from stablecast.transports.routing.proxies import ProxySource, RoutedSource, RoutedSources, distance, told
from stablecast.transports.routing.streams import Streams

MAX_SOURCES = 131_072
"""Sources that a router knows; further ones are counted and not repeated."""

RETRY_NS = 5_000_000_000
"""Time until a proxy source that could not be opened is tried again, in nanoseconds."""

AT_ONCE = 16
"""Sources of which one turn opens or closes proxies. The others wait for the next turns, and streams go on between."""


@attrs.define
class Sources:
    """All sources and their proxies; it shares everything with the router.

    Attributes:
        beyond: Sources that were too many.
        unsettled: The sources whose proxies are opened or closed in the next turns.
        room: Sources whose proxies this turn may still open or close.
    """

    portals: list[Portal]
    network: Network
    streams: Streams
    table: RoutedSources
    agenda: KeyedDeadlines[DueItem]
    outbox: list[fx.RouterEffect]
    beyond: int = attrs.field(default=0, init=False)
    unsettled: OrderedDict[bytes, None] = attrs.field(factory=OrderedDict, init=False)
    room: int = attrs.field(default=AT_ONCE, init=False)

    def begin_turn(self) -> None:
        """Go on with what the turns before have left."""
        self.room = AT_ONCE
        while self.unsettled and self.room > 0:
            self._settle_now(self.unsettled.popitem(last=False)[0])

    def on_found(self, number: int, topic: str, record: SourceRecord, now: int) -> None:
        """Handle a place of a source."""
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
            if proxy is None or proxy.told is not None or proxy.names != (record.session_id, record.index):
                source.elsewhere[number] = record
                if source.record is None or self._far(number, record) < self._far(source.portal, source.record):
                    self._move_entry(source)
            return
        if source is None:
            if not portal.forwards or not self.network.wants(self._domain(number, record), topic):
                return
            if len(self.table) == MAX_SOURCES:
                self.beyond += 1
                return
            source = RoutedSource(record.origin, topic, number)
            self.table.add(source)
        source.record, source.domain = record, self._domain(number, record)
        self.agenda.stop((Matter.LOST, 0, record.origin))
        self.settle(record.origin)

    def on_gone(self, number: int, record: SourceRecord, now: int) -> None:
        """Handle the end of such a place."""
        source = self.table.sources.get(record.origin)
        if source is None:
            return
        if source.portal == number and source.record and source.record.name == record.name:
            self._lose(source, now)
        elif number in source.elsewhere and source.elsewhere[number].name == record.name:
            del source.elsewhere[number]

    def on_ended(self, origin: bytes, now: int) -> None:
        """Handle the end of a joined stream."""
        source = self.table.sources.get(origin)
        if source is not None and source.joined is not None:
            source.joined = None
            self._lose(source, now)

    def end_lost(self, origin: bytes) -> None:
        """End the proxies of a source that was not found again in time."""
        source = self.table.sources.get(origin)
        if source is not None and source.record is None:
            self._close_all(source)
            self.table.remove(source)

    def reconsider(self) -> None:
        """Decide about all sources anew, because portals or ways have changed."""
        for source in tuple(self.table.sources.values()):
            entry = self.portals[source.portal]
            if entry.forwards or not entry.settings.domain:  # What came by a link is lost, or found elsewhere.
                self.settle(source.origin)
            else:
                self._close_all(source)
                self.table.remove(source)

    def settle(self, origin: bytes) -> None:
        """Open and close the proxies of a source as its topic is wanted: in this turn if it has room, or soon."""
        if self.room > 0 and origin not in self.unsettled:
            self._settle_now(origin)
        else:
            self.unsettled[origin] = None

    def on_opened(self, event: ev.ProxyOpened) -> None:
        source = self.table.sources.get(event.source)
        proxy = None if source is None else source.proxies.get(event.portal)
        if proxy is not None:
            proxy.names, proxy.most_bytes = (event.session, event.index), event.most_bytes

    def on_failed(self, event: ev.ProxyFailed, now: int) -> None:
        """Handle a proxy that is not there: it is tried again."""
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

    def unlink(self, number: int) -> None:
        """Forget the proxies on a link that has ended."""
        for source in self.table.sources.values():
            if source.proxies.pop(number, None) is not None:
                self.portals[number].queues.forget(source.origin)

    def _domain(self, number: int, record: SourceRecord) -> int:
        return record.domain or self.portals[number].settings.domain

    def _far(self, number: int, record: SourceRecord) -> tuple[bool, int, int]:
        """Return how far a place of a source is: first those where its domain is, or its way."""
        domain = self._domain(number, record)
        astray = domain != self.portals[number].settings.domain and not self.network.enters(domain, number)
        return (astray, *distance(record))

    def _lose(self, source: RoutedSource, now: int) -> None:
        """Let the proxies of a source end soon, unless it is found again; go on at once where it is known besides."""
        source.record = None
        if source.elsewhere:
            self._move_entry(source)
        elif source.proxies:
            delay = self.portals[source.portal].settings.deletion_ns
            self.agenda.arm((Matter.LOST, 0, source.origin), now + delay)
            self.outbox += source.move()
        else:
            self.table.remove(source)

    def _move_entry(self, source: RoutedSource) -> None:
        """Take the nearest of the other places of a source for its entry; it is not repeated in that domain any more.

        A service may know the proxy of a router that died longer than the router that comes next needs to find it.
        """
        number = min(source.elsewhere, key=lambda one: (self._far(one, source.elsewhere[one]), one))
        record = source.elsewhere.pop(number)
        if source.record is not None:
            source.elsewhere[source.portal] = source.record
        self.agenda.stop((Matter.LOST, 0, source.origin))
        if number in source.proxies:
            self._close(source, number)
        self.outbox += source.leave()
        source.portal, source.record, source.domain = number, record, self._domain(number, record)
        self.settle(source.origin)

    def _settle_now(self, origin: bytes) -> None:
        """Open and close the proxies of a source, join or leave it, and forget it if no domain wants it any more."""
        source = self.table.sources.get(origin)
        if source is None:
            return
        before = len(self.outbox)
        record = source.record
        for number in range(len(self.portals)):
            wanted = number != source.portal and self.network.leads(source.domain, number, source.topic)
            if wanted and number not in source.proxies and record is not None and self._passes(source, record, number):
                self._open(source, record, number)
            elif not wanted and number in source.proxies:
                self._close(source, number)
        self.outbox += source.move()
        self.room -= len(self.outbox) > before
        if not source.proxies and not self.network.wants(source.domain, source.topic):
            # What becomes of it is not reported any more.
            self.agenda.stop((Matter.LOST, 0, origin))
            self.table.remove(source)

    def _passes(self, source: RoutedSource, record: SourceRecord, number: int) -> bool:
        properties = properties_of(source.topic, record)
        return self.portals[source.portal].lets_in(properties) and self.portals[number].lets_out(properties)

    def _open(self, source: RoutedSource, record: SourceRecord, number: int) -> None:
        portal, entry, link = (
            self.portals[number],
            self.portals[source.portal].settings,
            self.portals[source.portal].link,
        )
        if link is not None and source.origin in link.info:
            self.streams.remember(source, link.info[source.origin])
        proxy = ProxySource(number, NumberWindow(portal.settings.window, portal.settings.window_step))
        source.proxies[number] = proxy
        leaving = told(record, entry)
        if portal.link is None:
            self.outbox.append(fx.OpenProxy(number, source.origin, source.topic, leaving))
            return
        proxy.names = 0, portal.link.next_index
        portal.link.next_index += 1
        proxy.told = SourceTold(source.topic, attrs.evolve(leaving, index=proxy.names[1]), True)
        self.network.repeat(number, proxy.told)
        self.streams.begin(source, proxy)

    def _close(self, source: RoutedSource, number: int) -> None:
        proxy = source.proxies.pop(number)
        self.portals[number].queues.forget(source.origin)
        self.agenda.stop((Matter.RETRY, number, source.origin))
        if proxy.told is None:
            self.outbox.append(fx.CloseProxy(number, source.origin))
        else:
            self.network.repeat(number, attrs.evolve(proxy.told, on=False))

    def _close_all(self, source: RoutedSource) -> None:
        self.room -= 1
        for number in tuple(source.proxies):
            self._close(source, number)
        self.outbox += source.move()

    def _remark(self, text: str) -> None:
        self.outbox.append(Remark(text, warning=True))
