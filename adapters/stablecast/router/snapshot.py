"""What a router shows of itself, from its machine."""

from collections.abc import Sequence
from itertools import islice

import attrs

from stablecast.router.views import (
    MAX_SHOWN,
    Flow,
    KnownRouter,
    LinkView,
    PortalView,
    QueueView,
    RouterView,
    RouteView,
    SymbolView,
)
from stablecast.transports.routing.forwarding import UnicastDrop
from stablecast.transports.routing.network import Network
from stablecast.transports.routing.network_map import MAX_DOMAIN
from stablecast.transports.routing.portals import Drop, Portal
from stablecast.transports.routing.router import Router
from stablecast.transports.wire.lbmr import PatternLanguage, Query, TopicQuery, WildcardQuery


def view_of(name: str, router: Router, addresses: Sequence[str], *, brief: bool = False) -> RouterView:
    """Return the view of a router whose portals have these request ports.

    A `brief` one leaves out interest and proxies. Its cost does not grow with their number.
    """
    portals = tuple(_figures(router.portals[number], address) for number, address in enumerate(addresses))
    if not brief:
        portals = tuple(_with_interest(one, router, number) for number, one in enumerate(portals))
    network = router.network
    beside = {link.node: number for number, link in network.links()}
    beside |= {one.settings.domain: number for number, one in enumerate(router.portals) if one.settings.domain}
    routes = tuple(
        RouteView(domain, router.portals[beside[way.entry]].settings.name, way.cost)
        for domain, way in network.ways.items()
        if way.entry in beside
    )
    return RouterView(name, portals, routes, f"{network.node:016x}", network.map.signature(), _routers(network))


def _routers(network: Network) -> tuple[KnownRouter, ...]:
    records = network.map.records
    found = []
    for node in sorted(network.map.reached() & records.keys()):
        record = records[node]
        beside = [one.node for one in record.neighbours]
        domains = tuple(one for one in beside if one <= MAX_DOMAIN)
        routers = tuple(records[one].name for one in beside if one in records)
        found.append(KnownRouter(f"{node:016x}", record.name, domains, routers))
    return tuple(found)


def _with_interest(view: PortalView, router: Router, number: int) -> PortalView:
    """Return the view with what its domain and the others want, and the proxies for that."""
    portal = router.portals[number]
    link = portal.link
    told = {} if link is None else {query: None for found in link.interest.values() for query in found}
    wanted = list(told or portal.interest.wanted)
    sought = portal.wants if link is None else link.told
    sources = router.table.sources.values()
    return attrs.evolve(
        view,
        topics=sum(isinstance(query, TopicQuery) for query in wanted),
        pcre_patterns=_patterns(wanted, PatternLanguage.PCRE),
        regex_patterns=_patterns(wanted, PatternLanguage.REGEX),
        remote_topics=sum(isinstance(query, TopicQuery) for query in sought),
        remote_patterns=sum(isinstance(query, WildcardQuery) for query in sought),
        proxy_receivers=len({one.topic for one in sources if one.portal == number and one.joined is not None}),
        proxy_sources=sum(number in one.proxies for one in sources),
        interest=tuple(_symbol(router, number, portal, query) for query in islice(wanted, MAX_SHOWN)),
    )


def _figures(portal: Portal, address: str) -> PortalView:
    settings, counted = portal.settings, portal.counted
    return PortalView(
        settings.name,
        settings.domain,
        settings.cost,
        address,
        received=Flow(counted.received, counted.received_bytes),
        sent=Flow(counted.sent, counted.sent_bytes),
        lost=counted.lost,
        unidentified=counted.unidentified,
        unhandled=counted.unhandled,
        unicast_received=counted.unicast_received,
        unicast_sent=counted.unicast_sent,
        dropped={reason.value: counted.dropped[reason] for reason in Drop},
        unicast_dropped={reason.value: counted.unicast_dropped[reason] for reason in UnicastDrop},
        disconnects=counted.disconnects,
        rejected=counted.rejected,
        queue=QueueView(portal.queues.size, portal.queues.peak, settings.queue_bytes),
        link=None if settings.domain else _link(portal),
        trouble=_trouble(portal),
    )


def _link(portal: Portal) -> LinkView:
    trips, counted = portal.trips, portal.counted
    return LinkView(
        "" if portal.link is None else portal.link.name,
        trips.count,
        trips.shortest,
        trips.total // trips.count if trips.count else 0,
        trips.longest,
        trips.last,
        counted.stray,
        counted.untold,
    )


def _trouble(portal: Portal) -> str:
    if portal.rival:
        return f"{portal.rival} is in this domain, and this portal stands aside"
    return "there is no link to another router" if portal.link is None and not portal.settings.domain else ""


def _patterns(wanted: Sequence[Query], kind: PatternLanguage) -> int:
    return sum(isinstance(query, WildcardQuery) and query.pattern_type == kind for query in wanted)


def _symbol(router: Router, number: int, portal: Portal, query: Query) -> SymbolView:
    name = query.name if isinstance(query, TopicQuery) else query.pattern
    topics = (name,) if isinstance(query, TopicQuery) else ()
    proxies = sum(number in one.proxies for one in router.table.of(topics))
    by_domain = {} if portal.link is None else portal.link.interest
    domains = tuple(sorted(domain for domain, found in by_domain.items() if query in found))
    return SymbolView(name, domains or (portal.settings.domain,), proxies)
