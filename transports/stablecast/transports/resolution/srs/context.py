"""The resolution of one context over up to five services (SRS), which are used at the same time (hot/hot, T-401).

Each service receives the context's sources, and the topics and patterns that the context wants (T-403, T-404). Records
from all services are merged (`known_sources`) and reported once. A context finds its own sources without a service.
When a receiver has lost the transport of its last source, the context informs the services (SLR). After a moment it
reports the known sources again, because the source may be back at its old place. A topic that only patterns want is
abandoned if it then has no known source for the time that it lingers.

Interest may be withdrawn and wanted again. A service answers each withdrawal, and a record that was sent before the
answer does not count as current.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.deadlines import KeyedDeadlines
from stablecast.transports.resolution.patterns import expression
from stablecast.transports.resolution.records import check_instance, check_topic
from stablecast.transports.resolution.srs.directory import Interest
from stablecast.transports.resolution.srs.events import (
    BytesReceived,
    ConnectionClosed,
    ConnectionOpened,
    InterestChanged,
    Reaches,
    SrsContextEffect,
    SrsContextInput,
)
from stablecast.transports.resolution.srs.known_sources import OWN, KnownSource, KnownSources
from stablecast.transports.resolution.srs.routers import RoutesOfService, ended, routes_of
from stablecast.transports.resolution.srs.service_link import LinkState, LinkTimer, ServiceLink
from stablecast.transports.resolution.srs.settings import CLIENT_DEFAULTS, ClientConfig
from stablecast.transports.resolution.srs.source_records import source_info, source_record
from stablecast.transports.resolution.srs.told_interest import ToldInterest
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.udp.effects import Abandoned, Discovered, Withdrawn
from stablecast.transports.resolution.udp.known_domains import KnownDomains
from stablecast.transports.resolution.udp.settings import MAX_PATTERNS, MAX_TOPICS, PatternOptions
from stablecast.transports.wire import srs
from stablecast.transports.wire.lbmr import PatternLanguage, Query, TopicQuery, WildcardQuery

MAX_SERVICES = 5
"""Services of one context (T-401)."""

MAX_KNOWN = 1 << 20
"""Sources that a context knows; further ones are counted and dropped."""

MAX_DOMAINS = 250
"""Domains in one record of routes."""

REPORT_AGAIN = SECOND
"""Wait before the known sources of a topic are reported again."""


@attrs.define
class SrsCounters:
    """Counters of a context, in records.

    Attributes:
        told: Records of sources from services.
        unusable: Those on transports that receivers cannot join.
        unwanted: Those that came too late, or of unwanted topics.
        dropped: Those beyond `MAX_KNOWN`.
    """

    told: int = 0
    unusable: int = 0
    unwanted: int = 0
    dropped: int = 0


@attrs.frozen
class OwnSource:
    """One of the context's own sources: its OTID, and the messages that announce and withdraw it."""

    otid: bytes
    announced: bytes
    deleted: bytes


@attrs.frozen
class WantedTopics:
    """The topics that one pattern finds, and the time that they linger without a source (ns)."""

    expression: re.Pattern[str]
    linger: int

    def has(self, topic: str) -> bool:
        return self.expression.search(topic) is not None


