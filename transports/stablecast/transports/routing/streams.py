"""The streams of a router: what a source sends goes on through its proxies, under the names of the next hop.

Numbers and lengths stay. A message passes each portal once. What an exit cannot take is dropped there, counted by its
reason: one that is larger than its datagrams, or one for which its queue has no room (D-6, D-7).
"""

from collections.abc import Iterable

import attrs

from stablecast.core.machine import serial
from stablecast.transports import codec
from stablecast.transports.codec.identity import find
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.renamed import renamed, with_domain, with_high
from stablecast.transports.reliable import high_water_marks
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing.pieces import cut, fitting
from stablecast.transports.routing.portals import Drop, Portal
from stablecast.transports.routing.proxies import ProxySource, RoutedSource, RoutedSources
from stablecast.transports.routing.queues import QueuedBlock
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Sri, TcpSid, TopicIdx
from stablecast.transports.wire.lbmc import Message


@attrs.define
class Streams:
    """The streams of all proxies; it shares portals, sources and effects with the router."""

    portals: list[Portal]
    table: RoutedSources
    outbox: list[fx.RouterEffect]

    def greeting(self, portal: int, origin: bytes) -> bytes:
        """Return what a joiner of a proxy's stream gets first: the session, and the source's announcement."""
        proxy = self._proxy(portal, origin)
        if proxy is None or proxy.names is None:
            return b""
        return codec.greeting(proxy.names[0]) + self._info(self.table.sources[origin], proxy)

    def standing(self, portal: int, origin: bytes) -> bytes:
        """Return what is repeated where nobody is greeted: the newest number and the announcement (D-19)."""
        proxy = self._proxy(portal, origin)
        source = self.table.sources.get(origin)
        if proxy is None or proxy.names is None or source is None or not self.portals[portal].queues.passes(origin):
            return b""  # A number must not overtake the data that waits.
        high = [] if source.high is None else [(proxy.names[1], source.high)]
        return high_water_marks.message(high) + self._info(source, proxy)

    def begin(self, source: RoutedSource, proxy: ProxySource) -> None:
        """Tell on a link what a joiner of a stream is greeted with: the newest number and the announcement."""
        high = [] if proxy.names is None or source.high is None else [(proxy.names[1], source.high)]
        if octets := high_water_marks.message(high) + self._info(source, proxy):
            self._send(proxy, source.origin, QueuedBlock(octets))

    def remember(self, source: RoutedSource, info: Message) -> None:
        """Note the newest announcement on a link, which is told once, perhaps while the source had no proxy."""
        source.info, sri = info, find(info, Sri)
        if sri is not None and sri.flags & Sri.INITIAL_SQN_KNOWN:
            self._note_high(source, sri.high_sqn)

    def on_items(self, origin: bytes, items: Iterable[Run | Message]) -> None:
        """Repeat what the stream of a source brought."""
        source = self.table.sources.get(origin)
        if source is None or source.joined is None:
            return
        counted, index = self.portals[source.portal].counted, source.joined.index
        for item in items:
            if isinstance(item, Run):
                if item.topic_index == index:
                    counted.received += item.count
                    counted.received_bytes += len(item.block)
                    self._note_high(source, item.first + item.count - 1)
                    self._repeat(source, item)
            else:
                self._on_control(source, item, index)

    def _repeat(self, source: RoutedSource, run: Run) -> None:
        for proxy in source.proxies.values():
            if proxy.names is None:
                continue
            counted = self.portals[proxy.portal].counted
            new = proxy.window.take(run.first, run.count)
            passed = sum(count for _, count in new)
            if passed < run.count:
                counted.dropped[Drop.DUPLICATE] += run.count - passed
            for skip, count in new:
                part = run if count == run.count else cut(run, skip, count)
                for piece in fitting(part, proxy.most_bytes):
                    passed -= piece.count
                    octets = renamed(piece, *proxy.names)
                    self._send(
                        proxy, source.origin, QueuedBlock(octets, proxy.window.extended(piece.first), piece.count)
                    )
            if passed:
                counted.dropped[Drop.FRAGMENT_SIZE] += passed

    def _on_control(self, source: RoutedSource, message: Message, index: int) -> None:
        counted = self.portals[source.portal].counted
        topic = find(message, TopicIdx)
        known = False
        for marked, high in high_water_marks.marks(message):
            known = True
            if marked == index:
                self._note_high(source, high)
                self._tell_high(source, high)
        if topic is not None and topic.tidx == index:
            known = True
            sri = find(message, Sri)
            if sri is not None:
                source.info = message = with_domain(message, self._domain_of(source))
                if sri.flags & Sri.INITIAL_SQN_KNOWN:
                    self._note_high(source, sri.high_sqn)
            for proxy in source.proxies.values():
                if proxy.names is not None:
                    self._pass_on(proxy, source, message, proxy.names)
        if known or (topic is None and find(message, TcpSid) is not None):
            counted.control += 1
        elif topic is None:
            counted.unhandled += 1

    def _pass_on(self, proxy: ProxySource, source: RoutedSource, message: Message, names: tuple[int, int]) -> None:
        try:
            octets = renamed(message, *names)
        except WireError:
            self.portals[proxy.portal].counted.dropped[Drop.ERROR] += 1
            return
        self._send(proxy, source.origin, QueuedBlock(octets))

    def on_lost(self, origin: bytes, first: int, count: int) -> None:
        """Note numbers that will not come: a gap stays a gap, but receivers must learn of one at the end."""
        source = self.table.sources.get(origin)
        if source is not None:
            self.portals[source.portal].counted.lost += count
            self._note_high(source, first + count - 1)
            if source.high == serial.wire(first + count - 1):
                self._tell_high(source, source.high)

    def _domain_of(self, source: RoutedSource) -> int:
        named = 0 if source.joined is None else source.joined.domain
        return named or self.portals[source.portal].settings.domain

    def _note_high(self, source: RoutedSource, number: int) -> None:
        number = serial.wire(number)
        if source.high is None or serial.before(source.high, number):
            source.high = number

    def _tell_high(self, source: RoutedSource, high: int) -> None:
        """Tell the newest number on all proxies, behind their data (R-171)."""
        for proxy in source.proxies.values():
            if proxy.names is not None:
                self._send(proxy, source.origin, QueuedBlock(high_water_marks.message([(proxy.names[1], high)])))

    def _send(self, proxy: ProxySource, origin: bytes, block: QueuedBlock) -> None:
        portal = self.portals[proxy.portal]
        if portal.queues.passes(origin):
            self._leave(proxy.portal, origin, block)
        else:
            portal.queues.put(origin, block)
            portal.counted.dropped[Drop.BLOCKING] = portal.queues.dropped

    def _leave(self, number: int, origin: bytes, block: QueuedBlock) -> None:
        counted = self.portals[number].counted
        counted.sent += block.count
        counted.sent_bytes += len(block.octets)
        self.outbox.append(fx.Forward(number, origin, block.octets))

    def on_held(self, number: int, origin: bytes, *, held: bool) -> None:
        """Hold the messages of a proxy, or let go what waits."""
        if self._proxy(number, origin) is None:
            return
        portal = self.portals[number]
        if held:
            portal.queues.shut(origin)
            return
        for block in portal.queues.open(origin):
            self._leave(number, origin, block)

    def on_link_held(self, number: int, *, held: bool) -> None:
        """Hold all data of a link, or let go what waits, with the newest number of each source that lost its end."""
        queues = self.portals[number].queues
        if held:
            queues.held = True
            return
        for origin, blocks, shortened in queues.release():
            for block in blocks:
                self._leave(number, origin, block)
            proxy, source = self._proxy(number, origin), self.table.sources.get(origin)
            if (
                shortened
                and proxy is not None
                and proxy.names is not None
                and source is not None
                and source.high is not None
            ):
                mark = high_water_marks.message([(proxy.names[1], source.high)])
                self._leave(number, origin, QueuedBlock(mark))

    def _proxy(self, number: int, origin: bytes) -> ProxySource | None:
        source = self.table.sources.get(origin)
        return None if source is None else source.proxies.get(number)

    def _info(self, source: RoutedSource, proxy: ProxySource) -> bytes:
        if source.info is None or proxy.names is None:
            return b""
        info, waiting = source.info, self.portals[proxy.portal].queues.first(source.origin)
        high = source.high if waiting is None else serial.wire(waiting - 1)
        if high is not None:  # What has left since would look like a loss to those who join now.
            info = with_high(info, high)
        try:
            return renamed(info, *proxy.names)
        except WireError:
            return b""
