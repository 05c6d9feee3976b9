"""The network around one router: its links, the map that they share, and what the domains behind them want.

Whatever a router knows of the network comes over its links and is kept by link. What counts is decided from that and
the map alone, anew after each change: interest of a domain counts if it came from the entry of the domain's tree, and
is told on along the tree. So interest cannot circulate, and it ends with the last domain that has it.

What a change of the map takes away stays for a while (`HOLD_NS`), because the new way often needs a moment to say the
same again: proxies and the streams of sources outlive it. What a domain takes back ends at once.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.routing import effects as fx
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.interest import DomainInterest
from stablecast.transports.routing.link import BACKOFF_NS, MOST_BACKOFF_NS, STEADY_NS, Link, sum_of
from stablecast.transports.routing.network_map import (
    Neighbour,
    NetworkMap,
    NodeRecord,
    Ways,
    path_name,
)
from stablecast.transports.routing.portals import Drop, Portal, Standing
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmr import Query

HOLD_NS = 5 * SECOND
"""Time for which interest stays that came by a way that is no more, in nanoseconds."""

RESEND_NS = 5 * SECOND
"""Time after which two neighbours whose maps still differ tell each other all that they know."""

MAX_TOLD = 131_072
"""Paths, symbols and sources, each, that one link may tell; one that tells more is ended."""


MAX_MADE_UP = 1 << 31
"""Generation from which a record of this router, which it did not send, is not outbid but ends the link."""


class Matter(IntEnum):
    """The reasons for a look at something."""

    LISTENED = 0
    RIVAL = 1
    ROUTES = 2
    LOST = 3
    RETRY = 4
    ALIVE = 5
    STEADY = 6
    HELD = 7
    LEASE = 8
    UNDELIVERED = 9


DueItem = tuple[Matter, int, bytes]
"""A reason, a portal, and an OTID or an address, where they matter."""


@attrs.define
class Network:
    """The network as one router of this node and name knows it; it shares portals, deadlines and effects.

    Attributes:
        ways: The way of each domain that is reached.
        remote: What domains behind links want.
        calculated: How often the ways were calculated.
        shared: Domains of this router in which others say that they are, too.
        broken: Neighbours that other routers have lost, each behind that router; `Losses.compare` takes them.
    """

    node: int
    name: str
    portals: list[Portal]
    agenda: KeyedDeadlines[DueItem]
    outbox: list[fx.RouterEffect]
    map: NetworkMap = attrs.field(init=False)
    ways: Ways = attrs.field(init=False)
    remote: dict[int, DomainInterest] = attrs.field(factory=dict, init=False)
    calculated: int = attrs.field(default=0, init=False)
    shared: dict[tuple[int, int], None] = attrs.field(factory=dict, init=False)
    broken: set[tuple[int, int]] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.map = NetworkMap(self.node, {self.node: NodeRecord(self.node, self.name)})
        self.ways = self.map.ways()

    # ----------------------------------------------------------------------------------------------- what others ask

    def interests(self) -> Iterator[tuple[int, DomainInterest]]:
        """Yield what each domain wants: those of this router, and those behind links."""
        own = set()
        for portal in self.portals:
            if portal.forwards and portal.settings.domain:
                own.add(portal.settings.domain)
                yield portal.settings.domain, portal.interest
        for domain, interest in self.remote.items():
            if domain not in own:
                yield domain, interest

    def queries(self) -> dict[Query, None]:
        """Return all symbols that are wanted, looked for, or told."""
        found = {query: None for _, interest in self.interests() for query in interest.wanted}
        found |= {query: None for portal in self.portals for query in portal.wants}
        return found | {query: None for _, link in self.links() for query in link.told}

    def links(self) -> Iterator[tuple[int, Link]]:
        return ((number, one.link) for number, one in enumerate(self.portals) if one.link is not None)

    def wants(self, domain: int, topic: str) -> bool:
        """Return whether another domain than this one wants a topic."""
        return any(other != domain and interest.matches(topic) for other, interest in self.interests())

    def leads(self, domain: int, number: int, topic: str) -> bool:
        """Return whether what a source of a domain sends on a topic must leave through a portal."""
        portal, way = self.portals[number], self.ways.get(domain)
        if not portal.forwards:
            return False
        if portal.link is None:
            own = portal.settings.domain
            return (way is None or own in way.onward) and portal.interest.matches(topic)
        behind = () if way is None else way.onward.get(portal.link.node, ())
        return any(other in self.remote and self.remote[other].matches(topic) for other in behind)

    def enters(self, domain: int, number: int) -> bool:
        """Return whether what comes from a domain comes through this link."""
        way, link = self.ways.get(domain), self.portals[number].link
        return way is not None and link is not None and self.portals[number].forwards and way.entry == link.node

    def onward(self, origin: int, domain: int) -> int | None:
        """Return the link through which messages of one domain go to another; None: no link does."""
        way = self.ways.get(origin)
        if way is not None:
            for number, link in self.links():
                if self.portals[number].forwards and domain in way.onward.get(link.node, ()):
                    return number
        return None

    def children(self, domain: int) -> list[int]:
        """Return the links to which what comes from a domain goes on."""
        way = self.ways.get(domain)
        onward = () if way is None else way.onward
        return [number for number, link in self.links() if self.portals[number].forwards and link.node in onward]

    def domains(self) -> Iterator[int]:
        """Yield the domains that are reached through links."""
        own = {portal.settings.domain for portal in self.portals}
        return (domain for domain in self.ways if domain not in own)

    def offered(self, topics: Callable[[Link], Iterable[str]]) -> list[ev.SourceFound]:
        """Return the sources of topics that links repeat here: the other side tells them once, also before any want."""
        return [
            ev.SourceFound(number, topic, link.sources[origin].record)
            for number, link in self.links()
            for topic in topics(link)
            for origin in link.topics.get(topic, ())
            if origin in link.offered
        ]

    # ---------------------------------------------------------------------------------------------- links come and go

    def begin(self, number: int, node: int, name: str, now: int) -> bool:
        """Take up a link, and return whether it may stay; the link before it on the portal has ended."""
        portal = self.portals[number]
        other = next((one for one in self.portals if one.link is not None and one.link.node == node), None)
        reason = ""
        if node == self.node:
            reason = "both ends are this router"
        elif other is not None:
            reason = f"portal '{other.settings.name}' is linked to router '{name}' already"
        if reason:
            self._remark(f"portal '{portal.settings.name}' does not link: {reason}")
            self.outbox.append(fx.LinkDrop(number, reason))
            return False
        portal.link = Link(node, name, now, now)
        self._send_records(number)
        self.agenda.arm((Matter.ALIVE, number, b""), now + portal.settings.alive_ns)
        self.agenda.arm((Matter.STEADY, number, b""), now + portal.backoff_ns)
        return True

    def join(self, number: int) -> bool:
        """Let a link count from now on; return whether it did not before."""
        portal = self.portals[number]
        if portal.link is None or portal.forwards:
            return False
        portal.standing = Standing.FORWARDS
        self._remark(f"portal '{portal.settings.name}' is linked to router '{portal.link.name}'", warning=False)
        return True

    def end(self, number: int, now: int) -> list[ev.RouterInput]:
        """Forget a link, and return what its sources have become."""
        portal = self.portals[number]
        link, portal.link, portal.standing = portal.link, None, Standing.LISTENS
        waited = sum(block.count for _, blocks, _ in portal.queues.release() for block in blocks)
        portal.counted.dropped[Drop.LINK_DOWN] += waited
        self.agenda.stop((Matter.ALIVE, number, b""))
        self.agenda.stop((Matter.STEADY, number, b""))
        if link is None:
            return []
        steady = now - link.since >= STEADY_NS
        portal.backoff_ns = 0 if steady else min(MOST_BACKOFF_NS, max(BACKOFF_NS, 2 * portal.backoff_ns))
        return [_gone(number, link.sources[origin]) for origin in link.offered]

    def look(self, number: int, now: int) -> bool:
        """Ask for a sign of life; return False if there was none for too long, and the link is dropped."""
        portal = self.portals[number]
        link, settings = portal.link, portal.settings
        if link is None:
            return True
        if now - link.heard_at >= settings.silence_ns:
            self._drop(number, f"nothing was heard for {settings.silence_ns // SECOND} s")
            return False
        link.asked += 1
        digest = lm.Digest(self.map.signature(), link.told_interest, link.told_sources)
        self._send(number, lm.SignOfLife(True, link.asked, now, digest))
        self.agenda.arm((Matter.ALIVE, number, b""), now + settings.alive_ns)
        return True

    # --------------------------------------------------------------------------------------------------- what is told

    def receive(self, number: int, message: lm.LinkMessage, now: int) -> bool:
        """Note what the other side of a link tells, but for names of stores; return whether ways may have changed."""
        link = self.portals[number].link
        assert link is not None
        match message:
            case NodeRecord():
                return self._on_record(number, message)
            case lm.PathsTold(names):
                for domain, name in names:
                    if name:
                        link.paths[domain] = name
                    else:
                        link.paths.pop(domain, None)
                self._bound(number, len(link.paths))
                return True
            case lm.SignOfLife():
                self._on_sign(number, link, message, now)
            case _:
                pass
        return False

    def hear(self, number: int, told: lm.InterestTold) -> tuple[DomainInterest, bool] | None:
        """Note interest, and return the interest that changed by it and whether it is new; None: nothing counts."""
        link = self.portals[number].link
        assert link is not None
        known = link.interest.setdefault(told.domain, {})
        if (told.query in known) == told.on:
            return None
        link.symbols += 1 if told.on else -1
        self._bound(number, link.symbols)
        link.heard_interest ^= sum_of(lm.encode(attrs.evolve(told, on=True)))
        if told.on:
            known[told.query] = None
        else:
            del known[told.query]
        if not self.enters(told.domain, number):
            return None
        interest = self.remote.setdefault(told.domain, DomainInterest())
        changed = interest.tell(told.query) if told.on else interest.ends(told.query)
        return (interest, told.on) if changed else None

    def note(self, number: int, told: lm.SourceTold) -> list[ev.RouterInput]:
        """Note a source that the other side repeats or ends, and return what has become of it."""
        link, origin = self.portals[number].link, told.record.origin
        assert link is not None
        before = link.sources.pop(origin, None)
        found: list[ev.RouterInput] = []
        if before is not None:
            link.heard_sources ^= sum_of(_key(before))
            link.indexes.pop(before.record.index, None)
            link.info.pop(origin, None)
            link.topics[before.topic].pop(origin)
            if not link.topics[before.topic]:
                del link.topics[before.topic]
            if origin in link.offered and (not told.on or before.record.index != told.record.index):
                del link.offered[origin]
                found.append(_gone(number, before))
        if told.on:
            link.sources[origin], link.indexes[told.record.index] = told, origin
            link.topics.setdefault(told.topic, {})[origin] = None
            link.heard_sources ^= sum_of(_key(told))
            self._bound(number, len(link.sources))
            if self._accepts(number, link, told.record.domain):
                link.offered[origin] = None
                found.append(ev.SourceFound(number, told.topic, told.record))
        return found

    def tell(self, query: Query) -> None:
        """Tell on each link which domains behind this router want a symbol, as far as that has changed."""
        wanted = [domain for domain, interest in self.interests() if query in interest.wanted]
        for number, link in self.links():
            now_told = {domain: None for domain in wanted if number in self.children(domain)}
            before = link.told.get(query, {})
            for domain in sorted(now_told.keys() | before.keys()):
                if (domain in now_told) != (domain in before):
                    self._tell(number, link, lm.InterestTold(query, domain, domain in now_told))
            if now_told:
                link.told[query] = now_told
            else:
                link.told.pop(query, None)

    def repeat(self, number: int, told: lm.SourceTold) -> None:
        """Tell that a source is repeated on a link from now on, or no more."""
        link = self.portals[number].link
        if link is not None:
            link.told_sources ^= sum_of(_key(told))
            self._send(number, told)

    def refresh(self, now: int) -> list[ev.RouterInput]:
        """Calculate the ways anew, and return what has become of the sources behind links."""
        self._update_own()
        lease = self.map.expire(now)
        if lease is not None:
            self.agenda.arm((Matter.LEASE, 0, b""), lease)
        self.ways = self.map.ways()
        self.calculated += 1
        self._look_for_shared()
        self._tell_paths()
        for domain, interest, heard in self._counting():
            for query in heard:
                interest.tell(query)
            if interest.wanted.keys() - heard.keys():
                self.agenda.arm((Matter.HELD, 0, b""), now + HOLD_NS)
            self.remote[domain] = interest
        return [*self._offers(), *self._withdrawals()]

    def let_go(self) -> list[Query]:
        """End the interest that no way tells of any more, and return its symbols."""
        found: list[Query] = []
        for domain, interest, heard in self._counting():
            found += [query for query in tuple(interest.wanted) if query not in heard and interest.ends(query)]
            if not interest.wanted:
                self.remote.pop(domain, None)
        return found

    # ------------------------------------------------------------------------------------------------------ the parts

    def _counting(self) -> list[tuple[int, DomainInterest, dict[Query, None]]]:
        """Return for each domain behind links what counts as its interest, and what its way tells of it now."""
        told = {
            domain: link.interest[domain]
            for number, link in self.links()
            for domain in link.interest
            if self.enters(domain, number)
        }
        return [
            (domain, self.remote.get(domain) or DomainInterest(), told.get(domain, {}))
            for domain in {**self.remote, **told}
        ]

    def _offers(self) -> Iterator[ev.RouterInput]:
        for number, link in self.links():
            for origin, told in link.sources.items():
                if origin not in link.offered and self._accepts(number, link, told.record.domain):
                    link.offered[origin] = None
                    yield ev.SourceFound(number, told.topic, told.record)

    def _withdrawals(self) -> Iterator[ev.RouterInput]:
        for number, link in self.links():
            for origin in tuple(link.offered):
                if not self._accepts(number, link, link.sources[origin].record.domain):
                    del link.offered[origin]
                    yield _gone(number, link.sources[origin])

    def _accepts(self, number: int, link: Link, domain: int) -> bool:
        """Return whether both sides of a link think that what comes from a domain comes over it to this router.

        The other side tells its path before what it sends by it. So along its way a message passes longer and longer
        paths of one another, and no router twice.
        """
        if not self.enters(domain, number):
            return False
        return path_name(link.paths.get(domain, 0), self.node) == self.ways[domain].name

    def _tell_paths(self) -> None:
        links = [*self.links()]
        names = {domain: way.name for domain, way in self.ways.items()} if links else {}
        for number, link in links:
            changed = names.items() ^ link.told_paths.items()
            if changed:
                domains = sorted({domain for domain, _ in changed})
                link.told_paths = dict(names)
                for one in lm.paths((domain, names.get(domain, 0)) for domain in domains):
                    self._send(number, one)

    def _look_for_shared(self) -> None:
        """Name routers that are in a domain of this one: two domains have one number, or one domain two routers."""
        own = {one.settings.domain for one in self.portals if one.forwards} - {0}
        shared = {
            (neighbour.node, node): None
            for node in sorted(self.map.reached() - {self.node})
            for neighbour in self.map.records[node].neighbours
            if neighbour.node in own
        }
        for domain, node in shared:
            if (domain, node) not in self.shared:
                name = self.map.records[node].name
                self._remark(f"router '{name}' is in domain {domain} like this one: a domain has one router here")
        self.shared = shared

    def _update_own(self) -> None:
        beside = []
        for portal in self.portals:
            node = portal.link.node if portal.link is not None else portal.settings.domain
            if portal.forwards and node:
                beside.append(Neighbour(node, portal.settings.cost, portal.settings.cost))
        own = self.map.records[self.node]
        if tuple(sorted(beside)) != own.neighbours:
            self._say_own(own.generation + 1, tuple(sorted(beside)))

    def _say_own(self, generation: int, neighbours: tuple[Neighbour, ...]) -> None:
        record = NodeRecord(self.node, self.name, generation, neighbours)
        self.map.learn(record)
        for number, _ in self.links():
            self._send(number, record)

    def _on_record(self, number: int, record: NodeRecord) -> bool:
        if record.node == self.node:
            own = self.map.records[self.node]
            if record.generation >= MAX_MADE_UP:
                self._drop(number, "the other side makes up what this router says")
            elif record.generation > own.generation:
                self._say_own(record.generation + 1, own.neighbours)
            return False
        before = self.map.records.get(record.node)
        if not self.map.learn(record):
            return False
        if before is not None:
            left = {one.node for one in before.neighbours} - {one.node for one in record.neighbours}
            self.broken |= {(record.node, node) for node in left}
        for other, _ in self.links():
            if other != number:
                self._send(other, record)
        return True

    def _on_sign(self, number: int, link: Link, sign: lm.SignOfLife, now: int) -> None:
        if not sign.asks:
            if sign.number == link.asked and now >= sign.at:
                self.portals[number].trips.add(now - sign.at)
            return
        self._send(number, lm.SignOfLife(False, sign.number, sign.at))
        if sign.digest is None:
            return
        if (sign.digest.interest, sign.digest.sources) != (link.heard_interest, link.heard_sources):
            self._drop(number, "what was told and what was heard differ: it begins anew")
        elif sign.digest.signature == self.map.signature():
            link.differs_since = None
        elif link.differs_since is None:
            link.differs_since = now
        elif now - link.differs_since >= RESEND_NS:
            link.differs_since = now
            self._send_records(number)

    def _bound(self, number: int, told: int) -> None:
        if told == MAX_TOLD + 1:
            self._drop(number, f"the other side tells more than {MAX_TOLD} paths, symbols or sources")

    def _send_records(self, number: int) -> None:
        for record in self.map.records.values():
            self._send(number, record)

    def _tell(self, number: int, link: Link, told: lm.InterestTold) -> None:
        try:
            octets = lm.encode(told)
        except WireError:  # The longest patterns do not fit a header of LBMC.
            self.portals[number].counted.untold += 1
            return
        link.told_interest ^= sum_of(lm.encode(attrs.evolve(told, on=True)))
        self.outbox.append(fx.LinkSend(number, octets))

    def _send(self, number: int, message: lm.LinkMessage) -> None:
        signature = self.map.signature() if isinstance(message, NodeRecord) else 0
        self.outbox.append(fx.LinkSend(number, lm.encode(message, signature)))

    def _drop(self, number: int, reason: str) -> None:
        self.outbox.append(fx.LinkDrop(number, reason))

    def _remark(self, text: str, *, warning: bool = True) -> None:
        self.outbox.append(Remark(text, warning=warning))


def _key(told: lm.SourceTold) -> bytes:
    return told.record.origin + told.record.index.to_bytes(4)


def _gone(number: int, told: lm.SourceTold) -> ev.RouterInput:
    return ev.SourceGone(number, told.topic, told.record)
