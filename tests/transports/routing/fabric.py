"""Several routers on one virtual clock, joined by links that take time, may be cut, and carry bytes."""

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing.network_map import MAX_DOMAIN
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.routing.router import Router
from tests.transports.routing.bench import ORDERS, SOURCE, items_of, packet, run, uses

DELAY = 2 * MILLISECOND
"""Time that bytes take over a link."""

NODE = MAX_DOMAIN + 100
"""The node of router 0 in its first life."""


@attrs.define
class Wire:
    """One connection: its two ends, as router and portal, and what each of them reads."""

    ends: tuple[tuple[int, int], tuple[int, int]]
    life: int
    decoders: dict[tuple[int, int], StreamDecoder]

    def other(self, end: tuple[int, int]) -> tuple[int, int]:
        return self.ends[1] if self.ends[0] == end else self.ends[0]


@attrs.define
class Fabric:
    """Router n has portal 0 in domain n + 1, and a portal for each of its links.

    Attributes:
        dear: The links whose portals cost 5 instead of 1.
        entered: How often each number entered each router over links.
        left: The numbers of the source that left into each domain, in order.
        said: The bytes on each link.
        hung_up: The destinations of which the contexts of each domain were told that something may be lost.
    """

    links: list[tuple[int, int]]
    dear: tuple[tuple[int, int], ...] = ()
    routers: list[Router] = attrs.field(factory=list)
    now: int = 0
    places: dict[tuple[int, int], tuple[tuple[int, int], tuple[int, int]]] = attrs.field(factory=dict)
    wires: dict[tuple[int, int], Wire] = attrs.field(factory=dict)
    events: list[tuple[int, int, Callable[[], None]]] = attrs.field(factory=list)
    count: int = 0
    lives: int = 0
    sources: dict[int, list[SourceRecord]] = attrs.field(factory=dict)
    wanted: set[int] = attrs.field(factory=set)
    entered: Counter[tuple[int, int]] = attrs.field(factory=Counter)
    left: dict[int, list[int]] = attrs.field(factory=dict)
    said: dict[tuple[int, int], bytearray] = attrs.field(factory=dict)
    joined: dict[int, set[bytes]] = attrs.field(factory=dict)
    ended: list[tuple[int, str]] = attrs.field(factory=list)
    hung_up: dict[int, list[tuple[int, str]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, count: int, *links: tuple[int, int], dear: tuple[tuple[int, int], ...] = ()) -> "Fabric":
        """Routers that have begun, with these links up."""
        found = cls(list(links), dear)
        portals = [1] * count
        for one, other in links:
            found.places[one, other] = (one, portals[one]), (other, portals[other])
            portals[one], portals[other] = portals[one] + 1, portals[other] + 1
        found.routers = [found.fresh(number, portals[number]) for number in range(count)]
        found.run(3 * SECOND)
        for link in links:
            found.join(*link)
        found.run(SECOND)
        return found

    def fresh(self, number: int, portals: int) -> Router:
        self.lives += 1
        settings = [PortalSettings(f"d{number}", number + 1, (b"portal-%d" % number,), wake_ns=0)]
        costs = {end[1]: 5 for link in self.dear for end in self.places[link] if end[0] == number}
        settings += [PortalSettings(f"l{number}-{one}", 0, cost=costs.get(one, 1)) for one in range(1, portals)]
        return Router.create(settings, self.now, NODE + 1_000 * self.lives + number, f"r{number}")

    def join(self, one: int, other: int) -> None:
        """Connect a link that is not connected."""
        ends = self.places[one, other]
        wire = Wire(ends, self.lives, {end: StreamDecoder() for end in ends})
        for end in ends:
            self.wires[end] = wire
        for end in ends:
            peer = self.routers[wire.other(end)[0]]
            self.at(DELAY, lambda end=end, peer=peer: self.begin(wire, end, peer))  # type: ignore[misc]

    def begin(self, wire: Wire, end: tuple[int, int], peer: Router) -> None:
        if self.wires.get(end) is wire:
            self.feed(end[0], ev.LinkBegun(end[1], peer.node, peer.name))

    def cut(self, one: int, other: int, silent: bool = False) -> None:
        """Break a link: both ends learn it at once, or nothing passes any more."""
        for end in self.places[one, other]:
            if self.wires.pop(end, None) is not None and not silent:
                self.feed(end[0], ev.LinkEnded(end[1], "cut"))

    def kill(self, number: int) -> None:
        """End a router; its neighbours learn it, and its domain hears no more of it."""
        for one, other in self.links:
            if number in (one, other):
                self.cut(one, other)
        self.joined.pop(number, None)
        self.routers[number] = self.fresh(number, len(self.routers[number].portals))

    def at(self, delay: int, act: Callable[[], None]) -> None:
        self.count += 1
        heappush(self.events, (self.now + delay, self.count, act))

    def feed(self, number: int, *events: ev.RouterInput) -> None:
        for event in events:
            self.routers[number].receive(event, self.now)
            self.perform(number)

    def perform(self, number: int) -> None:
        for effect in self.routers[number].take_effects():
            match effect:
                case fx.LinkSend(portal, octets) | fx.Forward(portal, _, octets) if portal:
                    self.send((number, portal), octets)
                case fx.SendUnicast(portal, _, octets) if portal:
                    self.send((number, portal), octets)
                case fx.LinkDrop(portal, reason):
                    self.ended.append((number, reason))
                    self.drop((number, portal))
                case fx.Forward(_, _, octets):
                    found = [item for item in items_of(octets) if isinstance(item, Run)]
                    numbers = [item.first + one for item in found for one in range(item.count)]
                    self.left.setdefault(number + 1, []).extend(numbers)
                case fx.OpenProxy(portal, source, _, _):
                    self.at(0, lambda n=number, s=source: self.feed(n, ev.ProxyOpened(0, s, 99, 5)))  # type: ignore[misc]
                case fx.Want(0, query, True) if query == ORDERS:
                    for record in self.sources.get(number, ()):
                        self.at(0, lambda n=number, r=record: self.feed(n, ev.SourceFound(0, "orders", r)))  # type: ignore[misc]
                case fx.JoinSource(_, source):
                    self.joined.setdefault(number, set()).add(source)
                case fx.Disconnect(_, domain, address):
                    self.hung_up.setdefault(number + 1, []).append((domain, address))
                case fx.LeaveSource(_, source):
                    self.joined[number].discard(source)
                case _:
                    pass

    def drop(self, end: tuple[int, int]) -> None:
        wire = self.wires.get(end)
        ends = (end,) if wire is None else wire.ends
        for one in ends:
            self.wires.pop(one, None)
            self.at(0, lambda one=one: self.feed(one[0], ev.LinkEnded(one[1], "dropped")))  # type: ignore[misc]

    def send(self, end: tuple[int, int], octets: bytes) -> None:
        wire = self.wires.get(end)
        self.said.setdefault(end, bytearray()).extend(octets)
        if wire is not None:
            self.at(DELAY, lambda: self.arrive(wire, wire.other(end), octets))

    def arrive(self, wire: Wire, end: tuple[int, int], octets: bytes) -> None:
        if self.wires.get(end) is not wire:
            return
        items = wire.decoders[end].feed(octets)
        for item in items:
            if isinstance(item, Run):
                self.entered.update((end[0], item.first + one) for one in range(item.count))
        self.feed(end[0], ev.LinkArrived(end[1], tuple(items)))

    def run(self, span: int) -> None:
        """Let time pass."""
        end = self.now + span
        while True:
            due = [
                (when, number) for number, one in enumerate(self.routers) if (when := one.next_timeout()) is not None
            ]
            first = min(due, default=None)
            if self.events and (first is None or self.events[0][0] <= first[0]):
                if self.events[0][0] > end:
                    break
                when, _, act = heappop(self.events)
                self.now = max(self.now, when)
                act()
            elif first is not None and first[0] <= end:
                self.now = max(self.now, first[0])
                self.routers[first[1]].handle_timeout(self.now)
                self.perform(first[1])
            else:
                break
        self.now = end

    # ------------------------------------------------------------------------------------- what is in the domains

    def source(self, number: int, record: SourceRecord = SOURCE) -> None:
        """A source of `orders` in the domain of a router, which finds it if it looks for it."""
        self.sources.setdefault(number, []).append(record)
        if any(ORDERS in portal.wants for portal in self.routers[number].portals):
            self.feed(number, ev.SourceFound(0, "orders", record))

    def want(self, *numbers: int) -> None:
        """A receiver of `orders` in the domains of routers."""
        for number in numbers:
            self.feed(number, ev.Overheard(0, packet(ORDERS)))

    def leave(self, number: int) -> None:
        """The receiver of a domain takes leave."""
        self.feed(number, ev.Overheard(0, uses(ORDERS, 0)))

    def publish(self, number: int, first: int, count: int = 1) -> None:
        """The source in the domain of a router sends."""
        for record in self.sources.get(number, ()):
            if record.origin in self.joined.get(number, ()):
                self.feed(number, ev.ItemsArrived(record.origin, (run(first, count, index=record.index),)))

    def signatures(self) -> set[int]:
        return {one.network.map.signature() for one in self.routers}