@attrs.define
class SrsContext:
    """Resolution machine of one context; use `create`."""

    instance: bytes
    config: ClientConfig
    links: list[ServiceLink]
    outbox: list[SrsContextEffect]
    number: int = 0
    sources: dict[int, OwnSource] = attrs.field(factory=dict, init=False)
    topics: dict[Interest, None] = attrs.field(factory=dict, init=False)
    patterns: dict[Interest, WantedTopics] = attrs.field(factory=dict, init=False)
    known: KnownSources = attrs.field(factory=KnownSources, init=False)
    again: dict[str, int] = attrs.field(factory=dict, init=False)
    leaving: KeyedDeadlines[str] = attrs.field(factory=KeyedDeadlines, init=False)
    domains: KnownDomains = attrs.field(init=False)
    reaches: tuple[srs.RouteInfo, ...] = attrs.field(default=(), init=False)
    told_routes: dict[int, RoutesOfService] = attrs.field(factory=dict, init=False)
    interest: ToldInterest = attrs.field(factory=ToldInterest, init=False)
    counted: SrsCounters = attrs.field(factory=SrsCounters, init=False)

    def __attrs_post_init__(self) -> None:
        self.domains = KnownDomains(self.config.domains)

    @classmethod
    def create(
        cls, instance: bytes, services: Sequence[str], seed: int, config: ClientConfig = CLIENT_DEFAULTS
    ) -> "SrsContext":
        """Return the machine of a context that is named by 8 bytes and uses `services` (`host:port`).

        Raises:
            MisuseError: If there is no service, or too many, or `instance` has another length.
        """
        check_instance(instance)
        addresses = dict.fromkeys(services)
        if not 0 < len(addresses) <= MAX_SERVICES:
            raise MisuseError(f"a context uses 1 to {MAX_SERVICES} services, not {len(addresses)} (T-401)")
        outbox: list[SrsContextEffect] = []
        seeded = Seeded(seed)
        links = [ServiceLink(address, instance, config, seeded, outbox) for address in addresses]
        return cls(instance, config, links, outbox)

    def receive(self, event: SrsContextInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If a source, topic or pattern cannot be sent on the wire, exists already, or exceeds a bound;
                or if a connection is opened without a request.
        """
        match event:
            case inputs.AddSource():
                self._add_source(event)
            case inputs.RemoveSource():
                self._remove_source(event.key, now)
            case inputs.AddReceiver(topic):
                self._want_topic(topic)
            case inputs.AddPattern():
                self._want_pattern(event)
            case inputs.RemoveReceiver(topic):
                self._unwant(Interest(topic))
            case inputs.RemovePattern(pattern):
                self._unwant(Interest(pattern, pattern=True))
            case inputs.Unresolved() | inputs.SourceLost():
                self._on_unresolved(event, now)
            case inputs.Resolved():
                pass  # services are not queried, so there is nothing to stop
            case Reaches():
                self._reach(event)
            case ConnectionOpened() | BytesReceived() | ConnectionClosed():
                for holder, link in self._on(event.connection):
                    self._on_connection(event, holder, link, now)
            case _:
                assert_never(event)
        self.outbox += self.domains.take_effects()

    def handle_timeout(self, now: int) -> None:
        """Perform what is due in all links, and report sources again."""
        self.domains.handle_timeout(now)
        self.outbox += self.domains.take_effects()
        for holder, link in enumerate(self.links):
            due = link.handle_timeout(now, self.number + 1)
            self.number += LinkTimer.RETRY in due
            if LinkTimer.SWEEP in due and link.told:
                self._withdraw(self.known.sweep(holder, self._live()), now)
        for topic in [topic for topic, due in self.again.items() if due <= now]:
            del self.again[topic]
            self._report(entry for entry in self.known.of(topic) if self._is_wanted(topic))
            self._let_linger(topic, now)
        while (left := self.leaving.pop(now)) is not None:
            if self._is_matched_only(left):
                self.outbox.append(Abandoned(left))

    def next_timeout(self) -> int | None:
        return soonest(
            *(link.timers.next() for link in self.links),
            *self.again.values(),
            self.leaving.next(),
            self.domains.next_timeout(),
        )

    def take_effects(self) -> list[SrsContextEffect]:
        effects = self.outbox[:]
        self.outbox.clear()  # in place, because the links append to this list
        return effects

    def counters(self) -> dict[str, int]:
        current = sum(link.state is LinkState.CURRENT for link in self.links)
        return {"services": current, "known": len(self.known.entries), **attrs.asdict(self.counted)}

    def why(self, topic: str) -> str:
        """Return why a receiver may have no session, as far as is known here."""
        if found := sum(1 for _ in self.known.of(topic)):
            return f"services know {found} sources, none could be joined"
        if not any(link.state is LinkState.CURRENT for link in self.links):
            return f"no service is connected and current at {', '.join(link.address for link in self.links)}"
        return "services know no source"

    # Input from services.

    def _on(self, connection: int) -> list[tuple[int, ServiceLink]]:
        """Return the link that uses a connection, if any. Input from another connection is late."""
        return [(index, link) for index, link in enumerate(self.links) if link.is_on(connection)]

    def _on_connection(
        self, event: ConnectionOpened | BytesReceived | ConnectionClosed, holder: int, link: ServiceLink, now: int
    ) -> None:
        match event:
            case ConnectionOpened(local=local):
                link.on_opened(local, now)
            case BytesReceived(data=data):
                for message in link.on_data(data, now):
                    self._on_message(holder, link, message, now)
            case ConnectionClosed(reason=reason):
                link.on_lost(reason, now)

    def _on_message(self, holder: int, link: ServiceLink, message: srs.Message, now: int) -> None:
        match message:
            case srs.RegistrationResponse(domain=domain):
                self.told_routes.setdefault(holder, RoutesOfService()).begin()
                self.domains.heard(domain, True, now)
                link.tell(self._everything())
                link.request_stream()
            case srs.StreamRequest():
                if link.settled == link.epoch:
                    self._withdraw(self.known.sweep(holder, self._live()), now)
                self._lose(self.told_routes[holder].end())
                for query in self.interest.sweep(holder, link.connection):
                    self.outbox.append(InterestChanged(query, on=False))
            case srs.ReceiverInfo() | srs.PatternInfo() if self.config.router:
                if self.interest.put(_query_of(message), holder, link.connection):
                    self.outbox.append(InterestChanged(_query_of(message), on=True))
            case srs.ReceiverEnd() | srs.PatternEnd() if self.config.router:
                if self.interest.release(_query_of(message), holder):
                    self.outbox.append(InterestChanged(_query_of(message), on=False))
            case srs.DomainInfo(domain=domain):
                self.domains.heard(domain, True, now)
            case srs.RouteInfo():
                self.told_routes[holder].add(routes_of(message))
                self.domains.route(message.domains, f"{message.address}:{message.port}", None)
            case srs.RouteEnd():
                self.told_routes[holder].remove(routes_of(message))
                self._lose(routes_of(message))
            case srs.SourceInfo(cost=srs.ENDED, otid=otid) | srs.SourceDelete(otid=otid):
                gone = self.known.release(otid, holder, self._live())
                self._withdraw([] if gone is None else [gone], now)
            case srs.SourceInfo():
                self.counted.told += 1
                self._on_source(holder, link, message)
            # the link handles withdrawn interest

    def _on_source(self, holder: int, link: ServiceLink, info: srs.SourceInfo) -> None:
        record = source_record(info)
        if record is None:
            self.counted.unusable += 1
        elif not self.config.flood and not self._is_wanted(info.topic, link):
            self.counted.unwanted += 1
        elif len(self.known.entries) == MAX_KNOWN and info.otid not in self.known.entries:
            self.counted.dropped += 1
        else:
            self._put(KnownSource(info.otid, info.topic, info.source, record), holder, link.connection)

    def _put(self, entry: KnownSource, holder: int, connection: int) -> None:
        self.leaving.stop(entry.topic)
        if self.known.put(entry, holder, connection) and self._is_wanted(entry.topic):
            self._report([entry])

    def _live(self) -> dict[int, int]:
        links = {index: link.connection for index, link in enumerate(self.links) if link.told}
        return {OWN: 0, **links}

    def _report(self, entries: Iterable[KnownSource]) -> None:
        self.outbox += (Discovered(entry.topic, entry.record) for entry in entries)

    def _withdraw(self, entries: Iterable[KnownSource], now: int) -> None:
        for entry in entries:
            if self._is_wanted(entry.topic):
                self.outbox.append(Withdrawn(entry.topic, entry.record))
                self._let_linger(entry.topic, now)

    def _let_linger(self, topic: str, now: int) -> None:
        """Abandon a topic without sources after a while, unless it has a receiver of its own."""
        if self._is_matched_only(topic) and not self.known.topics.get(topic):
            self.leaving.arm(topic, now + max(p.linger for p in self.patterns.values() if p.has(topic)))

    # Wants and sources of the context.

    def _everything(self) -> list[bytes]:
        return [
            *map(srs.encode, self._of_router()),
            *(own.announced for own in self.sources.values()),
            *map(self._info, (*self.topics, *self.patterns)),
        ]

    def _of_router(self) -> Iterator[srs.Message]:
        """Yield what a router tells of its domain and of others."""
        if self.config.router and self.domains.number:
            yield srs.DomainInfo(domain=self.domains.number, instance=self.instance)
        yield from self.reaches

    def _reach(self, event: Reaches) -> None:
        """Tell the routes of this router, and the end of those that it no longer has."""
        host, _, port = event.address.rpartition(":")
        parts = (event.domains[at : at + MAX_DOMAINS] for at in range(0, len(event.domains), MAX_DOMAINS))
        before, self.reaches = (
            self.reaches,
            tuple(srs.RouteInfo(domains=part, address=host, port=int(port), instance=self.instance) for part in parts),
        )
        now_there = {route for record in self.reaches for route in routes_of(record)}
        for record in before:
            gone = tuple(domain for domain, address in routes_of(record) if (domain, address) not in now_there)
            if gone:
                self._tell(srs.encode(ended(attrs.evolve(record, domains=gone))))
        for record in self.reaches:
            self._tell(srs.encode(record))

    def _lose(self, routes: Iterable[tuple[int, str]]) -> None:
        """Lose the routes that no service tells any more."""
        for domain, address in routes:
            if not any((domain, address) in told.known for told in self.told_routes.values()):
                self.domains.lose((domain,), address)

    def _tell(self, octets: bytes) -> None:
        for link in self.links:
            if link.told:
                link.tell((octets,))

    def _is_wanted(self, topic: str, link: ServiceLink | None = None) -> bool:
        """Return whether receivers want a topic; with a link, whether they wanted it before the link's input."""
        late = {} if link is None else link.unanswered
        exact = Interest(topic)
        if exact in self.topics and exact not in late:
            return True
        return any(interest not in late and found.has(topic) for interest, found in self.patterns.items())

    def _is_matched_only(self, topic: str) -> bool:
        """Return whether only patterns want a topic."""
        return Interest(topic) not in self.topics and self._is_wanted(topic)

    def _want_topic(self, topic: str) -> None:
        check_topic(topic)
        interest = Interest(topic)
        if interest not in self.topics:
            if len(self.topics) == MAX_TOPICS:
                raise MisuseError(f"a context has receivers of {MAX_TOPICS} topics at most: use another context")
            self.topics[interest] = None
            self._tell(self._info(interest))
        self._report(self.known.of(topic))

    def _want_pattern(self, event: inputs.AddPattern) -> None:
        interest = Interest(event.pattern, pattern=True)
        found = WantedTopics(expression(event.pattern, event.kind), (event.options or PatternOptions()).linger)
        if interest not in self.patterns:
            if len(self.patterns) == MAX_PATTERNS:
                raise MisuseError(f"a context has receivers of {MAX_PATTERNS} patterns at most: use another context")
            self._tell(self._info(interest))
        self.patterns[interest] = found
        self._report(entry for entry in self.known.entries.values() if found.has(entry.topic))

    def _unwant(self, interest: Interest) -> None:
        if not interest.pattern and any(found.has(interest.name) for found in self.patterns.values()):
            self._report(self.known.of(interest.name))  # A pattern gets the sources that a receiver leaves.
        if interest not in self.topics and interest not in self.patterns:
            return
        self.topics.pop(interest, None)
        self.patterns.pop(interest, None)
        message = srs.PatternDelete if interest.pattern else srs.ReceiverDelete
        octets = srs.encode(message(name=interest.name, instance=self.instance))
        for link in self.links:
            if link.told:
                link.withdraw(interest, octets)
        self._forget(self.known.entries.values() if interest.pattern else self.known.of(interest.name))

    def _forget(self, entries: Iterable[KnownSource]) -> None:
        """Forget unwanted sources, because services send no more records of them."""
        if not self.config.flood:
            unwanted = [e.otid for e in entries if OWN not in e.holders and not self._is_wanted(e.topic)]
            for otid in unwanted:
                self.known.drop(otid)

    def _on_unresolved(self, event: inputs.Unresolved | inputs.SourceLost, now: int) -> None:
        """Handle the loss of all sources of a topic, or of one of them."""
        topic = event.topic
        only = (event.session_id, event.index) if isinstance(event, inputs.SourceLost) else None
        if not self._is_wanted(topic):
            return
        for entry in self.known.of(topic):
            if OWN not in entry.holders and only in (None, (entry.record.session_id, entry.record.index)):
                left = srs.LeaveInfo(otid=entry.otid, topic=topic, source=entry.source, instance=self.instance)
                self._tell(srs.encode(left))
        self.again.setdefault(topic, now + REPORT_AGAIN)

    def _add_source(self, event: inputs.AddSource) -> None:
        event = self.domains.of_source(event)
        event.check(self.sources)
        record = event.record(self.instance)
        info = source_info(event.topic, record)
        own = OwnSource(info.otid, srs.encode(info), srs.encode(srs.SourceDelete(otid=info.otid, topic=event.topic)))
        self.sources[event.key] = own
        self._tell(own.announced)
        self._put(KnownSource(info.otid, event.topic, info.source, record), OWN, 0)

    def _remove_source(self, key: int, now: int) -> None:
        own = self.sources.pop(key, None)
        if own is None:
            return
        self._tell(own.deleted)
        gone = self.known.release(own.otid, OWN, self._live())
        self._withdraw([] if gone is None else [gone], now)

    def _info(self, interest: Interest) -> bytes:
        kind = srs.PatternInfo if interest.pattern else srs.ReceiverInfo
        return srs.encode(kind(name=interest.name, instance=self.instance))


def _query_of(message: srs.ReceiverInfo | srs.ReceiverEnd | srs.PatternInfo | srs.PatternEnd) -> Query:
    if isinstance(message, srs.PatternInfo | srs.PatternEnd):
        return WildcardQuery(PatternLanguage.PCRE, message.name)
    return TopicQuery(message.name)
